/* SPDX-License-Identifier: MIT */
/*
 * The tables by which a JVM describes its structures: fields and variables (gHotSpotVMStructs), types
 * (gHotSpotVMTypes) and constants (gHotSpotVMIntConstants, gHotSpotVMLongConstants), each an array of entries that ends with
 * one without names. Further exported variables say how long an entry is and where in it what is.
 */
#ifndef WEIR_JVM_VM_TABLES_H
#define WEIR_JVM_VM_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "elf/elf_file.h"
#include "jvm/vm_memory.h"

/* Addresses of the exported variables in the JVM. */
enum vm_table_symbol {
	VM_STRUCTS,
	VM_STRUCT_STRIDE,
	VM_STRUCT_TYPE_NAME,
	VM_STRUCT_FIELD_NAME,
	VM_STRUCT_TYPE_STRING,
	VM_STRUCT_IS_STATIC,
	VM_STRUCT_OFFSET,
	VM_STRUCT_ADDRESS,
	VM_TYPES,
	VM_TYPE_STRIDE,
	VM_TYPE_NAME,
	VM_TYPE_SIZE,
	VM_INTS,
	VM_INT_STRIDE,
	VM_INT_NAME,
	VM_INT_VALUE,
	VM_LONGS,
	VM_LONG_STRIDE,
	VM_LONG_NAME,
	VM_LONG_VALUE,
	VM_N_TABLE_SYMBOLS
};
struct vm_table_symbols {
	uint64_t addr[VM_N_TABLE_SYMBOLS];
};

/* False when the file does not have all of them: it is no libjvm.so, or not one that tells. */
bool vm_table_symbols_find(
	struct vm_table_symbols *symbols, const struct elf_file *elf, uint64_t bias);

/* One entry of any of the tables. */
struct vm_entry {
	const char *name;  /* of the type or constant */
	const char *field; /* NULL in tables of types and constants */
	const char *type;  /* of the field */
	bool is_static;
	uint64_t value; /* offset or address; bytes of a type; a constant's value */
};
#define VM_NAME_BYTES_MAX 128 /* longer names are cut */

/* Calls `each` for every entry; the names are valid during the call. ERR_CHANGED when the table is not
 * there (yet), ERR_FORMAT when it is none. */
int vm_tables_each_field(const struct vm_memory *m, const struct vm_table_symbols *symbols,
	void (*each)(void *ctx, const struct vm_entry *entry), void *ctx, struct err *err);
int vm_tables_each_type(const struct vm_memory *m, const struct vm_table_symbols *symbols,
	void (*each)(void *ctx, const struct vm_entry *entry), void *ctx, struct err *err);
/* Of both kinds. */
int vm_tables_each_constant(const struct vm_memory *m, const struct vm_table_symbols *symbols,
	void (*each)(void *ctx, const struct vm_entry *entry), void *ctx, struct err *err);

#endif
