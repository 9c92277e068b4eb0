/* SPDX-License-Identifier: MIT */
/*
 * The agent: weir itself, with the loader and the libraries that it runs with here, so that what is installed on the other
 * machine does not matter, neither which libc nor whether any, and with the libraries that go into programs, which
 * have no libc. There it is started by that loader: weir finds what is beside it by /proc/self/exe, which then is the
 * loader in the same folder.
 */
#ifndef WEIR_REMOTE_AGENT_FILES_H
#define WEIR_REMOTE_AGENT_FILES_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/sha256.h"

#define AGENT_LOADER	  "ld-linux-x86-64.so.2"
#define AGENT_PROGRAM	  "weir-agent"
#define AGENT_BLOCK_BYTES 4096u

struct agent_file {
	char *name;			/* in the agent's folder; owned */
	size_t first, n_blocks;		/* in `bytes` */
	char sum[SHA256_HEX_CHARS + 1]; /* of these blocks, which are the file there */
};

struct agent_files {
	VEC(struct agent_file) v;
	struct buf bytes; /* one behind the other, each filled up with zeros to whole blocks */
	char hash[SHA256_HEX_CHARS + 1];
};

/* Reads them. Fails when a file cannot be read or one of them has been replaced since we were started. */
int agent_files_read(struct agent_files *a, struct err *err);
/* All bytes as gzip has them. */
void agent_files_gzip(const struct agent_files *a, struct buf *to);
void agent_files_release(struct agent_files *a);

#endif
