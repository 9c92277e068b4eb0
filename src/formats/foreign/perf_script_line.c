/* SPDX-License-Identifier: MIT */
#include "formats/foreign/perf_script_line.h"

#include <string.h>

#include "formats/text_lines.h"

#define WORDS_MAX      64 /* of a head; what comes later is the event's own */
#define KERNEL_ADDRESS ((uint64_t)1 << 63)
#define VSYSCALL       0xffffffffff600000u

static bool is_blank(uint8_t c)
{
	return c == ' ' || c == '\t';
}

static bool is_digit(uint8_t c)
{
	return c >= '0' && c <= '9';
}

static struct span trim(struct span s)
{
	while (s.n && is_blank(s.p[0])) {
		s.p++;
		s.n--;
	}
	while (s.n && is_blank(s.p[s.n - 1]))
		s.n--;
	return s;
}

/* From `from` on to in front of `to`. */
static struct span between(const uint8_t *from, const uint8_t *to)
{
	return trim((struct span){from, from < to ? (size_t)(to - from) : 0});
}

static size_t split(struct span line, struct span *words)
{
	size_t n = 0;

	for (size_t i = 0; i < line.n && n < WORDS_MAX;) {
		size_t from = i;

		while (i < line.n && !is_blank(line.p[i]))
			i++;
		if (i > from)
			words[n++] = (struct span){line.p + from, i - from};
		while (i < line.n && is_blank(line.p[i]))
			i++;
	}
	return n;
}

/* --- heads ------------------------------------------------------------------------------ */

/* "12.345678:", microseconds or nanoseconds. */
static bool parse_time(struct span word, uint64_t *ns)
{
	const uint8_t *point = word.n ? memchr(word.p, '.', word.n) : NULL;
	uint64_t seconds, fraction, scale = 1000000000u;
	struct span behind;

	if (!point || word.p[word.n - 1] != ':')
		return false;
	behind = (struct span){point + 1, (size_t)(word.p + word.n - 1 - (point + 1))};
	if (!behind.n || behind.n > 9 ||
		!text_word_number((struct span){word.p, (size_t)(point - word.p)},
			UINT64_MAX / scale - 1, &seconds) ||
		!text_word_number(behind, scale, &fraction))
		return false;
	for (size_t i = 0; i < behind.n; i++)
		scale /= 10;
	*ns = seconds * 1000000000u + fraction * scale;
	return true;
}

/* "123", "123/124"; those of the idle task and of tasks that have ended are "0" and "-1". */
static bool parse_one_task(struct span word, uint32_t *id)
{
	uint64_t n;

	if (word.n == 2 && !memcmp(word.p, "-1", 2)) {
		*id = UINT32_MAX;
		return true;
	}
	if (!text_word_number(word, UINT32_MAX, &n))
		return false;
	*id = (uint32_t)n;
	return true;
}

static bool parse_task(struct span word, struct perf_script_head *h)
{
	const uint8_t *slash = memchr(word.p, '/', word.n);
	struct span first = {word.p, slash ? (size_t)(slash - word.p) : word.n};

	if (!parse_one_task(first, &h->pid))
		return false;
	h->tid = h->pid;
	return !slash || parse_one_task((struct span){slash + 1, word.n - first.n - 1}, &h->tid);
}

static bool parse_cpu(struct span word, uint32_t *cpu)
{
	uint64_t n;

	if (word.n < 3 || word.p[0] != '[' || word.p[word.n - 1] != ']' ||
		!text_word_number((struct span){word.p + 1, word.n - 2}, UINT32_MAX, &n))
		return false;
	*cpu = (uint32_t)n;
	return true;
}

static bool ends_with_colon(struct span word)
{
	return word.n > 1 && word.p[word.n - 1] == ':';
}

/* What stands in front of word `n`: command, ids, CPU and, perhaps, flags. False: there are no ids. */
static bool parse_task_part(
	const struct span *words, size_t n, const uint8_t *begin, struct perf_script_head *h)
{
	for (size_t i = n; i--;) {
		if (!h->has_cpu && parse_cpu(words[i], &h->cpu)) {
			h->has_cpu = true;
		} else if (parse_task(words[i], h)) {
			h->comm = between(begin, words[i].p);
			return true;
		} else if (i + 2 < n) {
			return false;
		}
	}
	return false;
}

/* From word `i` on: the period and the event, or one of them. False: there is no event. */
static bool parse_event_part(
	const struct span *words, size_t n, size_t i, struct span line, struct perf_script_head *h)
{
	const uint8_t *end = line.p + line.n;

	if (i + 1 < n && text_word_number(words[i], UINT64_MAX, &h->period)) {
		h->has_period = true;
		i++;
	}
	if (i >= n || !ends_with_colon(words[i])) {
		h->rest = i < n ? between(words[i].p, end) : (struct span){NULL, 0};
		return false;
	}
	h->event = (struct span){words[i].p, words[i].n - 1};
	h->rest = between(words[i].p + words[i].n, end);
	return true;
}

/* Without a time an event must be there, or the ids end the line. */
static bool parse_timeless(
	const struct span *words, size_t n, struct span line, struct perf_script_head *h)
{
	for (size_t i = 1; i < n; i++) {
		uint64_t period;
		size_t from = i;

		if (!ends_with_colon(words[i]))
			continue;
		if (i > 1 && text_word_number(words[i - 1], UINT64_MAX, &period) &&
			parse_task_part(words, i - 1, line.p, h))
			from = i - 1;
		else if (!parse_task_part(words, i, line.p, h))
			continue;
		return parse_event_part(words, n, from, line, h);
	}
	return parse_task_part(words, n, line.p, h) && (h->has_cpu || words[n - 1].p[0] != '[');
}

bool perf_script_head(struct span line, struct perf_script_head *h)
{
	struct span words[WORDS_MAX];
	size_t n = split(line, words);

	*h = (struct perf_script_head){.has_time = false};
	for (size_t i = 1; i < n; i++) {
		if (!parse_time(words[i], &h->time_ns) || !parse_task_part(words, i, line.p, h))
			continue;
		h->has_time = true;
		parse_event_part(words, n, i + 1, line, h);
		return true;
	}
	return n > 1 && !is_blank(line.p[0]) && parse_timeless(words, n, line, h);
}

/* --- frames ----------------------------------------------------------------------------- */

static bool parse_hex(struct span word, uint64_t *number)
{
	uint64_t n = 0;

	if (word.n > 2 && word.p[0] == '0' && word.p[1] == 'x')
		word = (struct span){word.p + 2, word.n - 2};
	for (size_t i = 0; i < word.n; i++) {
		uint8_t c = word.p[i] | 0x20;

		if (!is_digit(word.p[i]) && (c < 'a' || c > 'f'))
			return false;
		n = n << 4 | (is_digit(word.p[i]) ? word.p[i] - (unsigned)'0' : c - 'a' + 10u);
	}
	*number = n;
	return word.n && word.n <= 16;
}

/* The brackets at the end, which may have others inside: "(/tmp/x (deleted))". */
static struct span take_file(struct span *s)
{
	struct span file = {NULL, 0};
	size_t depth = 0, i = s->n;

	if (!s->n || s->p[s->n - 1] != ')')
		return file;
	while (i--) {
		depth += s->p[i] == ')';
		depth -= s->p[i] == '(';
		if (!depth)
			break;
	}
	if (depth || (i && !is_blank(s->p[i - 1]))) /* a function's own brackets */
		return file;
	file = (struct span){s->p + i + 1, s->n - i - 2};
	*s = trim((struct span){s->p, i});
	return file;
}

static struct span without_offset(struct span s)
{
	size_t i = s.n;
	uint64_t offset;

	while (i && s.p[i - 1] != '+')
		i--;
	if (i > 1 && s.n - i > 2 && s.p[i] == '0' && s.p[i + 1] == 'x' &&
		parse_hex((struct span){s.p + i, s.n - i}, &offset))
		s.n = i - 1;
	return s;
}

static bool starts_with(struct span s, const char *text)
{
	return s.n >= strlen(text) && !memcmp(s.p, text, strlen(text));
}

bool perf_script_frame(struct span line, struct perf_script_frame *f)
{
	struct span s = trim(line), first;
	size_t n = 0;

	*f = (struct perf_script_frame){.has_address = false};
	f->file = take_file(&s);
	while (n < s.n && !is_blank(s.p[n]))
		n++;
	first = (struct span){s.p, n};
	f->has_address = parse_hex(first, &f->address) && (n < s.n || f->file.n || n >= 4);
	if (f->has_address)
		s = trim((struct span){s.p + n, s.n - n});
	f->symbol = without_offset(s);
	f->is_inlined = f->file.n == 7 && !memcmp(f->file.p, "inlined", 7);
	f->is_kernel = starts_with(f->file, "[kernel") || starts_with(f->file, "[guest.kernel") ||
		       (f->has_address && f->address >= KERNEL_ADDRESS && f->address < VSYSCALL &&
			       !starts_with(f->file, "[unknown"));
	return f->has_address || f->symbol.n;
}

bool perf_script_place(struct span line, struct span *file, uint32_t *number)
{
	struct span s = trim(line);
	size_t i = s.n;
	uint64_t n;

	while (i && is_digit(s.p[i - 1]))
		i--;
	if (i < 2 || i == s.n || s.p[i - 1] != ':' || memchr(s.p, '(', s.n) ||
		!text_word_number((struct span){s.p + i, s.n - i}, UINT32_MAX, &n))
		return false;
	*file = (struct span){s.p, i - 1};
	*number = (uint32_t)n;
	return true;
}
