/* SPDX-License-Identifier: MIT */
/* Which kernel runs here. */
#ifndef WEIR_SYMBOLS_KERNEL_IDENTITY_H
#define WEIR_SYMBOLS_KERNEL_IDENTITY_H

#include "symbols/image_identity.h"

/* Kind, path "[kernel]", machine, the build-id of /sys/kernel/notes, and as its content hash where
 * it was loaded (/proc/kallsyms), both where they can be read: the addresses of a kernel's symbols
 * differ after each start of the machine. Release it with image_identity_release. */
void kernel_identity(struct image_identity *id);

#endif
