/* SPDX-License-Identifier: MIT */
/* The C library of WebAssembly, and qsort_r, which it does not have (src/wasm/stand_in.c). */
#ifndef WEIR_WASM_INCLUDE_STDLIB_H
#define WEIR_WASM_INCLUDE_STDLIB_H

#include_next <stdlib.h>

void qsort_r(void *base, size_t n, size_t bytes, int (*compare)(const void *, const void *, void *),
	void *context);

#endif
