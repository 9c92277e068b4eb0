/* SPDX-License-Identifier: MIT */
/* Records and maps of a run of `weir probe` on their way to the output. */
#ifndef WEIR_CMD_PROBE_OUTPUT_H
#define WEIR_CMD_PROBE_OUTPUT_H

#include "cmd/probe.h"
#include "probe/print/print_manner.h"
#include "probe/print/printer.h"
#include "probe/print/session_names.h"
#include "run/run.h"

struct probe_output {
	const struct probe_setup *setup;
	const struct stream *stream;
	struct probe_session *session; /* NULL until it is open */
	struct printer *printer;
	const struct print_manner *manner;
	struct session_names *names;
	const struct run *run; /* that commands of system() leave */
	struct buf text;       /* of the record being written */
	bool holds;	       /* nothing is written until probe_output_let_go */
	struct buf held;
	bool is_in_line;    /* what was written last did not end its line */
	int write_errno;    /* why the output cannot be written; 0 = it can */
	uint64_t over_ns;   /* when a signal ended the run; 0: none has */
	uint64_t n_not_run; /* commands of system(), of before that: there was no time left */
};

/* Before anything is attached; `pids` are the traced processes, none: all. */
void probe_output_init(struct probe_output *o, const pid_t *pids, size_t n_pids);
void probe_output_release(struct probe_output *o);

/* Of struct probe_session_output; ctx is the struct probe_output. */
void probe_output_record(void *ctx, const struct stream_record *r, struct span args);
void probe_output_copy(void *ctx, const struct stack_copy *copy, size_t n);
void probe_output_note(void *ctx, const char *sentence);
/* All maps that have something in them: when the run is over, or before. */
void probe_output_maps(struct probe_output *o, bool is_end);
/* Writes what was held back, and from now on at once. */
void probe_output_let_go(struct probe_output *o);
/* What was written so far is seen by whoever reads it. */
void probe_output_flush(struct probe_output *o);

#endif
