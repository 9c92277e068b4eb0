/* SPDX-License-Identifier: MIT */
/* Parts of the reader of stream files: each section, and the code when all of it is there. */
#ifndef WEIR_PROBE_STREAM_STREAM_READER_H
#define WEIR_PROBE_STREAM_STREAM_READER_H

#include "base/err.h"
#include "base/span.h"
#include "probe/stream/stream_layout.h"

struct stream_reader {
	struct stream *s;      /* being filled */
	struct shape **shapes; /* by number */
	uint8_t *shape_depths; /* of each */
	uint32_t *shape_weights;
	uint32_t n_shapes;
	struct cursor c;	/* in the section being read */
	enum mode mode;		/* of its code and lines */
	const char *section;	/* its name, for sentences */
	uint32_t item_i, count; /* item of the section, how many it has */
	struct err *err;
};

/* The items of one section; the cursor is at its first byte. */
int stream_read_section(struct stream_reader *r, enum stream_section type);

/* Constants, pieces and jumps of one mode, when everything has been read. */
int stream_check_code(const struct stream *s, enum mode mode, struct err *err);

#endif
