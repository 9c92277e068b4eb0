/* SPDX-License-Identifier: MIT */
#include "base/json.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/span.h"

void json_init(struct json *j, FILE *out)
{
	memset(j, 0, sizeof(*j));
	j->out = out;
}

/* How many bytes from here need no care. */
static size_t plain_bytes(const unsigned char *p)
{
	size_t n = 0;

	while (p[n] >= 0x20 && p[n] < 0x7f && p[n] != '"' && p[n] != '\\')
		n++;
	return n;
}

static void quoted(FILE *out, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;

	fputc('"', out);
	while (*p) {
		size_t plain = plain_bytes(p);
		size_t n;

		if (plain) {
			fwrite(p, 1, plain, out);
			p += plain;
			continue;
		}
		n = utf8_bytes((const char *)p, strnlen((const char *)p, 4));
		if (*p == '"' || *p == '\\')
			fprintf(out, "\\%c", *p);
		else if (*p == '\n')
			fputs("\\n", out);
		else if (*p == '\t')
			fputs("\\t", out);
		else if (*p < 0x20 || *p == 0x7f)
			fprintf(out, "\\u%04x", *p);
		else if (n == 0)
			fputs("\xef\xbf\xbd", out);
		else
			fwrite(p, 1, n, out);
		p += n ? n : 1;
	}
	fputc('"', out);
}

static void begin_item(struct json *j, const char *key)
{
	if (j->has_item[j->depth])
		fputs(key || j->depth ? ", " : ",", j->out);
	j->has_item[j->depth] = true;
	if (key) {
		quoted(j->out, key);
		fputs(": ", j->out);
	}
}

static void open_level(struct json *j, const char *key, char bracket)
{
	begin_item(j, key);
	fputc(bracket, j->out);
	assert(j->depth + 1 < JSON_DEPTH_MAX);
	j->has_item[++j->depth] = false;
}

static void close_level(struct json *j, char bracket)
{
	assert(j->depth > 0);
	j->depth--;
	fputc(bracket, j->out);
	if (j->depth == 0)
		fputc('\n', j->out);
}

void json_object_begin(struct json *j, const char *key)
{
	open_level(j, key, '{');
}

void json_object_end(struct json *j)
{
	close_level(j, '}');
}

void json_array_begin(struct json *j, const char *key)
{
	open_level(j, key, '[');
}

void json_array_end(struct json *j)
{
	close_level(j, ']');
}

void json_string(struct json *j, const char *key, const char *value)
{
	if (!value) {
		json_null(j, key);
		return;
	}
	begin_item(j, key);
	quoted(j->out, value);
}

void json_u64(struct json *j, const char *key, uint64_t value)
{
	begin_item(j, key);
	fprintf(j->out, "%" PRIu64, value);
}

void json_u64_if(struct json *j, const char *key, bool is_known, uint64_t value)
{
	if (is_known)
		json_u64(j, key, value);
	else
		json_null(j, key);
}

void json_address(struct json *j, const char *key, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, value);
	json_string(j, key, text);
}

void json_i64(struct json *j, const char *key, int64_t value)
{
	begin_item(j, key);
	fprintf(j->out, "%" PRId64, value);
}

void json_double(struct json *j, const char *key, double value)
{
	if (!isfinite(value)) {
		json_null(j, key);
		return;
	}
	begin_item(j, key);
	fprintf(j->out, "%.6g", value);
}

void json_bool(struct json *j, const char *key, bool value)
{
	begin_item(j, key);
	fputs(value ? "true" : "false", j->out);
}

void json_null(struct json *j, const char *key)
{
	begin_item(j, key);
	fputs("null", j->out);
}

void json_newline(struct json *j)
{
	fputs("\n ", j->out);
}
