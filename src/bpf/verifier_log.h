/* SPDX-License-Identifier: MIT */
/* What the kernel's verifier says about a program, as text: which instruction and why. */
#ifndef WEIR_BPF_VERIFIER_LOG_H
#define WEIR_BPF_VERIFIER_LOG_H

#include <stdint.h>

#include "base/span.h"

#define VERIFIER_MESSAGE_MAX 240

struct verifier_complaint {
	int64_t insn_i;			    /* the instruction that it is about, -1 = not known */
	char message[VERIFIER_MESSAGE_MAX]; /* "R1 invalid mem access 'scalar'"; "" = none found */
};

/* Any text is taken; what is not understood is left out. */
void verifier_log_read(struct span log, struct verifier_complaint *out);

#endif
