/* SPDX-License-Identifier: MIT */
#include "record/name_frames.h"

#include <stdlib.h>

#include "base/mem.h"
#include "symbols/resolve/resolver.h"

void name_frames(struct trace_writer *w, struct images *images, uint32_t kernel_image,
	const struct name_place *place, const struct debug_lender *lender)
{
	struct resolver *r = resolver_new();
	char *path = place && place->catalog ? mem_strdup(place->catalog) : catalog_default_path();
	struct catalog *catalog = NULL;

	/* The user's own catalog may know more than the files have; most users have none. */
	if (path && catalog_open(&catalog, path, NULL) == 0)
		resolver_set_catalog(r, catalog);
	resolver_set_place(r, place);
	for (uint32_t i = 0; i < images_n(images); i++) {
		const struct image *image = images_get(images, i);

		if (!image->trace_id)
			continue;
		/* Others than those that were hit only say where things are (a jitdump). */
		resolver_add_image(r, image->trace_id, trace_writer_get_image(w, image->trace_id),
			image->path, image->has_elf ? &image->elf : NULL,
			image->is_hit ? images_cfi(images, i) : NULL);
		if (lender)
			resolver_lend_debug(r, image->trace_id, lender->lend(lender->ctx, i));
	}
	if (kernel_image)
		resolver_add_image(r, kernel_image, trace_writer_get_image(w, kernel_image),
			"[kernel]", NULL, NULL);
	resolver_name_frames(r, w);
	resolver_free(r);
	catalog_close(catalog);
	free(path);
}
