/* SPDX-License-Identifier: MIT */
/*
 * What uprobes of others make of the program's code. The kernel writes int3 over the instruction (or
 * a call, over a nop of five bytes) and executes the one that the file has: so that is the
 * instruction of the trace. A page of the kernel's own, [uprobes], is mapped into the program for
 * that; functions with a uretprobe return through it. None of it is the program's.
 */
#include <string.h>
#include <unistd.h>

#include "arch/x86_code.h"
#include "process/mapped_file.h"
#include "process/proc.h"
#include "steps/record/step_internal.h"

#define INT3	     0xcc
#define CALL	     0xe8
#define CALL_BYTES   5
#define KERNELS_NAME "[uprobes" /* and [uprobes-trampoline] */

/* --- the kernel's pages -------------------------------------------------------------------- */

static void take_kernels(void *ctx, const struct proc_mapping *m)
{
	struct step_space *s = ctx;

	if (step_mapping_is_kernels(m->path))
		vec_push(&s->kernels, ((struct step_range){m->start, m->end}));
}

bool step_mapping_is_kernels(const char *path)
{
	return !strncmp(path, KERNELS_NAME, strlen(KERNELS_NAME));
}

static bool is_in_kernels(const struct step_space *s, uint64_t addr)
{
	for (size_t i = 0; i < s->kernels.n; i++)
		if (addr >= s->kernels.v[i].start && addr < s->kernels.v[i].end)
			return true;
	return false;
}

/* They come without a system call of the program: looked for where nothing is known to be. */
bool step_track_is_in_kernels(const struct step_track *t, uint64_t addr)
{
	struct step_space *space = t->space;

	if (step_space_region(space, addr))
		return false;
	if (is_in_kernels(space, addr))
		return true;
	if (space->unknown_page == addr >> 12)
		return false;
	space->unknown_page = addr >> 12;
	space->kernels.n = 0;
	proc_each_mapping((pid_t)t->pid, take_kernels, space, NULL);
	return is_in_kernels(space, addr);
}

/* --- the instruction ----------------------------------------------------------------------- */

/* Up to `n` bytes of the file that the process has mapped at the address. */
static void read_code(
	struct step_code *to, const struct step_track *t, const struct step_region *r, size_t n)
{
	const struct proc_mapping m = {.start = r->start,
		.end = r->end,
		.major = r->device >> 20,
		.minor = r->device & 0xfffff,
		.inode = r->inode,
		.path = r->path};
	struct mapped_file f;
	ssize_t got;

	if (mapped_file_open(&f, (pid_t)t->pid, &m, (struct span){0}, NULL) < 0)
		return;
	got = pread(f.fd, to->bytes, n < sizeof(to->bytes) ? n : sizeof(to->bytes),
		(off_t)(to->addr - r->start + r->offset));
	to->n = (uint8_t)(got > 0 ? got : 0);
	mapped_file_close(&f);
}

/* The rest of the instruction is the same in memory, where no other uprobe can be: else this is not
 * the file that is mapped. */
static bool agrees(const struct step_code *file, const uint8_t *memory, size_t changed, bool is_64)
{
	struct x86_insn insn;

	if (!x86_decode(&insn, (struct span){file->bytes, file->n}, file->addr, is_64))
		return false;
	return insn.length <= changed ||
	       !memcmp(file->bytes + changed, memory + changed, insn.length - changed);
}

static bool is_call_of_kernels(const struct step_track *t, uint64_t addr, const uint8_t *bytes)
{
	int32_t distance;

	memcpy(&distance, bytes + 1, sizeof(distance));
	return step_track_is_in_kernels(t, addr + CALL_BYTES + (uint64_t)(int64_t)distance);
}

bool step_track_unprobe(
	const struct step_track *t, uint64_t addr, uint8_t *bytes, size_t n, bool is_64)
{
	const struct step_region *r = step_space_region(t->space, addr);
	struct step_code file = {.addr = addr};
	size_t changed;

	if (!r || !r->is_file || !n || (bytes[0] != INT3 && bytes[0] != CALL))
		return false;
	if (bytes[0] == CALL && (n < CALL_BYTES || !is_call_of_kernels(t, addr, bytes)))
		return false;
	changed = bytes[0] == CALL ? CALL_BYTES : 1;
	read_code(&file, t, r, n);
	if (!file.n || file.bytes[0] == bytes[0] || !agrees(&file, bytes, changed, is_64))
		return false;
	memcpy(bytes, file.bytes, file.n);
	return true;
}
