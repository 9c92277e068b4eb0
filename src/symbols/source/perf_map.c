/* SPDX-License-Identifier: MIT */
/*
 * /tmp/perf-PID.map, which just-in-time compilers append to: "START SIZE NAME" a line, numbers in
 * hexadecimal, the name up to the end of the line. The file is read, not mapped: its writer may cut
 * it at any time.
 */
#include <errno.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/file.h"
#include "symbols/source/text_scan.h"
#include "symbols/symtab_build.h"

#define PERF_MAP_BYTES_MAX	((size_t)1 << 30)
#define PERF_MAP_LINE_BYTES_MAX 16384

/* A number, with or without 0x, and the blanks behind it. */
static bool take_number(struct cursor *c, uint64_t *out)
{
	if (cursor_left(c) >= 2 && c->p[0] == '0' && (c->p[1] | 0x20) == 'x')
		cursor_skip(c, 2);
	if (!text_take_hex(c, out) || !cursor_left(c) || *c->p != ' ')
		return false;
	text_skip_blanks(c);
	return true;
}

bool perf_map_parse_line(struct span line, struct candidate *candidate)
{
	struct cursor c = cursor_of(line);

	*candidate = (struct candidate){.source = SYMBOL_SOURCE_PERF_MAP};
	if (line.n > PERF_MAP_LINE_BYTES_MAX)
		return false;
	if (!take_number(&c, &candidate->start) || !take_number(&c, &candidate->size))
		return false;
	while (cursor_left(&c) && (c.end[-1] == '\r' || c.end[-1] == ' '))
		c.end--;
	if (!candidate->size || !cursor_left(&c))
		return false;
	candidate->name = (const char *)c.p;
	candidate->name_bytes = (uint32_t)cursor_left(&c);
	return true;
}

int perf_map_read(
	struct span text, const struct symbol_sink *sink, struct text_source *out, struct err *err)
{
	struct cursor rest = cursor_of(text);
	struct candidate c;
	struct span line;

	*out = (struct text_source){0};
	while (text_next_line(&rest, &line)) {
		if (!line.n)
			continue;
		if (perf_map_parse_line(line, &c))
			text_source_add(out, sink, &c);
		else
			out->n_malformed++;
	}
	if (!out->n_symbols && out->n_malformed)
		return err_set(err, ERR_FORMAT, "no line is \"START SIZE NAME\" of a perf map");
	return 0;
}

struct symtab *symtab_new_perf_map_bytes(struct span text)
{
	struct symtab_builder b = {.name_bytes_max = text.n};
	const struct symbol_sink sink = symtab_builder_sink(&b);
	struct text_source lines;

	/* A file without a good line is an empty table: its writer may just have begun. */
	perf_map_read(text, &sink, &lines, NULL);
	b.n_skipped += lines.n_malformed;
	return symtab_builder_finish_later_wins(&b, "perf map");
}

int symtab_new_perf_map(struct symtab **out, const char *path, struct err *err)
{
	struct buf text = {0};
	struct stat st;
	int rc;

	/* Anybody may make files in /tmp: a pipe there must not hold us up. */
	if (stat(path, &st) < 0)
		return err_sys(err, errno, "'%s': cannot open", path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_FAILED, "'%s': is not a regular file", path);
	rc = file_read(&text, path, PERF_MAP_BYTES_MAX, err);
	if (rc == 0)
		*out = symtab_new_perf_map_bytes(buf_span(&text));
	buf_release(&text);
	return rc;
}
