/* SPDX-License-Identifier: MIT */
/* A line that is a list of patterns, and behind it the name of a function, which is a path, too. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/glob.h"
#include "base/mem.h"
#include "symbols/function_pattern.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static enum function_match match(const struct function_pattern *p, const char *linkage)
{
	struct function_name name = {.linkage = linkage};
	enum function_match result = function_pattern_match(p, &name);

	if (name.n_forms > FUNCTION_NAME_FORMS)
		abort();
	function_name_release(&name);
	return result;
}

static void check_pattern(const struct function_pattern *p, const char *linkage)
{
	struct nearest_names near = {.wanted = p->name};
	char text[64];

	/* What is no pattern means itself. */
	if (!p->is_regex && !p->has_wildcard && match(p, p->name) != FUNCTION_MATCH_LINKAGE)
		abort();
	if (!p->has_wildcard != !(p->is_regex ? false : glob_has(p->name)) ||
		(p->is_exact && p->is_regex))
		abort();
	match(p, linkage);
	function_pattern_wants_image(p, linkage);
	function_pattern_offer(p, &near, linkage);
	function_pattern_offer(p, &near, p->name);
	nearest_names_text(&near, text, sizeof(text));
}

/* Repetitions of repetitions take regcomp any amount of time and memory: a user's own doing. */
static bool is_too_much(const char *text)
{
	const char *first = strchr(text, '{');

	return first && strchr(first + 1, '{');
}

static void check_text(const char *text, const char *linkage)
{
	struct function_pattern p;
	struct err err = {0};
	size_t at = 0;

	if (is_too_much(text))
		return;
	if (function_pattern_init(&p, text, &at, &err) == 0) {
		if (strcmp(p.text, text) != 0 || !*p.name)
			abort();
		check_pattern(&p, linkage);
		function_pattern_release(&p);
	} else if (!err.code || !err.text[0] || at > strlen(text)) {
		abort();
	}
	if (function_pattern_init_name(&p, text, &err) == 0) {
		check_pattern(&p, linkage);
		function_pattern_release(&p);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *list = mem_strndup((const char *)data, n);
	char *linkage = mem_strdup(list + strcspn(list, "\n") + (strchr(list, '\n') != NULL));

	list[strcspn(list, "\n")] = 0;
	check_text(list, linkage);
	for (const char *part = list;; part++) {
		size_t bytes = function_pattern_bytes(part);
		char *text = mem_strndup(part, bytes);

		check_text(text, linkage);
		free(text);
		part += bytes;
		if (!*part)
			break;
		if (*part != ',')
			abort();
	}
	free(list);
	free(linkage);
	return 0;
}
