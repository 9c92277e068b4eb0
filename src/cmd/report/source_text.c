/* SPDX-License-Identifier: MIT */
#include "cmd/report/source_text.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"

#define SOURCE_BYTES_MAX ((off_t)64 << 20)

static bool open_file(struct source_text *t, const char *path)
{
	VEC(size_t) ends = {0};
	const uint8_t *p;
	struct stat st;

	/* A trace may name anything: only a file of a sane size is source text. */
	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > SOURCE_BYTES_MAX ||
		!st.st_size || file_map_open(&t->map, path, NULL) < 0)
		return false;
	p = t->map.bytes.p;
	for (size_t i = 0; i < t->map.bytes.n; i++)
		if (p[i] == '\n')
			vec_push(&ends, i);
	if (p[t->map.bytes.n - 1] != '\n')
		vec_push(&ends, t->map.bytes.n);
	t->ends = ends.v;
	t->n_lines = ends.n;
	t->mtime_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
	return true;
}

bool source_text_open(struct source_text *t, const char *path, const char *trace_path)
{
	const char *base = path_base_name(trace_path);
	int folder_bytes = (int)(base - trace_path);
	bool is_open = false;

	if (*path == '/' && open_file(t, path))
		return true;
	while (*path == '/')
		path++;
	while (*path && !is_open) {
		const char *slash = strchr(path, '/');
		char *near = mem_printf("%.*s%s", folder_bytes, trace_path, path);

		is_open = open_file(t, near);
		free(near);
		if (!slash)
			break;
		path = slash + 1;
	}
	return is_open;
}

void source_text_release(struct source_text *t)
{
	file_map_release(&t->map);
	free(t->ends);
	memset(t, 0, sizeof(*t));
}

struct span source_text_line(const struct source_text *t, uint32_t line)
{
	size_t start, end;

	if (!line || line > t->n_lines)
		return (struct span){0};
	start = line > 1 ? t->ends[line - 2] + 1 : 0;
	end = t->ends[line - 1];
	if (end > start && t->map.bytes.p[end - 1] == '\r')
		end--;
	return (struct span){t->map.bytes.p + start, end - start};
}
