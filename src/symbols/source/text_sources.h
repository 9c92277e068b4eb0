/* SPDX-License-Identifier: MIT */
/*
 * Symbols from texts that carry no identity: linker maps (GNU ld, lld), the output of nm, perf maps,
 * kallsyms. One file each; malformed lines are counted, never fatal. Lines longer than
 * SYMTAB_NAME_BYTES_MAX + 256 and more than SYMTAB_SYMBOLS_MAX symbols are counted as malformed.
 */
#ifndef WEIR_SYMBOLS_SOURCE_TEXT_SOURCES_H
#define WEIR_SYMBOLS_SOURCE_TEXT_SOURCES_H

#include "base/err.h"
#include "base/span.h"
#include "symbols/catalog/image_identity.h"
#include "symbols/source/symbol_sink.h"

struct text_source {
	size_t n_symbols, n_malformed;
	/* Output sections of a linker map (name, addr, mem_bytes; flags 0); the caller frees. */
	struct image_segment *sections;
	size_t n_sections;
	/* The image that the text says it belongs to ("OUTPUT(a.out elf64-x86-64)"); "" = not said. */
	char output[256];
};
void text_source_release(struct text_source *t);

/* `ld -Map`, `gcc -Wl,-Map`: functions with the room their input section gives them; a symbol whose
 * section is not code is left out. Names of -ffunction-sections input sections (.text.foo) give
 * local functions that the symbol lines do not list, with their sizes. */
int ld_map_read(struct span text, const struct symbol_sink *sink, struct text_source *out, struct err *err);
/* `ld.lld -Map`: columns VMA LMA Size Align Out In Symbol. */
int lld_map_read(struct span text, const struct symbol_sink *sink, struct text_source *out, struct err *err);
/* `nm`, `nm -S`, `nm -D`, `nm -n`, `nm --defined-only`, also with -C (then the names are final), 32
 * and 64 bit, also the posix format (-P) and the sysv one (-f sysv). Types t T w W i, and undefined
 * ones are skipped. */
int nm_text_read(struct span text, const struct symbol_sink *sink, struct text_source *out, struct err *err);
/* perf-PID.map, in file order (use "later wins"). */
int perf_map_read(struct span text, const struct symbol_sink *sink, struct text_source *out, struct err *err);
/* /proc/kallsyms or System.map (no module column): functions only. */
int kallsyms_read(struct span text, const struct symbol_sink *sink, struct text_source *out, struct err *err);

#endif
