/* SPDX-License-Identifier: MIT */
/* Response files, by the rules of libiberty, which GNU ld and gold use and lld and mold follow. */
#include "insert/link_command.h"

#include <stdlib.h>

void link_words_release(struct link_words *words)
{
	vec_release_all(words);
}

static bool is_blank(uint8_t c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* One word from *at on, which is no blank. A NUL ends the text, as it does for the linker. */
static char *split_word(struct span text, size_t *at)
{
	struct buf word = {0};
	uint8_t quote = 0;
	char *result;

	for (; *at < text.n && text.p[*at]; (*at)++) {
		uint8_t c = text.p[*at];

		if (c == '\\' && *at + 1 < text.n && text.p[*at + 1]) {
			/* Within single quotes too: that is how libiberty does it. */
			buf_put_u8(&word, text.p[++*at]);
		} else if (quote ? c == quote : c == '\'' || c == '"') {
			quote = quote ? 0 : c;
		} else if (!quote && is_blank(c)) {
			break;
		} else {
			buf_put_u8(&word, c);
		}
	}
	result = mem_strdup(buf_text(&word));
	buf_release(&word);
	return result;
}

void link_words_split(struct span text, struct link_words *out)
{
	size_t at = 0;

	for (;;) {
		while (at < text.n && is_blank(text.p[at]))
			at++;
		if (at >= text.n || !text.p[at])
			return;
		vec_push(out, split_word(text, &at));
	}
}

void link_words_join(const struct link_words *words, struct buf *out)
{
	for (size_t i = 0; i < words->n; i++) {
		const char *word = words->v[i];

		if (!*word)
			buf_put_cstr(out, "\"\"");
		for (; *word; word++) {
			if (is_blank((uint8_t)*word) || *word == '\\' || *word == '\'' ||
				*word == '"')
				buf_put_u8(out, '\\');
			buf_put_u8(out, (uint8_t)*word);
		}
		buf_put_u8(out, '\n');
	}
}
