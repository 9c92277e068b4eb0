/* SPDX-License-Identifier: MIT */
/* translated_functions FILE: where functions of an image begin, as a translator is told: START BYTES NAME, "-" when it
 * has none; those that are split off have a "part" behind. */
#include <inttypes.h>
#include <stdio.h>

#include "translate/region_functions.h"

int main(int argc, char **argv)
{
	struct images *images = images_new();
	struct function_tables *tables = function_tables_new(images);
	const struct image_function *v;
	size_t n;

	if (argc != 2)
		return 2;
	n = function_tables_get(tables,
		images_ensure(images, &(struct image_query){.pid = 1, .mapping = {.path = argv[1]}}), &v);
	for (size_t i = 0; i < n; i++)
		printf("%" PRIx64 " %" PRIx64 " %s%s\n", v[i].start, v[i].bytes,
			v[i].linkage_name ? v[i].linkage_name : "-", v[i].is_part ? " part" : "");
	function_tables_free(tables);
	images_free(images);
	return n == 0;
}
