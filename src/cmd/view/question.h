/* SPDX-License-Identifier: MIT */
/*
 * A question that a page asks: "report/flat?metric=cpu&limit=20". Bytes from outside: nothing in it is
 * trusted, and what nobody knows is refused, since the answer would be one to something else.
 */
#ifndef WEIR_CMD_VIEW_QUESTION_H
#define WEIR_CMD_VIEW_QUESTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define QUESTION_BYTES_MAX 65536
#define QUESTION_KEYS_MAX  32
#define QUESTION_KEYS_SET  2 /* by question_set, beside those of the question itself */

struct question {
	const char *kind; /* "report" */
	const char *name; /* "flat", or "" */
	struct {
		const char *key, *value;
	} keys[QUESTION_KEYS_MAX + QUESTION_KEYS_SET];
	size_t n_keys;
	char *text; /* owns all of these */
};

/* Percent-encoded bytes are decoded, '+' is a blank; a NUL, encoded or not, is refused. */
int question_parse(struct question *q, const char *text, size_t n, struct err *err);
void question_release(struct question *q);

/* NULL when the key is not there; "" is a value. */
const char *question_text(const struct question *q, const char *key);
/* Gives the key another value, which is borrowed; for a copy of a question that is to ask something else. */
void question_set(struct question *q, const char *key, const char *value);
/* `*value` stays when the key is not there. */
int question_u64(const struct question *q, const char *key, uint64_t *value, struct err *err);
/* Every key is in one of the lists of words; NULL: none. */
int question_check(
	const struct question *q, const char *words, const char *more_words, struct err *err);

/* The items of a list "1,2:3.5,7", one by one: numbers with ':' between those of an item. False behind the
 * last one, and with a sentence where the text is something else. */
struct question_list {
	const char *at;
	const char *key; /* for sentences */
};
#define QUESTION_ITEM_MAX 3
int question_list_next(struct question_list *l, double *numbers, size_t n, struct err *err);

#endif
