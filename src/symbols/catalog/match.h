/* SPDX-License-Identifier: MIT */
/*
 * The verification ladder: does a candidate (an image of the catalog, a file) belong to the module
 * that ran, how sure is that, and why. Pure comparison, no files are opened here.
 *
 * Vetoes come first: another machine or class; code of another process; both have a build-id and
 * they differ; both have a content hash and they differ; sections that do not fit the segments.
 * Then the rungs from the strongest; the first that holds is it. What is known on one side only is
 * never held against a candidate, but gives no rung either.
 *
 * A file at the same path that is not the same any more (its size, its segments, or its time stamp
 * where segments are not known, differ) is refused as well: it was replaced. Size and time stamp
 * alone identify nothing.
 */
#ifndef WEIR_SYMBOLS_CATALOG_MATCH_H
#define WEIR_SYMBOLS_CATALOG_MATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "symbols/image_identity.h"

/* Stored in traces and catalogs: the numbers never change meaning. */
enum match_rung {
	MATCH_NONE = 0,
	MATCH_SEGMENTS = 1, /* segment sizes and flags (and names) equal, path different; or
			       run-time code of a process with the same pid */
	MATCH_PATH = 2,	    /* same full path, and the segments (where known) have equal sizes */
	MATCH_CHECKSUM = 3, /* debuglink CRC and time stamp or segments equal; or size and time
			       stamp and segments, all equal */
	MATCH_BUILD_ID = 4  /* exact: build-id, content hash or debuglink CRC */
};
#define MATCH_N_RUNGS 5
/* "none", "segments", "path", "checksum", "build-id" */
const char *match_rung_name(enum match_rung rung);

struct match_verdict {
	enum match_rung rung;
	bool is_vetoed;	  /* something says that it is not the same, so rung is MATCH_NONE */
	char reason[320]; /* a phrase that names both identities: "build-id 5e3f... here, 77aa... in
			     the catalog" */
};

/* Every check of one candidate. `where` names the candidate in the reason ("the catalog", a path).
 */
void match_judge(const struct image_identity *wanted, const struct image_identity *candidate,
	const char *where, struct match_verdict *verdict);

/* Judges n candidates, which are named by their paths. Returns the index of the best or SIZE_MAX
 * when all have rung NONE; among equals: same full path first, then same base name, then the order
 * given. `*n_tied` is how many others stand on its rung and are not known to be copies of the same
 * version (0 when it is alone). `verdicts` has room for n. */
size_t match_best(const struct image_identity *wanted,
	const struct image_identity *const *candidates, size_t n, struct match_verdict *verdicts,
	size_t *n_tied);

/* The anchor check of a source without identity (map, nm): exported names that both have must sit
 * at equal addresses. Accepted when n_agree == n_common and n_common > 0. A name that one side has
 * several times (versions of a symbol) counts once, and agrees when one address is on both sides.
 */
struct anchor_name {
	const char *name;
	uint64_t addr;
};
struct anchor_result {
	size_t n_common, n_agree;
	const char *first_wrong;		  /* borrowed; NULL when all agree */
	uint64_t wrong_in_image, wrong_in_source; /* its two addresses */
};
/* `image` must be sorted by name (strcmp); `source` need not be. */
void anchor_check(const struct anchor_name *image, size_t n_image, const struct anchor_name *source,
	size_t n_source, struct anchor_result *result);
/* Whether the image (sorted as above) has the name at this address. */
bool anchor_agrees(
	const struct anchor_name *image, size_t n_image, const char *name, uint64_t addr);

/*
 * Which section of an image a loaded segment is, for systems that load sections one by one: by name
 * when both have one; else, when both names are missing, the only one there is; else the one at an
 * equal address; else the one of equal size. A section with another name is never it; of several
 * with one name, address or size, the next rule decides. SIZE_MAX when none is; *how (may be NULL)
 * gets "name", "only one", "address", "size" or "no section matches".
 */
size_t segment_match(const struct image_segment *loaded, const struct image_segment *sections,
	size_t n, const char **how);

#endif
