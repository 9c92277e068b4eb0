/* SPDX-License-Identifier: MIT */
/*
 * A page asks several questions to one selection, so the profiles of the last few selections are kept; the
 * text that says a selection is their key.
 */
#include "cmd/view/engine.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "query/transform.h"

#define N_KEPT	 4 /* at least two: a comparison needs both at once */
#define N_TRACES 2

static const char *const selection_keys[] = {
	"metric", "thread", "from", "to", "transform", "trace"};
#define N_SELECTION_KEYS (sizeof(selection_keys) / sizeof(selection_keys[0]))

struct kept {
	char *selection; /* NULL: free */
	char *metric;	 /* which the profile borrows */
	struct profile *profile;
	uint64_t met;  /* transforms that met a function, when it is one of two */
	uint64_t used; /* the engine's count then */
};

struct view_engine {
	struct trace_reader *traces[N_TRACES];
	uint32_t n_traces;
	struct view_more more;
	struct kept kept[N_KEPT];
	uint64_t n_used;
	struct progress progress;
	char *diff_selection; /* what `diff` is of; NULL: there is none */
	struct tree_diff diff;
};

struct view_engine *view_engine_new(
	struct trace_reader *reader, struct trace_reader *before, const struct view_more *more)
{
	struct view_engine *e = mem_zalloc(sizeof(*e));

	if (before)
		e->traces[e->n_traces++] = before;
	e->traces[e->n_traces++] = reader;
	if (more)
		e->more = *more;
	return e;
}

static void diff_release(struct view_engine *e)
{
	if (e->diff_selection)
		tree_diff_release(&e->diff);
	free(e->diff_selection);
	e->diff_selection = NULL;
}

static void kept_release(struct kept *k)
{
	profile_free(k->profile);
	free(k->selection);
	free(k->metric);
	memset(k, 0, sizeof(*k));
}

void view_engine_free(struct view_engine *e)
{
	if (!e)
		return;
	for (int i = 0; i < N_KEPT; i++)
		kept_release(&e->kept[i]);
	diff_release(e);
	for (uint32_t i = 0; i < e->n_traces; i++)
		trace_reader_close(e->traces[i]);
	free(e);
}

uint32_t view_n_traces(const struct view_engine *e)
{
	return e->n_traces;
}

const struct trace_reader *view_trace(const struct view_engine *e, uint32_t number)
{
	return e->traces[number - 1];
}

void view_progress(const struct view_engine *e, uint64_t *done, uint64_t *whole)
{
	progress_get(&e->progress, done, whole);
}

void view_until(struct view_engine *e, const atomic_bool *is_unwanted)
{
	e->progress.is_unwanted = is_unwanted;
}

struct progress *view_progress_of(struct view_engine *e)
{
	return &e->progress;
}

/* ---- profiles ---- */

/* Profiles that are compared may lack functions that transforms mean. */
static char *selection_of(const struct question *q, bool is_compared)
{
	struct buf text = {0};
	char *copy;

	for (size_t i = 0; i < N_SELECTION_KEYS; i++) {
		const char *value = question_text(q, selection_keys[i]);

		buf_put_text(&text, value && *value ? value : "");
		text.p[text.n - 1] = '\n';
	}
	if (is_compared)
		buf_put_cstr(&text, "compared");
	copy = mem_strdup(buf_text(&text));
	buf_release(&text);
	return copy;
}

static const char *text_or_null(const struct question *q, const char *key)
{
	const char *text = question_text(q, key);

	return text && *text ? text : NULL;
}

/* Without a number it is the newest: what somebody wants to know about. */
static int take_trace(
	struct view_engine *e, const struct question *q, uint32_t *number, struct err *err)
{
	uint64_t n = e->n_traces;

	if (text_or_null(q, "trace") && question_u64(q, "trace", &n, err) < 0)
		return err->code;
	if (n < 1 || n > e->n_traces)
		return err_set(err, ERR_NOT_FOUND, "trace: there is no trace %llu here, of %u",
			(unsigned long long)n, e->n_traces);
	*number = (uint32_t)n;
	return 0;
}

static int transform(struct kept *k, const struct transforms *t, bool is_compared, struct err *err)
{
	if (!is_compared)
		return transforms_apply(t, k->profile, err);
	k->met = transforms_apply_any(t, k->profile);
	return 0;
}

static int build(struct view_engine *e, const struct question *q, bool is_compared, struct kept *k,
	struct err *err)
{
	struct build_options options = {.to = UINT64_MAX, .progress = &e->progress};
	const char *metric = text_or_null(q, "metric"), *list = text_or_null(q, "transform");
	struct transforms *transforms = NULL;
	uint32_t number = 1;
	int rc;

	if (take_trace(e, q, &number, err) < 0 || question_u64(q, "from", &options.from, err) < 0 ||
		question_u64(q, "to", &options.to, err) < 0)
		return err->code;
	if (list && transforms_parse(&transforms, list, err) < 0)
		return err->code;
	k->metric = metric ? mem_strdup(metric) : NULL;
	options.metric = k->metric;
	options.thread = text_or_null(q, "thread");
	rc = profile_build(&k->profile, e->traces[number - 1], &options, err);
	if (rc >= 0)
		rc = transform(k, transforms, is_compared, err);
	transforms_free(transforms);
	if (rc < 0)
		kept_release(k);
	return rc;
}

static struct kept *kept_place(struct view_engine *e, const char *selection)
{
	struct kept *oldest = &e->kept[0];

	for (int i = 0; i < N_KEPT; i++) {
		struct kept *k = &e->kept[i];

		if (k->selection && !strcmp(k->selection, selection))
			return k;
		if (k->used < oldest->used)
			oldest = k;
	}
	kept_release(oldest);
	return oldest;
}

static int find_profile(struct view_engine *e, const struct question *q, bool is_compared,
	struct kept **out, struct err *err)
{
	char *selection = selection_of(q, is_compared);
	struct kept *k = kept_place(e, selection);

	if (k->profile) {
		free(selection);
	} else if (build(e, q, is_compared, k, err) < 0) {
		free(selection);
		return err->code;
	} else {
		k->selection = selection;
	}
	k->used = ++e->n_used;
	*out = k;
	return 0;
}

int view_profile(
	struct view_engine *e, const struct question *q, struct profile **out, struct err *err)
{
	struct kept *k;

	if (find_profile(e, q, false, &k, err) < 0)
		return err->code;
	*out = k->profile;
	return 0;
}

/* ---- both traces ---- */

static int compare_sides(const struct view_comparison *c, struct err *err)
{
	if (!strcmp(c->sides[0]->unit, c->sides[1]->unit))
		return 0;
	return err_set(err, ERR_NOT_FOUND,
		"%s: cannot be compared, it is in '%s' before and in '%s' after",
		c->sides[1]->metric, c->sides[0]->unit, c->sides[1]->unit);
}

static int explain(const struct view_engine *e, uint32_t side, struct err *err)
{
	struct err why = *err;

	return err_set(err, why.code, "%s, in '%s': %s", side ? "after" : "before",
		trace_reader_name(e->traces[side]), why.text);
}

/* A function that one of them alone has is worth comparing; one that none has is a mistake. */
static int check_met(const struct question *q, uint64_t met, struct err *err)
{
	const char *list = text_or_null(q, "transform");
	struct transforms *transforms;
	int rc = 0;

	if (!list)
		return 0;
	if (transforms_parse(&transforms, list, err) < 0)
		return err->code;
	for (size_t i = 0; rc >= 0 && i < transforms_n(transforms); i++)
		if (!(met >> i & 1))
			rc = err_set(err, ERR_NOT_FOUND,
				"'%s': no function of either trace is meant",
				transforms_text(transforms, i));
	transforms_free(transforms);
	return rc;
}

/* The metric of the newer trace is the one that both are asked for: the older one's own first metric may
 * be another. */
static int find_sides(struct view_engine *e, const struct question *q, struct view_comparison *out,
	struct err *err)
{
	bool has_transforms = text_or_null(q, "transform") != NULL;
	struct question before_q = *q;
	struct kept *before, *after;

	if (find_profile(e, q, has_transforms, &after, err) < 0)
		return explain(e, 1, err);
	question_set(&before_q, "trace", "1");
	question_set(&before_q, "metric", after->profile->metric);
	if (find_profile(e, &before_q, has_transforms, &before, err) < 0)
		return explain(e, 0, err);
	out->sides[0] = before->profile;
	out->sides[1] = after->profile;
	if (compare_sides(out, err) < 0)
		return err->code;
	return check_met(q, before->met | after->met, err);
}

int view_compare(struct view_engine *e, const struct question *q, struct view_comparison *out,
	struct err *err)
{
	char *selection;

	if (e->n_traces < 2)
		return err_set(err, ERR_NOT_FOUND,
			"there is one trace here, and nothing to compare it with ('weir view BEFORE AFTER')");
	if (text_or_null(q, "trace"))
		return err_set(err, ERR_FORMAT, "trace: %s is of both", q->kind);
	if (find_sides(e, q, out, err) < 0)
		return err->code;
	selection = selection_of(q, true);
	if (e->diff_selection && !strcmp(e->diff_selection, selection)) {
		free(selection);
	} else {
		diff_release(e);
		tree_diff_init(&e->diff, out->sides[0]->tree, out->sides[1]->tree);
		e->diff_selection = selection;
	}
	out->diff = &e->diff;
	return 0;
}

/* ---- questions ---- */

static int answer(struct view_engine *e, const struct question *q, struct buf *out, struct err *err)
{
	const struct view_kind *kind = view_kinds;

	while (kind->name && strcmp(kind->name, q->kind) != 0)
		kind++;
	if (!kind->name)
		return e->more.answer ? e->more.answer(e->more.ctx, q, out, err)
				      : err_set(err, ERR_NOT_FOUND, "'%s': is no kind of question",
						q->kind);
	if (question_check(q, kind->keys, kind->keys ? VIEW_SELECTION : NULL, err) < 0)
		return err->code;
	return kind->answer(e, q, out, err);
}

int view_answer(
	struct view_engine *e, const char *question, size_t n, struct buf *out, struct err *err)
{
	struct question q;
	int rc = question_parse(&q, question, n, err);

	if (rc < 0)
		return rc;
	rc = answer(e, &q, out, err);
	question_release(&q);
	if (rc < 0)
		buf_reset(out);
	return rc < 0 ? rc : 0;
}
