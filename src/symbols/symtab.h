/* SPDX-License-Identifier: MIT */
/*
 * The function names of one image: sorted, without overlaps, looked up by binary search. Made from
 * every source that belongs to the image: .symtab, .dynsym, .gnu_debugdata, PLT stubs, a separate
 * debug file (by build-id, by debuglink with its CRC), a perf map, kallsyms.
 *
 * Among several names of one address the choice is deterministic: a function before an untyped
 * label, global before weak before local, fewer leading underscores, shorter, then byte order.
 */
#ifndef WEIR_SYMBOLS_SYMTAB_H
#define WEIR_SYMBOLS_SYMTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/span.h"
#include "elf/elf_file.h"

struct symtab;

enum symbol_source {
	SYMBOL_SOURCE_SYMTAB = 1,
	SYMBOL_SOURCE_DYNSYM,
	SYMBOL_SOURCE_DEBUGDATA, /* .gnu_debugdata */
	SYMBOL_SOURCE_DEBUG_FILE,
	SYMBOL_SOURCE_PLT, /* made up: NAME@plt */
	SYMBOL_SOURCE_PERF_MAP,
	SYMBOL_SOURCE_KALLSYMS
};

struct symbol {
	const char *name; /* demangled; lives as long as the table */
	uint64_t start;	  /* in the address space of the image */
	uint64_t size;
	enum symbol_source source;
};

/* All names of an ELF image, its separate debug file included when one is found and verified
 * (build-id equal, or debuglink CRC equal). `path` is the image's path, for the debuglink search;
 * NULL for images without a file. Never fails: an image without names gives an empty table.
 * Names are copied, so `elf` may go. */
struct symtab *symtab_new_elf(const struct elf_file *elf, const char *path);
/* /proc/kallsyms. Fails when it is unreadable or all addresses are zero (kptr_restrict). */
int symtab_new_kallsyms(struct symtab **out, const char *path, struct err *err);
/* /tmp/perf-PID.map. Where ranges overlap, the later line wins (the JIT used the memory again). */
int symtab_new_perf_map(struct symtab **out, const char *path, struct err *err);
/* For tests and fuzzing: the same from bytes. */
struct symtab *symtab_new_kallsyms_bytes(struct span text);
struct symtab *symtab_new_perf_map_bytes(struct span text);
void symtab_free(struct symtab *t);

size_t symtab_n(const struct symtab *t);
/* The symbol that covers `addr`: within its size or, when it has no size, up to the next symbol of
 * the same section. NULL when none does. O(log n). */
const struct symbol *symtab_find(const struct symtab *t, uint64_t addr);
const struct symbol *symtab_get(const struct symtab *t, size_t i); /* in address order */
/* Where names came from, for reports: "symtab", "dynsym+debugdata", "debug file /usr/lib/...". */
const char *symtab_sources(const struct symtab *t);

/* C++ (Itanium), Rust (legacy and v0) names become readable; others are copied. The result is the
 * caller's to free. Long or hostile names are copied as they are. */
char *symbol_demangle(const char *name);

#endif
