/* SPDX-License-Identifier: MIT */
/* Blocks of the translator: where they are, their code, and which block of the trace they are while that code is what
 * is there. */
#include <stdlib.h>
#include <string.h>

#include "arch/x86_code.h"
#include "base/clock.h"
#include "steps/engine/translate_engine.h"

#define ROWS_IMPLIED_MAX 64u
#define CODE_AT_ONCE	 (4u << 20)
#define ROW_BYTES_MAX	 (STEP_BLOCK_INSNS_MAX * STEP_CODE_BYTES_MAX)

struct translated_rows *translated_rows_new(struct translated_rows *parent, uint32_t n_of_parent)
{
	struct translated_rows *r = mem_zalloc(sizeof(*r));

	r->n_users = 1;
	r->parent = parent;
	r->n_of_parent = n_of_parent;
	if (parent)
		parent->n_users++;
	return r;
}

void translated_rows_drop(struct translated_rows *r)
{
	if (!r || --r->n_users)
		return;
	translated_rows_drop(r->parent);
	vec_release_all(&r->code);
	vec_release(&r->rows);
	free(r);
}

const struct translated_row *translated_rows_get(const struct translated_rows *r, uint32_t number)
{
	while (r && number < r->n_of_parent)
		r = r->parent;
	return r && number - r->n_of_parent < r->rows.n ? &r->rows.v[number - r->n_of_parent]
							: NULL;
}

uint32_t translated_rows_implied(const struct translated_rows *r, uint32_t number)
{
	const struct translated_row *row;
	uint32_t n = 0;

	while (n < ROWS_IMPLIED_MAX && (row = translated_rows_get(r, number + n + 1)) &&
		row->is_implied)
		n++;
	return n;
}

uint32_t translated_rows_left(const struct translated_rows *r, uint32_t number, uint64_t pc)
{
	uint32_t n = translated_rows_implied(r, number);
	const struct translated_row *last = translated_rows_get(r, number + n);

	for (uint32_t i = 0; i < n; i++)
		if (translated_rows_get(r, number + i)->target == pc)
			return number + i;
	return !n || (last && (last->target == pc || last->pc + last->bytes == pc)) ? number + n
										    : UINT32_MAX;
}

/* The translator keeps code where it grows: that of many rows is read at once. */
static size_t read_code(struct traced_program *p, struct translated_rows *r,
	const struct translate_block *rows, size_t n, struct translated_row *to)
{
	uint64_t low = rows[0].code, high = low;
	uint8_t *code;
	size_t some = 0;

	for (; some < n; some++) {
		uint64_t start = rows[some].code, end = start + rows[some].bytes;

		if (start < low || rows[some].bytes > ROW_BYTES_MAX || end - low > CODE_AT_ONCE)
			break;
		high = end > high ? end : high;
	}
	if (!some)
		return 0;
	code = mem_alloc(high - low + 1);
	vec_push(&r->code, code);
	if (!program_read(p, low, code, high - low))
		return some;
	for (size_t i = 0; i < some; i++)
		to[i].code = code + (rows[i].code - low);
	return some;
}

void translated_rows_add(struct translate_engine *e, struct traced_program *p, uint32_t first,
	const struct translate_block *rows, size_t n)
{
	struct translated_program *d = p->data;
	struct translated_rows *r = d->rows;
	uint32_t known = r->n_of_parent + (uint32_t)r->rows.n;
	size_t at;

	(void)e;
	if (first < known) { /* they have only changed */
		uint32_t skip = known - first;

		if (skip >= n)
			return;
		first += skip;
		rows += skip;
		n -= skip;
	}
	at = r->rows.n;
	for (size_t i = 0; i < n; i++)
		vec_push(&r->rows,
			((struct translated_row){rows[i].pc, NULL, rows[i].bytes, rows[i].n_insns,
				rows[i].flags & TRANSLATE_BLOCK_SYSCALL,
				rows[i].flags & TRANSLATE_BLOCK_IMPLIED, rows[i].target}));
	for (size_t i = 0; i < n;) {
		size_t some = read_code(p, r, rows + i, n - i, r->rows.v + at + i);

		i += some ? some : 1;
	}
	vec_reserve(&d->fast, first + n);
	memset(d->fast.v + d->fast.n, 0, (first + n - d->fast.n) * sizeof(*d->fast.v));
	d->fast.n = first + n;
}

void translated_program_begin(struct translated_program *p)
{
	free(p->edges);
	map_release(&p->joined);
	p->edges = mem_calloc(1u << EDGE_BITS, sizeof(*p->edges));
}

/* --- what they are in the trace --------------------------------------------------------------- */

/* False when these bytes are not so many instructions. */
static bool decode(struct step_block *b, const struct translated_row *row)
{
	uint32_t at = 0;

	if (!row->code || !row->n || row->n > STEP_BLOCK_INSNS_MAX)
		return false;
	*b = (struct step_block){.addr = row->pc, .n = (uint8_t)row->n};
	for (uint32_t i = 0; i < row->n; i++) {
		struct x86_insn insn;
		struct span code = {row->code + at, row->bytes - at};

		if (!x86_decode(&insn, code, row->pc + at, true))
			return false;
		b->lengths[i] = insn.length;
		if (x86_is_repeated_string((struct span){code.p, insn.length}))
			b->strings |= 1ull << i;
		at += insn.length;
	}
	return at == row->bytes;
}

uint32_t translated_join(
	struct translated_program *p, struct step_space *space, uint32_t first, uint32_t last)
{
	const uint64_t *known = map_find(&p->joined, first | (uint64_t)last << 32);
	struct step_block b, next;
	uint64_t end;

	if (known)
		return (uint32_t)*known;
	if (!decode(&b, translated_rows_get(p->rows, first)))
		return 0;
	for (uint32_t i = first + 1; i <= last; i++) {
		const struct translated_row *r = translated_rows_get(p->rows, i);

		end = b.addr;
		for (uint32_t k = 0; k < b.n; k++)
			end += b.lengths[k];
		if (!decode(&next, r) || next.strings || next.addr != end ||
			b.n + next.n > STEP_BLOCK_INSNS_MAX)
			return 0;
		memcpy(b.lengths + b.n, next.lengths, next.n);
		b.n += next.n;
	}
	*map_ensure(&p->joined, first | (uint64_t)last << 32, NULL) =
		step_space_block(space, &b) + 1u;
	return (uint32_t)*map_find(&p->joined, first | (uint64_t)last << 32);
}

/* Its instructions are what is in memory, which another block may have been since. */
static void execute(struct translate_engine *e, struct step_space *space,
	const struct step_block *b, const struct translated_row *row)
{
	uint64_t now = clock_mono_ns();
	uint32_t before, at;

	/* Code that changes begins a new generation, for which all of the block has to be looked at once more. */
	do {
		before = space->generation;
		at = 0;
		for (uint32_t i = 0; i < b->n; i++) {
			step_space_execute(space, &e->s->env, b->addr + at, row->code + at,
				b->lengths[i], true, now);
			at += b->lengths[i];
		}
	} while (space->generation != before);
}

const struct translated_fast *translated_look(struct translate_engine *e, struct traced_program *p,
	struct translated_thread *d, uint32_t row)
{
	struct translated_program *program = p->data;
	struct step_space *space = d->track->space;
	const struct translated_row *r = translated_rows_get(program->rows, row);
	struct translated_fast *fast;
	struct step_block block;

	if (!r || row >= program->fast.n || !decode(&block, r))
		return NULL;
	execute(e, space, &block, r);
	if (program->generation != space->generation ||
		program->n_forgotten != space->n_forgotten) {
		memset(program->fast.v, 0, program->fast.n * sizeof(*program->fast.v));
		translated_program_begin(program);
		program->generation = space->generation;
		program->n_forgotten = space->n_forgotten;
	}
	fast = &program->fast.v[row];
	fast->number = step_space_block(space, &block) + 1;
	fast->n = r->n;
	fast->flags = (step_session_wants(e->s, d->track, r->pc) ? 0 : FAST_UNWANTED) |
		      (block.strings ? FAST_STRINGS : 0);
	return fast;
}
