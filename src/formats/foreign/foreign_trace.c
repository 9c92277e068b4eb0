/* SPDX-License-Identifier: MIT */
#include "formats/foreign/foreign_trace.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"

struct reason {
	uint64_t n;
	enum record_minor_loss kind;
};

struct foreign_trace {
	struct trace_writer *w;
	uint32_t life;	      /* stream of what concerns no thread */
	struct intern levels; /* of frames, as bytes: their number is one more than the id */
	struct map named;     /* by thread: it has this name */
	struct map processes; /* by pid */
	struct map symbols;   /* by frame: the number of the levels that it means */
	struct intern reasons;
	VEC(struct reason) n_reasons; /* by reason */
	uint64_t last_ns;
	/* What was asked for last, since files have many samples of one thread. */
	struct trace_thread thread;
	uint32_t thread_id, stream_thread, stream;
};

struct foreign_trace *foreign_trace_new(struct trace_writer *w, const char *format)
{
	struct foreign_trace *t = mem_calloc(1, sizeof(*t));

	t->w = w;
	t->life = trace_writer_stream(w, STREAM_KIND_LIFE, 0);
	trace_writer_meta(w, "mode", "import");
	trace_writer_meta(w, "format", format);
	return t;
}

void foreign_trace_free(struct foreign_trace *t)
{
	if (!t)
		return;
	for (uint32_t i = 0; i < t->n_reasons.n; i++)
		trace_writer_loss(t->w, t->life, t->last_ns, t->n_reasons.v[i].kind,
			t->n_reasons.v[i].n, intern_get(&t->reasons, i));
	intern_release(&t->levels);
	intern_release(&t->reasons);
	map_release(&t->named);
	map_release(&t->processes);
	map_release(&t->symbols);
	vec_release(&t->n_reasons);
	free(t);
}

static uint32_t put_text(struct foreign_trace *t, struct span text)
{
	return text.n ? trace_writer_string_n(t->w, (const char *)text.p, text.n) : 0;
}

uint32_t foreign_trace_metric(struct foreign_trace *t, const char *name, const char *unit)
{
	return trace_writer_metric(t->w, name, unit);
}

uint32_t foreign_trace_main_metric(struct foreign_trace *t, const char *name, const char *unit)
{
	trace_writer_meta(t->w, "main_metric", name);
	return foreign_trace_metric(t, name, unit);
}

uint32_t foreign_trace_thread(struct foreign_trace *t, uint32_t pid, uint32_t tid, struct span name)
{
	const struct trace_thread thread = {.pid = pid, .tid = tid};
	uint32_t id, text;
	uint64_t *known;

	if (!name.n && t->thread_id && t->thread.pid == pid && t->thread.tid == tid)
		return t->thread_id;
	id = trace_writer_thread(t->w, &thread);
	text = put_text(t, name);
	known = map_ensure(&t->named, id, NULL);
	t->thread = thread;
	t->thread_id = id;
	if (text && *known != text)
		trace_writer_numbers(t->w, t->life, t->last_ns, RECORD_MAJOR_THREAD,
			RECORD_THREAD_NAMED, (const uint64_t[]){id, 0, 0, text}, 4);
	if (text)
		*known = text;
	return id;
}

void foreign_trace_process(struct foreign_trace *t, uint32_t pid, struct span name)
{
	uint32_t text = put_text(t, name);
	uint64_t *known = map_ensure(&t->processes, pid, NULL);

	if (text && *known != text)
		trace_writer_numbers(t->w, t->life, t->last_ns, RECORD_MAJOR_PROCESS,
			RECORD_PROCESS_START, (const uint64_t[]){pid, 0, 0, text}, 4);
	if (text)
		*known = text;
}

static uint32_t ensure_image(struct foreign_trace *t, const struct foreign_frame *from)
{
	struct trace_image image = {.kind = IMAGE_KIND_OTHER};

	if (from->kind == FRAME_KIND_KERNEL)
		image.kind = IMAGE_KIND_KERNEL;
	else if (from->image.p[0] != '[')
		image.kind = IMAGE_KIND_ELF;
	image.path = put_text(t, from->image);
	image.build_id_n = from->build_id_n < BUILD_ID_MAX ? from->build_id_n : BUILD_ID_MAX;
	if (image.build_id_n)
		memcpy(image.build_id, from->build_id, image.build_id_n);
	return trace_writer_image(t->w, &image);
}

/* A number for all that the levels say. */
static uint64_t level_number(
	struct foreign_trace *t, const struct trace_symbol_level *levels, size_t n)
{
	return (uint64_t)intern_bytes(&t->levels, levels, n * sizeof(*levels)) + 1;
}

static bool says_more_than_a_name(const struct trace_symbol_level *levels, size_t n)
{
	return n > 1 || (n == 1 && (levels[0].file || levels[0].line));
}

/* Whether the frame means this: it does from the first time on that somebody says so. */
static bool is_told(struct foreign_trace *t, uint32_t frame, uint64_t number,
	const struct trace_symbol_level *levels, size_t n)
{
	bool is_new;
	uint64_t *told = map_ensure(&t->symbols, frame, &is_new);

	if (!is_new)
		return *told == number;
	*told = number;
	trace_writer_symbol(t->w,
		&(struct trace_symbol){.frame = frame, .n_levels = (uint32_t)n, .levels = levels});
	return true;
}

uint32_t foreign_trace_frame(struct foreign_trace *t, const struct foreign_frame *from)
{
	struct trace_symbol_level levels[SYMBOL_LEVELS_MAX] = {0};
	size_t n = from->n_levels < SYMBOL_LEVELS_MAX ? from->n_levels : SYMBOL_LEVELS_MAX;
	struct trace_frame frame = {.kind = from->kind, .is_caller = from->is_caller};
	uint64_t number;
	uint32_t id;

	for (size_t i = 0; i < n; i++) {
		levels[i].name = put_text(t, from->levels[i].name);
		levels[i].file = put_text(t, from->levels[i].file);
		levels[i].line = from->levels[i].line;
	}
	if (from->image.n)
		frame.image = ensure_image(t, from);
	number = level_number(t, levels, n);
	if (from->addr || !n) {
		frame.addr = from->addr;
		id = trace_writer_frame(t->w, &frame);
		if (!n || is_told(t, id, number, levels, n))
			return id;
	}
	/* Known by its name: so is a second function that the file has at one address. */
	frame.name = levels[n - 1].name;
	frame.addr = says_more_than_a_name(levels, n) ? number : 0;
	id = trace_writer_frame(t->w, &frame);
	if (frame.addr)
		is_told(t, id, number, levels, n);
	return id;
}

uint32_t foreign_trace_name(struct foreign_trace *t, enum frame_kind kind, struct span name)
{
	const struct foreign_level level = {.name = name};
	const struct foreign_frame frame = {.kind = kind, .levels = &level, .n_levels = 1};

	return foreign_trace_frame(t, &frame);
}

uint32_t foreign_trace_stack(struct foreign_trace *t, uint32_t caller, uint32_t frame)
{
	return trace_writer_stack(t->w, caller, frame);
}

static uint32_t stream_of(struct foreign_trace *t, uint32_t thread)
{
	if (t->stream_thread != thread)
		t->stream = trace_writer_stream(t->w, STREAM_KIND_THREAD, thread);
	t->stream_thread = thread;
	return t->stream;
}

void foreign_trace_routine(
	struct foreign_trace *t, uint32_t thread, uint64_t time_ns, uint32_t frame, bool is_left)
{
	trace_writer_routine(t->w, stream_of(t, thread), time_ns, frame, is_left);
	t->last_ns = time_ns > t->last_ns ? time_ns : t->last_ns;
}

void foreign_trace_sample(
	struct foreign_trace *t, uint64_t time_ns, const struct trace_sample *sample)
{
	if (!sample->weight)
		return;
	trace_writer_sample(t->w, stream_of(t, sample->thread), time_ns, sample);
	t->last_ns = time_ns > t->last_ns ? time_ns : t->last_ns;
}

void foreign_trace_sample_beside(
	struct foreign_trace *t, uint64_t time_ns, const struct trace_sample *sample)
{
	if (!sample->weight)
		return;
	trace_writer_sample(t->w, trace_writer_stream(t->w, STREAM_KIND_CPU, 0), time_ns, sample);
	t->last_ns = time_ns > t->last_ns ? time_ns : t->last_ns;
}

static void count_reason(
	struct foreign_trace *t, enum record_minor_loss kind, uint64_t n, const char *reason)
{
	uint32_t id = intern_text(&t->reasons, reason);

	if (id == t->n_reasons.n)
		vec_push(&t->n_reasons, ((struct reason){.kind = kind}));
	t->n_reasons.v[id].n += n;
}

void foreign_trace_set_time(struct foreign_trace *t, uint64_t time_ns)
{
	t->last_ns = time_ns > t->last_ns ? time_ns : t->last_ns;
}

void foreign_trace_lost(struct foreign_trace *t, uint64_t n, const char *reason)
{
	count_reason(t, RECORD_LOSS_SAMPLES, n, reason);
}

void foreign_trace_lost_part(struct foreign_trace *t, const char *reason)
{
	count_reason(t, RECORD_LOSS_PART, 1, reason);
}

void foreign_trace_lost_events(struct foreign_trace *t, uint64_t n, const char *reason)
{
	count_reason(t, RECORD_LOSS_EVENTS, n, reason);
}

void foreign_trace_note(struct foreign_trace *t, uint64_t n, const char *reason)
{
	count_reason(t, RECORD_LOSS_NOTE, n, reason);
}
