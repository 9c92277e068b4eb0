/* SPDX-License-Identifier: MIT */
/*
 * A recording of what a command or running processes execute, by the translator inside them
 * (rt/translate/translate_abi.h): the life of the run, its trace, what is said of it.
 */
#ifndef WEIR_TRANSLATE_TRANSLATE_SESSION_H
#define WEIR_TRANSLATE_TRANSLATE_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct translate_stepper;

struct translate_options {
	const char *output;
	const char *translator; /* path of libweirtranslate.so */
	const struct translate_stepper *stepper; /* of 32-bit programs (translate/tracer.h); NULL: not counted */
	char *const *command;	/* NULL-terminated, or NULL and then: */
	const pid_t *pids;
	size_t n_pids;
	double duration_s; /* 0 = until the end */
	int parent_fd;	   /* readable when nobody waits for the recording any more; -1 = none */

	void (*note)(void *ctx, const char *sentence); /* may be NULL */
	/* Instructions of the stepper, now and then; may be NULL. */
	void (*progress)(void *ctx, uint64_t n, double seconds);
	void *ctx;
};

struct translate_result {
	uint64_t n_insns, n_blocks, n_calls; /* executed instructions, blocks of code, calls */
	uint64_t n_threads, n_processes;
	uint64_t n_lost; /* what is missing from these figures, in whatever unit */
	uint64_t trace_bytes, wall_ns;
	bool has_status; /* of the command */
	int wait_status;
	struct err write_error; /* code 0, or why the trace is not complete */
};

/* Negative when nothing was recorded; the command has then not run. */
int translate_record(
	const struct translate_options *options, struct translate_result *result, struct err *err);

/* The translator's file, to be freed; NULL: it is not beside weir. */
char *translator_find(void);
/* NULL when a program can be translated on this machine, else why not, a phrase. */
const char *translate_hindrance(void);

#endif
