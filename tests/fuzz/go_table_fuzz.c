/* SPDX-License-Identifier: MIT */
/* The input is a table of Go functions behind a byte of flags. Names, rules and lines are made of it. */
#include <stdint.h>
#include <stdlib.h>

#include "../unit/go_maker.h"
#include "dwarf/cfi_rule.h"
#include "dwarf/go_table.h"
#include "symbols/symtab.h"

enum { FLAG_64 = 1, FLAG_NO_SECTIONS = 2, FLAG_WIDE = 4 };

static void check_lines(const struct elf_file *elf)
{
	struct dwarf_unit_map lines = {0};
	struct go_table go;

	if (!go_table_init(&go, elf))
		return;
	go_table_lines(&go, NULL, 0, &lines);
	for (size_t i = 1; i < lines.rows.n; i++)
		if (lines.rows.v[i - 1].addr >= lines.rows.v[i].addr ||
			lines.rows.v[i].file >= lines.files.n)
			abort();
	if (lines.rows.n && !lines.rows.v[lines.rows.n - 1].is_hole)
		abort();
	dwarf_unit_map_release(&lines);
	go_table_release(&go);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct cfi_image image;
	struct cfi_table *cfi;
	struct symtab *names;
	uint8_t flags;

	if (n < 2)
		return 0;
	flags = data[0];
	if (go_image_make(&image, flags & FLAG_64, (struct span){data + 1, n - 1},
		    flags & FLAG_NO_SECTIONS ? NULL : ".gopclntab") < 0)
		abort();
	if (flags & FLAG_WIDE)
		image.elf.segments[0].mem_size = UINT32_MAX;
	check_lines(&image.elf);
	cfi = cfi_table_new(&image.elf);
	for (uint64_t at = CODE_ADDR - 1; at < CODE_ADDR + 0x50; at++) {
		const struct cfi_rule *rule = cfi_table_find(cfi, (struct iaddr){at});

		if (rule && rule->n_places > CPU_N_REGS)
			abort();
	}
	names = symtab_new_elf(&image.elf, NULL);
	for (size_t i = 0; i < symtab_n(names); i++)
		symtab_get(names, i);
	symtab_free(names);
	cfi_table_free(cfi);
	cfi_image_release(&image);
	return 0;
}
