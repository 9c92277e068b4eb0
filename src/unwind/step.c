/* SPDX-License-Identifier: MIT */
/*
 * A rule whose places are all "saved at CFA + offset" is followed in place; that is nearly all of
 * them. The others may read any register of the frame, so that the old values are kept aside.
 *
 * A saved register that cannot be read becomes unknown and the walk goes on: most are never
 * needed. Only the CFA and the return address are. A slot below the stack pointer has been popped:
 * the register holds the caller's value again, though compilers leave the rule as it was until the
 * return (gcc -O0 does at every `ret`).
 */
#include "unwind/step.h"

#define REG_BIT(reg) (1u << (reg))
/* Beyond this above the copy an address is no part of the same stack. */
#define STACK_REACH_BYTES (256ull << 20)

bool step_is_beyond_copy(const struct stack_reader *reader, uint64_t addr)
{
	uint64_t copy_end = reader->memory->start.v + reader->memory->bytes.n;

	if (reader->has_left_copy)
		return true;
	return addr + 8 > copy_end && addr >= reader->memory->start.v &&
	       addr - reader->memory->start.v < STACK_REACH_BYTES;
}

static bool give_up(const struct stack_reader *reader, enum unwind_end *end)
{
	*end = reader->lacks_below ? UNWIND_END_BELOW_COPY
	       : reader->failed && step_is_beyond_copy(reader, reader->failed_addr)
		       ? UNWIND_END_STACK_SHORT
		       : UNWIND_END_BAD_CFI;
	return false;
}

static bool find_cfa(struct stack_reader *reader, const struct cfi_table *table,
	const struct cfi_rule *rule, const struct cpu_regs *regs, uint64_t *cfa)
{
	if (rule->cfa_reg == CFI_CFA_EXPR)
		return cfi_expr_run(
			cfi_table_expression(table, rule->cfa_value), regs, reader, NULL, cfa);
	if (rule->cfa_reg >= CPU_N_REGS || !(regs->known & REG_BIT(rule->cfa_reg)))
		return false;
	*cfa = (regs->r[rule->cfa_reg] + (uint64_t)(int64_t)rule->cfa_value) & reader->mask;
	return true;
}

/* The caller's value of one register; `old` is the frame's own set. */
static bool find_value(struct stack_reader *reader, const struct cfi_table *table,
	const struct cfi_place *place, const struct cpu_regs *old, uint64_t cfa, uint64_t *value)
{
	uint64_t at = (cfa + (uint64_t)(int64_t)place->value) & reader->mask;

	switch (place->how) {
	case CFI_HOW_AT_OFFSET:
		return stack_read_word(reader, at, value);
	case CFI_HOW_IS_OFFSET:
		*value = at;
		return true;
	case CFI_HOW_REGISTER:
		*value = old->r[place->value];
		return old->known & REG_BIT(place->value);
	case CFI_HOW_AT_EXPR:
		return cfi_expr_run(
			       cfi_table_expression(table, place->value), old, reader, &cfa, &at) &&
		       stack_read_word(reader, at, value);
	case CFI_HOW_IS_EXPR:
		return cfi_expr_run(
			cfi_table_expression(table, place->value), old, reader, &cfa, value);
	default: /* CFI_HOW_UNDEFINED */
		return false;
	}
}

/* Whether a slot that cannot be read is one that has been popped. */
static bool is_popped(const struct cfi_place *place, uint64_t cfa, uint64_t sp)
{
	return place->how == CFI_HOW_AT_OFFSET && place->reg != CPU_REG_RIP &&
	       cfa + (uint64_t)(int64_t)place->value < sp;
}

bool step_at_cfa(struct stack_reader *reader, const struct cfi_rule *rule, uint64_t cfa,
	struct cpu_regs *regs)
{
	uint32_t known = regs->known | REG_BIT(CPU_REG_RSP);
	uint64_t sp = regs->r[CPU_REG_RSP];

	for (const struct cfi_place *p = rule->places; p < rule->places + rule->n_places; p++) {
		if (stack_read_word(reader, cfa + (uint64_t)(int64_t)p->value, &regs->r[p->reg]))
			known |= REG_BIT(p->reg);
		else if (!is_popped(p, cfa, sp))
			known &= ~REG_BIT(p->reg);
	}
	regs->r[CPU_REG_RSP] = cfa;
	regs->known = known;
	return known & REG_BIT(CPU_REG_RIP);
}

static bool step_any(struct stack_reader *reader, const struct cfi_table *table,
	const struct cfi_rule *rule, uint64_t cfa, struct cpu_regs *regs)
{
	const struct cpu_regs old = *regs;

	regs->r[CPU_REG_RSP] = cfa;
	regs->known |= REG_BIT(CPU_REG_RSP);
	for (const struct cfi_place *p = rule->places; p < rule->places + rule->n_places; p++) {
		if (find_value(reader, table, p, &old, cfa, &regs->r[p->reg]))
			regs->known |= REG_BIT(p->reg);
		else if (!is_popped(p, cfa, old.r[CPU_REG_RSP]))
			regs->known &= ~REG_BIT(p->reg);
	}
	return !(~regs->known & (REG_BIT(CPU_REG_RIP) | REG_BIT(CPU_REG_RSP)));
}

bool step_by_rule(struct stack_reader *reader, const struct cfi_table *table,
	const struct cfi_rule *rule, struct cpu_regs *regs, enum unwind_end *end)
{
	uint64_t cfa;

	if (rule->flags & (CFI_RULE_OUTERMOST | CFI_RULE_ELSEWHERE)) {
		*end = rule->flags & CFI_RULE_OUTERMOST ? UNWIND_END_COMPLETE
							: UNWIND_END_ELSEWHERE;
		return false;
	}
	reader->failed = reader->lacks_below = false;
	if (!find_cfa(reader, table, rule, regs, &cfa))
		return give_up(reader, end);
	return (rule->flags & CFI_RULE_PLAIN ? step_at_cfa(reader, rule, cfa, regs)
					     : step_any(reader, table, rule, cfa, regs)) ||
	       give_up(reader, end);
}

bool step_guess_by_frame_pointer(
	struct stack_reader *reader, const struct cpu_regs *regs, struct step_guess *guess)
{
	uint64_t fp = regs->r[CPU_REG_RBP], sp = regs->r[CPU_REG_RSP];
	unsigned word = reader->word_bytes;

	reader->failed = false;
	if (!(regs->known & REG_BIT(CPU_REG_RBP)) || fp % word || fp < sp ||
		fp - sp > STACK_REACH_BYTES)
		return false;
	if (!stack_read_word(reader, fp, &guess->fp) ||
		!stack_read_word(reader, fp + word, &guess->pc))
		return false;
	guess->sp = (fp + 2 * word) & reader->mask;
	guess->has_fp = true;
	return true;
}

bool step_guess_by_stack_word(struct stack_reader *reader, const struct cpu_regs *regs, unsigned i,
	struct step_guess *guess)
{
	uint64_t sp = regs->r[CPU_REG_RSP] + i * reader->word_bytes;

	if (!stack_read_word(reader, sp, &guess->pc))
		return false;
	guess->sp = (sp + reader->word_bytes) & reader->mask;
	guess->has_fp = false;
	return true;
}

void step_take_guess(const struct step_guess *guess, struct cpu_regs *regs)
{
	regs->r[CPU_REG_RSP] = guess->sp;
	regs->r[CPU_REG_RIP] = guess->pc;
	if (guess->has_fp)
		regs->r[CPU_REG_RBP] = guess->fp;
	regs->known |= REG_BIT(CPU_REG_RSP) | REG_BIT(CPU_REG_RIP);
}
