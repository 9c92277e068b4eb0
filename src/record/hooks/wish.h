/* SPDX-License-Identifier: MIT */
/* The names that a user asked to hook: parsed from a list, matched with images and symbols. */
#ifndef WEIR_RECORD_HOOKS_WISH_H
#define WEIR_RECORD_HOOKS_WISH_H

#include <regex.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"
#include "record/hooks/plan.h"

#define WISHES_MAX 4096 /* of one planner */

struct wish {
	struct hook_wish what;
	char *text;	 /* as written, for messages */
	char *needle;	 /* stands in every linkage name that can match; NULL = not known */
	bool is_all;	 /* "*" */
	bool has_regex;	 /* `regex` is compiled */
	bool is_matched; /* some function was found */
	regex_t regex;
};

/* Zero-initialise. */
struct wishes {
	VEC(struct wish) all;
};
void wishes_release(struct wishes *w);
/* A comma list, see plan.h. Nothing is added when it fails. */
int wishes_add(struct wishes *w, const char *list, enum hook_action action, struct err *err);

bool wish_concerns(const struct wish *w, const char *path, bool is_main);

/* A name to be matched with several wishes; demangled when the first of them needs it. Set `name`,
 * zero the rest. */
struct wish_name {
	const char *name;
	char *full;  /* demangled; NULL until needed */
	char *plain; /* without parameters */
	char *last;  /* also without the type that it returns; NULL = as `plain` */
};
bool wish_matches(const struct wish *w, struct wish_name *name);
void wish_name_release(struct wish_name *name);

#endif
