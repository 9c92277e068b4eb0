/* SPDX-License-Identifier: MIT */
/* Names of addresses in a folder of uftrace: what processes had mapped (sid-*.map), and symbols of files (*.sym). */
#ifndef WEIR_FORMATS_FOREIGN_UFTRACE_SYMBOLS_H
#define WEIR_FORMATS_FOREIGN_UFTRACE_SYMBOLS_H

#include "base/map.h"
#include "base/mem.h"
#include "base/span.h"

struct uftrace_symbol {
	uint64_t addr; /* in the file */
	uint32_t name; /* id in texts */
};

struct uftrace_file {
	char *path;
	VEC(struct uftrace_symbol) symbols; /* by address */
};

struct uftrace_mapping {
	uint64_t start, end, offset;
	size_t file;
};

/* What a program had mapped from a time on. */
struct uftrace_session {
	uint32_t pid;
	uint64_t time_ns;
	VEC(struct uftrace_mapping) mappings;
};

struct uftrace_symbols {
	const char *folder;
	struct intern texts;
	VEC(struct uftrace_file) files;
	VEC(struct uftrace_session) sessions;
};

void uftrace_symbols_add_session(
	struct uftrace_symbols *s, uint32_t pid, uint64_t time_ns, struct span sid);
/* NULL: nothing is there. `addr` becomes that of the file, `name` its id in texts + 1, 0: not known. */
const struct uftrace_file *uftrace_symbols_find(const struct uftrace_symbols *s, uint32_t pid,
	uint64_t time_ns, uint64_t *addr, uint32_t *name);
void uftrace_symbols_release(struct uftrace_symbols *s);

#endif
