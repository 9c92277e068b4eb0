/* SPDX-License-Identifier: MIT */
/* Small files of /proc, read byte by byte: above all which memory is mapped where. */
#ifndef WEIR_RT_BASE_PROC_TEXT_H
#define WEIR_RT_BASE_PROC_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct proc_text {
	int fd;
	size_t n, at;
	char *buffer; /* a page, or `small` where there is none; NULL: nothing was read yet */
	size_t buffer_bytes;
	bool is_own_maps; /* /proc/self/maps, which show the page */
	char small[256];
};

/* False: it cannot be opened, and need not be closed. */
bool proc_text_open(struct proc_text *t, const char *path);
void proc_text_close(struct proc_text *t);
int proc_text_byte(struct proc_text *t); /* -1 at the end */
/* A number up to the byte `end`, which is read as well; false: it is none. */
bool proc_text_number(struct proc_text *t, unsigned base, int end, uint64_t *value);
/* Reads on up to the end of the next place that has this; false: there is none. In `wanted` its
 * first byte comes but once. */
bool proc_text_seek(struct proc_text *t, const char *wanted);

/* A mapping. */
struct maps_line {
	uintptr_t start, end;
	int prot; /* PROT_* */
	bool is_shared;
	bool is_main_stack;		/* the first thread's */
	uint64_t offset, device, inode; /* inode 0: no file */
	char *path;			/* where its name goes, set by the caller; cut off at ... */
	size_t path_bytes;		/* ... so many; 0: it is not wanted */
};

bool maps_open(struct proc_text *t); /* of this process */
/* The next one, without the page that it is read into. */
bool maps_next(struct proc_text *t, struct maps_line *line);
/* The one that has this address, as far as the kernel says it without being read: not its name,
 * nor whether it is the main stack. Since Linux 6.11; else false. */
bool maps_query(const struct proc_text *t, uintptr_t address, struct maps_line *line);
/* The one that has this address. Reads all up to it. */
bool maps_find(uintptr_t address, struct maps_line *line);

#pragma GCC visibility pop

#endif
