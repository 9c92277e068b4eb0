/* SPDX-License-Identifier: MIT */
/* `weir record --snapshot-of PID`: what another recording has so far, as a readable trace. */
#ifndef WEIR_CMD_RECORD_SNAPSHOT_H
#define WEIR_CMD_RECORD_SNAPSHOT_H

/* `pid` is the number of a `weir record` or of a process that it records, as text. Waits until the
 * snapshot is there and prints its path. Returns the exit status. */
struct command;
int record_snapshot(const struct command *command, const char *pid);

#endif
