/* SPDX-License-Identifier: MIT */
/*
 * A JSON writer over a stdio stream. Commas and nesting are kept by the writer; strings are
 * escaped, and bytes that are not UTF-8 become U+FFFD so that the output always parses.
 */
#ifndef WEIR_BASE_JSON_H
#define WEIR_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define JSON_DEPTH_MAX 32

struct json {
	FILE *out;
	int depth;
	bool has_item[JSON_DEPTH_MAX]; /* a comma is due before the next item of this level */
};

void json_init(struct json *j, FILE *out);
/* `key` is NULL inside arrays and at the top. */
void json_object_begin(struct json *j, const char *key);
void json_object_end(struct json *j);
void json_array_begin(struct json *j, const char *key);
void json_array_end(struct json *j);
void json_string(struct json *j, const char *key, const char *value); /* NULL gives null */
void json_u64(struct json *j, const char *key, uint64_t value);
/* null when it is not known. */
void json_u64_if(struct json *j, const char *key, bool is_known, uint64_t value);
void json_address(struct json *j, const char *key, uint64_t value); /* "0x..." */
void json_i64(struct json *j, const char *key, int64_t value);
void json_double(struct json *j, const char *key, double value);
void json_bool(struct json *j, const char *key, bool value);
void json_null(struct json *j, const char *key);
/* A line break between rows, so that large outputs stay readable. */
void json_newline(struct json *j);

#endif
