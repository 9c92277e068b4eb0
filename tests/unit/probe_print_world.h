/* SPDX-License-Identifier: MIT */
/* Shapes, values and names that tests of the printer make. */
#ifndef WEIR_TESTS_PROBE_PRINT_WORLD_H
#define WEIR_TESTS_PROBE_PRINT_WORLD_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe/print/printer.h"

__attribute__((unused)) static struct shape shape_of_int = {
	.kind = SHAPE_INT, .is_signed = true, .size = 8};
__attribute__((unused)) static struct shape shape_of_unsigned = {.kind = SHAPE_INT, .size = 8};
__attribute__((unused)) static struct shape shape_of_pointer = {.kind = SHAPE_POINTER, .size = 8};
__attribute__((unused)) static struct shape shape_of_text = {
	.kind = SHAPE_STRING, .n = 16, .size = 16};
__attribute__((unused)) static struct shape shape_of_double = {
	.kind = SHAPE_FLOAT, .n = 8, .size = 8};
__attribute__((unused)) static struct shape shape_of_bytes = {
	.kind = SHAPE_BYTES, .n = 16, .size = 24};
__attribute__((unused)) static struct shape shape_of_ustack = {.kind = SHAPE_USTACK, .size = 16};
__attribute__((unused)) static struct shape shape_of_kstack = {.kind = SHAPE_KSTACK, .size = 8};

static inline void put_word(struct buf *b, uint64_t v)
{
	buf_put_u64(b, v);
}

static inline void put_chars(struct buf *b, const char *text, size_t bytes)
{
	char padded[256] = "";

	memcpy(padded, text, strlen(text));
	buf_put(b, padded, bytes);
}

static inline void put_double(struct buf *b, double v)
{
	buf_put(b, &v, sizeof(v));
}

static inline void put_bytes(struct buf *b, const void *bytes, uint32_t n)
{
	char padded[16] = "";

	memcpy(padded, bytes, n);
	buf_put_u32(b, n);
	buf_put_u32(b, 0);
	buf_put(b, padded, sizeof(padded));
}

/* --- names: sites 1 and 2, stack 7 of two frames, functions at 0x1000 and 0x2000 --- */

static inline const char *world_site(void *ctx, uint64_t site, bool is_function)
{
	(void)ctx;
	if (site != 1)
		return NULL;
	return is_function ? "leaf" : "uprobe:/bin/x:leaf";
}

static inline size_t world_stack(
	void *ctx, uint64_t id, uint64_t *addresses, size_t max, const char **reason)
{
	(void)ctx;
	(void)reason;
	if (id != 7 || max < 3)
		return 0;
	addresses[0] = 0x1000;
	addresses[1] = 0x2019;
	addresses[2] = 0xdead;
	return 3;
}

static inline bool world_symbol(uint64_t address, struct printer_symbol *out)
{
	if (address < 0x1000 || address >= 0x3000)
		return false;
	out->name = address < 0x2000 ? "leaf" : "main";
	out->offset = address & 0xfff;
	return true;
}

static inline bool world_user_symbol(
	void *ctx, uint32_t pid, uint32_t bits, uint64_t address, struct printer_symbol *out)
{
	(void)ctx;
	return pid == 42 && (bits == 32 || bits == 64) && world_symbol(address, out);
}

static inline bool world_kernel_symbol(void *ctx, uint64_t address, struct printer_symbol *out)
{
	(void)ctx;
	return world_symbol(address, out);
}

__attribute__((unused)) static const struct printer_names world_names = {.site = world_site,
	.stack = world_stack,
	.user_symbol = world_user_symbol,
	.kernel_symbol = world_kernel_symbol};

#endif
