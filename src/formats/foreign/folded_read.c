/* SPDX-License-Identifier: MIT */
#include "formats/foreign/folded_read.h"

#include <string.h>

#include "formats/foreign/foreign_trace.h"
#include "formats/text_lines.h"

/* The number behind the last blank; what is before is left in *line. */
static bool take_number(struct span *line, uint64_t *number)
{
	size_t blank = line->n;

	while (blank && line->p[blank - 1] != ' ' && line->p[blank - 1] != '\t')
		blank--;
	if (!blank || !text_word_number(
			      (struct span){line->p + blank, line->n - blank}, UINT64_MAX, number))
		return false;
	line->n = blank - 1;
	return line->n > 0;
}

static bool is_text(struct span line)
{
	for (size_t i = 0; i < line.n; i++)
		if (line.p[i] < ' ' && line.p[i] != '\t')
			return false;
	return true;
}

/* Every whole line of the beginning is one. */
bool folded_is(struct span first)
{
	size_t n_lines = 0;

	while (first.n) {
		const uint8_t *end = memchr(first.p, '\n', first.n);
		struct span line = {first.p, end ? (size_t)(end - first.p) : first.n};
		uint64_t number;

		if (!end && n_lines)
			break;
		first.p += line.n + (end != NULL);
		first.n -= line.n + (end != NULL);
		if (!line.n)
			continue;
		if (!is_text(line) || !take_number(&line, &number))
			return false;
		n_lines++;
	}
	return n_lines > 0;
}

static uint32_t stack_of(struct foreign_trace *t, struct span line)
{
	uint32_t stack = 0;

	while (line.n) {
		const uint8_t *end = memchr(line.p, ';', line.n);
		struct span name = {line.p, end ? (size_t)(end - line.p) : line.n};

		line.p += name.n + (end != NULL);
		line.n -= name.n + (end != NULL);
		if (name.n)
			stack = foreign_trace_stack(
				t, stack, foreign_trace_name(t, FRAME_KIND_NATIVE, name));
	}
	return stack;
}

int folded_read(struct foreign_input *in, const char *path, const struct foreign_options *options,
	struct trace_writer *w, struct err *err)
{
	struct foreign_trace *t = foreign_trace_new(w, "folded");
	struct trace_sample sample = {.metric = foreign_trace_metric(t, "samples", "1")};
	struct span line;
	int rc = 0;

	(void)path;
	(void)options;
	sample.thread = foreign_trace_thread(t, 0, 0, (struct span){0});
	for (uint64_t time = 0; rc == 0 && foreign_input_line(in, &line); time++) {
		if (!line.n)
			continue;
		if (!take_number(&line, &sample.weight))
			rc = foreign_input_wrong(in, err, "the line does not end with a number");
		sample.stack = rc == 0 ? stack_of(t, line) : 0;
		if (sample.stack)
			foreign_trace_sample(t, time, &sample);
	}
	if (rc == 0)
		rc = foreign_input_failure(in, err);
	foreign_trace_free(t);
	return rc;
}
