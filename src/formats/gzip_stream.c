/* SPDX-License-Identifier: MIT */
#include "formats/gzip_stream.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/mem.h"

#define WINDOW_BITS  (15 + 16) /* zlib: + 16 asks for the gzip wrapper */
#define BLOCK_BYTES  (64 * 1024)
#define BUFFER_BYTES (256 * 1024)

struct packer {
	z_stream z;
	FILE *out;
	uint8_t block[BLOCK_BYTES];
};

/* Whether zlib took all that it was given, and `out` all that came of it. */
static bool pack(struct packer *p, const char *bytes, size_t n, int flush)
{
	int rc;

	p->z.next_in = (Bytef *)bytes;
	p->z.avail_in = (uInt)n;
	do {
		size_t packed;

		p->z.next_out = p->block;
		p->z.avail_out = sizeof(p->block);
		rc = deflate(&p->z, flush);
		packed = sizeof(p->block) - p->z.avail_out;
		if (rc == Z_STREAM_ERROR || fwrite(p->block, 1, packed, p->out) != packed)
			return false;
	} while (p->z.avail_in || (flush == Z_FINISH && rc != Z_STREAM_END));
	return true;
}

/* stdio gives no more than its buffer or one call of fwrite() at a time. */
static ssize_t stream_write(void *cookie, const char *bytes, size_t n)
{
	const size_t max = 1u << 30; /* zlib counts in unsigned int */

	n = n < max ? n : max;
	return pack(cookie, bytes, n, Z_NO_FLUSH) ? (ssize_t)n : 0;
}

static int stream_close(void *cookie)
{
	struct packer *p = cookie;
	bool is_whole = pack(p, NULL, 0, Z_FINISH);

	deflateEnd(&p->z);
	free(p);
	return is_whole ? 0 : EOF;
}

int gzip_stream_open(FILE **stream, FILE *out, int level, struct err *err)
{
	static const cookie_io_functions_t functions = {
		.write = stream_write, .close = stream_close};
	struct packer *p = mem_zalloc(sizeof(*p));

	p->out = out;
	if (deflateInit2(&p->z, level, Z_DEFLATED, WINDOW_BITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
		free(p);
		return err_set(err, ERR_FAILED, "gzip: cannot begin");
	}
	*stream = fopencookie(p, "wb", functions);
	if (!*stream) {
		deflateEnd(&p->z);
		free(p);
		return err_set(err, ERR_FAILED, "gzip: cannot begin");
	}
	setvbuf(*stream, NULL, _IOFBF, BUFFER_BYTES);
	return 0;
}
