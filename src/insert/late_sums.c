/* SPDX-License-Identifier: MIT */
/*
 * How much each block adds to the sum of costs. The sum has to be right only when the library looks at it: at
 * calls, returns and whatever else leaves the function. In between a block may leave its cost to those that come
 * behind it, so that most add nothing: of an `if` with two sides only the sides do, of a loop only its end.
 *
 * What is owed at a place does not depend on the way that led there. All blocks that lead to one owe the same
 * behind them, and so do all places that one leads to: places fall into classes, and in each the least number of
 * instructions is owed that may have been executed since something was settled. A block adds what is owed in front
 * of it and its own instructions, less what is owed behind it: never less than nothing. Nothing is owed at the
 * start, where control comes from elsewhere, and behind a block in which the library may look: with that the sum
 * is right from its head on.
 *
 * A handler of a signal in between finds the sum too small by what is owed; the rest comes when the function goes
 * on. When it does not (longjmp out of the handler, a kill), the reader finds it by the counters.
 */
#include <stdlib.h>

#include "base/search.h"
#include "insert/object_code.h"
#include "rt/count/count_abi.h"

#define OWED_MAX   (1 << 20)
#define ROUNDS_MAX 256

struct owing {
	const struct code *code;
	struct code_section *section;
	const struct code_function *function;
	/* By place, in front of block i 2 * i, behind it 2 * i + 1: one where the same is owed; its own number: that
	 * is the class. */
	uint32_t *same;
	int32_t *owed;	  /* by class */
	uint32_t settled; /* the place where nothing is owed */
	uint32_t stripe;  /* of the next block that adds */
};

static uint32_t class_of(struct owing *o, uint32_t place)
{
	while (o->same[place] != place)
		place = o->same[place] = o->same[o->same[place]];
	return place;
}

/* The same is owed at both. */
static void join(struct owing *o, uint32_t a, uint32_t b)
{
	a = class_of(o, a);
	b = class_of(o, b);
	if (a == o->settled)
		o->same[b] = a;
	else
		o->same[a] = b;
}

/* The place in front of the block of this function that begins with an instruction; else the settled one. */
static uint32_t in_front_of(const struct owing *o, uint32_t insn_i)
{
	const struct code_function *f = o->function;
	uint32_t b = (uint32_t)SEARCH(f->first_block, f->first_block + f->n_blocks, i,
		o->section->blocks.v[i].first_insn < insn_i);

	if (b == f->first_block + f->n_blocks || o->section->blocks.v[b].first_insn != insn_i)
		return o->settled;
	return 2 * (b - f->first_block);
}

static uint32_t in_front_of_target(const struct owing *o, const struct code_insn *insn)
{
	const struct code_insn *to = NULL;

	if (insn->to_section == o->section->number && !(insn->bits & CODE_INSN_PAST_LOCK))
		to = code_insn_at(o->code, insn->to_section, insn->to);
	return to ? in_front_of(o, (uint32_t)(to - o->section->insns.v)) : o->settled;
}

/* May the library look at the sum while the instruction is executed, or control go where nobody can tell? */
static bool is_seen(const struct code_insn *insn)
{
	if (insn->bits & (CODE_INSN_TAIL | CODE_INSN_TAIL_OUT | CODE_INSN_GATE))
		return true;
	return insn->flow != X86_FLOW_NEXT && insn->flow != X86_FLOW_BRANCH &&
	       insn->flow != X86_FLOW_JUMP;
}

static bool block_is_seen(const struct owing *o, const struct code_block *b)
{
	for (uint32_t i = 0; i < b->n_insns; i++)
		if (is_seen(&o->section->insns.v[b->first_insn + i]))
			return true;
	return false;
}

/* Control goes on neither behind it nor at a place that it names. Behind a trap it does, when a handler comes back. */
static bool ends_here(const struct code_insn *insn)
{
	return insn->flow == X86_FLOW_RETURN || insn->flow == X86_FLOW_JUMP_FAR;
}

static void join_around(struct owing *o, uint32_t i)
{
	const struct code_function *f = o->function;
	const struct code_block *b = &o->section->blocks.v[f->first_block + i];
	uint32_t next = b->first_insn + b->n_insns, behind = 2 * i + 1;
	const struct code_insn *last = &o->section->insns.v[next - 1];

	if (!i || (o->section->insns.v[b->first_insn].bits &
			  (CODE_INSN_ELSEWHERE | CODE_INSN_LANDING)))
		join(o, o->settled, 2 * i);
	if (b->is_unreachable || block_is_seen(o, b))
		join(o, o->settled, behind);
	if (b->is_unreachable || ends_here(last))
		return;
	if (last->flow != X86_FLOW_JUMP)
		join(o, next < f->first_insn + f->n_insns ? in_front_of(o, next) : o->settled,
			behind);
	if (last->flow == X86_FLOW_JUMP || last->flow == X86_FLOW_BRANCH)
		join(o, in_front_of_target(o, last), behind);
}

/* Calls of a place within the function come from elsewhere. */
static void join_called(struct owing *o)
{
	const struct code_function *f = o->function;

	for (uint32_t i = f->first_insn; i < f->first_insn + f->n_insns; i++)
		if (o->section->insns.v[i].flow == X86_FLOW_CALL)
			join(o, o->settled, in_front_of_target(o, &o->section->insns.v[i]));
}

/* Blocks that add one after the other do not wait for each other. One that goes to the cases of a switch comes
 * after each of them, and has a stripe of its own. */
static void choose_stripe(struct owing *o, struct code_block *b)
{
	const struct code_insn *last = &o->section->insns.v[b->first_insn + b->n_insns - 1];

	if (last->flow == X86_FLOW_JUMP_FAR && !(last->bits & CODE_INSN_TAIL)) {
		b->stripe = COUNT_STRIPES - 1;
		return;
	}
	b->stripe = o->stripe % (COUNT_STRIPES - o->function->has_data_labels);
	o->stripe += b->added != 0;
}

static struct code_block *block_of(const struct owing *o, uint32_t i)
{
	return &o->section->blocks.v[o->function->first_block + i];
}

/* True when less is owed behind some block than was thought. */
static bool lower(struct owing *o)
{
	bool is_changed = false;

	for (uint32_t i = 0; i < o->function->n_blocks; i++) {
		int32_t *behind = &o->owed[class_of(o, 2 * i + 1)];
		int64_t all = (int64_t)o->owed[class_of(o, 2 * i)] + block_of(o, i)->n_insns;

		if (all >= *behind)
			continue;
		*behind = (int32_t)all;
		is_changed = true;
	}
	return is_changed;
}

/* Hostile code may need a round for each block: there nothing is owed anywhere. Nor is it at places that no known
 * way leads to. */
static void find_owed(struct owing *o)
{
	bool again = true;

	for (uint32_t i = 0; i < o->settled; i++)
		o->owed[i] = OWED_MAX;
	for (int round = 0; again && round < ROUNDS_MAX; round++)
		again = lower(o);
	for (uint32_t i = 0; i < o->settled; i++)
		if (again || o->owed[i] == OWED_MAX)
			o->owed[i] = 0;
}

static void settle(struct owing *o, uint32_t i)
{
	struct code_block *b = block_of(o, i);

	b->added = (int32_t)((int64_t)o->owed[class_of(o, 2 * i)] + b->n_insns -
			     o->owed[class_of(o, 2 * i + 1)]);
	choose_stripe(o, b);
}

void code_late_sums(const struct code *c, struct code_section *s, const struct code_function *f)
{
	struct owing o = {.code = c,
		.section = s,
		.function = f,
		.settled = 2 * f->n_blocks,
		.stripe = f->first_block};

	o.same = mem_calloc(o.settled + 1, sizeof(*o.same));
	o.owed = mem_calloc(o.settled + 1, sizeof(*o.owed));
	for (uint32_t i = 0; i <= o.settled; i++)
		o.same[i] = i;
	for (uint32_t i = 0; i < f->n_blocks; i++)
		join_around(&o, i);
	join_called(&o);
	find_owed(&o);
	for (uint32_t i = 0; i < f->n_blocks; i++)
		settle(&o, i);
	free(o.same);
	free(o.owed);
}
