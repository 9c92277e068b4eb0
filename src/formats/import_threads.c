/* SPDX-License-Identifier: MIT */
#include "formats/import_threads.h"

#include <stdlib.h>
#include <string.h>

void import_init(struct import *in, struct span text, const char *name, struct trace_writer *w)
{
	memset(in, 0, sizeof(*in));
	in->writer = w;
	text_lines_init(&in->lines, text, name);
}

void import_release(struct import *in)
{
	vec_release(&in->threads);
	map_release(&in->thread_of);
}

struct import_thread *import_thread(struct import *in, uint64_t tid)
{
	bool created;
	uint64_t *index = map_ensure(&in->thread_of, tid, &created);

	if (created) {
		struct import_thread fresh = {0};

		if (in->writer) {
			struct trace_thread thread = {.tid = (uint32_t)tid};

			fresh.id = trace_writer_thread(in->writer, &thread);
			fresh.stream =
				trace_writer_stream(in->writer, STREAM_KIND_THREAD, fresh.id);
		}
		*index = in->threads.n;
		vec_push(&in->threads, fresh);
	}
	return &in->threads.v[*index];
}

uint32_t import_frame(struct import *in, struct span name)
{
	struct trace_frame frame = {.kind = FRAME_KIND_NATIVE};

	if (!in->writer)
		return 0;
	frame.name = trace_writer_string_n(in->writer, (const char *)name.p, name.n);
	return trace_writer_frame(in->writer, &frame);
}

int import_stack(struct import *in, uint64_t *tid, uint32_t *stack, struct err *err)
{
	struct span word = text_lines_word(&in->lines);
	struct span number = word;
	int rc;

	*tid = 0;
	*stack = 0;
	if (word.n > 1 && word.p[word.n - 1] == ':') {
		number.n--;
		if (text_word_number(number, UINT32_MAX, tid))
			word = text_lines_word(&in->lines);
	}
	if (!word.n)
		return text_lines_fail(&in->lines, err, "the stack is empty");
	for (; word.n; word = text_lines_word(&in->lines)) {
		rc = text_word_check_name(&in->lines, word, err);
		if (rc < 0)
			return rc;
		if (in->writer)
			*stack = trace_writer_stack(in->writer, *stack, import_frame(in, word));
	}
	return 0;
}
