/* SPDX-License-Identifier: MIT */
/*
 * The function names of one image, looked up by binary search. Made from every source that belongs
 * to the image: .symtab, .dynsym, .gnu_debugdata, Go's own table, PLT stubs, a separate debug file (by
 * build-id, by debuglink with its CRC), a perf map, kallsyms.
 *
 * Among several names of one address the choice is deterministic: a function before an untyped
 * label, global before weak before local, fewer leading underscores, shorter, then byte order. The
 * longest size of them counts.
 *
 * Which symbol an address belongs to:
 * - Symbols with a size define ranges. Where two overlap, the one that starts later has the
 *   address, so a function inside another is found for its own bytes and the outer one before and
 *   behind it. symtab_find never has two answers, although the ranges of symtab_get may nest.
 * - Symbols without a size only fill gaps between those: up to the next symbol or the end of the
 *   section. A label inside a sized function does not split it.
 * - Assembler-local names (.L*, other untyped names with a leading dot) and mapping symbols ($d)
 *   are no symbols.
 * - Parts that the compiler split off (foo.cold, foo.part.0, foo.constprop.0, foo.isra.0,
 *   foo.lto_priv.0) keep their suffix; demangled it reads "foo() [clone .cold]".
 *
 * Control characters in names become '?', so that a name can be printed on a terminal.
 */
#ifndef WEIR_SYMBOLS_SYMTAB_H
#define WEIR_SYMBOLS_SYMTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/span.h"
#include "elf/elf_file.h"

/* More than this many symbols of one table, or names longer than this, are left out. Memory stays
 * below 512 bytes a symbol of the source (128 when the table is made) plus the bytes of the
 * sources. */
#define SYMTAB_SYMBOLS_MAX    (1u << 24)
#define SYMTAB_NAME_BYTES_MAX 65536

struct symtab;

/* Stored in catalogs: the numbers never change meaning. */
enum symbol_source {
	SYMBOL_SOURCE_SYMTAB = 1,
	SYMBOL_SOURCE_DYNSYM = 2,
	SYMBOL_SOURCE_DEBUGDATA = 3,  /* .gnu_debugdata */
	SYMBOL_SOURCE_DEBUG_FILE = 4, /* .symtab of the separate debug file */
	SYMBOL_SOURCE_PLT = 5,	      /* made up: NAME@plt */
	SYMBOL_SOURCE_PERF_MAP = 6,
	SYMBOL_SOURCE_KALLSYMS = 7,
	SYMBOL_SOURCE_DWARF = 8,
	SYMBOL_SOURCE_LD_MAP = 9,
	SYMBOL_SOURCE_LLD_MAP = 10,
	SYMBOL_SOURCE_NM = 11,
	SYMBOL_SOURCE_JITDUMP = 12,
	SYMBOL_SOURCE_GOPCLNTAB = 13 /* Go's table of its functions */
};
#define SYMBOL_N_SOURCES 14
/* "symtab", "dynsym", "debugdata", "debug file", "plt", "perf map", ... */
const char *symbol_source_name(enum symbol_source source);

struct symbol {
	const char *name;	  /* demangled; lives as long as the table */
	const char *linkage_name; /* as the image has it; the same text when not mangled */
	uint64_t start;		  /* in the address space of the image */
	uint64_t size;		  /* bytes; for a symbol without a size those of the gap it fills */
	enum symbol_source source;
	const char *
		file; /* of a local symbol: its source file, as STT_FILE has it; NULL = not known */
};
/* Names of such files that are longer are left out. */
#define SYMBOL_FILE_BYTES_MAX 255

/* All names of an ELF image. When it has no .symtab, .gnu_debugdata, Go's table and the separate debug
 * file are included when found and verified (build-id equal, or debuglink CRC equal). `path` is the image's
 * path, for the debuglink search; NULL for images without a file. Never fails: an image without
 * names gives an empty table. Names are copied, so `elf` may go. */
struct symtab *symtab_new_elf(const struct elf_file *elf, const char *path);
/* The same of its variables and constants that have a size. */
struct symtab *symtab_new_elf_data(const struct elf_file *elf, const char *path);
/* /proc/kallsyms. Fails when it is unreadable or all addresses are zero (kptr_restrict). */
int symtab_new_kallsyms(struct symtab **out, const char *path, struct err *err);
/* /tmp/perf-PID.map. Where ranges overlap, the later line wins (the JIT used the memory again). */
int symtab_new_perf_map(struct symtab **out, const char *path, struct err *err);
/* For tests and fuzzing: the same from bytes. */
struct symtab *symtab_new_kallsyms_bytes(struct span text);
struct symtab *symtab_new_perf_map_bytes(struct span text);
void symtab_free(struct symtab *t);

/* symtab_find and symtab_get demangle a name when it is first asked for and keep it, also in a
 * const table: a table may be used by one thread at a time. Pointers stay valid until symtab_free,
 * and so does the text of `name` once it was handed out. */
size_t symtab_n(const struct symtab *t);
/* The symbol that covers `addr`: within its size or, when it has no size, up to the next symbol of
 * the same section. NULL when none does. O(log n). */
const struct symbol *symtab_find(const struct symtab *t, uint64_t addr);
/* The same; all of [*start, *end) has this answer. */
const struct symbol *symtab_find_stretch(
	const struct symtab *t, uint64_t addr, uint64_t *start, uint64_t *end);
const struct symbol *symtab_get(const struct symtab *t, size_t i); /* in address order */
/* Where names came from, for reports: "symtab", "dynsym+debugdata", "debug file /usr/lib/...". */
const char *symtab_sources(const struct symtab *t);

/* C++ (Itanium, with parameters), Rust (legacy without its hash, and v0) names become readable;
 * others are copied. The result is the caller's to free. Long or hostile names are copied as they
 * are. */
char *symbol_demangle(const char *name);
/* Whether a name begins like one that this makes readable. */
bool symbol_is_mangled(const char *name);

#endif
