/* SPDX-License-Identifier: MIT */
/* Whether a list of names and addresses that says nothing of its origin belongs to an image. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/search.h"
#include "symbols/catalog/match.h"

#define VERSIONS_MAX 256 /* of one name that are looked at */

/* Of a name, beside its first entry in the image. */
enum anchor_state { ANCHOR_UNSEEN, ANCHOR_WRONG, ANCHOR_RIGHT };

/* The first entry with this name; n when there is none. */
static size_t find_name(const struct anchor_name *image, size_t n, const char *name)
{
	size_t lo = SEARCH(0, n, mid, strcmp(image[mid].name, name) < 0);

	return lo < n && !strcmp(image[lo].name, name) ? lo : n;
}

static bool has_address(const struct anchor_name *image, size_t n, size_t first, uint64_t addr)
{
	size_t end = n - first > VERSIONS_MAX ? first + VERSIONS_MAX : n;

	for (size_t i = first; i < end && !strcmp(image[i].name, image[first].name); i++)
		if (image[i].addr == addr)
			return true;
	return false;
}

bool anchor_agrees(const struct anchor_name *image, size_t n_image, const char *name, uint64_t addr)
{
	size_t first = find_name(image, n_image, name);

	return first < n_image && has_address(image, n_image, first, addr);
}

void anchor_check(const struct anchor_name *image, size_t n_image, const struct anchor_name *source,
	size_t n_source, struct anchor_result *result)
{
	uint8_t *states = mem_calloc(n_image, sizeof(*states));
	size_t *wrong_at = mem_calloc(n_image, sizeof(*wrong_at)); /* entry of the source */

	*result = (struct anchor_result){0};
	for (size_t k = 0; k < n_source; k++) {
		size_t i = find_name(image, n_image, source[k].name);

		if (i == n_image || states[i] == ANCHOR_RIGHT)
			continue;
		if (has_address(image, n_image, i, source[k].addr)) {
			states[i] = ANCHOR_RIGHT;
		} else if (states[i] == ANCHOR_UNSEEN) {
			states[i] = ANCHOR_WRONG;
			wrong_at[i] = k;
		}
	}
	for (size_t i = 0; i < n_image; i++) {
		result->n_common += states[i] != ANCHOR_UNSEEN;
		result->n_agree += states[i] == ANCHOR_RIGHT;
		if (states[i] != ANCHOR_WRONG || result->first_wrong)
			continue;
		result->first_wrong = image[i].name;
		result->wrong_in_image = image[i].addr;
		result->wrong_in_source = source[wrong_at[i]].addr;
	}
	free(states);
	free(wrong_at);
}
