/* SPDX-License-Identifier: MIT */
/*
 * Files of a link and their copies with counting code, made anew or found in the cache: those that the linker
 * is given, and those that link-time optimisation makes while it runs.
 */
#ifndef WEIR_CMD_COUNTED_FILES_H
#define WEIR_CMD_COUNTED_FILES_H

#include "cmd/insert_options.h"
#include "insert/insert.h"
#include "insert/link_files.h"
#include "insert/object_cache.h"

/* One file of the link; inputs may name it several times. */
struct counted_file {
	struct link_file file;
	char *copy;    /* NULL: left alone */
	char *failure; /* NULL, or a sentence: why it was, though there is code in it */
	struct insert_report report;
	/* Of a script: shared libraries are not looked for; it was found for a -l. */
	bool is_static, is_library;
	enum { SCRIPT_FRESH, SCRIPT_UNDER_WAY, SCRIPT_DONE } script_state;
};

/* Must stay where it is: the options refer to it. */
struct counted_files {
	const struct insert_arguments *arguments;
	struct insert_setup setup;
	struct object_cache cache;
	struct link_names names;
	VEC(struct counted_file) files;
	uint64_t identity[3]; /* of this program: another version may insert otherwise */
	bool has_stored;
	bool has_seen_all; /* names knows which functions are left alone */
};

/* STATUS_DONE, or what is wrong with the arguments has been said. */
int counted_files_init(struct counted_files *c, const struct insert_arguments *a);
void counted_files_release(struct counted_files *c);
/* Between these two, files can be inserted and stored; copies of a temporary cache last as long. */
int counted_files_begin(struct counted_files *c, struct err *err);
void counted_files_end(struct counted_files *c);

/* Its place in `files`; SIZE_MAX: it cannot be read. */
size_t counted_files_open(struct counted_files *c, const char *path);
/* Objects and archives get copies. */
void counted_files_insert(struct counted_files *c);
bool counted_file_is_inserted(const struct counted_file *f);
/* A file of these bytes; its path, ending in `name`, is the caller's. NULL: it cannot be written. */
char *counted_files_store(struct counted_files *c, struct span bytes, const char *name);

/* As -v and -q want it. */
void counted_files_say(
	const struct counted_files *c, const char *path, const struct insert_report *report);

#endif
