/* SPDX-License-Identifier: MIT */
/* /proc/self/maps without libc. */
#include <fcntl.h>
#include <sys/ioctl.h>

#include "runtime.h"

/* linux/fs.h of Linux 6.11 */
struct query {
	uint64_t bytes, flags, address;
	uint64_t start, end, vma_flags, page_bytes, offset, inode;
	uint32_t dev_major, dev_minor, name_bytes, build_id_bytes;
	uint64_t name, build_id;
};
#ifndef QUERY
#define QUERY _IOWR('f', 17, struct query)
#endif
#define QUERY_READABLE 1u
#define QUERY_WRITABLE 2u

static int next_byte(struct maps_reader *r)
{
	if (r->at == r->n) {
		long n = raw_call(SYS_read, r->fd, r->buffer, sizeof(r->buffer));

		if (n <= 0)
			return -1;
		r->n = (size_t)n;
		r->at = 0;
	}
	return (unsigned char)r->buffer[r->at++];
}

/* Hexadecimal or decimal, up to and over the byte `end`. */
static bool read_number(struct maps_reader *r, uint64_t *value, uint32_t base, int end)
{
	int c;

	*value = 0;
	while ((c = next_byte(r)) != end) {
		uint32_t digit = c >= '0' && c <= '9' ? (uint32_t)c - '0' : (uint32_t)c - 'a' + 10;

		if (c < 0 || digit >= base)
			return false;
		*value = *value * base + digit;
	}
	return true;
}

static bool skip_to(struct maps_reader *r, int end)
{
	int c;

	while ((c = next_byte(r)) != end)
		if (c < 0)
			return false;
	return true;
}

static bool equals(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

/* START-END PERM OFFSET DEVICE INODE   PATH */
bool count_maps_next(struct maps_reader *r, struct maps_line *line)
{
	size_t n = 0;
	int c;

	if (!read_number(r, &line->start, 16, '-') || !read_number(r, &line->end, 16, ' '))
		return false;
	line->is_readable = next_byte(r) == 'r';
	line->is_writable = next_byte(r) == 'w';
	if (!skip_to(r, ' ') || !skip_to(r, ' ') || !skip_to(r, ' '))
		return false;
	line->inode = 0;
	while ((c = next_byte(r)) >= '0' && c <= '9')
		line->inode = line->inode * 10 + (uint32_t)c - '0';
	while (c == ' ')
		c = next_byte(r);
	for (; c >= 0 && c != '\n'; c = next_byte(r))
		if (n + 1 < sizeof(line->path))
			line->path[n++] = (char)c;
	line->path[n] = 0;
	line->is_main_stack = equals(line->path, "[stack]");
	return true;
}

bool count_maps_open(struct maps_reader *r, const char *path)
{
	r->n = r->at = 0;
	r->fd = (int)raw_call(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	return r->fd >= 0;
}

void count_maps_close(struct maps_reader *r)
{
	raw_call(SYS_close, r->fd);
}

bool count_maps_query(const struct maps_reader *r, uint64_t address, struct maps_line *line)
{
	struct query q = {.bytes = sizeof(q), .address = address};

	if (raw_call(SYS_ioctl, r->fd, QUERY, &q) < 0)
		return false;
	line->start = q.start;
	line->end = q.end;
	line->inode = q.inode;
	line->is_readable = q.vma_flags & QUERY_READABLE;
	line->is_writable = q.vma_flags & QUERY_WRITABLE;
	line->is_main_stack = count_library.main_stack - q.start < q.end - q.start;
	return true;
}
