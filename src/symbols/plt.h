/* SPDX-License-Identifier: MIT */
/* Names for the stubs of the procedure linkage table, which no symbol table has. */
#ifndef WEIR_SYMBOLS_PLT_H
#define WEIR_SYMBOLS_PLT_H

#include "elf/elf_file.h"
#include "symbols/symtab_build.h"

#define PLT_NAME_BYTES_MAX ((size_t)16 << 20) /* of all stubs together */

/* Adds NAME@plt for each stub of .plt, .plt.sec and .plt.got (x86-64 and i386). To be called last:
 * stubs of indirect functions (IRELATIVE) are named after the resolver among the candidates that
 * are there already, *ABS*+0xADDRESS@plt when it has no name. */
void plt_add_names(struct symtab_builder *b, const struct elf_file *elf);

#endif
