/* SPDX-License-Identifier: MIT */
/*
 * What a function used itself, line by line and event by event. A profile of callgrind has no call paths: who called
 * whom is known by pairs, from which no tree can be made, so that the trace says that there is none (META call_paths).
 *
 * 1. Names may be compressed: "(number) name" says what "(number)" is from there on, apart for files, functions, objects.
 * 2. Positions may be relative to those of the line of costs before, whatever that belonged to.
 * 3. The line of costs behind "calls=" is what the called function used with all that it calls, and no function's own.
 */
#include "formats/foreign/callgrind_read.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "formats/foreign/foreign_trace.h"
#include "formats/text_lines.h"

#define EVENTS_MAX     64
#define COMPRESSED_MAX ((uint64_t)1 << 24) /* numbers of names */
#define POSITIONS_MAX  8

/* Names of one kind: by number, ids in texts. */
struct names {
	VEC(uint32_t) text_of; /* + 1; 0: not said yet */
};

struct callgrind {
	struct foreign_input *in;
	struct foreign_trace *trace;
	struct intern texts;
	struct names files, functions, objects;
	uint32_t file, function, object; /* of the lines that come: ids in texts */
	uint32_t metrics[EVENTS_MAX];
	size_t n_events;
	size_t n_positions, line_position; /* which of them is the line; SIZE_MAX: none */
	uint64_t positions[POSITIONS_MAX];
	uint32_t thread; /* 0: the file has not said any */
	bool is_call;	 /* the next line of costs is inclusive */
	bool is_jump;	 /* the next line has positions and no costs */
	bool has_events, has_main;
	uint64_t n_calls, n_jumps;
	uint64_t sum, said; /* of the first event: what was read, what the file says */
	bool is_said;
};

bool callgrind_is(struct span first)
{
	static const char *const keys[] = {"# callgrind format",
		"version:", "creator:", "desc:", "positions:", "events:", "cmd:", "pid:"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		size_t n = strlen(keys[i]);

		if (first.n >= n && !memcmp(first.p, keys[i], n))
			return i == 0 || memmem(first.p, first.n, "\nevents:", 8) ||
			       memmem(first.p, first.n, "\npositions:", 11) ||
			       memmem(first.p, first.n, "\ncmd:", 5);
	}
	return false;
}

/* ---- words ---- */

static bool starts(struct span *line, const char *key)
{
	size_t n = strlen(key);

	if (line->n < n || memcmp(line->p, key, n) != 0)
		return false;
	line->p += n;
	line->n -= n;
	return true;
}

static void skip_blanks(struct span *line)
{
	while (line->n && (*line->p == ' ' || *line->p == '\t')) {
		line->p++;
		line->n--;
	}
}

static struct span take_word(struct span *line)
{
	struct span word;

	skip_blanks(line);
	word = (struct span){line->p, 0};
	while (line->n && *line->p != ' ' && *line->p != '\t') {
		line->p++;
		line->n--;
		word.n++;
	}
	return word;
}

static bool read_number(struct span word, uint64_t *number)
{
	uint64_t n = 0;

	if (word.n < 3 || word.n > 18 || word.p[0] != '0' || (word.p[1] | 0x20) != 'x')
		return text_word_number(word, UINT64_MAX, number);
	for (size_t i = 2; i < word.n; i++) {
		uint8_t c = word.p[i], lower = c | 0x20;

		if (c >= '0' && c <= '9')
			n = n << 4 | (uint64_t)(c - '0');
		else if (lower >= 'a' && lower <= 'f')
			n = n << 4 | (uint64_t)(lower - 'a' + 10);
		else
			return false;
	}
	*number = n;
	return true;
}

/* A name, or the number of one: the id of its text. */
static int take_name(
	struct callgrind *c, struct names *names, struct span text, uint32_t *id, struct err *err)
{
	const uint8_t *end = text.n > 2 && text.p[0] == '(' ? memchr(text.p, ')', text.n) : NULL;
	uint64_t number;

	if (!end || !text_word_number((struct span){text.p + 1, (size_t)(end - text.p) - 1},
			    UINT64_MAX, &number)) {
		*id = intern_bytes(&c->texts, text.p, text.n);
		return 0;
	}
	if (number >= COMPRESSED_MAX)
		return foreign_input_wrong(c->in, err, "the number of the name is too large");
	text.n -= (size_t)(end + 1 - text.p);
	text.p = end + 1;
	skip_blanks(&text);
	vec_ensure_zero(&names->text_of, (size_t)number + 1);
	if (text.n)
		names->text_of.v[number] = intern_bytes(&c->texts, text.p, text.n) + 1;
	if (!names->text_of.v[number])
		return foreign_input_wrong(
			c->in, err, "nobody said which name (%" PRIu64 ") is", number);
	*id = names->text_of.v[number] - 1;
	return 0;
}

/* ---- the head ---- */

/* The events by which weir counts, too, have its names. */
static void make_metric(struct callgrind *c, struct span name)
{
	char *text = mem_strndup((const char *)name.p, name.n);
	const char *metric = strcmp(text, "Ir") ? text : "instructions";

	c->metrics[c->n_events++] = c->has_main ? foreign_trace_metric(c->trace, metric, "1")
						: foreign_trace_main_metric(c->trace, metric, "1");
	c->has_main = true;
	free(text);
}

static int read_events(struct callgrind *c, struct span line, struct err *err)
{
	c->n_events = 0;
	c->has_events = true;
	for (struct span word = take_word(&line); word.n; word = take_word(&line)) {
		if (c->n_events == EVENTS_MAX)
			return foreign_input_wrong(c->in, err, "has too many events");
		make_metric(c, word);
	}
	return 0;
}

static int read_positions(struct callgrind *c, struct span line, struct err *err)
{
	c->n_positions = 0;
	c->line_position = SIZE_MAX;
	for (struct span word = take_word(&line); word.n; word = take_word(&line)) {
		if (c->n_positions == POSITIONS_MAX)
			return foreign_input_wrong(c->in, err, "has too many positions");
		if (text_word_is(word, "line"))
			c->line_position = c->n_positions;
		c->n_positions++;
	}
	return 0;
}

/* Of the whole file, where it says so; else of its parts together. */
static void read_sum(struct callgrind *c, struct span line, bool is_total)
{
	uint64_t n;

	if (!text_word_number(take_word(&line), UINT64_MAX, &n))
		return;
	c->said = is_total ? n : c->said + n;
	c->is_said = true;
}

static void read_thread(struct callgrind *c, struct span line)
{
	uint64_t tid = 0;

	text_word_number(take_word(&line), UINT32_MAX, &tid);
	c->thread = foreign_trace_thread(c->trace, 0, (uint32_t)tid, (struct span){0});
}

/* "key: value"; false: it is no such line. */
static bool read_head(struct callgrind *c, struct span line, int *rc, struct err *err)
{
	static const char *const others[] = {
		"version:", "creator:", "pid:", "cmd:", "part:", "desc:", "event:", "rcalls="};

	if (starts(&line, "events:"))
		*rc = read_events(c, line, err);
	else if (starts(&line, "positions:"))
		*rc = read_positions(c, line, err);
	else if (starts(&line, "thread:"))
		read_thread(c, line);
	else if (starts(&line, "summary:"))
		read_sum(c, line, false);
	else if (starts(&line, "totals:"))
		read_sum(c, line, true);
	else {
		for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
			if (starts(&line, others[i]))
				return true;
		return false;
	}
	return true;
}

/* ---- the body ---- */

/* "key=value"; false: it is no such line. */
static bool read_name(struct callgrind *c, struct span line, int *rc, struct err *err)
{
	uint32_t other;
	const struct key {
		const char *key;
		struct names *names;
		uint32_t *id;
	} keys[] = {
		{"fl=", &c->files, &c->file},
		{"fi=", &c->files, &c->file},
		{"fe=", &c->files, &c->file},
		{"fn=", &c->functions, &c->function},
		{"ob=", &c->objects, &c->object},
		{"cfi=", &c->files, &other},
		{"cfl=", &c->files, &other},
		{"cfn=", &c->functions, &other},
		{"cob=", &c->objects, &other},
		{"jfi=", &c->files, &other},
		{"jfn=", &c->functions, &other},
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (starts(&line, keys[i].key)) {
			*rc = take_name(c, keys[i].names, line, keys[i].id, err);
			return true;
		}
	if (starts(&line, "calls=")) {
		c->is_call = true;
		return true;
	}
	if (starts(&line, "jump=") || starts(&line, "jcnd=")) {
		c->is_jump = true;
		return true;
	}
	return false;
}

static bool read_position(struct callgrind *c, struct span word, size_t i)
{
	uint64_t n = 0;

	if (text_word_is(word, "*"))
		return true;
	if (word.n > 1 && (word.p[0] == '+' || word.p[0] == '-')) {
		if (!read_number((struct span){word.p + 1, word.n - 1}, &n))
			return false;
		c->positions[i] += word.p[0] == '+' ? n : -n;
		return true;
	}
	return read_number(word, &c->positions[i]);
}

static struct span text_of(const struct callgrind *c, uint32_t id)
{
	const struct intern_item *item = &c->texts.items[id];

	return (struct span){(const uint8_t *)item->p, item->n};
}

static bool is_unknown(struct span name)
{
	return text_word_is(name, "???");
}

static uint32_t stack_of(struct callgrind *c)
{
	uint64_t line = c->line_position < c->n_positions ? c->positions[c->line_position] : 0;
	struct foreign_level level = {.name = text_of(c, c->function),
		.file = text_of(c, c->file),
		.line = line < UINT32_MAX ? (uint32_t)line : 0};
	struct foreign_frame frame = {.kind = FRAME_KIND_NATIVE,
		.image = text_of(c, c->object),
		.levels = &level,
		.n_levels = 1};

	if (is_unknown(level.file))
		level.file = (struct span){0};
	if (is_unknown(frame.image))
		frame.image = (struct span){0};
	if (!level.name.n)
		level.name = (struct span){(const uint8_t *)"???", 3};
	return foreign_trace_stack(c->trace, 0, foreign_trace_frame(c->trace, &frame));
}

static int read_costs(struct callgrind *c, struct span line, struct err *err)
{
	struct trace_sample sample = {0};
	bool is_own = !c->is_call && !c->is_jump;

	if (!c->has_events)
		return foreign_input_wrong(c->in, err, "there are costs, but no events");
	for (size_t i = 0; i < c->n_positions; i++)
		if (!read_position(c, take_word(&line), i))
			return foreign_input_wrong(c->in, err, "is no line of a profile");
	c->n_calls += c->is_call;
	c->n_jumps += c->is_jump;
	c->is_call = c->is_jump = false;
	if (!is_own)
		return 0;
	if (!c->thread)
		c->thread = foreign_trace_thread(c->trace, 0, 0, (struct span){0});
	sample.thread = c->thread;
	sample.stack = stack_of(c);
	for (size_t i = 0; i < c->n_events; i++) {
		struct span word = take_word(&line);

		if (!word.n)
			break; /* the others are zero */
		if (text_word_is(word, "."))
			continue;
		if (!read_number(word, &sample.weight))
			return foreign_input_wrong(c->in, err, "is no line of a profile");
		sample.metric = c->metrics[i];
		c->sum += i ? 0 : sample.weight;
		foreign_trace_sample(c->trace, 0, &sample);
	}
	return 0;
}

static int read_lines(struct callgrind *c, struct err *err)
{
	struct span line;
	int rc = 0;

	while (rc == 0 && foreign_input_line(c->in, &line)) {
		skip_blanks(&line);
		if (!line.n || line.p[0] == '#')
			continue;
		if (!read_head(c, line, &rc, err) && !read_name(c, line, &rc, err))
			rc = read_costs(c, line, err);
	}
	if (rc == 0)
		rc = foreign_input_failure(c->in, err);
	if (rc == 0 && !c->has_events)
		rc = foreign_input_wrong(c->in, err, "has no events");
	return rc;
}

static void tell_imperfections(struct callgrind *c)
{
	if (c->n_calls)
		foreign_trace_note(c->trace, c->n_calls,
			"calls with what they cost: what functions used themselves is shown, not who "
			"called them");
	if (c->n_jumps)
		foreign_trace_note(c->trace, c->n_jumps, "jumps are not shown");
	if (c->is_said && c->said != c->sum)
		foreign_trace_note(c->trace, 1,
			"the file's own sum of its first event is another one than that of its lines");
	if (foreign_input_n_cut(c->in))
		foreign_trace_lost(c->trace, foreign_input_n_cut(c->in), "lines that are too long");
}

int callgrind_read(struct foreign_input *in, const char *path,
	const struct foreign_options *options, struct trace_writer *w, struct err *err)
{
	struct callgrind c = {
		.in = in, .trace = foreign_trace_new(w, "callgrind"), .n_positions = 1};
	int rc;

	(void)path;
	(void)options;
	trace_writer_meta(w, "call_paths", "none");
	intern_text(&c.texts, "");
	rc = read_lines(&c, err);
	if (rc == 0)
		tell_imperfections(&c);
	foreign_trace_free(c.trace);
	intern_release(&c.texts);
	vec_release(&c.files.text_of);
	vec_release(&c.functions.text_of);
	vec_release(&c.objects.text_of);
	return rc;
}
