/* SPDX-License-Identifier: MIT */
/* The places in one ELF file that a trace point means. */
#ifndef WEIR_PROBE_POINTS_FIND_SITES_H
#define WEIR_PROBE_POINTS_FIND_SITES_H

#include "base/arena.h"
#include "base/nearest_names.h"
#include "probe/points/find_file.h"
#include "probe/points/point.h"
#include "probe/points/unwind_risk.h"

#define SITES_MAX (1u << 20) /* of one file; the kernel takes no more at once */

/* A file while it is searched. */
struct site_list {
	struct site_search *search;
	const struct elf_file *elf;
	enum mode mode;
	VEC(struct site) sites;
	VEC(struct left_out) left_out;
	uint64_t scan_left; /* bytes of functions that may still be searched for jumps */
};

/* What the search of all files of a point comes to. */
struct site_search {
	const struct point_spec *spec;
	struct arena *arena;
	struct diags *d;
	/* Adds the places of a file that are meant: negative (with the place, without a subject)
	 * when it cannot be read. */
	int (*search)(struct site_list *l, const char *path, struct err *err);
	const char *what;	      /* is looked for: "function" */
	struct nearest_names near;    /* names that were there instead */
	char hint[512];		      /* what to do when nothing of it can be probed; "" */
	bool is_stripped;	      /* the last file has only names that others may use */
	enum unwind_risk unwind_risk; /* of return probes: the greatest of all files with sites */
	bool has_match;		      /* a name matched, whether or not its place can be probed */
};

/* point_find.c: the targets of a point, with what is to be said about them. */
bool find_in_files(struct site_search *s, const struct find_options *options, struct point *out);
/* The places of one file. Those that the kernel would refuse are in out->left_out. A file without
 * any leaves both empty; one that cannot be read is reported and gives false. */
bool find_sites(struct site_search *s, const struct probe_file *file, struct target *out);

/* Decodes the instruction of a site and adds it, or says why it is left out. `size` is what is left
 * of the function at the site, 0 = not known. */
void site_list_add(struct site_list *l, struct site *site, uint64_t size);
void site_list_leave_out(
	struct site_list *l, const char *function, struct foff offset, const char *why);

#endif
