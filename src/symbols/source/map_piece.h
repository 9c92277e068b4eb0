/* SPDX-License-Identifier: MIT */
/*
 * What the maps of all linkers are made of: pieces (input sections) with the symbols in them. The
 * readers fill one piece after the other; here it is decided which are code and what a piece's name
 * tells about its symbols. For use by the readers of linker maps only.
 */
#ifndef WEIR_SYMBOLS_SOURCE_MAP_PIECE_H
#define WEIR_SYMBOLS_SOURCE_MAP_PIECE_H

#include "base/map.h"
#include "symbols/source/text_scan.h"

enum map_content { MAP_CONTENT_UNKNOWN, MAP_CONTENT_CODE, MAP_CONTENT_DATA };
/* By the name of a section, in any file or in the image. */
enum map_content map_content_of(struct span section_name);

struct map_symbol {
	struct span name;
	uint64_t start, size; /* size 0 = not said */
};

/* A piece named .text.unlikely.NAME: the function or its split-off part, depending on whether the
 * same object has a further piece of that name, which may come later. */
struct map_cold_piece {
	struct span name;
	uint64_t start, bytes;
	uint64_t key; /* hash of object and function */
};

/* Zero-initialise all but the first three. */
struct map_reader {
	struct text_source *out;
	const struct symbol_sink *sink;
	enum symbol_source source;
	bool has_locals; /* the map lists local symbols too */

	/* The output section. */
	enum map_content content;
	uint64_t start, bytes;
	bool has_addr; /* some output section has an address other than 0 */

	/* The piece, while `in_piece`. */
	bool in_piece;
	struct span piece_name, piece_file;
	uint64_t piece_start, piece_bytes;
	VEC(struct map_symbol) symbols;

	VEC(struct map_cold_piece) colds;
	struct map warm_keys; /* those of functions that have a piece of their own */
};

/* Each ends the piece before it. A piece outside its output section is none: it was discarded. */
void map_reader_output(struct map_reader *r, struct span name, uint64_t start, uint64_t bytes);
void map_reader_piece(
	struct map_reader *r, struct span name, struct span file, uint64_t start, uint64_t bytes);
void map_reader_symbol(struct map_reader *r, struct span name, uint64_t start, uint64_t size);
void map_reader_end_piece(struct map_reader *r);
/* Hands on what had to wait, and releases. */
void map_reader_finish(struct map_reader *r);

#endif
