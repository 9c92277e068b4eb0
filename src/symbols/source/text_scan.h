/* SPDX-License-Identifier: MIT */
/* What the readers of text sources share. For use within symbols/ only. */
#ifndef WEIR_SYMBOLS_SOURCE_TEXT_SCAN_H
#define WEIR_SYMBOLS_SOURCE_TEXT_SCAN_H

#include "base/mem.h"
#include "symbols/source/text_sources.h"

#define TEXT_LINE_BYTES_MAX (SYMTAB_NAME_BYTES_MAX + 256)
/* A function without a size does not extend over a hole that is larger. */
#define TEXT_FUNCTION_BYTES_MAX ((uint64_t)1 << 20)

/* Takes the next line, without its end ("\n" or "\r\n"). False at the end of the text. */
bool text_next_line(struct cursor *rest, struct span *line);
/* Takes the blanks (no tabs) at the start and says how many they were. */
size_t text_skip_blanks(struct cursor *c);
/* Takes the bytes up to the next blank or the end. */
struct span text_take_word(struct cursor *c);
/* Takes 1 to 16 hexadecimal digits; false when there are none or more. */
bool text_take_hex(struct cursor *c, uint64_t *out);
/* Takes "0x" and 1 to 16 digits that a blank or the end follows. */
bool text_take_0x(struct cursor *c, uint64_t *out);
/* The whole word is 1 to 16 hexadecimal digits. */
bool text_word_hex(struct span word, uint64_t *out);
bool text_is(struct span s, const char *text);
bool text_starts(struct span s, const char *prefix);
bool text_has(struct span s, const char *part);

/* Names that assemblers make for themselves: .L1, $d. */
bool text_name_is_internal(struct span name);
/* "printf@@GLIBC_2.2.5" -> "printf", as symbol tables have it; "printf@plt" stays. */
struct span text_name_without_version(struct span name);

/* Hands a candidate on and counts it, as malformed when a limit is passed. */
void text_source_add(
	struct text_source *t, const struct symbol_sink *sink, const struct candidate *c);
/* A made-up name, which `t` keeps. */
struct span text_source_own(struct text_source *t, char *name);
/* The image that the text is of; half a path would name another file, so a long one is left out. */
void text_source_name_output(struct text_source *t, struct span path);
/* An output section; a name that is too long is cut. */
void text_source_add_section(
	struct text_source *t, struct span name, uint64_t addr, uint64_t bytes);

/* Symbols of a text that gives each an address and not all a size: one without a size has room up
 * to the next symbol of any kind. Zero-initialise; text_unsized_emit releases. */
struct text_unsized {
	VEC(struct candidate) functions;
	VEC(uint64_t) starts; /* of symbols of any kind */
};
void text_unsized_emit(
	struct text_unsized *u, struct text_source *t, const struct symbol_sink *sink);

/* One line of the output of nm, in its three formats. */
enum nm_format {
	NM_FORMAT_BSD,	 /* VALUE [SIZE] TYPE NAME */
	NM_FORMAT_POSIX, /* NAME TYPE [VALUE [SIZE]] */
	NM_FORMAT_SYSV	 /* NAME|VALUE|CLASS|TYPE|SIZE|LINE|SECTION */
};
#define NM_N_FORMATS 3

struct nm_line {
	struct span image; /* in front of the line with -A; empty = not said */
	struct span name;  /* never empty */
	char type;	   /* 'T', 't', 'U', ... */
	bool is_defined;   /* it has a value */
	bool is_data;	   /* the line says so (sysv format) */
	bool is_label;	   /* the line says that it is no function (sysv format) */
	uint64_t value, size;
};

bool nm_line_parse(enum nm_format format, struct span line, struct nm_line *out);
/* "a.o:" or "Symbols from a.o:" or "Undefined symbols from ...": the image of the lines that
 * follow. False when the line is no heading. */
bool nm_line_is_heading(enum nm_format format, struct span line, struct span *image);

/* One line each; false when it is malformed. The kallsyms candidate has no name when the line is no
 * function. */
bool perf_map_parse_line(struct span line, struct candidate *c);
bool kallsyms_parse_line(struct span line, struct candidate *c);

#endif
