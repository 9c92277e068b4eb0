/* SPDX-License-Identifier: MIT */
/* Which kernel runs here. */
#ifndef WEIR_SYMBOLS_KERNEL_IDENTITY_H
#define WEIR_SYMBOLS_KERNEL_IDENTITY_H

#include "symbols/catalog/image_identity.h"

/* Kind, path "[kernel]", machine, and the build-id of /sys/kernel/notes where it can be read. Release
 * it with image_identity_release. */
void kernel_identity(struct image_identity *id);

#endif
