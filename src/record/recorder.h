/* SPDX-License-Identifier: MIT */
/* One recording from start to end: launch, attach or system-wide. */
#ifndef WEIR_RECORD_RECORDER_H
#define WEIR_RECORD_RECORDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "record/hook_list.h"
#include "record/hooks/hooks.h"
#include "record/session.h"

/* What runs beside a recording and adds to its trace: scripts of `weir record --probe`. */
struct recorder_companion {
	void *ctx;
	/* Everything is set up; the command (0: there is none) has not run yet. */
	int (*start)(void *ctx, pid_t command, struct err *err);
	/* Readable when there is work. */
	int (*fd)(void *ctx);
	void (*work)(void *ctx);
	/* The recording has ended; nothing was written at its end yet. */
	void (*stop)(void *ctx);
	/* Adds its records. */
	void (*write)(void *ctx, struct trace_writer *w);
};

struct recorder_options {
	const char *output; /* path, or what `output_fd` is for people */
	int output_fd;	    /* the trace is written there, which is the recorder's from here on; 0 = to the path */
	uint32_t hooks;			/* a sum of enum hook; what is sampled is in `perf` */
	struct perf_options perf;	/* but for the kinds of record, which are in `hooks` */
	struct module_options modules;	/* likewise */
	bool allocations;		/* the bytes that the malloc family gives, as a metric */
	struct hooks_options functions; /* entry and exit of functions */
	double duration_s;		/* 0 = until the end */

	/* One of these three; the machine may be recorded while a command runs. */
	char *const *command; /* NULL-terminated */
	const pid_t *pids;
	size_t n_pids;
	bool system_wide;

	const struct recorder_companion *companion; /* or NULL */

	/* Called now and then while recording; may be NULL. */
	void (*progress)(void *ctx, const struct session_counts *counts, double seconds);
	/* One sentence on what is missing and how to get it, at the start; may be NULL. */
	void (*note)(void *ctx, const char *sentence);
	/* One sentence on what was asked for and is not there; may be NULL. */
	void (*complain)(void *ctx, const char *sentence);
	/* The recording is over and complete on disk, but the command still runs; may be NULL. */
	void (*finished_early)(void *ctx);
	void *ctx;
};

struct recorder_result {
	struct session_counts counts;
	uint64_t trace_bytes;
	uint64_t wall_ns;
	bool has_status;	/* of the command */
	int wait_status;	/* as from waitpid */
	uint64_t n_unmatched;	/* patterns of functions that match nothing */
	struct err write_error; /* code 0, or why the trace is not complete */
};

/* Negative when nothing was recorded; the command has then not run. A trace that could not be
 * written to its end is reported in the result, because the command's status is still needed. */
int recorder_run(
	const struct recorder_options *options, struct recorder_result *result, struct err *err);

#endif
