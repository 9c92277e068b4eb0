/* SPDX-License-Identifier: MIT */
/*
 * With the first byte's lowest bit set, the rest is an ELF image. Else it describes one: flags,
 * number of symbols, {u16 offset, u8 size, u8 name} for each, then the code. Everything is wished
 * for; what comes out must be well-formed, and no byte may be patched twice.
 */
#include <elf.h>
#include <stdlib.h>

#include "../unit/elf_maker.h"
#include "record/hooks/plan.h"

enum { FLAG_ELF = 1, FLAG_64 = 2, FLAG_FIXED = 4, FLAG_LIBC = 8, FLAG_DATA = 16 };

#define TEXT	    0x1000u
#define DATA	    0x40000u
#define SYMBOLS_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct patched {
	uint64_t start, end;
};

static int compare_patched(const void *a, const void *b)
{
	const struct patched *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static void check_plan(const struct hook_plan *plan, size_t left)
{
	const uint8_t *code = (const uint8_t *)(plan + 1);
	size_t code_bytes = (plan->n_code + 7u) / 8 * 8;
	const struct hook_fixup *fixups = (const void *)(code + code_bytes);

	if (plan->bytes > left || plan->bytes % 8 ||
		plan->bytes != sizeof(*plan) + code_bytes + plan->n_fixups * sizeof(*fixups))
		abort();
	if (plan->method == HOOK_METHOD_CYGPROF) {
		if (plan->n_patched || plan->n_original || plan->n_code)
			abort();
		return;
	}
	if (!plan->n_patched || plan->n_original < plan->n_patched ||
		plan->n_original > HOOK_ORIGINAL_MAX)
		abort();
	if (plan->n_patched != 1 && plan->n_patched != 2 && plan->n_patched < 5)
		abort();
	if ((plan->n_patched == 2) != (plan->pad_site != 0) ||
		(plan->n_patched == 1) != (plan->method == HOOK_METHOD_INT3))
		abort();
	for (int i = 0; i < plan->n_fixups; i++)
		if (fixups[i].at + 4 > plan->n_code || fixups[i].next > plan->n_code)
			abort();
}

static size_t note_patched(const struct hook_plan *plan, struct patched *to)
{
	unsigned n = plan->n_patched < 5 ? plan->n_patched : 5;

	to[0] = (struct patched){plan->site, plan->site + n};
	to[1] = (struct patched){plan->pad_site, plan->pad_site + 5};
	return plan->pad_site ? 2 : 1;
}

static void check_image(const struct planned_image *image)
{
	size_t n_plans = image->n_extra, n = 0, at = 0;
	struct patched *all;

	for (size_t i = 0; i < image->functions.n; i++) {
		const struct planned_function *f = &image->functions.v[i];

		n_plans += f->plan_bytes != 0;
		if (i && image->functions.v[i - 1].function.v >= f->function.v)
			abort();
		if ((f->method == 0) != !f->plan_bytes)
			abort();
		if (f->method == 0 && !f->reason)
			abort();
		if (f->n_moves > HOOK_ORIGINAL_MAX || !*f->name)
			abort();
	}
	all = calloc(n_plans * 2 + 1, sizeof(*all));
	for (size_t i = 0; i < n_plans; i++) {
		const struct hook_plan *plan = (const void *)(image->plans.p + at);

		if (image->plans.n - at < sizeof(*plan))
			abort();
		check_plan(plan, image->plans.n - at);
		n += note_patched(plan, all + n);
		at += plan->bytes;
	}
	if (at != image->plans.n)
		abort();
	qsort(all, n, sizeof(*all), compare_patched);
	for (size_t i = 1; i < n; i++)
		if (all[i].start < all[i - 1].end)
			abort();
	free(all);
}

static void plan_it(struct span bytes, const char *path)
{
	struct hook_planner *p = hook_planner_new();
	const struct planned_image *image;
	struct elf_file elf;

	p->wants_allocations = true;
	if (wishes_add(&p->wishes, "*,*:a::*", HOOK_ACTION_CALL, NULL) < 0)
		abort();
	if (elf_file_init(&elf, bytes, NULL) == 0) {
		if (hook_planner_image(p, &(struct planned_file){.key = 1}, &elf, path, true,
			    &image, NULL) == 0)
			check_image(image);
		elf_file_release(&elf);
	}
	hook_planner_free(p);
}

static void add_part(
	struct elf_maker *m, const char *name, uint64_t addr, struct span bytes, uint32_t flags)
{
	uint32_t i = elf_maker_section(m, name, SHT_PROGBITS, addr, bytes);

	m->sections[i].flags = SHF_ALLOC | (flags & PF_X ? SHF_EXECINSTR : 0);
	elf_maker_segment(m, (struct elf_segment){.type = PT_LOAD,
				     .flags = flags,
				     .offset = m->sections[i].offset,
				     .addr = {addr},
				     .file_size = bytes.n,
				     .mem_size = bytes.n});
}

static void plan_described(struct cursor *c, uint8_t flags)
{
	static const char *const names[] = {"main", "f", "f.cold", "mcount", "_ZN1a1bEv",
		"sigaction", "pthread_sigmask", "makecontext", "malloc"};
	struct elf_maker m;
	unsigned n_symbols = cursor_u8(c) % SYMBOLS_MAX;
	struct span symbols = cursor_bytes(c, n_symbols * 4u), code;
	struct cursor s = cursor_of(symbols);

	code = cursor_bytes(c, cursor_left(c));
	if (!code.n || !symbols.n || code.n > UINT16_MAX)
		return;
	elf_maker_init(&m, flags & FLAG_64);
	m.type = flags & FLAG_FIXED ? ET_EXEC : ET_DYN;
	add_part(&m, ".text", TEXT, code, PF_R | PF_X);
	if (flags & FLAG_DATA) /* tables that lead into the code as often as not */
		add_part(&m, ".rodata", DATA, code, PF_R);
	for (unsigned i = 0; i < n_symbols; i++) {
		uint16_t at = cursor_u16(&s);
		uint8_t size = cursor_u8(&s), kind = cursor_u8(&s);
		uint8_t info = kind & 0x80 ? ELF64_ST_INFO(STB_LOCAL, STT_NOTYPE)
					   : ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);

		elf_maker_symbol(&m, names[(kind & 0x7f) % (sizeof(names) / sizeof(names[0]))],
			TEXT + at % code.n, size, info, 1);
	}
	elf_maker_symbols(&m, ".dynsym", SHT_DYNSYM);
	plan_it(elf_maker_finish(&m), flags & FLAG_LIBC ? "/lib/libc.so.6" : "/bin/program");
	elf_maker_release(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct cursor c = cursor_of((struct span){data, n});
	uint8_t flags = cursor_u8(&c);

	if (flags & FLAG_ELF)
		plan_it((struct span){data + 1, n - 1}, "/bin/program");
	else
		plan_described(&c, flags);
	return 0;
}
