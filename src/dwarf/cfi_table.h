/* SPDX-License-Identifier: MIT */
/*
 * The call-frame information of one image, compiled once into sorted rows: 8 bytes each {address,
 * rule index} over a table of distinct rules. Source: .eh_frame (found by section or through
 * PT_GNU_EH_FRAME), Go's table of its functions (dwarf/go_table.h), and .debug_frame, also of a
 * separate debug file and inside SHF_COMPRESSED.
 *
 * A rule says how to find the caller's CFA, return address and the callee-saved registers
 * (x86-64: rbx rbp r12-r15; i386: ebx ebp esi edi), or that this is the outermost frame.
 */
#ifndef WEIR_DWARF_CFI_TABLE_H
#define WEIR_DWARF_CFI_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/err.h"
#include "elf/elf_file.h"

struct cfi_table;
struct cfi_rule; /* layout in dwarf/cfi_rule.h */

/* Never fails as a whole: an FDE that cannot be understood is left out and counted. */
struct cfi_table *cfi_table_new(const struct elf_file *elf);
/* Adds FDEs from .debug_frame of another file of the same image; they fill only what is free. */
void cfi_table_add_debug_frame(struct cfi_table *t, const struct elf_file *debug);
void cfi_table_free(struct cfi_table *t);

/* The rule at an address, or NULL when no FDE covers it. O(log n). */
const struct cfi_rule *cfi_table_find(const struct cfi_table *t, struct iaddr addr);
/* The bounds of the FDE that covers the address: the best guess at an unnamed function's extent. */
bool cfi_table_function_at(
	const struct cfi_table *t, struct iaddr addr, struct iaddr *start, uint64_t *size);
/* All of them, by start. */
size_t cfi_table_n_functions(const struct cfi_table *t);
struct iaddr cfi_table_function(const struct cfi_table *t, size_t i, uint64_t *size);

struct cfi_stats {
	size_t n_rows, n_rules, n_fdes;
	size_t n_fdes_skipped;	      /* not understood */
	size_t n_fdes_stale;	      /* empty, or of code that the linker threw away */
	size_t n_fdes_too_far;	      /* over 4 GiB above the image's first code byte */
	size_t n_sections_unreadable; /* compressed in a way that is not known */
	size_t n_bytes;		      /* of rows, rules and function bounds */
};
struct cfi_stats cfi_table_stats(const struct cfi_table *t);

#endif
