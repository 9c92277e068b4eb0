/* SPDX-License-Identifier: MIT */
#include "insert/link_script.h"

#include <string.h>

#include "base/mem.h"

#define SCRIPT_BYTES_MAX (1 << 20)
#define SCRIPT_BLANKS	 " \t\r\n,;"
#define SCRIPT_SIGNS	 "(){}"

static bool is_one_of(uint8_t c, const char *texts)
{
	return c && strchr(texts, c);
}

/* The next word: one of the signs, what stands in quotes, or what stands between blanks and signs. Comments
 * are skipped. Empty at the end. */
static struct span script_word(struct cursor *c)
{
	const uint8_t *start;

	for (;;) {
		while (c->p < c->end && is_one_of(*c->p, SCRIPT_BLANKS))
			c->p++;
		if (cursor_left(c) < 2 || memcmp(c->p, "/*", 2))
			break;
		start = memmem(c->p + 2, cursor_left(c) - 2, "*/", 2);
		c->p = start ? start + 2 : c->end;
	}
	start = c->p;
	if (c->p < c->end && is_one_of(*c->p, SCRIPT_SIGNS)) {
		c->p++;
	} else if (c->p < c->end && *c->p == '"') {
		const uint8_t *quote = memchr(start + 1, '"', cursor_left(c) - 1);

		c->p = quote ? quote + 1 : c->end;
	} else {
		while (c->p < c->end && !is_one_of(*c->p, SCRIPT_BLANKS SCRIPT_SIGNS "\""))
			c->p++;
	}
	return (struct span){start, (size_t)(c->p - start)};
}

static bool word_is(struct span word, const char *text)
{
	return word.n == strlen(text) && !memcmp(word.p, text, word.n);
}

struct reading {
	struct cursor c;
	link_script_each *each;
	void *context;
	size_t n; /* words given */
};

static void give(struct reading *r, enum link_script_use use, struct span word)
{
	r->n++;
	if (r->each)
		r->each(r->context, use, word);
}

/* What is between parentheses, that of AS_NEEDED ( ... ) too; false when they are not closed. */
static bool read_list(struct reading *r, enum link_script_use use)
{
	size_t depth = 1;

	while (depth) {
		struct span word = script_word(&r->c);

		if (!word.n)
			return false;
		if (word_is(word, "("))
			depth++;
		else if (word_is(word, ")"))
			depth--;
		else if (!word_is(word, "AS_NEEDED"))
			give(r, use, word);
	}
	return true;
}

static bool is_sign(struct span word)
{
	return word.n == 1 && is_one_of(word.p[0], SCRIPT_SIGNS);
}

/* What a command takes in parentheses; false: it is another one. */
static bool list_use(struct span word, enum link_script_use *use)
{
	*use = word_is(word, "SEARCH_DIR") ? LINK_SCRIPT_FOLDER : LINK_SCRIPT_INPUT;
	return *use == LINK_SCRIPT_FOLDER || word_is(word, "GROUP") || word_is(word, "INPUT") ||
	       word_is(word, "STARTUP");
}

bool link_script_read(struct span text, link_script_each *each, void *context)
{
	struct reading r = {cursor_of(text), each, context, 0};
	size_t depth = 0;
	struct span word;

	if (!text.n || text.n > SCRIPT_BYTES_MAX || memchr(text.p, 0, text.n))
		return false;
	for (word = script_word(&r.c); word.n;) {
		enum link_script_use use;
		bool is_list = !depth && list_use(word, &use);
		bool is_include = !depth && word_is(word, "INCLUDE");

		depth += word_is(word, "{");
		depth -= depth && word_is(word, "}");
		word = script_word(&r.c);
		if (is_include && word.n && !is_sign(word))
			give(&r, LINK_SCRIPT_INCLUDE, word);
		else if (!is_list || !word_is(word, "("))
			continue;
		else if (!read_list(&r, use))
			return false;
		word = script_word(&r.c);
	}
	return r.n;
}

char *link_script_name(struct span word)
{
	if (word.n >= 2 && word.p[0] == '"' && word.p[word.n - 1] == '"')
		return mem_strndup((const char *)word.p + 1, word.n - 2);
	return mem_strndup((const char *)word.p, word.n);
}
