/* SPDX-License-Identifier: MIT */
/*
 * What uprobes of others make of the program's code. The kernel writes int3 over the instruction (or
 * a call, over a nop of five bytes) and executes the one that the file has: so that is the
 * instruction of the trace. A page of the kernel's own, [uprobes], is mapped into the program for
 * that; functions with a uretprobe return through it. None of it is the program's.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arch/x86_code.h"
#include "base/file.h"
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
bool step_session_is_kernels(struct step_session *s, const struct step_track *t, uint64_t addr)
{
	struct step_space *space = t->space;

	(void)s;
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

/* The file as the process has it, which another mount namespace, or nobody, may know by its name. */
static int open_file(const struct step_track *t, const struct step_region *r)
{
	char path[4200];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/root%s", t->pid, r->path);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_ino == r->inode)
		return fd;
	fd_cleanup(&fd);
	snprintf(path, sizeof(path), "/proc/%u/map_files/%lx-%lx", t->pid, (unsigned long)r->start,
		(unsigned long)r->end);
	return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
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

static bool is_call_of_kernels(
	struct step_session *s, const struct step_track *t, uint64_t addr, const uint8_t *bytes)
{
	int32_t distance;

	memcpy(&distance, bytes + 1, sizeof(distance));
	return step_session_is_kernels(
		s, t, addr + CALL_BYTES + (uint64_t)(int64_t)distance);
}

bool step_session_unprobe(struct step_session *s, const struct step_track *t, uint64_t addr,
	uint8_t *bytes, size_t n, bool is_64)
{
	const struct step_region *r = step_space_region(t->space, addr);
	struct step_code file = {.addr = addr};
	size_t changed;
	ssize_t got;
	int fd;

	if (!r || !r->is_file || !n || (bytes[0] != INT3 && bytes[0] != CALL))
		return false;
	if (bytes[0] == CALL &&
		(n < CALL_BYTES || !is_call_of_kernels(s, t, addr, bytes)))
		return false;
	changed = bytes[0] == CALL ? CALL_BYTES : 1;
	fd = open_file(t, r);
	n = n < sizeof(file.bytes) ? n : sizeof(file.bytes);
	got = fd < 0 ? -1 : pread(fd, file.bytes, n, (off_t)(addr - r->start + r->offset));
	fd_cleanup(&fd);
	file.n = (uint8_t)(got > 0 ? got : 0);
	if (!file.n || file.bytes[0] == bytes[0] || !agrees(&file, bytes, changed, is_64))
		return false;
	memcpy(bytes, file.bytes, file.n);
	return true;
}
