/* SPDX-License-Identifier: MIT */
/* The file that a process has mapped as a module, found and verified by what /proc says. */
#ifndef WEIR_RECORD_HOOKS_MODULE_FILE_H
#define WEIR_RECORD_HOOKS_MODULE_FILE_H

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/file.h"
#include "elf/elf_file.h"
#include "process/proc.h"

/* The file mappings of a process at this moment. */
void module_maps_read(struct proc_mappings *maps, pid_t pid);
/* The first that touches [start, end); NULL when there is none. */
const struct proc_mapping *module_maps_find(
	const struct proc_mappings *maps, uint64_t start, uint64_t end);

struct module_file {
	struct file_map file;
	struct elf_file elf;
	char *path;   /* as the process has it */
	uint64_t key; /* names this version of the file */
};

/* The file of a mapping. Fails with a sentence: no file, another file now, not ELF. */
int module_file_open(
	struct module_file *f, pid_t pid, const struct proc_mapping *m, struct err *err);
void module_file_close(struct module_file *f);

#endif
