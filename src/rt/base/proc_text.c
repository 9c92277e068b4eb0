/* SPDX-License-Identifier: MIT */
/* /proc without libc. */
#include "proc_text.h"

#include <sys/ioctl.h>
#include <sys/mman.h>

#include "inside.h"

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
#define QUERY_PROTECTION 7u /* the same bits as PROT_* */
#define QUERY_SHARED	 8u

bool proc_text_open(struct proc_text *t, const char *path)
{
	t->fd = raw_open(path, O_RDONLY);
	t->n = t->at = 0;
	t->buffer = NULL;
	t->is_own_maps = false;
	return t->fd >= 0;
}

void proc_text_close(struct proc_text *t)
{
	raw_close(t->fd);
	if (t->buffer && t->buffer != t->small)
		raw_call(SYS_munmap, t->buffer, PAGE_BYTES);
}

/* A shared page is never shown as one mapping with its neighbour, which may be a stack. */
static void take_buffer(struct proc_text *t)
{
	t->buffer_bytes = PAGE_BYTES;
	t->buffer =
		raw_mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
	if (raw_failed(t->buffer)) {
		t->buffer_bytes = sizeof(t->small);
		t->buffer = t->small;
	}
}

int proc_text_byte(struct proc_text *t)
{
	if (t->at == t->n) {
		long n;

		if (!t->buffer)
			take_buffer(t);
		n = raw_call(SYS_read, t->fd, t->buffer, t->buffer_bytes);
		if (n <= 0)
			return -1;
		t->n = (size_t)n;
		t->at = 0;
	}
	return (unsigned char)t->buffer[t->at++];
}

bool proc_text_number(struct proc_text *t, unsigned base, int end, uint64_t *value)
{
	int c;

	*value = 0;
	while ((c = proc_text_byte(t)) != end) {
		unsigned digit = c >= '0' && c <= '9'	? (unsigned)(c - '0')
				 : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
							: base;

		if (digit >= base)
			return false;
		*value = *value * base + digit;
	}
	return true;
}

bool proc_text_seek(struct proc_text *t, const char *wanted)
{
	size_t matched = 0;
	int c;

	while (wanted[matched] && (c = proc_text_byte(t)) >= 0)
		matched = c == wanted[matched] ? matched + 1 : c == wanted[0];
	return !wanted[matched];
}

/* --- /proc/PID/maps ------------------------------------------------------------------------ */

/* "r-xp " */
static bool read_protection(struct proc_text *t, struct maps_line *line)
{
	line->prot = proc_text_byte(t) == 'r' ? PROT_READ : 0;
	line->prot |= proc_text_byte(t) == 'w' ? PROT_WRITE : 0;
	line->prot |= proc_text_byte(t) == 'x' ? PROT_EXEC : 0;
	line->is_shared = proc_text_byte(t) == 's';
	return proc_text_byte(t) == ' ';
}

/* The rest of the line, behind blanks. */
static void read_name(struct proc_text *t, struct maps_line *line)
{
	static const char main_stack[] = "[stack]";
	size_t n = 0, n_same = 0;
	int c;

	do
		c = proc_text_byte(t);
	while (c == ' ');
	for (; c >= 0 && c != '\n'; c = proc_text_byte(t), n++) {
		n_same += n < sizeof(main_stack) - 1 && n_same == n && c == main_stack[n];
		if (n + 1 < line->path_bytes)
			line->path[n] = (char)c;
	}
	line->is_main_stack = n == sizeof(main_stack) - 1 && n_same == n;
	if (line->path_bytes)
		line->path[n < line->path_bytes ? n : line->path_bytes - 1] = 0;
}

/* START-END PROTECTION OFFSET DEVICE INODE NAME. A line without a name has a blank behind its inode,
 * too. */
static bool read_line(struct proc_text *t, struct maps_line *line)
{
	uint64_t start, end, major, minor;

	if (!proc_text_number(t, 16, '-', &start) || !proc_text_number(t, 16, ' ', &end) ||
		!read_protection(t, line) || !proc_text_number(t, 16, ' ', &line->offset) ||
		!proc_text_number(t, 16, ':', &major) || !proc_text_number(t, 16, ' ', &minor) ||
		!proc_text_number(t, 10, ' ', &line->inode))
		return false;
	line->start = (uintptr_t)start;
	line->end = (uintptr_t)end;
	line->device = major << 32 | minor;
	read_name(t, line);
	return true;
}

bool maps_open(struct proc_text *t)
{
	if (!proc_text_open(t, "/proc/self/maps"))
		return false;
	t->is_own_maps = true;
	return true;
}

bool maps_next(struct proc_text *t, struct maps_line *line)
{
	bool is_there;

	do
		is_there = read_line(t, line);
	while (is_there && t->is_own_maps && line->start == (uintptr_t)t->buffer);
	return is_there;
}

bool maps_query(const struct proc_text *t, uintptr_t address, struct maps_line *line)
{
	struct query q = {.bytes = sizeof(q), .address = address};

	if (raw_call(SYS_ioctl, t->fd, QUERY, &q) < 0)
		return false;
	line->start = (uintptr_t)q.start;
	line->end = (uintptr_t)q.end;
	line->prot = q.vma_flags & QUERY_PROTECTION;
	line->is_shared = q.vma_flags & QUERY_SHARED;
	line->is_main_stack = false;
	line->offset = q.offset;
	line->device = (uint64_t)q.dev_major << 32 | q.dev_minor;
	line->inode = q.inode;
	return true;
}

bool maps_find(uintptr_t address, struct maps_line *line)
{
	struct proc_text t;
	bool found = false;

	if (!maps_open(&t))
		return false;
	while (!found && maps_next(&t, line))
		found = address >= line->start && address < line->end;
	proc_text_close(&t);
	return found;
}
