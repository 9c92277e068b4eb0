/* SPDX-License-Identifier: MIT */
/* Points at lines of source: uprobe:PROGRAM@FILE:LINE[:COLUMN]. */
#ifndef WEIR_PROBE_POINTS_SOURCE_LINE_H
#define WEIR_PROBE_POINTS_SOURCE_LINE_H

#include "probe/points/find_sites.h"

/* Whether the point is one; then its file of source is spec->provider, its line and column are
 * spec->address and spec->count (0: any). */
static inline bool point_is_source_line(const struct point_spec *spec)
{
	return spec->kind == POINT_UPROBE && spec->provider;
}

/* Where the line begins, in each function and each place where one was inlined: its lowest address, as
 * debuggers have it. Nothing and a hint in `s` when there is none; negative without debug information. */
struct line_addresses {
	VEC(uint64_t) v;
};
int source_line_find(struct line_addresses *out, struct site_search *s, const struct elf_file *elf,
	const char *path, struct err *err);

#endif
