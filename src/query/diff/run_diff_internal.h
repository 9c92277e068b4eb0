/* SPDX-License-Identifier: MIT */
/* The diff from inside: run_diff.c (runs and rows), run_checks.c (whether runs can be compared), call_split.c and
 * renames.c. */
#ifndef WEIR_QUERY_DIFF_RUN_DIFF_INTERNAL_H
#define WEIR_QUERY_DIFF_RUN_DIFF_INTERNAL_H

#include "query/diff/run_diff.h"

/* What a trace says of its run. */
struct run_facts {
	char *name, *program, *arguments, *host, *frequency; /* NULL: not said */
	bool is_measured, is_counted;
	uint64_t samples, samples_lost, events_lost;
	bool is_cut;
};

struct run_diff {
	struct run_diff_question question;
	struct diff_keys keys;
	VEC(struct diff_run) sides[N_RUN_SIDES];
	VEC(struct run_facts) facts; /* of all runs */
	char *metric, *unit;
	VEC(char *) notes;
	bool told_arguments, told_host, told_frequency, told_how; /* of some run: that is enough */
	struct figure *figures; /* of all rows, run by run: what their questions borrow */
	struct run_diff_row total;
	VEC(struct run_diff_row) rows;
	VEC(struct run_diff_caller) callers;
	VEC(struct run_diff_rename) renames;
	size_t n_without_calls; /* rows that are left out, with DIFF_PER_CALL */
};

void run_diff_add_note(struct run_diff *d, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Keeps what the trace says of the run, or refuses it. */
int run_diff_check(struct run_diff *d, const struct diff_run *run, const struct profile *profile,
	struct err *err);
void run_facts_release(struct run_facts *facts);
/* Callers and split of each row. Rows are in the order of their ids. */
void run_diff_split_calls(struct run_diff *d);
void run_diff_find_renames(struct run_diff *d);

#endif
