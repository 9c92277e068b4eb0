/* SPDX-License-Identifier: MIT */
/*
 * The file of an image whose code was executed, for what was not executed in it: its bytes and its
 * source lines. Only when it is the very file that ran, by its build-id or else by its size and
 * time.
 */
#ifndef WEIR_STEPS_CALLS_STEP_IMAGE_H
#define WEIR_STEPS_CALLS_STEP_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/file.h"
#include "base/mem.h"
#include "elf/elf_file.h"
#include "symbols/debug_file.h"
#include "trace/reader.h"
#include "trace/writer.h"

/* From this address on, up to the next row's. */
struct step_line_row {
	uint64_t addr;
	uint32_t file; /* string of the writer; 0 = not known */
	uint32_t line;
	/* The same but for inlined code: there, where the function has the call. */
	uint32_t own_file, own_line;
};

struct step_image {
	struct file_map map;
	struct elf_file elf;
	struct debug_file debug;
	VEC(struct step_line_row) rows; /* by address; none: no debug information */
};

/* Zero-initialised. False, with the reason in *why, when there is no such file. */
bool step_image_open(
	struct step_image *i, const struct trace_reader *r, uint32_t image, const char **why);
void step_image_close(struct step_image *i);
/* The lines of the units that have one of these addresses, which are in order. */
void step_image_read_lines(struct step_image *i, const char *path, struct trace_writer *w,
	const uint64_t *addrs, size_t n);
/* The row that has the address, from *at on if it is there; one without a file when none has. */
const struct step_line_row *step_image_row(const struct step_image *i, uint64_t addr, size_t *at);

#endif
