/* SPDX-License-Identifier: MIT */
/* /proc/self/maps without libc: which mapping holds an address, and where nothing is mapped. */
#include "hook.h"

#include <fcntl.h>

#define BUFFER_BYTES 4096

struct maps_reader {
	int fd;
	size_t n, at;
	char buffer[BUFFER_BYTES];
};

struct maps_line {
	uintptr_t start, end;
	bool is_main_stack;
};

static int next_byte(struct maps_reader *r)
{
	if (r->at == r->n) {
		long n = raw_call(SYS_read, r->fd, r->buffer, BUFFER_BYTES);

		if (n <= 0)
			return -1;
		r->n = (size_t)n;
		r->at = 0;
	}
	return (unsigned char)r->buffer[r->at++];
}

static bool read_hex(struct maps_reader *r, uintptr_t *value, int end)
{
	int c;

	*value = 0;
	while ((c = next_byte(r)) != end) {
		if (c >= '0' && c <= '9')
			*value = *value << 4 | (uintptr_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			*value = *value << 4 | (uintptr_t)(c - 'a' + 10);
		else
			return false;
	}
	return true;
}

static bool next_line(struct maps_reader *r, struct maps_line *line)
{
	static const char name[] = "[stack]";
	size_t matched = 0;
	int c;

	if (!read_hex(r, &line->start, '-') || !read_hex(r, &line->end, ' '))
		return false;
	line->is_main_stack = false;
	while ((c = next_byte(r)) >= 0 && c != '\n') {
		matched = c == name[matched] ? matched + 1 : c == name[0];
		if (matched == sizeof(name) - 1) {
			line->is_main_stack = true;
			matched = 0;
		}
	}
	return true;
}

static bool maps_open(struct maps_reader *r)
{
	r->n = r->at = 0;
	r->fd = (int)raw_call(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
	return r->fd >= 0;
}

bool maps_find(uintptr_t address, struct mapping_bounds *bounds)
{
	struct maps_reader r;
	struct maps_line line;
	bool found = false;

	if (!maps_open(&r))
		return false;
	while (!found && next_line(&r, &line)) {
		found = address >= line.start && address < line.end;
		*bounds = (struct mapping_bounds){line.start, line.end, line.is_main_stack};
	}
	raw_call(SYS_close, r.fd);
	return found;
}

bool maps_find_main_stack(struct mapping_bounds *bounds, uintptr_t *below)
{
	struct maps_reader r;
	struct maps_line line;
	bool found = false;

	*below = 0;
	if (!maps_open(&r))
		return false;
	while (!found && next_line(&r, &line)) {
		found = line.is_main_stack;
		if (!found)
			*below = line.end;
		*bounds = (struct mapping_bounds){line.start, line.end, line.is_main_stack};
	}
	raw_call(SYS_close, r.fd);
	return found;
}

uintptr_t maps_find_gap(uintptr_t start, uintptr_t end, uintptr_t bytes, uintptr_t reach)
{
	uintptr_t low = end > reach ? end - reach : 0x10000;
	uintptr_t high = start < UINTPTR_MAX - reach ? start + reach : UINTPTR_MAX - 0xffff;
	uintptr_t previous = 0x10000, best = 0;
	struct maps_reader r;
	struct maps_line line;

	if (!maps_open(&r))
		return 0;
	while (next_line(&r, &line)) {
		uintptr_t from = previous > low ? previous : low;
		uintptr_t to = line.start < high ? line.start : high;

		/* Closely below the module, else as far above it as can be reached: the heap grows
		 * there. */
		if (to > from && to - from >= bytes + 2 * PAGE_BYTES && !line.is_main_stack &&
			(!best || to <= start))
			best = to - bytes - PAGE_BYTES;
		previous = line.end;
	}
	raw_call(SYS_close, r.fd);
	return best & ~(uintptr_t)(PAGE_BYTES - 1);
}
