/* SPDX-License-Identifier: MIT */
/* What the printer asks for, out of a running session, the processes and the kernel. */
#ifndef WEIR_PROBE_PRINT_SESSION_NAMES_H
#define WEIR_PROBE_PRINT_SESSION_NAMES_H

#include <sys/types.h>

#include "probe/print/printer.h"
#include "probe/run/probe_session.h"

struct session_names;
/* To be made before anything is attached, so that no process comes and goes unseen. `pids` are the
 * traced processes (their children are followed); none: every process. Nothing is opened when the
 * stream has neither user stacks nor usym(). When processes cannot be followed, `err` says so, and
 * names of processes that have ended are missing; it is no failure. */
struct session_names *session_names_new(
	const struct stream *stream, const pid_t *pids, size_t n_pids, struct err *err);
void session_names_free(struct session_names *n);

/* Sites and stacks are asked of this session from now on; NULL: of none. */
void session_names_set_session(struct session_names *n, struct probe_session *session);

/* For printer_new; lives as long as `n`. */
const struct printer_names *session_names_get(const struct session_names *n);

/* Readable when session_names_work has something to do; -1: never. */
int session_names_fd(const struct session_names *n);
/* Follows processes; the first time it reads what every process has mapped, when user stacks are
 * kept in maps (0.1 ms a process). */
void session_names_work(struct session_names *n);
/* Records of mappings that were lost: names of some addresses may be missing. */
uint64_t session_names_n_lost(const struct session_names *n);

#endif
