/* SPDX-License-Identifier: MIT */
/* The JSON of a report, made by its renderer: the figures of the page are those of `weir report --json`. */
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/word_list.h"
#include "cmd/report/report.h"
#include "cmd/view/engine.h"

/* Those that need nothing but the trace. */
static const struct {
	const char *name;
	int (*render)(const struct report *report, struct err *err);
	const char *columns;
} renderers[] = {
	{"flat", flat_report, QUERY_FUNCTION_COLUMNS},
	{"tree", tree_report, QUERY_NODE_COLUMNS},
	{"arcs", arcs_report, QUERY_FUNCTION_COLUMNS},
	{"threads", threads_report, QUERY_THREAD_COLUMNS},
	{"modules", modules_report, NULL},
	{"hooks", hooks_report, "function image method reason hits off"},
	{"probes", probes_report, NULL},
	{"loss", loss_report, NULL},
};
#define N_RENDERERS (sizeof(renderers) / sizeof(renderers[0]))

static int take_options(
	const struct question *q, const char *columns, struct report_options *o, struct err *err)
{
	const char *sort = question_text(q, "sort");

	if (sort && *sort && !(columns && word_list_has(columns, sort)))
		return err_set(err, ERR_FORMAT, "%s has no column '%s'", q->name, sort);
	o->json = true;
	o->query.sort = sort && *sort ? sort : NULL;
	return question_u64(q, "limit", &o->query.limit, err);
}

static int render(struct view_engine *e, const struct question *q, size_t which,
	struct report_options *options, struct buf *out, struct err *err)
{
	struct report report = {.options = options};
	struct profile *p;
	char *text = NULL;
	size_t n = 0;
	int rc;

	if (view_profile(e, q, &p, err) < 0)
		return err->code;
	report.reader = p->reader;
	report.profile = p;
	report.loss = &p->loss;
	report.out = open_memstream(&text, &n);
	if (!report.out)
		return err_set(err, ERR_FAILED, "no memory for the answer");
	rc = renderers[which].render(&report, err);
	fclose(report.out);
	if (rc >= 0)
		buf_put(out, text, n);
	free(text);
	return rc;
}

int view_answer_report(
	struct view_engine *e, const struct question *q, struct buf *out, struct err *err)
{
	const char *filter = question_text(q, "filter");
	struct report_options options = {0};
	regex_t regex;
	size_t which = 0;
	int rc;

	while (which < N_RENDERERS && strcmp(renderers[which].name, q->name) != 0)
		which++;
	if (which == N_RENDERERS)
		return err_set(err, ERR_NOT_FOUND, "'%s': is no kind of report here", q->name);
	if (take_options(q, renderers[which].columns, &options, err) < 0)
		return err->code;
	if (filter && *filter) {
		if (regcomp(&regex, filter, REG_EXTENDED | REG_NOSUB))
			return err_set(
				err, ERR_FORMAT, "'%s': is not a regular expression", filter);
		options.query.filter = &regex;
	}
	rc = render(e, q, which, &options, out, err);
	if (options.query.filter)
		regfree(&regex);
	return rc;
}
