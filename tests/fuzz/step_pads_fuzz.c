/* SPDX-License-Identifier: MIT */
/* ELF files of any bytes, asked for the landing pads of calls: an answer or none. */
#include <stdint.h>
#include <stdlib.h>

#include "steps/calls/step_pads.h"

#define ASKED_MAX 200 /* functions of a file */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct step_pad_table t = {0};
	struct elf_file elf;

	if (elf_file_init(&elf, (struct span){data, n}, NULL) < 0)
		return 0;
	step_pad_table_init(&t, &elf);
	for (size_t i = 0; i < t.functions.n && i < ASKED_MAX; i++) {
		const struct step_pad_function *f = &t.functions.v[i];
		uint64_t pad = 1;

		if (f->end <= f->start || (i && f->start < f[-1].start))
			abort();
		for (uint64_t k = 0; k < 64 && k < f->end - f->start; k += 5)
			step_pad_table_find(&t, &elf, f->start + k, &pad);
		step_pad_table_find(&t, &elf, f->end - 1, &pad);
	}
	step_pad_table_release(&t);
	elf_file_release(&elf);
	return 0;
}
