/* SPDX-License-Identifier: MIT */
/* Processes that live in namespaces of their own: containers, sandboxes, unshare(1). */
#ifndef WEIR_RECORD_HOOKS_NAMESPACES_H
#define WEIR_RECORD_HOOKS_NAMESPACES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* Whether its process and thread ids are other ones to itself than to us. */
bool namespace_has_own_pids(pid_t pid);
/* Our number for the thread that has the number `own_tid` in the process's own namespace; 0 when
 * there is none. Reads a file for each thread. */
uint32_t namespace_find_tid(pid_t pid, uint32_t own_tid);

/* The identity of the network namespace of the process (0: ours); 0 when it cannot be known. */
uint64_t namespace_net_id(pid_t pid);
/* A Unix stream socket that belongs to the network namespace of the process, whoever uses it. */
int namespace_net_socket(pid_t pid, int *fd, struct err *err);

#endif
