/* SPDX-License-Identifier: MIT */
#include "probe/points/name_match.h"

#include <stdio.h>
#include <string.h>

/* The length of the set at `p` ("[a-z]"), 0 when it is none. */
static size_t set_length(const char *p)
{
	const char *end;

	if (*p != '[' || p[1] == ']')
		return 0;
	end = strchr(p, ']');
	return end ? (size_t)(end - p) + 1 : 0;
}

bool glob_has(const char *pattern)
{
	for (const char *p = pattern; *p; p++)
		if (*p == '*' || *p == '?' || set_length(p))
			return true;
	return false;
}

static bool set_has(const char *set, size_t n, char c)
{
	bool is_inverse = set[1] == '!' || set[1] == '^';
	bool has = false;

	for (size_t i = is_inverse ? 2 : 1; i + 1 < n; i++) {
		if (i + 3 < n && set[i + 1] == '-') {
			has = has || (c >= set[i] && c <= set[i + 2]);
			i += 2;
		} else {
			has = has || c == set[i];
		}
	}
	return has != is_inverse;
}

/* One letter of the pattern against one of the text: how far the pattern moves, 0 = no match. */
static size_t match_one(const char *pattern, char c)
{
	size_t n = set_length(pattern);

	if (n)
		return set_has(pattern, n, c) ? n : 0;
	return *pattern == '?' || *pattern == c;
}

bool glob_match(const char *pattern, const char *text)
{
	const char *star = NULL, *resume = NULL;

	while (*text) {
		size_t n = *pattern && *pattern != '*' ? match_one(pattern, *text) : 0;

		if (n) {
			pattern += n;
			text++;
		} else if (*pattern == '*') {
			star = ++pattern;
			resume = text;
		} else if (star) {
			pattern = star;
			text = ++resume;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

static unsigned smaller(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Optimal string alignment over three rows. */
unsigned name_distance(const char *a, const char *b, unsigned max)
{
	size_t n = strnlen(a, NEAREST_NAME_BYTES), m = strnlen(b, NEAREST_NAME_BYTES);
	unsigned rows[3][NEAREST_NAME_BYTES];
	unsigned *before = rows[0], *last = rows[1], *row = rows[2];

	if (n >= NEAREST_NAME_BYTES || m >= NEAREST_NAME_BYTES || (n > m ? n - m : m - n) > max)
		return max + 1;
	for (size_t j = 0; j <= m; j++)
		last[j] = (unsigned)j;
	for (size_t i = 1; i <= n; i++) {
		unsigned best = row[0] = (unsigned)i;
		unsigned *free_row = before;

		for (size_t j = 1; j <= m; j++) {
			row[j] = smaller(smaller(last[j], row[j - 1]) + 1,
				last[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = smaller(row[j], before[j - 2] + 1);
			best = smaller(best, row[j]);
		}
		if (best > max)
			return max + 1;
		before = last;
		last = row;
		row = free_row;
	}
	return smaller(last[m], max + 1);
}

void nearest_names_add(struct nearest_names *near, const char *name)
{
	size_t n = strnlen(near->wanted, NEAREST_NAME_BYTES), bytes, at;
	unsigned max = n < 4 ? 1 : n < 8 ? 2 : 3;
	unsigned distance;

	/* "foo.constprop.0" is what the compiler made of foo. */
	if (strncmp(near->wanted, name, n) == 0 && n > 2 && (name[n] == '.' || name[n] == '@'))
		distance = 0;
	else
		distance = name_distance(near->wanted, name, max);
	bytes = strnlen(name, NEAREST_NAME_BYTES);
	if (distance > max || bytes >= NEAREST_NAME_BYTES)
		return;
	for (size_t i = 0; i < near->n; i++)
		if (strcmp(near->v[i].name, name) == 0)
			return;
	for (at = near->n; at > 0 && near->v[at - 1].distance > distance; at--)
		;
	if (at == NEAREST_NAMES_MAX)
		return;
	if (near->n < NEAREST_NAMES_MAX)
		near->n++;
	memmove(&near->v[at + 1], &near->v[at], (near->n - at - 1) * sizeof(near->v[0]));
	near->v[at].distance = distance;
	memcpy(near->v[at].name, name, bytes + 1);
}

bool nearest_names_text(const struct nearest_names *near, char *to, size_t bytes)
{
	size_t used = 0;

	*to = 0;
	for (size_t i = 0; i < near->n && used < bytes; i++) {
		const char *before = !i ? "" : i + 1 == near->n ? " or " : ", ";

		used += (size_t)snprintf(
			to + used, bytes - used, "%s'%s'", before, near->v[i].name);
	}
	return near->n > 0;
}
