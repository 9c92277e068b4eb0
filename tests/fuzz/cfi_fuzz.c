/* SPDX-License-Identifier: MIT */
/*
 * The input is a section of frames behind two bytes: flags (see below) and a seed. It is wrapped in
 * an image, compiled, looked up, and walked through with made-up registers and stacks.
 */
#include <elf.h>
#include <stdint.h>
#include <stdlib.h>

#include "../unit/cfi_maker.h"
#include "dwarf/cfi_entries.h"
#include "dwarf/cfi_rule.h"
#include "unwind/unwind.h"

enum { FLAG_64 = 1, FLAG_DEBUG_FRAME = 2, FLAG_NO_SECTIONS = 4, FLAG_TWICE = 8 };

#define FDES_TRIED  64
#define STACK_WORDS 128
#define STACK_ADDR  0x70000000u
#define FRAMES_KEPT 64

struct process {
	struct cfi_table *cfi;
	struct cfi_entries entries; /* for the addresses that the input describes */
	uint64_t random;
	bool is_64;
	uint8_t stack[STACK_WORDS * 8];
};

static uint64_t next_random(struct process *p)
{
	p->random ^= p->random << 13;
	p->random ^= p->random >> 7;
	p->random ^= p->random << 17;
	return p->random;
}

/* A value that is likely to lead on: code, stack, small, or anything. */
static uint64_t next_value(struct process *p)
{
	uint64_t r = next_random(p);

	switch (r % 4) {
	case 0:
		return p->entries.fdes.n ? p->entries.fdes.v[r / 4 % p->entries.fdes.n].start + 1
					 : r;
	case 1:
		return STACK_ADDR + r / 4 % (STACK_WORDS * 8) / 8 * 8;
	case 2:
		return r / 4 % 64;
	default:
		return r;
	}
}

static bool find_module(void *ctx, struct vaddr pc, struct unwind_module *module)
{
	struct process *p = ctx;

	if (pc.v % 64 == 63)
		return false;
	*module = (struct unwind_module){.cfi = pc.v % 64 == 62 ? NULL : p->cfi, .entry = {0x1000}};
	return true;
}

static bool read_memory(void *ctx, uint64_t addr, void *to, size_t n)
{
	if (addr % 128 == 8)
		return false;
	memset(to, (int)next_random(ctx), n);
	return true;
}

static void walk(struct process *p, struct unwinder *u, uint64_t pc)
{
	struct unwind_callbacks callbacks = {.find_module = find_module, .ctx = p};
	struct unwind_memory memory = {
		.start = {STACK_ADDR}, .bytes = {p->stack, sizeof(p->stack)}};
	struct cpu_regs regs = {.known = (uint32_t)next_random(p), .is_64 = p->is_64};
	struct unwind_frame frames[FRAMES_KEPT];
	size_t n = 0;

	for (int i = 0; i < CPU_N_REGS; i++)
		regs.r[i] = next_value(p);
	regs.r[CPU_REG_RSP] = STACK_ADDR + next_random(p) % 8 * 8;
	regs.r[CPU_REG_RIP] = pc;
	if (next_random(p) % 2)
		memory.read = read_memory;
	unwinder_walk(u, &regs, &memory, &callbacks, 1, frames, FRAMES_KEPT, &n);
	if (n < 1 || n > FRAMES_KEPT)
		abort();
}

static void check_rule(const struct cfi_table *t, uint64_t addr)
{
	const struct cfi_rule *rule = cfi_table_find(t, (struct iaddr){addr});
	struct iaddr start;
	uint64_t size;

	if (rule && rule->n_places > CPU_N_REGS)
		abort();
	if (cfi_table_function_at(t, (struct iaddr){addr}, &start, &size) &&
		(addr < start.v || addr - start.v >= size))
		abort();
}

static void try_addresses(struct process *p)
{
	struct unwinder *u = unwinder_new();

	for (size_t i = 0; i < sizeof(p->stack); i += p->is_64 ? 8 : 4) {
		uint64_t value = next_value(p);

		memcpy(p->stack + i, &value, p->is_64 ? 8 : 4);
	}
	for (size_t i = 0; i < p->entries.fdes.n && i < FDES_TRIED; i++) {
		const struct cfi_fde *fde = &p->entries.fdes.v[i];

		check_rule(p->cfi, fde->start - 1);
		check_rule(p->cfi, fde->start);
		check_rule(p->cfi, fde->start + fde->size);
		for (int k = 0; k < 4; k++) {
			uint64_t pc = fde->start + (fde->size ? next_random(p) % fde->size : 0);

			check_rule(p->cfi, pc);
			walk(p, u, pc);
		}
	}
	unwinder_free(u);
}

/* The header that leads to the frames when there are no sections. */
static void add_header(struct cfi_image *image)
{
	uint8_t header[] = {1, 0x1b, 0xff, 0xff, 0xfc, 0xff, 0xfe, 0xff}; /* 0x10004 back */
	uint32_t i = elf_maker_section(&image->maker, "", SHT_PROGBITS, FRAMES_ADDR + 0x10000,
		(struct span){header, sizeof(header)});

	for (int k = 0; k < 2; k++)
		elf_maker_segment(
			&image->maker, (struct elf_segment){.type = k ? PT_GNU_EH_FRAME : PT_LOAD,
					       .addr = {FRAMES_ADDR + 0x10000},
					       .mem_size = sizeof(header),
					       .offset = image->maker.sections[i].offset,
					       .file_size = sizeof(header)});
	image->maker.no_sections = true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct span frames, none = {NULL, 0};
	struct process p = {0};
	struct cfi_image image;
	uint8_t flags;

	if (n < 3)
		return 0;
	flags = data[0];
	p.is_64 = flags & FLAG_64;
	p.random = 0x9e3779b97f4a7c15u * (data[1] + 1u);
	frames = (struct span){data + 2, n - 2};
	cfi_image_init(&image, p.is_64, flags & FLAG_DEBUG_FRAME ? none : frames,
		flags & FLAG_DEBUG_FRAME ? frames : none);
	image.maker.segments[0].addr.v = 0;
	image.maker.segments[0].mem_size = UINT32_MAX;
	if (flags & FLAG_NO_SECTIONS)
		add_header(&image);
	if (cfi_image_finish(&image) < 0)
		abort();
	cfi_entries_read(&p.entries, &(struct cfi_source){.bytes = frames,
					     .is_64 = p.is_64,
					     .is_386 = !p.is_64,
					     .is_eh = !(flags & FLAG_DEBUG_FRAME),
					     .addr = flags & FLAG_DEBUG_FRAME ? 0 : FRAMES_ADDR});
	p.cfi = cfi_table_new(&image.elf);
	if (flags & FLAG_TWICE)
		cfi_table_add_debug_frame(p.cfi, &image.elf);
	try_addresses(&p);
	cfi_table_free(p.cfi);
	cfi_entries_release(&p.entries);
	cfi_image_release(&image);
	return 0;
}
