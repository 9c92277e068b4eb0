/* SPDX-License-Identifier: MIT */
/* Where the separate debug file of an image lies. */
#ifndef WEIR_SYMBOLS_DEBUG_FILE_H
#define WEIR_SYMBOLS_DEBUG_FILE_H

#include "base/err.h"
#include "base/file.h"
#include "elf/elf_file.h"

/*
 * Finds the debug file that belongs to `elf`, and verifies that it does. Searched in this order,
 * where ROOT is each folder that was asked for, of the colon list $WEIR_DEBUG_PATH, and then
 * /usr/lib/debug:
 *   ROOT/.build-id/xx/yyyy.debug			its build-id must be equal
 *   DIR/LINK, DIR/.debug/LINK, ROOT/DIR/LINK		LINK is the .gnu_debuglink of `elf`, DIR the
 *						folder of `path` with links resolved; the build-ids
 *						must be equal or, when one has none, the CRC-32
 *   ASKED/NAME.debug, ASKED/LINK		NAME is the last part of `path`; likewise
 * `path` may be NULL: then only the build-id is used. *out is the caller's to free. Fails with
 * ERR_NOT_FOUND when nothing is there, and with ERR_FORMAT when something is, but does not match.
 * Reads the whole debug file when a CRC must be compared.
 */
int debug_file_find(const struct elf_file *elf, const char *path, char **out, struct err *err);

/* Folders to be looked into first, in this process; borrowed. */
void debug_files_ask(const char *const *folders, size_t n);

/* A debug file that was found to belong to an image, opened. Zero-initialise. */
struct debug_file {
	char *path;
	struct file_map map;
	struct elf_file elf;
	bool is_open;
	const char *verdict; /* why it belongs: "build-id equal", "debuglink CRC equal" */
};
/* Finds and opens it. */
int debug_file_open(
	struct debug_file *d, const struct elf_file *elf, const char *path, struct err *err);
/* Opens one that was found elsewhere; takes over `found`. */
int debug_file_open_found(
	struct debug_file *d, const struct elf_file *elf, char *found, struct err *err);
void debug_file_close(struct debug_file *d);

#endif
