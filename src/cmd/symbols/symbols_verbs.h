/* SPDX-License-Identifier: MIT */
/*
 * The verbs of `weir symbols`: what they share. Each verb is a function that takes the call and
 * returns the exit status, or a negative code with the sentence in `err`; the list of verbs is in
 * symbols.c.
 */
#ifndef WEIR_CMD_SYMBOLS_SYMBOLS_VERBS_H
#define WEIR_CMD_SYMBOLS_SYMBOLS_VERBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "cmd/options.h"
#include "cmd/report/rows.h"
#include "symbols/catalog/catalog.h"

#define SYMBOLS_NUMBER_ABSENT UINT64_MAX /* of an option that was not given */

struct symbols_arguments {
	const char *output, *catalog, *image, *trace;
	uint64_t pid, threads, limit;
	bool kernel, no_search, columns, symbols, json, quiet;
};

struct symbols_call {
	const struct command *command;
	const char *verb;
	const struct symbols_arguments *args;
	char **operands; /* without the verb */
	size_t n_operands;
	/* --catalog, else the user's own; NULL when there is neither. */
	const char *catalog_path;
	/* Opened for verbs that only read it; NULL when there is none. */
	struct catalog *catalog;
};

int symbols_merge(const struct symbols_call *call, struct err *err);
int symbols_add(const struct symbols_call *call, struct err *err);
int symbols_remove(const struct symbols_call *call, struct err *err);
int symbols_list(const struct symbols_call *call, struct err *err);
int symbols_show(const struct symbols_call *call, struct err *err);
int symbols_resolve(const struct symbols_call *call, struct err *err);
int symbols_verify(const struct symbols_call *call, struct err *err);
int symbols_diff(const struct symbols_call *call, struct err *err);
int symbols_compact(const struct symbols_call *call, struct err *err);
int symbols_stats(const struct symbols_call *call, struct err *err);

/* --- the catalog (symbols_catalog.c) --- */

/* Fails with a sentence that says how to make one. */
int symbols_catalog_open(const struct symbols_call *call, struct catalog **out, struct err *err);
/* What is damaged in it, on stderr. */
void symbols_say_notes(const struct catalog *c, const char *path);
/* The same, but a default catalog that is not there is no failure: *out is then NULL. */
int symbols_catalog_open_if_any(
	const struct symbols_call *call, struct catalog **out, struct err *err);
/* The path of the catalog that is to be written, or a failure when there is none. */
int symbols_catalog_path(const struct symbols_call *call, const char **path, struct err *err);
/* The one image that `text` names: an id, a path, the unique beginning of an id (4 digits or more),
 * or a file name that only one image has. Several: a failure that lists their ids. */
int symbols_catalog_choose(
	const struct catalog *c, const char *text, size_t *image, struct err *err);
/* SIZE_MAX when there is no image with exactly this id. */
size_t symbols_catalog_find_id(const struct catalog *c, const char *id);

/* --- a process (symbols_process.c) --- */

struct merge;
/* Everything executable that the process has mapped, its perf map and jitdump, its vdso. */
int symbols_merge_process(struct merge *merge, pid_t pid, struct err *err);

/* --- printing (symbols_catalog.c) --- */

unsigned symbols_n_threads(const struct symbols_call *call);
/* Hexadecimal digits; `to` is replaced. */
const char *symbols_hex(struct span bytes, struct buf *to);
/* "x86-64", "i386", ..., "machine 183"; `to` is replaced. */
const char *symbols_machine(uint16_t machine, struct buf *to);
/* "symtab+dwarf": the kinds of an image's sources, each once; `to` is replaced. */
const char *symbols_source_kinds(struct catalog_image *image, struct buf *to);

/* {"weir": 1, "kind": "symbols", "verb": ...: the caller adds to it and ends it. */
void symbols_json_begin(struct json *j, const struct symbols_call *call);
/* Rows for people or for JSON, whose object has the catalog in front; rows_end ends them. */
void symbols_rows_begin(struct rows *r, const struct symbols_call *call, const char *catalog);
void symbols_json_address(struct json *j, const char *key, bool is_known, uint64_t value);
void symbols_json_hex(struct json *j, const char *key, struct span bytes);
/* A row for each source of the image. */
void symbols_put_sources(struct rows *r, struct catalog_image *image);
/* Values of a row: id, path, base_name, bits, machine, build_id, symbols, lines, bytes; without a
 * base name neither that nor bytes. */
void symbols_put_entry(struct rows *r, const struct catalog_entry *e);
/* Columns of it: */
#define SYMBOLS_ENTRY_COLUMNS                                                                      \
	{"id", "Id", COLUMN_LEFT}, {"bits", "Bits", 0}, {"Build-id", "Build-id", COLUMN_LEFT},     \
		{"symbols", "Symbols", 0},                                                         \
	{                                                                                          \
		"lines", "Lines", 0                                                                \
	}

#endif
