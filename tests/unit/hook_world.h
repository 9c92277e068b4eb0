/* SPDX-License-Identifier: MIT */
/*
 * For tests of the hook planner: an image made of a few functions in assembler, its plan, and the
 * plan applied to a copy of the code in this process, where it can be called.
 */
#ifndef WEIR_TESTS_HOOK_WORLD_H
#define WEIR_TESTS_HOOK_WORLD_H

#include <stdlib.h>
#include <sys/mman.h>

#include "check.h"
#include "elf_maker.h"
#include "record/hooks/plan.h"

#define TEXT	    0x1000u /* where the code lies in the image */
#define DATA	    0x4000u
#define WORLD_BYTES 0x10000u /* of memory: image, then trampolines */
#define TRAMPOLINES 0x8000u

#define FUNC  ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)
#define LOCAL ELF64_ST_INFO(STB_LOCAL, STT_FUNC)
#define IFUNC ELF64_ST_INFO(STB_GLOBAL, STT_GNU_IFUNC)
#define LABEL ELF64_ST_INFO(STB_LOCAL, STT_NOTYPE)

/* Code in assembler, `name` to `name_end`, 64-byte aligned. It runs only as a copy. */
#define CODE_BITS(name, bits, text)                                                                \
	__asm__(".pushsection .rodata\n\t.balign 64\n" #name ":\n\t.code" bits "\n" text           \
		"\n\t.code64\n" #name "_end:\n\t.popsection");                                     \
	extern const uint8_t name[], name##_end[]
#define CODE(name, text)   CODE_BITS(name, "64", text)
#define CODE32(name, text) CODE_BITS(name, "32", text)
#define SPAN(name)	   ((struct span){name, (size_t)(name##_end - name)})

struct row {
	const char *name;
	uint32_t at, size; /* from the start of the code */
	uint8_t info;
};
#define ROWS(...)                                                                                  \
	(const struct row[]){__VA_ARGS__},                                                         \
		sizeof((const struct row[]){__VA_ARGS__}) / sizeof(struct row)

struct world {
	struct elf_maker m;
	struct elf_file elf;
	struct hook_planner *p;
	const struct planned_image *image;
	uint32_t text; /* section index */
	uint8_t *memory;
	uint8_t *next_trampoline;
};

/* An image that has only code yet; tests add what else they need before world_plan. */
static inline void world_init(struct world *w, bool is_64, struct span code)
{
	*w = (struct world){0};
	elf_maker_init(&w->m, is_64);
	w->text = elf_maker_section(&w->m, ".text", SHT_PROGBITS, TEXT, code);
	w->m.sections[w->text].flags = SHF_ALLOC | SHF_EXECINSTR;
	elf_maker_segment(&w->m, (struct elf_segment){.type = PT_LOAD,
					 .flags = PF_R | PF_X,
					 .offset = w->m.sections[w->text].offset,
					 .addr = {TEXT},
					 .file_size = code.n,
					 .mem_size = code.n});
	w->p = hook_planner_new();
}

static inline uint32_t world_data(struct world *w, const char *name, struct span bytes)
{
	uint32_t i = elf_maker_section(&w->m, name, SHT_PROGBITS, DATA, bytes);

	w->m.sections[i].flags = SHF_ALLOC;
	elf_maker_segment(&w->m, (struct elf_segment){.type = PT_LOAD,
					 .flags = PF_R,
					 .offset = w->m.sections[i].offset,
					 .addr = {DATA},
					 .file_size = bytes.n,
					 .mem_size = bytes.n});
	return i;
}

static inline void world_symbols(
	struct world *w, const char *table, uint32_t type, const struct row *rows, size_t n)
{
	buf_reset(&w->m.symbols);
	buf_reset(&w->m.names);
	buf_put_u8(&w->m.names, 0);
	for (int i = 0; i < (w->m.is_64 ? 24 : 16); i++)
		buf_put_u8(&w->m.symbols, 0);
	for (size_t i = 0; i < n; i++)
		elf_maker_symbol(&w->m, rows[i].name, TEXT + rows[i].at, rows[i].size, rows[i].info,
			(uint16_t)w->text);
	elf_maker_symbols(&w->m, table, type);
}

static inline void world_plan(struct world *w, const char *wishes, const char *path)
{
	struct err err = {0};

	CHECK_EQ(elf_file_init(&w->elf, elf_maker_finish(&w->m), &err), 0);
	if (wishes)
		CHECK_EQ(wishes_add(&w->p->wishes, wishes, HOOK_ACTION_CALL, &err), 0);
	CHECK_EQ(hook_planner_image(w->p, &(struct planned_file){.key = 1}, &w->elf, path, true,
			 &w->image, &err),
		0);
	CHECK_STR(err.text, "");
}

/* The usual case: code with symbols, all of them wished for. */
static inline void world_open(
	struct world *w, bool is_64, struct span code, const struct row *rows, size_t n)
{
	world_init(w, is_64, code);
	world_symbols(w, ".symtab", SHT_SYMTAB, rows, n);
	world_plan(w, "*", "/bin/program");
}

static inline void world_close(struct world *w)
{
	hook_planner_free(w->p);
	elf_file_release(&w->elf);
	elf_maker_release(&w->m);
	if (w->memory)
		munmap(w->memory, WORLD_BYTES);
}

static inline const struct planned_function *world_function(const struct world *w, const char *name)
{
	static const struct planned_function none = {.name = "", .reason = "not planned"};

	for (size_t i = 0; i < w->image->functions.n; i++)
		if (strcmp(w->image->functions.v[i].name, name) == 0)
			return &w->image->functions.v[i];
	return &none;
}

static inline const struct hook_plan *world_plan_of(const struct world *w, const char *name)
{
	static const struct hook_plan none;
	const struct planned_function *f = world_function(w, name);

	return f->plan_bytes ? (const void *)(w->image->plans.p + f->plan_at) : &none;
}

static inline const char *reason_of(const struct world *w, const char *name)
{
	const char *reason = world_function(w, name)->reason;

	return reason ? reason : "";
}

/* --- running it -------------------------------------------------------------------------- */

static uint32_t n_hooked; /* calls of hooked functions */

/* As in the hook library: the hook (here: a counter), then the moved code. */
static inline uint8_t *world_trampoline(struct world *w, const struct hook_plan *plan)
{
	static const uint8_t count[] = {0x9c, 0x50, 0x48, 0xb8}; /* pushf; push %rax; mov $x,%rax */
	static const uint8_t end[] = {0xff, 0x00, 0x58, 0x9d};	 /* incl (%rax); pop %rax; popf */
	const uint8_t *code = (const uint8_t *)(plan + 1);
	const struct hook_fixup *fixups = (const void *)(code + (plan->n_code + 7) / 8 * 8);
	uint8_t *start = w->next_trampoline, *at = start;
	uint32_t *counter = &n_hooked;

	memcpy(at, count, sizeof(count));
	memcpy(at + sizeof(count), &counter, 8);
	memcpy(at + sizeof(count) + 8, end, sizeof(end));
	at += sizeof(count) + 8 + sizeof(end);
	memcpy(at, code, plan->n_code);
	for (int i = 0; i < plan->n_fixups; i++) {
		uintptr_t target = (uintptr_t)w->memory + fixups[i].target;
		int32_t distance = (int32_t)(target - (uintptr_t)(at + fixups[i].next));

		memcpy(at + fixups[i].at, &distance, 4);
	}
	w->next_trampoline = at + plan->n_code;
	return start;
}

static inline void put_jump(uint8_t *at, const uint8_t *target)
{
	int32_t distance = (int32_t)(target - (at + 5));

	*at = 0xe9;
	memcpy(at + 1, &distance, 4);
}

/* Loads the image and applies the plan of every function that has one (int3 excepted). */
static inline void world_load(struct world *w)
{
	w->memory = mmap(NULL, WORLD_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	w->next_trampoline = w->memory + TRAMPOLINES;
	for (size_t i = 0; i < w->elf.n_segments; i++) {
		const struct elf_segment *s = &w->elf.segments[i];

		if (s->type == PT_LOAD)
			memcpy(w->memory + s->addr.v, w->elf.bytes.p + s->offset.v, s->file_size);
	}
	n_hooked = 0;
	for (size_t i = 0; i < w->image->functions.n; i++) {
		const struct hook_plan *plan = world_plan_of(w, w->image->functions.v[i].name);
		uint8_t *site = w->memory + plan->site;
		uint8_t *trampoline;

		if (!plan->bytes || plan->n_patched < 2)
			continue;
		CHECK_EQ(memcmp(site, plan->original, plan->n_original), 0);
		trampoline = world_trampoline(w, plan);
		if (plan->pad_site) {
			CHECK_EQ(memcmp(w->memory + plan->pad_site, plan->pad_original, 5), 0);
			put_jump(w->memory + plan->pad_site, trampoline);
			site[0] = 0xeb;
			site[1] = (uint8_t)(plan->pad_site - plan->site - 2);
			continue;
		}
		put_jump(site, trampoline);
		/* Whoever gets to a byte behind the jump is lost. */
		memset(site + 5, 0xcc, plan->n_patched - 5u);
	}
}

typedef uint64_t world_fn(uint64_t a, uint64_t b, uint64_t c);
static inline uint64_t world_call(const struct world *w, const char *name, uint64_t a, uint64_t b)
{
	const struct planned_function *f = world_function(w, name);
	world_fn *fn = (world_fn *)(uintptr_t)(w->memory + f->function.v);

	return fn(a, b, (uintptr_t)w->memory);
}

#endif
