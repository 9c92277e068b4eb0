/* SPDX-License-Identifier: MIT */
/* What the shell of the other machine runs first: bootstrap.sh, with what it has to know in front. */
#ifndef WEIR_REMOTE_BOOTSTRAP_H
#define WEIR_REMOTE_BOOTSTRAP_H

#include <stdbool.h>

#include "base/buf.h"
#include "remote/agent_files.h"

#define BOOTSTRAP_NONCE_CHARS 16

/* `nonce` is in front of each of its lines, so that they are told from what login scripts print. */
void bootstrap_write(struct buf *to, const struct agent_files *files, const char *nonce, bool keep);

#endif
