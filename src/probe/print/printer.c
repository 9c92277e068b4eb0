/* SPDX-License-Identifier: MIT */
/* Records as text or JSON lines: which kind of record has which form. */
#include "probe/print/printer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "probe/print/print_internal.h"

#define CAT_BYTES_MAX ((size_t)1 << 20)
#define TIME_DEFAULT  "%H:%M:%S\n"

struct printer *printer_new(
	const struct stream *s, enum printer_format format, const struct printer_names *names)
{
	struct printer *p = mem_zalloc(sizeof(*p));

	p->stream = s;
	p->format = format;
	p->manner = print_manner_of(s);
	if (names)
		p->names = *names;
	return p;
}

void printer_free(struct printer *p)
{
	if (!p)
		return;
	vec_release(&p->entries);
	map_release(&p->entry_of_key);
	arena_free(p->arena);
	free(p);
}

void printer_value(struct printer *p, const struct shape *shape, struct span value, struct buf *out)
{
	if (p->format == PRINTER_JSON)
		print_value_json(p, shape, value, 1, out);
	else
		print_value(p, shape, value, PRINT_INDENT_VALUE, 1, out);
}

void printer_text(
	struct printer *p, const struct stream_format *format, struct span args, struct buf *out)
{
	print_format(p, format->text ? format->text : "", format->args, format->n_args, args, out);
}

void printer_wrap(struct printer *p, const char *type, struct span text, struct buf *out)
{
	if (p->format == PRINTER_TEXT) {
		buf_put(out, text.p, text.n);
		return;
	}
	buf_printf(out, "{\"type\": \"%s\", \"data\": ", type);
	print_json_string(text, out);
	buf_put_cstr(out, "}\n");
}

void printer_message(
	struct printer *p, const struct stream_format *f, struct span args, struct buf *out)
{
	const struct sources *sources = &p->stream->sources;
	struct place end = {.source_i = f->place.source_i, .from = f->place.to};
	const char *name = sources->v.v[f->place.source_i].name;
	uint32_t line, column, end_line, end_column;
	struct buf text = {0};

	printer_text(p, f, args, &text);
	place_line(sources, f->place, &line, &column);
	place_line(sources, end, &end_line, &end_column);
	if (p->format == PRINTER_JSON) {
		buf_printf(out, "{\"type\": \"%s\", \"msg\": ", format_traits[f->kind].name);
		print_json_string(buf_span(&text), out);
		buf_put_cstr(out, ", \"filename\": ");
		print_json_string((struct span){(const uint8_t *)name, strlen(name)}, out);
		buf_printf(out, ", \"line\": %u, \"col\": %u}\n", line, column);
	} else {
		buf_printf(out, "%s:%u:%u", name, line, column);
		if (end_line == line)
			buf_printf(out, "-%u", end_column);
		buf_put_cstr(out, f->kind == FORMAT_ERRORF ? ": ERROR: " : ": WARNING: ");
		buf_put(out, text.p, text.n);
		if (!text.n || text.p[text.n - 1] != '\n')
			buf_put_u8(out, '\n');
	}
	buf_release(&text);
}

static void put_value(
	struct printer *p, const struct stream_format *f, struct span args, struct buf *out)
{
	bool is_json = p->format == PRINTER_JSON;

	if (!f->n_args)
		return;
	if (is_json)
		buf_put_cstr(out, "{\"type\": \"value\", \"data\": ");
	printer_value(p, f->args[0], args, out);
	buf_put_cstr(out, is_json ? "}\n" : "\n");
}

static void join_word(struct span word, const char *separator, bool *has_some, struct buf *out)
{
	if (!word.n)
		return;
	if (*has_some)
		buf_put_cstr(out, separator);
	buf_put(out, word.p, word.n);
	*has_some = true;
}

/* A tuple of strings, or a buffer of strings with NULs between them. */
static void join_words(const struct shape *s, struct span value, const char *separator,
	bool *has_some, struct buf *out)
{
	struct span rest;

	if (s->kind == SHAPE_STRING) {
		join_word(print_chars(s, value), separator, has_some, out);
	} else if (s->kind == SHAPE_BYTES) {
		rest = print_chars(s, value);
		while (rest.n) {
			const uint8_t *nul = memchr(rest.p, 0, rest.n);
			size_t n = nul ? (size_t)(nul - rest.p) : rest.n;

			join_word((struct span){rest.p, n}, separator, has_some, out);
			n += nul != NULL;
			rest = (struct span){rest.p + n, rest.n - n};
		}
	}
}

static void put_join(
	struct printer *p, const struct stream_format *f, struct span args, struct buf *out)
{
	const struct shape *s = f->n_args ? f->args[0] : NULL;
	const char *separator = f->text ? f->text : " ";
	struct buf text = {0};
	bool has_some = false;

	if (s && s->kind == SHAPE_TUPLE) {
		for (uint32_t i = 0; i < s->n_fields; i++) {
			struct print_part part;

			print_part_of(s, i, args, &part);
			join_words(part.shape, part.value, separator, &has_some, &text);
		}
	} else if (s) {
		join_words(s, args, separator, &has_some, &text);
	}
	if (p->format == PRINTER_TEXT)
		buf_put_u8(&text, '\n');
	printer_wrap(p, "join", buf_span(&text), out);
	buf_release(&text);
}

/* At most `max` bytes; a file that would make the reader wait (a pipe, a terminal) is not read.
 */
static void read_file(
	const char *path, size_t max, const struct print_manner *manner, struct buf *out)
{
	FD_AUTO fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	size_t end = out->n + max;
	uint8_t bytes[4096];
	struct stat st;
	ssize_t n = 0;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		buf_printf(out, "ERROR: %s '%s': %s\n",
			manner->has_old_failures ? "failed to open file" : "cat:", path,
			fd < 0 ? strerror(errno) : "is no regular file");
		return;
	}
	while (out->n < end && (n = read(fd, bytes, sizeof(bytes))) > 0)
		buf_put(out, bytes, (size_t)n < end - out->n ? (size_t)n : end - out->n);
}

static void put_cat(
	struct printer *p, const struct stream_format *f, struct span args, struct buf *out)
{
	uint32_t max = p->stream->cat_bytes;
	struct buf path = {0}, content = {0};

	printer_text(p, f, args, &path);
	read_file(buf_text(&path), max && max < CAT_BYTES_MAX ? max : CAT_BYTES_MAX, p->manner,
		&content);
	printer_wrap(p, "cat", buf_span(&content), out);
	buf_release(&path);
	buf_release(&content);
}

void printer_record(
	struct printer *p, const struct stream_record *r, struct span args, struct buf *out)
{
	const struct stream_format *f;
	struct buf text = {0};

	if (r->format >= p->stream->formats.n)
		return;
	f = &p->stream->formats.v[r->format];
	switch (f->kind) {
	case FORMAT_PRINTF:
		printer_text(p, f, args, &text);
		printer_wrap(p, "printf", buf_span(&text), out);
		break;
	case FORMAT_PRINT:
		put_value(p, f, args, out);
		break;
	case FORMAT_JOIN:
		put_join(p, f, args, out);
		break;
	case FORMAT_TIME:
		print_time(f->text ? f->text : TIME_DEFAULT, CLOCK_MONOTONIC, r->time_ns, &text);
		printer_wrap(p, "time", buf_span(&text), out);
		break;
	case FORMAT_CAT:
		put_cat(p, f, args, out);
		break;
	case FORMAT_ERROR:
	case FORMAT_EXIT:
	case FORMAT_PRINT_MAP:
	case FORMAT_CLEAR_MAP:
	case FORMAT_ZERO_MAP:
	case FORMAT_SYSTEM:
	case FORMAT_ENABLE:
	case FORMAT_DISABLE:
	case FORMAT_PRINT_ENTRY:
	case FORMAT_ERRORF:
	case FORMAT_WARNF:
	case N_FORMAT_KINDS:
		break;
	}
	buf_release(&text);
}
