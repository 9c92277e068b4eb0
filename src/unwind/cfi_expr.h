/* SPDX-License-Identifier: MIT */
/* DWARF expressions as far as call-frame information may use them (DWARF 5 section 6.4.2). */
#ifndef WEIR_UNWIND_CFI_EXPR_H
#define WEIR_UNWIND_CFI_EXPR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"
#include "unwind/stack_reader.h"
#include "unwind/unwind.h"

/* Runs the expression over the registers of the frame, with *cfa on the stack at the start when it
 * is not NULL. False, with `result` untouched, when an operation is not supported, a register is
 * not known, memory cannot be read (reader->failed says so), or a limit is passed. */
bool cfi_expr_run(struct span expr, const struct cpu_regs *regs, struct stack_reader *reader,
	const uint64_t *cfa, uint64_t *result);

#endif
