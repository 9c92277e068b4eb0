/* SPDX-License-Identifier: MIT */
/*
 * What a return probe may do to the program it looks at. The kernel replaces the return address of
 * the function by one of its own. Whoever walks the stack meets that: an exception or panic that
 * passes through the function finds no way on and ends the program, and Go's runtime, which moves
 * stacks, ends it in any case.
 */
#ifndef WEIR_PROBE_POINTS_UNWIND_RISK_H
#define WEIR_PROBE_POINTS_UNWIND_RISK_H

#include "elf/elf_file.h"

enum unwind_risk {
	UNWIND_RISK_NONE,	/* nobody walks its stacks, as far as its names say */
	UNWIND_RISK_EXCEPTIONS, /* C++ */
	UNWIND_RISK_PANICS,	/* Rust */
	UNWIND_RISK_GO
};

enum unwind_risk unwind_risk_of(const struct elf_file *elf);

#endif
