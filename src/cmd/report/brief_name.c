/* SPDX-License-Identifier: MIT */
#include "cmd/report/brief_name.h"

#include <stdbool.h>
#include <string.h>

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* The end of what a bracket opens; the end of the text when nothing closes it. */
static const char *behind_brackets(const char *p)
{
	int depth = 0;

	for (; *p; p++) {
		depth += *p == '<' || *p == '(' || *p == '[' || *p == '{';
		if (*p == ')' || *p == ']' || *p == '}' || (*p == '>' && p[-1] != '-'))
			depth--;
		if (!depth)
			return p + 1;
	}
	return p;
}

static bool is_behind_operator(const char *from, const char *p)
{
	return p - from >= 8 && !strncmp(p - 8, "operator", 8);
}

/* The signs of operator<<, operator() and others are no brackets; a blank parts them from those of a template. */
static size_t operator_bytes(const char *from, const char *p)
{
	size_t n;

	if (!is_behind_operator(from, p))
		return 0;
	n = begins(p, "()") ? 2 : strspn(p, "<>=-");
	return n && begins(p + n, " <") ? n + 1 : n;
}

/* What belongs to the name though it stands in brackets: methods of Go, namespaces without a name. */
static size_t literal_bytes(const char *from, const char *p)
{
	if (begins(p, "(anonymous namespace)"))
		return strlen("(anonymous namespace)");
	return *p == '(' && p > from && p[-1] == '.' ? (size_t)(behind_brackets(p) - p) : 0;
}

void brief_name_put(struct buf *to, const char *name)
{
	size_t from = to->n;

	for (const char *p = name; *p;) {
		size_t n = operator_bytes(name, p) ?: literal_bytes(name, p);

		if (n) {
			buf_put(to, p, n);
			p += n;
		} else if ((*p == '<' && p > name) || *p == '(') {
			const char *end = behind_brackets(p);

			buf_put(to, p, 1);
			buf_put_cstr(to, end - p > 2 ? "..." : "");
			buf_put_cstr(to, *p == '<' ? ">" : ")");
			p = end;
		} else if (*p == ' ' && strpbrk(p, "(<") && !is_behind_operator(name, p)) {
			to->n = from; /* the type it returns, or a part of it */
			p++;
		} else if (*p == ' ' && p > name && p[-1] == ')') {
			break; /* const, [clone ...] */
		} else {
			buf_put(to, p++, 1);
		}
	}
}
