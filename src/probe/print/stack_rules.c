/* SPDX-License-Identifier: MIT */
/*
 * Expressions are not taken apart: what they say for two values of a register tells whether they add a
 * constant to it. Those of procedure linkage tables, of signal frames and of functions that align
 * their stack are all of that kind, some with a load at the end. An address is given, so that what
 * depends on it is constant, too.
 */
#include "probe/print/stack_rules.h"

#include "unwind/step.h"

#define ONES	   (~(uint64_t)0)
#define OP_DEREF   0x06 /* DW_OP_deref */
#define FIRST_TRY  0x100000
#define SECOND_TRY 0x345678

enum base { BASE_CFA, BASE_SP, BASE_BP, N_BASES };

struct place {
	enum base base;
	uint64_t at;
	bool is_loaded; /* what is wanted is in memory there */
};

struct reading {
	const struct cfi_table *table;
	uint64_t pc;
	bool is_64;
};

static bool run(
	const struct reading *r, struct span expr, enum base base, uint64_t value, uint64_t *result)
{
	static const struct unwind_memory nothing;
	struct stack_reader reader = {.memory = &nothing,
		.mask = r->is_64 ? UINT64_MAX : UINT32_MAX,
		.word_bytes = r->is_64 ? 8 : 4};
	struct cpu_regs regs = {.known = 1u << CPU_REG_RIP, .is_64 = r->is_64};

	regs.r[CPU_REG_RIP] = r->pc;
	if (base != BASE_CFA) {
		enum cpu_reg reg = base == BASE_SP ? CPU_REG_RSP : CPU_REG_RBP;

		regs.r[reg] = value;
		regs.known |= 1u << reg;
	}
	return cfi_expr_run(expr, &regs, &reader, base == BASE_CFA ? &value : NULL, result);
}

/* Whether the expression is a base and a constant; the CFA is on its stack only when `has_cfa`. */
static bool find_sum(const struct reading *r, struct span expr, bool has_cfa, struct place *out)
{
	for (int base = has_cfa ? BASE_CFA : BASE_SP; base < N_BASES; base++) {
		uint64_t first, second;

		if (!run(r, expr, (enum base)base, FIRST_TRY, &first) ||
			!run(r, expr, (enum base)base, SECOND_TRY, &second) ||
			second - first != SECOND_TRY - FIRST_TRY)
			continue;
		out->base = (enum base)base;
		out->at = first - FIRST_TRY;
		return true;
	}
	return false;
}

static bool find_cfa(const struct reading *r, const struct cfi_rule *rule, struct place *out)
{
	struct span expr;

	*out = (struct place){.base = rule->cfa_reg == CPU_REG_RSP ? BASE_SP : BASE_BP,
		.at = (uint64_t)(int64_t)rule->cfa_value};
	if (rule->cfa_reg == CPU_REG_RSP || rule->cfa_reg == CPU_REG_RBP)
		return true;
	if (rule->cfa_reg != CFI_CFA_EXPR)
		return false;
	expr = cfi_table_expression(r->table, rule->cfa_value);
	if (find_sum(r, expr, false, out))
		return true;
	if (!expr.n || expr.p[expr.n - 1] != OP_DEREF)
		return false;
	expr.n--;
	out->is_loaded = true;
	return find_sum(r, expr, false, out);
}

/* Where a register is saved. */
static bool find_saved(const struct reading *r, const struct cfi_place *p, struct place *out)
{
	if (p->how == CFI_HOW_AT_OFFSET) {
		*out = (struct place){BASE_CFA, (uint64_t)(int64_t)p->value, true};
		return true;
	}
	out->is_loaded = true;
	return p->how == CFI_HOW_AT_EXPR &&
	       find_sum(r, cfi_table_expression(r->table, p->value), true, out);
}

static const struct cfi_place *place_of(const struct cfi_rule *rule, enum cpu_reg reg)
{
	for (const struct cfi_place *p = rule->places; p < rule->places + rule->n_places; p++)
		if (p->reg == reg)
			return p;
	return NULL;
}

static uint64_t ones_if(bool is)
{
	return is ? ONES : 0;
}

/* The caller's stack pointer is the CFA, also where a signal frame has it in memory. */
static bool is_sp_the_cfa(
	const struct reading *r, const struct cfi_place *sp, const struct place *cfa)
{
	struct place saved;

	return !sp || (cfa->is_loaded && find_saved(r, sp, &saved) && saved.base == cfa->base &&
			      saved.at == cfa->at);
}

bool stack_rule_of_cfi(const struct cfi_table *table, const struct cfi_rule *rule, uint64_t pc,
	bool is_64, struct stack_rule *out)
{
	struct reading r = {table, pc, is_64};
	const struct cfi_place *ra_place = place_of(rule, CPU_REG_RIP),
			       *bp_place = place_of(rule, CPU_REG_RBP);
	struct place cfa, ra, bp = {BASE_SP, 0, false};

	*out = (struct stack_rule){.flags = STACK_RULE_OUTERMOST};
	if (rule->flags & CFI_RULE_OUTERMOST)
		return true;
	if (rule->flags & CFI_RULE_ELSEWHERE || !ra_place || !find_cfa(&r, rule, &cfa) ||
		!find_saved(&r, ra_place, &ra) || ra.base == BASE_BP ||
		(bp_place && !find_saved(&r, bp_place, &bp)) ||
		!is_sp_the_cfa(&r, place_of(rule, CPU_REG_RSP), &cfa))
		return false;
	*out = (struct stack_rule){.flags = (rule->flags & CFI_RULE_SIGNAL ? STACK_RULE_EXACT : 0) |
					    (cfa.is_loaded ? STACK_RULE_DEREF : 0),
		.cfa_bp = ones_if(cfa.base == BASE_BP),
		.cfa_at = cfa.at,
		.ra_cfa = ones_if(ra.base == BASE_CFA),
		.ra_at = ra.at,
		.bp_cfa = ones_if(bp.base == BASE_CFA),
		.bp_bp = ones_if(bp.base == BASE_BP),
		.bp_at = bp.at,
		.bp_saved = ones_if(bp.is_loaded)};
	return true;
}

struct stack_rule stack_rule_of_guess(bool by_fp, uint64_t cfa_distance, bool is_64)
{
	uint64_t word = is_64 ? 8 : 4;

	return (struct stack_rule){.flags = STACK_RULE_GUESS,
		.cfa_bp = ones_if(by_fp),
		.cfa_at = by_fp ? 2 * word : cfa_distance,
		.ra_cfa = ONES,
		.ra_at = 0 - word,
		.bp_cfa = ones_if(by_fp),
		.bp_at = by_fp ? 0 - 2 * word : 0,
		.bp_saved = ones_if(by_fp)};
}
