/* SPDX-License-Identifier: MIT */
/* The function symbols of an ELF file's symbol tables, as candidates. */
#ifndef WEIR_SYMBOLS_SOURCE_ELF_TABLES_H
#define WEIR_SYMBOLS_SOURCE_ELF_TABLES_H

#include "elf/elf_file.h"
#include "symbols/source/symbol_sink.h"

/* .symtab, or .dynsym with `dynamic`. Names that compilers and assemblers make for themselves (.L1,
 * $d) are left out. Names are borrowed from the file's bytes. */
void elf_table_read(const struct elf_file *elf, bool dynamic, enum symbol_source source,
	const struct symbol_sink *sink);

#endif
