/* SPDX-License-Identifier: MIT */
#include "base/buf.h"
#include "cmd/probe.h"

/* One quoted part, from behind its opening quote; NULL when it is not closed. */
static const char *take_quoted(const char *p, char quote, struct buf *word)
{
	for (; *p && *p != quote; p++) {
		if (quote == '"' && *p == '\\' && p[1] && strchr("\"\\$`", p[1]))
			p++;
		buf_put_u8(word, (uint8_t)*p);
	}
	return *p ? p + 1 : NULL;
}

/* A word from its first character on; gives where it ends. */
static const char *take_word(const char *p, struct buf *word)
{
	while (p && *p && !strchr(" \t\n", *p)) {
		if (*p == '\'' || *p == '"') {
			p = take_quoted(p + 1, *p, word);
			continue;
		}
		if (*p == '\\' && p[1])
			p++;
		buf_put_u8(word, (uint8_t)*p++);
	}
	return p;
}

bool probe_split_words(const char *text, struct option_texts *out)
{
	struct buf word = {0};
	const char *p = text;

	while (p && *(p += strspn(p, " \t\n"))) {
		buf_reset(&word);
		p = take_word(p, &word);
		if (p)
			vec_push(out, mem_strdup(buf_text(&word)));
	}
	buf_release(&word);
	return p;
}

void probe_split_blanks(const char *text, struct option_texts *out)
{
	static const char blanks[] = " \t\n";

	for (const char *p = text; *(p += strspn(p, blanks)); p += strcspn(p, blanks))
		vec_push(out, mem_strndup(p, strcspn(p, blanks)));
}
