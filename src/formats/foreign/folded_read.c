/* SPDX-License-Identifier: MIT */
/*
 * What a line does not say, the beginning of the file does: whether there are two columns of numbers, and whether
 * the first name of each stack is that of a thread. It is, where all of them are threads for certain, or where all
 * of them look like names of threads and none is met deeper in a stack.
 */
#include "formats/foreign/folded_read.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "formats/foreign/folded_line.h"
#include "formats/foreign/foreign_trace.h"
#include "formats/text_lines.h"

#define SURVEY_BYTES ((size_t)1 << 20)
#define BILLION	     1000000000u

struct folded {
	struct foreign_input *in;
	struct foreign_trace *trace;
	const struct foreign_options *options;
	bool has_two_columns, has_threads;
	uint64_t scale;	       /* units of the metric in a number of the file */
	uint64_t rest[2];      /* billionths of a unit, carried on so that the sum is right */
	uint64_t n_fractions;  /* numbers of which a fraction was carried on */
	uint32_t metrics[2];   /* by column */
	uint32_t next_tid;     /* for threads that have a name alone */
	struct intern names;   /* of such threads */
	VEC(uint32_t) threads; /* by name */
	struct map numbers;    /* tids that are in use */
};

/* The next whole line of the beginning; a line that goes on behind it is no line of it, but where it is alone. */
static bool next_line(struct span *text, bool is_first, struct span *line)
{
	const uint8_t *end = text->n ? memchr(text->p, '\n', text->n) : NULL;

	if (!text->n || (!end && !is_first))
		return false;
	*line = (struct span){text->p, end ? (size_t)(end - text->p) : text->n};
	text->p += line->n + (end != NULL);
	text->n -= line->n + (end != NULL);
	if (line->n && line->p[line->n - 1] == '\r')
		line->n--;
	return true;
}

static bool is_text(struct span line)
{
	for (size_t i = 0; i < line.n; i++)
		if (line.p[i] < ' ' && line.p[i] != '\t')
			return false;
	return true;
}

static bool is_comment(struct span line)
{
	struct folded_number number;

	return line.n && line.p[0] == '#' && !folded_take_number(&line, &number);
}

bool folded_is(struct span first)
{
	bool has_stack = false;
	size_t n_lines = 0;
	struct span line;

	while (next_line(&first, !n_lines, &line)) {
		struct folded_number number;

		if (!is_text(line))
			return false;
		if (!line.n || is_comment(line))
			continue;
		if (!folded_take_number(&line, &number))
			return false;
		has_stack |= memchr(line.p, ';', line.n) != NULL;
		n_lines++;
	}
	return has_stack;
}

/* ---- the survey ---- */

enum survey_flag { IS_FIRST = 1, IS_DEEPER = 2, BEGINS_STACK = 4 };

struct survey {
	struct intern names;
	VEC(uint8_t) flags; /* by name */
};

static void survey_name(struct survey *s, struct span name, unsigned int flags)
{
	uint32_t id = intern_bytes(&s->names, name.p, name.n);

	vec_ensure_zero(&s->flags, (size_t)id + 1);
	s->flags.v[id] |= (uint8_t)flags;
}

static void survey_stack(struct survey *s, struct span line)
{
	struct span name = folded_take_name(&line);

	survey_name(s, name, IS_FIRST | (line.n ? BEGINS_STACK : 0));
	while (line.n)
		survey_name(s, folded_take_name(&line), IS_DEEPER);
}

static bool are_threads(const struct survey *s)
{
	bool all_sure = s->flags.n > 0, all_may = all_sure;

	for (uint32_t i = 0; i < s->flags.n; i++) {
		struct span name = {(const uint8_t *)s->names.items[i].p, s->names.items[i].n};
		struct folded_thread thread;
		bool is_sure;

		if (!(s->flags.v[i] & IS_FIRST))
			continue;
		is_sure = folded_is_thread(name, &thread);
		all_sure &= is_sure;
		all_may &= is_sure || (s->flags.v[i] == (IS_FIRST | BEGINS_STACK) &&
					      folded_may_be_thread(name));
	}
	return all_sure || all_may;
}

static void look_around(struct folded *f)
{
	struct span text = foreign_input_peek(f->in, SURVEY_BYTES), line;
	struct survey s = {0};
	size_t n_lines = 0, n_two = 0;

	while (next_line(&text, !n_lines, &line)) {
		struct folded_number number;

		if (!line.n || is_comment(line) || !folded_take_number(&line, &number))
			continue;
		n_lines++;
		n_two += folded_take_number(&line, &number);
		survey_stack(&s, line);
	}
	f->has_two_columns = n_lines && n_two == n_lines;
	f->has_threads = f->options->first ? !strcmp(f->options->first, "thread") : are_threads(&s);
	intern_release(&s.names);
	vec_release(&s.flags);
}

/* ---- what is counted ---- */

static const struct unit {
	const char *name, *of_trace, *metric;
	uint64_t scale;
} units[] = {
	{"samples", "1", "samples", 1},
	{"bytes", "bytes", "bytes", 1},
	{"ns", "ns", "time", 1},
	{"us", "ns", "time", 1000},
	{"ms", "ns", "time", 1000000},
	{"s", "ns", "time", 1000000000},
};

static int choose_metric(struct folded *f, struct err *err)
{
	const struct foreign_options *o = f->options;
	const struct unit *unit = &units[0];

	for (size_t i = 0; o->unit && i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(o->unit, units[i].name))
			unit = &units[i];
	if (o->unit && strcmp(o->unit, unit->name) != 0)
		return err_set(err, ERR_NOT_FOUND,
			"--unit: '%s' is none of samples, bytes, ns, us, ms, s", o->unit);
	f->scale = unit->scale;
	if (f->has_two_columns) {
		f->metrics[0] = foreign_trace_metric(f->trace, "before", unit->of_trace);
		f->metrics[1] = foreign_trace_main_metric(f->trace, "after", unit->of_trace);
	} else {
		f->metrics[0] = foreign_trace_main_metric(
			f->trace, o->metric ? o->metric : unit->metric, unit->of_trace);
	}
	return 0;
}

/* What a number of the file is in units of the metric: fractions of these are carried on to the next. False: it
 * is too large. */
static bool weigh(struct folded *f, size_t column, struct folded_number number, uint64_t *weight)
{
	__uint128_t all = ((__uint128_t)number.whole * BILLION + number.billionths) * f->scale;

	f->n_fractions += all % BILLION != 0;
	all += f->rest[column];
	f->rest[column] = (uint64_t)(all % BILLION);
	all /= BILLION;
	*weight = (uint64_t)all;
	return all <= UINT64_MAX;
}

/* ---- lines ---- */

/* A thread that has no numbers gets the next that nobody has. */
static uint32_t named_thread(struct folded *f, struct span name)
{
	uint32_t id = intern_bytes(&f->names, name.p, name.n);

	if (id == f->threads.n) {
		bool is_new = false;

		while (!is_new)
			map_ensure(&f->numbers, ++f->next_tid, &is_new);
		vec_push(&f->threads, foreign_trace_thread(f->trace, 0, f->next_tid, name));
	}
	return f->threads.v[id];
}

static uint32_t thread_of(struct folded *f, struct span name)
{
	struct folded_thread thread;

	if (!folded_is_thread(name, &thread))
		return named_thread(f, name);
	map_ensure(&f->numbers, thread.tid, NULL);
	return foreign_trace_thread(f->trace, thread.pid, thread.tid, thread.name);
}

/* A frame with what is inlined into it: names come outermost first. */
struct pending {
	struct foreign_level levels[SYMBOL_LEVELS_MAX]; /* the last ones, innermost first */
	size_t n;
	enum frame_kind kind;
};

static uint32_t put_pending(struct folded *f, struct pending *p, uint32_t stack)
{
	const struct foreign_frame frame = {
		.kind = p->kind, .levels = p->levels + SYMBOL_LEVELS_MAX - p->n, .n_levels = p->n};

	if (!p->n)
		return stack;
	p->n = 0;
	return foreign_trace_stack(f->trace, stack, foreign_trace_frame(f->trace, &frame));
}

static uint32_t stack_of(struct folded *f, struct span line)
{
	struct pending p = {.n = 0};
	uint32_t stack = 0;

	while (line.n) {
		struct span name = folded_take_name(&line);
		enum frame_kind kind = folded_take_kind(&name);
		bool is_inlined = kind == FRAME_KIND_INLINE && p.n && p.n < SYMBOL_LEVELS_MAX;

		if (!name.n)
			continue;
		if (!is_inlined) {
			stack = put_pending(f, &p, stack);
			p.kind = kind == FRAME_KIND_INLINE ? FRAME_KIND_JITTED : kind;
		}
		p.levels[SYMBOL_LEVELS_MAX - ++p.n] = (struct foreign_level){.name = name};
	}
	return put_pending(f, &p, stack);
}

static int read_line(struct folded *f, struct span line, struct err *err)
{
	struct folded_number numbers[2] = {0};
	size_t n = f->has_two_columns ? 2 : 1;
	struct trace_sample sample = {0};

	for (size_t i = n; i-- > 0;)
		if (!folded_take_number(&line, &numbers[i]))
			return foreign_input_wrong(f->in, err, "the line does not end with %s",
				n == 1 ? "a number" : "two numbers");
	sample.thread = thread_of(f, f->has_threads ? folded_take_name(&line) : (struct span){0});
	sample.stack = stack_of(f, line);
	for (size_t i = 0; i < n; i++) {
		sample.metric = f->metrics[i];
		if (!weigh(f, i, numbers[i], &sample.weight))
			return foreign_input_wrong(f->in, err, "the number is too large");
		foreign_trace_sample(f->trace, 0, &sample);
	}
	return 0;
}

static int read_lines(struct folded *f, struct err *err)
{
	struct span line;
	int rc = 0;

	while (rc == 0 && foreign_input_line(f->in, &line))
		if (line.n && !is_comment(line))
			rc = read_line(f, line, err);
	if (rc == 0)
		rc = foreign_input_failure(f->in, err);
	return rc;
}

static void tell_imperfections(struct folded *f)
{
	if (f->n_fractions)
		foreign_trace_note(f->trace, f->n_fractions,
			"numbers with a fraction of a unit: it was added to the next number");
	if (foreign_input_n_cut(f->in))
		foreign_trace_lost(f->trace, foreign_input_n_cut(f->in),
			"lines that are longer than any stack");
}

int folded_read(struct foreign_input *in, const char *path, const struct foreign_options *options,
	struct trace_writer *w, struct err *err)
{
	struct folded f = {.in = in, .options = options, .trace = foreign_trace_new(w, "folded")};
	int rc;

	(void)path;
	look_around(&f);
	rc = choose_metric(&f, err);
	if (rc == 0)
		rc = read_lines(&f, err);
	if (rc == 0)
		tell_imperfections(&f);
	foreign_trace_free(f.trace);
	intern_release(&f.names);
	vec_release(&f.threads);
	map_release(&f.numbers);
	return rc;
}
