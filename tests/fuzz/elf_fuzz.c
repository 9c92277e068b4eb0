/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as an ELF image: every accessor, then the symbol table. Memory stays below what
 * symtab.h and debugdata.c state; time is linear in the input apart from sorting.
 */
#include <elf.h>
#include <stdlib.h>

#include "elf/elf_file.h"
#include "symbols/symtab.h"

#define INFLATED_BYTES_MAX (1u << 20)
#define PROBES_MAX	   64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static volatile uint64_t sink; /* keeps reads from being optimised away */

static void touch(struct span s)
{
	if (s.n)
		sink += s.p[0] + s.p[s.n - 1];
}

static void touch_symbol(void *ctx, const struct elf_symbol *s)
{
	(void)ctx;
	sink += strlen(s->name) + s->addr.v + s->size;
	if (!*s->name || s->size > s->room)
		abort();
}

static void use_sections(const struct elf_file *elf)
{
	for (size_t i = 0; i < elf->n_sections && i < PROBES_MAX; i++) {
		const struct elf_section *s = &elf->sections[i];
		uint8_t *out;
		size_t out_n;

		sink += strlen(s->name);
		touch(elf_file_section_bytes(elf, s));
		if (elf_file_symbol_name(elf, s, i))
			sink += strlen(elf_file_symbol_name(elf, s, i));
		if (elf_section_inflate(elf, s, INFLATED_BYTES_MAX, &out, &out_n, NULL) == 0) {
			touch((struct span){out, out_n});
			free(out);
		}
	}
}

static void use_segments(const struct elf_file *elf)
{
	for (size_t i = 0; i < elf->n_segments && i < PROBES_MAX; i++) {
		const struct elf_segment *s = &elf->segments[i];
		struct iaddr addr;

		touch(elf_file_bytes_at(elf, s->addr));
		touch(elf_file_bytes_at(elf, (struct iaddr){s->addr.v + s->file_size - 1}));
		if (elf_file_offset_to_iaddr(elf, s->offset, &addr))
			touch(elf_file_bytes_at(elf, addr));
	}
}

static void use_table(const struct symtab *t)
{
	sink += strlen(symtab_sources(t));
	for (size_t i = 0; i < symtab_n(t) && i < PROBES_MAX; i++) {
		const struct symbol *s = symtab_get(t, i);
		const struct symbol *at = symtab_find(t, s->start);

		sink += strlen(s->name);
		/* Whatever covers a start begins at it: nothing that starts earlier can win. */
		if (!at || at->start != s->start)
			abort();
	}
	symtab_find(t, 0);
	symtab_find(t, UINT64_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct elf_file elf;
	struct symtab *t;
	const char *link;
	uint32_t crc;
	uint64_t value;

	if (elf_file_init(&elf, (struct span){data, n}, NULL) < 0)
		return 0;
	touch(elf_file_build_id(&elf));
	if (elf_file_debuglink(&elf, &link, &crc))
		sink += strlen(link);
	elf_file_dynamic(&elf, DT_PLTGOT, &value);
	use_sections(&elf);
	use_segments(&elf);
	elf_file_each_function(&elf, false, touch_symbol, NULL);
	elf_file_each_function(&elf, true, touch_symbol, NULL);
	t = symtab_new_elf(&elf, NULL);
	use_table(t);
	symtab_free(t);
	elf_file_release(&elf);
	return 0;
}
