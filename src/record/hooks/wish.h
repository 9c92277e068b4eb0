/* SPDX-License-Identifier: MIT */
/* The functions that a user asked to hook. */
#ifndef WEIR_RECORD_HOOKS_WISH_H
#define WEIR_RECORD_HOOKS_WISH_H

#include "base/mem.h"
#include "rt/hook/hook_abi.h"
#include "symbols/function_pattern.h"

#define WISHES_MAX 4096 /* of one planner */

struct wish {
	struct function_pattern pattern;
	enum hook_action action;   /* CALL or STACK */
	bool is_matched;	   /* some function was found */
	struct nearest_names near; /* until then: names that were there instead */
};

/* Zero-initialise. */
struct wishes {
	VEC(struct wish) all;
};
void wishes_release(struct wishes *w);
/* A comma list, see symbols/function_pattern.h. Nothing is added when it fails. */
int wishes_add(struct wishes *w, const char *list, enum hook_action action, struct err *err);

/* Without an image a wish is about the program itself. */
bool wish_concerns(const struct wish *w, const char *path, bool is_main);

#endif
