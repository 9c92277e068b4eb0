/* SPDX-License-Identifier: MIT */
/*
 * The memory of a JVM that runs on while it is read: any read may fail, and two reads may see two
 * states. Numbers are little endian.
 */
#ifndef WEIR_JVM_VM_MEMORY_H
#define WEIR_JVM_VM_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/span.h"
#include "elf/elf_file.h"
#include "process/proc.h"

struct vm_memory {
	pid_t pid; /* 0: there is no process, memory is `bytes` at `base` (tests) */
	const struct elf_file *elf; /* libjvm.so, borrowed: its constants need no system call */
	uint64_t bias;		    /* its virtual minus its image addresses */
	struct span bytes;
	uint64_t base;
};

/* All of it, or false. */
bool vm_read(const struct vm_memory *m, uint64_t addr, void *to, size_t n);
bool vm_read_u64(const struct vm_memory *m, uint64_t addr, uint64_t *to);
bool vm_read_u32(const struct vm_memory *m, uint64_t addr, uint32_t *to);
/* Many at once; false when there is no process any more. */
bool vm_read_parts(const struct vm_memory *m, struct proc_part *parts, size_t n);
/* A C string, cut to bytes - 1; false when it cannot be read. */
bool vm_read_text(const struct vm_memory *m, uint64_t addr, char *to, size_t bytes);

/* Whether it can be the address of something in user space, aligned to words. */
static inline bool vm_is_pointer(uint64_t addr)
{
	return addr >= 4096 && addr < (uint64_t)1 << 47 && !(addr & 7);
}

#endif
