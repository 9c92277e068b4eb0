/* SPDX-License-Identifier: MIT */
/* Any bytes as a trace stream. Lengths and checksums are made right first, or nothing else would
 * ever be looked at; what is accepted is dumped, and written it is accepted again and stays the
 * same. */
#include <stdlib.h>

#include "base/crc32c.h"
#include "base/mem.h"
#include "probe/stream/stream_file.h"
#include "probe/stream/stream_layout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void seal(uint8_t *p, uint64_t n)
{
	uint32_t crc;

	if (n < STREAM_FIRST_OFFSET)
		return;
	memcpy(p + 16, &n, sizeof(n));
	for (uint8_t *row = p + STREAM_HEADER_BYTES; row < p + STREAM_FIRST_OFFSET;
		row += STREAM_ROW_BYTES) {
		uint64_t at, length;

		memcpy(&at, row + 8, sizeof(at));
		memcpy(&length, row + 16, sizeof(length));
		if (at > n || length > n - at)
			continue;
		crc = crc32c(0, p + at, length);
		memcpy(row + 4, &crc, sizeof(crc));
	}
	crc = crc32c(0, p + STREAM_HEADER_BYTES, STREAM_FIRST_OFFSET - STREAM_HEADER_BYTES);
	memcpy(p + 24, &crc, sizeof(crc));
	crc = crc32c(0, p, STREAM_HEADER_BYTES - 4);
	memcpy(p + 28, &crc, sizeof(crc));
}

static void check_again(const struct stream *s)
{
	struct stream *again = NULL;
	struct buf first = {0}, second = {0}, text = {0};

	stream_file_write(s, &first);
	if (stream_file_read(buf_span(&first), &again, NULL) < 0)
		abort();
	stream_file_write(again, &second);
	if (first.n != second.n || memcmp(first.p, second.p, first.n))
		abort();
	stream_dump(again, &text);
	stream_free(again);
	buf_release(&first);
	buf_release(&second);
	buf_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	uint8_t *copy = n ? mem_dup(data, n) : NULL;
	struct stream *s = NULL;
	struct err err;

	stream_file_read((struct span){data, n}, &s, &err);
	stream_free(s);
	s = NULL;
	if (n)
		seal(copy, n);
	if (stream_file_read((struct span){copy, n}, &s, &err) >= 0)
		check_again(s);
	stream_free(s);
	free(copy);
	return 0;
}
