/* SPDX-License-Identifier: MIT */
/*
 * The engine behind the page: it answers questions to one trace. The page computes no figure of its
 * own. The same engine runs in `weir view` and, made for WebAssembly, in the page that
 * `weir report --html` writes. Questions and answers: docs/format/view-answers.md.
 */
#ifndef WEIR_CMD_VIEW_ENGINE_H
#define WEIR_CMD_VIEW_ENGINE_H

#include "base/buf.h"
#include "calltree/build.h"
#include "cmd/view/question.h"

struct view_engine;

struct view_engine_options {
	const char *exe;   /* as of reports */
	const char *other; /* path of the trace that this one is compared with; NULL: none */
};

/* What only some engines can do (source lines need files of the machine): those kinds of question. */
struct view_more {
	void *ctx;
	int (*answer)(void *ctx, const struct question *q, struct buf *out, struct err *err);
};

/* Takes the reader over. `more` may be NULL. */
struct view_engine *view_engine_new(struct trace_reader *reader, const struct view_more *more);
void view_engine_free(struct view_engine *e);

/* JSON begins with '{'; everything else is arrays (view_arrays.h). Fails with the sentence for the page:
 * ERR_FORMAT, ERR_LIMIT: the question is wrong; ERR_NOT_FOUND: it is about something that is not there. */
int view_answer(
	struct view_engine *e, const char *question, size_t n, struct buf *out, struct err *err);

/* ---- for the kinds of answer ---- */

/* Keys of every question about a profile: metric, thread, from, to, transform. */
#define VIEW_SELECTION "metric thread from to transform"

/* The profile that the question selects; it belongs to the engine, until the next question. */
int view_profile(
	struct view_engine *e, const struct question *q, struct profile **out, struct err *err);
const struct trace_reader *view_reader(const struct view_engine *e);

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
int view_answer_timeline(
	struct view_engine *e, const struct question *q, struct buf *out, struct err *err);
int view_answer_graph(
	struct view_engine *e, const struct question *q, struct buf *out, struct err *err);

#endif
