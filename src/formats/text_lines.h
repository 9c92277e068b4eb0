/* SPDX-License-Identifier: MIT */
/* Lines of blank-separated words, with comments from a word that begins with '#' on. */
#ifndef WEIR_FORMATS_TEXT_LINES_H
#define WEIR_FORMATS_TEXT_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/span.h"

#define TEXT_WORD_BYTES_MAX (64 * 1024)

struct text_lines {
	const char *p, *end;	     /* what is left of the text */
	const char *word, *line_end; /* what is left of the line */
	size_t number;		     /* of the line, from 1 */
	const char *name;	     /* of the file, for sentences */
};

void text_lines_init(struct text_lines *t, struct span text, const char *name);
/* Goes to the next line that has a word. False at the end. */
bool text_lines_next(struct text_lines *t);
/* The next word of the line, borrowed from the text; an empty span when there is none. */
struct span text_lines_word(struct text_lines *t);
/* "'FILE':LINE: WHAT" */
int text_lines_fail(const struct text_lines *t, struct err *err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

bool text_word_is(struct span word, const char *text);
/* Plain decimal, at most `max`. */
bool text_word_number(struct span word, uint64_t max, uint64_t *number);
/* A name that can be stored: not too long, no zero byte. Says why not. */
int text_word_check_name(const struct text_lines *t, struct span word, struct err *err);
/* For "%.*s": the word, cut when it is long. */
#define TEXT_WORD_SHOWN(word) ((word).n > 60 ? 60 : (int)(word).n), (const char *)(word).p

#endif
