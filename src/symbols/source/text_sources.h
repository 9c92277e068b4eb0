/* SPDX-License-Identifier: MIT */
/*
 * Symbols from texts that carry no identity: linker maps (GNU ld, gold, lld), the output of nm,
 * perf maps, kallsyms. One file each; malformed lines are counted, never fatal. Lines longer than
 * SYMTAB_NAME_BYTES_MAX + 256 (perf maps: 16,384) and more than SYMTAB_SYMBOLS_MAX symbols are
 * counted as malformed. A text without any line of its kind is ERR_FORMAT.
 *
 * Names are bytes of the text as they are: control characters included (a tab in front of
 * kallsyms' module), without a symbol version ("foo@@V2" is "foo", as symbol tables have it).
 * Assembler-local names (.L1, $d) are left out. An address may be given several names.
 */
#ifndef WEIR_SYMBOLS_SOURCE_TEXT_SOURCES_H
#define WEIR_SYMBOLS_SOURCE_TEXT_SOURCES_H

#include "base/err.h"
#include "base/mem.h"
#include "base/span.h"
#include "symbols/image_identity.h"
#include "symbols/symtab_build.h"

struct text_source {
	size_t n_symbols, n_malformed;
	/* Output sections of a linker map (name, addr, mem_bytes; flags 0). */
	VEC(struct image_segment) sections;
	/* Input sections with code of a linker map, which linkers move as a whole; in the order of the
	 * map, also those without names. */
	VEC(struct extent) pieces;
	/* The image that the text says it belongs to ("OUTPUT(a.out elf64-x86-64)"); "" = not said.
	 */
	char output[256];
	VEC(char *) owned; /* names that are not in the text ("foo.cold"); candidates borrow them */
};
/* When a reader fails there is nothing to release. Names die with it and with the text. */
void text_source_release(struct text_source *t);

/*
 * `ld -Map`, `gcc -Wl,-Map`, and gold's. A symbol whose section is not code is left out; the map
 * does not say which are, so names decide, and behind those the section before it (linkers put
 * unknown sections behind those of the same kind). Left out: what --gc-sections discarded, symbols
 * that the script assigns (_etext), PLT stubs.
 *
 * Global functions have the room that their input section gives them. Input sections of
 * -ffunction-sections (.text.foo) tell more: the size, the linkage name where the line has the
 * demangled one, and local functions, which no line lists. Local functions that share a section
 * with others are not in the map.
 */
int ld_map_read(
	struct span text, const struct symbol_sink *sink, struct text_source *out, struct err *err);
/* `ld.lld -Map`: columns VMA LMA Size Align Out In Symbol (or Address Size ..., of old versions),
 * local symbols included; which they are it does not say. Names are demangled unless the linker was
 * told
 * --no-demangle; that of a -ffunction-sections section is added where it is mangled. */
int lld_map_read(
	struct span text, const struct symbol_sink *sink, struct text_source *out, struct err *err);
/*
 * `nm`, `nm -S`, `nm -D`, `nm -n`, `nm -A`, `nm -l`, `nm --defined-only`, also with -C (then the
 * names are final), 32 and 64 bit, also the posix format (-P) and the sysv one (-f sysv). Types t T
 * w W i; undefined ones are skipped, and so are weak ones where data sits at the same address.
 * Hexadecimal only. A text with several images ("a.o:" headers) is ERR_FORMAT.
 */
int nm_text_read(
	struct span text, const struct symbol_sink *sink, struct text_source *out, struct err *err);
/* perf-PID.map, in file order (use "later wins"). */
int perf_map_read(
	struct span text, const struct symbol_sink *sink, struct text_source *out, struct err *err);
/* /proc/kallsyms or System.map (no module column): functions only, with room up to the next symbol.
 * ERR_PERMISSION when all addresses are hidden. */
int kallsyms_read(
	struct span text, const struct symbol_sink *sink, struct text_source *out, struct err *err);

#endif
