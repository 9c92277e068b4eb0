/* SPDX-License-Identifier: MIT */
/* Runs the programs of CIEs and FDEs (DWARF 5 section 6.4.2) and collects their rows. */
#ifndef WEIR_DWARF_CFI_PROGRAM_H
#define WEIR_DWARF_CFI_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "dwarf/cfi_entries.h"
#include "dwarf/cfi_rule.h"

/* From `offset` on, up to the next row, `rule` holds. */
struct cfi_row {
	uint32_t offset; /* from the table's base */
	uint32_t rule;	 /* position in the pool, or CFI_RULE_NONE */
};

struct cfi_rows {
	VEC(struct cfi_row) rows; /* sorted; neighbours differ in both members */
};

void cfi_rows_add(struct cfi_rows *rows, uint32_t offset, uint32_t rule);

/* The number of enum cpu_reg for a DWARF register; -1 for those that are not followed. */
int cfi_register(bool is_386, uint64_t dwarf_number);

/* Where rows go: `low` and `high` bound the offsets that this FDE may describe. */
struct cfi_output {
	struct cfi_rules *rules;
	struct cfi_rows *rows;
	uint64_t base;
	uint32_t low, high;
};

/* False when the program is not understood; rows may have been added. */
bool cfi_program_run(
	struct cfi_cie *cie, const struct cfi_fde *fde, const struct cfi_output *output);

#endif
