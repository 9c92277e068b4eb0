/* SPDX-License-Identifier: MIT */
#include "steps/record/step_space.h"

#include <stdlib.h>
#include <string.h>

#include "arch/x86_code.h"
#include "base/order.h"
#include "steps/record/step_memory.h"

#define PENDING_MAX 1024 /* entries of one record */

struct step_space *step_space_new(uint32_t number, struct process *process)
{
	struct step_space *s = mem_zalloc(sizeof(*s));

	s->number = number;
	s->process = process;
	return s;
}

void step_space_free(struct step_space *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->regions.n; i++)
		free(s->regions.v[i].path);
	vec_release(&s->regions);
	vec_release(&s->entries);
	vec_release(&s->pending);
	vec_release(&s->blocks);
	map_release(&s->block_at);
	vec_release(&s->engine_own);
	vec_release(&s->kernels);
	map_release(&s->by_addr);
	step_memory_free(s->memory);
	free(s);
}

void step_space_copy_regions(struct step_space *to, const struct step_space *from)
{
	for (size_t i = 0; i < from->regions.n; i++) {
		struct step_region r = from->regions.v[i];

		r.path = mem_strdup(r.path);
		vec_push(&to->regions, r);
	}
}

/* --- the book ----------------------------------------------------------------------------- */

ORDER_BY(by_address, struct step_code, addr)

static void write_blocks(struct step_space *s, const struct step_space_env *env, uint64_t time)
{
	struct step_blocks_head head = {.space = s->number, .first = s->n_written};
	struct buf b = {0};

	while (s->n_written < s->blocks.n) {
		uint32_t left = (uint32_t)s->blocks.n - s->n_written;

		head.first = s->n_written;
		head.n = left < PENDING_MAX ? left : PENDING_MAX;
		buf_reset(&b);
		step_blocks_encode(&b, &head, s->blocks.v + head.first);
		trace_writer_record(env->w, env->code_stream, time, RECORD_MAJOR_STEP,
			RECORD_STEP_BLOCKS, b.p, b.n);
		s->n_written += head.n;
	}
	buf_release(&b);
}

static bool is_same_block(const struct step_block *a, const struct step_block *b)
{
	return a->n == b->n && a->strings == b->strings && !memcmp(a->lengths, b->lengths, a->n);
}

uint32_t step_space_block(struct step_space *s, const struct step_block *b)
{
	bool is_new;
	/* Some have the same beginning. */
	uint64_t *number = map_ensure(&s->block_at, b->addr ^ (uint64_t)b->n << 57, &is_new);

	if (is_new || !is_same_block(&s->blocks.v[*number], b)) {
		*number = s->blocks.n;
		vec_push(&s->blocks, *b);
	}
	return (uint32_t)*number;
}

void step_space_write_code(struct step_space *s, const struct step_space_env *env, uint64_t time)
{
	struct step_code_head head = {.space = s->number,
		.generation = s->generation,
		.pid = s->process->pid,
		.is_64 = s->pending_is_64,
		.n = (uint32_t)s->pending.n};
	struct buf b = {0};

	write_blocks(s, env, time);
	if (!s->pending.n)
		return;
	vec_sort(&s->pending, by_address);
	step_code_encode(&b, &head, s->pending.v);
	trace_writer_record(
		env->w, env->code_stream, time, RECORD_MAJOR_STEP, RECORD_STEP_CODE, b.p, b.n);
	buf_release(&b);
	s->pending.n = 0;
}

static uint32_t frame_of(
	struct step_space *s, const struct step_space_env *env, uint64_t addr, uint64_t time)
{
	const struct mapping *m = addrspace_find(s->process->space, (struct vaddr){addr});
	struct trace_frame f = {.kind = FRAME_KIND_NATIVE, .addr = addr};

	if (m) {
		module_history_use(env->modules, s->process, m, time);
		f.image = images_trace_id(env->images, m->image, env->w);
		f.addr -= m->bias;
		if (images_get(env->images, m->image)->kind == IMAGE_KIND_JIT)
			f.kind = FRAME_KIND_JITTED;
	}
	return trace_writer_frame(env->w, &f);
}

/* Bytes behind the instruction are not its business: they may change without it. */
static size_t instruction_bytes(const uint8_t *bytes, size_t n, uint64_t addr, bool is_64)
{
	struct x86_insn insn;

	if (n > STEP_CODE_BYTES_MAX)
		n = STEP_CODE_BYTES_MAX;
	return x86_decode(&insn, (struct span){bytes, n}, addr, is_64) ? insn.length : n;
}

static void note(struct step_space *s, const struct step_space_env *env, const struct step_entry *e,
	uint64_t time)
{
	struct step_code code = {.addr = e->addr, .frame = e->frame, .n = e->n};

	if (s->pending.n == PENDING_MAX || (s->pending.n && s->pending_is_64 != e->is_64))
		step_space_write_code(s, env, time);
	s->pending_is_64 = e->is_64;
	memcpy(code.bytes, e->bytes, e->n);
	vec_push(&s->pending, code);
}

const struct step_entry *step_space_known(const struct step_space *s, uint64_t addr)
{
	const uint64_t *i = map_find(&s->by_addr, addr);

	return i && !s->entries.v[*i].is_gone ? &s->entries.v[*i] : NULL;
}

struct step_entry *step_space_execute(struct step_space *s, const struct step_space_env *env,
	uint64_t addr, const uint8_t *bytes, size_t n, bool is_64, uint64_t time)
{
	bool is_new;
	uint64_t *i = map_ensure(&s->by_addr, addr, &is_new);
	struct step_entry *e;

	if (is_new) {
		*i = s->entries.n;
		vec_push(&s->entries, ((struct step_entry){.addr = addr}));
	}
	e = &s->entries.v[*i];
	if (!is_new && !e->is_gone && e->is_64 == is_64 && n >= e->n && (e->n || !n) &&
		!memcmp(e->bytes, bytes, e->n)) {
		e->used = s->generation;
		return e;
	}
	if (!is_new && e->used == s->generation && !s->is_sunk) {
		step_space_write_code(s, env, time);
		s->generation++;
	}
	e->n = (uint8_t)(n ? instruction_bytes(bytes, n, addr, is_64) : 0);
	memcpy(e->bytes, n ? (const void *)bytes : "", e->n);
	e->is_64 = is_64;
	e->is_gone = false;
	e->is_string = x86_is_repeated_string((struct span){e->bytes, e->n});
	e->used = s->generation;
	if (s->is_sunk)
		return e;
	e->frame = frame_of(s, env, addr, time);
	note(s, env, e, time);
	return e;
}

/* An address that is executed there later is new code, even when its bytes are the same: it is of
 * another image. */
void step_space_forget(struct step_space *s, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < s->entries.n; i++) {
		struct step_entry *e = &s->entries.v[i];

		if (e->addr >= start && e->addr < end)
			e->is_gone = true;
	}
	s->n_forgotten++;
}
