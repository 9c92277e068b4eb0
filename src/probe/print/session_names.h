/* SPDX-License-Identifier: MIT */
/* What the printer asks for, out of a running session, the processes and the kernel. */
#ifndef WEIR_PROBE_PRINT_SESSION_NAMES_H
#define WEIR_PROBE_PRINT_SESSION_NAMES_H

#include <sys/types.h>

#include "probe/print/printer.h"
#include "probe/run/probe_session.h"

struct session_names {
	struct printer_names names; /* for printer_new */
	struct probe_session
		*session; /* set by the caller: sites and stacks are asked of it; NULL: of none */
	/* Its own. */
	struct user_names *user; /* NULL: nothing asks for them */
	struct kernel_names *kernel;
	struct stack_walker *walker; /* NULL: no stack has been copied yet */
	/* While every process is still to be read: */
	int all_fd;   /* readable; else -1 */
	int epoll_fd; /* of all_fd and the descriptor of `user`; -1: not needed */
};
/* To be made before anything is attached, so that no process comes and goes unseen. `pids` are the
 * traced processes (their children are followed); none: every process. Nothing is opened when the
 * stream has neither user stacks nor usym(). When processes cannot be followed, `err` says so, and
 * names of processes that have ended are missing; it is no failure. */
struct session_names *session_names_new(
	const struct stream *stream, const pid_t *pids, size_t n_pids, struct err *err);
void session_names_free(struct session_names *n);

/* Takes what has come while the clauses were loaded, which may be seconds, out of the kernel's buffers: the command's
 * mappings, which are to come, need the room. */
void session_names_make_room(struct session_names *n);
/* Readable when session_names_work has something to do; -1: never. */
int session_names_fd(const struct session_names *n);
/* Follows processes up to that moment, of which all records have been printed; the first time it reads what every process has mapped, when user stacks are
 * kept in maps (0.1 ms a process). */
void session_names_work(struct session_names *n, uint64_t until_ns);
/* What is asked for until the next call is of a record of that time; 0: of now. */
void session_names_at(struct session_names *n, uint64_t time_ns);
/* A stack that the code could not walk: see struct probe_session_output. */
void session_names_copy(struct session_names *n, const struct stack_copy *copy, size_t n_bytes);
/* Records of mappings that were lost: names of some addresses may be missing, when any was asked for; else 0. */
uint64_t session_names_n_lost(const struct session_names *n);

#endif
