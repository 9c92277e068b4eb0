/* SPDX-License-Identifier: MIT */
/*
 * Where hook libraries find the recorder. Three kinds of sockets, one text that names them
 * (HOOK_ENV):
 *
 *   abstract name          every user, every root folder; nothing on disk, also when we are killed
 *   /proc/PID/fd/N         a socket whose file is gone at once: for programs that moved to another
 *                          network namespace, where abstract names of ours mean nothing
 *   abstract name, there   for a process that is attached to in another network namespace
 *
 * Names of sockets are no secret: a hello must show a key, which only those that the recorder has
 * told know.
 */
#ifndef WEIR_RECORD_HOOKS_LISTEN_H
#define WEIR_RECORD_HOOKS_LISTEN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "rt/hook/hook_abi.h"

#define LISTENERS_MAX 16

struct listener {
	char place[HOOK_PLACE_BYTES]; /* what libraries are told */
	char name[32];		      /* of the abstract sockets, without the zero before it */
	char key[HOOK_KEY_BYTES];
	int fds[LISTENERS_MAX];
	uint64_t nets[LISTENERS_MAX]; /* the network namespace of each; 0 = ours */
	atomic_size_t n; /* of fds: set behind the entry; pairs with the acquire of the server */
	int path_fd;	 /* what /proc/PID/fd/N leads to; -1 = none */
};

/* Fails with a sentence; *l can be closed in any case. */
int listener_open(struct listener *l, struct err *err);
/* Listens in the network namespace of the process, too, unless it is ours or is listened in
 * already. By one thread only. */
int listener_reach(struct listener *l, pid_t pid, struct err *err);
void listener_close(struct listener *l);
/* Whether the hello is by somebody who was told. */
bool listener_is_invited(const struct listener *l, const struct hook_hello *hello);

#endif
