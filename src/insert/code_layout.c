/* SPDX-License-Identifier: MIT */
/*
 * Where everything comes to lie. Short branches are tried first and made long where they do not
 * reach any more; since that only ever lengthens code, it ends.
 */
#include "insert/object_code.h"

#define ALIGN_FUNCTION 16u
/* Each round may show only one more branch that does not reach: beyond these all are made long. */
#define WIDEN_ROUNDS_MAX 64
#define NEW_BYTES_MAX	 ((uint64_t)INT32_MAX)

/* Functions stay as aligned as they were, up to 16 bytes: C++ takes the address of a member
 * function for something else when it is odd. Data keep their place modulo the section's alignment.
 */
static uint32_t alignment_of(const struct code_section *s, uint32_t start, bool is_data)
{
	uint32_t align = start ? start & -start : ALIGN_FUNCTION;

	if (is_data)
		return s->align;
	if (s->align >= 64 && start % 64 == 0)
		return 64;
	if (align > ALIGN_FUNCTION)
		align = ALIGN_FUNCTION;
	return align < s->align ? align : s->align;
}

static uint32_t padding_to(uint32_t now, uint32_t old, uint32_t align)
{
	return (old - now) & (align - 1);
}

static void place_function(struct code_section *s, struct code_function *f, uint64_t *now)
{
	f->pad = padding_to((uint32_t)*now, f->start, alignment_of(s, f->start, false));
	*now += f->pad;
	for (uint32_t i = f->first_insn; i < f->first_insn + f->n_insns; i++) {
		struct code_insn *insn = &s->insns.v[i];

		insn->label = (uint32_t)*now;
		insn->place = insn->label + insn->before;
		*now += insn->before + code_insn_bytes(insn) + insn->after;
	}
	if (!f->n_insns) /* cannot be: sections with such functions are left alone */
		*now += f->end - f->start;
}

static void place_gap(const struct code_section *s, struct code_gap *g, bool is_last, uint64_t *now)
{
	g->pad = g->is_padding
			 ? 0
			 : padding_to((uint32_t)*now, g->start, alignment_of(s, g->start, true));
	*now += g->pad;
	g->place = (uint32_t)*now;
	/* What stands behind it brings the padding that it needs. */
	if (!g->is_padding || is_last)
		*now += g->end - g->start;
}

static void place_section(struct code_section *s)
{
	size_t g = 0;
	uint64_t now = 0;

	for (size_t i = 0; i <= s->functions.n; i++) {
		uint32_t start = i < s->functions.n ? s->functions.v[i].start : UINT32_MAX;

		while (g < s->gaps.n && s->gaps.v[g].start < start) {
			place_gap(s, &s->gaps.v[g], i == s->functions.n, &now);
			g++;
		}
		if (i < s->functions.n)
			place_function(s, &s->functions.v[i], &now);
	}
	s->new_bytes = (uint32_t)now;
	if (now > NEW_BYTES_MAX)
		code_section_refuse(s, INSERT_REASON_BOUND);
}

uint32_t code_inner_start(
	const struct code *c, const struct code_section *s, const struct code_function *f)
{
	if (f->reason == INSERT_REASON_DONE && code_function_enters_at(c, f, f->entry_insn))
		return s->insns.v[f->entry_insn].label + CODE_CALL_BYTES;
	return s->insns.v[f->first_insn].label;
}

/* The label of an instruction. That of the one behind the entry code, when it is not the function's
 * start too (a loop right behind endbr64), comes behind the counter of the block in front of it. */
static uint32_t label_of(const struct code *c, const struct code_section *s,
	const struct code_function *f, const struct code_insn *insn)
{
	const struct code_block *first;
	uint32_t label = insn->label;

	if (!f || f->reason != INSERT_REASON_DONE || insn != &s->insns.v[f->entry_insn] ||
		f->entry_insn == f->first_insn)
		return label;
	if (code_function_enters_at(c, f, f->entry_insn))
		label += CODE_CALL_BYTES;
	first = &s->blocks.v[f->first_block];
	if (first->first_insn + first->n_insns == f->entry_insn)
		label += code_head_bytes(c, s, first);
	return label;
}

static uint32_t moved_in(const struct code_section *s, uint32_t offset)
{
	uint32_t start = offset;

	while (start && offset - start < X86_INSN_BYTES_MAX &&
		(start >= s->bytes.n || !s->at[start]))
		start--;
	if (offset >= s->bytes.n || !s->at[start])
		return s->new_bytes;
	return s->insns.v[s->at[start] - 1].place + (offset - start);
}

uint32_t code_branch_target(
	const struct code *c, const struct code_section *from, const struct code_insn *insn)
{
	const struct code_section *s = &c->sections[insn->to_section];
	const struct code_function *to;
	const struct code_gap *gap;

	if (!code_section_is_inserted(s))
		return insn->to;
	if (insn->to < s->bytes.n && s->at[insn->to] &&
		!(s->insns.v[s->at[insn->to] - 1].bits & CODE_INSN_START))
		return s->insns.v[s->at[insn->to] - 1].label;
	to = code_function_at(c, insn->to_section, insn->to);
	if (to && insn->to == to->start && to->n_insns) {
		const struct code_function *f = code_function_at(c, from->number, insn->offset);

		if (f && insn->flow != X86_FLOW_CALL && insn->rel_bytes &&
			f->parent == to->parent && f->parent_section == to->parent_section)
			return code_inner_start(c, s, to);
		return s->insns.v[to->first_insn].label;
	}
	if (insn->to < s->bytes.n && s->at[insn->to])
		return label_of(c, s, to, &s->insns.v[s->at[insn->to] - 1]);
	gap = code_gap_at(s, insn->to);
	if (gap)
		return gap->place + (insn->to - gap->start);
	/* In the middle of an instruction, in a function that is left alone; or the section's end.
	 */
	return moved_in(s, insn->to);
}

/* True when a short branch had to be made long. */
static bool widen(struct code *c, struct code_section *s, bool all)
{
	bool is_changed = false;

	for (size_t i = 0; i < s->functions.n; i++) {
		struct code_function *f = &s->functions.v[i];

		for (uint32_t k = f->first_insn; k < f->first_insn + f->n_insns; k++) {
			struct code_insn *insn = &s->insns.v[k];
			int64_t distance;

			if (insn->rel_bytes != 1 || insn->reloc != CODE_NONE || !insn->to_section ||
				(insn->bits &
					(CODE_INSN_WIDE | CODE_INSN_FALLS | CODE_INSN_EDGES)) ||
				insn->between)
				continue;
			distance = (int64_t)code_branch_target(c, s, insn) -
				   (int64_t)(insn->place + insn->length);
			if (!all && distance >= -128 && distance <= 127)
				continue;
			insn->bits |= CODE_INSN_WIDE;
			is_changed = true;
			if (f->reason == INSERT_REASON_INDIRECT)
				code_section_refuse(s, INSERT_REASON_INDIRECT);
		}
	}
	return is_changed;
}

static void note_function(
	struct code *c, const struct code_section *s, const struct code_function *f)
{
	for (uint32_t k = f->first_insn; k < f->first_insn + f->n_insns; k++) {
		const struct code_insn *insn = &s->insns.v[k];
		uint32_t label = label_of(c, s, f, insn);

		/* Most instructions follow the one before as they did: its row says it all. */
		if (k > f->first_insn && label == insn->place &&
			insn->place - insn->offset == insn[-1].place - insn[-1].offset)
			continue;
		moved_add(&c->moved, s->number, insn->offset, label, insn->place);
	}
}

/* emit.c has put_before() and put_conditional_tail(), which call there. */
static bool leaves_by_call(const struct code_insn *insn)
{
	return insn->flow == X86_FLOW_RETURN ||
	       (insn->bits & (CODE_INSN_TAIL | CODE_INSN_TAIL_OUT));
}

static void note_leaves(struct code *c, const struct code_section *s, const struct code_function *f)
{
	if (c->options->mode != INSERT_MODE_TREE || f->reason != INSERT_REASON_DONE || f->is_thunk)
		return;
	for (uint32_t k = f->first_insn; k < f->first_insn + f->n_insns; k++) {
		const struct code_insn *insn = &s->insns.v[k];

		if (leaves_by_call(insn))
			moved_add_leave(
				&c->moved, s->number, insn->offset, insn->offset + insn->length);
	}
}

/* DWARF's number of a register. */
static uint8_t dwarf_register(uint8_t reg)
{
	static const uint8_t low[] = {0, 2, 1, 3, 7, 6, 4, 5};

	return reg < sizeof(low) ? low[reg] : reg;
}

/* What put_head() of emit.c does to rsp and rax at new offset `at`, where the frame rules of `old` hold. */
static void note_saved(struct code *c, const struct code_section *s, const struct code_block *b,
	uint64_t old, uint64_t at)
{
	const struct code_insn *head = &s->insns.v[b->first_insn];
	uint64_t end = at + code_head_bytes(c, s, b);
	struct moved_value stack = {old, at + CODE_LEA_BYTES, end, MOVED_REG_RSP, MOVED_REG_RSP,
		CODE_STACK_SHIFT, MOVED_SUM};
	struct moved_value on_stack = {old, stack.start + CODE_SLOT_BYTES, end - CODE_LEA_BYTES,
		MOVED_REG_RAX, MOVED_REG_RSP, 0, MOVED_AT_ADDRESS};
	uint8_t reg = dwarf_register(head->detail);
	struct moved_value in_register = {
		old, at + CODE_MOV_BYTES, end, MOVED_REG_RAX, reg, 0, MOVED_SUM};
	struct moved_value unused = {old, at, end, reg, 0, 0, MOVED_NOWHERE};

	if (head->detour == CODE_DETOUR_STACK) {
		moved_add_value(&c->moved, s->number, &stack);
		moved_add_value(&c->moved, s->number, &on_stack);
	} else if (head->detour == CODE_DETOUR_REGISTER) {
		moved_add_value(&c->moved, s->number, &unused);
		if (head->detail != X86_REG_RAX)
			moved_add_value(&c->moved, s->number, &in_register);
	}
}

static void note_heads(struct code *c, const struct code_section *s, const struct code_function *f)
{
	uint32_t last = CODE_NONE;
	uint64_t at = 0;

	if (f->reason != INSERT_REASON_DONE || c->options->mode == INSERT_MODE_NOPS)
		return;
	for (uint32_t i = f->first_block; i < f->first_block + f->n_blocks; i++) {
		const struct code_block *b = &s->blocks.v[i];
		const struct code_insn *head = &s->insns.v[b->first_insn];
		uint32_t insn_i = code_head_insn(s, f, i);
		/* The counter of the first block may stand in front of the second: label_of(). */
		bool is_behind = insn_i == b->first_insn + b->n_insns;

		if (b->is_unreachable || head->detour == CODE_DETOUR_EDGES)
			continue;
		if (insn_i != last)
			at = s->insns.v[insn_i].label + code_bytes_before_heads(c, s, f, insn_i);
		last = insn_i;
		note_saved(c, s, b, s->insns.v[insn_i - is_behind].offset, at);
		at += code_head_bytes(c, s, b);
	}
}

static void note_moves(struct code *c, const struct code_section *s)
{
	size_t g = 0;

	vec_reserve(&c->moved.sections[s->number].rows, s->blocks.n + s->gaps.n + 1);
	for (size_t i = 0; i <= s->functions.n; i++) {
		uint32_t start = i < s->functions.n ? s->functions.v[i].start : UINT32_MAX;

		for (; g < s->gaps.n && s->gaps.v[g].start < start; g++)
			moved_add(&c->moved, s->number, s->gaps.v[g].start, s->gaps.v[g].place,
				s->gaps.v[g].place);
		if (i < s->functions.n) {
			note_function(c, s, &s->functions.v[i]);
			note_leaves(c, s, &s->functions.v[i]);
			note_heads(c, s, &s->functions.v[i]);
		}
	}
	moved_add(&c->moved, s->number, s->bytes.n, s->new_bytes, s->new_bytes);
}

void code_lay_out(struct code *c)
{
	for (struct code_section *s = code_next(c, NULL); s; s = code_next(c, s)) {
		if (!code_section_is_inserted(s))
			continue;
		place_section(s);
		for (int round = 0;
			code_section_is_inserted(s) && widen(c, s, round > WIDEN_ROUNDS_MAX);
			round++)
			place_section(s);
		if (code_section_is_inserted(s))
			note_moves(c, s);
	}
}
