/* SPDX-License-Identifier: MIT */
/*
 * Trace streams put together by hand, so that running one is tested without a compiler. Pieces are
 * built with bpf_code and added to the code of a mode.
 */
#ifndef WEIR_TESTS_STREAM_MAKER_H
#define WEIR_TESTS_STREAM_MAKER_H

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf/code.h"
#include "probe/run/probe_session.h"

#define MAKER_RECORDS_MAX 4096
#define MAKER_TEXT	  "begin { a }\nuprobe:x:y { b; }\nlast { c }\n"

struct maker_record {
	struct stream_record r;
	uint64_t arg;
};

struct stream_maker {
	struct stream s;
	/* What came out. */
	struct maker_record records[MAKER_RECORDS_MAX];
	size_t n_records;
	char notes[4096];
	struct probe_session *session;
	struct err err;
};

static inline void maker_init(struct stream_maker *m)
{
	memset(m, 0, sizeof(*m));
	m->s.arena = arena_new();
	m->s.zero_bytes = 64;
	sources_add(&m->s.sources, "test.wr",
		(struct span){(const uint8_t *)MAKER_TEXT, strlen(MAKER_TEXT)});
}

static inline uint32_t maker_clause(struct stream_maker *m)
{
	struct stream_clause c = {.place = {0, 0, 5}};

	vec_push(&m->s.clauses, c);
	return (uint32_t)m->s.clauses.n - 1;
}

static inline uint32_t maker_format(struct stream_maker *m, enum format_kind kind)
{
	struct stream_format f = {.kind = kind, .text = ""};

	vec_push(&m->s.formats, f);
	return (uint32_t)m->s.formats.n - 1;
}

static inline struct shape *maker_shape(struct stream_maker *m, enum shape_kind kind, uint32_t size)
{
	struct shape *s = arena_zalloc(m->s.arena, sizeof(*s));

	s->kind = kind;
	s->size = size;
	s->is_signed = true;
	return s;
}

/* The number of the map in code. */
static inline uint32_t maker_map(
	struct stream_maker *m, struct shape *key, struct shape *value, uint32_t max_entries)
{
	struct stream_map_def def = {
		.name = "@x", .key = key, .value = value, .max_entries = max_entries};

	vec_push(&m->s.maps, def);
	return STREAM_MAP_FIRST_OF_SCRIPT + (uint32_t)m->s.maps.n - 1;
}

static inline struct stream_point *maker_point(
	struct stream_maker *m, uint32_t clause_i, enum point_kind kind, const char *text)
{
	struct stream_point p = {
		.clause_i = clause_i, .spec = {.kind = kind, .text = text, .name = text}};

	vec_push(&m->s.points, p);
	return &m->s.points.v[m->s.points.n - 1];
}

/* Takes the code over. */
static inline struct stream_piece *maker_piece(
	struct stream_maker *m, struct stream_point *p, enum mode mode, struct bpf_code *code)
{
	struct stream_piece *piece = &p->pieces[mode];

	*piece = (struct stream_piece){.is_there = true,
		.action_at = (uint32_t)m->s.code[mode].n,
		.action_n = (uint32_t)code->insns.n};
	for (size_t i = 0; i < code->insns.n; i++)
		vec_push(&m->s.code[mode], code->insns.v[i]);
	bpf_code_release(code);
	*code = (struct bpf_code){0};
	return piece;
}

#define MAKER_ARG_AT (-16)

/* A record with what is in MAKER_ARG_AT of the stack as its argument. */
static inline void maker_send(
	struct bpf_code *c, enum stream_map ring, uint32_t format, uint32_t clause)
{
	bpf_call(c, BPF_FUNC_ktime_get_ns);
	bpf_store(c, BPF_DW, BPF_REG_10, -40, BPF_REG_0);
	bpf_store_imm(c, BPF_W, BPF_REG_10, -32, (int32_t)format);
	bpf_store_imm(c, BPF_W, BPF_REG_10, -28, (int32_t)clause);
	bpf_call(c, BPF_FUNC_get_current_pid_tgid);
	bpf_store(c, BPF_W, BPF_REG_10, -20, BPF_REG_0);
	bpf_alu_imm(c, BPF_RSH, BPF_REG_0, 32);
	bpf_store(c, BPF_W, BPF_REG_10, -24, BPF_REG_0);
	bpf_load_map(c, BPF_REG_1, (int)ring);
	bpf_mov(c, BPF_REG_2, BPF_REG_10);
	bpf_alu_imm(c, BPF_ADD, BPF_REG_2, -40);
	bpf_mov_imm(c, BPF_REG_3, 32);
	bpf_mov_imm(c, BPF_REG_4, 0);
	bpf_call(c, BPF_FUNC_ringbuf_output);
}

/* A record with a constant. */
static inline void maker_send_constant(
	struct bpf_code *c, enum stream_map ring, uint32_t format, uint32_t clause, int32_t value)
{
	bpf_store_imm(c, BPF_DW, BPF_REG_10, MAKER_ARG_AT, value);
	maker_send(c, ring, format, clause);
}

static inline void maker_on_record(void *ctx, const struct stream_record *r, struct span args)
{
	struct stream_maker *m = ctx;
	struct maker_record *to = &m->records[m->n_records];

	if (m->n_records == MAKER_RECORDS_MAX)
		return;
	m->n_records++;
	to->r = *r;
	if (args.n >= 8)
		memcpy(&to->arg, args.p, 8);
}

static inline void maker_on_note(void *ctx, const char *sentence)
{
	struct stream_maker *m = ctx;

	strncat(m->notes, sentence, sizeof(m->notes) - strlen(m->notes) - 2);
	strncat(m->notes, "\n", sizeof(m->notes) - strlen(m->notes) - 1);
}

static inline int maker_open(struct stream_maker *m, const struct probe_session_options *options)
{
	struct probe_session_output out = {.ctx = m, .record = maker_on_record, .note = maker_on_note};

	return probe_session_open(&m->s, options, &out, &m->session, &m->err);
}

/* Works until there are so many records, but not for ever. */
static inline void maker_wait(struct stream_maker *m, size_t n)
{
	for (int i = 0; i < 200 && m->n_records < n && probe_session_work(m->session); i++) {
		struct pollfd fd = {probe_session_fd(m->session), POLLIN, 0};

		poll(&fd, 1, 10);
	}
}

static inline void maker_release(struct stream_maker *m)
{
	probe_session_close(m->session);
	for (int i = 0; i < N_MODES; i++) {
		vec_release(&m->s.code[i]);
		vec_release(&m->s.lines[i]);
	}
	vec_release(&m->s.clauses);
	vec_release(&m->s.points);
	vec_release(&m->s.maps);
	vec_release(&m->s.formats);
	vec_release(&m->s.strings);
	sources_release(&m->s.sources);
	arena_free(m->s.arena);
}

#endif
