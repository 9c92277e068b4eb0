/* SPDX-License-Identifier: MIT */
#include "cmd/view/question.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/word_list.h"

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* In place; the text becomes no longer. */
static int decode(char *text, struct err *err)
{
	char *to = text;

	for (const char *p = text; *p; p++) {
		int high, low;

		if (*p != '%') {
			*to++ = *p == '+' ? ' ' : *p;
			continue;
		}
		high = hex_digit(p[1]);
		low = high < 0 ? -1 : hex_digit(p[2]);
		if (low < 0 || high * 16 + low == 0)
			return err_set(err, ERR_FORMAT, "the question has a wrong percent sign");
		*to++ = (char)(high * 16 + low);
		p += 2;
	}
	*to = '\0';
	return 0;
}

static int add_key(struct question *q, char *part, struct err *err)
{
	char *value = strchr(part, '=');

	if (q->n_keys == QUESTION_KEYS_MAX)
		return err_set(
			err, ERR_LIMIT, "the question has more than %d keys", QUESTION_KEYS_MAX);
	if (value)
		*value++ = '\0';
	if (decode(part, err) < 0 || (value && decode(value, err) < 0))
		return err->code;
	if (question_text(q, part))
		return err_set(err, ERR_FORMAT, "the question has '%s' twice", part);
	q->keys[q->n_keys].key = part;
	q->keys[q->n_keys++].value = value ? value : "";
	return 0;
}

static int take_parts(struct question *q, struct err *err)
{
	char *keys = strchr(q->text, '?'), *name, *next;

	if (keys)
		*keys++ = '\0';
	name = strchr(q->text, '/');
	if (name)
		*name++ = '\0';
	if (decode(q->text, err) < 0 || (name && decode(name, err) < 0))
		return err->code;
	q->kind = q->text;
	q->name = name ? name : "";
	for (; keys && *keys; keys = next) {
		next = strchr(keys, '&');
		if (next)
			*next++ = '\0';
		if (*keys && add_key(q, keys, err) < 0)
			return err->code;
	}
	return 0;
}

int question_parse(struct question *q, const char *text, size_t n, struct err *err)
{
	int rc;

	memset(q, 0, sizeof(*q));
	if (n > QUESTION_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "the question has %zu bytes, more than %d", n,
			QUESTION_BYTES_MAX);
	if (memchr(text, 0, n))
		return err_set(err, ERR_FORMAT, "the question has a NUL");
	q->text = mem_strndup(text, n);
	rc = take_parts(q, err);
	if (rc < 0)
		question_release(q);
	return rc;
}

void question_release(struct question *q)
{
	free(q->text);
	memset(q, 0, sizeof(*q));
}

const char *question_text(const struct question *q, const char *key)
{
	for (size_t i = 0; i < q->n_keys; i++)
		if (!strcmp(q->keys[i].key, key))
			return q->keys[i].value;
	return NULL;
}

void question_set(struct question *q, const char *key, const char *value)
{
	size_t i = 0;

	while (i < q->n_keys && strcmp(q->keys[i].key, key) != 0)
		i++;
	assert(i < QUESTION_KEYS_MAX + QUESTION_KEYS_SET);
	q->keys[i].key = key;
	q->keys[i].value = value;
	q->n_keys += i == q->n_keys;
}

int question_u64(const struct question *q, const char *key, uint64_t *value, struct err *err)
{
	const char *text = question_text(q, key);
	char *end;
	uint64_t n;

	if (!text)
		return 0;
	errno = 0;
	n = strtoull(text, &end, 10);
	if (errno || *end || text[0] < '0' || text[0] > '9')
		return err_set(err, ERR_FORMAT, "%s: '%s' is not a number", key, text);
	*value = n;
	return 0;
}

int question_check(
	const struct question *q, const char *words, const char *more_words, struct err *err)
{
	for (size_t i = 0; i < q->n_keys; i++) {
		const char *key = q->keys[i].key;

		if (!(words && word_list_has(words, key)) &&
			!(more_words && word_list_has(more_words, key)))
			return err_set(err, ERR_FORMAT, "'%s' is not a key of %s%s%s", key, q->kind,
				*q->name ? "/" : "", q->name);
	}
	return 0;
}

int question_list_next(struct question_list *l, double *numbers, size_t n, struct err *err)
{
	if (!l->at || !*l->at)
		return 0;
	for (size_t i = 0; i < n; i++) {
		char *end;

		errno = 0;
		numbers[i] = strtod(l->at, &end);
		if (end == l->at || errno || !isfinite(numbers[i]) ||
			*end != (i + 1 < n	      ? ':'
					: *end == ',' ? ','
						      : '\0'))
			return err_set(err, ERR_FORMAT, "%s: '%.40s' is not a list of numbers",
				l->key, l->at);
		l->at = *end ? end + 1 : end;
	}
	return 1;
}
