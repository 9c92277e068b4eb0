/* SPDX-License-Identifier: MIT */
/* Three address spaces that must not be mixed; the compiler refuses the mixture. */
#ifndef WEIR_BASE_ADDR_H
#define WEIR_BASE_ADDR_H

#include <stdint.h>

struct vaddr {
	uint64_t v; /* where the process saw it */
};
struct iaddr {
	uint64_t v; /* where the linker placed it in the image */
};
struct foff {
	uint64_t v; /* byte position in the file */
};

#endif
