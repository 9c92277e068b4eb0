/* SPDX-License-Identifier: MIT */
#include "cmd/view/html_page.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/file.h"
#include "base/mem.h"
#include "cmd/report/report.h"
#include "cmd/view/answer_source.h"
#include "cmd/view/page_files.h"
#include "query/query.h"
#include "trace/copy.h"

#define GZIP_WINDOW (15 + 16) /* zlib: with the head of gzip */

/* ---- the trace, unpacked ---- */

static int write_plain(struct trace_reader *reader, int fd, struct err *err)
{
	struct trace_writer *w;
	int rc = trace_writer_open_fd(&w, fd, "trace for the page", err);

	if (rc < 0)
		return rc;
	trace_writer_keep_plain(w);
	rc = trace_copy_definitions(w, reader, err);
	if (rc >= 0)
		rc = trace_copy_records(w, reader, NULL, err);
	if (rc >= 0)
		return trace_writer_close(w, err);
	trace_writer_discard(w);
	return rc;
}

static int open_nameless(struct err *err)
{
	const char *folder = getenv("TMPDIR");
	int fd = open(folder && *folder ? folder : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	return fd >= 0 ? fd : err_sys(err, errno, "no temporary file for the page");
}

static int copy_plain(struct trace_reader *reader, struct buf *bytes, struct err *err)
{
	FD_AUTO fd = open_nameless(err);
	struct file_map map = {0};
	int writers = fd < 0 ? -1 : dup(fd), rc;

	if (fd < 0)
		return err->code;
	if (writers < 0)
		return err_sys(err, errno, "no temporary file for the page");
	rc = write_plain(reader, writers, err);
	if (rc < 0)
		return rc;
	rc = file_map_open_fd(&map, fd, "trace for the page", err);
	if (rc < 0)
		return rc;
	if (map.bytes.n > HTML_TRACE_BYTES_MAX)
		rc = err_set(err, ERR_LIMIT,
			"'%s': has %zu MB of records, too many for a page (at most %zu); 'weir view' shows it",
			trace_reader_name(reader), map.bytes.n >> 20, HTML_TRACE_BYTES_MAX >> 20);
	else
		buf_put(bytes, map.bytes.p, map.bytes.n);
	file_map_release(&map);
	return rc < 0 ? rc : 0;
}

/* ---- bytes as text ---- */

static int pack(struct span bytes, struct buf *packed, struct err *err)
{
	z_stream z = {.next_in = (Bytef *)bytes.p, .avail_in = (uInt)bytes.n};
	size_t bound;
	int rc = deflateInit2(
		&z, Z_BEST_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 9, Z_DEFAULT_STRATEGY);

	if (rc != Z_OK)
		return err_set(err, ERR_FAILED, "zlib does not begin: %d", rc);
	bound = deflateBound(&z, bytes.n);
	z.next_out = buf_put_zeros(packed, bound);
	z.avail_out = (uInt)bound;
	rc = deflate(&z, Z_FINISH);
	packed->n -= z.avail_out;
	deflateEnd(&z);
	return rc == Z_STREAM_END ? 0 : err_set(err, ERR_FAILED, "zlib does not end: %d", rc);
}

static void write_base64(FILE *out, struct span bytes)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < bytes.n; i += 3) {
		size_t n = bytes.n - i;
		uint32_t three = (uint32_t)bytes.p[i] << 16 |
				 (n > 1 ? (uint32_t)bytes.p[i + 1] << 8 : 0) |
				 (n > 2 ? bytes.p[i + 2] : 0);
		char four[4] = {digits[three >> 18], digits[three >> 12 & 63],
			n > 1 ? digits[three >> 6 & 63] : '=', n > 2 ? digits[three & 63] : '='};

		fwrite(four, 1, 4, out);
	}
}

static int write_packed(FILE *out, const char *id, struct span bytes, struct err *err)
{
	struct buf packed = {0};
	int rc = pack(bytes, &packed, err);

	if (rc >= 0) {
		fprintf(out, "<script type=\"application/gzip\" id=\"%s\">", id);
		write_base64(out, buf_span(&packed));
		fputs("</script>\n", out);
	}
	buf_release(&packed);
	return rc;
}

static void write_text(FILE *out, const char *before, const char *file, const char *behind)
{
	struct span bytes = page_file_find(file)->bytes;

	fputs(before, out);
	fwrite(bytes.p, 1, bytes.n, out);
	fputs(behind, out);
}

/* ---- source lines ---- */

/* JSON within a page: no tag may begin in it. */
static void write_json(FILE *out, struct span json)
{
	for (size_t i = 0; i < json.n; i++)
		if (json.p[i] == '<')
			fputs("\\u003c", out);
		else if (json.p[i] != '\n')
			fputc(json.p[i], out);
}

static void write_source(
	FILE *out, struct view_sources *sources, const char *function, bool *has_one)
{
	struct question q = {
		.kind = "source", .name = "", .keys = {{"function", function}}, .n_keys = 1};
	struct buf answer = {0};
	struct err err = {0};

	if (view_answer_source(sources, &q, &answer, &err) >= 0) {
		fputs(*has_one ? "," : "", out);
		write_json(out, buf_span(&answer));
		*has_one = true;
	}
	buf_release(&answer);
}

/* Of the functions with the most of their own, for which there are lines. 1: the trace has losses. */
static int write_sources(FILE *out, struct view_engine *engine, const char *exe, struct err *err)
{
	struct view_sources sources = {engine, exe};
	struct question all = {.kind = "meta", .name = ""};
	struct query query = {0};
	struct profile *p;
	struct flat flat;
	bool has_one = false;
	size_t *rows, n;

	if (view_profile(engine, &all, &p, err) < 0)
		return err->code;
	flat_init(&flat, p->tree);
	n = query_top_functions(&query, p->tree, &flat, HTML_SOURCES_MAX, &rows);
	fputs("<script type=\"application/json\" id=\"weir-sources\">[", out);
	for (size_t i = 0; i < n; i++)
		write_source(out, &sources,
			calltree_get_routine(p->tree, flat.rows[rows[i]].routine)->name, &has_one);
	fputs("]</script>\n", out);
	free(rows);
	flat_release(&flat);
	if (!loss_is_real(&p->loss))
		return 0;
	loss_say(trace_reader_name(p->reader), &p->loss);
	return 1;
}

/* ---- the page ---- */

/* Nothing can be fetched from it: not by us, not by a name in the trace. */
static const char head[] =
	"<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline' "
	"'wasm-unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'\">\n"
	"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>weir</title>\n"
	"<link rel=\"icon\" href=\"data:,\">\n";

static int write_trace(FILE *out, const char *id, struct trace_reader *reader, struct err *err)
{
	struct buf trace = {0};
	int rc = copy_plain(reader, &trace, err);

	if (rc >= 0)
		rc = write_packed(out, id, buf_span(&trace), err);
	buf_release(&trace);
	return rc;
}

int html_page_write(FILE *out, struct trace_reader *reader, struct trace_reader *before,
	const char *exe, struct err *err)
{
	struct view_engine *engine = view_engine_new(reader, before, NULL);
	int rc;

	fputs(head, out);
	write_text(out, "<style>", "page.css", "</style>\n");
	fputs("</head>\n<body>\n<div id=\"page\"></div>\n"
	      "<noscript>This page needs JavaScript. It asks nobody.</noscript>\n",
		out);
	rc = write_trace(out, "weir-trace", reader, err);
	if (rc >= 0 && before)
		rc = write_trace(out, "weir-before", before, err);
	if (rc >= 0)
		rc = write_packed(out, "weir-engine", page_file_find("engine.wasm")->bytes, err);
	if (rc >= 0)
		rc = write_sources(out, engine, exe, err);
	if (rc >= 0)
		write_text(out, "<script>", "page.js", "</script>\n</body>\n</html>\n");
	view_engine_free(engine);
	return rc;
}
