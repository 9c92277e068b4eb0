/* SPDX-License-Identifier: MIT */
/*
 * Puts the translator (rt/translate/) into a process whose threads stand still, and lets each of them
 * begin in it. Nothing is opened by the process: its memory is asked for by a system call that it makes
 * for us, and filled from here; so roots, namespaces and users of its own do not matter.
 */
#ifndef WEIR_TRANSLATE_INJECT_TRANSLATOR_H
#define WEIR_TRANSLATE_INJECT_TRANSLATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/file.h"
#include "elf/elf_file.h"
#include "process/ptrace/remote_call.h"
#include "rt/translate/translate_abi.h"

/* libweirtranslate.so. Addresses count from its first byte. */
struct translator_image {
	struct file_map file;
	struct elf_file elf;
	uint64_t low;	/* the address that its first page was linked to */
	uint64_t bytes; /* of memory, whole pages */
	uint64_t header, start, service, waits, asked;
};
int translator_image_open(struct translator_image *image, const char *path, struct err *err);
/* Also of one that could not be opened, or is all zero. */
void translator_image_close(struct translator_image *image);

/* Where it is in a process. */
struct translator_place {
	uint64_t base; /* 0: nowhere */
	uint64_t header, start, service, waits, asked;
	uint64_t end;	/* of all that was mapped for it here */
	uint64_t slots; /* a stack to begin with, and a struct translate_boot, for each thread */
};

/* `t` is any thread of the process; all of them stand still, as they do when they were interrupted. They are as
 * before, too, when this fails: then with a phrase, which begins with no subject. `n_threads` are to begin in it. */
int translator_inject(const struct translator_image *image, struct remote_thread *t,
	size_t n_threads, uint64_t options, struct translator_place *place, struct err *err);

/* The thread, number `i` of those, begins in the translator when it goes on, and from there in its program where
 * it stands now. A system call that it was interrupted in is made again; until then signals wait. */
int translator_start(const struct translator_place *place, struct remote_thread *t, size_t i,
	bool is_attached, struct err *err);

/* All threads have left it: nothing of it stays mapped. `t` is one of them and stands still, as it does afterwards,
 * too. False: something is still in use, or could not be taken away. */
bool translator_remove(const struct translator_place *place, struct remote_thread *t);

#endif
