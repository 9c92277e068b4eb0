/* SPDX-License-Identifier: MIT */
/* What `weir insert` and `weir count` have in common: options, and printing what was done. */
#ifndef WEIR_CMD_INSERT_OPTIONS_H
#define WEIR_CMD_INSERT_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>

#include "cmd/options.h"
#include "insert/content_hash.h"
#include "insert/insert.h"
#include "insert/link_files.h"
#include "symbols/function_pattern.h"

struct insert_arguments {
	struct option_texts only, skip;
	const char *metrics, *cpu, *time_foreign, *os_calls;
	bool counts, verbose, quiet;
	bool no_cache;		   /* count */
	const char *output, *mode; /* insert; count of a program: output */
	const char *pids;	   /* count of a program */
	double duration_s;	   /* the same */
	bool json;
};

/* Rows of both option tables. */
#define INSERT_OPTION(field) offsetof(struct insert_arguments, field)
#define INSERT_OPTION_ROWS                                                                         \
	{0, "only", OPTION_TEXTS, "PATTERNS", "only functions of these names",                     \
		INSERT_OPTION(only)},                                                              \
		{0, "skip", OPTION_TEXTS, "PATTERNS", "not functions of these names",              \
			INSERT_OPTION(skip)},                                                      \
		{0, "counts", OPTION_FLAG, NULL, "block counts only: no call tree",                \
			INSERT_OPTION(counts)},                                                    \
		{0, "metrics", OPTION_TEXT, "LIST",                                                \
			"instructions, cycles (default: instructions)", INSERT_OPTION(metrics)},   \
		{0, "cpu", OPTION_TEXT, "NAME",                                                    \
			"processor that cycles are modelled for (this one)", INSERT_OPTION(cpu)},  \
		{0, "time-foreign", OPTION_TEXT, "all|slow|none",                                  \
			"calls of code that is not counted: which are timed (slow)",               \
			INSERT_OPTION(time_foreign)},                                              \
	{                                                                                          \
		0, "os-calls", OPTION_TEXT, "own|self|off",                                        \
			"own, self: timed (own); off: --time-foreign none",                        \
			INSERT_OPTION(os_calls)                                                    \
	}

enum foreign_timing {
	FOREIGN_TIMING_ALL,
	FOREIGN_TIMING_SLOW, /* but for those that take less than timing them */
	FOREIGN_TIMING_NONE,
};

/* A pattern of --only or --skip, and what is near to it as long as nothing matches. */
struct insert_wish {
	struct function_pattern pattern;
	bool is_skip, is_matched;
	struct nearest_names near;
};

/* The arguments, understood. Must stay where it is: the options refer to it. */
struct insert_setup {
	struct insert_options options; /* without is_foreign */
	enum foreign_timing timing;
	VEC(struct insert_wish) wishes;
	bool has_only;
};
/* STATUS_DONE, or STATUS_USAGE when something was wrong, which has been said. */
int insert_setup_init(struct insert_setup *setup, const struct command *command,
	const struct insert_arguments *a);
void insert_setup_release(struct insert_setup *setup);
void insert_arguments_release(struct insert_arguments *a);
/* Looks among the functions of an object for what --only and --skip name. */
void insert_setup_match(struct insert_setup *setup, const struct insert_report *r);
/* A sentence on the first pattern that nothing has matched so far; false: there is none. */
bool insert_setup_unmatched(const struct insert_setup *setup, struct err *err);
/* Are calls of a function of this name, which is not counted, timed? */
bool insert_setup_times(const struct insert_setup *setup, const char *name);
/* Everything that makes a difference to the result. */
void insert_setup_hash(const struct insert_setup *setup, struct content_hash *hash);

/* One line: "'libz.a': 15 objects, ...". */
void insert_print_summary(const char *path, const struct insert_report *r, FILE *out);
/* The first note as a sentence on stderr, and how many there are. */
void insert_print_notes(const char *path, const struct insert_report *r);
/* A line for each function; those left alone with the reason. */
void insert_print_functions(const struct insert_report *r, bool only_left_alone, FILE *out);
void insert_print_json(
	const char *in, const char *output, const struct insert_report *r, FILE *out);

#endif
