/* SPDX-License-Identifier: MIT */
#include "formats/gzip.h"

#include <zlib.h>

#define GZIP_WINDOW_BITS (15 + 16) /* zlib: + 16 asks for the gzip wrapper */
#define GZIP_BLOCK_BYTES (64 * 1024)
#define GZIP_INPUT_BYTES (1u << 30) /* zlib counts in unsigned int */

int gzip_pack(struct span bytes, struct buf *to, struct err *err)
{
	uint8_t block[GZIP_BLOCK_BYTES];
	z_stream z = {0};
	int rc;

	if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW_BITS, 8,
		    Z_DEFAULT_STRATEGY) != Z_OK)
		return err_set(err, ERR_FAILED, "gzip: cannot begin");
	z.next_in = (Bytef *)bytes.p;
	do {
		if (!z.avail_in) {
			z.avail_in = bytes.n > GZIP_INPUT_BYTES ? GZIP_INPUT_BYTES : (uInt)bytes.n;
			bytes.n -= z.avail_in;
		}
		z.next_out = block;
		z.avail_out = sizeof(block);
		rc = deflate(&z, bytes.n ? Z_NO_FLUSH : Z_FINISH);
		buf_put(to, block, sizeof(block) - z.avail_out);
	} while (rc == Z_OK || rc == Z_BUF_ERROR);
	deflateEnd(&z);
	if (rc != Z_STREAM_END)
		return err_set(err, ERR_FAILED, "gzip: error %d", rc);
	return 0;
}
