/* SPDX-License-Identifier: MIT */
/*
 * Plays the module and process records of a trace again and notes what was mapped where, when: one
 * row for every piece of a mapping with its own beginning or end. Only for module_map.c.
 */
#ifndef WEIR_SYMBOLS_RESOLVE_MODULE_REPLAY_H
#define WEIR_SYMBOLS_RESOLVE_MODULE_REPLAY_H

#include "base/err.h"
#include "base/mem.h"
#include "trace/reader.h"

/* A process, and from whom it has what it did not map itself. */
struct module_process {
	uint32_t pid;
	uint64_t start;
	uint32_t parent;    /* index + 1 of the process it was forked from; 0 = none */
	uint64_t fork_time; /* it has the parent's mappings as of then, ... */
	uint64_t since;	    /* ... from then ... */
	uint64_t until;	    /* ... until then: exec, exit or its first own mapping; exclusive */
};

struct module_replay {
	VEC(struct trace_module_span) rows;
	VEC(struct module_process) processes;
	uint64_t n_lost; /* records that were damaged, make no sense or passed a limit */
};

/* With `has_rows` the rows are known from elsewhere: only processes are noted. `out` is
 * initialised; release it even after a failure. */
int module_replay_run(
	struct module_replay *out, const struct trace_reader *r, bool has_rows, struct err *err);
void module_replay_release(struct module_replay *replay);

#endif
