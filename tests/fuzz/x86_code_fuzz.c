/* SPDX-License-Identifier: MIT */
/* Any bytes as code (the first byte's lowest bit says of how many bits), instruction by
 * instruction: nothing lies outside of the instruction that is said to have it. */
#include <stdlib.h>

#include "arch/x86_code.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check(const struct x86_insn *insn, size_t n, bool is_64)
{
	if (!insn->length || insn->length > X86_INSN_BYTES_MAX || insn->length > n)
		abort();
	if (insn->flow > X86_FLOW_SYSCALL || insn->modrm_at >= insn->length)
		abort();
	if (insn->disp_at && (!is_64 || insn->disp_at + 4 > insn->length))
		abort();
	if (insn->has_target != (insn->rel_at != 0) ||
		insn->rel_at + insn->rel_bytes > insn->length)
		abort();
	if (insn->opcode && insn->rel_bytes != 1)
		abort();
	if (!is_64 && insn->target > UINT32_MAX)
		abort();
	if ((insn->is_nop && !insn->is_padding) || (insn->is_nop && insn->is_endbr))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	bool is_64 = n && data[0] & 1;
	struct x86_insn insn;

	if (n && x86_past_stack_write((struct span){data + 1, n - 1}, is_64) > n - 1)
		abort();
	if (n)
		x86_ends_thread((struct span){data + 1, n - 1}, is_64);
	for (size_t at = 1; at < n;) {
		if (!x86_decode(&insn, (struct span){data + at, n - at}, 0x8000000 + at, is_64)) {
			at++;
			continue;
		}
		check(&insn, n - at, is_64);
		at += insn.length;
	}
	return 0;
}
