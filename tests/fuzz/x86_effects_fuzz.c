/* SPDX-License-Identifier: MIT */
/* Any bytes as 64-bit code: what decodes has effects that fit together, and both ways to decode
 * an instruction say the same of it. */
#include <stdlib.h>

#include "arch/x86_effects.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static bool is_same(const struct x86_insn *a, const struct x86_insn *b)
{
	return a->length == b->length && a->flow == b->flow && a->has_target == b->has_target &&
	       a->target == b->target && a->is_nop == b->is_nop && a->is_endbr == b->is_endbr &&
	       a->is_padding == b->is_padding && a->disp_at == b->disp_at &&
	       a->disp_target == b->disp_target && a->rel_at == b->rel_at &&
	       a->rel_bytes == b->rel_bytes && a->opcode == b->opcode &&
	       a->modrm_at == b->modrm_at && a->is_bound == b->is_bound;
}

static void check(const struct x86_effects *e, const struct x86_insn *insn)
{
	if ((e->kills & e->writes) != e->kills || e->flags_written > X86_FLAGS_ALL ||
		e->flags_read > X86_FLAGS_ALL)
		abort();
	if ((e->flags_killed & e->flags_written) != e->flags_killed)
		abort();
	if (e->is_privileged && (e->reads != X86_REGS_ALL || e->kills))
		abort();
	if ((insn->flow == X86_FLOW_CALL || insn->flow == X86_FLOW_CALL_FAR ||
		    insn->flow == X86_FLOW_RETURN || insn->flow == X86_FLOW_SYSCALL) &&
		(e->reads != X86_REGS_ALL || e->kills || e->flags_killed ||
			e->flags_read != X86_FLAGS_ALL))
		abort();
	if (e->is_rep && (e->kills || e->flags_killed))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	for (size_t at = 0; at < n;) {
		struct span code = {data + at, n - at};
		struct x86_insn insn, both, elsewhere;
		struct x86_effects e, alone;
		bool is_code = x86_decode(&insn, code, 0x8000000 + at, true);

		if (x86_decode_effects(&both, &e, code, 0x8000000 + at) != is_code ||
			x86_decode_effects(&elsewhere, &alone, code, 0) != is_code)
			abort();
		if (!is_code) {
			at++;
			continue;
		}
		if (!is_same(&insn, &both) || e.reads != alone.reads || e.kills != alone.kills ||
			e.flags_read != alone.flags_read || e.flags_killed != alone.flags_killed)
			abort();
		check(&e, &insn);
		at += insn.length;
	}
	return 0;
}
