/* SPDX-License-Identifier: MIT */
/* Sections compressed with SHF_COMPRESSED (gcc -gz, objcopy --compress-debug-sections). */
#include "elf/elf_file.h"

#include <elf.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include "base/mem.h"

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif
/* No real section shrinks more than this; deflate cannot (1032:1), zstd's zeros can. */
#define INFLATE_RATIO_MAX 1100

/* What a damaged section claims need not be there. */
#define INFLATE_RATIO_USUAL 16
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* Gives memory that is written now its pages at once: a fault for each took as long as a third of the inflation. Kernels before
 * 5.14 do not know it. */
static void populate(uint8_t *p, size_t n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t skip = -(uintptr_t)p & (page - 1);

	if (n >= skip + page)
		madvise(p + skip, (n - skip) & -page, MADV_POPULATE_WRITE);
}

/* libdeflate, since the debug information of distributions is compressed and zlib would take a third
 * of the time to read it. */
bool elf_inflate_zlib(struct span in, uint8_t *out, size_t out_n)
{
	struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
	bool done = d && libdeflate_zlib_decompress(d, in.p, in.n, out, out_n, NULL) ==
				 LIBDEFLATE_SUCCESS;

	libdeflate_free_decompressor(d);
	return done;
}

static bool inflate_zstd(struct span in, uint8_t *out, size_t out_n)
{
	size_t got = ZSTD_decompress(out, out_n, in.p, in.n);

	return !ZSTD_isError(got) && got == out_n;
}

int elf_section_inflate(const struct elf_file *elf, const struct elf_section *s, uint64_t max_bytes,
	uint8_t **out, size_t *out_n, struct err *err)
{
	struct cursor c = cursor_of(elf_file_section_bytes(elf, s));
	struct span in;
	uint32_t method = cursor_u32(&c);
	uint64_t size;
	uint8_t *p;
	bool done;

	if (elf->is_64)
		cursor_skip(&c, 4); /* ch_reserved */
	size = elf_file_word(elf, &c);
	elf_file_word(elf, &c); /* ch_addralign */
	if (!(s->flags & SHF_COMPRESSED) || c.failed)
		return err_set(err, ERR_FORMAT, "section %s has no compression header", s->name);
	in = cursor_bytes(&c, cursor_left(&c));
	if (method != ELFCOMPRESS_ZLIB && method != ELFCOMPRESS_ZSTD)
		return err_set(err, ERR_UNSUPPORTED,
			"section %s: compression method %u is not known", s->name, method);
	if (size > max_bytes)
		return err_set(err, ERR_LIMIT,
			"section %s: would be %llu bytes, more than the limit of %llu", s->name,
			(unsigned long long)size, (unsigned long long)max_bytes);
	if (size / INFLATE_RATIO_MAX > in.n)
		return err_set(err, ERR_FORMAT,
			"section %s: %zu compressed bytes cannot hold the %llu it claims", s->name,
			in.n, (unsigned long long)size);
	p = mem_alloc(size ? size : 1);
	if (size / INFLATE_RATIO_USUAL <= in.n)
		populate(p, size);
	done = method == ELFCOMPRESS_ZLIB ? elf_inflate_zlib(in, p, size)
					  : inflate_zstd(in, p, size);
	if (!done) {
		free(p);
		return err_set(
			err, ERR_FORMAT, "section %s: the compressed bytes are damaged", s->name);
	}
	*out = p;
	*out_n = size;
	return 0;
}
