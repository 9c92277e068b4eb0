/* SPDX-License-Identifier: MIT */
#include "cmd/view/answer_export.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/exports.h"

static const struct {
	const char *name;
	int (*write)(const struct profile *profile, FILE *out, struct err *err);
	bool of_tree; /* of the tree as transforms left it, not of the samples in the trace */
} exports[] = {
	{"folded", export_folded, true},
	{"pprof", export_pprof, false},
};
#define N_EXPORTS (sizeof(exports) / sizeof(exports[0]))

static int write_export(const struct profile *p, size_t which, struct buf *out, struct err *err)
{
	char *text = NULL;
	size_t n = 0;
	FILE *file = open_memstream(&text, &n);
	int rc;

	if (!file)
		return err_set(err, ERR_FAILED, "no memory for the answer");
	rc = exports[which].write(p, file, err);
	fclose(file);
	if (rc >= 0)
		buf_put(out, text, n);
	free(text);
	return rc;
}

static int answer_export(
	struct view_engine *e, const struct question *q, struct buf *out, struct err *err)
{
	const char *transform = question_text(q, "transform");
	struct profile *p;
	size_t which = 0;

	while (which < N_EXPORTS && strcmp(exports[which].name, q->name) != 0)
		which++;
	if (which == N_EXPORTS)
		return err_set(err, ERR_NOT_FOUND, "'%s': is no kind of export here", q->name);
	if (question_check(q, "", VIEW_SELECTION, err) < 0)
		return err->code;
	if (transform && *transform && !exports[which].of_tree)
		return err_set(err, ERR_FORMAT,
			"%s has the samples of the trace, which no transform changes; take the transforms back, or use folded",
			q->name);
	if (view_profile(e, q, &p, err) < 0)
		return err->code;
	return write_export(p, which, out, err);
}

int view_answer_here(void *ctx, const struct question *q, struct buf *out, struct err *err)
{
	const struct view_sources *sources = ctx;

	return !strcmp(q->kind, "export") ? answer_export(sources->engine, q, out, err)
					  : view_answer_source(ctx, q, out, err);
}
