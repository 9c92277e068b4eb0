/* SPDX-License-Identifier: MIT */
/*
 * Which image was mapped where, in which process, when: the module history of a whole trace. Taken
 * from the trace's address index; when it has none, put together from its load, unload, fork, exec
 * and exit records and, where those say nothing, from the snapshots, start first, then end.
 *
 * Where the records say only that a mapping was there (a load record is written at the first hit),
 * it counts as there since then, unless it is marked as there from the start.
 */
#ifndef WEIR_SYMBOLS_RESOLVE_MODULE_MAP_H
#define WEIR_SYMBOLS_RESOLVE_MODULE_MAP_H

#include "base/addr.h"
#include "base/err.h"
#include "trace/reader.h"

/* In a row from a load record without a bias, when the image's segments do not tell it either: its
 * addresses cannot be translated, and module_map_find does not give it. */
#define MODULE_BIAS_UNKNOWN UINT64_MAX

struct module_map;
int module_map_new(struct module_map **out, const struct trace_reader *r, struct err *err);
void module_map_free(struct module_map *m);

/* Module records that could not be used: damaged, senseless, or beyond a limit. */
uint64_t module_map_n_lost(const struct module_map *m);

size_t module_map_n(const struct module_map *m);
/* By pid, process start, address, time. */
const struct trace_module_span *module_map_get(const struct module_map *m, size_t i);

struct module_query {
	uint32_t pid;
	uint64_t process_start; /* UINT64_MAX = any: the process that `time` falls into, or the last
				 */
	struct vaddr addr;
	uint64_t time; /* UINT64_MAX = the latest span at that address */
};
/* NULL when nothing was mapped there (then). For what a forked process has from its parent, the
 * answer is the parent's span. O(log n), more when one address had many mappings. */
const struct trace_module_span *module_map_find(
	const struct module_map *m, const struct module_query *query);

/* "overlap", "munmap", "exec", "exit", "pid reused", "gone at the end"; "" for MODULE_END_NONE. */
const char *module_end_name(enum module_end end);

#endif
