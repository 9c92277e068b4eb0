/* SPDX-License-Identifier: MIT */
#include "cmd/view/answer_source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/report/report.h"

int view_answer_source(void *ctx, const struct question *q, struct buf *out, struct err *err)
{
	const struct view_sources *sources = ctx;
	struct report_options options = {.json = true, .exe = sources->exe};
	struct report report = {.options = &options};
	struct profile *p;
	char *text = NULL;
	size_t n = 0;
	int rc;

	if (strcmp(q->kind, "source") != 0)
		return err_set(err, ERR_NOT_FOUND, "'%s': is no kind of question", q->kind);
	if (question_check(q, "function blocks asm", VIEW_SELECTION, err) < 0)
		return err->code;
	options.function = question_text(q, "function");
	options.blocks = question_text(q, "blocks") != NULL;
	options.assembly = question_text(q, "asm") != NULL;
	if (!options.function || !*options.function)
		return err_set(err, ERR_FORMAT, "source needs a function");
	if (view_profile(sources->engine, q, &p, err) < 0)
		return err->code;
	report.reader = p->reader;
	report.profile = p;
	report.loss = &p->loss;
	report.out = open_memstream(&text, &n);
	if (!report.out)
		return err_set(err, ERR_FAILED, "no memory for the answer");
	rc = source_report(&report, err);
	fclose(report.out);
	if (rc >= 0)
		buf_put(out, text, n);
	free(text);
	return rc;
}
