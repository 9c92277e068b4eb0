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

/* Why this function (NULL: without a name) must have no return probe, or NULL. setjmp and
 * getcontext return to their return address a second time, throwing and dlsym look for its owner,
 * 32-bit code finds its data by it; and what is entered without a call, as _start is, has something
 * else in its place. `code` begins with the function. */
const char *unwind_refusal(const char *function, struct span code);
enum unwind_risk unwind_risk_of(const struct elf_file *elf);

#endif
