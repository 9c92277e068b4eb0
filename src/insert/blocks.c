/* SPDX-License-Identifier: MIT */
/*
 * Functions into blocks. A block begins at the start of a function, at whatever something refers to
 * (references.c has marked it), and behind every instruction that may not go on to the next one; a
 * call does not end it, unless it returns twice. Here is also decided what each jump is: within the
 * function, or out of it.
 */
#include <string.h>

#include "insert/object_code.h"
#include "insert/foreign_names.h"

/* Is the target a place within the same function, its .cold part included? */
static bool is_within(
	const struct code *c, const struct code_function *f, uint32_t section, uint32_t offset)
{
	const struct code_function *to = code_function_at(c, section, offset);

	if (!to)
		return false;
	if (to == f)
		return true;
	/* A jump to another function's start is a call; to its middle, a jump like any other. */
	return offset != to->start || to->is_fragment ||
	       (to->parent == f->parent && to->parent_section == f->parent_section);
}

/* pop, leave, or something added to rsp: what comes before a jump out of a function with a frame.
 */
static bool restores_stack(const struct code_section *s, const struct code_insn *insn)
{
	const uint8_t *p = s->bytes.p + insn->offset;

	if (insn->length == 1)
		return (p[0] >= 0x58 && p[0] <= 0x5f) || p[0] == 0xc9;
	if (insn->length == 2)
		return p[0] == 0x41 && p[1] >= 0x58 && p[1] <= 0x5f;
	if (insn->length < 4 || p[0] != 0x48)
		return false;
	return ((p[1] == 0x83 || p[1] == 0x81) && p[2] == 0xc4) || /* add $n,%rsp */
	       (p[1] == 0x8d && p[2] == 0x64 && p[3] == 0x24);	   /* lea n(%rsp),%rsp */
}

#define EPILOGUE_INSNS 8

static bool follows_epilogue(
	const struct code_section *s, const struct code_function *f, uint32_t insn_i)
{
	for (uint32_t back = 1; back <= EPILOGUE_INSNS && insn_i >= f->first_insn + back; back++) {
		const struct code_insn *insn = &s->insns.v[insn_i - back];

		if (x86_ends_block(insn->flow))
			return false;
		if (restores_stack(s, insn))
			return true;
		if (insn->bits & CODE_INSN_HEAD)
			return false;
	}
	return false;
}

/*
 * What an indirect jump is. To jump within itself a function needs an address in itself: from a
 * table that relocations show, or of a label that an instruction names. With the latter alone,
 * hand-written code may add anything to it, unless it can be seen not to; compilers (computed goto) do
 * not.
 */
static void judge_unknown_target(
	struct code *c, struct code_section *s, struct code_function *f, uint32_t insn_i)
{
	struct code_insn *insn = &s->insns.v[insn_i];

	if (f->has_code_labels && !f->has_data_labels && !c->is_compiled) {
		if (!code_jumps_to_labels(c, s, f, insn))
			f->reason = INSERT_REASON_INDIRECT;
	} else if ((!f->has_data_labels && !f->has_code_labels) || follows_epilogue(s, f, insn_i))
		insn->bits |= CODE_INSN_TAIL; /* else it goes to its own labels */
}

static void judge_indirect(
	struct code *c, struct code_section *s, struct code_function *f, uint32_t insn_i)
{
	struct code_insn *insn = &s->insns.v[insn_i];
	const struct object_symbol *symbol;

	if (code_insn_callee(c, s, insn, &symbol))
		insn->bits |= CODE_INSN_TAIL;
	else if (insn->reads & (1u << X86_REG_RSP))
		f->reason = INSERT_REASON_INDIRECT; /* the target lies where we would write */
	else
		judge_unknown_target(c, s, f, insn_i);
}

/* A jump to a function that stands for an instruction (-mindirect-branch, -mfunction-return): it is
 * that instruction. */
static bool judge_thunk(
	struct code *c, struct code_section *s, struct code_function *f, uint32_t insn_i)
{
	struct code_insn *insn = &s->insns.v[insn_i];
	const struct code_function *called = code_called(c, s, insn);
	const struct object_symbol *symbol;
	const char *name = code_insn_callee(c, s, insn, &symbol);

	if (called)
		name = called->name;
	if (!name || insn->flow != X86_FLOW_JUMP)
		return false;
	if (foreign_name_is_return_thunk(name))
		insn->flow = X86_FLOW_RETURN;
	else if (foreign_name_is_jump_thunk(name))
		judge_unknown_target(c, s, f, insn_i);
	else
		return false;
	return true;
}

/* What is known of a function by its name, which is looked up once for each symbol. */
enum callee_kind {
	CALLEE_KNOWN = 1,
	CALLEE_SKIPS_RETURN = 2,
	CALLEE_TWICE = 4,
	CALLEE_FOREIGN = 8,
	CALLEE_GATE = 16,
	CALLEE_CUTS = 32,
};

static uint8_t judge_callee(const struct code *c, const struct object_symbol *symbol)
{
	const struct insert_options *o = c->options;
	const char *name = symbol->name;
	uint8_t kind = CALLEE_KNOWN | (foreign_name_cuts(name) ? CALLEE_CUTS : 0);

	if (foreign_name_skips_return(name))
		return kind | CALLEE_SKIPS_RETURN;
	if (foreign_name_returns_twice(name))
		return kind | CALLEE_TWICE;
	if (symbol->section)
		return kind;
	if (!foreign_name_is_untimed(name) && code_is_timed(c, name) &&
		(o->is_foreign ? o->is_foreign(o->foreign_context, name)
			       : foreign_name_waits(name)))
		kind |= CALLEE_FOREIGN;
	if (foreign_name_gate(name))
		kind |= CALLEE_GATE;
	return kind;
}

static uint8_t callee_kind(struct code *c, const struct object_symbol *symbol)
{
	uint8_t *kind;

	if (!c->callee_kinds)
		c->callee_kinds = mem_calloc(c->object->symbols.n, 1);
	kind = &c->callee_kinds[symbol - c->object->symbols.v];
	if (!*kind)
		*kind = judge_callee(c, symbol);
	return *kind;
}

static void judge_jump(
	struct code *c, struct code_section *s, struct code_function *f, uint32_t insn_i)
{
	struct code_insn *insn = &s->insns.v[insn_i];
	const struct object_symbol *symbol;
	const char *callee = code_insn_callee(c, s, insn, &symbol);

	if (judge_thunk(c, s, f, insn_i))
		return;
	if (insn->to_section && is_within(c, f, insn->to_section, insn->to))
		return;
	insn->bits |= CODE_INSN_TAIL;
	if (callee && !symbol->section && c->options->is_foreign &&
		c->options->is_foreign(c->options->foreign_context, callee))
		insn->bits |= CODE_INSN_TAIL_OUT;
	if (callee && insn->flow == X86_FLOW_JUMP && (callee_kind(c, symbol) & CALLEE_GATE))
		insn->bits |= CODE_INSN_GATE;
}

/* call 1f; 1: pop. The last instruction of a function may call the one behind it, and not come back. */
static bool takes_own_address(const struct code *c, const struct code_section *s,
	const struct code_function *f, const struct code_insn *insn)
{
	const struct code_function *to;

	if (insn->flow != X86_FLOW_CALL || insn->to_section != s->number ||
		insn->to != insn->offset + insn->length)
		return false;
	to = code_function_at(c, s->number, insn->to);
	return !to || to == f || to->start != insn->to || !to->is_named || to->is_fragment;
}

static void judge_call(
	struct code *c, struct code_section *s, struct code_function *f, struct code_insn *insn)
{
	const struct object_symbol *symbol;
	const char *callee = code_insn_callee(c, s, insn, &symbol);
	uint8_t kind;

	if (takes_own_address(c, s, f, insn)) {
		code_section_refuse(s, INSERT_REASON_BOUND);
		return;
	}
	if (!callee)
		return;
	kind = callee_kind(c, symbol);
	if (kind & CALLEE_SKIPS_RETURN)
		f->reason = INSERT_REASON_BOUND;
	if (kind & CALLEE_TWICE)
		insn->bits |= CODE_INSN_TWICE;
	if ((kind & CALLEE_CUTS) && insn + 1 < &s->insns.v[f->first_insn] + f->n_insns)
		insn[1].bits |= CODE_INSN_HEAD;
	if (kind & CALLEE_FOREIGN)
		insn->bits |= CODE_INSN_FOREIGN;
	if (kind & CALLEE_GATE)
		insn->bits |= CODE_INSN_GATE;
}

/* A call of something that is not known, in a function that takes the address of one whose calls have to be known. */
static void judge_unknown_calls(struct code *c, struct code_section *s, struct code_function *f)
{
	const struct object_symbol *symbol;
	bool is_unknown = false;

	for (uint32_t i = f->first_insn; i < f->first_insn + f->n_insns && !is_unknown; i++)
		is_unknown = s->insns.v[i].flow == X86_FLOW_CALL_FAR &&
			     !code_insn_callee(c, s, &s->insns.v[i], &symbol);
	for (uint32_t i = f->first_insn; is_unknown && i < f->first_insn + f->n_insns; i++)
		if (code_takes_address(c, s, &s->insns.v[i], &symbol) &&
			(callee_kind(c, symbol) &
				(CALLEE_SKIPS_RETURN | CALLEE_TWICE | CALLEE_CUTS)))
			f->reason = INSERT_REASON_INDIRECT;
}

static void judge_insns(struct code *c, struct code_section *s, struct code_function *f)
{
	for (uint32_t i = f->first_insn; i < f->first_insn + f->n_insns; i++) {
		struct code_insn *insn = &s->insns.v[i];

		if (x86_ends_block(insn->flow) && i + 1 < f->first_insn + f->n_insns)
			s->insns.v[i + 1].bits |= CODE_INSN_HEAD;
		switch ((enum x86_flow)insn->flow) {
		case X86_FLOW_JUMP:
		case X86_FLOW_BRANCH:
			judge_jump(c, s, f, i);
			break;
		case X86_FLOW_JUMP_FAR:
			judge_indirect(c, s, f, i);
			break;
		case X86_FLOW_CALL:
		case X86_FLOW_CALL_FAR:
			judge_call(c, s, f, insn);
			break;
		default:
			break;
		}
	}
}

/* Where enter goes: behind endbr64, and behind the nops of -fpatchable-function-entry, whose place
 * is listed elsewhere. */
static uint32_t entry_of(
	const struct code *c, const struct code_section *s, const struct code_function *f)
{
	uint32_t i = f->first_insn, end = f->first_insn + f->n_insns;

	if (i < end && (s->insns.v[i].bits & CODE_INSN_ENDBR))
		i++;
	if (c->has_patch_places)
		while (i + 1 < end && (s->insns.v[i].bits & CODE_INSN_NOP) &&
			!(s->insns.v[i].bits & CODE_INSN_LABEL))
			i++;
	return i < end ? i : f->first_insn;
}

/* Nothing refers to it, and the instruction in front of it never goes on. */
static bool is_unreachable(
	const struct code_section *s, const struct code_function *f, uint32_t insn_i)
{
	const struct code_insn *before;

	if (insn_i == f->first_insn ||
		(s->insns.v[insn_i].bits & (CODE_INSN_LABEL | CODE_INSN_LANDING)))
		return false;
	before = &s->insns.v[insn_i - 1];
	return before->flow == X86_FLOW_JUMP || before->flow == X86_FLOW_JUMP_FAR ||
	       before->flow == X86_FLOW_RETURN;
}

static void cut_blocks(struct code_section *s, uint32_t function)
{
	struct code_function *f = &s->functions.v[function];

	f->first_block = (uint32_t)s->blocks.n;
	for (uint32_t i = f->first_insn; i < f->first_insn + f->n_insns; i++) {
		if (s->insns.v[i].bits & CODE_INSN_HEAD)
			vec_push(&s->blocks, ((struct code_block){.first_insn = i,
						     .function = function,
						     .is_unreachable = is_unreachable(s, f, i)}));
		s->blocks.v[s->blocks.n - 1].n_insns++;
	}
	f->n_blocks = (uint32_t)s->blocks.n - f->first_block;
}

bool code_is_timed(const struct code *c, const char *name)
{
	const struct insert_options *o = c->options;

	return !o->is_timed || o->is_timed(o->foreign_context, name);
}

/* Nobody calls them: their callers are elsewhere when they return. */
static void find_thunks(struct code_section *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->functions.n; i++) {
		struct code_function *f = &s->functions.v[i];

		f->is_thunk = foreign_name_is_return_thunk(f->name) ||
			      foreign_name_is_jump_thunk(f->name);
		f->is_fragment |= f->is_thunk;
		n += f->is_thunk;
	}
	s->is_apart = n && n == s->functions.n;
	for (size_t i = 0; s->is_apart && i < s->insns.n; i++)
		s->insns.v[i].bits |= CODE_INSN_APART;
}

void code_blocks(struct code *c)
{
	for (struct code_section *s = code_next(c, NULL); s; s = code_next(c, s))
		find_thunks(s);
	for (struct code_section *s = code_next(c, NULL); s; s = code_next(c, s))
		for (size_t i = 0; i < s->functions.n; i++) {
			struct code_function *f = &s->functions.v[i];

			if (!f->n_insns)
				continue;
			s->insns.v[f->first_insn].bits |= CODE_INSN_HEAD;
			judge_insns(c, s, f);
			judge_unknown_calls(c, s, f);
		}
	/* Only now is every head known. */
	for (struct code_section *s = code_next(c, NULL); s; s = code_next(c, s))
		for (size_t i = 0; i < s->functions.n; i++) {
			struct code_function *f = &s->functions.v[i];

			f->entry_insn = entry_of(c, s, f);
			if (!f->n_insns)
				continue;
			s->insns.v[f->first_insn].bits |= CODE_INSN_START;
			s->insns.v[f->entry_insn].bits |= CODE_INSN_START;
			cut_blocks(s, (uint32_t)i);
		}
}
