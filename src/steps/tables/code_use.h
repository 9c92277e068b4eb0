/* SPDX-License-Identifier: MIT */
/*
 * The working set of code: how many instructions, bytes, cache lines and pages were executed, and
 * how few of them would do for most of the execution.
 */
#ifndef WEIR_STEPS_TABLES_CODE_USE_H
#define WEIR_STEPS_TABLES_CODE_USE_H

#include <stddef.h>
#include <stdint.h>

#define CODE_LINE_BYTES 64
#define CODE_PAGE_BYTES 4096

/* One instruction that was executed. */
struct code_spot {
	uint32_t group;	 /* what figures are wanted for: an image, a function, ... */
	uint32_t region; /* addresses of different regions are different places */
	uint64_t addr;
	uint64_t executed;
	uint8_t length; /* at least 1 */
};

struct code_use {
	uint32_t group;
	uint64_t executed;
	uint64_t n_insns, n_bytes, n_lines, n_pages; /* distinct ones */
};

/* One use for each group that occurs, most executed first; free() *uses. Sorts `spots`. */
size_t code_use_of_groups(struct code_use **uses, struct code_spot *spots, size_t n);

/* The fewest instructions, lines and pages that begin at least `percent` % of what was executed.
 * An instruction belongs to the line and the page of its first byte. */
struct code_cover {
	unsigned percent;
	uint64_t n_insns, n_lines, n_pages;
};
#define CODE_N_COVERS 3
/* 50, 90 and 99 %. Sorts `spots`. */
void code_covers_get(struct code_cover covers[CODE_N_COVERS], struct code_spot *spots, size_t n);

#endif
