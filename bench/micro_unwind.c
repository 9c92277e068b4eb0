/* SPDX-License-Identifier: MIT */
/*
 * Nanoseconds a frame. The stacks are this process's own, at several depths: plain recursion, and
 * every fourth level through qsort of the C library, so that two modules take part. Registers come
 * from getcontext and the bytes from a copy, as a sample has them.
 */
#include "micro.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "symbols/addrspace.h"
#include "unwind/unwind.h"

#define N_STACKS   16
#define DEPTH_STEP 6
#define WALKS	   20000
#define PATH_BYTES 4096
#define NOINLINE   __attribute__((noinline))

struct module {
	struct file_map file;
	struct elf_file elf;
	struct cfi_table *cfi;
};

struct stack {
	struct cpu_regs regs;
	uint8_t *bytes;
	size_t n;
};

static VEC(struct module) modules;
static struct addrspace *space;
static struct stack stacks[N_STACKS];
static uint8_t *stack_end;

static void take_stack(struct stack *s)
{
	static const int from[CPU_N_REGS] = {[CPU_REG_RAX] = REG_RAX,
		[CPU_REG_RDX] = REG_RDX,
		[CPU_REG_RCX] = REG_RCX,
		[CPU_REG_RBX] = REG_RBX,
		[CPU_REG_RSI] = REG_RSI,
		[CPU_REG_RDI] = REG_RDI,
		[CPU_REG_RBP] = REG_RBP,
		[CPU_REG_RSP] = REG_RSP,
		[CPU_REG_R8] = REG_R8,
		[CPU_REG_R9] = REG_R9,
		[CPU_REG_R10] = REG_R10,
		[CPU_REG_R11] = REG_R11,
		[CPU_REG_R12] = REG_R12,
		[CPU_REG_R13] = REG_R13,
		[CPU_REG_R14] = REG_R14,
		[CPU_REG_R15] = REG_R15,
		[CPU_REG_RIP] = REG_RIP};
	const uint8_t *sp;
	ucontext_t here;

	getcontext(&here);
	for (int i = 0; i < CPU_N_REGS; i++)
		s->regs.r[i] = (uint64_t)here.uc_mcontext.gregs[from[i]];
	s->regs.known = (1u << CPU_N_REGS) - 1;
	s->regs.is_64 = true;
	sp = (const uint8_t *)s->regs.r[CPU_REG_RSP];
	s->n = (size_t)(stack_end - sp);
	s->bytes = mem_dup(sp, s->n);
}

static int descend(int level, struct stack *s);

static struct {
	int level;
	struct stack *s;
} through_qsort;

static NOINLINE int compare(const void *a, const void *b)
{
	if (through_qsort.s)
		descend(through_qsort.level, through_qsort.s);
	return *(const int *)a - *(const int *)b;
}

static NOINLINE int descend(int level, struct stack *s)
{
	int pair[2] = {level, level + 1};

	if (!level) {
		take_stack(s);
		through_qsort.s = NULL;
	} else if (level % 4 == 0) {
		through_qsort.level = level - 1;
		through_qsort.s = s;
		qsort(pair, 2, sizeof(pair[0]), compare);
	} else {
		pair[0] += descend(level - 1, s);
	}
	return pair[0] + pair[1];
}

static void add_module(const char *path, uint64_t start, uint64_t end, uint64_t offset)
{
	struct module m = {0};
	struct iaddr first;
	struct err err;

	if (file_map_open(&m.file, path, &err) < 0 ||
		elf_file_init(&m.elf, m.file.bytes, &err) < 0 ||
		!elf_file_offset_to_iaddr(&m.elf, (struct foff){offset}, &first))
		micro_fail("%s: cannot be read", path);
	m.cfi = cfi_table_new(&m.elf);
	addrspace_map(&space, &(struct mapping){.start = start,
				      .end = end,
				      .offset = {offset},
				      .image = (uint32_t)modules.n,
				      .bias = start - first.v});
	vec_push(&modules, m);
}

static void read_modules(void)
{
	char line[PATH_BYTES + 200], path[PATH_BYTES];
	uint64_t start, end, offset;
	FILE *f = fopen("/proc/self/maps", "r");

	if (!f)
		micro_fail("/proc/self/maps cannot be read");
	space = addrspace_new();
	while (fgets(line, sizeof(line), f)) {
		path[0] = 0;
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " r-xp %" SCNx64 " %*s %*s %4095s", &start,
			    &end, &offset, path) >= 3 &&
			path[0] == '/')
			add_module(path, start, end, offset);
	}
	fclose(f);
}

static bool find_module(void *ctx, struct vaddr pc, struct unwind_module *module)
{
	const struct mapping *m = addrspace_find(space, pc);

	(void)ctx;
	if (!m)
		return false;
	*module = (struct unwind_module){.cfi = modules.v[m->image].cfi,
		.bias = m->bias,
		.entry = modules.v[m->image].elf.entry,
		.cookie = m->image};
	return true;
}

/* Walks all stacks `walks` times over; a generation that changes forgets every cached rule. */
static double walk_all(struct unwinder *u, int walks, bool is_cached, uint64_t *n_frames)
{
	static struct unwind_frame frames[UNWIND_FRAMES_MAX];
	struct unwind_callbacks callbacks = {.find_module = find_module};
	static uint64_t generation = 1;
	uint64_t start = clock_mono_ns();

	*n_frames = 0;
	generation++;
	for (int i = 0; i < walks; i++) {
		const struct stack *s = &stacks[i % N_STACKS];
		struct unwind_memory memory = {
			.start = {s->regs.r[CPU_REG_RSP]}, .bytes = {s->bytes, s->n}};
		size_t n = 0;

		if (!is_cached)
			generation++;
		if (unwinder_walk(u, &s->regs, &memory, &callbacks, generation, frames,
			    UNWIND_FRAMES_MAX, &n) != UNWIND_END_COMPLETE)
			micro_fail("a stack of %zu frames was not walked to its start", n);
		*n_frames += n;
	}
	return (double)(clock_mono_ns() - start);
}

static void measure(struct unwinder *u, const char *name, bool is_cached)
{
	double least = 0;
	uint64_t n_frames = 0;

	for (int i = 0; i < MICRO_ROUNDS; i++) {
		double ns = walk_all(u, WALKS, is_cached, &n_frames);

		least = least == 0 || ns < least ? ns : least;
	}
	micro_print(name, least / (double)n_frames, "ns a frame", "%.1f frames a stack, %d stacks",
		(double)n_frames / WALKS, N_STACKS);
}

void micro_unwind(void)
{
	struct unwinder *u = unwinder_new();
	pthread_attr_t attr;
	void *low;
	size_t n;

	if (pthread_getattr_np(pthread_self(), &attr) || pthread_attr_getstack(&attr, &low, &n))
		micro_fail("cannot find the stack");
	stack_end = (uint8_t *)low + n;
	pthread_attr_destroy(&attr);
	read_modules();
	for (int i = 0; i < N_STACKS; i++)
		descend((i + 1) * DEPTH_STEP, &stacks[i]);
	measure(u, "unwinder, rules in the cache", true);
	measure(u, "unwinder, cache forgotten before each stack", false);
	unwinder_free(u);
}
