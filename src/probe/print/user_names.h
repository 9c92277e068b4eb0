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
/* Records of mappings that were lost: names may be missing. */
uint64_t user_names_n_lost(const struct user_names *un);

/* Reads what the process has mapped now; what it had before stays known where nothing else is now.
 * False when there is no such process. */
bool user_names_process(struct user_names *un, pid_t pid);
/* The same for every process there is. */
void user_names_all_processes(struct user_names *un);

/* The function at `address` in the process; texts live until the next call. False when there is
 * none that is known. */
bool user_names_find(
	struct user_names *un, uint32_t pid, uint64_t address, struct printer_symbol *out);

#endif
