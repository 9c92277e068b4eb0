/* SPDX-License-Identifier: MIT */
#include "formats/foreign/json_reader.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES  ((size_t)64 << 10)
#define NUMBER_BYTES 64 /* digits of a number that are looked at */

void json_reader_init(struct json_reader *j, struct foreign_input *in)
{
	*j = (struct json_reader){.in = in};
}

void json_reader_release(struct json_reader *j)
{
	buf_release(&j->text);
}

int json_reader_failure(struct json_reader *j, struct err *err)
{
	struct err input = {0};

	if (foreign_input_failure(j->in, &input) < 0)
		return err_set(err, input.code, "%s", input.text);
	return j->failed ? err_set(err, j->err.code, "%s", j->err.text) : 0;
}

void json_reader_wrong(struct json_reader *j, const char *what)
{
	if (!j->failed)
		err_set(&j->err, ERR_FORMAT, "'%s': %s at byte %" PRIu64, foreign_input_name(j->in),
			what, foreign_input_offset(j->in) + j->at);
	j->failed = true;
}

/* The next byte; -1: there is none. The block is taken once all of it is used. */
static int peek(struct json_reader *j)
{
	if (j->failed)
		return -1;
	if (j->at == j->block.n) {
		foreign_input_skip(j->in, j->block.n);
		j->block = foreign_input_peek(j->in, BLOCK_BYTES);
		j->at = 0;
	}
	return j->block.n ? j->block.p[j->at] : -1;
}

static int next(struct json_reader *j)
{
	int c = peek(j);

	j->at += c >= 0;
	return c;
}

static int peek_token(struct json_reader *j)
{
	int c = peek(j);

	while (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
		j->at++;
		c = peek(j);
	}
	return c;
}

static void expect(struct json_reader *j, const char *word)
{
	for (; *word; word++)
		if (next(j) != *word) {
			json_reader_wrong(j, "is no JSON");
			return;
		}
}

static void enter(struct json_reader *j)
{
	if (j->depth == JSON_NESTING_MAX) {
		json_reader_wrong(j, "JSON is nested too deeply");
		return;
	}
	j->has_item[j->depth++] = false;
	j->at++;
}

enum json_kind json_begin(struct json_reader *j)
{
	int c = peek_token(j);

	switch (c) {
	case '{':
	case '[':
		enter(j);
		return j->failed ? JSON_END : c == '{' ? JSON_OBJECT : JSON_ARRAY;
	case '"':
		return JSON_TEXT;
	case 't':
		expect(j, "true");
		return JSON_TRUE;
	case 'f':
		expect(j, "false");
		return JSON_FALSE;
	case 'n':
		expect(j, "null");
		return JSON_NULL;
	}
	if (c == '-' || (c >= '0' && c <= '9'))
		return JSON_NUMBER;
	json_reader_wrong(j, c < 0 ? "ends too early" : "is no JSON");
	return JSON_END;
}

/* The comma before an item, or the end. */
static bool next_of(struct json_reader *j, int end)
{
	int c = peek_token(j);

	if (c < 0 || !j->depth) {
		json_reader_wrong(j, "ends too early");
		return false;
	}
	if (c == end) {
		j->at++;
		j->depth--;
		return false;
	}
	if (j->has_item[j->depth - 1]) {
		if (c != ',') {
			json_reader_wrong(j, "is no JSON");
			return false;
		}
		j->at++;
		if (peek_token(j) == end) { /* some writers leave a comma behind */
			j->at++;
			j->depth--;
			return false;
		}
	}
	j->has_item[j->depth - 1] = true;
	return true;
}

bool json_next_item(struct json_reader *j)
{
	return next_of(j, ']');
}

bool json_next_key(struct json_reader *j, struct span *key)
{
	if (!next_of(j, '}'))
		return false;
	if (peek_token(j) != '"') {
		json_reader_wrong(j, "is no JSON");
		return false;
	}
	*key = json_text(j);
	if (peek_token(j) != ':')
		json_reader_wrong(j, "is no JSON");
	j->at += !j->failed;
	return !j->failed;
}

static uint32_t hex4(struct json_reader *j)
{
	uint32_t v = 0;

	for (int i = 0; i < 4; i++) {
		int c = next(j);
		int lower = c | 0x20;

		if (c >= '0' && c <= '9')
			v = v << 4 | (uint32_t)(c - '0');
		else if (lower >= 'a' && lower <= 'f')
			v = v << 4 | (uint32_t)(lower - 'a' + 10);
		else
			json_reader_wrong(j, "is no JSON");
	}
	return v;
}

static void put_utf8(struct buf *b, uint32_t c)
{
	if (c < 0x80) {
		buf_put_u8(b, (uint8_t)c);
		return;
	}
	if (c >= 0x10000)
		buf_put_u8(b, (uint8_t)(0xf0 | c >> 18));
	if (c >= 0x800)
		buf_put_u8(b, (uint8_t)(c >= 0x10000 ? 0x80 | (c >> 12 & 0x3f) : 0xe0 | c >> 12));
	buf_put_u8(b, (uint8_t)(c >= 0x800 ? 0x80 | (c >> 6 & 0x3f) : 0xc0 | c >> 6));
	buf_put_u8(b, (uint8_t)(0x80 | (c & 0x3f)));
}

static void put_escaped(struct json_reader *j)
{
	static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
	int c = next(j);
	const char *at = c > 0 ? strchr(from, c) : NULL;
	uint32_t code;

	if (c != 'u') {
		buf_put_u8(&j->text, (uint8_t)(at ? to[at - from] : c));
		return;
	}
	code = hex4(j);
	if (code >= 0xd800 && code < 0xdc00 && peek(j) == '\\') {
		j->at++;
		if (next(j) != 'u')
			json_reader_wrong(j, "is no JSON");
		code = 0x10000 + ((code & 0x3ff) << 10 | (hex4(j) & 0x3ff));
	}
	put_utf8(&j->text, code);
}

/* What of a text is in the block, up to what needs a look. */
static void put_plain(struct json_reader *j)
{
	size_t from = j->at;

	while (j->at < j->block.n && j->block.p[j->at] != '"' && j->block.p[j->at] != '\\')
		j->at++;
	buf_put(&j->text, j->block.p + from, j->at - from);
}

struct span json_text(struct json_reader *j)
{
	buf_reset(&j->text);
	j->at += peek(j) >= 0; /* the quote */
	for (;;) {
		int c = peek(j);

		if (c < 0 || j->text.n > JSON_TEXT_MAX) {
			json_reader_wrong(
				j, c < 0 ? "ends too early" : "has a text that is too long");
			break;
		}
		if (c == '"' || c == '\\')
			j->at++;
		if (c == '"')
			break;
		if (c == '\\')
			put_escaped(j);
		else
			put_plain(j);
	}
	return buf_span(&j->text);
}

double json_number(struct json_reader *j)
{
	char digits[NUMBER_BYTES];
	size_t n = 0;

	for (;;) {
		int c = peek(j);

		if (!((c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' ||
			    c == 'E'))
			break;
		if (n + 1 < sizeof(digits))
			digits[n++] = (char)c;
		j->at++;
	}
	digits[n] = 0;
	return strtod(digits, NULL);
}

/* Iteratively: values may be nested as deep as allowed. */
void json_skip_begun(struct json_reader *j, enum json_kind kind)
{
	bool is_object[JSON_NESTING_MAX] = {false};
	size_t base = j->depth;
	struct span key;

	if (kind == JSON_TEXT)
		json_text(j);
	if (kind == JSON_NUMBER)
		json_number(j);
	if (kind != JSON_OBJECT && kind != JSON_ARRAY)
		return;
	is_object[base - 1] = kind == JSON_OBJECT;
	while (!j->failed && j->depth >= base) {
		if (!(is_object[j->depth - 1] ? json_next_key(j, &key) : json_next_item(j)))
			continue;
		kind = json_begin(j);
		if (kind == JSON_OBJECT || kind == JSON_ARRAY)
			is_object[j->depth - 1] = kind == JSON_OBJECT;
		else if (kind == JSON_TEXT)
			json_text(j);
		else if (kind == JSON_NUMBER)
			json_number(j);
	}
}

void json_skip(struct json_reader *j)
{
	json_skip_begun(j, json_begin(j));
}

struct span json_take_text(struct json_reader *j)
{
	enum json_kind kind = json_begin(j);

	if (kind == JSON_TEXT)
		return json_text(j);
	json_skip_begun(j, kind);
	return (struct span){0};
}

double json_take_number(struct json_reader *j, double otherwise)
{
	enum json_kind kind = json_begin(j);

	if (kind == JSON_NUMBER)
		return json_number(j);
	json_skip_begun(j, kind);
	return otherwise;
}

bool json_enter(struct json_reader *j, enum json_kind kind)
{
	enum json_kind got = json_begin(j);

	if (got == kind)
		return true;
	json_skip_begun(j, got);
	return false;
}

bool json_key_is(struct span key, const char *text)
{
	return key.n == strlen(text) && (!key.n || !memcmp(key.p, text, key.n));
}
