/* SPDX-License-Identifier: MIT */
/*
 * Files that commands write, and what may stand in their way. One rule for all of them: what is
 * moved, replaced or removed is a regular file that is ours, which its first bytes tell, or that
 * this run has made itself. A device, FIFO or socket is written through; a link is followed and
 * stays. Only what is text for others (an export) overwrites any regular file that it is told to.
 */
#ifndef WEIR_BASE_OUTPUT_H
#define WEIR_BASE_OUTPUT_H

#include <stdbool.h>

#include "base/err.h"

enum output_place {
	OUTPUT_PLACE_FREE,    /* nothing is there */
	OUTPUT_PLACE_EMPTY,   /* a regular file without contents, as mktemp makes it */
	OUTPUT_PLACE_OURS,    /* a regular file that weir wrote, or a program that counts */
	OUTPUT_PLACE_FOREIGN, /* any other regular file */
	OUTPUT_PLACE_THROUGH  /* what is no regular file */
};

/* Looks through links. A file that cannot be read is foreign. */
enum output_place output_place(const char *path);
/* 0 when whole files of ours may take the place, or be written there; else the sentence. */
int output_check(const char *path, struct err *err);
/* 0 unless writing to `path` would overwrite the regular file `input`, which is read. */
int output_check_apart(const char *path, const char *input, struct err *err);
/* Where a chain of links ends, also when nothing is there yet; a link itself only when that cannot be
 * told (an open file that was removed). Owned by the caller. */
char *output_follow(const char *path);

enum output_mode {
	OUTPUT_MODE_OURS,     /* a file of ours is kept as PATH.old; a foreign one is refused */
	OUTPUT_MODE_OVERWRITE /* any regular file gets the new contents */
};

/* An output that is being written. */
struct output {
	char *path;   /* links followed; owned */
	char *old;    /* where the file went that was there; NULL = there was none; owned */
	int fd;	      /* of the regular file, our own; -1 = it is none */
	bool is_made; /* the file is of this run; else it was there and is overwritten */
};
#define OUTPUT_NONE ((struct output){.fd = -1})

/* Opens the file for writing, empty; `*fd` is the caller's. On failure all is as before, but for an
 * older PATH.old. A FIFO waits for its reader until it is given up. */
int output_open(
	struct output *o, int *fd, const char *path, enum output_mode mode, struct err *err);
/* The output is of no use: removes the file if this run made it, empties it if it was there before,
 * and puts the older one back. Devices and pipes stay as they are. */
void output_discard(struct output *o);
void output_release(struct output *o);

/* For whoever waits for a reader where signals are blocked: one that ends us has come. */
bool output_is_given_up(void);

#endif
