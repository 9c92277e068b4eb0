/* SPDX-License-Identifier: MIT */
/*
 * The hook library in a process that runs already: loaded by a call of dlopen on one of its
 * threads, told to hook while all of its threads stand still, told to unhook later. By ptrace(2),
 * which is held only for the moment.
 */
#ifndef WEIR_RECORD_HOOKS_INJECT_H
#define WEIR_RECORD_HOOKS_INJECT_H

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct inject_options {
	const char *library; /* path of libweir.so for the program's kind (32 or 64 bit) */
	const char *library32;
	const char *place; /* of the server, see HOOK_ENV */
	/* Where a thread that stands at `pc` has to go on because the code there was patched;
	 * returns pc itself when it was not. Called after hooking, while all threads stand still,
	 * by a thread of the injection; may be NULL. */
	uint64_t (*moved_pc)(void *ctx, pid_t pid, uint64_t pc);
	void *ctx;
};

/*
 * Both take seconds at most (10 s a call in the process), and give our process a SIGCHLD for each
 * stop of a thread. They may be used by several threads, for different processes.
 *
 * A thread that waits in a system call goes on waiting, also when a signal comes meanwhile: no call
 * ends that would not have ended.
 *
 * Loads the library unless it is there (a mapped file of the same base name), calls its
 * `weir_attach(const char *socket)` with all threads stopped (another thread of ours answers the
 * server's socket meanwhile), moves threads out of patched instructions, also where a signal
 * handler will return to, lets go. Fails with a sentence, and the process as it was: statically
 * linked, no ptrace permission, traced by another tool for more than 2 s, no moment found at which
 * dlopen is safe.
 */
int inject_attach(pid_t pid, const struct inject_options *options, struct err *err);
/* Calls the library's `weir_detach(const char *socket, int)` with all threads stopped: every byte
 * is restored when it returns. ERR_NOT_FOUND: the process has ended, has no such library, or is
 * hooked by another recorder, and has not been stopped then. */
int inject_detach(pid_t pid, const struct inject_options *options, struct err *err);

#endif
