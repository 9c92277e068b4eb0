/* SPDX-License-Identifier: MIT */
/* BPF instructions as text, in the way of the kernel's own listings. */
#ifndef WEIR_BPF_PRINT_H
#define WEIR_BPF_PRINT_H

#include <linux/bpf.h>
#include <stdbool.h>

#include "base/buf.h"

/* One instruction: "r0 = *(u64 *)(r6 + 112)", "if r1 == 0 goto +3", "call probe_read_user". `next`
 * is the second half of a 64-bit constant, or NULL. */
void bpf_insn_print(const struct bpf_insn *insn, const struct bpf_insn *next, struct buf *out);
/* "map_lookup_elem", or NULL when this header's kernel does not know the helper. */
const char *bpf_helper_name(int32_t number);

static inline bool bpf_insn_is_wide(const struct bpf_insn *insn)
{
	return insn->code == (BPF_LD | BPF_DW | BPF_IMM);
}

#endif
