/* SPDX-License-Identifier: MIT */
#include "record/hooks/wish.h"

#include <stdlib.h>

static void keep_first(struct wishes *w, size_t n)
{
	while (w->all.n > n)
		function_pattern_release(&w->all.v[--w->all.n].pattern);
}

void wishes_release(struct wishes *w)
{
	keep_first(w, 0);
	vec_release(&w->all);
}

static int add_part(
	struct wishes *w, const char *part, size_t n, enum hook_action action, struct err *err)
{
	struct wish wish = {.action = action};
	char *text;
	int rc;

	if (!n)
		return err_set(err, ERR_FORMAT, "a name is missing before or behind a comma");
	if (w->all.n == WISHES_MAX)
		return err_set(err, ERR_LIMIT, "more than %d names are asked for", WISHES_MAX);
	text = mem_strndup(part, n);
	rc = function_pattern_init(&wish.pattern, text, NULL, err);
	free(text);
	if (rc < 0)
		return rc;
	wish.near.wanted = wish.pattern.name;
	vec_push(&w->all, wish);
	return 0;
}

int wishes_add(struct wishes *w, const char *list, enum hook_action action, struct err *err)
{
	size_t n_before = w->all.n;

	for (const char *part = list;; part++) {
		size_t n = function_pattern_bytes(part);
		int rc = add_part(w, part, n, action, err);

		if (rc < 0) {
			keep_first(w, n_before);
			return rc;
		}
		part += n;
		if (!*part)
			return 0;
	}
}

bool wish_concerns(const struct wish *w, const char *path, bool is_main)
{
	return w->pattern.image ? function_pattern_wants_image(&w->pattern, path) : is_main;
}
