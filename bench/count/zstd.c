/* SPDX-License-Identifier: MIT */
/* zstd: text packed and unpacked, four times. */
#include <zstd.h>

#include "text.h"

static unsigned char in[8 << 20], out[9 << 20], back[8 << 20];

int main(void)
{
	size_t n = make_text(in, sizeof(in)), packed = 0;

	for (int i = 0; i < 4; i++) {
		packed = ZSTD_compress(out, sizeof(out), in, n, 5);
		ZSTD_decompress(back, sizeof(back), out, packed);
	}
	printf("%zu %zu %d\n", n, packed, memcmp(in, back, n));
	return 0;
}
