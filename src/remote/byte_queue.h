/* SPDX-License-Identifier: MIT */
/* Bytes on their way to a descriptor that takes some now and some later. Zero-initialise it; put bytes into `bytes`. */
#ifndef WEIR_REMOTE_BYTE_QUEUE_H
#define WEIR_REMOTE_BYTE_QUEUE_H

#include <sys/types.h>

#include "base/buf.h"

struct byte_queue {
	struct buf bytes;
	size_t used; /* of these, written already */
};

static inline size_t byte_queue_left(const struct byte_queue *q)
{
	return q->bytes.n - q->used;
}

/* One write of at most `max` bytes: how many went, 0 when none could at the moment, or a negative errno. */
ssize_t byte_queue_write(struct byte_queue *q, int fd, size_t max);
/* Forgets what is left. */
void byte_queue_drop(struct byte_queue *q);
void byte_queue_release(struct byte_queue *q);

#endif
