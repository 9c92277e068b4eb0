/* SPDX-License-Identifier: MIT */
/*
 * What is live at the head of each block: the status flags, which inserted adds would change, and,
 * where they are live, a register that is free.
 *
 * About registers nothing is believed: calls, returns and jumps out of a function read all of them
 * (gcc's -fipa-ra keeps values in registers that a call may change by the ABI). About flags the ABI
 * is believed, unless the code at hand shows otherwise: a function that reads flags before it sets
 * them takes them, and one whose caller reads them behind the call returns them.
 */
#include <stdlib.h>

#include "insert/object_code.h"

/* Hostile code may need a round for each block: beyond these everything is taken for live. */
#define BLOCK_ROUNDS_MAX    256
#define FUNCTION_ROUNDS_MAX 64

struct live {
	uint16_t regs;
	uint8_t flags;
};

/* Of one section. */
struct live_section {
	struct live *in;    /* by block */
	uint32_t *block_at; /* by instruction */
};

struct live_pass {
	struct code *code;
	struct code_section *section;
	struct live_section *sections; /* by number */
	struct live_section *here;     /* that of `section` */
	bool is_changed;	       /* something became live that was not, anywhere */
};

static const struct live all = {X86_REGS_ALL, X86_FLAGS_ALL};

static struct code_function *callee_of(const struct live_pass *p, const struct code_insn *insn)
{
	struct code_function *f;

	if (!insn->rel_bytes || !insn->to_section)
		return NULL;
	f = code_function_at(p->code, insn->to_section, insn->to);
	return f && f->start == insn->to ? f : NULL;
}

/* What is live behind a block that ends with a jump to this place. */
static struct live at_target(const struct live_pass *p, const struct code_insn *insn)
{
	const struct live_section *to;

	if (insn->bits & CODE_INSN_TAIL) {
		const struct code_function *callee = callee_of(p, insn);

		return (struct live){
			X86_REGS_ALL, callee && callee->takes_flags ? X86_FLAGS_ALL : 0};
	}
	if (!code_insn_at(p->code, insn->to_section, insn->to))
		return all;
	to = &p->sections[insn->to_section];
	return to->in[to->block_at[p->code->sections[insn->to_section].at[insn->to] - 1]];
}

static void join(struct live *into, struct live more)
{
	into->regs |= more.regs;
	into->flags |= more.flags;
}

static struct live behind_block(
	const struct live_pass *p, const struct code_function *f, const struct code_block *b)
{
	uint32_t last_i = b->first_insn + b->n_insns - 1;
	const struct code_insn *last = &p->section->insns.v[last_i];
	bool is_end = last_i + 1 == f->first_insn + f->n_insns;
	struct live next = is_end ? (struct live){X86_REGS_ALL, 0}
				  : p->here->in[p->here->block_at[last_i + 1]];

	switch ((enum x86_flow)last->flow) {
	case X86_FLOW_JUMP:
		return at_target(p, last);
	case X86_FLOW_BRANCH:
		join(&next, at_target(p, last));
		return next;
	case X86_FLOW_RETURN:
		return (struct live){X86_REGS_ALL, f->returns_flags ? X86_FLAGS_ALL : 0};
	case X86_FLOW_JUMP_FAR:
	case X86_FLOW_STOP:
		return (struct live){X86_REGS_ALL, 0};
	default:
		return next;
	}
}

/* The effects table says of returns and jumps what is true of any code; flags are judged here. */
static bool is_exit(const struct code_insn *insn)
{
	return insn->flow == X86_FLOW_RETURN || insn->flow == X86_FLOW_JUMP_FAR ||
	       insn->flow == X86_FLOW_STOP;
}

static void step_back(struct live_pass *p, const struct code_insn *insn, struct live *now)
{
	if (is_exit(insn)) {
		now->regs = X86_REGS_ALL;
		return;
	}
	if (insn->flow == X86_FLOW_CALL || insn->flow == X86_FLOW_CALL_FAR) {
		struct code_function *callee = callee_of(p, insn);

		if (callee && (now->flags & X86_FLAGS_STATUS) && !callee->returns_flags)
			callee->returns_flags = p->is_changed = true;
		now->regs = X86_REGS_ALL;
		now->flags = callee && callee->takes_flags ? X86_FLAGS_ALL : 0;
		return;
	}
	now->regs = (uint16_t)((now->regs & ~insn->kills) | insn->reads);
	if (insn->flow == X86_FLOW_SYSCALL)
		return; /* the kernel gives the flags back as they were, and reads none */
	now->flags = (uint8_t)((now->flags & ~insn->flags_killed) | insn->flags_read);
}

static struct live through_block(
	struct live_pass *p, const struct code_function *f, const struct code_block *b)
{
	struct live now = behind_block(p, f, b);

	for (uint32_t i = b->n_insns; i-- > 0;)
		step_back(p, &p->section->insns.v[b->first_insn + i], &now);
	return now;
}

static void give_up(struct live *in, const struct code_function *f)
{
	for (uint32_t i = 0; i < f->n_blocks; i++)
		in[f->first_block + i] = all;
}

static void function_live(struct live_pass *p, struct code_function *f)
{
	struct live *in = p->here->in;
	bool again = true;

	for (int round = 0; again; round++) {
		again = false;
		if (round == BLOCK_ROUNDS_MAX)
			give_up(in, f);
		for (uint32_t i = f->n_blocks; i-- > 0;) {
			uint32_t b = f->first_block + i;
			struct live now = through_block(p, f, &p->section->blocks.v[b]);

			join(&now, in[b]);
			if (now.regs != in[b].regs || now.flags != in[b].flags) {
				in[b] = now;
				again = p->is_changed = true;
			}
		}
	}
	if (f->n_blocks && (in[f->first_block].flags & X86_FLAGS_STATUS) && !f->is_fragment)
		f->takes_flags = true;
}

/* rax itself is best; rsp is never free; rbp is left to those who walk frames. */
static uint8_t free_register(uint16_t live)
{
	static const uint8_t order[] = {0, 1, 2, 6, 7, 8, 9, 10, 11, 3, 12, 13, 14, 15};

	for (size_t i = 0; i < sizeof(order); i++)
		if (!(live & (1u << order[i])))
			return order[i];
	return X86_REG_RSP;
}

/* cmp, test, (v)ucomis, (v)comis of registers and constants: can be made again, and nothing
 * changes. */
static bool is_comparison(const struct code_section *s, const struct code_insn *insn)
{
	const uint8_t *p = s->bytes.p + insn->offset, *end = p + insn->length;
	uint8_t op, modrm;

	if (insn->kills || insn->reloc != CODE_NONE || insn->disp_at ||
		(insn->flags_killed & X86_FLAGS_STATUS) != X86_FLAGS_STATUS)
		return false;
	while (p < end && (*p == 0x66 || (*p & 0xf0) == 0x40))
		p++;
	if (end - p < 2)
		return false;
	if (*p == 0xc5 && end - p == 4) { /* VEX, two bytes */
		op = p[2];
		modrm = p[3];
		return (op == 0x2e || op == 0x2f) && modrm >= 0xc0;
	}
	op = *p++;
	if (op == 0x0f)
		return end - p == 2 && (p[0] == 0x2e || p[0] == 0x2f) && p[1] >= 0xc0;
	modrm = *p;
	if (op == 0x3c || op == 0x3d || op == 0xa8 || op == 0xa9)
		return true; /* al, eax with a constant */
	if (modrm < 0xc0)
		return false;
	switch (op) {
	case 0x38:
	case 0x39:
	case 0x3a:
	case 0x3b:
	case 0x84:
	case 0x85:
		return true;
	case 0x80:
	case 0x81:
	case 0x83:
		return (modrm & 0x38) == 0x38;
	case 0xf6:
	case 0xf7:
		return (modrm & 0x38) == 0;
	default:
		return false;
	}
}

#define COMPARE_DISTANCE_MAX 8

/* The comparison whose flags arrive here, when they can come from nowhere else and nothing but
 * conditional branches lies in between. */
static uint8_t find_comparison(
	const struct code_section *s, const struct code_function *f, uint32_t insn_i)
{
	for (uint32_t back = 1; back <= COMPARE_DISTANCE_MAX && insn_i >= f->first_insn + back;
		back++) {
		const struct code_insn *insn = &s->insns.v[insn_i - back];

		if (s->insns.v[insn_i - back + 1].bits & (CODE_INSN_LABEL | CODE_INSN_LANDING))
			return 0;
		if (insn->flow == X86_FLOW_BRANCH && !(insn->bits & CODE_INSN_TAIL))
			continue;
		return insn->flow == X86_FLOW_NEXT && is_comparison(s, insn) ? (uint8_t)back : 0;
	}
	return 0;
}

/* How far into the block flags are dead for the first time; 0 when they are not before a call or
 * its end. */
static uint32_t find_later(
	struct live_pass *p, const struct code_function *f, const struct code_block *b)
{
	struct live now = behind_block(p, f, b);
	uint32_t found = 0;

	for (uint32_t i = b->n_insns; i-- > 1;) {
		const struct code_insn *insn = &p->section->insns.v[b->first_insn + i];

		if (insn->flow != X86_FLOW_NEXT)
			found = 0;
		step_back(p, insn, &now);
		if (!(now.flags & X86_FLAGS_STATUS))
			found = i;
	}
	return p->section->insns.v[b->first_insn].flow == X86_FLOW_NEXT ? found : 0;
}

/* A block of nothing but a conditional branch behind which flags are dead on both sides. */
static bool is_lone_branch(
	const struct live_pass *p, const struct code_function *f, const struct code_block *b)
{
	uint32_t last_i = b->first_insn + b->n_insns - 1;
	const struct code_insn *last = &p->section->insns.v[last_i];

	for (uint32_t i = b->first_insn; i < last_i; i++)
		if (!(p->section->insns.v[i].bits & CODE_INSN_NOP))
			return false;
	if (last->flow != X86_FLOW_BRANCH || (last->bits & CODE_INSN_TAIL) ||
		last_i + 1 == f->first_insn + f->n_insns ||
		(last->rel_bytes == 1 && last->opcode >= 0xe0))
		return false;
	return !((at_target(p, last).flags | p->here->in[p->here->block_at[last_i + 1]].flags) &
		 X86_FLAGS_STATUS);
}

static void choose_detour(struct live_pass *p, uint32_t block)
{
	const struct code_block *b = &p->section->blocks.v[block];
	struct code_function *f = &p->section->functions.v[b->function];
	struct code_insn *head = &p->section->insns.v[b->first_insn];
	uint32_t later = find_later(p, f, b);
	uint8_t compare = find_comparison(p->section, f, b->first_insn);
	uint8_t reg = free_register(p->here->in[block].regs);

	if (later && later <= UINT8_MAX) {
		head->detour = CODE_DETOUR_LATER;
		head->detail = (uint8_t)later;
	} else if (compare) {
		head->detour = CODE_DETOUR_COMPARE;
		head->detail = compare;
	} else if (is_lone_branch(p, f, b)) {
		head->detour = CODE_DETOUR_EDGES;
	} else if (reg != X86_REG_RSP) {
		head->detour = CODE_DETOUR_REGISTER;
		head->detail = reg;
	} else if (code_keeps_stack(p->code, p->section, f))
		head->detour = CODE_DETOUR_STACK;
}

/* inc, which is all where there are no sums, leaves the carry as it is. */
static uint8_t changed_flags(const struct live_pass *p, const struct code_insn *head)
{
	return code_head_sums(p->code, head) ? X86_FLAGS_STATUS : X86_FLAGS_STATUS & ~X86_FLAG_CF;
}

static void note_heads(struct live_pass *p)
{
	for (uint32_t b = 0; b < p->section->blocks.n; b++) {
		struct code_insn *head = &p->section->insns.v[p->section->blocks.v[b].first_insn];

		if (!(p->here->in[b].flags & changed_flags(p, head)) ||
			p->section->blocks.v[b].is_unreachable)
			continue;
		head->bits |= CODE_INSN_FLAGS;
		if ((p->here->in[b].flags & X86_FLAGS_STATUS) == X86_FLAG_CF)
			head->bits |= CODE_INSN_CARRY;
		choose_detour(p, b);
	}
}

static void begin(struct live_pass *p, const struct code_section *s)
{
	struct live_section *l = &p->sections[s->number];

	l->in = mem_calloc(s->blocks.n + 1, sizeof(*l->in));
	l->block_at = mem_calloc(s->insns.n + 1, sizeof(*l->block_at));
	for (size_t b = 0; b < s->blocks.n; b++)
		for (uint32_t i = 0; i < s->blocks.v[b].n_insns; i++)
			l->block_at[s->blocks.v[b].first_insn + i] = (uint32_t)b;
}

static void enter_section(struct live_pass *p, struct code_section *s)
{
	p->section = s;
	p->here = &p->sections[s->number];
}

static void give_up_all(struct live_pass *p, const struct code *c)
{
	for (struct code_section *s = code_next(c, NULL); s; s = code_next(c, s))
		for (size_t i = 0; i < s->functions.n; i++) {
			give_up(p->sections[s->number].in, &s->functions.v[i]);
			s->functions.v[i].takes_flags = s->functions.v[i].returns_flags = true;
		}
}

void code_live(struct code *c)
{
	struct live_pass p = {.code = c, .is_changed = true};

	p.sections = mem_calloc(c->n_sections + 1, sizeof(*p.sections));
	for (struct code_section *s = code_next(c, NULL); s; s = code_next(c, s))
		begin(&p, s);
	/* Everything only ever grows, so this ends; nearly always after the second round. */
	for (int round = 0; p.is_changed; round++) {
		p.is_changed = false;
		if (round == FUNCTION_ROUNDS_MAX)
			give_up_all(&p, c);
		for (struct code_section *s = code_next(c, NULL); s; s = code_next(c, s)) {
			enter_section(&p, s);
			for (size_t i = 0; i < s->functions.n; i++)
				function_live(&p, &s->functions.v[i]);
		}
	}
	for (struct code_section *s = code_next(c, NULL); s; s = code_next(c, s)) {
		enter_section(&p, s);
		note_heads(&p);
	}
	for (uint32_t n = 1; n < c->n_sections; n++) {
		free(p.sections[n].in);
		free(p.sections[n].block_at);
	}
	free(p.sections);
}
