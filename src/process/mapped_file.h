/* SPDX-License-Identifier: MIT */
/*
 * The file that a process has mapped, opened from here. Its path may lead elsewhere, or nowhere: the
 * file was deleted or replaced, or the process has a root folder or mount namespace of its own. So it
 * is looked for
 *	1. by its path
 *	2. by its path below the root of the process, /proc/PID/root
 *	3. by the mapping itself, /proc/PID/map_files, for which a privilege is needed
 *	4. as the program of the process, /proc/PID/exe, and as one of its open files, /proc/PID/fd: a
 *	   file in memory (memfd) has no path at all
 * and what is found there is taken only when it is that very file.
 */
#ifndef WEIR_PROCESS_MAPPED_FILE_H
#define WEIR_PROCESS_MAPPED_FILE_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/file.h"
#include "base/span.h"
#include "elf/elf_file.h"
#include "process/proc.h"

struct mapped_file {
	int fd;		/* for reading */
	char *path;	/* that it was opened by; owned */
	struct stat st; /* of the moment it was opened */
};

/* A regular file that has the build-id, or else (it is empty: not known) the inode and the device of the
 * mapping; inode 0 and device 0:0 are not known, either, and then not compared. Fails with what was
 * wrong with the first way: not there, no permission, another file now, deleted. `m` may be of the
 * past, its process gone. */
int mapped_file_open(struct mapped_file *f, pid_t pid, const struct proc_mapping *m,
	struct span build_id, struct err *err);
/* Likewise, of a recording that was made earlier: by its path below `root` ("" is here), and as perf keeps
 * what it recorded, by build-id. Where the recording knows no build-id the inode has to be the same; below
 * another root, and with `is_elsewhere`, there is none to compare: then that root's file is taken, and none of
 * here. */
struct mapped_file_past {
	const char *root;
	bool is_elsewhere; /* it was recorded on another machine */
};
int mapped_file_open_past(struct mapped_file *f, const struct mapped_file_past *past,
	const struct proc_mapping *m, struct span build_id, struct err *err);
/* Also of one that could not be opened. */
void mapped_file_close(struct mapped_file *f);
/* A path of /proc or the kernel that names memory kept as a file: a memfd, /dev/shm. Programs and
 * libraries are run from there, and compilers put code there that they make at run time. */
bool path_is_in_memory(const char *path);
/* Whether the mapped file is an ELF image that has code where the mapping begins, as far as its content
 * can be read. A build-id that the kernel has found in it says so, too. */
bool mapped_file_is_elf(pid_t pid, const struct proc_mapping *m, struct span build_id);
/* Its bytes as an ELF file, both released by the caller. */
int mapped_file_read_elf(
	const struct mapped_file *f, struct file_map *map, struct elf_file *elf, struct err *err);

#endif
