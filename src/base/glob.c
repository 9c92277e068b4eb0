/* SPDX-License-Identifier: MIT */
#include "base/glob.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

static const struct {
	const char *name;
	int (*has)(int c);
} classes[] = {
	{"[:alnum:]", isalnum},
	{"[:alpha:]", isalpha},
	{"[:digit:]", isdigit},
	{"[:lower:]", islower},
	{"[:punct:]", ispunct},
	{"[:space:]", isspace},
	{"[:upper:]", isupper},
	{"[:xdigit:]", isxdigit},
};
#define N_CLASSES (sizeof(classes) / sizeof(classes[0]))

/* The class at `p`, N_CLASSES when there is none. */
static size_t class_at(const char *p)
{
	size_t i = 0;

	while (i < N_CLASSES && strncmp(p, classes[i].name, strlen(classes[i].name)) != 0)
		i++;
	return i;
}

/* The length of the set at `p` ("[a-z]"), 0 when it is none. */
static size_t set_length(const char *p)
{
	size_t n = 1;

	if (*p != '[' || p[1] == ']')
		return 0;
	while (p[n] && p[n] != ']')
		n += class_at(p + n) < N_CLASSES ? strlen(classes[class_at(p + n)].name) : 1;
	return p[n] ? n + 1 : 0;
}

static bool is_escape(const char *p)
{
	return *p == '\\' && p[1] && strchr("*?[", p[1]);
}

bool glob_has(const char *pattern)
{
	for (const char *p = pattern; *p; p++)
		if (*p == '*' || *p == '?' || is_escape(p) || set_length(p))
			return true;
	return false;
}

static bool set_has(const char *set, size_t n, char c)
{
	bool is_inverse = set[1] == '!' || set[1] == '^';
	bool has = false;

	for (size_t i = is_inverse ? 2 : 1; i + 1 < n; i++) {
		size_t class = class_at(set + i);

		if (class < N_CLASSES) {
			has = has || classes[class].has((unsigned char)c);
			i += strlen(classes[class].name) - 1;
		} else if (i + 3 < n && set[i + 1] == '-') {
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
	if (is_escape(pattern))
		return pattern[1] == c ? 2 : 0;
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
