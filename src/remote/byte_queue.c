/* SPDX-License-Identifier: MIT */
#include "remote/byte_queue.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define MOVE_BYTES ((size_t)64 << 10) /* that are used up before the rest moves to the front */

ssize_t byte_queue_write(struct byte_queue *q, int fd, size_t max)
{
	size_t left = byte_queue_left(q);
	ssize_t n = left ? write(fd, q->bytes.p + q->used, left < max ? left : max) : 0;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	q->used += (size_t)n;
	if (q->used == q->bytes.n) {
		q->bytes.n = q->used = 0;
	} else if (q->used >= MOVE_BYTES && q->used >= byte_queue_left(q)) {
		memmove(q->bytes.p, q->bytes.p + q->used, byte_queue_left(q));
		q->bytes.n -= q->used;
		q->used = 0;
	}
	return n;
}

void byte_queue_drop(struct byte_queue *q)
{
	q->bytes.n = q->used = 0;
}

void byte_queue_release(struct byte_queue *q)
{
	buf_release(&q->bytes);
	q->used = 0;
}
