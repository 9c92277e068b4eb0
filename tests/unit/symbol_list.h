/* SPDX-License-Identifier: MIT */
/* A sink that writes down what it is given: "START SIZE ROOM BIND NAME" a line, numbers in
 * hexadecimal, binding g w l, and a '?' before the name of a label. */
#ifndef WEIR_TESTS_SYMBOL_LIST_H
#define WEIR_TESTS_SYMBOL_LIST_H

#include <inttypes.h>

#include "base/buf.h"
#include "symbols/source/text_sources.h"

typedef int text_read_fn(
	struct span text, const struct symbol_sink *sink, struct text_source *out, struct err *err);

static inline void symbol_list_add(void *ctx, const struct candidate *c)
{
	buf_printf(ctx, "%" PRIx64 " %" PRIx64 " %" PRIx64 " %c %s%.*s\n", c->start, c->size,
		c->room, "gwl"[c->bind], c -> kind == CANDIDATE_KIND_LABEL ? "?" : "",
		(int)c->name_bytes, c->name);
}

static inline struct span span_of(const char *text)
{
	return (struct span){(const uint8_t *)text, strlen(text)};
}

/* The list, which the caller releases; `t` too when rc is 0. */
static inline int symbol_list_read(text_read_fn *read, struct span text, struct buf *list,
	struct text_source *t, struct err *err)
{
	const struct symbol_sink sink = {symbol_list_add, list};

	return read(text, &sink, t, err);
}

/* Checks that the text gives this list, and how many of its lines are malformed. */
#define CHECK_LIST(read, text_, expected, n_bad)                                                   \
	do {                                                                                       \
		struct buf list_ = {0};                                                            \
		struct text_source source_;                                                        \
		struct err err_ = {0};                                                             \
		int rc_ = symbol_list_read(read, span_of(text_), &list_, &source_, &err_);         \
		CHECK_EQ(rc_, 0);                                                                  \
		CHECK_STR(buf_text(&list_), expected);                                             \
		if (rc_ == 0) {                                                                    \
			CHECK_EQ(source_.n_malformed, n_bad);                                      \
			text_source_release(&source_);                                             \
		}                                                                                  \
		buf_release(&list_);                                                               \
	} while (0)

/* Checks that the text is refused with this code and a sentence that has `part`. */
#define CHECK_REFUSED(read, text_, code_, part)                                                    \
	do {                                                                                       \
		struct buf list_ = {0};                                                            \
		struct text_source source_;                                                        \
		struct err err_ = {0};                                                             \
		CHECK_EQ(symbol_list_read(read, span_of(text_), &list_, &source_, &err_), code_);  \
		CHECK(strstr(err_.text, part) != NULL);                                            \
		CHECK_EQ(list_.n, 0);                                                              \
		buf_release(&list_);                                                               \
	} while (0)

#endif
