/* SPDX-License-Identifier: MIT */
/*
 * What goes where. Each function is either inserted or left alone with a reason; then each
 * instruction knows how many bytes are put in front of it and behind it. emit.c writes them in the
 * same order.
 */
#include <string.h>

#include "base/search.h"
#include "insert/foreign_names.h"
#include "insert/object_code.h"

#define INC_BYTES      8  /* incq %gs:counter(%rip) */
#define ADD_BYTES      9  /* addq $imm8, %gs:sum(%rip) */
#define ADD_LONG_BYTES 12 /* addq $imm32, %gs:sum(%rip) */
#define FLAGS_BYTES    7  /* lahf, seto, add, sahf */
#define CARRY_BYTES    5  /* setc, add */

static enum insert_reason judge_function(
	const struct code *c, const struct code_section *s, const struct code_function *f)
{
	if (!f->n_insns)
		return INSERT_REASON_EMPTY;
	if (c->options->wants && !c->options->wants(c->options->wants_context, f->name))
		return INSERT_REASON_NOT_WANTED;
	if (code_is_signal_return(f->name))
		return INSERT_REASON_BOUND;
	for (uint32_t i = f->first_insn; i < f->first_insn + f->n_insns; i++) {
		const struct code_insn *insn = &s->insns.v[i];

		if (insn->bits & CODE_INSN_GS)
			return INSERT_REASON_GS;
		if (insn->bits & CODE_INSN_TRANSACTION)
			return INSERT_REASON_TRANSACTION;
		if (insn->bits & CODE_INSN_BOUND)
			return INSERT_REASON_BOUND;
		if ((insn->bits & CODE_INSN_PAST_LOCK) &&
			(s->insns.v[s->at[insn->to - 1] - 1].bits & CODE_INSN_FLAGS))
			return INSERT_REASON_MIDDLE;
		if ((insn->bits & CODE_INSN_FLAGS) && insn->detour == CODE_DETOUR_NONE)
			return INSERT_REASON_NO_REGISTER;
		/* loop and jrcxz have no opposite */
		if (insn->flow == X86_FLOW_BRANCH && (insn->bits & CODE_INSN_TAIL) &&
			insn->rel_bytes == 1 && insn->opcode >= 0xe0)
			return INSERT_REASON_BOUND;
	}
	return INSERT_REASON_DONE;
}

/* Hand-written code may run on into the function behind it, past its entry code. */
static bool runs_on(const struct code_section *s, const struct code_function *f)
{
	const struct code_insn *last;

	if (!f->n_insns)
		return false;
	for (uint32_t i = f->first_insn + f->n_insns; i-- > f->first_insn;) {
		last = &s->insns.v[i];
		if (!(last->bits & CODE_INSN_NOP))
			return last->flow == X86_FLOW_NEXT || last->flow == X86_FLOW_SYSCALL ||
			       (last->flow == X86_FLOW_BRANCH);
	}
	return true;
}

static void refuse(struct code_function *f, enum insert_reason reason)
{
	if (f->reason == INSERT_REASON_DONE)
		f->reason = reason;
}

static void judge_section(struct code *c, struct code_section *s)
{
	bool has_data = false, has_unknown = false;

	for (size_t i = 0; i < s->functions.n; i++) {
		struct code_function *f = &s->functions.v[i];

		refuse(f, judge_function(c, s, f));
		if (!c->is_compiled && runs_on(s, f)) {
			refuse(f, INSERT_REASON_OVERLAP);
			if (i + 1 < s->functions.n)
				refuse(&s->functions.v[i + 1], INSERT_REASON_OVERLAP);
		}
		has_unknown |=
			f->reason == INSERT_REASON_INDIRECT || f->reason == INSERT_REASON_OVERLAP;
	}
	for (size_t i = 0; i < s->gaps.n; i++)
		has_data |= !s->gaps.v[i].is_padding;
	/* The data may hold distances that a jump adds to something. */
	if (has_data && has_unknown)
		code_section_refuse(s, INSERT_REASON_SECTION_DATA);
}

/* Distances of 8 and 16 bits cannot grow. */
static void check_relocs(struct code *c)
{
	for (size_t n = 1; n < c->n_sections; n++) {
		const struct object_section *os = &c->object->sections.v[n];

		for (size_t k = 0; k < os->relocs.n; k++) {
			const struct object_reloc *r = &os->relocs.v[k];
			uint32_t to;

			if (r->type != R_X86_64_PC8 && r->type != R_X86_64_PC16 &&
				r->type != R_X86_64_8 && r->type != R_X86_64_16)
				continue;
			to = r->symbol < c->object->symbols.n
				     ? c->object->symbols.v[r->symbol].section
				     : 0;
			if (to && to < c->n_sections)
				code_section_refuse(&c->sections[to], INSERT_REASON_BOUND);
			code_section_refuse(&c->sections[n], INSERT_REASON_BOUND);
		}
	}
}

/* A function and its .cold part share their fate. */
static void join_fragments(struct code *c)
{
	for (struct code_section *s = code_next(c, NULL); s; s = code_next(c, s))
		for (size_t i = 0; i < s->functions.n; i++) {
			const struct code_function *f = &s->functions.v[i];

			refuse(&c->sections[f->parent_section].functions.v[f->parent], f->reason);
		}
	for (struct code_section *s = code_next(c, NULL); s; s = code_next(c, s))
		for (size_t i = 0; i < s->functions.n; i++) {
			struct code_function *f = &s->functions.v[i];

			refuse(f, c->sections[f->parent_section].functions.v[f->parent].reason);
		}
}

/* ---- ways into functions that are left alone ---- */

static bool uses_stack(const struct code_section *s, const struct code_function *f)
{
	for (uint32_t i = f->first_insn; i < f->first_insn + f->n_insns; i++) {
		const struct code_insn *insn = &s->insns.v[i];

		if (insn->flow != X86_FLOW_CALL && insn->flow != X86_FLOW_CALL_FAR &&
			insn->flow != X86_FLOW_RETURN &&
			((insn->reads | insn->kills) & (1u << X86_REG_RSP)))
			return true;
	}
	return false;
}

/* A branch that counts on both its sides has no room for anything else. */
static bool is_on_edges(
	const struct code_section *s, const struct code_function *f, uint32_t insn_i)
{
	while (insn_i > f->first_insn && !(s->insns.v[insn_i].bits & CODE_INSN_HEAD))
		insn_i--;
	return s->insns.v[insn_i].detour == CODE_DETOUR_EDGES;
}

/* Into the midst of a function that is left alone: nothing there tells that this one is over. It is over
 * now, which can be told where the stack is as it was at its start. */
static bool leave_for(
	struct code_section *s, struct code_function *f, uint32_t insn_i, bool uses_stack_here)
{
	struct code_insn *insn = &s->insns.v[insn_i];
	bool is_loop = insn->rel_bytes == 1 && insn->opcode >= 0xe0 && insn->opcode != 0xeb;

	if (uses_stack_here || is_loop || is_on_edges(s, f, insn_i)) {
		refuse(f, INSERT_REASON_OVERLAP);
		return true;
	}
	insn->bits |= CODE_INSN_TAIL | CODE_INSN_TAIL_OUT;
	return false;
}

static bool is_jump(const struct code_insn *insn)
{
	return (insn->flow == X86_FLOW_JUMP || insn->flow == X86_FLOW_BRANCH) && insn->to_section;
}

/* True when the function is left alone now. */
static bool judge_ways_out(struct code *c, struct code_section *s, struct code_function *f)
{
	bool has_looked = false, has_stack = false;

	for (uint32_t i = f->first_insn; i < f->first_insn + f->n_insns; i++) {
		struct code_insn *insn = &s->insns.v[i];
		const struct code_function *to;

		if (!is_jump(insn))
			continue;
		to = code_function_at(c, insn->to_section, insn->to);
		if (!to || to->reason == INSERT_REASON_DONE ||
			(to->parent == f->parent && to->parent_section == f->parent_section))
			continue;
		if (insn->bits & CODE_INSN_TAIL) {
			insn->bits |= CODE_INSN_TAIL_OUT;
			continue;
		}
		if (!has_looked)
			has_stack = uses_stack(s, f);
		has_looked = true;
		if (leave_for(s, f, i, has_stack))
			return true;
	}
	return false;
}

#define WAYS_ROUNDS_MAX 64

/* What is left alone for such a jump may be jumped into itself. */
static void judge_all_ways_out(struct code *c)
{
	bool is_changed = true;

	for (int round = 0; is_changed; round++) {
		is_changed = false;
		for (struct code_section *s = code_next(c, NULL); s; s = code_next(c, s))
			for (size_t i = 0; code_section_is_inserted(s) && i < s->functions.n; i++)
				if (s->functions.v[i].reason == INSERT_REASON_DONE)
					is_changed |= judge_ways_out(c, s, &s->functions.v[i]);
		if (is_changed && round == WAYS_ROUNDS_MAX)
			code_refuse(c, INSERT_REASON_OVERLAP);
		if (is_changed)
			join_fragments(c);
	}
}

/* Hand-written code may have an agreement with what it calls. */
static bool may_be_timed(const struct code *c, const struct code_function *f)
{
	return c->is_compiled && insert_reason_is_told(f->reason) && !f->takes_flags &&
	       !f->returns_flags && !foreign_name_is_untimed(f->name) && code_is_timed(c, f->name);
}

/* Calls of functions of this object that are left alone. */
static void time_calls(struct code *c, struct code_section *s, const struct code_function *f)
{
	for (uint32_t i = f->first_insn; i < f->first_insn + f->n_insns; i++) {
		struct code_insn *insn = &s->insns.v[i];
		const struct code_function *called;

		if ((insn->flow != X86_FLOW_CALL && insn->flow != X86_FLOW_CALL_FAR) ||
			(insn->bits & CODE_INSN_TWICE))
			continue;
		called = code_called(c, s, insn);
		if (called && may_be_timed(c, called))
			insn->bits |= CODE_INSN_FOREIGN;
	}
}

bool code_function_enters_at(const struct code *c, const struct code_function *f, uint32_t insn_i)
{
	return c->options->mode == INSERT_MODE_TREE && !f->is_fragment && insn_i == f->entry_insn;
}

uint32_t code_locked_block(
	const struct code_section *s, const struct code_function *f, const struct code_insn *insn)
{
	uint32_t locked = s->at[insn->to - 1] - 1;

	return (uint32_t)SEARCH(f->first_block + 1, f->first_block + f->n_blocks, i,
		       s->blocks.v[i].first_insn <= locked) -
	       1;
}

uint32_t code_head_insn(const struct code_section *s, const struct code_function *f, uint32_t block)
{
	const struct code_block *b = &s->blocks.v[block];
	const struct code_insn *head = &s->insns.v[b->first_insn];

	if (head->detour == CODE_DETOUR_LATER)
		return b->first_insn + head->detail;
	if (head->detour == CODE_DETOUR_EDGES)
		return b->first_insn + b->n_insns - 1;
	/* The counter of the first block stands behind the entry code, which may be in front of the
	 * second block: a loop right behind endbr64. */
	if (block == f->first_block && f->entry_insn <= b->first_insn + b->n_insns)
		return f->entry_insn;
	return b->first_insn;
}

uint32_t code_head_sums(const struct code *c, const struct code_insn *head)
{
	if (c->options->mode != INSERT_MODE_TREE || (head->bits & CODE_INSN_APART))
		return 0;
	return c->options->with_cycles ? 2 : 1;
}

uint32_t code_head_bytes(
	const struct code *c, const struct code_section *s, const struct code_block *b)
{
	const struct insert_options *o = c->options;
	const struct code_insn *head = &s->insns.v[b->first_insn];
	uint32_t n_sums = code_head_sums(c, head);
	uint32_t bytes;

	if (o->mode == INSERT_MODE_NOPS)
		return 1;
	bytes = INC_BYTES;
	if (head->detour == CODE_DETOUR_REGISTER || head->detour == CODE_DETOUR_STACK)
		bytes += head->bits & CODE_INSN_CARRY ? CARRY_BYTES : FLAGS_BYTES;
	if (head->detour == CODE_DETOUR_REGISTER && head->detail != X86_REG_RAX)
		bytes += 2 * CODE_MOV_BYTES;
	if (head->detour == CODE_DETOUR_STACK)
		bytes += 2 * CODE_LEA_BYTES + 2 * CODE_SLOT_BYTES;
	if (head->detour == CODE_DETOUR_COMPARE)
		bytes += head[-(int)head->detail].length;
	if (n_sums && b->added)
		bytes += code_add_is_long(b->added) ? ADD_LONG_BYTES : ADD_BYTES;
	/* Cycles do not fit into a byte: hundredths. */
	if (n_sums == 2)
		bytes += ADD_LONG_BYTES;
	return bytes;
}

uint32_t code_bytes_before_heads(const struct code *c, const struct code_section *s,
	const struct code_function *f, uint32_t insn_i)
{
	uint32_t bytes = code_function_enters_at(c, f, insn_i) ? CODE_CALL_BYTES : 0;

	if (c->options->mode == INSERT_MODE_TREE && !f->is_thunk &&
		(s->insns.v[insn_i].bits & CODE_INSN_LANDING))
		bytes += CODE_CALL_BYTES;
	return bytes;
}

uint32_t code_insn_bytes(const struct code_insn *insn)
{
	if (insn->bits & CODE_INSN_EDGES)
		return 2 + insn->after + 5;
	if (insn->between)
		return 2 + insn->between + 5;
	if (insn->bits & CODE_INSN_FALLS)
		return 2 + CODE_CALL_BYTES + 5;
	if (!(insn->bits & CODE_INSN_WIDE))
		return insn->length;
	if (insn->opcode == 0xeb)
		return 5;
	if (insn->opcode >= 0xe0)
		return 2 + 2 + 5; /* loop, jrcxz over a long jump */
	return 6;
}

uint32_t code_insn_own_bytes(const struct code_insn *insn)
{
	bool is_over_jump = (insn->bits & CODE_INSN_WIDE) && insn->opcode >= 0xe0 &&
			    insn->opcode != 0xeb; /* loop, jrcxz */

	if ((insn->bits & (CODE_INSN_EDGES | CODE_INSN_FALLS)) || insn->between || is_over_jump)
		return 2;
	return code_insn_bytes(insn);
}

/* Run-time systems find tables by return addresses: nothing may come between such a call and what stands
 * behind it. */
static bool may_follow(const struct code_section *s, const struct code_function *f, uint32_t insn_i)
{
	return insn_i + 1 >= f->first_insn + f->n_insns ||
	       !(s->insns.v[insn_i + 1].bits & CODE_INSN_DATA_LABEL);
}

static void plan_insn(
	struct code *c, struct code_section *s, struct code_function *f, uint32_t insn_i)
{
	struct code_insn *insn = &s->insns.v[insn_i];
	bool is_tree = c->options->mode == INSERT_MODE_TREE && !f->is_thunk;

	if (!may_follow(s, f, insn_i))
		insn->bits &= ~(uint32_t)(CODE_INSN_FOREIGN | CODE_INSN_TWICE);

	if ((insn->bits & CODE_INSN_GATE) && c->options->mode != INSERT_MODE_NOPS)
		insn->before += CODE_CALL_BYTES;
	if (!is_tree)
		return;
	if (insn->bits & CODE_INSN_LANDING)
		insn->before += CODE_CALL_BYTES;
	if (insn->flow == X86_FLOW_RETURN ||
		((insn->bits & CODE_INSN_TAIL) && insn->flow != X86_FLOW_BRANCH))
		insn->before += CODE_CALL_BYTES;
	if ((insn->bits & CODE_INSN_TAIL) && insn->flow == X86_FLOW_BRANCH)
		insn->bits |= CODE_INSN_FALLS;
	if (insn->bits & CODE_INSN_FOREIGN) {
		insn->before += CODE_CALL_BYTES;
		insn->after += CODE_CALL_BYTES;
	}
	if (insn->bits & CODE_INSN_TWICE)
		insn->after += CODE_CALL_BYTES;
}

static void plan_function(struct code *c, struct code_section *s, struct code_function *f)
{
	code_late_sums(c, s, f);
	for (uint32_t b = f->first_block; b < f->first_block + f->n_blocks; b++) {
		const struct code_block *block = &s->blocks.v[b];
		const struct code_insn *head = &s->insns.v[block->first_insn];
		struct code_insn *at = &s->insns.v[code_head_insn(s, f, b)];
		uint32_t bytes = code_head_bytes(c, s, block);

		if (block->is_unreachable)
			continue;
		if (head->detour == CODE_DETOUR_EDGES) {
			at->bits |= CODE_INSN_EDGES;
			at->after += bytes;
		} else
			at->before += bytes;
	}
	if (c->options->mode == INSERT_MODE_TREE && !f->is_fragment)
		s->insns.v[f->entry_insn].before += CODE_CALL_BYTES;
	for (uint32_t i = f->first_insn; i < f->first_insn + f->n_insns; i++) {
		struct code_insn *insn = &s->insns.v[i];

		plan_insn(c, s, f, i);
		if (insn->bits & CODE_INSN_PAST_LOCK) {
			const struct code_block *block =
				&s->blocks.v[code_locked_block(s, f, insn)];

			insn->between = code_head_bytes(c, s, block);
		}
	}
}

void code_plan(struct code *c)
{
	check_relocs(c);
	for (struct code_section *s = code_next(c, NULL); s; s = code_next(c, s))
		judge_section(c, s);
	join_fragments(c);
	judge_all_ways_out(c);
	for (struct code_section *s = code_next(c, NULL); s; s = code_next(c, s)) {
		bool has_work = false;

		if (!code_section_is_inserted(s))
			continue;
		for (size_t i = 0; i < s->functions.n; i++) {
			if (s->functions.v[i].reason != INSERT_REASON_DONE)
				continue;
			time_calls(c, s, &s->functions.v[i]);
			plan_function(c, s, &s->functions.v[i]);
			has_work = true;
		}
		if (!has_work)
			s->reason = INSERT_REASON_EMPTY;
	}
}
