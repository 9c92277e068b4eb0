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

#define N_KEPT 3

static const char *const selection_keys[] = {"metric", "thread", "from", "to", "transform"};
#define N_SELECTION_KEYS (sizeof(selection_keys) / sizeof(selection_keys[0]))

struct kept {
	char *selection; /* NULL: free */
	char *metric;	 /* which the profile borrows */
	struct profile *profile;
	uint64_t used; /* the engine's count then */
};

struct view_engine {
	struct trace_reader *reader;
	struct view_more more;
	struct kept kept[N_KEPT];
	uint64_t n_used;
};

struct view_engine *view_engine_new(struct trace_reader *reader, const struct view_more *more)
{
	struct view_engine *e = mem_zalloc(sizeof(*e));

	e->reader = reader;
	if (more)
		e->more = *more;
	return e;
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
	trace_reader_close(e->reader);
	free(e);
}

const struct trace_reader *view_reader(const struct view_engine *e)
{
	return e->reader;
}

/* ---- profiles ---- */

static char *selection_of(const struct question *q)
{
	struct buf text = {0};
	char *copy;

	for (size_t i = 0; i < N_SELECTION_KEYS; i++) {
		const char *value = question_text(q, selection_keys[i]);

		buf_put_text(&text, value && *value ? value : "");
		text.p[text.n - 1] = '\n';
	}
	copy = mem_strdup(buf_text(&text));
	buf_release(&text);
	return copy;
}

static const char *text_or_null(const struct question *q, const char *key)
{
	const char *text = question_text(q, key);

	return text && *text ? text : NULL;
}

static int build(struct view_engine *e, const struct question *q, struct kept *k, struct err *err)
{
	struct build_options options = BUILD_OPTIONS_ALL;
	const char *metric = text_or_null(q, "metric"), *list = text_or_null(q, "transform");
	struct transforms *transforms = NULL;
	int rc;

	if (question_u64(q, "from", &options.from, err) < 0 ||
		question_u64(q, "to", &options.to, err) < 0)
		return err->code;
	if (list && transforms_parse(&transforms, list, err) < 0)
		return err->code;
	k->metric = metric ? mem_strdup(metric) : NULL;
	options.metric = k->metric;
	options.thread = text_or_null(q, "thread");
	rc = profile_build(&k->profile, e->reader, &options, err);
	if (rc >= 0)
		rc = transforms_apply(transforms, k->profile, err);
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

int view_profile(
	struct view_engine *e, const struct question *q, struct profile **out, struct err *err)
{
	char *selection = selection_of(q);
	struct kept *k = kept_place(e, selection);

	if (k->profile) {
		free(selection);
	} else if (build(e, q, k, err) < 0) {
		free(selection);
		return err->code;
	} else {
		k->selection = selection;
	}
	k->used = ++e->n_used;
	*out = k->profile;
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
