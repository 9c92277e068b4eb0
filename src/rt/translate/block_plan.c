/* SPDX-License-Identifier: MIT */
/*
 * What is in a group: from an address on, through what follows a conditional branch that is not taken and what a
 * jump leads to, as long as that is not translated yet. And where in a block its counters are added to: where
 * the flags are dead, which is found by looking ahead, over the ends of blocks whose way out is known.
 */
#include "block_emit.h"

#define CODE_ROOM    (1ull << 30) /* of captured code */
#define LOOK_AHEAD   12
#define LOOK_AHEAD_JUMPS 3

static uint8_t *code_at;
static uint64_t code_left;

/* A copy of the program's code, that stays. NULL: no memory. */
static uint8_t *keep(const uint8_t *p, uint32_t n)
{
	uint8_t *kept;

	if (!code_at) {
		code_at = memory_reserve(CODE_ROOM);
		code_left = code_at ? CODE_ROOM : 0;
	}
	if (code_left < n)
		return NULL;
	kept = code_at;
	bytes_copy(kept, p, n);
	code_at += n;
	code_left -= n;
	return kept;
}

/* How many bytes of code there are at pc, up to `n`, are copied. */
static uint32_t fetch(uint8_t *to, uint64_t pc, uint32_t n)
{
	const struct region *r = region_at(pc);

	if (!r)
		return 0;
	if (r->end - pc < n) {
		/* What follows may belong to the next mapping. */
		const struct region *next = region_at(r->end);
		uint64_t more = next ? next->end - pc : r->end - pc;

		n = more < n ? (uint32_t)more : n;
	}
	return translate_copy(to, (const void *)pc, n) ? n : 0;
}

static bool ends(const struct insn *insn)
{
	return insn->kind != INSN_PLAIN;
}

/* ---- flags ---- */

static bool are_dead_behind(uint64_t pc, uint16_t live, unsigned jumps);

/* Whether none of the flags `live` is read before it is written, from the end of a block on. */
static bool are_dead_at_end(const struct insn *last, uint64_t next, uint16_t live, unsigned jumps)
{
	if (!jumps)
		return false;
	switch (last->kind) {
	case INSN_PLAIN:
		return are_dead_behind(next, live, jumps - 1);
	case INSN_JUMP:
	case INSN_CALL:
		return are_dead_behind(last->target, live, jumps - 1);
	case INSN_BRANCH:
	case INSN_COUNTED:
		return are_dead_behind(last->target, live, jumps - 1) &&
		       are_dead_behind(next, live, jumps - 1);
	default:
		return false;
	}
}

static bool are_dead_behind(uint64_t pc, uint16_t live, unsigned jumps)
{
	uint8_t code[LOOK_AHEAD * INSN_BYTES_MAX];
	uint32_t n = fetch(code, pc, sizeof(code)), at = 0;

	for (unsigned i = 0; i < LOOK_AHEAD; i++) {
		struct insn insn;

		if (!insn_decode(&insn, code + at, n - at, pc + at) || (insn.flags_read & live))
			return false;
		live &= (uint16_t)~insn.flags_written;
		at += insn.length;
		if (!live)
			return true;
		if (ends(&insn))
			return are_dead_at_end(&insn, pc + at, live, jumps);
	}
	return false;
}

/* Of [i, n) and what follows. */
static bool are_dead(const struct insn *insns, uint32_t i, uint32_t n, uint64_t next)
{
	uint16_t live = INSN_FLAGS;

	for (; i < n && live; i++) {
		if (insns[i].flags_read & live)
			return false;
		live &= (uint16_t)~insns[i].flags_written;
	}
	return !live || are_dead_at_end(&insns[n - 1], next, live, LOOK_AHEAD_JUMPS);
}

static void place_count(struct plan *plan, struct planned *b)
{
	const struct insn *insns = &plan->insns[b->first_insn];

	b->count_at = 0;
	b->flags_dead = false;
	if (!(header.options & TRANSLATE_OPTION_COUNT))
		return;
	for (uint32_t i = 0; i < b->n_insns; i++)
		if (are_dead(insns, i, b->n_insns, b->next)) {
			b->count_at = (uint16_t)i;
			b->flags_dead = true;
			return;
		}
	if (!b->n_insns)
		return;
	insns += b->n_insns - 1;
	if (insns->kind == INSN_JUMP_INDIRECT || insns->kind == INSN_CALL_INDIRECT ||
		(insns->kind == INSN_RETURN && (header.options & TRANSLATE_OPTION_CALLS)))
		b->count_at = PLAN_COUNT_AT_END;
}

/* ---- blocks ---- */

static enum translate_why cannot(const struct insn *insn)
{
	if (insn->kind == INSN_UNKNOWN || (insn->kind == INSN_INT && insn->imm != 3))
		return TRANSLATE_WHY_INSTRUCTION;
	if (insn->has_gs || insn->reads_segment_base)
		return TRANSLATE_WHY_GS;
	return 0;
}

#define INT3 0xcc

/* An int3 in a file's code that the file does not have is a uprobe of somebody: the program's instruction is the
 * file's. */
static void take_breakpoint(uint8_t *code, uint32_t n, uint64_t pc)
{
	const struct region *r = region_at(pc);
	struct translate_file_code file = {.address = pc};
	struct insn insn;

	if (code[0] != INT3 || !r || !(r->flags & TRANSLATE_REGION_FILE) || r->flags & TRANSLATE_REGION_WRITABLE ||
		translate_service(TRANSLATE_FILE_CODE, &file, 0) || !file.n || file.bytes[0] == INT3 ||
		!insn_decode(&insn, file.bytes, file.n, pc) || insn.length > n)
		return;
	for (uint32_t i = 1; i < insn.length; i++)
		if (file.bytes[i] != code[i])
			return;
	code[0] = file.bytes[0];
}

/* Instructions from b->pc on, whose bytes are at `code`. */
static void decode_block(struct plan *plan, struct planned *b, const uint8_t *code, uint32_t n, uint32_t max)
{
	uint32_t at = 0;

	b->first_insn = (uint16_t)plan->n_insns;
	b->n_insns = 0;
	b->why = 0;
	while (b->n_insns < max) {
		struct insn *insn = &plan->insns[plan->n_insns];

		insn_decode(insn, code + at, n - at, b->pc + at);
		b->why = (uint8_t)cannot(insn);
		if (b->why)
			break;
		at += insn->length;
		plan->n_insns++;
		b->n_insns++;
		if (ends(insn))
			break;
	}
	b->next = b->pc + at;
	if (b->why && b->n_insns && ends(&plan->insns[plan->n_insns - 1]))
		b->why = 0;
}

/* The same of code as it is in memory. */
static void decode_new(struct plan *plan, struct planned *b, uint8_t *code, uint32_t n)
{
	uint32_t first = plan->n_insns, at;

	for (;;) {
		plan->n_insns = first;
		decode_block(plan, b, code, n, BLOCK_INSNS);
		at = (uint32_t)(b->next - b->pc) - 1;
		if (!b->n_insns || plan->insns[plan->n_insns - 1].kind != INSN_INT || code[at] != INT3)
			return;
		take_breakpoint(code + at, n - at, b->pc + at);
		if (code[at] == INT3)
			return;
	}
}

/* Where the group may go on behind a block; 0: nowhere. */
static uint64_t successor(const struct plan *plan, const struct planned *b)
{
	const struct insn *last = &plan->insns[b->first_insn + b->n_insns - 1];

	if (!b->n_insns || b->why)
		return 0;
	if (last->kind == INSN_PLAIN || last->kind == INSN_BRANCH)
		return b->next;
	return last->kind == INSN_JUMP ? last->target : 0;
}

static bool is_in(const struct plan *plan, uint64_t pc)
{
	for (uint32_t i = 0; i < plan->n_blocks; i++)
		if (plan->block[i].pc == pc)
			return true;
	return false;
}

/* ---- words ---- */

static const struct insn *last_of(const struct plan *plan, const struct planned *b)
{
	return &plan->insns[b->first_insn + b->n_insns - 1];
}

uint64_t plan_target(const struct plan *plan, const struct planned *b)
{
	const struct insn *last = last_of(plan, b);

	if (!b->n_insns || b->why || (last->kind == INSN_JUMP && b->goes_on && b[1].is_implied))
		return 0;
	return last->kind == INSN_BRANCH || last->kind == INSN_JUMP || last->kind == INSN_CALL ? last->target : 0;
}

static bool leads_there(const struct plan *plan, uint32_t first, uint32_t end, uint64_t pc)
{
	for (uint32_t i = first; i < end; i++)
		if (pc && plan_target(plan, &plan->block[i]) == pc)
			return true;
	return false;
}

static bool can_be_implied(const struct plan *plan, const struct planned *b)
{
	uint8_t kind = last_of(plan, b)->kind;

	if (!b->n_insns || b->why ||
		(kind != INSN_PLAIN && kind != INSN_BRANCH && kind != INSN_JUMP && kind != INSN_CALL))
		return false;
	for (uint32_t i = 0; i < b->n_insns; i++)
		if (plan->insns[b->first_insn + i].is_string_repeated)
			return false;
	return true;
}

/* Where the block leads was not a jump of one in front of it, from `first` on. */
static bool is_unlike(const struct plan *plan, uint32_t first, uint32_t i)
{
	const struct planned *b = &plan->block[i];
	uint8_t kind = last_of(plan, b)->kind;

	return !leads_there(plan, first, i, plan_target(plan, b)) &&
	       ((kind != INSN_PLAIN && kind != INSN_BRANCH) || !leads_there(plan, first, i, b->next));
}

/* Which blocks have no word: those of a row whose way can be told from where it led in the end. They lie one behind the
 * other, so the recorder takes each way for one block. */
static void imply(struct plan *plan)
{
	uint32_t first = 0, n_insns = plan->n_blocks ? plan->block[0].n_insns : 0;

	if (!(header.options & TRANSLATE_OPTION_STEPS))
		return;
	for (uint32_t i = 1; i <= plan->n_blocks; i++) {
		struct planned *b = &plan->block[i];

		if (i < plan->n_blocks && b[-1].next == b->pc &&
			n_insns + b->n_insns <= BLOCK_INSNS && can_be_implied(plan, b) &&
			!leads_there(plan, first, i, plan_target(plan, b))) {
			b->is_implied = true;
			n_insns += b->n_insns;
			continue;
		}
		if (first + 1 < i && !is_unlike(plan, first, i - 1))
			for (uint32_t k = first + 1; k < i; k++)
				plan->block[k].is_implied = false;
		first = i;
		n_insns = i < plan->n_blocks ? b->n_insns : 0;
	}
}

bool plan_make(struct thread *t, struct plan *plan, uint64_t pc, enum variant variant, bool is_alone)
{
	uint8_t code[BLOCK_INSNS * INSN_BYTES_MAX];

	plan->n_blocks = plan->n_insns = 0;
	while (plan->n_blocks < GROUP_BLOCKS) {
		struct planned *b = &plan->block[plan->n_blocks];
		uint32_t n;

		/* First: what is written from here on is seen. */
		if (!is_alone)
			region_watch(pc, pc + sizeof(code));
		n = fetch(code, pc, sizeof(code));
		b->pc = pc;
		b->variant = (uint8_t)variant;
		b->goes_on = b->is_implied = false;
		b->number = header.n_blocks + plan->n_blocks;
		if (is_alone)
			decode_block(plan, b, code, n, 1);
		else
			decode_new(plan, b, code, n);
		if (!n || (!b->n_insns && plan->n_blocks))
			break;
		b->code = keep(code, (uint32_t)(b->next - b->pc));
		if (!b->code) {
			t->cannot = TRANSLATE_WHY_MEMORY;
			return false;
		}
		place_count(plan, b);
		if (plan->n_blocks++)
			plan->block[plan->n_blocks - 2].goes_on = true;
		pc = is_alone ? 0 : successor(plan, b);
		if (!pc || region_is_shared(pc))
			break;
		if (header.options & TRANSLATE_OPTION_CALLS)
			variant = region_variant(b->pc, pc);
		if (cache_find(pc, variant) != NO_BLOCK || is_in(plan, pc))
			break;
	}
	imply(plan);
	return plan->n_blocks;
}

void plan_again(struct plan *plan, const struct group *g)
{
	plan->n_blocks = plan->n_insns = 0;
	for (uint32_t i = 0; i < g->n_blocks; i++) {
		const struct translate_block *row = &block_rows[g->first_block + i];
		struct planned *b = &plan->block[i];

		*b = (struct planned){.pc = row->pc,
			.code = (const uint8_t *)row->code,
			.number = g->first_block + i,
			.variant = cache_variant(g->first_block + i)};
		decode_block(plan, b, b->code, row->bytes, row->n_insns);
		b->why = cache_why(g->first_block + i);
		cache_count_place(g->first_block + i, &b->count_at, &b->flags_dead);
		b->goes_on = i + 1 < g->n_blocks;
		plan->n_blocks++;
	}
	imply(plan);
}
