/* SPDX-License-Identifier: MIT */
/*
 * Numbers of the layout of a catalog image that its builder and its viewer share. What they mean:
 * docs/format/catalog.md.
 */
#ifndef WEIR_SYMBOLS_CATALOG_CATALOG_LAYOUT_H
#define WEIR_SYMBOLS_CATALOG_CATALOG_LAYOUT_H

#define IMAGE_MAGIC	      "WSYMIMG1"
#define IMAGE_MAGIC_BYTES     8
#define IMAGE_MAJOR	      1
#define IMAGE_MINOR	      0
#define IMAGE_HEADER_BYTES    32
#define IMAGE_DIRECTORY_BYTES 24 /* of an entry */
#define IMAGE_PARTS_MAX	      64 /* entries of the directory */

/* Stored: the numbers never change meaning. */
enum image_part {
	IMAGE_PART_IDENTITY = 1,
	IMAGE_PART_SOURCES = 2,
	IMAGE_PART_SECTIONS = 3,
	IMAGE_PART_NOTES = 4,
	IMAGE_PART_TEXTS = 5,
	IMAGE_PART_FILES = 6,
	IMAGE_PART_SYMBOLS = 7,
	IMAGE_PART_ALIASES = 8,
	IMAGE_PART_SITES = 9,
	IMAGE_PART_RANGES = 10,
	IMAGE_PART_RUNGS = 11,
	IMAGE_PART_DATA = 12,
	IMAGE_PART_SYMBOL_FILES = 13,
	IMAGE_PART_COLUMNS = 14
};
#define IMAGE_N_PARTS 15

#define IMAGE_SOURCES_MAX  64 /* a name's sources are bits of a u64 */
#define IMAGE_SECTIONS_MAX 65536

#define CHUNK_HEADER_BYTES 24
#define CHUNK_ENTRY_BYTES  32
#define CHUNK_FLAG_PACKED  1u

/* Items of a chunk; all but those of texts and ranges are exact. */
#define TEXT_CHUNK_SHIFT_MAX 12
#define FILE_CHUNK_SHIFT     10
#define SYMBOL_CHUNK_SHIFT   10
#define ALIAS_CHUNK_SHIFT    10
#define DATA_CHUNK_SHIFT     10
#define SITE_CHUNK_SHIFT     12
#define RANGE_CHUNK_ITEMS    4096
#define COLUMN_CHUNK_ITEMS   4096

/* Texts: at most this many bytes each; a chunk of them unpacked; and by this factor at most may
 * leaving out shared beginnings make them smaller. */
#define TEXT_BYTES_MAX	     65536
#define TEXT_CHUNK_BYTES_MAX (2u << 20)
#define TEXT_SHARE_MAX	     32

/* The byte that a symbol or an alias begins with. */
#define NAME_KIND_MASK	0x03u /* enum candidate_kind */
#define NAME_BIND_SHIFT 2     /* enum candidate_bind */
#define NAME_BIND_MASK	0x03u
#define NAME_IS_SIZED	0x10u /* symbols: a source gave the size */
#define NAME_IS_FILLER	0x20u /* symbols: a function's further piece that no symbol covers */

#define SYMBOLS_LATER_WINS 1u /* bit of the table's extra number */

/* The byte that a range begins with: a line step below it, flags above. */
#define RANGE_STEP_MASK	 0x0fu
#define RANGE_STEP_LONG	 15 /* the step is in the column of steps */
#define RANGE_STEP_BIAS	 5  /* step 0 is stored as this */
#define RANGE_NEW_SYMBOL 0x10u
#define RANGE_NEW_SITE	 0x20u
#define RANGE_NEW_FILE	 0x40u
#define RANGE_IS_HOLE	 0x80u

#endif
