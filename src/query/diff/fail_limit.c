/* SPDX-License-Identifier: MIT */
#include "query/diff/fail_limit.h"

#include <string.h>

static bool is_percent(const char *text, size_t n, double *percent)
{
	double value = 0, place = 0;
	bool has_digit = false;

	if (n < 3 || text[0] != '+' || text[n - 1] != '%')
		return false;
	for (size_t i = 1; i + 1 < n; i++) {
		if (text[i] == '.' && !place) {
			place = 1;
			continue;
		}
		if (text[i] < '0' || text[i] > '9' || value > FAIL_PERCENT_MAX)
			return false;
		has_digit = true;
		place /= 10;
		value = place > 0 ? value + (text[i] - '0') * place : value * 10 + (text[i] - '0');
	}
	*percent = value;
	return has_digit && value <= FAIL_PERCENT_MAX;
}

int fail_limit_parse(struct fail_limit *limit, const char *text, struct err *err)
{
	const char *colon = strrchr(text, ':'), *part = colon ? colon + 1 : text;

	*limit = (struct fail_limit){
		.name = colon ? text : NULL, .name_n = colon ? (size_t)(colon - text) : 0};
	if ((colon && colon == text) || !is_percent(part, strlen(part), &limit->percent))
		return err_set(
			err, ERR_FORMAT, "'%s' is none of +5%%, NAME:+5%% and total:+5%%", text);
	return 0;
}

/* What was not there has no cost that it could be dearer than: it counts by its part of the whole. */
static bool is_over(const struct fail_limit *limit, const struct run_diff_row *row)
{
	double part = limit->percent / 100, whole = row->question.before.whole;
	struct compare_question q = row->question;
	struct figure all = {.value = whole};

	if (row->is_there[RUNS_BEFORE])
		return compare_is_surely_more(&q, 1 + part);
	if (whole <= 0)
		return row->answer.verdict == COMPARE_MORE;
	q.before.runs = &all;
	q.before.n = 1;
	return row->answer.verdict == COMPARE_MORE && compare_is_surely_more(&q, part);
}

static bool is_meant(const struct fail_limit *limit, const char *name)
{
	return !limit->name ||
	       (strlen(name) == limit->name_n && !memcmp(name, limit->name, limit->name_n));
}

int fail_limit_find(const struct fail_limit *limit, const struct run_diff *d, size_t **rows,
	size_t *n, struct err *err)
{
	const struct run_diff_row *all;
	size_t n_all = run_diff_rows(d, &all);
	VEC(size_t) over = {0};
	struct buf name = {0};
	bool is_total = limit->name && is_meant(limit, "total"), is_met = is_total || !limit->name;

	if (is_total && is_over(limit, run_diff_total(d)))
		vec_push(&over, SIZE_MAX);
	for (size_t i = 0; i < n_all && !is_total; i++) {
		if (!is_meant(limit, run_diff_name(d, &all[i], &name)))
			continue;
		is_met = true;
		if (is_over(limit, &all[i]))
			vec_push(&over, i);
	}
	buf_release(&name);
	*rows = over.v;
	*n = over.n;
	return is_met ? 0
		      : err_set(err, ERR_NOT_FOUND, "--fail-on: no row is called '%.*s'",
				(int)limit->name_n, limit->name);
}
