/* SPDX-License-Identifier: MIT */
/* Which known name a misspelt one is nearest to, for hints. */
#include <string.h>

#include "base/nearest_names.h"
#include "probe/compile/checker.h"

#define NAME_MAX_COMPARED 40 /* longer names get no hint */

void nearest_offer(struct nearest *n, const char *candidate)
{
	size_t bytes = strlen(n->name);
	uint32_t far = bytes < 6 ? 1 : bytes < 9 ? 2 : 3, distance;

	if (bytes > NAME_MAX_COMPARED || bytes < 2)
		return;
	distance = name_distance(n->name, candidate, far);
	if (distance <= far && (!n->best || distance < n->distance)) {
		n->best = candidate;
		n->distance = distance;
	}
}
