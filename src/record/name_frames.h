/* SPDX-License-Identifier: MIT */
/* The end of a recording: its frames get their names, from the images as they were mapped. */
#ifndef WEIR_RECORD_NAME_FRAMES_H
#define WEIR_RECORD_NAME_FRAMES_H

#include "process/images.h"
#include "symbols/catalog/image_make.h"
#include "trace/writer.h"

/* Who has debug information open already: that of an image, by its number. */
struct debug_lender {
	struct opened_debug (*lend)(void *ctx, uint32_t image);
	void *ctx;
};

struct name_place;

/* `kernel_image` is an image of the trace; 0 = it has no frames of the kernel. `place`: of a recording that
 * was made earlier, else NULL. `lender` may be NULL. */
void name_frames(struct trace_writer *w, struct images *images, uint32_t kernel_image,
	const struct name_place *place, const struct debug_lender *lender);

#endif
