/* SPDX-License-Identifier: MIT */
/* From intermediate code to BPF. */
#ifndef WEIR_PROBE_COMPILE_EMIT_BPF_H
#define WEIR_PROBE_COMPILE_EMIT_BPF_H

#include "base/err.h"
#include "bpf/code.h"
#include "probe/compile/ir.h"
#include "probe/stream/stream.h"

/* Appends the code to `code`. Fails when it needs more stack than there is or is too long. */
struct emit_out {
	struct bpf_code *code;
	struct stream_line *lines; /* owned by the caller: free() */
	size_t n_lines;
	size_t boundary_ir;	/* in: an instruction of the intermediate code, */
	size_t boundary_insn;	/* out: the first BPF instruction that belongs to it */
	uint32_t scratch_bytes; /* of scratch memory; 0 = none */
	uint32_t functions_n;	/* instructions at the end that are functions */
};
int emit_code(const struct ir *ir, struct emit_out *out, struct err *err);

#endif
