/* SPDX-License-Identifier: MIT */
/* Loading BPF programs of any kind, and running one without attaching it. */
#ifndef WEIR_BPF_PROGRAM_H
#define WEIR_BPF_PROGRAM_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "bpf/code.h"
#include "bpf/verifier_log.h"

struct bpf_program_spec {
	enum bpf_prog_type type;
	uint32_t attach_type;	/* expected_attach_type; 0 = none */
	uint32_t attach_btf_id; /* TRACING: the function */
	bool can_sleep;
	const char *name; /* cut to 15 characters; what is no letter or digit becomes _ */
	const struct bpf_insn *insns;
	size_t n_insns;
	/* When btf_fd is not 0: the type of the program's function in that BTF, and instructions
	 * that the kernel completes. */
	int btf_fd;
	uint32_t function_type;
	const struct bpf_core_relo *relocations;
	uint32_t n_relocations;
	/* Functions that helpers call: the first instruction of each, in their order. The kernel wants
	 * a BTF with them, which is made here. */
	const uint32_t *functions;
	uint32_t n_functions;
};

/* A descriptor or -errno. `log`, when not NULL, gets what the verifier says. */
int bpf_program_open(const struct bpf_program_spec *spec, char *log, size_t log_bytes);
/* Once more, for one that was refused: with a log, and what the verifier complains about in it. */
int bpf_program_open_logged(
	const struct bpf_program_spec *spec, struct verifier_complaint *complaint);
/* A plain program, with a sentence: a descriptor, or a negative code. When the verifier refuses it,
 * its complaint is in the sentence. */
int bpf_program_load(
	enum bpf_prog_type type, const char *name, const struct bpf_code *code, struct err *err);
/* Runs a RAW_TRACEPOINT program once, here, with zeros as its context (Linux 5.10): 0 or -errno. */
int bpf_program_run(int program_fd);

/* While the descriptor is open the kernel keeps the run time of programs (Linux 5.8); or -errno. */
int bpf_run_time_enable(void);
struct bpf_run_time {
	uint64_t ns, n_runs;
};
int bpf_program_run_time(int program_fd, struct bpf_run_time *out); /* 0 or -errno */
/* How often the kernel has skipped it, since BPF was at work on the CPU (Linux 5.12; before that 0 is said). */
int bpf_program_missed(int program_fd, uint64_t *out);

#endif
