/* SPDX-License-Identifier: MIT */
/* bzip2: text packed and unpacked. */
#include <bzlib.h>

#include "text.h"

static unsigned char in[4 << 20], out[5 << 20], back[4 << 20];

int main(void)
{
	size_t n = make_text(in, sizeof(in));
	unsigned packed = sizeof(out), unpacked = sizeof(back);

	BZ2_bzBuffToBuffCompress((char *)out, &packed, (char *)in, (unsigned)n, 9, 0, 30);
	BZ2_bzBuffToBuffDecompress((char *)back, &unpacked, (char *)out, packed, 0, 0);
	printf("%zu %u %d\n", n, packed, memcmp(in, back, n));
	return 0;
}
