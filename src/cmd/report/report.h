/* SPDX-License-Identifier: MIT */
/*
 * Reports: a renderer takes a profile and writes it to a stream, as text for people or as one JSON
 * object (names and nulls as the command-line contract has them). The kinds are listed in kinds.c.
 */
#ifndef WEIR_CMD_REPORT_REPORT_H
#define WEIR_CMD_REPORT_REPORT_H

#include <regex.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "base/json.h"
#include "calltree/build.h"
#include "calltree/flat.h"

struct report_options {
	bool json;
	bool human;   /* 1.2 ms instead of plain integers */
	bool percent; /* further columns with shares of the total */
	bool elapsed; /* a further column with the time between entry and exit */
	bool color;
	const char *sort;      /* a column, NULL = the kind's own order */
	uint64_t limit;	       /* rows; 0 = all */
	const regex_t *filter; /* on names; NULL = all */
	const char *function;  /* source: which one */
	bool blocks;	       /* source: each block of a line too */
	bool assembly;	       /* source: the instructions too */
	const char *exe;       /* the program, when it is elsewhere now; NULL = where it was */
	/* steps: */
	uint64_t at, back;  /* begin with step `at`, or `back` steps before it */
	bool interleave;    /* threads by time, not one after the other */
	bool fold;	    /* repetitions once, with their number */
	bool source_lines;  /* the text of source lines too */
	const char *syntax; /* "att", "intel"; NULL = att */
	bool returns;	    /* branches: where returns went, too */
};

struct steps;

struct report {
	const struct trace_reader *reader;
	const struct profile *profile;
	const struct report_options *options;
	FILE *out;
	/* Kinds that walk steps have these instead of a profile: */
	const struct steps *steps;
	const struct build_options *selection; /* thread, from, to */
	struct loss *loss; /* of what was walked; the renderer adds to it, and sets is_cut */
};

struct report_kind {
	const char *name;
	const char *summary; /* one phrase for the help */
	const char *const
		*columns; /* that --sort accepts, ended by NULL; NULL = cannot be sorted */
	/* Both renderers fail when the trace cannot be read again, or does not have what they show.
	 */
	int (*text)(const struct report *report, struct err *err);
	int (*json)(const struct report *report, struct err *err);
	bool by_steps; /* walks the steps of the trace; no profile is built */
};

extern const struct report_kind report_kinds[]; /* ended by a row without a name */
const struct report_kind *report_kind_find(const char *name);
bool report_kind_sorts_by(const struct report_kind *kind, const char *column);

int flat_text(const struct report *report, struct err *err);
int flat_json(const struct report *report, struct err *err);
int tree_text(const struct report *report, struct err *err);
int tree_json(const struct report *report, struct err *err);
int arcs_text(const struct report *report, struct err *err);
int arcs_json(const struct report *report, struct err *err);
int samples_text(const struct report *report, struct err *err);
int samples_json(const struct report *report, struct err *err);
int threads_text(const struct report *report, struct err *err);
int threads_json(const struct report *report, struct err *err);
int hooks_text(const struct report *report, struct err *err);
int hooks_json(const struct report *report, struct err *err);
int modules_text(const struct report *report, struct err *err);
int modules_json(const struct report *report, struct err *err);
int probes_text(const struct report *report, struct err *err);
int probes_json(const struct report *report, struct err *err);
int loss_text(const struct report *report, struct err *err);
int loss_json(const struct report *report, struct err *err);
int source_text(const struct report *report, struct err *err);
int source_json(const struct report *report, struct err *err);
int coverage_text(const struct report *report, struct err *err);
int coverage_json(const struct report *report, struct err *err);
int steps_text(const struct report *report, struct err *err);
int steps_json(const struct report *report, struct err *err);
int branches_text(const struct report *report, struct err *err);
int branches_json(const struct report *report, struct err *err);
int mix_text(const struct report *report, struct err *err);
int mix_json(const struct report *report, struct err *err);
int summary_text(const struct report *report, struct err *err);
int summary_json(const struct report *report, struct err *err);

extern const char *const flat_columns[],
	*const tree_columns[], *const threads_columns[], *const hooks_columns[],
								 *const branches_columns[];

/* Opens the trace and writes its summary. *had_losses (may be NULL) is set on success. */
int report_summary(
	const char *trace_path, FILE *out, bool color, bool *had_losses, struct err *err);

/* The JSON object around the rows; report_json_end writes the loss object and closes. */
void report_json_begin(struct json *j, const struct report *report, const char *kind);
/* The same without a profile, for kinds that walk steps: the metric is instructions. */
void report_json_begin_steps(
	struct json *j, const struct report *report, const char *kind, uint64_t total);
void report_json_rows(struct json *j);				   /* begins "rows" */
void report_json_end(struct json *j, const struct report *report); /* ends "rows" too */
void report_json_loss(struct json *j, const char *key, const struct loss *loss);
/* A number, or null when it was not measured. */
void report_json_measured(struct json *j, const char *key, bool is_measured, uint64_t value);
/* The text, or null when it is empty. */
void report_json_text(struct json *j, const char *key, const char *text);
void report_json_flat_row(struct json *j, const struct report *report, const struct flat_row *row);

/* Selected rows in the order asked for; free(*rows). */
size_t report_select_flat(const struct report *report, const struct flat *flat, size_t **rows);
bool report_name_matches(const struct report *report, const char *name);
const char *report_routine_kind(const struct calltree_routine *routine);
/* "+" in front of what is known from samples alone, in a profile that has events too. */
const char *report_mark(const struct report *report, uint32_t routine);
/* Whether base and cum of a row or node were measured: by events, or by samples with a weight. */
bool report_is_measured(const struct report *report, bool is_exact);
/* Whether calls were counted, and cum of a routine can be known: a program may count its blocks
 * alone. */
bool report_has_calls(const struct report *report);
bool report_has_cum(const struct report *report, uint32_t routine);
/* The sentence for a report that needs calls, of a profile whose figures are by function. */
int report_no_tree(const struct report *report, struct err *err);

#endif
