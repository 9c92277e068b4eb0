/* SPDX-License-Identifier: MIT */
/*
 * The bytes are the records of a life stream: kind, length, time delta, payload, one behind the
 * other, as in docs/format/trace.md. Kinds 1 to 8 are the records that make the module history.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "symbols/resolve/module_map.h"
#include "trace/layout.h"
#include "trace/records.h"

#define PAIRS_MAX 200 /* rows that are compared with each other */

static volatile uint64_t sink; /* keeps the reads */

static void put_chunk(struct buf *b, struct chunk_header h, struct span payload)
{
	uint8_t header[CHUNK_HEADER_BYTES];

	h.stored_bytes = h.raw_bytes = (uint32_t)payload.n;
	chunk_header_encode(header, &h, payload);
	buf_put(b, header, sizeof(header));
	buf_put(b, payload.p, payload.n);
}

static void put_trace(struct buf *b, struct span records)
{
	static const uint8_t kinds[][2] = {{RECORD_MAJOR_MODULE, RECORD_MODULE_LOAD},
		{RECORD_MAJOR_MODULE, RECORD_MODULE_UNLOAD},
		{RECORD_MAJOR_MODULE, RECORD_MODULE_SNAPSHOT},
		{RECORD_MAJOR_PROCESS, RECORD_PROCESS_START},
		{RECORD_MAJOR_PROCESS, RECORD_PROCESS_FORK},
		{RECORD_MAJOR_PROCESS, RECORD_PROCESS_EXEC},
		{RECORD_MAJOR_PROCESS, RECORD_PROCESS_END},
		{RECORD_MAJOR_PHASE, RECORD_PHASE_STARTED}};
	static const uint8_t stream[] = {1, STREAM_KIND_LIFE, 0};
	static const uint8_t images[] = {1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0};
	uint8_t header[TRACE_HEADER_BYTES];
	struct buf payload = {0};

	trace_header_encode(header);
	buf_put(b, header, sizeof(header));
	put_chunk(b, (struct chunk_header){.type = CHUNK_TYPE_STREAMS, .count = 1},
		(struct span){stream, sizeof(stream)});
	put_chunk(b, (struct chunk_header){.type = CHUNK_TYPE_IMAGES, .count = 2},
		(struct span){images, sizeof(images)});
	buf_put_u8(&payload, 1);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		buf_put_uleb(&payload, kinds[i][0]);
		buf_put_uleb(&payload, kinds[i][1]);
	}
	put_chunk(b,
		(struct chunk_header){
			.type = CHUNK_TYPE_KINDS, .count = sizeof(kinds) / sizeof(kinds[0])},
		buf_span(&payload));
	buf_release(&payload);
	/* More records than there are: the last one is cut off, those before it count. */
	put_chunk(b,
		(struct chunk_header){.type = CHUNK_TYPE_RECORDS,
			.stream = 1,
			.count = UINT32_MAX,
			.last_time = UINT64_MAX},
		records);
}

static bool do_overlap(const struct trace_module_span *a, const struct trace_module_span *b)
{
	return a->pid == b->pid && a->process_start == b->process_start && a->start < b->end &&
	       b->start < a->end && a->from < b->to && b->from < a->to;
}

static void check_rows(const struct module_map *m, const struct trace_reader *r)
{
	size_t n = module_map_n(m);

	for (size_t i = 0; i < n; i++) {
		const struct trace_module_span *s = module_map_get(m, i), *found;
		struct module_query query = {s->pid, s->process_start, {s->start}, s->from};

		if (s->start >= s->end || s->from > s->to || s->ended >= MODULE_N_ENDS)
			abort();
		sink += trace_reader_image(r, s->image)->pid;
		for (size_t k = i + 1; k < n && n < PAIRS_MAX; k++)
			if (do_overlap(s, module_map_get(m, k)))
				abort();
		found = module_map_find(m, &query);
		if (s->from < s->to && s->bias != MODULE_BIAS_UNKNOWN && n < PAIRS_MAX &&
			found != s)
			abort();
		query.process_start = query.time = UINT64_MAX;
		found = module_map_find(m, &query);
		sink += found ? found->image : 0;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct trace_reader *r;
	struct module_map *m;
	struct buf trace = {0};
	struct err err;

	if (!n || n > CHUNK_RAW_BYTES_MAX)
		return 0;
	put_trace(&trace, (struct span){data, n});
	if (trace_reader_open_bytes(&r, buf_span(&trace), false, "fuzz", &err) < 0)
		abort();
	if (module_map_new(&m, r, &err) == 0) {
		check_rows(m, r);
		module_map_free(m);
	}
	trace_reader_close(r);
	buf_release(&trace);
	return 0;
}
