/* SPDX-License-Identifier: MIT */
/* What kind of symbol source a file is, by its content (and never by its name alone). */
#ifndef WEIR_SYMBOLS_SOURCE_SOURCE_KIND_H
#define WEIR_SYMBOLS_SOURCE_SOURCE_KIND_H

#include "base/span.h"

enum source_kind {
	SOURCE_KIND_UNKNOWN,
	SOURCE_KIND_ELF_IMAGE,	/* has code: executables, shared objects, vmlinux */
	SOURCE_KIND_ELF_DEBUG,	/* separate debug file: its code sections are NOBITS */
	SOURCE_KIND_ELF_OBJECT, /* relocatable */
	SOURCE_KIND_LD_MAP,
	SOURCE_KIND_LLD_MAP,
	SOURCE_KIND_NM,
	SOURCE_KIND_PERF_MAP,
	SOURCE_KIND_JITDUMP,
	SOURCE_KIND_KALLSYMS,
	SOURCE_KIND_CATALOG
};

/* `name` (the file's name) decides only between formats that read alike: nm output and kallsyms and
 * perf maps. Looks at no more than the first 64 KiB of a text. */
enum source_kind source_kind_of(struct span bytes, const char *name);
/* "shared object or executable", "debug file", "GNU ld map", ... */
const char *source_kind_name(enum source_kind kind);

#endif
