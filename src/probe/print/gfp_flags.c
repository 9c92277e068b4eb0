/* SPDX-License-Identifier: MIT */
/*
 * Flags of the kernel's allocator of pages by name. Sets that have a name of their own come first, the largest
 * before its parts; a bit that no name is known for stays a number. The numbers are those of Linux 5.18 to 6.18
 * up to bit 22; others differ from kernel to kernel.
 */
#include <inttypes.h>

#include "probe/print/print_internal.h"

#define BIT(n)	(UINT64_C(1) << (n))
#define RECLAIM (BIT(10) | BIT(11))
#define KERNEL	(RECLAIM | BIT(6) | BIT(7))
#define USER	(KERNEL | BIT(20))

static const struct {
	uint64_t flags;
	const char *name;
} names[] = {
	{USER | BIT(1) | BIT(3), "GFP_HIGHUSER_MOVABLE"},
	{USER | BIT(1), "GFP_HIGHUSER"},
	{USER, "GFP_USER"},
	{KERNEL | BIT(22), "GFP_KERNEL_ACCOUNT"},
	{KERNEL, "GFP_KERNEL"},
	{RECLAIM | BIT(6), "GFP_NOFS"},
	{BIT(5) | BIT(11), "GFP_ATOMIC"},
	{RECLAIM, "GFP_NOIO"},
	{BIT(11) | BIT(13), "GFP_NOWAIT"},
	{BIT(0), "GFP_DMA"},
	{BIT(1), "__GFP_HIGHMEM"},
	{BIT(2), "GFP_DMA32"},
	{BIT(3), "__GFP_MOVABLE"},
	{BIT(4), "__GFP_RECLAIMABLE"},
	{BIT(5), "__GFP_HIGH"},
	{BIT(6), "__GFP_IO"},
	{BIT(7), "__GFP_FS"},
	{BIT(8), "__GFP_ZERO"},
	{BIT(10), "__GFP_DIRECT_RECLAIM"},
	{BIT(11), "__GFP_KSWAPD_RECLAIM"},
	{BIT(12), "__GFP_WRITE"},
	{BIT(13), "__GFP_NOWARN"},
	{BIT(14), "__GFP_RETRY_MAYFAIL"},
	{BIT(15), "__GFP_NOFAIL"},
	{BIT(16), "__GFP_NORETRY"},
	{BIT(17), "__GFP_MEMALLOC"},
	{BIT(18), "__GFP_COMP"},
	{BIT(19), "__GFP_NOMEMALLOC"},
	{BIT(20), "__GFP_HARDWALL"},
	{BIT(21), "__GFP_THISNODE"},
	{BIT(22), "__GFP_ACCOUNT"},
};

void print_gfp_flags(uint64_t flags, struct buf *out)
{
	const char *separator = "";

	if (!flags)
		buf_put_cstr(out, "none");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if ((flags & names[i].flags) != names[i].flags)
			continue;
		buf_printf(out, "%s%s", separator, names[i].name);
		separator = "|";
		flags &= ~names[i].flags;
	}
	if (flags)
		buf_printf(out, "%s0x%" PRIx64, separator, flags);
}
