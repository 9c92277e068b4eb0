/* SPDX-License-Identifier: MIT */
#include "formats/foreign/folded_line.h"

#include <string.h>

#include "formats/text_lines.h"

#define COMM_BYTES_MAX 15 /* of a thread's name in Linux */

static bool is_digit(uint8_t c)
{
	return c >= '0' && c <= '9';
}

static bool read_number(struct span word, struct folded_number *number)
{
	const uint8_t *point = memchr(word.p, '.', word.n);
	size_t n_whole = point ? (size_t)(point - word.p) : word.n;
	uint64_t unit = 1000000000;

	*number = (struct folded_number){0};
	if (!text_word_number((struct span){word.p, n_whole}, UINT64_MAX, &number->whole))
		return false;
	for (size_t i = n_whole + 1; i < word.n; i++) {
		if (!is_digit(word.p[i]))
			return false;
		unit /= 10;
		number->billionths += unit * (word.p[i] - (uint64_t)'0');
	}
	return !point || n_whole + 1 < word.n;
}

bool folded_take_number(struct span *line, struct folded_number *number)
{
	size_t end = line->n, blank;

	while (end && (line->p[end - 1] == ' ' || line->p[end - 1] == '\t'))
		end--;
	blank = end;
	while (blank && line->p[blank - 1] != ' ' && line->p[blank - 1] != '\t')
		blank--;
	if (!blank || !read_number((struct span){line->p + blank, end - blank}, number))
		return false;
	line->n = blank - 1;
	return line->n > 0;
}

struct span folded_take_name(struct span *line)
{
	const uint8_t *end = line->n ? memchr(line->p, ';', line->n) : NULL;
	struct span name = {line->p, end ? (size_t)(end - line->p) : line->n};

	line->p += name.n + (end != NULL);
	line->n -= name.n + (end != NULL);
	return name;
}

static bool take_ending(struct span *name, const char *ending)
{
	size_t n = strlen(ending);

	if (name->n <= n || memcmp(name->p + name->n - n, ending, n) != 0)
		return false;
	name->n -= n;
	return true;
}

enum frame_kind folded_take_kind(struct span *name)
{
	static const struct {
		const char *ending;
		enum frame_kind kind;
	} endings[] = {
		{"_[k]", FRAME_KIND_KERNEL},
		{"[k]", FRAME_KIND_KERNEL},
		{"_[j]", FRAME_KIND_JITTED},
		{"_[1]", FRAME_KIND_JITTED},
		{"_[i]", FRAME_KIND_INLINE},
		{"_[0]", FRAME_KIND_INTERPRETED},
	};

	if (name->n < 4 || name->p[name->n - 1] != ']')
		return FRAME_KIND_NATIVE;
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++)
		if (take_ending(name, endings[i].ending))
			return endings[i].kind;
	return FRAME_KIND_NATIVE;
}

/* "PID_TID", either of which is "pid" or "tid" when it is not known. */
static bool is_root_name(struct span name, struct folded_thread *thread)
{
	const uint8_t *mark = memchr(name.p, '_', name.n);
	struct span pid, tid;
	uint64_t numbers[2] = {0, 0};

	if (!mark)
		return false;
	pid = (struct span){name.p, (size_t)(mark - name.p)};
	tid = (struct span){mark + 1, name.n - pid.n - 1};
	if (!text_word_is(pid, "pid") && !text_word_number(pid, UINT32_MAX, &numbers[0]))
		return false;
	if (!text_word_is(tid, "tid") && !text_word_number(tid, UINT32_MAX, &numbers[1]))
		return false;
	*thread = (struct folded_thread){.pid = (uint32_t)numbers[0], .tid = (uint32_t)numbers[1]};
	return true;
}

/* The last `mark` in *text ends it; the number behind it, or '?'. */
static bool take_last(struct span *text, uint8_t mark, uint64_t *number)
{
	size_t at = text->n;
	struct span word;

	while (at && text->p[at - 1] != mark)
		at--;
	if (!at)
		return false;
	word = (struct span){text->p + at, text->n - at};
	if (!text_word_is(word, "?") && !text_word_number(word, UINT32_MAX, number))
		return false;
	text->n = at - 1;
	return true;
}

static bool is_name_and_numbers(struct span name, struct folded_thread *thread)
{
	struct span rest = name;
	uint64_t tid = 0, pid = 0;

	if (!take_last(&rest, '/', &tid)) {
		rest = name;
		tid = 0;
	}
	if (!take_last(&rest, '-', &pid) || !rest.n || rest.n > COMM_BYTES_MAX)
		return false;
	*thread = (struct folded_thread){rest, (uint32_t)pid, (uint32_t)(tid ? tid : pid)};
	return true;
}

static bool is_in_brackets(struct span name, struct folded_thread *thread)
{
	static const char key[] = " tid=";
	struct span rest = name;
	uint64_t tid = 0;

	if (name.n < sizeof(key) || name.p[0] != '[' || name.p[name.n - 1] != ']')
		return false;
	rest.n--;
	if (!take_last(&rest, '=', &tid) || !take_ending(&rest, " tid"))
		return false;
	*thread = (struct folded_thread){{rest.p + 1, rest.n - 1}, 0, (uint32_t)tid};
	return true;
}

bool folded_is_thread(struct span name, struct folded_thread *thread)
{
	return name.n && (is_root_name(name, thread) || is_in_brackets(name, thread) ||
				 is_name_and_numbers(name, thread));
}

bool folded_may_be_thread(struct span name)
{
	static const char *const functions[] = {"main", "_start", "start", "all", "root", "clone",
		"__clone", "clone3", "__clone3", "start_thread", "[unknown]", "_dl_start_user",
		"__libc_start_main"};

	if (!name.n || name.n > COMM_BYTES_MAX)
		return false;
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (text_word_is(name, functions[i]))
			return false;
	for (size_t i = 0; i < name.n; i++) {
		uint8_t c = name.p[i], next = i + 1 < name.n ? name.p[i + 1] : 0;

		if (strchr("()[]<>`", c) || (c == ':' && next == ':') ||
			(c == '.' && next && !is_digit(next)))
			return false;
	}
	return true;
}
