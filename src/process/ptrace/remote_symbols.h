/* SPDX-License-Identifier: MIT */
/*
 * The code of another process: which images are mapped where, where their functions are, which
 * addresses belong to functions that hold locks of the loader or the allocator ("delicate"), and
 * where a few bytes that nobody needs have room for code. As of the moment it was opened.
 */
#ifndef WEIR_PROCESS_PTRACE_REMOTE_SYMBOLS_H
#define WEIR_PROCESS_PTRACE_REMOTE_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/mem.h"
#include "process/images.h"

struct remote_symbols {
	pid_t pid;
	bool is_64;
	struct images *images;
	struct addrspace *space;
	VEC(struct remote_image) all; /* by image number */
};

int remote_symbols_open(struct remote_symbols **out, pid_t pid, struct err *err);
void remote_symbols_close(struct remote_symbols *s);

enum remote_place {
	REMOTE_PLACE_PROGRAM,  /* code of the program, or code made at run time */
	REMOTE_PLACE_LIBC,     /* the C library, or one that wraps it, but not a delicate part */
	REMOTE_PLACE_DELICATE, /* the loader, the allocator, fork, ... */
	REMOTE_PLACE_NOWHERE,  /* nothing executable is there */
};
enum remote_place remote_symbols_place(const struct remote_symbols *s, uint64_t addr);
/* Whether the main program has an allocator of its own in it, of which not all functions can be
 * told by their names. */
bool remote_symbols_program_allocates(const struct remote_symbols *s);

/* The address of an exported function of the image whose file has the given base name (NULL: of any
 * image, the C library first). 0 when there is none. */
uint64_t remote_symbols_find(const struct remote_symbols *s, const char *image, const char *name);
/* Likewise of a variable, and its size; 0 when there is none. */
uint64_t remote_symbols_find_object(
	const struct remote_symbols *s, const char *image, const char *name, uint64_t *bytes);
bool remote_symbols_has_image(const struct remote_symbols *s, const char *image);

/* The first of the stretches of at least `bytes` executable bytes behind the end of an image's code
 * (the rest of its last page) that `fits`; 0 when none does. */
uint64_t remote_symbols_find_gap(const struct remote_symbols *s, size_t bytes,
	bool (*fits)(void *ctx, uint64_t addr), void *ctx);

/* Makes the unwind tables, which takes long in a large program, so that none has to be made while a
 * thread stands still. */
void remote_symbols_prepare_walks(const struct remote_symbols *s);

#endif
