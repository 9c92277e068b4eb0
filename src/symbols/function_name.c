/* SPDX-License-Identifier: MIT */
/*
 * Demangled names are taken apart from their end, where the parameters are: what stands before them
 * may have blanks and brackets of its own.
 */
#include "symbols/function_name.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "symbols/symtab.h"

#define CLONE	 " [clone"
#define OPERATOR "operator"

bool function_name_is_fragment(const char *linkage)
{
	static const char *const suffixes[] = {".cold", ".warm"};

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		const char *at = strstr(linkage, suffixes[i]);

		if (at && at != linkage && (!at[5] || at[5] == '.'))
			return true;
	}
	return false;
}

/* How deep in brackets the text behind `c` is, read from its end. */
static int deeper(char c)
{
	return (c == '>' || c == ')') - (c == '<' || c == '(');
}

/* Where the parameters begin: the bracket that the last one belongs to, with only qualifiers behind
 * it; the end when there are none. */
static size_t parameters_at(const char *name, size_t n)
{
	size_t at = n;
	int depth = 0;

	while (at && name[at - 1] != ')') {
		if (!isalpha((unsigned char)name[at - 1]) && !strchr(" &", name[at - 1]))
			return n;
		at--;
	}
	while (at) {
		at--;
		depth += (name[at] == ')') - (name[at] == '(');
		if (!depth)
			return at ? at : n;
	}
	return n;
}

/* Where the word "operator" begins outside of brackets; the end when it is not there. What follows
 * it may have blanks and brackets that mean something else. */
static size_t operator_at(const char *name, size_t n)
{
	int depth = 0;

	for (size_t at = 0; at + strlen(OPERATOR) <= n; at++) {
		if (!depth && strncmp(name + at, OPERATOR, strlen(OPERATOR)) == 0)
			return at;
		depth -= deeper(name[at]);
	}
	return n;
}

/* The start of the name behind the type that a template function returns. */
static size_t behind_type(const char *name, size_t n)
{
	size_t at = operator_at(name, n);
	int depth = 0;

	for (; at; at--) {
		depth += deeper(name[at - 1]);
		if (name[at - 1] == ' ' && !depth)
			return at;
	}
	return 0;
}

/* Where the arguments of a template begin that end the name; the end when there are none. */
static size_t arguments_at(const char *name, size_t n)
{
	size_t first = operator_at(name, n), at = n;
	int depth = 0;

	if (first < n) { /* not those of operator< and the like, which have a blank behind them */
		first += strlen(OPERATOR);
		first += strspn(name + first, name[first] == '<' ? "<=>" : ">=-");
	} else {
		first = 0;
	}
	if (n <= first || name[n - 1] != '>')
		return n;
	do {
		at--;
		depth += deeper(name[at]);
	} while (at > first && depth);
	while (!depth && at > first && name[at - 1] == ' ')
		at--;
	return depth || !at ? n : at;
}

static void add_form(struct function_name *name, const char *text, size_t from, size_t to)
{
	for (size_t i = 0; i < name->n_forms; i++)
		if (strncmp(name->forms[i], text + from, to - from) == 0 &&
			!name->forms[i][to - from])
			return;
	if (to > from)
		name->forms[name->n_forms++] = mem_strndup(text + from, to - from);
}

static void add_forms(struct function_name *name, const char *linkage)
{
	char *full = symbol_demangle(linkage);
	const char *clone = strstr(full, CLONE);
	size_t n = clone ? (size_t)(clone - full) : strlen(full);
	size_t parameters = parameters_at(full, n);
	size_t start = behind_type(full, parameters);

	if (strcmp(full, linkage) != 0) {
		add_form(name, full, 0, strlen(full));
		add_form(name, full, 0, n);
		add_form(name, full, start, n);
		add_form(name, full, 0, parameters);
		add_form(name, full, start, parameters);
		add_form(name, full, start, start + arguments_at(full + start, parameters - start));
	}
	free(full);
}

void function_name_split(struct function_name *name)
{
	const char *version = strchr(name->linkage, '@'), *linkage = name->linkage;

	if (name->is_split)
		return;
	name->is_split = true;
	if (version && version != linkage)
		linkage = name->unversioned = mem_strndup(linkage, (size_t)(version - linkage));
	if (symbol_is_mangled(linkage))
		add_forms(name, linkage);
}

void function_name_release(struct function_name *name)
{
	free(name->unversioned);
	for (size_t i = 0; i < name->n_forms; i++)
		free(name->forms[i]);
	*name = (struct function_name){0};
}
