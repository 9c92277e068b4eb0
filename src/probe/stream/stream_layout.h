/* SPDX-License-Identifier: MIT */
/* Numbers of docs/format/probe-stream.md, for the writer and the reader. */
#ifndef WEIR_PROBE_STREAM_STREAM_LAYOUT_H
#define WEIR_PROBE_STREAM_STREAM_LAYOUT_H

#include <stdint.h>

#include "probe/stream/stream.h"

#define STREAM_MAJOR	    2
#define STREAM_MINOR	    3
#define STREAM_HEADER_BYTES 32
#define STREAM_ROW_BYTES    32
#define STREAM_NO_TEXT	    UINT32_MAX /* instead of a length */

enum stream_section {
	SECTION_FACTS = 1,
	SECTION_SOURCES,
	SECTION_SHAPES,
	SECTION_MAPS,
	SECTION_FORMATS,
	SECTION_STRINGS,
	SECTION_CLAUSES,
	SECTION_POINTS,
	SECTION_CODE_32,
	SECTION_CODE_64,
	SECTION_LINES_32,
	SECTION_LINES_64,
	N_SECTIONS = SECTION_LINES_64
};

#define STREAM_FIRST_OFFSET (STREAM_HEADER_BYTES + N_SECTIONS * STREAM_ROW_BYTES)

#define STREAM_FILE_MAX		((uint64_t)256 << 20) /* bytes */
#define STREAM_SOURCES_MAX	1024
#define STREAM_SHAPES_MAX	65536
#define STREAM_SCRIPT_MAPS_MAX	(STREAM_MAPS_MAX - STREAM_MAP_FIRST_OF_SCRIPT)
#define STREAM_FORMATS_MAX	65536
#define STREAM_STRINGS_MAX	65536
#define STREAM_POINTS_MAX	65536
#define STREAM_INSNS_MAX	(1u << 22)
#define STREAM_LINES_MAX	(1u << 22)
#define STREAM_VALUE_BYTES_MAX	65536 /* of a shape, of all arguments of a format */
#define STREAM_SHAPE_FIELDS_MAX 16384
#define STREAM_SHAPE_DEPTH_MAX	32
#define STREAM_SHAPE_WEIGHT_MAX 65536 /* nodes of a shape when it is followed to its ends */
#define STREAM_ARGS_MAX		1024
#define STREAM_ENTRIES_MAX	(1u << 28)

enum { FACT_USES_STACKS = 1, FACT_HIDES_MAPS = 2, FACT_LIKE_0_17 = 4 };
#define STREAM_RING_PAGES_MAX (1u << 18)
enum { SHAPE_IS_SIGNED = 1, SHAPE_IS_BOOL = 2 };
enum { MAP_IS_LRU = 1 };
enum { CLAUSE_HAS_PREDICATE = 1 };
enum { POINT_HAS_ADDRESS = 1, POINT_IS_GLOB = 2 };
enum { SITE_IS_ONLY = 1 };
enum { PIECE_IS_THERE = 1, PIECE_USES_SITE = 2, PIECE_READS_USER = 4 };

#endif
