/* SPDX-License-Identifier: MIT */
/*
 * What a call or a jump goes to, by name. Calls through a register have one, too, where the address of a symbol was put
 * there: code for programs of any size calls nothing else (-mcmodel=large), and compilers keep addresses of what is
 * called often in a register (-fno-plt).
 *
 *	movabs $f,%rax; call *%rax
 *	movabs $f@PLTOFF,%rax; add %rbx,%rax; call *%rax	(or lea (%rax,%rbx),%rcx)
 *	movabs $f@GOT,%rax; mov (%rbx,%rax),%r15; call *%r15
 *	mov f@GOTPCREL(%rip),%r15; call *%r15
 *
 * The register is followed back as far as control can only come from there; beyond that, all that the function ever
 * puts there must be the same.
 */
#include "insert/object_code.h"

#define FUNCTION_INSNS_MAX 8192 /* more are not looked through for each call */
#define STEPS_BACK_MAX	   256
#define NO_REGISTER	   16u

/* Registers that a call may change. */
#define CHANGED_BY_CALLS                                                                           \
	(1u << 0 | 1u << 1 | 1u << 2 | 1u << 6 | 1u << 7 | 1u << 8 | 1u << 9 | 1u << 10 | 1u << 11)

struct callee_search {
	const struct code *code;
	const struct code_section *section;
	const struct code_function *function;
};

/* An instruction with 64-bit operands: its bytes behind the prefix. */
static const uint8_t *wide_opcode(const struct callee_search *x, const struct code_insn *insn)
{
	const uint8_t *p = x->section->bytes.p + insn->offset;

	return insn->length >= 3 && (p[0] & 0xf8) == 0x48 ? p + 1 : NULL;
}

/* mov %a,%b: a */
static uint32_t copied_register(const struct callee_search *x, const struct code_insn *insn)
{
	const uint8_t *op = wide_opcode(x, insn);

	if (!op || (op[0] != 0x89 && op[0] != 0x8b) || op[1] < 0xc0)
		return NO_REGISTER;
	return insn->reads ? (uint32_t)__builtin_ctz(insn->reads) : NO_REGISTER;
}

/* add %a,%b: the address of the global offset table, to a distance from it */
static bool is_sum(const struct callee_search *x, const struct code_insn *insn)
{
	const uint8_t *op = wide_opcode(x, insn);

	return op && (op[0] == 0x01 || op[0] == 0x03) && op[1] >= 0xc0;
}

static bool is_pop(const struct callee_search *x, const struct code_insn *insn)
{
	const uint8_t *p = x->section->bytes.p + insn->offset;

	p += insn->length == 2 && p[0] == 0x41;
	return (p[0] & 0xf8) == 0x58;
}

/* The symbol that a relocation of the instruction means, when that is of the type and nothing is added to it. */
static const struct object_symbol *symbol_in(
	const struct callee_search *x, const struct code_insn *insn, bool (*is_type)(uint32_t))
{
	const struct elf_object *o = x->code->object;
	const struct object_reloc *r;
	int64_t nothing = insn->disp_at ? -4 : 0;

	if (insn->reloc == CODE_NONE)
		return NULL;
	r = &o->sections.v[x->section->number].relocs.v[insn->reloc];
	if (!r->symbol || r->symbol >= o->symbols.n || !is_type(r->type) || r->addend != nothing ||
		o->symbols.v[r->symbol].type == STT_SECTION)
		return NULL;
	return &o->symbols.v[r->symbol];
}

static bool is_address_type(uint32_t type)
{
	return type == R_X86_64_64 || type == R_X86_64_32 || type == R_X86_64_32S;
}

/* To which the address of the global offset table is added. */
static bool is_distance_type(uint32_t type)
{
	return type == R_X86_64_PLTOFF64 || type == R_X86_64_GOTOFF64;
}

static bool is_slot_offset(uint32_t type)
{
	return type == R_X86_64_GOT64;
}

static bool is_slot_type(uint32_t type)
{
	return type == R_X86_64_GOTPCREL || type == R_X86_64_GOTPCRELX ||
	       type == R_X86_64_REX_GOTPCRELX;
}

/* movabs $n,%r */
static bool is_constant(const struct callee_search *x, const struct code_insn *insn)
{
	const uint8_t *op = wide_opcode(x, insn);

	return op && (op[0] & 0xf8) == 0xb8;
}

/* A register that is followed. */
struct followed {
	uint32_t reg;
	bool is_sum; /* something is added to what was put there */
	int depth;   /* of sums that may still be looked into */
};

/* The instruction in front of this one that has set the register, when control can come from nowhere else;
 * CODE_NONE: not known. The register may be another one by then. */
static uint32_t find_setter(const struct callee_search *x, uint32_t insn_i, struct followed *now)
{
	const struct code_insn *v = x->section->insns.v;

	for (int steps = 0; steps < STEPS_BACK_MAX && insn_i-- > x->function->first_insn; steps++) {
		bool is_branch = v[insn_i].flow == X86_FLOW_BRANCH;

		if ((v[insn_i + 1].bits & (CODE_INSN_LABEL | CODE_INSN_LANDING)) ||
			(x86_ends_block(v[insn_i].flow) && !is_branch) ||
			(v[insn_i].flow != X86_FLOW_NEXT && !is_branch &&
				(CHANGED_BY_CALLS >> now->reg & 1)))
			return CODE_NONE;
		if (!(v[insn_i].kills >> now->reg & 1))
			continue;
		if (is_sum(x, &v[insn_i]))
			now->is_sum = true;
		else if (copied_register(x, &v[insn_i]) == NO_REGISTER)
			return insn_i;
		else
			now->reg = copied_register(x, &v[insn_i]);
	}
	return CODE_NONE;
}

/* The symbol whose slot in the global offset table the operand of an instruction is. */
static const struct object_symbol *symbol_of_slot(const struct callee_search *x, uint32_t insn_i)
{
	const struct code_insn *v = x->section->insns.v;

	for (uint32_t reg = 0; reg < 16; reg++) {
		struct followed now = {.reg = reg};
		const struct object_symbol *found = NULL;
		uint32_t setter;

		if (!(v[insn_i].reads >> reg & 1) || reg == X86_REG_RSP)
			continue;
		setter = find_setter(x, insn_i, &now);
		if (setter != CODE_NONE && !now.is_sum && is_constant(x, &v[setter]))
			found = symbol_in(x, &v[setter], is_slot_offset);
		if (found)
			return found;
	}
	return NULL;
}

static const struct object_symbol *symbol_in_register(
	const struct callee_search *x, uint32_t insn_i, struct followed now);

/* lea (%a,%b),%r */
static const struct object_symbol *symbol_of_sum(
	const struct callee_search *x, uint32_t insn_i, struct followed now)
{
	const struct code_insn *insn = &x->section->insns.v[insn_i];
	const struct object_symbol *found = NULL;

	for (uint32_t reg = 0; reg < 16 && !found && now.depth; reg++)
		if ((insn->reads >> reg & 1) && reg != X86_REG_RSP)
			found = symbol_in_register(
				x, insn_i, (struct followed){reg, true, now.depth - 1});
	return found;
}

/* The symbol whose address the instruction loads, with what is added later; NULL. */
static const struct object_symbol *loaded_symbol(
	const struct callee_search *x, uint32_t insn_i, struct followed now)
{
	const struct code_insn *insn = &x->section->insns.v[insn_i];
	const uint8_t *op = wide_opcode(x, insn);

	if (is_constant(x, insn))
		return symbol_in(x, insn, now.is_sum ? is_distance_type : is_address_type);
	if (!op || now.is_sum)
		return NULL;
	if (op[0] == 0x8d && (op[1] & 0xc7) == 0x04)
		return symbol_of_sum(x, insn_i, now);
	if (op[0] != 0x8b || op[1] >= 0xc0)
		return NULL;
	return insn->disp_at ? symbol_in(x, insn, is_slot_type) : symbol_of_slot(x, insn_i);
}

/* All that the function puts into the register, but for what its caller had there. */
static const struct object_symbol *only_symbol(const struct callee_search *x, struct followed now)
{
	const struct code_function *f = x->function;
	const struct code_insn *v = x->section->insns.v;
	const struct object_symbol *only = NULL;

	if (f->n_insns > FUNCTION_INSNS_MAX || (CHANGED_BY_CALLS >> now.reg & 1))
		return NULL;
	for (uint32_t i = f->first_insn; i < f->first_insn + f->n_insns; i++)
		now.is_sum |= (v[i].kills >> now.reg & 1) && is_sum(x, &v[i]);
	for (uint32_t i = f->first_insn; i < f->first_insn + f->n_insns; i++) {
		const struct object_symbol *symbol;

		if (!(v[i].kills >> now.reg & 1) || is_sum(x, &v[i]) || is_pop(x, &v[i]))
			continue;
		symbol = loaded_symbol(x, i, now);
		if (!symbol || (only && symbol != only))
			return NULL;
		only = symbol;
	}
	return only;
}

/* The symbol whose address the register has in front of an instruction. */
static const struct object_symbol *symbol_in_register(
	const struct callee_search *x, uint32_t insn_i, struct followed now)
{
	uint32_t setter = find_setter(x, insn_i, &now);

	return setter != CODE_NONE ? loaded_symbol(x, setter, now) : only_symbol(x, now);
}

/* call *%r, jmp *%r: r */
static uint32_t target_register(const struct callee_search *x, const struct code_insn *insn)
{
	const uint8_t *p = x->section->bytes.p + insn->offset, *end = p + insn->length;
	uint32_t high = 0;

	for (; p < end && (*p == 0x3e || (*p & 0xf0) == 0x40); p++)
		high = (*p & 0xf1) == 0x41 ? 8 : 0;
	if (end - p != 2 || p[0] != 0xff || p[1] < 0xc0)
		return NO_REGISTER;
	return (p[1] & 7u) + high;
}

/* Of a call or jump whose target no relocation says. */
static const struct object_symbol *followed_symbol(
	const struct code *c, const struct code_section *s, const struct code_insn *insn)
{
	struct callee_search x = {c, s, code_function_at(c, s->number, insn->offset)};
	uint32_t insn_i = (uint32_t)(insn - s->insns.v), reg;

	if (!x.function || insn->disp_at ||
		(insn->flow != X86_FLOW_CALL_FAR && insn->flow != X86_FLOW_JUMP_FAR))
		return NULL;
	reg = target_register(&x, insn);
	if (reg == NO_REGISTER)
		return symbol_of_slot(&x, insn_i);
	return symbol_in_register(&x, insn_i, (struct followed){reg, false, 1});
}

const char *code_insn_callee(const struct code *c, const struct code_section *s,
	const struct code_insn *insn, const struct object_symbol **symbol)
{
	const struct elf_object *o = c->object;
	const struct object_reloc *r;

	if (insn->reloc == CODE_NONE) {
		*symbol = followed_symbol(c, s, insn);
		return *symbol ? (*symbol)->name : NULL;
	}
	*symbol = NULL;
	r = &o->sections.v[s->number].relocs.v[insn->reloc];
	if (!r->symbol || r->symbol >= o->symbols.n)
		return NULL;
	switch (r->type) {
	case R_X86_64_PC32:
	case R_X86_64_PLT32:
		if (insn->flow == X86_FLOW_CALL_FAR || insn->flow == X86_FLOW_JUMP_FAR)
			return NULL; /* a pointer in memory */
		break;
	case R_X86_64_GOTPCREL:
	case R_X86_64_GOTPCRELX:
	case R_X86_64_REX_GOTPCRELX:
		break;
	default:
		return NULL;
	}
	*symbol = &o->symbols.v[r->symbol];
	return (*symbol)->name;
}

const struct code_function *code_called(
	const struct code *c, const struct code_section *s, const struct code_insn *insn)
{
	const struct object_symbol *symbol;
	const struct code_function *f;
	uint32_t section = insn->to_section;
	uint64_t offset = insn->to;

	if (!section && code_insn_callee(c, s, insn, &symbol)) {
		section = symbol->section;
		offset = symbol->value;
	}
	f = code_function_at(c, section, offset);
	return f && f->start == offset ? f : NULL;
}

bool code_takes_address(const struct code *c, const struct code_section *s,
	const struct code_insn *insn, const struct object_symbol **symbol)
{
	static bool (*const types[])(uint32_t) = {
		is_address_type, is_distance_type, is_slot_offset, is_slot_type};
	struct callee_search x = {c, s, NULL};

	*symbol = NULL;
	for (size_t i = 0; insn->flow == X86_FLOW_NEXT && !*symbol && i < 4; i++)
		*symbol = symbol_in(&x, insn, types[i]);
	return *symbol;
}
