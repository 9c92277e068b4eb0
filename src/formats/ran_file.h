/* SPDX-License-Identifier: MIT */
/*
 * The file of an image that ran: its bytes and its source lines, for what a trace or a count file
 * does not tell. Only when it is the very file that ran, by its build-id or else by its size and
 * time.
 */
#ifndef WEIR_FORMATS_RAN_FILE_H
#define WEIR_FORMATS_RAN_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/mem.h"
#include "elf/elf_file.h"
#include "symbols/debug_file.h"
#include "trace/reader.h"
#include "trace/writer.h"

/* From this address on, up to the next row's. */
struct ran_row {
	uint64_t addr;
	uint32_t file; /* string of the writer; 0 = not known */
	uint32_t line;
	/* The same but for inlined code: there, where the function has the call. */
	uint32_t own_file, own_line;
};

/* Zero-initialised. */
struct ran_file {
	struct file_map map;
	struct elf_file elf;
	struct debug_file debug;
	struct dwarf_debug *
		dwarf; /* of the file at dwarf_path, which is this one or its separate debug file */
	const char *dwarf_path; /* NULL: none, or nobody has looked for it */
	char *path;
	VEC(struct ran_row) rows; /* by address; none: no debug information */
};
void ran_file_close(struct ran_file *f);

/* What is known of the file that ran. */
struct ran_identity {
	struct span build_id; /* empty: it has none, or none is known; then: */
	uint64_t bytes, mtime_ns;
	bool has_mtime; /* else any will do */
};
/* NULL when the file that is open and has this state is the one that ran, else why not. */
const char *ran_file_why_another(
	const struct ran_file *f, const struct stat *st, const struct ran_identity *ran);
/* False, with the reason in *why, when there is no such file at the path. */
bool ran_file_open(
	struct ran_file *f, const char *path, const struct ran_identity *ran, const char **why);
/* The file of an image of a trace. */
bool ran_file_open_image(
	struct ran_file *f, const struct trace_reader *r, uint32_t image, const char **why);

/* Opens its debug information, unless it is open; false: there is none. `path` is the image's. */
bool ran_file_open_debug(struct ran_file *f, const char *path);
/* The lines of the units that have one of these addresses, which are put in order. Returns how many
 * units cannot be read; -1 when there is no debug information. */
int ran_file_read_lines(
	struct ran_file *f, const char *path, struct trace_writer *w, uint64_t *addrs, size_t n);
/* The row that has the address, from *at on if it is there; one without a file when none has. */
const struct ran_row *ran_file_row(const struct ran_file *f, uint64_t addr, size_t *at);

/* A function begins at the first of its own lines, in the file of its first instruction: here is
 * where one of its instructions is. Both are 0 before the first. */
void ran_begins_at(uint32_t *file, uint32_t *line, uint32_t own_file, uint32_t own_line);

#endif
