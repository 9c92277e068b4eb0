/* SPDX-License-Identifier: MIT */
/* The text of a trace point while it is taken apart: what the functions that parse the kinds share. */
#ifndef WEIR_PROBE_POINTS_POINT_PARTS_H
#define WEIR_PROBE_POINTS_POINT_PARTS_H

#include "probe/points/point.h"

#define POINT_PARTS_MAX 4

struct part {
	const char *text; /* in the arena */
	uint32_t at;	  /* in the point's text */
};

struct point_parse {
	const struct point_text *point;
	struct arena *arena;
	struct point_spec *out;
	struct diags *d;
	const char *word; /* the long form */
	const char *form;
	struct part parts[POINT_PARTS_MAX]; /* behind the word */
	size_t n_parts;
};

/* Kinds of objects that iter: goes through, up to a NULL. */
extern const char *const point_iterators[];

/* The place in the script of a part; of the whole point when the part is empty or was quoted. */
struct place point_place_of(const struct point_parse *p, const struct part *part);
/* "'POINT' WHAT", and the form as a hint; gives false. */
bool point_fail_form(struct point_parse *p, const char *what);
/* Splits what is behind the word into at most `max` parts; colons go on in the last one. */
bool point_split(struct point_parse *p, size_t max);
/* A decimal or 0x number, 1e6 too, at *text, which moves behind it. False when there is none or it is
 * more than 64 bits. */
bool point_take_number(const char **text, uint64_t *value);
/* A text that is nothing but one. */
bool point_whole_number(const char *text, uint64_t *value);

#endif
