/* SPDX-License-Identifier: MIT */
/* Any bytes as the log of the kernel's verifier. */
#include <stdlib.h>
#include <string.h>

#include "bpf/verifier_log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct verifier_complaint c;

	verifier_log_read((struct span){data, n}, &c);
	if (strnlen(c.message, sizeof(c.message)) == sizeof(c.message) || c.insn_i < -1)
		abort();
	/* One line, to be shown on a terminal. */
	for (const char *p = c.message; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			abort();
	return 0;
}
