/* SPDX-License-Identifier: MIT */
/* Another machine or container, as --host names it, and the command that runs a shell there. */
#ifndef WEIR_REMOTE_REMOTE_HOST_H
#define WEIR_REMOTE_REMOTE_HOST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/mem.h"

enum remote_kind {
	REMOTE_KIND_SSH,    /* [USER@]HOST, whatever the user's ssh takes for one */
	REMOTE_KIND_DOCKER, /* docker:CONTAINER */
	REMOTE_KIND_KUBECTL /* kubectl:POD */
};

struct remote_host {
	enum remote_kind kind;
	const char *name; /* of the host, container or pod; borrowed */
};

/* Refuses what is no name, above all what its command would take for an option. */
int remote_host_parse(struct remote_host *h, const char *text, struct err *err);

struct remote_words {
	VEC(char *) v; /* owned; ends with a NULL, which n counts */
};

/* The command line that runs a shell there, which evaluates the first `script_bytes` bytes of its standard input.
 * `program` are words in place of `ssh` (or docker, kubectl), n of them; 0 = that one. */
void remote_host_command(const struct remote_host *h, char *const *program, size_t n,
	size_t script_bytes, struct remote_words *out);

#endif
