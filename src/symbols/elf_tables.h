/* SPDX-License-Identifier: MIT */
/* The function symbols of an ELF image: which tables have them, each table as candidates, and names for
 * the stubs of the procedure linkage table, which no table has. */
#ifndef WEIR_SYMBOLS_ELF_TABLES_H
#define WEIR_SYMBOLS_ELF_TABLES_H

#include "base/buf.h"
#include "elf/elf_file.h"
#include "symbols/debug_file.h"
#include "symbols/symtab_build.h"

struct elf_table {
	const struct elf_file *elf;
	bool is_dynamic; /* .dynsym, else .symtab */
	enum symbol_source source;
};

/* Names that compilers and assemblers make for themselves (.L1, $d) are left out. Names are
 * borrowed from the file's bytes. */
void elf_table_read(const struct elf_table *t, const struct symbol_sink *sink);
/* Its variables and constants. */
void elf_table_read_data(const struct elf_table *t, const struct symbol_sink *sink);

/* All tables that name functions of one image. It must stay where it is while it is used, and what
 * names are borrowed from lives as long as it. */
struct elf_tables {
	struct elf_table v[4];
	size_t n;
	bool is_stripped; /* names are those of .dynsym only */
	/* What the others are in: */
	struct buf debugdata;
	struct elf_file inner; /* .gnu_debugdata */
	bool has_inner;
	struct debug_file debug;
};

/* .symtab and .dynsym. When .symtab names no function: also .gnu_debugdata, and the separate debug
 * file that belongs to the image (symbols/debug_file.h; `path` as there). What cannot be read is
 * left out. */
void elf_tables_open(struct elf_tables *t, const struct elf_file *elf, const char *path);
/* .symtab and .dynsym alone, and .gnu_debugdata added to them (debugdata_read's failures). */
void elf_tables_init(struct elf_tables *t, const struct elf_file *elf);
int elf_tables_add_debugdata(struct elf_tables *t, struct err *err);
/* Zeros are closed, too. */
void elf_tables_close(struct elf_tables *t);

/* .gnu_debugdata ("mini debuginfo"), an xz-compressed ELF file that holds only a .symtab: appends the
 * uncompressed file to `out`. Fails with ERR_NOT_FOUND when there is no such section. */
int debugdata_read(const struct elf_file *elf, struct buf *out, struct err *err);

/* The functions of Go's own table (dwarf/go_table.h), when .symtab names none: it has the same. Not among
 * the tables above: those are what is hooked and probed, which Go's code must not be without care. */
void go_names_read(const struct elf_file *elf, const struct symbol_sink *sink);

#define PLT_NAME_BYTES_MAX ((size_t)16 << 20) /* of all stubs together */

/* Adds NAME@plt for each stub of .plt, .plt.sec and .plt.got (x86-64 and i386). To be called last:
 * stubs of indirect functions (IRELATIVE) are named after the resolver among the candidates that
 * are there already, *ABS*+0xADDRESS@plt when it has no name. */
void plt_add_names(struct symtab_builder *b, const struct elf_file *elf);

/* Calls `each` for the functions of all tables, in their order; nothing is left out. */
void elf_tables_each(const struct elf_tables *t,
	void (*each)(void *ctx, const struct elf_symbol *symbol), void *ctx);

#endif
