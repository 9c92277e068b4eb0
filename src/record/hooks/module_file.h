/* SPDX-License-Identifier: MIT */
/* The file that a process has mapped as a module, found and verified by what /proc says. */
#ifndef WEIR_RECORD_HOOKS_MODULE_FILE_H
#define WEIR_RECORD_HOOKS_MODULE_FILE_H

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"
#include "elf/elf_file.h"

/* The file mappings of a process at one moment. */
struct module_maps {
	struct module_map {
		uint64_t start, end, inode;
		uint32_t major, minor; /* of its device */
		char *path;
	} * v;
	size_t n, cap;
};
void module_maps_read(struct module_maps *m, pid_t pid);
void module_maps_release(struct module_maps *m);

/* The first that touches [start, end); NULL when there is none. */
const struct module_map *module_maps_find(
	const struct module_maps *m, uint64_t start, uint64_t end);

struct module_file {
	struct file_map file;
	struct elf_file elf;
	char *path;   /* as the process has it */
	uint64_t key; /* names this version of the file */
};

/* The module that has [start, end) of the process. Fails with a sentence: nothing is mapped there,
 * no file, another file now, not ELF. */
int module_file_open(struct module_file *f, const struct module_maps *maps, pid_t pid,
	uint64_t start, uint64_t end, struct err *err);
void module_file_close(struct module_file *f);

#endif
