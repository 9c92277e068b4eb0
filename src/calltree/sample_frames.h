/* SPDX-License-Identifier: MIT */
/* What samples say of places in code: their weight by innermost frame, for answers by source line.
 */
#ifndef WEIR_CALLTREE_SAMPLE_FRAMES_H
#define WEIR_CALLTREE_SAMPLE_FRAMES_H

#include "base/map.h"
#include "calltree/build.h"

/* Adds to `weights`: frame -> sum in the metric of the profile. */
int sample_frames_sum(struct map *weights, const struct profile *profile, struct err *err);

#endif
