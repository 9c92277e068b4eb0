/* SPDX-License-Identifier: MIT */
/* The end of a recording: its frames get their names, from the images as they were mapped. */
#ifndef WEIR_RECORD_NAME_FRAMES_H
#define WEIR_RECORD_NAME_FRAMES_H

#include "process/images.h"
#include "trace/writer.h"

/* `kernel_image` is an image of the trace; 0 = it has no frames of the kernel. */
void name_frames(struct trace_writer *w, struct images *images, uint32_t kernel_image);

#endif
