/* SPDX-License-Identifier: MIT */
/*
 * Which image was mapped where, in which process, when: the module history of a whole trace. Taken
 * from the trace's address index; when it has none, put together from its load, unload, exec and exit
 * records; for processes without any of those, from the snapshots, start first, then end.
 */
#ifndef WEIR_SYMBOLS_MODULE_MAP_H
#define WEIR_SYMBOLS_MODULE_MAP_H

#include "base/addr.h"
#include "base/err.h"
#include "trace/reader.h"

struct module_map;
int module_map_new(struct module_map **out, const struct trace_reader *r, struct err *err);
void module_map_free(struct module_map *m);

size_t module_map_n(const struct module_map *m);
/* By pid, process start, address, time. */
const struct trace_module_span *module_map_get(const struct module_map *m, size_t i);

struct module_query {
	uint32_t pid;
	uint64_t process_start; /* UINT64_MAX = any: the process that `time` falls into, or the last */
	struct vaddr addr;
	uint64_t time; /* UINT64_MAX = the latest span at that address */
};
/* NULL when nothing was mapped there (then). O(log n). */
const struct trace_module_span *module_map_find(
	const struct module_map *m, const struct module_query *query);

/* "overlap", "munmap", "exec", "exit", "pid reused", "gone at the end"; "" for MODULE_END_NONE. */
const char *module_end_name(enum module_end end);

#endif
