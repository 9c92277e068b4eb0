/* SPDX-License-Identifier: MIT */
/* What a callgrind profile says; for src/formats/callgrind*.c only. */
#ifndef WEIR_FORMATS_CALLGRIND_MODEL_H
#define WEIR_FORMATS_CALLGRIND_MODEL_H

#include "base/map.h"
#include "base/mem.h"
#include "calltree/build.h"

#define CALLGRIND_EVENTS_MAX 2

/* Texts are borrowed; "" = not known. */
struct callgrind_function {
	const char *name, *file, *object;
	uint32_t line;
};

struct callgrind_cost { /* of the function itself */
	uint32_t function;
	const char *file; /* another one than the function's for inlined code */
	uint32_t line;
	uint64_t values[CALLGRIND_EVENTS_MAX];
};

struct callgrind_call {
	uint32_t caller, callee;
	uint32_t line; /* of the call, in the caller's file */
	uint64_t calls;
	uint64_t values[CALLGRIND_EVENTS_MAX]; /* of the callee with all that it calls */
};

struct callgrind_model {
	const char *events[CALLGRIND_EVENTS_MAX], *titles[CALLGRIND_EVENTS_MAX];
	size_t n_events;
	VEC(struct callgrind_function) functions;
	VEC(struct callgrind_cost) costs;
	VEC(struct callgrind_call) calls;
	struct intern texts;
};

/* callgrind_counts.c: from counts of blocks. */
int callgrind_from_counts(
	struct callgrind_model *m, const struct profile *profile, struct err *err);
/* callgrind_tree.c: from the call tree. */
int callgrind_from_tree(struct callgrind_model *m, const struct profile *profile, struct err *err);

#endif
