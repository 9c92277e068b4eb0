/* SPDX-License-Identifier: MIT */
/* zlib: text packed and unpacked. */
#include <zlib.h>

#include "text.h"

static unsigned char in[8 << 20], out[9 << 20], back[8 << 20];

int main(void)
{
	size_t n = make_text(in, sizeof(in));
	uLongf packed = sizeof(out), unpacked = sizeof(back);

	compress2(out, &packed, in, n, 6);
	uncompress(back, &unpacked, out, packed);
	printf("%zu %lu %d\n", n, packed, memcmp(in, back, n));
	return 0;
}
