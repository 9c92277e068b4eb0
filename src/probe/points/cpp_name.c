/* SPDX-License-Identifier: MIT */
#include "probe/points/cpp_name.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "probe/points/name_match.h"
#include "symbols/symtab.h"

bool cpp_name_looks(const char *asked)
{
	return strstr(asked, "::") || strchr(asked, '(') || strncmp(asked, "operator", 8) == 0;
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Mangled names write these with one letter. */
static bool is_abbreviated(const char *word)
{
	static const char *const words[] = {"std", "string", "allocator", "basic_string", "istream",
		"ostream", "iostream", "basic_istream", "basic_ostream", "basic_iostream", NULL};

	for (size_t i = 0; words[i]; i++)
		if (strcmp(words[i], word) == 0)
			return true;
	return strstr(word, "operator") != NULL;
}

/* The last word in front of parameters and template arguments is the function's own name. */
static void find_needle(struct cpp_name *c)
{
	const char *start = strstr(c->asked, "(anonymous namespace)");
	size_t from = start ? (size_t)(start - c->asked) + 21 : 0;
	size_t end = from + strcspn(c->asked + from, "(<");
	size_t n = 0;

	if (strstr(c->asked, "operator") || strchr(c->asked, '['))
		return;
	while (end && !is_word(c->asked[end - 1]))
		end--;
	while (n < end && is_word(c->asked[end - 1 - n]))
		n++;
	if (!n || n >= sizeof(c->needle))
		return;
	memcpy(c->needle, c->asked + end - n, n);
	c->needle[n] = 0;
	if (is_abbreviated(c->needle))
		c->needle[0] = 0;
}

/* A parenthesis that is neither that of operator() nor of the anonymous namespace. */
static bool has_parameters(const char *name)
{
	for (const char *p = strchr(name, '('); p; p = strchr(p + 1, '(')) {
		bool is_call = p - name >= 8 && strncmp(p - 8, "operator()", 10) == 0;

		if (!is_call && strncmp(p, "(anonymous namespace)", 21) != 0)
			return true;
	}
	return false;
}

void cpp_name_init(struct cpp_name *c, const char *asked)
{
	*c = (struct cpp_name){.asked = asked,
		.has_parameters = has_parameters(asked),
		.has_template = strchr(asked, '<') != NULL,
		.has_glob = glob_has(asked)};
	find_needle(c);
}

/* Where the parameter list begins: the parenthesis that the last one closes; the end when there is
 * none. "f(int) const [clone .part.0]" has a tail behind it. */
static char *find_parameters(char *name)
{
	char *tail = strstr(name, " [clone ");
	char *end = tail ? tail : name + strlen(name);
	char *p;
	int depth = 0;

	for (p = end; p > name && p[-1] != ')'; p--)
		if (p[-1] == '>' || (is_word(p[-1]) && p - name < 2))
			return end;
	if (p == name)
		return end;
	do {
		p--;
		depth += (*p == ')') - (*p == '(');
	} while (p > name && depth);
	return p;
}

/* Templates are printed with their return type in front: "int ns::f<int>(int)". */
static const char *skip_return_type(const char *name, const char *end)
{
	int depth = 0;

	for (const char *p = end; p > name; p--) {
		depth += (p[-1] == '>' || p[-1] == ')') - (p[-1] == '<' || p[-1] == '(');
		if (p[-1] != ' ' || depth)
			continue;
		if (p - name >= 9 && strncmp(p - 9, "operator ", 9) == 0)
			continue;
		return p;
	}
	return name;
}

/* The next letter, with one blank between two words and none elsewhere. */
static char next_letter(const char **text, char before)
{
	const char *s = *text;
	bool is_blank = *s == ' ';

	while (*s == ' ')
		s++;
	*text = s;
	if (is_blank && is_word(before) && is_word(*s))
		return ' ';
	*text += *s != 0;
	return *s;
}

/* Equal but for blanks that separate nothing: "f(char *)" is "f(char*)". */
static bool same_spelling(const char *a, const char *b)
{
	char x = 0, y;

	do {
		y = next_letter(&b, x);
		x = next_letter(&a, x);
	} while (x == y && x);
	return x == y;
}

static bool spelling_matches(const struct cpp_name *c, const char *text)
{
	return same_spelling(c->asked, text) || (c->has_glob && glob_match(c->asked, text));
}

static bool matches(const struct cpp_name *c, char *name)
{
	char *parameters = find_parameters(name);
	const char *start;
	char *template_end;
	int depth = 0;

	if (strstr(name, " [clone "))
		*strstr(name, " [clone ") = 0;
	start = skip_return_type(name, parameters);
	if (c->has_parameters)
		return spelling_matches(c, start) || spelling_matches(c, name);
	*parameters = 0;
	if (spelling_matches(c, start))
		return true;
	template_end = parameters;
	if (c->has_template || template_end == start || template_end[-1] != '>')
		return false;
	do {
		template_end--;
		depth += (*template_end == '>') - (*template_end == '<');
	} while (template_end > start && depth);
	*template_end = 0;
	return spelling_matches(c, start);
}

bool cpp_name_is(const struct cpp_name *c, const char *mangled)
{
	char *readable;
	bool is;

	if (mangled[0] != '_' || (mangled[1] != 'Z' && mangled[1] != 'R'))
		return false;
	if (c->needle[0] && !strstr(mangled, c->needle))
		return false;
	/* The part that is never called; "f.cold" can be asked for by that name. */
	if (strstr(mangled, ".cold"))
		return false;
	readable = symbol_demangle(mangled);
	is = matches(c, readable);
	free(readable);
	return is;
}
