/* SPDX-License-Identifier: MIT */
/* One step from a frame to its caller. */
#ifndef WEIR_UNWIND_STEP_H
#define WEIR_UNWIND_STEP_H

#include <stdbool.h>

#include "dwarf/cfi_rule.h"
#include "unwind/stack_reader.h"
#include "unwind/unwind.h"

/* Turns `regs` into the caller's by a rule of `table`. False, with the reason in *end, when this is
 * the outermost frame or the rule cannot be followed; `regs` is then spoilt. */
bool step_by_rule(struct stack_reader *reader, const struct cfi_table *table,
	const struct cfi_rule *rule, struct cpu_regs *regs, enum unwind_end *end);

/* The same for a CFI_RULE_PLAIN rule whose CFA is known. False when the return address is not. */
bool step_at_cfa(struct stack_reader *reader, const struct cfi_rule *rule, uint64_t cfa,
	struct cpu_regs *regs);

/* A DWARF expression as far as call-frame information may use them (DWARF 5 section 6.4.2). Runs it over
 * the registers of the frame, with *cfa on the stack at the start when it is not NULL. False, with
 * `result` untouched, when an operation is not supported, a register is not known, memory cannot be
 * read (reader->failed says so), or a limit is passed. */
bool cfi_expr_run(struct span expr, const struct cpu_regs *regs, struct stack_reader *reader,
	const uint64_t *cfa, uint64_t *result);

/* The frame pointer's idea of the caller: its stack pointer, frame pointer and pc. */
struct step_guess {
	uint64_t sp, fp, pc;
	bool has_fp;
};

/* What stands where a frame pointer chain, or a call without any frame, would have left the return
 * address. Whether that is a plausible pc is for the caller to judge. */
bool step_guess_by_frame_pointer(
	struct stack_reader *reader, const struct cpu_regs *regs, struct step_guess *guess);
bool step_guess_by_stack_word(struct stack_reader *reader, const struct cpu_regs *regs, unsigned i,
	struct step_guess *guess);
void step_take_guess(const struct step_guess *guess, struct cpu_regs *regs);

/* Whether a read that failed there means that the stack goes on where the copy does not reach. */
bool step_is_beyond_copy(const struct stack_reader *reader, uint64_t addr);

#endif
