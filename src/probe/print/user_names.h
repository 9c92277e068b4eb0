/* SPDX-License-Identifier: MIT */
/*
 * Names of addresses in processes, also in those that are gone: which files a process has mapped
 * where is taken from /proc and, while user_names_watch is on, from the kernel's own records, and
 * is kept after its end. Names come from the file's symbol tables (symbols/symtab.h), demangled;
 * those of code made at run time from /tmp/perf-PID.map.
 */
#ifndef WEIR_PROBE_PRINT_USER_NAMES_H
#define WEIR_PROBE_PRINT_USER_NAMES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "probe/print/printer.h"
#include "unwind/unwind.h"

struct user_names;
/* `is_all`: processes that nobody asked for are kept, too. Else only those that were (by
 * user_names_process, or by a name being asked for) and their children. */
struct user_names *user_names_new(bool is_all);
void user_names_free(struct user_names *un);

/* From now on mappings, forks, execs and exits are followed. */
int user_names_watch(struct user_names *un, struct err *err);
/* Readable when user_names_work has something to do; -1 when nothing is watched. */
int user_names_fd(const struct user_names *un);
void user_names_work(struct user_names *un);
/* The same, but what happened after that moment (CLOCK_MONOTONIC) waits. */
void user_names_work_until(struct user_names *un, uint64_t time_ns);
/* Questions are about that moment from now on, which must not go back; 0 = about now. */
void user_names_at(struct user_names *un, uint64_t time_ns);
/* Records of mappings that were lost: names may be missing, when any was asked for; else 0. */
uint64_t user_names_n_lost(const struct user_names *un);

/* Reads what the process has mapped now; what it had before stays known where nothing else is now.
 * False when there is no such process. */
bool user_names_process(struct user_names *un, pid_t pid);
/* The same for every process there is. */
void user_names_all_processes(struct user_names *un);

/* For walking stacks of the process, as struct unwind_callbacks has it. user_names_space gives what
 * changes with its mappings; 0 when nothing is known of it. */
uint64_t user_names_space(struct user_names *un, uint32_t pid);
bool user_names_module(
	struct user_names *un, uint32_t pid, struct vaddr pc, struct unwind_module *module);
bool user_names_follows_call(struct user_names *un, uint32_t pid, struct vaddr pc);
bool user_names_ends_thread(struct user_names *un, uint32_t pid, struct vaddr pc);
/* Whoever keeps something for addresses of processes is told when they get another meaning: `end` 0 =
 * all of the process's. */
struct user_names_listener {
	void (*changed)(void *ctx, uint32_t pid, uint64_t start, uint64_t end);
	void *ctx;
};
void user_names_listen(struct user_names *un, struct user_names_listener listener);

/* The function at `address` in the process; texts live until the next call. False when there is
 * none that is known. */
bool user_names_find(
	struct user_names *un, uint32_t pid, uint64_t address, struct printer_symbol *out);
/* Its places in the source, as source_lines_at() gives them; where it lies in its file. */
size_t user_names_places(struct user_names *un, uint32_t pid, uint64_t address,
	struct printer_place *out, size_t max);
bool user_names_file(
	struct user_names *un, uint32_t pid, uint64_t address, struct printer_file_place *out);

#endif
