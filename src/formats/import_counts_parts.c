/* SPDX-License-Identifier: MIT */
/*
 * Do call trees and blocks tell the same? Blocks are counted where they lie. What a node is charged with
 * is what ran between its function's entry and its exit: where code is jumped into that belongs to
 * another function (hand-written code, a second entry), that function's instructions are in the cost of
 * the one that jumped. Which of them, nobody has noted; but how many is known, and is told.
 */
#include "formats/import_counts_internal.h"

#include <stdlib.h>
#include <string.h>

#define PART_MARK ".cold"

/* "f.cold", "f.cold.3": the length of "f", else 0. */
static size_t whole_name_bytes(const struct counts_function *part)
{
	const char *mark = strstr(part->name, PART_MARK);

	return mark && (part->flags & COUNT_FUNCTION_FRAGMENT) ? (size_t)(mark - part->name) : 0;
}

/* Parts that the compiler split off are in the nodes of their functions. Local functions of one name are
 * told apart by their objects. */
static void join_parts(struct counts_file *f)
{
	struct map whole_of = {
		0}; /* name, by its place in texts -> index + 1 of the last function */
	uint32_t *before = mem_calloc(f->functions.n + 1, sizeof(*before));

	for (size_t i = 0; i < f->functions.n; i++) {
		const struct counts_function *function = &f->functions.v[i];
		uint64_t *last;

		if (function->flags & COUNT_FUNCTION_FRAGMENT)
			continue;
		last = map_ensure(&whole_of, (uint64_t)(uintptr_t)function->name, NULL);
		before[i] = (uint32_t)*last;
		*last = i + 1;
	}
	for (size_t i = 0; i < f->functions.n; i++) {
		struct counts_function *part = &f->functions.v[i];
		size_t n = part->instructions ? whole_name_bytes(part) : 0, found = 0;
		const uint64_t *last = NULL;

		if (n)
			last = map_find(
				&whole_of, (uint64_t)(uintptr_t)counts_text(f, part->name, n));
		for (size_t at = last ? (size_t)*last : 0; at; at = before[at - 1])
			if (!found || f->units.v[f->functions.v[at - 1].unit].object ==
					      f->units.v[part->unit].object)
				found = at;
		if (found) {
			f->functions.v[found - 1].instructions += part->instructions;
			part->instructions = 0;
		}
	}
	map_release(&whole_of);
	free(before);
}

void counts_compare_parts(struct counts_file *f)
{
	const struct counts_function *most = NULL;
	uint64_t n = 0, n_most = 0, n_functions = 0;

	join_parts(f);
	for (size_t i = 0; i < f->functions.n; i++) {
		const struct counts_function *function = &f->functions.v[i];
		uint64_t missing = function->instructions > function->charged
					   ? function->instructions - function->charged
					   : 0;

		n += missing;
		n_functions += missing != 0;
		if (missing > n_most) {
			n_most = missing;
			most = function;
		}
	}
	if (n_functions)
		counts_note(f, n,
			"an instruction is in the cost of a function that jumped into the midst of the one it "
			"belongs to ('%.200s'%s): flat, tree and arcs have it there, source and coverage "
			"where it is",
			most->name, n_functions > 1 ? " and others" : "");
}
