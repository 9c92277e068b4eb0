/* SPDX-License-Identifier: MIT */
/* `weir probe`: what its parts share. */
#ifndef WEIR_CMD_PROBE_H
#define WEIR_CMD_PROBE_H

#include <regex.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/mem.h"
#include "cmd/host_option.h"
#include "cmd/options.h"
#include "probe/points/point.h"
#include "probe/run/probe_session.h"
#include "probe/stream/stream.h"

struct probe_arguments {
	struct option_texts scripts; /* -e */
	struct option_texts files;   /* -i */
	const char *command;	     /* -c */
	struct option_texts pids;    /* -p, comma lists */
	bool list;
	const char *format;	 /* -f */
	const char *stream_file; /* -o */
	const char *output;
	bool dump, dry_run, strict, quiet, verbose, unsafe;
	uint64_t max_entries, string_bytes, ring_kb;
	double duration_s;
	const char *without, *control, *like;
	bool no_warnings, bench;
	struct host_arguments host;
	const char *point_filter;
	struct option_texts debug_folders; /* --debuginfo */
	/* Options of bpftrace that are understood: records are written when they come, headers are not read,
	 * losses are always told, and semaphores are those of the file. */
	struct {
		const char *buffering, *mode;
		struct option_texts folders;
		bool warns, info, version, semaphores;
	} foreign;
};

/* The arguments, understood. */
struct probe_setup {
	const struct command *command;
	const struct probe_arguments *a;
	uint64_t given; /* which options were */
	bool is_json;
	enum stream_like like; /* of --like */
	VEC(pid_t) pids;
	struct option_texts words; /* of -c: owned, ends in NULL; n counts the NULL */
	char *program;		   /* the file that -c will run */
	struct find_options find;
	FILE *out;
	regex_t filter; /* --probe-filter */
	bool has_filter;
};

/* Words of a command line as a shell splits them: blanks, '...', "...", \x; nothing is expanded.
 * The texts are the caller's to free. False when a quote is not closed. */
bool probe_split_words(const char *text, struct option_texts *out);
/* Quotes are letters, as for bpftrace 0.17. */
void probe_split_blanks(const char *text, struct option_texts *out);

/* On stderr, in the output's format. */
void probe_print_messages(const struct probe_setup *setup, const struct diags *diags);
/* -l: what matches the words, which may hold several patterns, and the points of the scripts;
 * everything when there are none. */
int probe_list(const struct probe_setup *setup, struct sources *sources, char *const *words,
	size_t n_words);
/* --dry-run: where the points are and what they cost. */
int probe_plan(const struct probe_setup *setup, const struct stream *s);
/* Attaches, runs and prints; gives the exit status. */
int probe_run(const struct probe_setup *setup, const struct stream *s);

/* What each clause lost, on stderr or (JSON) as lines of `out`; true when there was any loss. */
bool probe_print_losses(const struct probe_setup *setup, const struct stream *s,
	const struct probe_session *session, FILE *out);
/* What the run as a whole has lost, likewise. */
struct probe_run_loss {
	uint64_t mappings; /* records of them: names of addresses may be missing */
	uint64_t commands; /* of system(), which were not run: the run was ended */
};
bool probe_print_run_losses(
	const struct probe_setup *setup, const struct probe_run_loss *loss, FILE *out);
bool probe_has_losses(const struct stream *s, const struct probe_session *session);

#endif
