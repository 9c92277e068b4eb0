/* SPDX-License-Identifier: MIT */
/*
 * Reports: a renderer takes a profile and writes it to a stream, as text for people or as one JSON
 * object (names and nulls as the command-line contract has them). The kinds are listed in kinds.c.
 */
#ifndef WEIR_CMD_REPORT_REPORT_H
#define WEIR_CMD_REPORT_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "base/json.h"
#include "cmd/report/terminal.h"
#include "query/query.h"

struct report_options {
	bool json;
	bool human;   /* 1.2 ms instead of plain integers */
	bool percent; /* further columns with shares of the total */
	bool elapsed; /* a further column with the time between entry and exit */
	bool color;
	bool plain;		  /* the same on a terminal as in a pipe */
	struct terminal terminal; /* that it is shown on, when it is shown as there */
	struct query query;
	const char *function; /* source: which one */
	bool blocks;	      /* source: each block of a line too */
	bool assembly;	      /* source: the instructions too */
	const char *exe;      /* the program, when it is elsewhere now; NULL = where it was */
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
	const struct build_options *selection; /* thread, from, to */
	const struct steps *steps;	       /* of kinds that walk them instead of a profile */
	/* The profile's, or of the steps that were walked: the renderer adds to it, and sets is_cut. */
	struct loss *loss;
};

struct report_kind {
	const char *name;
	const char *options; /* long names of those that it knows, separated by blanks */
	const char *columns; /* that --sort accepts, likewise; NULL = cannot be sorted */
	/* As text or JSON. Fails when the trace cannot be read again, or does not have what is to be
	 * shown. */
	int (*render)(const struct report *report, struct err *err);
	bool by_steps;	 /* walks the steps of the trace; no profile is built */
	bool shows_loss; /* its text says what was lost */
};

#define REPORT_N_KINDS 15
extern const struct report_kind report_kinds[REPORT_N_KINDS];
/* NULL when there is none. */
const struct report_kind *report_kind_find(const char *name);

int summary_report(const struct report *report, struct err *err);
int flat_report(const struct report *report, struct err *err);
int tree_report(const struct report *report, struct err *err);
int arcs_report(const struct report *report, struct err *err);
int samples_report(const struct report *report, struct err *err);
int threads_report(const struct report *report, struct err *err);
int modules_report(const struct report *report, struct err *err);
int hooks_report(const struct report *report, struct err *err);
int probes_report(const struct report *report, struct err *err);
int loss_report(const struct report *report, struct err *err);
int source_report(const struct report *report, struct err *err);
int coverage_report(const struct report *report, struct err *err);
int steps_report(const struct report *report, struct err *err);
int branches_report(const struct report *report, struct err *err);
int mix_report(const struct report *report, struct err *err);

/* loss_report.c: the "loss" object; and the one line on stderr about data that was lost, for texts that
 * do not say it: people look neither at exit statuses nor at other reports. */
void report_json_loss(struct json *j, const struct loss *loss);
void loss_say(const char *trace, const struct loss *loss);
/* The text, or null when it is empty. */
void report_json_text(struct json *j, const char *key, const char *text);

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
