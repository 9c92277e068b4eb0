/* SPDX-License-Identifier: MIT */
/* One program with one map: what needs more uses bpf/{program,kernel_map,attach}.h. */
#ifndef WEIR_BPF_LOAD_H
#define WEIR_BPF_LOAD_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "bpf/code.h"
#include "bpf/ring.h"

/* A descriptor, or a negative code. Loaded without a log first; when the verifier refuses, once
 * more with one, and its last line is in the sentence. */
int bpf_program_load(
	enum bpf_prog_type type, const char *name, const struct bpf_code *code, struct err *err);

/* A hash map from 32-bit keys to 64-bit values that forgets its oldest entries when it is full. */
int bpf_lru_map_open(uint32_t n_entries, struct err *err);
int bpf_map_set(int map_fd, uint32_t key, uint64_t value);

#endif
