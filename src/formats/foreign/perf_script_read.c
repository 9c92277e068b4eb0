/* SPDX-License-Identifier: MIT */
/*
 * A sample is a head, frames from the innermost on, and a line without anything. It is written when the next one
 * begins, or at the end.
 */
#include "formats/foreign/perf_script_read.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "formats/foreign/foreign_trace.h"
#include "formats/foreign/perf_script_line.h"
#include "formats/text_lines.h"

#define FRAMES_MAX 4096 /* of a sample */

struct script {
	struct foreign_trace *trace;
	bool is_open; /* a head was read */
	struct perf_script_head head;
	uint32_t metric;
	uint32_t thread;
	VEC(uint32_t) frames; /* innermost first */
	/* Of the frame being read: functions that were inlined into it, and it. Owned texts. */
	VEC(struct foreign_level) levels;
	struct perf_script_frame frame; /* the last of them: its file and kind */
	char *image;			/* owned */
	uint64_t clock;			/* where there are no times: the number of the sample */
};

static bool is_clock(struct span event)
{
	static const char *const clocks[] = {"cpu-clock", "task-clock"};

	for (size_t i = 0; i < 2; i++) {
		size_t n = strlen(clocks[i]);

		if (event.n >= n && !memcmp(event.p, clocks[i], n) &&
			(event.n == n || event.p[n] == ':'))
			return true;
	}
	return false;
}

static uint32_t metric_of(struct foreign_trace *t, const struct perf_script_head *h)
{
	char *name = mem_strndup((const char *)h->event.p, h->event.n);
	bool is_time = is_clock(h->event) && h->has_period;
	uint32_t metric = foreign_trace_metric(t,
		is_time	     ? "cpu"
		: h->event.n ? name
			     : "samples",
		is_time ? "ns" : "1");

	free(name);
	return metric;
}

/* --- frames ----------------------------------------------------------------------------- */

static struct span own(struct span s)
{
	return (struct span){s.n ? mem_dup(s.p, s.n) : NULL, s.n};
}

static void forget_levels(struct script *s)
{
	for (size_t i = 0; i < s->levels.n; i++) {
		free((void *)s->levels.v[i].name.p);
		free((void *)s->levels.v[i].file.p);
	}
	s->levels.n = 0;
}

static enum frame_kind kind_of(const struct perf_script_frame *f, struct span image)
{
	static const char made[] = "/tmp/perf-";

	if (f->is_kernel)
		return FRAME_KIND_KERNEL;
	if (image.n >= sizeof(made) && !memcmp(image.p, made, sizeof(made) - 1) &&
		!memcmp(image.p + image.n - 4, ".map", 4))
		return FRAME_KIND_JITTED;
	return FRAME_KIND_NATIVE;
}

/* The frame that was begun is whole. */
static void end_frame(struct script *s)
{
	struct span image = {(const uint8_t *)s->image, s->image ? strlen(s->image) : 0};

	if (!s->levels.n)
		return;
	if (s->frames.n < FRAMES_MAX)
		vec_push(&s->frames,
			foreign_trace_frame(
				s->trace, &(struct foreign_frame){.kind = kind_of(&s->frame, image),
						  .image = image,
						  .is_caller = s->frames.n > 0,
						  .levels = s->levels.v,
						  .n_levels = s->levels.n}));
	else
		foreign_trace_note(s->trace, 1, "frame of a stack that is too deep");
	forget_levels(s);
	free(s->image);
	s->image = NULL;
}

static void add_frame(struct script *s, const struct perf_script_frame *f)
{
	static const char unknown[] = "[unknown]";
	struct span name = f->symbol;

	if (s->levels.n && !s->frame.is_inlined)
		end_frame(s);
	if (!name.n)
		name = (struct span){(const uint8_t *)unknown, sizeof(unknown) - 1};
	if (s->levels.n < SYMBOL_LEVELS_MAX)
		vec_push(&s->levels, ((struct foreign_level){.name = own(name)}));
	s->frame = *f;
	if (!f->is_inlined && f->file.n && !s->image)
		s->image = mem_strndup((const char *)f->file.p, f->file.n);
}

static void add_place(struct script *s, struct span file, uint32_t line)
{
	struct foreign_level *level = s->levels.n ? &s->levels.v[s->levels.n - 1] : NULL;

	if (!level || level->file.n)
		return;
	level->file = own(file);
	level->line = line;
}

/* --- samples ---------------------------------------------------------------------------- */

static void end_sample(struct script *s)
{
	static const char none[] = "[no call chain]";
	uint32_t stack = 0;

	if (!s->is_open)
		return;
	end_frame(s);
	for (size_t i = s->frames.n; i--;)
		stack = foreign_trace_stack(s->trace, stack, s->frames.v[i]);
	if (!stack)
		stack = foreign_trace_stack(s->trace, 0,
			foreign_trace_name(s->trace, FRAME_KIND_NATIVE,
				(struct span){(const uint8_t *)none, sizeof(none) - 1}));
	if (!s->head.has_period)
		foreign_trace_note(s->trace, 1, "sample without a period: counted as 1");
	else if (!s->head.period)
		foreign_trace_note(s->trace, 1, "sample with a period of 0: it has no weight");
	foreign_trace_sample(s->trace, s->head.has_time ? s->head.time_ns : s->clock,
		&(struct trace_sample){.thread = s->thread,
			.stack = stack,
			.metric = s->metric,
			.weight = s->head.has_period ? s->head.period : 1});
	s->clock++;
	s->frames.n = 0;
	s->is_open = false;
}

/* "PERF_RECORD_LOST lost 12", "PERF_RECORD_MMAP2 ...": no samples. */
static bool is_other_record(struct script *s, const struct perf_script_head *h)
{
	static const char record[] = "PERF_RECORD_", lost[] = "LOST";
	struct span text = h->event.n ? h->event : h->rest;
	struct span word = {NULL, 0};
	uint64_t n = 0;

	if (text.n < sizeof(record) || memcmp(text.p, record, sizeof(record) - 1) != 0)
		return false;
	text = (struct span){text.p + sizeof(record) - 1, text.n - (sizeof(record) - 1)};
	if (text.n < sizeof(lost) || memcmp(text.p, lost, sizeof(lost) - 1) != 0)
		return true;
	word = h->rest;
	for (size_t i = word.n; i--;)
		if (word.p[i] == ' ') {
			word = (struct span){word.p + i + 1, word.n - i - 1};
			break;
		}
	if (text_word_number(word, UINT64_MAX / 2, &n))
		foreign_trace_lost(s->trace, n, "the kernel's ring was full");
	return true;
}

static void begin_sample(struct script *s, const struct perf_script_head *h)
{
	struct perf_script_frame frame;

	end_sample(s);
	if (is_other_record(s, h))
		return;
	s->is_open = true;
	s->head = *h;
	s->metric = metric_of(s->trace, h);
	s->thread = foreign_trace_thread(s->trace, h->pid, h->tid, h->comm);
	/* A sample without a call chain is one line; a tracepoint has its fields there. */
	if (h->rest.n && perf_script_frame(h->rest, &frame) && frame.has_address &&
		(frame.symbol.n || frame.file.n) && h->rest.p[0] != '0')
		add_frame(s, &frame);
}

static void take_line(struct script *s, struct span line)
{
	struct perf_script_frame frame;
	struct perf_script_head head;
	struct span file;
	uint32_t number;

	if (!line.n)
		end_sample(s);
	else if (line.p[0] == '#')
		return;
	else if (perf_script_head(line, &head))
		begin_sample(s, &head);
	else if (!s->is_open)
		foreign_trace_note(s->trace, 1, "line that is not understood");
	else if (perf_script_place(line, &file, &number))
		add_place(s, file, number);
	else if (perf_script_frame(line, &frame))
		add_frame(s, &frame);
	else
		foreign_trace_note(s->trace, 1, "line that is not understood");
}

int perf_script_read(struct foreign_input *in, const char *path,
	const struct foreign_options *options, struct trace_writer *w, struct err *err)
{
	struct script s = {.trace = foreign_trace_new(w, "perf script")};
	struct span line;
	int rc;

	(void)path;
	(void)options;
	while (foreign_input_line(in, &line))
		take_line(&s, line);
	end_sample(&s);
	rc = foreign_input_failure(in, err);
	if (rc == 0 && !s.clock)
		rc = foreign_input_wrong(in, err, "there is no sample");
	forget_levels(&s);
	vec_release(&s.levels);
	vec_release(&s.frames);
	free(s.image);
	foreign_trace_free(s.trace);
	return rc;
}

/* The first line that says something is a head; without a time its frames begin in the next one. */
bool perf_script_is(struct span first)
{
	bool has_head = false;

	while (first.n) {
		const uint8_t *end = memchr(first.p, '\n', first.n);
		struct span line = {first.p, end ? (size_t)(end - first.p) : first.n};
		struct perf_script_head head;
		struct perf_script_frame frame;

		first.p += line.n + (end != NULL);
		first.n -= line.n + (end != NULL);
		if (!line.n || line.p[0] == '#')
			continue;
		if (has_head)
			return (line.p[0] == ' ' || line.p[0] == '\t') &&
			       perf_script_frame(line, &frame) && frame.has_address;
		if (!perf_script_head(line, &head))
			return false;
		if (head.has_time)
			return head.event.n || head.rest.n;
		has_head = true;
	}
	return false;
}
