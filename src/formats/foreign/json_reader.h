/* SPDX-License-Identifier: MIT */
/*
 * JSON of any size, token by token, in bounded memory. A reader asks for what it wants and skips the rest: an object
 * is gone through by json_next_key(), an array by json_next_item(), and each value is taken or skipped.
 */
#ifndef WEIR_FORMATS_FOREIGN_JSON_READER_H
#define WEIR_FORMATS_FOREIGN_JSON_READER_H

#include "base/buf.h"
#include "formats/foreign/foreign_input.h"

#define JSON_NESTING_MAX 256
#define JSON_TEXT_MAX	 ((size_t)16 << 20)

enum json_kind {
	JSON_END, /* of the input, or damaged */
	JSON_OBJECT,
	JSON_ARRAY,
	JSON_TEXT,
	JSON_NUMBER,
	JSON_TRUE,
	JSON_FALSE,
	JSON_NULL
};

struct json_reader {
	struct foreign_input *in;
	struct span block; /* of the input, being read */
	size_t at;	   /* in it */
	struct buf text;   /* of the last key or text, unescaped */
	size_t depth;
	bool has_item[JSON_NESTING_MAX];
	bool failed;
	struct err err; /* why */
};

void json_reader_init(struct json_reader *j, struct foreign_input *in);
void json_reader_release(struct json_reader *j);
/* 0, or what is wrong. */
int json_reader_failure(struct json_reader *j, struct err *err);
/* "'FILE': WHAT at byte N"; the reader stays failed. */
void json_reader_wrong(struct json_reader *j, const char *what);

/* Which value comes; of an object or array the beginning is taken. */
enum json_kind json_begin(struct json_reader *j);
/* The next key of the object that was begun; false: it is over, and was taken, or nothing can be read. The key is
 * good until the next text. */
bool json_next_key(struct json_reader *j, struct span *key);
/* Whether the array that was begun goes on. */
bool json_next_item(struct json_reader *j);

/* After json_begin() said which kind it is: the value. */
struct span json_text(struct json_reader *j); /* good until the next text or key */
double json_number(struct json_reader *j);

/* The whole value, whatever it is. */
void json_skip(struct json_reader *j);
/* The same when its beginning was taken. */
void json_skip_begun(struct json_reader *j, enum json_kind kind);

/* What comes when it is of this kind; else it is skipped. Zero, empty or false then. */
struct span json_take_text(struct json_reader *j);
double json_take_number(struct json_reader *j, double otherwise);
bool json_enter(struct json_reader *j, enum json_kind kind); /* JSON_OBJECT or JSON_ARRAY */

bool json_key_is(struct span key, const char *text);

#endif
