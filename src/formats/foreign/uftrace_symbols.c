/* SPDX-License-Identifier: MIT */
#include "formats/foreign/uftrace_symbols.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "formats/foreign/foreign_input.h"

#define LINE_BYTES 4096 /* of a map or symbol file; the rest of a longer one is not looked at */

/* Each line of a file in the folder, as a text; a file that is not there has none. */
static void each_line(const struct uftrace_symbols *s, const char *name,
	void (*each)(void *ctx, const char *line), void *ctx)
{
	char *path = mem_printf("%s/%s", s->folder, name), text[LINE_BYTES];
	struct foreign_input *in;
	struct span line;

	if (foreign_input_open(&in, path, path, NULL) == 0) {
		while (foreign_input_line(in, &line)) {
			size_t n = line.n < sizeof(text) - 1 ? line.n : sizeof(text) - 1;

			memcpy(text, line.p, n);
			text[n] = 0;
			each(ctx, text);
		}
		foreign_input_close(in);
	}
	free(path);
}

struct symbol_lines {
	struct uftrace_symbols *s;
	struct uftrace_file *file;
};

/* "ADDRESS TYPE NAME" */
static void read_symbol(void *ctx, const char *line)
{
	struct symbol_lines *l = ctx;
	uint64_t addr;
	char type;
	int n = 0;

	if (sscanf(line, "%" SCNx64 " %c %n", &addr, &type, &n) != 2 || !n || !line[n])
		return;
	if (strchr("TtPwWiKu", type))
		vec_push(&l->file->symbols,
			((struct uftrace_symbol){addr, intern_text(&l->s->texts, line + n)}));
}

static int compare_symbols(const void *a, const void *b)
{
	const struct uftrace_symbol *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static size_t file_of(struct uftrace_symbols *s, const char *path)
{
	struct uftrace_file file = {.path = NULL};
	struct symbol_lines lines = {s, &file};
	char *name;

	for (size_t i = 0; i < s->files.n; i++)
		if (!strcmp(s->files.v[i].path, path))
			return i;
	file.path = mem_strdup(path);
	name = mem_printf("%s.sym", path_base_name(path));
	each_line(s, name, read_symbol, &lines);
	free(name);
	vec_sort(&file.symbols, compare_symbols);
	vec_push(&s->files, file);
	return s->files.n - 1;
}

struct map_lines {
	struct uftrace_symbols *s;
	struct uftrace_session *session;
};

/* "START-END PERMISSIONS OFFSET DEVICE INODE PATH build-id:..." */
static void read_mapping(void *ctx, const char *line)
{
	struct map_lines *l = ctx;
	struct uftrace_mapping m = {0};
	char path[LINE_BYTES] = "", *id;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*s %4095[^\n]", &m.start,
		    &m.end, &m.offset, path) != 4 ||
		path[0] != '/' || m.end <= m.start)
		return;
	id = strstr(path, " build-id:");
	if (id)
		*id = 0;
	m.file = file_of(l->s, path);
	vec_push(&l->session->mappings, m);
}

void uftrace_symbols_add_session(
	struct uftrace_symbols *s, uint32_t pid, uint64_t time_ns, struct span sid)
{
	struct uftrace_session session = {.pid = pid, .time_ns = time_ns};
	struct map_lines lines = {s, &session};
	char *name;

	for (size_t i = 0; i < sid.n; i++) /* it is a part of a file's name */
		if (!((sid.p[i] >= '0' && sid.p[i] <= '9') || (sid.p[i] >= 'a' && sid.p[i] <= 'f')))
			return;
	name = mem_printf("sid-%.*s.map", (int)sid.n, (const char *)sid.p);
	each_line(s, name, read_mapping, &lines);
	free(name);
	vec_push(&s->sessions, session);
}

/* The last one that began by then, or else the first one. */
static const struct uftrace_session *session_of(
	const struct uftrace_symbols *s, uint32_t pid, uint64_t time_ns)
{
	const struct uftrace_session *found = NULL;

	for (size_t i = 0; i < s->sessions.n; i++) {
		const struct uftrace_session *one = &s->sessions.v[i];

		if (one->pid == pid && (!found || one->time_ns <= time_ns))
			found = one;
	}
	return found;
}

const struct uftrace_file *uftrace_symbols_find(const struct uftrace_symbols *s, uint32_t pid,
	uint64_t time_ns, uint64_t *addr, uint32_t *name)
{
	const struct uftrace_session *session = session_of(s, pid, time_ns);
	const struct uftrace_file *file;
	size_t low = 0, high;

	*name = 0;
	for (size_t i = 0; session && i < session->mappings.n; i++) {
		const struct uftrace_mapping *m = &session->mappings.v[i];

		if (*addr < m->start || *addr >= m->end)
			continue;
		file = &s->files.v[m->file];
		*addr = *addr - m->start + m->offset;
		high = file->symbols.n;
		while (low < high) {
			size_t middle = (low + high) / 2;

			if (file->symbols.v[middle].addr <= *addr)
				low = middle + 1;
			else
				high = middle;
		}
		*name = low ? file->symbols.v[low - 1].name + 1 : 0;
		return file;
	}
	return NULL;
}

void uftrace_symbols_release(struct uftrace_symbols *s)
{
	for (size_t i = 0; i < s->files.n; i++) {
		free(s->files.v[i].path);
		vec_release(&s->files.v[i].symbols);
	}
	for (size_t i = 0; i < s->sessions.n; i++)
		vec_release(&s->sessions.v[i].mappings);
	vec_release(&s->files);
	vec_release(&s->sessions);
	intern_release(&s->texts);
}
