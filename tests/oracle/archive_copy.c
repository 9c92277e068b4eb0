/* SPDX-License-Identifier: MIT */
/*
 * archive_copy IN OUT: reads an archive and writes it anew, for comparison with what ar, nm and
 * linkers make of both. archive_copy -w IN OUT: with a 64-bit index.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "elf/archive.h"

#define MEMBER_BYTES_MAX (1u << 30)

static int fill_outside(struct archive *a, const char *path, struct buf *bufs, struct err *err)
{
	const char *slash = strrchr(path, '/');
	int folder = slash ? (int)(slash - path) + 1 : 0;

	for (size_t i = 0; i < a->members.n; i++) {
		struct archive_member *m = &a->members.v[i];
		char *file;
		int rc;

		if (!m->is_outside)
			continue;
		file = mem_printf("%.*s%s", m->name[0] == '/' ? 0 : folder, path, m->name);
		rc = file_read(&bufs[i], file, MEMBER_BYTES_MAX, err);
		free(file);
		if (rc)
			return rc;
		m->bytes = buf_span(&bufs[i]);
		m->is_outside = false;
	}
	return 0;
}

static int copy(const char *in, const char *out, bool is_wide, struct err *err)
{
	struct file_map map;
	struct archive a = {0};
	struct buf *bufs, written = {0};
	FILE *f;
	int rc = file_map_open(&map, in, err);

	if (rc)
		return rc;
	rc = archive_open(&a, map.bytes, err);
	bufs = mem_calloc(a.members.n + 1, sizeof(*bufs));
	if (!rc)
		rc = fill_outside(&a, in, bufs, err);
	a.has_wide_index |= is_wide;
	if (!rc)
		rc = archive_write(&a, &written, err);
	f = rc ? NULL : fopen(out, "wb");
	if (!rc && (!f || fwrite(written.p, 1, written.n, f) != written.n || fclose(f)))
		rc = err_set(err, ERR_FAILED, "'%s' cannot be written", out);
	for (size_t i = 0; i < a.members.n; i++)
		buf_release(&bufs[i]);
	free(bufs);
	buf_release(&written);
	archive_release(&a);
	file_map_release(&map);
	return rc;
}

int main(int argc, char **argv)
{
	bool is_wide = argc == 4 && !strcmp(argv[1], "-w");
	struct err err = {0};

	if (argc != 3 && !is_wide) {
		fprintf(stderr, "usage: archive_copy [-w] IN OUT\n");
		return 2;
	}
	if (copy(argv[argc - 2], argv[argc - 1], is_wide, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	return 0;
}
