/* SPDX-License-Identifier: MIT */
/*
 * The format of glibc since 2.2, alone or behind the one before it (which is skipped):
 *	magic and version (20), n_entries, bytes of texts, flags (1 + 3), extension, unused (12)
 *	n_entries of { flags, name, path, os version, hwcap (8) }
 * Names and paths are offsets from the magic.
 */
#include "probe/points/library_cache.h"

#include <stdio.h>

#include "base/file.h"
#include "base/glob.h"

#define NEW_MAGIC	"glibc-ld.so.cache1.1"
#define OLD_MAGIC	"ld.so-1.7.0"
#define OLD_MAGIC_BYTES 12 /* with a NUL */
#define OLD_ENTRY_BYTES 12
#define HEAD_BYTES	48
#define ENTRY_BYTES	24
#define TEXT_BYTES_MAX	4096
#define FLAG_KIND	0x00ffu
#define FLAG_ELF_LIBC6	0x0003u
#define FLAG_MACHINE	0xff00u
#define FLAG_X86_64	0x0300u
#define FLAG_I386	0x0000u
#define NAME_BYTES_MAX	256

/* What the offsets of the newer format count from. */
static struct span skip_old(struct span bytes)
{
	struct span head = span_sub(bytes, 0, OLD_MAGIC_BYTES);
	struct cursor c;
	uint64_t end;

	if (!head.p || memcmp(head.p, OLD_MAGIC, strlen(OLD_MAGIC)) != 0)
		return bytes;
	c = cursor_of(bytes);
	cursor_skip(&c, OLD_MAGIC_BYTES);
	end = OLD_MAGIC_BYTES + 4 + (uint64_t)cursor_u32(&c) * OLD_ENTRY_BYTES;
	end = (end + 7) & ~7ull;
	return end < bytes.n ? span_sub(bytes, end, bytes.n - end) : (struct span){NULL, 0};
}

int library_cache_each(struct span bytes,
	void (*each)(void *ctx, const char *name, const char *path, enum mode mode), void *ctx,
	struct err *err)
{
	struct span s = skip_old(bytes);
	struct span magic = span_sub(s, 0, strlen(NEW_MAGIC));
	struct cursor c = cursor_of(s);
	uint32_t n;

	if (!magic.p || memcmp(magic.p, NEW_MAGIC, magic.n) != 0)
		return err_set(err, ERR_FORMAT, "this is no cache of the loader that is known");
	cursor_skip(&c, strlen(NEW_MAGIC));
	n = cursor_u32(&c);
	cursor_skip(&c, HEAD_BYTES - strlen(NEW_MAGIC) - 4);
	for (uint32_t i = 0; i < n && cursor_left(&c) >= ENTRY_BYTES; i++) {
		uint32_t flags = cursor_u32(&c), machine = flags & FLAG_MACHINE;
		const char *name = span_short_cstr(s, cursor_u32(&c), TEXT_BYTES_MAX);
		const char *path = span_short_cstr(s, cursor_u32(&c), TEXT_BYTES_MAX);

		cursor_skip(&c, ENTRY_BYTES - 12);
		if (!name || !path || *path != '/' || (flags & FLAG_KIND) != FLAG_ELF_LIBC6 ||
			(machine != FLAG_X86_64 && machine != FLAG_I386))
			continue;
		each(ctx, name, path, machine == FLAG_X86_64 ? MODE_64 : MODE_32);
	}
	return 0;
}

bool library_name_is(const char *asked, const char *file_name)
{
	size_t n = path_library_stem(file_name), n_asked = strlen(asked);
	char stem[NAME_BYTES_MAX];

	if (strcmp(asked, file_name) == 0)
		return true;
	if (!n || n >= sizeof(stem))
		return false;
	if (strstr(asked, ".so")) /* "libc.so" means every version */
		return glob_match(asked, file_name) ||
		       (strncmp(file_name, asked, n_asked) == 0 && file_name[n_asked] == '.');
	snprintf(stem, sizeof(stem), "%.*s", (int)n, file_name);
	return glob_match(asked, stem) ||
	       (strncmp(stem, "lib", 3) == 0 && strncmp(asked, "lib", 3) != 0 &&
		       strcmp(asked, stem + 3) == 0);
}
