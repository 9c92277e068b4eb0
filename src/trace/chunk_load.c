/* SPDX-License-Identifier: MIT */
/* From an offset in the file to a checked, unpacked payload. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <zstd.h>

#include "trace/reader_internal.h"

int chunk_error(const struct trace_reader *r, const struct chunk_view *view, struct err *err,
	const char *fmt, ...)
{
	uint32_t type = view->listed_type ? view->listed_type : view->header.type;
	char what[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	if (file_map_is_cut(&r->map))
		return err_set(err, ERR_FORMAT, "'%s': %s chunk at offset %" PRIu64 ": the file "
			FILE_CUT_REASON, r->name, chunk_type_name(type), view->offset);
	return err_set(err, ERR_FORMAT, "'%s': %s chunk at offset %" PRIu64 ": %s", r->name,
		chunk_type_name(type), view->offset, what);
}

int chunk_check(const struct trace_reader *r, uint64_t offset, uint64_t end,
	struct chunk_view *view, struct span *stored, struct err *err)
{
	struct span s = span_sub(r->bytes, offset, CHUNK_HEADER_BYTES);
	struct chunk_header *h = &view->header;

	view->offset = offset;
	*h = (struct chunk_header){0};
	if (!s.p || end > r->bytes.n || offset > end || end - offset < CHUNK_HEADER_BYTES)
		return chunk_error(r, view, err, "its header is cut off");
	if (!chunk_header_decode(h, s.p))
		return chunk_error(r, view, err, "no chunk begins here");
	if (h->stored_bytes > CHUNK_STORED_BYTES_MAX || h->raw_bytes > CHUNK_RAW_BYTES_MAX)
		return chunk_error(r, view, err, "is larger than %u bytes", CHUNK_RAW_BYTES_MAX);
	if (h->stored_bytes > end - offset - CHUNK_HEADER_BYTES)
		return chunk_error(r, view, err, "its payload is cut off");
	*stored = span_sub(r->bytes, offset + CHUNK_HEADER_BYTES, h->stored_bytes);
	if (r->check_crc && chunk_crc(s.p, *stored) != h->crc)
		return chunk_error(r, view, err, "its check sum is wrong");
	return 0;
}

static int unpack(const struct trace_reader *r, void *zstd, struct span stored,
	struct buf *unpacked, struct chunk_view *view, struct err *err)
{
	size_t want = view->header.raw_bytes, n;

	if (want >= unpacked->cap) /* never NULL, even for nothing */
		mem_grow((void **)&unpacked->p, &unpacked->cap, want + 1, 1);
	n = ZSTD_decompressDCtx(zstd, unpacked->p, want, stored.p, stored.n);
	if (ZSTD_isError(n))
		return chunk_error(r, view, err, "cannot unpack: %s", ZSTD_getErrorName(n));
	if (n != want)
		return chunk_error(r, view, err, "unpacks to %zu bytes instead of %zu", n, want);
	unpacked->n = n;
	view->raw = buf_span(unpacked);
	return 0;
}

int chunk_load(const struct trace_reader *r, uint64_t offset, uint64_t end, void *zstd,
	struct buf *unpacked, struct chunk_view *view, struct err *err)
{
	const struct chunk_header *h = &view->header;
	struct span stored;
	int rc = chunk_check(r, offset, end, view, &stored, err);

	if (rc < 0)
		return rc;
	if (h->flags & ~CHUNK_FLAG_ZSTD)
		return chunk_error(r, view, err, "flags 0x%x are not known", h->flags);
	if (h->flags & CHUNK_FLAG_ZSTD)
		return unpack(r, zstd, stored, unpacked, view, err);
	if (h->raw_bytes != h->stored_bytes)
		return chunk_error(r, view, err, "is not packed, but its two lengths differ");
	view->raw = stored;
	return 0;
}

int chunk_load_listed(const struct trace_reader *r, size_t i, void *zstd, struct buf *unpacked,
	struct chunk_view *view, struct err *err)
{
	const struct chunk_entry *e = &r->chunks.v[i];
	uint64_t end = i + 1 < r->chunks.n ? r->chunks.v[i + 1].offset : r->chunks_end;
	const struct chunk_header *h = &view->header;
	int rc;

	view->listed_type = e->type;
	rc = chunk_load(r, e->offset, end, zstd, unpacked, view, err);
	if (rc < 0)
		return rc;
	if (h->type != e->type || h->stream != e->stream || h->count != e->count ||
		h->first_time != e->first_time || h->last_time != e->last_time)
		return chunk_error(r, view, err, "differs from its entry in the index");
	return 0;
}
