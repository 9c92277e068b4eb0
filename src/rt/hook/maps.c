/* SPDX-License-Identifier: MIT */
/* /proc/self without libc: which mapping holds an address, where nothing is mapped, which mappings
 * are one module, how many threads there are. */
#include "hook.h"

#include <fcntl.h>
#include <sys/mman.h>

/* The stack may be that of a coroutine, with hardly any room on it. */
#define SMALL_BYTES 256

struct maps_reader {
	int fd;
	size_t n, at;
	char *buffer; /* a page, or `small` where there is none */
	size_t buffer_bytes;
	char small[SMALL_BYTES];
};

/* A shared page is never shown as one mapping with its neighbour, which may be a stack. */
static bool reader_open(struct maps_reader *r, const char *path)
{
	r->n = r->at = 0;
	r->fd = (int)raw_call(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	if (r->fd < 0)
		return false;
	r->buffer_bytes = PAGE_BYTES;
	r->buffer = raw_mmap(
		NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
	if (raw_failed(r->buffer)) {
		r->buffer_bytes = SMALL_BYTES;
		r->buffer = r->small;
	}
	return true;
}

static void reader_close(struct maps_reader *r)
{
	raw_call(SYS_close, r->fd);
	if (r->buffer != r->small)
		raw_call(SYS_munmap, r->buffer, PAGE_BYTES);
}

struct maps_line {
	uintptr_t start, end;
	int prot; /* PROT_* */
	bool is_shared;
	uint64_t offset, device, inode; /* inode 0: no file */
	bool is_main_stack;
};

static int next_byte(struct maps_reader *r)
{
	if (r->at == r->n) {
		long n = raw_call(SYS_read, r->fd, r->buffer, r->buffer_bytes);

		if (n <= 0)
			return -1;
		r->n = (size_t)n;
		r->at = 0;
	}
	return (unsigned char)r->buffer[r->at++];
}

static bool read_number(struct maps_reader *r, unsigned base, uint64_t *value, int end)
{
	int c;

	*value = 0;
	while ((c = next_byte(r)) != end) {
		unsigned digit = c >= '0' && c <= '9'	? (unsigned)(c - '0')
				 : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
							: base;

		if (digit >= base)
			return false;
		*value = *value * base + digit;
	}
	return true;
}

/* "r-xp " */
static bool read_protection(struct maps_reader *r, struct maps_line *line)
{
	line->prot = next_byte(r) == 'r' ? PROT_READ : 0;
	line->prot |= next_byte(r) == 'w' ? PROT_WRITE : 0;
	line->prot |= next_byte(r) == 'x' ? PROT_EXEC : 0;
	line->is_shared = next_byte(r) == 's';
	return next_byte(r) == ' ';
}

/* The rest of the line is the name. */
static bool read_name(struct maps_reader *r, struct maps_line *line)
{
	static const char name[] = "[stack]";
	size_t matched = 0;
	int c;

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

/* A line without a name has a blank behind its inode, too. */
static bool parse_line(struct maps_reader *r, struct maps_line *line)
{
	uint64_t start, end, major, minor;

	if (!read_number(r, 16, &start, '-') || !read_number(r, 16, &end, ' ') ||
		!read_protection(r, line) || !read_number(r, 16, &line->offset, ' ') ||
		!read_number(r, 16, &major, ':') || !read_number(r, 16, &minor, ' ') ||
		!read_number(r, 10, &line->inode, ' '))
		return false;
	line->start = (uintptr_t)start;
	line->end = (uintptr_t)end;
	line->device = major << 32 | minor;
	return read_name(r, line);
}

/* All but the reader's own page. */
static bool next_line(struct maps_reader *r, struct maps_line *line)
{
	bool is_there;

	do
		is_there = parse_line(r, line);
	while (is_there && line->start == (uintptr_t)r->buffer);
	return is_there;
}

static bool maps_open(struct maps_reader *r)
{
	return reader_open(r, "/proc/self/maps");
}

static struct mapping_bounds bounds_of(const struct maps_line *line)
{
	return (struct mapping_bounds){line->start, line->end, line->is_main_stack, line->prot,
		line->is_shared, line->inode != 0};
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
		*bounds = bounds_of(&line);
	}
	reader_close(&r);
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
		*bounds = bounds_of(&line);
	}
	reader_close(&r);
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
	reader_close(&r);
	return best & ~(uintptr_t)(PAGE_BYTES - 1);
}

/*
 * A file may be mapped by several modules (dlmopen): one begins where its first bytes come again,
 * behind others. Memory without a file between two mappings of one file is a .bss in the middle.
 */
bool maps_each_module(void (*each)(void *ctx, uintptr_t start, uintptr_t end), void *ctx)
{
	struct maps_line line, first = {0};
	struct maps_reader r;
	uintptr_t end = 0, last = 0;
	bool has_rest = false;

	if (!maps_open(&r))
		return false;
	while (next_line(&r, &line)) {
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
	reader_close(&r);
	return true;
}

/* The loader has just opened and read files, so that this is permitted, too. */
unsigned filters_count(void)
{
	static const char name[] = "\nSeccomp_filters:\t";
	struct maps_reader r;
	size_t matched = 0;
	uint64_t n = 0;
	int c;

	if (!reader_open(&r, "/proc/self/status"))
		return 0;
	while (matched < sizeof(name) - 1 && (c = next_byte(&r)) >= 0)
		matched = c == name[matched] ? matched + 1 : c == name[0];
	if (matched < sizeof(name) - 1 || !read_number(&r, 10, &n, '\n'))
		n = 0;
	reader_close(&r);
	return (unsigned)n;
}

unsigned tasks_count(void)
{
	char buffer[SMALL_BYTES];
	unsigned n = 0;
	long fd = raw_call(
		SYS_openat, AT_FDCWD, "/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	long got;

	if (fd < 0)
		return 0;
	while ((got = raw_call(SYS_getdents64, fd, buffer, sizeof(buffer))) > 0)
		for (long at = 0; at < got; at += *(uint16_t *)(buffer + at + 16))
			n += buffer[at + 19] != '.';
	raw_call(SYS_close, fd);
	return n;
}
