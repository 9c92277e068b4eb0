/* SPDX-License-Identifier: MIT */
/*
 * Samples as rows: summed by stack first, then each stack is looked at once. Squares of weights say how a sum of them
 * scatters. Files of other tools may have sums for samples, which have no times: there, and where the metric is samples, a
 * weight is as many samples as the smallest one fits into it. What callgrind counted is exact.
 */
#include <stdlib.h>
#include <string.h>

#include "base/path_name.h"
#include "calltree/frame_names.h"
#include "calltree/sample_walk.h"
#include "query/diff/diff_run.h"

#define TICK_BIT (1ull << 32) /* a frame without a stack */

struct stack_sum {
	uint32_t stack, frame; /* frame: of a tick */
	uint64_t n;
	double weight, squares;
};

struct key_list {
	uint32_t first, n;
};

struct sampled {
	struct diff_run *run;
	struct diff_keys *keys;
	const struct profile *profile;
	const struct trace_reader *reader;
	const struct diff_run_question *q;
	VEC(struct stack_sum) sums;
	struct map sum_of; /* stack, or frame and TICK_BIT */
	uint64_t smallest; /* weight of a record */
	bool has_times;
	struct key_list *lists; /* by frame: its keys, outermost first */
	VEC(uint32_t) list;
	uint32_t *path_of;  /* by stack */
	VEC(uint32_t) seen; /* by key: the stack that had it last, + 1 */
};

/* ---- sums ---- */

static void add_sample(struct sampled *s, const struct sample_view *sample)
{
	uint64_t weight = sample_weight(&s->profile->weighing, sample->metric, sample->weight);
	uint64_t id = sample->kind == SAMPLE_KIND_TICK ? TICK_BIT | sample->frame : sample->stack;
	bool created;
	uint64_t *place = map_ensure(&s->sum_of, id, &created);
	struct stack_sum *sum;

	if (created) {
		*place = s->sums.n;
		vec_push(&s->sums, ((struct stack_sum){sample->stack, sample->frame, 0, 0, 0}));
	}
	sum = &s->sums.v[*place];
	s->has_times |= sample->time != 0;
	sum->n++;
	sum->weight += (double)weight;
	sum->squares += (double)weight * (double)weight;
	if (weight && (!s->smallest || weight < s->smallest))
		s->smallest = weight;
}

static int sum_samples(struct sampled *s, struct err *err)
{
	struct sample_view sample;
	struct sample_walk walk;
	int rc = sample_walk_open(&walk, s->profile, err);

	if (rc < 0)
		return rc;
	while (sample_walk_next(&walk, &sample))
		if (sample_view_counts(s->profile, &sample))
			add_sample(s, &sample);
	sample_walk_close(&walk);
	return 0;
}

/* Weights that are sums of samples' become as many samples. */
static void part_sums(struct sampled *s)
{
	bool is_number = s->profile->weighing.kind == METRIC_KIND_SAMPLES;
	double grain = is_number ? 1 : (double)s->smallest;

	if (!is_number && (s->has_times || !trace_reader_meta(s->reader, "format")))
		return;
	for (size_t i = 0; grain > 0 && i < s->sums.n; i++) {
		struct stack_sum *sum = &s->sums.v[i];

		sum->squares = sum->weight * grain;
		sum->n = (uint64_t)(sum->weight / grain + 0.5);
	}
}

/* callgrind has events, not times. */
static bool is_counted(const struct profile *p)
{
	const char *format = trace_reader_meta(p->reader, "format");

	return format && !strcmp(format, "callgrind") && !strcmp(p->unit, "1") &&
	       p->weighing.kind == METRIC_KIND_COUNT;
}

static void make_exact(struct diff_run *run)
{
	run->is_counted = run->is_measured = true;
	run->total.squares = 0;
	run->grain = 0;
	for (size_t i = 0; i < run->rows.n; i++) {
		run->rows.v[i].is_exact = run->rows.v[i].is_there;
		run->rows.v[i].figure.squares = 0;
	}
}

/* ---- keys ---- */

static uint32_t key_of_line(struct sampled *s, const struct frame_level *level)
{
	struct buf text = {0};
	uint32_t key;

	if (level->file && level->line)
		buf_printf(&text, "%s:%u", path_base_name(level->file), level->line);
	else
		buf_printf(&text, "%s (no line)", level->name);
	key = diff_key(s->keys, buf_text(&text), level->image, false);
	buf_release(&text);
	return key;
}

static uint32_t key_of_level(struct sampled *s, const struct frame_level *level)
{
	if (s->q->by == DIFF_BY_LINE)
		return key_of_line(s, level);
	if (s->q->by != DIFF_BY_IMAGE)
		return diff_key(s->keys, level->name, level->image, s->q->is_before);
	return diff_key(
		s->keys, *level->image ? path_base_name(level->image) : "[no image]", "", false);
}

static const uint32_t *keys_of_frame(struct sampled *s, uint32_t frame, size_t *n)
{
	struct key_list *list = &s->lists[frame];

	if (!list->n) {
		struct frame_levels levels;

		frame_names_get(s->reader, frame, &levels);
		list->first = (uint32_t)s->list.n;
		list->n = (uint32_t)levels.n;
		for (size_t i = levels.n; i-- > 0;) {
			uint32_t key = key_of_level(s, &levels.v[i]);

			vec_push(&s->list, key);
		}
	}
	*n = list->n;
	return s->list.v + list->first;
}

/* Callers have smaller numbers than what they call. */
static uint32_t path_of_stack(struct sampled *s, uint32_t stack)
{
	VEC(uint32_t) way = {0};
	uint32_t path = 0;

	for (; stack && !s->path_of[stack]; stack = trace_reader_stack(s->reader, stack)->parent)
		vec_push(&way, stack);
	path = stack ? s->path_of[stack] : 0;
	while (way.n) {
		uint32_t id = way.v[--way.n];
		size_t n;
		const uint32_t *keys =
			keys_of_frame(s, trace_reader_stack(s->reader, id)->frame, &n);

		for (size_t i = 0; i < n; i++)
			path = diff_path(s->keys, path, keys[i]);
		s->path_of[id] = path;
	}
	vec_release(&way);
	return path;
}

/* ---- rows ---- */

static void add_to_row(struct sampled *s, uint32_t id, const struct stack_sum *sum, bool counts)
{
	struct diff_run_row *row = diff_run_row(s->run, id);

	if (!counts || row->is_exact)
		return;
	row->figure.value += sum->weight;
	row->figure.squares += sum->squares;
	row->samples += sum->n;
}

static void add_frame(struct sampled *s, uint32_t frame, const struct stack_sum *sum, uint32_t mark,
	bool is_innermost)
{
	bool is_kernel = trace_reader_frame(s->reader, frame)->kind == FRAME_KIND_KERNEL;
	size_t n;
	const uint32_t *keys = keys_of_frame(s, frame, &n);

	for (size_t i = n; i-- > 0;) {
		uint32_t key = keys[i];
		bool is_first;

		vec_ensure_zero(&s->seen, (size_t)key + 1);
		is_first = s->seen.v[key] != mark;
		s->seen.v[key] = mark;
		add_to_row(s, key, sum, s->q->with_callees ? is_first : is_innermost && i + 1 == n);
		s->run->rows.v[key].is_kernel |= is_kernel;
	}
}

static void add_stack(struct sampled *s, const struct stack_sum *sum, uint32_t mark)
{
	uint32_t stack = sum->stack;

	if (!stack && sum->frame)
		add_frame(s, sum->frame, sum, mark, true);
	for (bool is_innermost = true; stack; is_innermost = false) {
		const struct trace_stack *at = trace_reader_stack(s->reader, stack);

		add_frame(s, at->frame, sum, mark, is_innermost);
		stack = at->parent;
	}
}

static void add_path(struct sampled *s, const struct stack_sum *sum)
{
	uint32_t path = path_of_stack(s, sum->stack), frame = sum->frame;
	bool is_innermost = true;
	size_t n = 0;
	const uint32_t *keys;

	if (sum->stack)
		frame = trace_reader_stack(s->reader, sum->stack)->frame;
	keys = keys_of_frame(s, frame, &n);
	for (size_t i = 0; !sum->stack && i < n; i++)
		path = diff_path(s->keys, path, keys[i]);
	for (; path; path = s->keys->paths.v[path].parent, is_innermost = false) {
		add_to_row(s, path, sum, is_innermost || s->q->with_callees);
		if (is_innermost)
			s->run->rows.v[path].is_kernel |=
				trace_reader_frame(s->reader, frame)->kind == FRAME_KIND_KERNEL;
	}
}

/* The whole is what events measured where they did. */
static void add_totals(struct sampled *s)
{
	struct figure all = {0};
	uint64_t n = 0;

	for (size_t i = 0; i < s->sums.n; i++) {
		all.value += s->sums.v[i].weight;
		all.squares += s->sums.v[i].squares;
		n += s->sums.v[i].n;
	}
	s->run->samples = n;
	if (!s->run->is_measured)
		s->run->total = all;
	s->run->grain = all.value > 0 ? all.squares / all.value : 0;
}

/* How large the code of functions is: with the same caller and callees a sign that one was renamed. */
static void find_sizes(struct sampled *s)
{
	struct trace_reader *r = (struct trace_reader *)s->reader;

	for (uint32_t id = 1; id < trace_reader_n_frames(r); id++) {
		const struct trace_frame *frame = trace_reader_frame(r, id);
		const struct trace_function *functions;
		size_t n = frame->image ? trace_reader_functions(r, frame->image, &functions) : 0;
		size_t low = 0, high = n, n_keys;
		uint32_t key;

		if (!n || !s->lists[id].n)
			continue;
		while (low < high) {
			size_t middle = (low + high) / 2;

			if (functions[middle].start <= frame->addr)
				low = middle + 1;
			else
				high = middle;
		}
		if (!low || frame->addr - functions[low - 1].start >= functions[low - 1].size)
			continue;
		key = keys_of_frame(s, id, &n_keys)[0];
		vec_ensure_zero(&s->run->bytes, (size_t)key + 1);
		s->run->bytes.v[key] = functions[low - 1].size;
	}
}

int diff_run_add_samples(struct diff_run *run, struct diff_keys *keys,
	const struct profile *profile, const struct diff_run_question *q, struct err *err)
{
	struct sampled s = {.run = run, .keys = keys, .profile = profile, .q = q};
	int rc;

	s.reader = profile->reader;
	s.lists = mem_calloc(trace_reader_n_frames(s.reader), sizeof(*s.lists));
	s.path_of = mem_calloc(trace_reader_n_stacks(s.reader), sizeof(*s.path_of));
	rc = sum_samples(&s, err);
	part_sums(&s);
	add_totals(&s);
	for (size_t i = 0; rc == 0 && i < s.sums.n; i++) {
		if (q->by != DIFF_BY_STACK)
			add_stack(&s, &s.sums.v[i], (uint32_t)i + 1);
		else if (!calltree_has_events(profile->tree))
			add_path(&s, &s.sums.v[i]);
	}
	if (rc == 0 && is_counted(profile))
		make_exact(run);
	if (rc == 0 && q->by == DIFF_BY_FUNCTION)
		find_sizes(&s);
	vec_release(&s.sums);
	map_release(&s.sum_of);
	free(s.lists);
	free(s.path_of);
	vec_release(&s.list);
	vec_release(&s.seen);
	return rc;
}
