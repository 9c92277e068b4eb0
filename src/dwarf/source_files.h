/* SPDX-License-Identifier: MIT */
/* Full names of the files that a line table lists, put together when first asked for. */
#ifndef WEIR_DWARF_SOURCE_FILES_H
#define WEIR_DWARF_SOURCE_FILES_H

#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "dwarf/line_table.h"

#define SOURCE_PATH_MAX 8192 /* bytes of a full name; longer ones are cut */

/* Zero-initialise; release `ids`. */
struct source_files {
	const struct line_table *table;
	struct dwarf_unit_map *out; /* whose files and texts are filled */
	VEC(uint32_t) ids;	    /* by number in the table: id + 1; 0 = not asked for yet */
	char *room;		    /* where the next name goes, in the last text of out->owned */
	size_t n_room;
	uint64_t budget; /* bytes of names that may still be made */
};

/* `table` may change between resets, but not what it holds; NULL when there is none. */
void source_files_reset(
	struct source_files *f, const struct line_table *table, struct dwarf_unit_map *out);

uint32_t source_files_add(struct source_files *f, uint64_t number);

/* The id of a file in `out`, by its number in the table; 0 when the table has none such. */
static inline uint32_t source_files_id(struct source_files *f, uint64_t number)
{
	if (number < f->ids.n && f->ids.v[number])
		return f->ids.v[number] - 1;
	return source_files_add(f, number);
}

/* Joins the parts, the last absolute one first, and cuts "./", "//" and "x/../". Returns the length
 * written to `out`, which has SOURCE_PATH_MAX bytes. */
size_t source_path_join(const struct dwarf_text *parts, size_t n, char *out);

#endif
