/* SPDX-License-Identifier: MIT */
/* Rules of call-frame information as the code of a stream follows them (stream/stack_copy.h). */
#ifndef WEIR_PROBE_PRINT_STACK_RULES_H
#define WEIR_PROBE_PRINT_STACK_RULES_H

#include <stdbool.h>

#include "dwarf/cfi_rule.h"
#include "probe/stream/stack_copy.h"

/* False when the rule needs more than the stack pointer, the frame pointer and what is saved at places
 * that follow from them. `pc` is where it is to hold. */
bool stack_rule_of_cfi(const struct cfi_table *table, const struct cfi_rule *rule, uint64_t pc,
	bool is_64, struct stack_rule *out);
/* Code without CFI, as the walk went on from it: a frame linked by the frame pointer (`by_fp`), or a
 * return address that is so many bytes below the caller's stack pointer. */
struct stack_rule stack_rule_of_guess(bool by_fp, uint64_t cfa_distance, bool is_64);

#endif
