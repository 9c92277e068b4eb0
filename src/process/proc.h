/* SPDX-License-Identifier: MIT */
/* What /proc says about a running process. Everything here may vanish between two calls. */
#ifndef WEIR_PROCESS_PROC_H
#define WEIR_PROCESS_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/span.h"

struct proc_mapping {
	uint64_t start, end, offset;
	uint32_t prot; /* PROT_* */
	bool is_shared;
	uint32_t major, minor;
	uint64_t inode;
	const char *path; /* "" for anonymous memory; valid during the callback */
};

/* Parses the text of /proc/PID/maps; lines that are not understood are skipped. */
void proc_parse_maps(
	struct span text, void (*each)(void *ctx, const struct proc_mapping *mapping), void *ctx);
struct stat;
/* 0 when the file at `path` is the one that a mapping has by its device (0:0: not known) and inode. */
int proc_check_mapped_file(const char *path, const struct stat *st, uint32_t major, uint32_t minor,
	uint64_t inode, struct err *err);
int proc_each_mapping(pid_t pid, void (*each)(void *ctx, const struct proc_mapping *mapping),
	void *ctx, struct err *err);

/* Where the mapping that holds `addr` ends; 0 when there is none. */
uint64_t proc_mapping_end(pid_t pid, uint64_t addr);

/* Calls `each` for every thread (or, with pid 0, for every process) and returns how many. */
size_t proc_each_task(pid_t pid, void (*each)(void *ctx, pid_t tid), void *ctx);

bool proc_exists(pid_t pid);
/* The thread's name, without newline; "" when it is gone. */
void proc_name(pid_t pid, pid_t tid, char *to, size_t bytes);
/* The command line with blanks between the arguments; "" for kernel threads. */
void proc_command_line(pid_t pid, char *to, size_t bytes);
pid_t proc_parent(pid_t pid); /* 0 when not known */
/* When the process began, CLOCK_MONOTONIC; 0 when not known. Good to 10 ms. */
uint64_t proc_start_ns(pid_t pid);

#endif
