/* SPDX-License-Identifier: MIT */
/*
 * Unwinds the stacks that unwind_stops.py wrote down and compares them with gdb's frames.
 *
 *   unwind_replay DUMP     one line a difference, then the totals
 *   unwind_replay -b DUMP  nanoseconds a frame, with and without the rule cache
 *
 * Differences that have a known cause are named by it in the output:
 *
 * past-start: both agree up to code without CFI, which we take for the start; there gdb goes on.
 *
 * gdb-blind: ld.so has mapped a library of which gdb has not heard yet; gdb guesses there.
 *
 * eh-return: libgcc is about to jump into an exception handler and has overwritten its own frame
 * with the handler's context; neither unwinder finds the rest.
 *
 * no-cfi: the frame before the difference has no CFI; gdb analyses the prologue there.
 *
 * left-code: CFI that is wrong (of glibc's hand-written i386 code) leads gdb to a return address
 * in no executable mapping, which it shows as a frame.
 *
 * start-ret: a `ret` inside the start code, which CFI says is outermost; gdb steps over it.
 *
 * go-end: ours end where Go's table says that a stack begins or that another one was left; gdb, which
 * does not know, goes on with what it finds there.
 *
 * gdb-stopped: gdb's frames are a beginning of ours, and gdb says that it failed, not that it is
 * at the outermost frame.
 */
#include <stdio.h>
#include <stdlib.h>

#include "arch/x86_code.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "dwarf/cfi_rule.h"
#include "symbols/symtab.h"
#include "unwind/unwind.h"

#define BENCH_ROUNDS   200
#define RED_ZONE_BYTES 128

struct image {
	char *path;
	struct file_map file;
	struct elf_file elf;
	struct cfi_table *cfi; /* NULL: not an ELF file */
	struct symtab *symtab; /* made when first needed */
};

struct mapping {
	uint64_t start, end, offset;
	struct image *image;
};

struct area {
	uint64_t start;
	struct span bytes;
};

struct stack {
	struct cpu_regs regs;
	VEC(struct mapping) maps;
	VEC(struct area) areas;
	VEC(uint64_t) frames; /* gdb's */
	char end[200];	      /* gdb's */
	bool is_blind;	      /* gdb did not know one of the images yet */
};

static VEC(struct image *) images;

static struct image *image_ensure(const char *path)
{
	struct image *image;
	struct err err;

	for (size_t i = 0; i < images.n; i++)
		if (!strcmp(images.v[i]->path, path))
			return images.v[i];
	image = mem_zalloc(sizeof(*image));
	image->path = mem_strdup(path);
	if (path[0] == '/' && file_map_open(&image->file, path, &err) == 0 &&
		elf_file_init(&image->elf, image->file.bytes, &err) == 0)
		image->cfi = cfi_table_new(&image->elf);
	vec_push(&images, image);
	return image;
}

static bool find_module(void *ctx, struct vaddr pc, struct unwind_module *module)
{
	const struct stack *stack = ctx;

	for (size_t i = 0; i < stack->maps.n; i++) {
		const struct mapping *m = &stack->maps.v[i];
		struct iaddr first;

		if (pc.v < m->start || pc.v >= m->end)
			continue;
		*module = (struct unwind_module){.cookie = (uint32_t)i};
		if (m->image->cfi && elf_file_offset_to_iaddr(
					     &m->image->elf, (struct foff){m->offset}, &first)) {
			module->cfi = m->image->cfi;
			module->bias = m->start - first.v;
			module->entry = m->image->elf.entry;
		}
		return true;
	}
	return false;
}

static bool follows_call(void *ctx, struct vaddr pc)
{
	const struct stack *stack = ctx;
	struct unwind_module module;
	struct vaddr before = {pc.v - X86_CALL_BYTES_MAX};
	struct span code;

	if (!find_module(ctx, before, &module) || !module.cfi)
		return true;
	code = elf_file_bytes_at(
		&stack->maps.v[module.cookie].image->elf, (struct iaddr){before.v - module.bias});
	return code.n < X86_CALL_BYTES_MAX ||
	       x86_follows_call(code.p + X86_CALL_BYTES_MAX, X86_CALL_BYTES_MAX);
}

static bool read_area(void *ctx, uint64_t addr, void *to, size_t n)
{
	const struct stack *stack = ctx;

	for (size_t i = 0; i < stack->areas.n; i++) {
		const struct area *a = &stack->areas.v[i];

		if (addr >= a->start && addr - a->start <= a->bytes.n &&
			n <= a->bytes.n - (addr - a->start)) {
			memcpy(to, a->bytes.p + (addr - a->start), n);
			return true;
		}
	}
	return false;
}

static struct unwind_memory memory_of(const struct stack *stack)
{
	uint64_t sp = stack->regs.r[CPU_REG_RSP];
	struct unwind_memory memory = {.start = {sp}, .read = read_area};

	for (size_t i = 0; i < stack->areas.n; i++) {
		const struct area *a = &stack->areas.v[i];

		uint64_t at = sp - a->start, n_below = at < RED_ZONE_BYTES ? at : RED_ZONE_BYTES;

		if (sp < a->start || at >= a->bytes.n)
			continue;
		memory.bytes = span_sub(a->bytes, at, a->bytes.n - at);
		memory.below = span_sub(a->bytes, at - n_below, n_below);
	}
	return memory;
}

static bool parse_line(struct stack *stack, struct cursor *c, char *line)
{
	unsigned long long a, b, offset;
	int at = 0;

	if (sscanf(line, "map %llx %llx %llx %n", &a, &b, &offset, &at) == 3 && at) {
		struct mapping m = {a, b, offset, image_ensure(line + at)};

		vec_push(&stack->maps, m);
	} else if (sscanf(line, "area %llx %llu", &a, &b) == 2) {
		struct area area = {a, cursor_bytes(c, b)};

		cursor_skip(c, 1);
		vec_push(&stack->areas, area);
	} else if (sscanf(line, "frame %llx", &a) == 1) {
		vec_push(&stack->frames, a);
	} else if (!strcmp(line, "blind")) {
		stack->is_blind = true;
	} else if (!strncmp(line, "end ", 4)) {
		snprintf(stack->end, sizeof(stack->end), "%.190s", line + 4);
	} else {
		return false;
	}
	return !c->failed;
}

static bool parse_registers(struct stack *stack, const char *line)
{
	int bits, at;

	if (sscanf(line, "stack %d%n", &bits, &at) != 1)
		return false;
	stack->regs.is_64 = bits == 64;
	stack->regs.known = stack->regs.is_64 ? (1u << CPU_N_REGS) - 1 : 0x100ff;
	line += at;
	for (int i = 0; i < CPU_N_REGS; i++) {
		char *end;

		stack->regs.r[i] = strtoull(line, &end, 16);
		if (end == line)
			return false;
		line = end;
	}
	return true;
}

static bool next_line(struct cursor *c, char *line, size_t max)
{
	const uint8_t *nl = cursor_left(c) ? memchr(c->p, '\n', cursor_left(c)) : NULL;

	if (!nl || (size_t)(nl - c->p) >= max)
		return false;
	memcpy(line, c->p, (size_t)(nl - c->p));
	line[nl - c->p] = 0;
	c->p = nl + 1;
	return true;
}

static bool stack_next(struct stack *stack, struct cursor *c)
{
	static char line[5000];

	*stack = (struct stack){0};
	if (!next_line(c, line, sizeof(line)))
		return false;
	if (!parse_registers(stack, line)) {
		printf("not a dump: %s\n", line);
		exit(1);
	}
	while (!stack->end[0]) {
		if (!next_line(c, line, sizeof(line)) || !parse_line(stack, c, line)) {
			printf("not a dump: %s\n", line);
			exit(1);
		}
	}
	return true;
}

static void stack_release(struct stack *stack)
{
	vec_release(&stack->maps);
	vec_release(&stack->areas);
	vec_release(&stack->frames);
}

static const struct cfi_rule *rule_of(const struct stack *stack, const struct unwind_frame *frame)
{
	struct unwind_module module;
	struct vaddr pc = {frame->pc.v - frame->is_caller};

	if (!find_module((void *)stack, pc, &module) || !module.cfi)
		return NULL;
	return cfi_table_find(module.cfi, (struct iaddr){pc.v - module.bias});
}

static int byte_at(const struct stack *stack, struct vaddr pc)
{
	struct unwind_module module;
	struct span code;

	if (!find_module((void *)stack, pc, &module) || !module.cfi)
		return -1;
	code = elf_file_bytes_at(
		&stack->maps.v[module.cookie].image->elf, (struct iaddr){pc.v - module.bias});
	return code.n ? code.p[0] : -1;
}

/* Whether gdb, when it finds its way back after a frame that is none, agrees with the rest. */
static bool agree_behind(
	const struct stack *stack, const struct unwind_frame *ours, size_t n, size_t at)
{
	if (strcmp(stack->end, "outermost"))
		return true;
	if (stack->frames.n - at - 1 != n - at)
		return false;
	for (size_t i = at; i < n; i++)
		if (stack->frames.v[i + 1] != ours[i].pc.v)
			return false;
	return true;
}

/* In the shared library, or (by its function names) in a static program. */
static bool is_in_libgcc(const struct stack *stack, const struct unwind_frame *ours, size_t n)
{
	for (size_t i = n > 2 ? n - 2 : 0; i < n; i++) {
		struct image *image;
		const struct symbol *s;

		if (!ours[i].has_module)
			continue;
		image = stack->maps.v[ours[i].cookie].image;
		if (strstr(image->path, "libgcc_s"))
			return true;
		if (!image->symtab && image->cfi)
			image->symtab = symtab_new_elf(&image->elf, image->path);
		s = image->symtab ? symtab_find(image->symtab, ours[i].pc.v - ours[i].bias - 1)
				  : NULL;
		if (s && (!strncmp(s->name, "_Unwind_", 8) || !strncmp(s->name, "uw_", 3)))
			return true;
	}
	return false;
}

static bool ends_by_go(const struct stack *stack, const struct unwind_frame *outermost)
{
	const struct cfi_rule *rule = rule_of(stack, outermost);

	return rule && rule->flags & (CFI_RULE_OUTERMOST | CFI_RULE_ELSEWHERE) &&
	       elf_file_find_section(&stack->maps.v[outermost->cookie].image->elf, ".gopclntab");
}

/* The name of the known cause of a difference at frame `at`, or NULL. */
static const char *cause_of(const struct stack *stack, const struct unwind_frame *ours, size_t n,
	size_t at, enum unwind_end end)
{
	struct unwind_module module;
	bool no_cfi = at && !rule_of(stack, &ours[at - 1]);

	if (stack->is_blind)
		return "gdb-blind";
	if (end != UNWIND_END_COMPLETE && is_in_libgcc(stack, ours, n))
		return "eh-return";
	if (no_cfi && at == n && end == UNWIND_END_COMPLETE)
		return "past-start";
	if (no_cfi)
		return "no-cfi";
	if (at < stack->frames.n &&
		!find_module((void *)stack, (struct vaddr){stack->frames.v[at]}, &module) &&
		agree_behind(stack, ours, n, at))
		return "left-code";
	if (at == 1 && n == 1 && end == UNWIND_END_COMPLETE && byte_at(stack, ours[0].pc) == 0xc3)
		return "start-ret";
	if (at == n && ends_by_go(stack, &ours[n - 1]))
		return "go-end";
	if (at == stack->frames.n && strcmp(stack->end, "outermost") &&
		!strstr(stack->end, "no reason"))
		return "gdb-stopped";
	return NULL;
}

static void print_frame(const struct stack *stack, const char *who, uint64_t pc)
{
	struct unwind_module module;

	if (find_module((void *)stack, (struct vaddr){pc}, &module))
		printf("  %s %#llx = %s+%#llx\n", who, (unsigned long long)pc,
			stack->maps.v[module.cookie].image->path,
			(unsigned long long)(pc - module.bias));
	else
		printf("  %s %#llx\n", who, (unsigned long long)pc);
}

struct totals {
	size_t n_stacks, n_equal, n_explained, n_unexplained, n_complete, n_frames;
	size_t n_ends[UNWIND_N_ENDS];
};

static void compare(const struct stack *stack, struct unwinder *u, struct totals *totals)
{
	static struct unwind_frame ours[UNWIND_FRAMES_MAX];
	struct unwind_memory memory = memory_of(stack);
	struct unwind_callbacks callbacks = {
		.find_module = find_module, .ctx = (void *)stack, .follows_call = follows_call};
	const char *cause;
	size_t n = 0, at = 0;
	enum unwind_end end = unwinder_walk(u, &stack->regs, &memory, &callbacks, totals->n_stacks,
		ours, UNWIND_FRAMES_MAX, &n);

	totals->n_stacks++;
	totals->n_frames += n;
	totals->n_ends[end]++;
	totals->n_complete += end == UNWIND_END_COMPLETE;
	while (at < n && at < stack->frames.n && ours[at].pc.v == stack->frames.v[at])
		at++;
	if (at == n && at == stack->frames.n) {
		totals->n_equal++;
		return;
	}
	cause = cause_of(stack, ours, n, at, end);
	*(cause ? &totals->n_explained : &totals->n_unexplained) += 1;
	printf("%s stack %zu: %zu frames of ours (%s), %zu of gdb's (%s), from frame %zu\n",
		cause ? cause : "difference", totals->n_stacks - 1, n, unwind_end_reason(end),
		stack->frames.n, stack->end, at);
	for (size_t i = at ? at - 1 : 0; i < n && i < at + 2; i++)
		print_frame(stack, "ours", ours[i].pc.v);
	for (size_t i = at; i < stack->frames.n && i < at + 2; i++)
		print_frame(stack, "gdb ", stack->frames.v[i]);
}

/* Walks every stack many times; the generation changes with each walk when not cached. */
static void bench(const struct stack *stacks, size_t n_stacks, struct unwinder *u, bool cached)
{
	static struct unwind_frame frames[UNWIND_FRAMES_MAX];
	size_t n_frames = 0, n = 0, generation = 1u << 30;
	uint64_t start = clock_mono_ns();

	for (int round = 0; round < (cached ? BENCH_ROUNDS : 20); round++) {
		for (size_t i = 0; i < n_stacks; i++) {
			struct unwind_memory memory = memory_of(&stacks[i]);
			struct unwind_callbacks callbacks = {.find_module = find_module,
				.ctx = (void *)&stacks[i],
				.follows_call = follows_call};

			unwinder_walk(u, &stacks[i].regs, &memory, &callbacks,
				cached ? 1 : generation++, frames, UNWIND_FRAMES_MAX, &n);
			n_frames += n;
		}
	}
	printf("%s: %zu frames, %.1f ns each\n", cached ? "cached" : "not cached", n_frames,
		(double)(clock_mono_ns() - start) / (double)(n_frames ? n_frames : 1));
}

static void bench_all(struct cursor c, struct unwinder *u)
{
	VEC(struct stack) stacks = {0};
	struct stack stack;

	while (stack_next(&stack, &c))
		vec_push(&stacks, stack);
	bench(stacks.v, stacks.n, u, true);
	bench(stacks.v, stacks.n, u, false);
	for (size_t i = 0; i < stacks.n; i++)
		stack_release(&stacks.v[i]);
	vec_release(&stacks);
}

static void compare_all(struct cursor c, struct unwinder *u)
{
	struct totals t = {0};
	struct stack stack;

	while (stack_next(&stack, &c)) {
		compare(&stack, u, &t);
		stack_release(&stack);
	}
	for (int end = 1; end < UNWIND_N_ENDS; end++)
		if (t.n_ends[end])
			printf("%zu stacks end with: %s\n", t.n_ends[end], unwind_end_reason(end));
	printf("stacks %zu equal %zu explained %zu unexplained %zu complete %zu frames %zu\n",
		t.n_stacks, t.n_equal, t.n_explained, t.n_unexplained, t.n_complete, t.n_frames);
}

int main(int argc, char **argv)
{
	struct unwinder *u = unwinder_new();
	bool benching = argc == 3 && !strcmp(argv[1], "-b");
	struct file_map dump;
	struct err err;

	if (argc != 2 + benching || file_map_open(&dump, argv[1 + benching], &err) < 0) {
		printf("usage: unwind_replay [-b] DUMP\n");
		return 2;
	}
	if (!dump.bytes.n)
		return 1;
	if (benching)
		bench_all(cursor_of(dump.bytes), u);
	else
		compare_all(cursor_of(dump.bytes), u);
	unwinder_free(u);
	for (size_t i = 0; i < images.n; i++) {
		symtab_free(images.v[i]->symtab);
		cfi_table_free(images.v[i]->cfi);
		if (images.v[i]->cfi)
			elf_file_release(&images.v[i]->elf);
		file_map_release(&images.v[i]->file);
		free(images.v[i]->path);
		free(images.v[i]);
	}
	vec_release(&images);
	file_map_release(&dump);
	return 0;
}
