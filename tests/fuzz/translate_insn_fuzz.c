/* SPDX-License-Identifier: MIT */
/* Any bytes as code, decoded at every one of them by the translator: nothing lies outside of the instruction, and
 * where Zydis knows it, both say the same. */
#include <stdlib.h>

#include "../unit/rt/translate/insn_compare.h"

#define AT 0x555555554000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check(const struct insn *insn, size_t n)
{
	if (insn->length > n || insn->length > INSN_BYTES_MAX)
		abort();
	if (insn->kind == INSN_UNKNOWN) {
		if (insn->registers != 0xffff || insn->flags_read != INSN_FLAGS || insn->flags_written)
			abort();
		return;
	}
	if (!insn->length || insn->kind > INSN_XBEGIN || insn->n_prefixes > insn->opcode_at)
		abort();
	if (insn->opcode_at >= insn->length || insn->modrm_at >= insn->length)
		abort();
	if (insn->disp_at && (insn->disp_at <= insn->modrm_at || insn->disp_at + 4 > insn->length))
		abort();
	if ((insn->flags_read | insn->flags_written) & ~INSN_FLAGS)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct insn_comparison c;

	for (size_t at = 0; at < n; at++) {
		insn_compare(&c, data + at, n - at, AT + at);
		check(&c.insn, n - at);
		if (c.verdict == VERDICT_WRONG)
			abort();
	}
	return 0;
}
