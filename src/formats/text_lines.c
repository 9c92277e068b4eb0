/* SPDX-License-Identifier: MIT */
#include "formats/text_lines.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void text_lines_init(struct text_lines *t, struct span text, const char *name)
{
	const char *p = text.n ? (const char *)text.p : "";

	*t = (struct text_lines){.p = p, .end = p + text.n, .word = p, .line_end = p, .name = name};
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static void skip_blanks(struct text_lines *t)
{
	while (t->word < t->line_end && is_blank(*t->word))
		t->word++;
	if (t->word < t->line_end && *t->word == '#')
		t->word = t->line_end;
}

bool text_lines_next(struct text_lines *t)
{
	while (t->p < t->end) {
		const char *newline = memchr(t->p, '\n', (size_t)(t->end - t->p));

		t->number++;
		t->word = t->p;
		t->line_end = newline ? newline : t->end;
		t->p = newline ? newline + 1 : t->end;
		skip_blanks(t);
		if (t->word < t->line_end)
			return true;
	}
	return false;
}

struct span text_lines_word(struct text_lines *t)
{
	struct span word;

	skip_blanks(t);
	word.p = (const uint8_t *)t->word;
	while (t->word < t->line_end && !is_blank(*t->word))
		t->word++;
	word.n = (size_t)((const uint8_t *)t->word - word.p);
	return word;
}

int text_lines_fail(const struct text_lines *t, struct err *err, const char *fmt, ...)
{
	char what[300];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	for (char *c = what; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	return err_set(err, ERR_FORMAT, "'%s':%zu: %s", t->name, t->number, what);
}

bool text_word_is(struct span word, const char *text)
{
	return word.n == strlen(text) && (!word.n || !memcmp(word.p, text, word.n));
}

bool text_word_number(struct span word, uint64_t max, uint64_t *number)
{
	uint64_t n = 0;

	for (size_t i = 0; i < word.n; i++) {
		unsigned digit = word.p[i] - (unsigned)'0';

		if (digit > 9 || n > (UINT64_MAX - digit) / 10)
			return false;
		n = n * 10 + digit;
	}
	if (!word.n || n > max)
		return false;
	*number = n;
	return true;
}

int text_word_check_name(const struct text_lines *t, struct span word, struct err *err)
{
	if (word.n > TEXT_WORD_BYTES_MAX)
		return text_lines_fail(
			t, err, "a name has %zu bytes, more than %d", word.n, TEXT_WORD_BYTES_MAX);
	if (memchr(word.p, 0, word.n))
		return text_lines_fail(t, err, "a name has a zero byte");
	return 0;
}
