/* SPDX-License-Identifier: MIT */
/* A listing (points_list) while it is made: points_list.c finds the entries, point_details.c what -v says of
 * each, types_list.c structures and enumerations of the kernel. */
#ifndef WEIR_PROBE_POINTS_POINT_LISTING_H
#define WEIR_PROBE_POINTS_POINT_LISTING_H

#include "base/arena.h"
#include "base/file.h"
#include "probe/points/point_kind.h"
#include "probe/types/btf_types.h"
#include "probe/types/dwarf_types.h"

struct listing_entry {
	const char *name;
	const char *about; /* what its details are read from */
	point_detail_fn *detail;
};

/* Debug information of the file whose functions are listed. */
struct listing_file {
	const char *path; /* NULL: none yet */
	struct dwarf_types *dwarf;
	struct type_source source;
};

struct point_listing {
	struct arena *arena;
	const char *pattern;
	const struct find_options *options;
	int tracefs;		       /* -1: not needed, or not there */
	enum point_kind function_kind; /* of kernel functions */
	bool is_one_of_many; /* the pattern's kind is a glob: what this kind cannot have is no failure */
	VEC(struct listing_entry) entries;
	VEC(const char *) details;

	struct types *types[N_MODES]; /* made when they are needed */
	struct listing_file file;
	struct btf_types *btf;
	struct file_map btf_map;
	bool is_btf_tried;
};

void listing_add(
	struct point_listing *l, const char *name, const char *about, point_detail_fn *detail);
void listing_add_detail(struct point_listing *l, const char *text);
/* "long offset", "int* n", as the details of points have them. */
void listing_add_value(struct point_listing *l, const struct type *type, const char *name);
/* The kernel's types; NULL when it has no BTF. */
struct btf_types *listing_btf(struct point_listing *l);
void listing_release(struct point_listing *l);

/* types_list.c: "struct NAME", "union NAME", "enum NAME" with wildcards in the name. */
bool types_list_is_meant(const char *pattern);
int types_list(struct point_listing *l, const char *pattern, struct err *err);

#endif
