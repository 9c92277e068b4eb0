/* SPDX-License-Identifier: MIT */
/*
 * What /proc says about a running process. Everything here may vanish between two calls. Numbers are
 * those that we see; /proc has others where it was mounted outside of our pid namespace.
 */
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
int proc_each_mapping(pid_t pid, void (*each)(void *ctx, const struct proc_mapping *mapping),
	void *ctx, struct err *err);

/* Mappings that are kept: paths are owned. Zero-initialise. */
struct proc_mappings {
	struct proc_mapping *v;
	size_t n, cap;
};
void proc_mappings_add(struct proc_mappings *to, const struct proc_mapping *mapping);
void proc_mappings_release(struct proc_mappings *mappings);

/* Where the mapping that holds `addr` ends; 0 when there is none. */
uint64_t proc_mapping_end(pid_t pid, uint64_t addr);

/* Calls `each` for every thread (or, with pid 0, for every process) and returns how many. */
size_t proc_each_task(pid_t pid, void (*each)(void *ctx, pid_t tid), void *ctx);

bool proc_exists(pid_t pid);
/* The path of its program, as the kernel says it (path_is_deleted()); "" when not known. 0: our own. */
void proc_exe(pid_t pid, char *to, size_t bytes);
/* The thread's name, without newline; "" when it is gone. */
void proc_name(pid_t pid, pid_t tid, char *to, size_t bytes);
/* The command line with blanks between the arguments; "" for kernel threads. */
void proc_command_line(pid_t pid, char *to, size_t bytes);
pid_t proc_parent(pid_t pid); /* 0 when not known */
/* When the process began, CLOCK_MONOTONIC; 0 when not known. Good to 10 ms. */
uint64_t proc_start_ns(pid_t pid);

/* CPU time of the process so far, its threads that have ended included, and of the children that it
 * has waited for (good to 10 ms each); 0 when it is gone. */
uint64_t proc_cpu_ns(pid_t pid);

/* The value of the line "NAME:" of a thread's status file, as a text or a number of this base; "" or 0
 * when there is none. */
void proc_status_field(pid_t pid, pid_t tid, const char *name, char *to, size_t bytes);
uint64_t proc_status_number(pid_t pid, pid_t tid, const char *name, int base);
/* Field `number` of a thread's stat file, counted from 1 as in proc(5); "" when there is none. As a
 * number: of the first thread; 0 when there is none. */
void proc_stat_field(pid_t pid, pid_t tid, int number, char *to, size_t bytes);
uint64_t proc_stat_number(pid_t pid, int number);

/* The number that /proc has for the process; -1 (no such folder) when it is gone. Whoever makes a path
 * below /proc asks. */
pid_t proc_number(pid_t pid);
/* How many pid namespaces the thread has a number in, from ours to its own, where it is *own. 0 when
 * that is not known. */
unsigned proc_own_number(pid_t pid, pid_t tid, pid_t *own);
/* The identity of the namespace ("mnt", "net") that the process is in; 0 when it is ours, or cannot be
 * known. */
uint64_t proc_namespace_id(pid_t pid, const char *kind);

/* A number of /proc/sys ("kernel/kptr_restrict"). */
int proc_setting(const char *name, int otherwise);

/* Copies memory of the process: all of it, or false. */
bool proc_read_memory(pid_t pid, uint64_t addr, void *to, size_t bytes);
struct proc_part {
	uint64_t addr;
	void *to;
	size_t bytes;
	bool is_read; /* the result: all of it was */
};
/* The same of many parts, with few system calls. False when the process is gone or may not be read;
 * a part that is not there does not keep the others from being read. */
bool proc_read_parts(pid_t pid, struct proc_part *parts, size_t n);

#endif
