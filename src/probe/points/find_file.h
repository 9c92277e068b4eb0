/* SPDX-License-Identifier: MIT */
/* The ELF files that a trace point names: paths, programs on PATH, libraries by short name. */
#ifndef WEIR_PROBE_POINTS_FIND_FILE_H
#define WEIR_PROBE_POINTS_FIND_FILE_H

#include "base/arena.h"
#include "base/mem.h"
#include "probe/points/point.h"

struct probe_file {
	const char *path; /* in the arena */
	uint64_t device, inode, modified_ns;
	enum mode mode;
};

struct probe_files {
	VEC(struct probe_file) v; /* the caller releases it; no inode twice */
};

enum file_kind {
	FILE_ELF,	   /* an x86 program or library */
	FILE_MISSING,	   /* or not readable: errno says which */
	FILE_NOT_ELF,	   /* nothing of the kind */
	FILE_X32,	   /* 32-bit pointers in 64-bit code */
	FILE_OTHER_MACHINE /* of another processor */
};
enum file_kind file_identify(const char *path, struct probe_file *out);

/* Adds a file unless it is there already; false when it is no x86 ELF file. Copies the path. */
bool probe_files_add(struct probe_files *files, struct arena *arena, const char *path);

/* The files of a point. False when there are none, which has been reported. */
bool find_files(const struct point_spec *spec, const struct find_options *options,
	struct arena *arena, struct probe_files *out, struct diags *d);

/* The program of that name as a shell would find it, in the arena, or NULL. */
const char *program_find(const char *name, struct arena *arena);
/* What the kernel runs for a command: the interpreter at the end of a chain of #! lines, or the
 * file itself. NULL when it is not there. */
const char *program_of_command(const char *command, struct arena *arena);

/* The libraries that a program needs, directly or not, as the loader would find them, as far as
 * their names are what is asked for (library_name_is). */
void needed_files_add(
	struct probe_files *files, struct arena *arena, const char *program, const char *asked);

#endif
