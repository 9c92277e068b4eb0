/* SPDX-License-Identifier: MIT */
/*
 * What the near side and the agent send each other over one stream of bytes a direction: parcels, each a kind, a
 * length and so many bytes (docs/format/remote.md). A parcel is looked at when it is whole.
 */
#ifndef WEIR_REMOTE_PARCEL_H
#define WEIR_REMOTE_PARCEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"

#define PARCEL_BYTES_MAX ((size_t)4 << 20)  /* of the content of one */
#define PARCEL_PIECE_MAX ((size_t)32 << 10) /* of what is sent on as it comes */
#define PARCEL_STDIN_ROOM                                                                          \
	((size_t)128 << 10) /* that may be on its way to a command that does not read */
/* Each side says something that often, and takes silence that long for a broken connection. */
#define PARCEL_BEAT_MS	  2000
#define PARCEL_SILENCE_MS 15000

enum parcel_kind {
	/* To the agent. */
	PARCEL_ARGUMENT = 1, /* of the command line of weir: its bytes */
	PARCEL_FILE = 2,     /* likewise, but a file: text in front, NUL, name, NUL, content */
	PARCEL_START = 3,    /* the command line is whole; a byte: 1 = standard input follows */
	PARCEL_STDIN = 4,    /* bytes; none: its end */
	PARCEL_SIGNAL = 5,   /* a byte: its number */
	PARCEL_BEAT = 6,     /* to both: still there */

	/* To the near side. */
	PARCEL_TRACE = 16,     /* bytes of the trace */
	PARCEL_STDOUT = 17,    /* bytes of the command */
	PARCEL_STDERR = 18,    /* likewise */
	PARCEL_SENTENCES = 19, /* bytes of what weir itself says */
	PARCEL_TAKEN = 20,     /* u32: so many more bytes of standard input were read */
	PARCEL_END = 21	       /* i32: the wait status of weir there; the last one */
};

struct parcel {
	enum parcel_kind kind;
	struct span content; /* borrowed from the parcels' bytes, until the next call */
};

/* A stream of them that comes in pieces. */
struct parcels {
	struct buf bytes;
	size_t used; /* bytes of parcels that were given out */
};

void parcels_add(struct parcels *p, struct span bytes);
/* 1 with the next whole one, 0 when more bytes are needed, or negative: these are no parcels. */
int parcels_next(struct parcels *p, struct parcel *out, struct err *err);
/* Whether a part of one is there. */
bool parcels_is_within(const struct parcels *p);
void parcels_release(struct parcels *p);

void parcel_put(struct buf *to, enum parcel_kind kind, struct span content);
void parcel_put_number(struct buf *to, enum parcel_kind kind, uint32_t number);
/* The content is one number; 0 when it is not. */
uint32_t parcel_number(const struct parcel *p);

#endif
