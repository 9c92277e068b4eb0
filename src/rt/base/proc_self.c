/* SPDX-License-Identifier: MIT */
/* What this process has, from /proc. */
#include "proc_self.h"

#include "inside.h"
#include "proc_text.h"

#define ENTRIES_BYTES 256 /* on a stack that may have hardly any room */

uintptr_t maps_find_gap(uintptr_t start, uintptr_t end, uintptr_t bytes, uintptr_t reach)
{
	uintptr_t low = end > reach ? end - reach : 0x10000;
	uintptr_t high = start < UINTPTR_MAX - reach ? start + reach : UINTPTR_MAX - 0xffff;
	uintptr_t previous = 0x10000, best = 0;
	struct proc_text t;
	struct maps_line line = {0};

	if (!maps_open(&t))
		return 0;
	while (maps_next(&t, &line)) {
		uintptr_t from = previous > low ? previous : low;
		uintptr_t to = line.start < high ? line.start : high;

		/* Closely below the module, else as far above it as can be reached: the heap grows
		 * there. */
		if (to > from && to - from >= bytes + 2 * PAGE_BYTES && !line.is_main_stack &&
			(!best || to <= start))
			best = to - bytes - PAGE_BYTES;
		previous = line.end;
	}
	proc_text_close(&t);
	return PAGE_DOWN(best);
}

/*
 * A file may be mapped by several modules (dlmopen): one begins where its first bytes come again,
 * behind others. Memory without a file between two mappings of one file is a .bss in the middle.
 */
bool maps_each_module(void (*each)(void *ctx, uintptr_t start, uintptr_t end), void *ctx)
{
	struct maps_line line = {0}, first = {0};
	struct proc_text t;
	uintptr_t end = 0, last = 0;
	bool has_rest = false;

	if (!maps_open(&t))
		return false;
	while (maps_next(&t, &line)) {
		if (!line.inode && line.start == last) {
			last = line.end;
			continue;
		}
		if (!line.inode || line.inode != first.inode || line.device != first.device ||
			(!line.offset && has_rest)) {
			if (first.inode)
				each(ctx, first.start, end);
			first = line;
			has_rest = false;
		}
		has_rest |= line.offset != 0;
		end = last = line.end;
	}
	if (first.inode)
		each(ctx, first.start, end);
	proc_text_close(&t);
	return true;
}

unsigned filters_count(void)
{
	struct proc_text t;
	uint64_t n = 0;

	if (!proc_text_open(&t, "/proc/self/status"))
		return 0;
	if (!proc_text_seek(&t, "\nSeccomp_filters:\t") || !proc_text_number(&t, 10, '\n', &n))
		n = 0;
	proc_text_close(&t);
	return (unsigned)n;
}

unsigned tasks_count(void)
{
	char buffer[ENTRIES_BYTES];
	unsigned n = 0;
	int fd = raw_open("/proc/self/task", O_RDONLY | O_DIRECTORY);
	long got;

	if (fd < 0)
		return 0;
	while ((got = raw_call(SYS_getdents64, fd, buffer, sizeof(buffer))) > 0)
		for (long at = 0; at < got; at += *(uint16_t *)(buffer + at + 16))
			n += buffer[at + 19] != '.';
	raw_close(fd);
	return n;
}
