/* SPDX-License-Identifier: MIT */
/* --control FIFO: lines that change a run of `weir probe` while it goes on. */
#ifndef WEIR_CMD_PROBE_CONTROL_H
#define WEIR_CMD_PROBE_CONTROL_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "cmd/probe_output.h"

struct probe_control {
	int fd; /* -1: none */
	const char *path;
	bool is_ours; /* made by us, to be removed */
	struct buf line;
};

/* Makes the FIFO when there is nothing of that name. */
int probe_control_open(struct probe_control *c, const char *path, struct err *err);
void probe_control_close(struct probe_control *c);
/* Does what the lines say that have come; what is not understood is said on stderr. False after
 * `end`. */
bool probe_control_work(struct probe_control *c, struct probe_output *o);

#endif
