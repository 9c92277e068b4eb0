/* SPDX-License-Identifier: MIT */
/*
 * What differs between two sides of one or several runs each: a row for each function, stack, line or image that has
 * something on either side, with what can be said of it (compare_figures.h). Nothing is scaled but what the question
 * says, and what makes runs hard to compare is noted.
 */
#ifndef WEIR_QUERY_DIFF_RUN_DIFF_H
#define WEIR_QUERY_DIFF_RUN_DIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "query/diff/compare_figures.h"
#include "query/diff/diff_run.h"
#include "query/query.h"

enum run_side { RUNS_BEFORE, RUNS_AFTER, N_RUN_SIDES };
enum diff_per { DIFF_PER_RUN, DIFF_PER_WALL, DIFF_PER_CPU, DIFF_PER_CALL, DIFF_PER_SAMPLE };

struct run_diff_question {
	enum diff_by by;
	enum diff_per per;
	bool with_callees;
	bool is_of_any_program;
	double noise; /* between single runs; negative: COMPARE_NOISE, COMPARE_NOISE_OUTSIDE */
	const struct name_map *map; /* NULL: none */
};

/* A difference of something that is called: dcalls * cost before, and calls after * dcost. */
struct call_split {
	double more_calls, dearer_calls;
};

struct run_diff_caller {
	uint32_t key;					/* 0: the thread */
	double calls[N_RUN_SIDES], values[N_RUN_SIDES]; /* of a run, the mean */
	struct call_split split;
};

struct run_diff_row {
	uint32_t id;			  /* key or path; 0: the total */
	struct compare_question question; /* borrows from the diff */
	struct compare_answer answer;
	bool is_there[N_RUN_SIDES];
	bool is_exact, is_kernel;
	uint64_t samples[N_RUN_SIDES]; /* of all runs */
	double calls[N_RUN_SIDES];     /* of a run, the mean */
	bool has_calls;		       /* on both sides */
	struct call_split split;       /* with has_calls, by function, per run */
	size_t first_caller, n_callers;
};

/* A function of before that may be one of after with another name. */
struct run_diff_rename {
	uint32_t old, new;		 /* keys */
	uint64_t bytes;			 /* of its code, in both; 0: not known */
	uint32_t n_common, n_neighbours; /* callers and callees of both, of either */
};

/* A run, as it was given. */
struct run_diff_run {
	enum run_side side;
	const char *name; /* of its trace */
	uint64_t samples, samples_lost, events_lost;
	bool is_cut; /* the end is missing, or a part could not be read */
};

struct run_diff;

/* The question is kept, and what it borrows. */
struct run_diff *run_diff_new(const struct run_diff_question *q);
void run_diff_free(struct run_diff *d);
/* The profile is not kept. Fails when the run cannot be compared with those that are there, by a sentence. */
int run_diff_add(
	struct run_diff *d, enum run_side side, const struct profile *profile, struct err *err);
/* The metric that the first run has, for the others; NULL before that. */
const char *run_diff_metric(const struct run_diff *d);
/* Once, when all runs are there, at least one a side. */
void run_diff_finish(struct run_diff *d);

const struct run_diff_question *run_diff_question(const struct run_diff *d);
const struct diff_keys *run_diff_keys(const struct run_diff *d);
const char *run_diff_unit(const struct run_diff *d); /* with what it is per: "ns/s"; "1": plain */
size_t run_diff_n_runs(const struct run_diff *d, enum run_side side);
/* All runs: those before, then those after. */
struct run_diff_run run_diff_run(const struct run_diff *d, size_t i);
/* Samples of a run of the side, the mean. */
double run_diff_samples(const struct run_diff *d, enum run_side side);
const struct run_diff_row *run_diff_total(const struct run_diff *d);
/* Surely different ones first, then those of which nothing can be said, then equal ones; the largest difference first. */
size_t run_diff_rows(const struct run_diff *d, const struct run_diff_row **rows);
const struct run_diff_caller *run_diff_callers(
	const struct run_diff *d, const struct run_diff_row *row);
size_t run_diff_renames(const struct run_diff *d, const struct run_diff_rename **renames);
/* Sentences on what makes runs hard to compare. */
size_t run_diff_n_notes(const struct run_diff *d);
const char *run_diff_note(const struct run_diff *d, size_t i);
/* Its name, or all of a stack; into `out`, which is emptied. */
const char *run_diff_name(
	const struct run_diff *d, const struct run_diff_row *row, struct buf *out);
const char *run_diff_image(const struct run_diff *d, const struct run_diff_row *row);

#define RUN_DIFF_COLUMNS "verdict difference before after name"
/* Rows that the query wants, in its order; to be freed. */
size_t run_diff_order(const struct run_diff *d, const struct query *q, size_t **rows);

const char *compare_verdict_name(enum compare_verdict verdict);

#endif
