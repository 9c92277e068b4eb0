/* SPDX-License-Identifier: MIT */
/*
 * A script, parsed and checked as the compiler does it, without looking at the machine: every point
 * is checked in both modes (begin, end and interval in 64-bit mode), and functions have the types
 * that the script declares.
 */
#ifndef WEIR_TESTS_CHECK_WORLD_H
#define WEIR_TESTS_CHECK_WORLD_H

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "probe/compile/check.h"
#include "probe/script/parse.h"

struct check_world {
	struct sources sources;
	struct diags diags;
	struct script *script;
	struct check_session s;
	const struct usdt_operand *operands;
	uint32_t n_operands;
	const struct type *fields[N_MODES]; /* of tracepoints */
	bool skips_32;			    /* 32-bit mode does not occur */
	bool is_ok;
};

static inline void check_world_types(struct check_world *w)
{
	for (int mode = 0; mode < N_MODES; mode++) {
		w->s.types[mode] = types_new((enum mode)mode);
		types_declare(w->s.types[mode], w->script->decls, &w->diags);
	}
}

static inline void check_world_init(struct check_world *w, const char *text)
{
	struct script_parameters none = {0};

	memset(w, 0, sizeof(*w));
	sources_add(&w->sources, "test.wr", (struct span){(const uint8_t *)text, strlen(text)});
	diags_init(&w->diags, &w->sources);
	w->script = script_parse(&w->sources, &none, &w->diags);
	w->s = (struct check_session){.script = w->script,
		.stream = stream_new(),
		.diags = &w->diags,
		.arena = arena_new(),
		.string_bytes = 128};
	check_world_types(w);
}

static inline void check_world_release(struct check_world *w)
{
	for (int mode = 0; mode < N_MODES; mode++)
		types_free(w->s.types[mode]);
	stream_free(w->s.stream);
	arena_free(w->s.arena);
	script_free(w->script);
	diags_release(&w->diags);
	sources_release(&w->sources);
}

static inline bool check_world_has_mode(const struct point_spec *spec, int mode)
{
	return mode == MODE_64 || (spec->kind != POINT_BEGIN && spec->kind != POINT_END &&
					  spec->kind != POINT_INTERVAL);
}

static inline bool check_world_point(
	struct check_world *w, struct clause *clause, uint32_t clause_i, struct point_text *text)
{
	struct stream_point point = {.clause_i = clause_i};
	bool ok = true;

	if (!point_parse(text, w->s.arena, &point.spec, &w->diags))
		return false;
	for (int mode = 0; mode < N_MODES; mode++) {
		struct check_clause c = {.session = &w->s,
			.clause = clause,
			.clause_i = clause_i,
			.point = &point,
			.mode = (enum mode)mode,
			.fields = w->fields[mode],
			.operands = w->operands,
			.n_operands = w->n_operands};

		if (!check_world_has_mode(&point.spec, mode) || (w->skips_32 && mode == MODE_32))
			continue;
		if (point.spec.kind == POINT_UPROBE || point.spec.kind == POINT_URETPROBE)
			c.function = types_function(w->s.types[mode], point.spec.name);
		if (point.spec.kind == POINT_SYSCALL_ENTRY && !point.spec.is_glob)
			c.syscall = point.spec.name;
		ok &= check_clause(&c);
	}
	return ok;
}

static inline bool check_world_pass(struct check_world *w)
{
	bool ok = true;
	uint32_t i = 0;

	for (struct clause *c = w->script->clauses; c; c = c->next, i++) {
		for (struct point_text *p = c->points; p; p = p->next)
			ok &= check_world_point(w, c, i, p);
	}
	return ok;
}

static inline bool check_world_learn(struct check_world *w)
{
	bool ok = w->diags.n_errors == 0;

	w->s.pass = CHECK_LEARN;
	for (int i = 0; ok && i < CHECK_LEARN_ROUNDS; i++) {
		w->s.is_changed = false;
		ok = check_world_pass(w);
		if (!w->s.is_changed)
			break;
	}
	check_learned(&w->s);
	return ok && !w->diags.n_errors;
}

/* Both passes; false when something is wrong. */
static inline bool check_world_run(struct check_world *w)
{
	bool ok = check_world_learn(w);

	w->s.pass = CHECK_FINAL;
	w->is_ok = ok && check_world_pass(w) && !w->diags.n_errors;
	return w->is_ok;
}

/* "TAG LINE:COLUMN TAG LINE:COLUMN ..." of all messages, warnings too; "" when there are none. */
static inline const char *check_world_tags(struct check_world *w)
{
	struct buf b = {0};
	const char *text;

	for (size_t i = 0; i < w->diags.v.n; i++) {
		uint32_t line, column;

		place_line(&w->sources, w->diags.v.v[i].place, &line, &column);
		buf_printf(&b, "%s%s %u:%u", i ? " " : "", w->diags.v.v[i].tag, line, column);
	}
	text = arena_strndup(w->s.arena, buf_text(&b), b.n);
	buf_release(&b);
	return text;
}

#endif
