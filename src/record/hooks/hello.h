/* SPDX-License-Identifier: MIT */
/*
 * What a hook library sends: its hello with the modules of the program, and what became of the
 * plan. The program is not trusted: bytes come as they like, in pieces, and may be anything.
 */
#ifndef WEIR_RECORD_HOOKS_HELLO_H
#define WEIR_RECORD_HOOKS_HELLO_H

#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/span.h"
#include "rt/hook/hook_abi.h"

#define HELLO_MODULES_MAX    8192u
#define HELLO_PATH_BYTES_MAX 4096u
#define HELLO_BYTES_MAX	     ((size_t)8 << 20)
#define RESULTS_MAX	     (HOOK_ID_MAX + 65536u)

struct hello_module {
	uint64_t bias, start, end;
	const char *path; /* "" = the main program; owned */
};

struct hello {
	struct hook_hello head;
	VEC(struct hello_module) modules;
	struct hook_classes classes; /* CLASSES */
	struct span class_bytes;     /* likewise; borrowed from the message */
};

enum hello_state {
	HELLO_MORE,  /* not all of it is there yet */
	HELLO_WHOLE, /* *out is filled */
	HELLO_BAD    /* with a sentence */
};

/* `bytes` are all that has come so far. */
enum hello_state hello_parse(struct hello *out, struct span bytes, struct err *err);
void hello_release(struct hello *h);

/* The answer to `n_plans` plan entries; *results is borrowed from `bytes` and may be unaligned. */
enum hello_state hello_parse_results(
	struct span bytes, uint32_t n_plans, struct span *results, struct err *err);
/* Whether it says instead that the library could not begin; the number of the error. */
bool hello_is_failure(struct span bytes, uint32_t *error);

#endif
