/* SPDX-License-Identifier: MIT */
/*
 * What a row of a CFI table says, and the pool of distinct rules.
 *
 *	rule:   | cfa_value | cfa_reg flags n_places 0 |   8 bytes
 *	place:  | value     | reg     how   0        0 |   8 bytes each, n_places of them
 *
 * A register without a place keeps its value, but for the stack pointer: it becomes the CFA. The
 * return address is the place of CPU_REG_RIP. Rules and places have no padding, so equal rules
 * are equal bytes.
 */
#ifndef WEIR_DWARF_CFI_RULE_H
#define WEIR_DWARF_CFI_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/span.h"
#include "arch/cpu_regs.h"

struct cfi_table;

/* Where the caller's value of a register is. */
enum cfi_how {
	CFI_HOW_UNSET,	   /* not mentioned: unchanged */
	CFI_HOW_SAME,	   /* said to be unchanged */
	CFI_HOW_UNDEFINED, /* lost; of the return address: this is the outermost frame */
	CFI_HOW_AT_OFFSET, /* in memory at CFA + value */
	CFI_HOW_IS_OFFSET, /* it is CFA + value */
	CFI_HOW_REGISTER,  /* in the register numbered value (enum cpu_reg) */
	CFI_HOW_AT_EXPR,   /* in memory at the result of expression `value` */
	CFI_HOW_IS_EXPR	   /* it is the result of expression `value` */
};

struct cfi_place {
	int32_t value; /* meaning by `how` */
	uint8_t reg;   /* enum cpu_reg */
	uint8_t how;   /* enum cfi_how, never CFI_HOW_UNSET nor CFI_HOW_SAME */
	uint16_t zero;
} __attribute__((may_alias));

enum cfi_rule_flags {
	CFI_RULE_SIGNAL = 1,	/* a signal frame: the caller's pc is exact, its stack any */
	CFI_RULE_OUTERMOST = 2, /* the return address is undefined */
	CFI_RULE_PLAIN = 4,	/* every place is CFI_HOW_AT_OFFSET and none is the stack pointer */
	CFI_RULE_NEW_STACK = 8, /* the caller's stack pointer is not the CFA */
	CFI_RULE_ELSEWHERE = 16 /* the caller is on another stack, and nothing says where */
};

enum { CFI_CFA_EXPR = 0x80, CFI_CFA_NONE = 0x81 }; /* cfa_reg beside enum cpu_reg */

struct cfi_rule {
	int32_t cfa_value; /* offset from the register, or the expression's id */
	uint8_t cfa_reg;   /* enum cpu_reg or CFI_CFA_* */
	uint8_t flags;	   /* enum cfi_rule_flags */
	uint8_t n_places;
	uint8_t zero;
	struct cfi_place places[];
} __attribute__((may_alias)); /* it lies in an array of words */

/* The state of the machine that runs CFI programs: one row of DWARF 5 section 6.4.1. */
struct cfi_state {
	int32_t cfa_value;
	uint8_t cfa_reg;
	uint8_t is_signal;
	uint8_t is_elsewhere; /* CFI_RULE_ELSEWHERE */
	uint32_t set;	      /* bit per register that `regs` mentions */
	struct {
		int32_t value;
		uint8_t how;
	} regs[CPU_N_REGS];
};

/* Distinct rules, named by their position in 8-byte words. Zero-initialise. */
struct cfi_rules {
	VEC(uint64_t) words;
	uint32_t *slots; /* hash table: position + 1, 0 = empty */
	size_t n, cap_slots;
	struct intern expressions;
};

#define CFI_RULE_NONE UINT32_MAX /* no FDE covers the addresses */

void cfi_rules_release(struct cfi_rules *rules);
/* The position of the rule that `state` amounts to; false when the pool is full. */
bool cfi_rules_add(struct cfi_rules *rules, const struct cfi_state *state, uint32_t *position);
/* Frees what only adding needs. Adding again afterwards is allowed. */
void cfi_rules_shrink(struct cfi_rules *rules);

static inline const struct cfi_rule *cfi_rules_get(const struct cfi_rules *rules, uint32_t position)
{
	return (const struct cfi_rule *)(const void *)&rules->words.v[position];
}

/* The bytes of an expression named by a rule of this table; empty when there is no such id. */
struct span cfi_table_expression(const struct cfi_table *t, int32_t id);

#endif
