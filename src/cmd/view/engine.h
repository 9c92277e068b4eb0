/* SPDX-License-Identifier: MIT */
/*
 * The engine behind the page: it answers questions to a trace, or to two that are compared. The page computes no figure of its
 * own. The same engine runs in `weir view` and, made for WebAssembly, in the page that
 * `weir report --html` writes. Questions and answers: docs/format/view-answers.md.
 */
#ifndef WEIR_CMD_VIEW_ENGINE_H
#define WEIR_CMD_VIEW_ENGINE_H

#include "base/buf.h"
#include "calltree/build.h"
#include "cmd/view/question.h"
#include "query/tree_diff.h"

struct view_engine;

/* What only some engines can do (source lines need files of the machine): those kinds of question. */
struct view_more {
	void *ctx;
	int (*answer)(void *ctx, const struct question *q, struct buf *out, struct err *err);
};

/* Takes the readers over. `before`: a second trace, which the first is compared with; NULL: there is none.
 * `more` may be NULL. */
struct view_engine *view_engine_new(
	struct trace_reader *reader, struct trace_reader *before, const struct view_more *more);
void view_engine_free(struct view_engine *e);

/* JSON begins with '{'; everything else is arrays (view_arrays.h). Fails with the sentence for the page:
 * ERR_FORMAT, ERR_LIMIT: the question is wrong; ERR_NOT_FOUND: it is about something that is not there. */
int view_answer(
	struct view_engine *e, const char *question, size_t n, struct buf *out, struct err *err);

/* For another thread, at any time: how far the walk for the present answer is, in records; `whole` 0: there is none. */
void view_progress(const struct view_engine *e, uint64_t *done, uint64_t *whole);
/* From now on an answer is given up, with a failure, once this is set; NULL: never. */
void view_until(struct view_engine *e, const atomic_bool *is_unwanted);

/* ---- for the kinds of answer ---- */

/* What the walks of an answer tell. */
struct progress *view_progress_of(struct view_engine *e);

/* Keys of every question about a profile. */
#define VIEW_SELECTION "metric thread from to transform trace"

/* The profile that the question selects; it belongs to the engine, until the next question. Whatever is
 * answered is of its reader: with two traces there is no other way to know which one is meant. */
int view_profile(
	struct view_engine *e, const struct question *q, struct profile **out, struct err *err);

/* Traces have numbers from 1 on, in order of age: of two, 1 is before and 2 is after. */
uint32_t view_n_traces(const struct view_engine *e);
const struct trace_reader *view_trace(const struct view_engine *e, uint32_t number);

/* Both traces for one selection: [0] before, [1] after. It belongs to the engine, until the next question. */
struct view_comparison {
	struct profile *sides[2];
	const struct tree_diff *diff;
};
int view_compare(struct view_engine *e, const struct question *q, struct view_comparison *out,
	struct err *err);

/* Before, after and their difference as keys of the object that is open: answer_diff.c. */
struct json;
void view_put_function_diff(
	struct json *j, const struct view_comparison *c, const struct tree_diff_row *row);

struct view_kind {
	const char *name;
	const char *keys; /* besides the selection; NULL: none at all, not even that */
	int (*answer)(
		struct view_engine *e, const struct question *q, struct buf *out, struct err *err);
};
/* Up to a NULL name; the list is in kinds_of_answer.c. */
extern const struct view_kind view_kinds[];

int view_answer_meta(
	struct view_engine *e, const struct question *q, struct buf *out, struct err *err);
int view_answer_report(
	struct view_engine *e, const struct question *q, struct buf *out, struct err *err);
int view_answer_names(
	struct view_engine *e, const struct question *q, struct buf *out, struct err *err);
int view_answer_tree(
	struct view_engine *e, const struct question *q, struct buf *out, struct err *err);
int view_answer_callers(
	struct view_engine *e, const struct question *q, struct buf *out, struct err *err);
int view_answer_matches(
	struct view_engine *e, const struct question *q, struct buf *out, struct err *err);
int view_answer_timeline(
	struct view_engine *e, const struct question *q, struct buf *out, struct err *err);
int view_answer_diff(
	struct view_engine *e, const struct question *q, struct buf *out, struct err *err);
int view_answer_diff_functions(
	struct view_engine *e, const struct question *q, struct buf *out, struct err *err);
int view_answer_diff_graph(
	struct view_engine *e, const struct question *q, struct buf *out, struct err *err);
int view_answer_graph(
	struct view_engine *e, const struct question *q, struct buf *out, struct err *err);

#endif
