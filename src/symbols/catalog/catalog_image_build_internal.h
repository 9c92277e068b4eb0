/* SPDX-License-Identifier: MIT */
/*
 * How an image is put together, for the catalog_image*.c files only:
 *
 *   catalog_image_build.c  collects: names, rows, sites, with texts as ids of one table
 *   catalog_image_names.c  decides which name an address has and which are aliases
 *   catalog_image_rows.c   decides which unit an address belongs to; joins symbols and rows
 *   catalog_image_texts.c  sorts the texts that are used and numbers them
 *   catalog_image_write.c  writes all of it
 */
#ifndef WEIR_SYMBOLS_CATALOG_CATALOG_IMAGE_BUILD_INTERNAL_H
#define WEIR_SYMBOLS_CATALOG_CATALOG_IMAGE_BUILD_INTERNAL_H

#include "base/map.h"
#include "symbols/catalog/catalog_chunks.h"
#include "symbols/catalog/catalog_image_build.h"
#include "symbols/catalog/catalog_image_internal.h"

#define NO_TEXT UINT32_MAX

/* A name that a source has for an address. */
struct offered_name {
	uint64_t start, size, room;
	uint64_t sources; /* bits */
	uint32_t text;	  /* NO_TEXT only ends the symbol before it */
	uint32_t file;	  /* text; 0 = not known */
	uint8_t kind, bind;
};

/* A piece of a function that is not its start: a symbol only where there is no other. */
struct offered_piece {
	uint64_t start, end;
	uint64_t sources;
	uint32_t text;
};

/* Up to the next row's address, or to the end of its run. */
struct built_row {
	uint64_t addr;
	uint32_t file; /* text */
	uint32_t line;
	uint32_t site;
	uint32_t column; /* 0 = not known */
};

/* Rows of one unit without a hole between them. */
struct built_run {
	uint64_t start, end;
	size_t first, n;
};

struct built_site {
	uint32_t parent, text, call_file, call_line; /* call_file is a text */
};

struct built_datum {
	uint64_t start, size;
	uint32_t text;
	uint8_t bind;
};

struct image_builder {
	struct image_identity identity;
	struct intern texts;		      /* 0 is the empty one */
	VEC(struct catalog_source) sources;   /* texts owned */
	uint64_t n_before[IMAGE_SOURCES_MAX]; /* offered when an image that was added was made */
	uint32_t current;		      /* the source that was begun last */
	VEC(struct catalog_section) sections; /* names owned */
	struct intern section_keys;	      /* those that are there */
	VEC(char *) notes;
	VEC(struct offered_name) names;
	VEC(struct offered_piece) pieces;
	VEC(struct built_datum) data; /* in no order until data_finish() */
	bool is_later_wins, keeps_columns;
	VEC(struct built_row) rows;
	VEC(struct built_run) runs;   /* in the order of units */
	VEC(struct built_site) sites; /* a parent before its children; 0 is reserved */
	size_t n_names_left_out, n_texts_cut, n_sections_left_out, n_sources_left_out;
};

/* The id of a text; what could steer a terminal in it becomes '?'. */
uint32_t builder_text(struct image_builder *b, const char *p, size_t n);
/* Adds a site, whose parent must have been added. */
uint32_t builder_site(struct image_builder *b, const struct built_site *site);
/* The number of a source with these texts, which is added when there is none. */
uint32_t builder_source(struct image_builder *b, const struct catalog_source *source);

/* Takes the rows of a unit in ascending order. */
struct run_maker {
	struct image_builder *b;
	size_t first; /* row of the open run; SIZE_MAX = none is open */
};
/* A row that says what the one before it says is left out. */
void run_maker_add(struct run_maker *m, const struct built_row *row);
/* The open run ends at this address. */
void run_maker_end(struct run_maker *m, uint64_t end);

/* Sorts the data and leaves one an address. */
void data_finish(struct image_builder *b);

/* --- names --- */

struct final_symbol {
	uint64_t start, size;
	uint64_t sources;
	uint32_t text;
	uint32_t file; /* text; 0 = not known */
	uint32_t n_aliases;
	uint32_t order;
	uint8_t flags; /* NAME_* */
};

struct final_alias {
	uint64_t sources;
	uint32_t text;
	uint8_t flags;
};

struct final_names {
	VEC(struct final_symbol) symbols; /* by start */
	VEC(struct final_alias) aliases;  /* those of the first symbol first */
	struct range_piece *pieces;	  /* by start; range_i is a symbol */
	size_t n_pieces;
};

void final_names_init(struct final_names *names, const struct image_builder *b);
void final_names_release(struct final_names *names);

/* --- rows --- */

/* Which run has which address, by address. */
struct row_map {
	struct range_piece *pieces; /* range_i is a run */
	size_t n_pieces;
};
void row_map_init(struct row_map *map, const struct image_builder *b);
void row_map_release(struct row_map *map);
/* Forgets the files of symbols that begin in a row, which tells more. Says whether any is left. */
bool row_map_cover_files(const struct row_map *map, struct final_names *names);

/* One row of the map after the other. */
struct row_cursor {
	const struct image_builder *b;
	const struct row_map *map;
	size_t piece_i, row_i; /* row_i is SIZE_MAX at the start of a piece */
};
struct row_span {
	uint64_t start, end;
	const struct built_row *row;
};
bool row_cursor_next(struct row_cursor *c, struct row_span *out);

/* --- numbers of the image --- */

struct numbering {
	uint8_t *text_use;  /* of each text of the builder: TEXT_IS_* */
	uint32_t *text_ids; /* its number in the image */
	uint32_t *file_ids; /* of texts that are files, from 1 */
	uint32_t *site_ids; /* of each site of the builder; 0 = not used */
	uint32_t *texts;    /* the texts that are used, by number */
	uint32_t *files;    /* texts (numbers of the image) of the files */
	uint32_t *sites;    /* sites of the builder, by number; 0 is reserved */
	uint32_t *chain;    /* sites that wait for the number of the one around them */
	size_t n_texts, n_files, n_sites; /* n_sites without the reserved one */
};
#define TEXT_IS_USED 1
#define TEXT_IS_FILE 2

void numbering_init(struct numbering *n, const struct image_builder *b,
	const struct final_names *names, const struct row_map *rows);
void numbering_release(struct numbering *n);

/* --- tables --- */

void texts_encode(
	struct chunk_writer *w, const struct intern *texts, const uint32_t *ids, size_t n);
/* `extra` of the table gets the number of ranges with a line. */
void ranges_encode(struct chunk_writer *w, const struct image_builder *b,
	const struct final_names *names, const struct row_map *rows, const struct numbering *n);
void columns_encode(
	struct chunk_writer *w, const struct image_builder *b, const struct row_map *rows);

#endif
