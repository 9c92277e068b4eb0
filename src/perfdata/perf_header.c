/* SPDX-License-Identifier: MIT */
#include "perfdata/perf_header.h"

#include <stdlib.h>
#include <string.h>

#include "perfdata/perf_layout.h"

#define SECTION_BYTES  16
#define FACT_BYTES_MAX ((size_t)64 << 20)
#define ATTR_BYTES_MAX 4096u
#define IDS_BYTES_MAX  (PERF_EVENT_IDS_MAX * sizeof(uint64_t))

struct section {
	uint64_t at, bytes;
};

static struct section take_section(struct cursor *c)
{
	struct section s;

	s.at = cursor_u64(c);
	s.bytes = cursor_u64(c);
	return s;
}

/* Its bytes, owned by the caller; NULL: they are not there, or more than `max`. */
static uint8_t *read_section(struct foreign_input *in, struct section s, size_t max)
{
	uint8_t *bytes;

	if (s.bytes > max || s.at > foreign_input_bytes(in) ||
		s.bytes > foreign_input_bytes(in) - s.at)
		return NULL;
	bytes = mem_alloc(s.bytes + 1);
	if (foreign_input_at(in, s.at, bytes, s.bytes))
		return bytes;
	free(bytes);
	return NULL;
}

static int read_events(struct foreign_input *in, struct section s, uint64_t each,
	struct perf_events *events, struct err *err)
{
	uint64_t n_attr = each - SECTION_BYTES;

	if (each < 64 + SECTION_BYTES || each > ATTR_BYTES_MAX || s.bytes / each > PERF_EVENTS_MAX)
		return foreign_input_wrong(in, err, "its events make no sense");
	for (uint64_t i = 0; i < s.bytes / each; i++) {
		uint8_t *row = read_section(in, (struct section){s.at + i * each, each}, each);
		struct cursor c = cursor_of((struct span){row, row ? each : 0});
		struct section ids_at = {0, 0};
		uint8_t *ids;
		bool is_good;

		cursor_skip(&c, n_attr);
		ids_at = take_section(&c);
		ids = row ? read_section(in, ids_at, IDS_BYTES_MAX) : NULL;
		is_good = ids && perf_events_add(events, (struct span){row, n_attr},
					 (struct span){ids, ids_at.bytes});
		free(ids);
		free(row);
		if (!is_good)
			return foreign_input_wrong(
				in, err, "its event number %lu makes no sense", i);
	}
	return 0;
}

/* The table behind the records has a section for each feature, in order of their numbers. */
static int read_features(struct foreign_input *in, uint64_t at, const uint64_t *bits,
	struct perf_features *features, struct perf_events *events, struct err *err)
{
	for (uint32_t feature = 0; feature < PERF_FEATURES_MAX; feature++) {
		struct section s;
		uint8_t *bytes;
		bool is_good;

		if (!(bits[feature / 64] >> feature % 64 & 1))
			continue;
		bytes = read_section(in, (struct section){at, SECTION_BYTES}, SECTION_BYTES);
		if (!bytes)
			return foreign_input_wrong(
				in, err, "it is cut: facts are missing at byte %lu", at);
		memcpy(&s, bytes, sizeof(s));
		free(bytes);
		at += SECTION_BYTES;
		bytes = read_section(in, s, FACT_BYTES_MAX);
		is_good = bytes && perf_features_take(features, feature,
					   (struct span){bytes, s.bytes}, events);
		free(bytes);
		if (!is_good)
			return foreign_input_wrong(in, err,
				"fact number %u makes no sense at byte %lu", feature, s.at);
	}
	return 0;
}

static int read_file_header(struct perf_header *h, struct foreign_input *in,
	struct perf_events *events, struct perf_features *features, struct err *err)
{
	uint8_t bytes[PERF_FILE_HEADER];
	struct section attrs, data;
	uint64_t each, bits[4];
	struct cursor c;
	int rc;

	if (!foreign_input_is_seekable(in))
		return foreign_input_wrong(in, err,
			"a compressed perf.data has to be unpacked first: its facts are at its end");
	if (!foreign_input_at(in, 0, bytes, sizeof(bytes)))
		return foreign_input_wrong(in, err, "it is cut within its header");
	c = cursor_of((struct span){bytes, sizeof(bytes)});
	cursor_skip(&c, 16);
	each = cursor_u64(&c);
	attrs = take_section(&c);
	data = take_section(&c);
	take_section(&c); /* types of events, no longer used */
	cursor_take(&c, bits, sizeof(bits));
	h->is_unfinished = !data.bytes;
	h->end_at = h->is_unfinished ? UINT64_MAX : data.at + data.bytes;
	if (data.at < PERF_PIPE_HEADER || data.bytes > UINT64_MAX - data.at)
		return foreign_input_wrong(in, err, "its header makes no sense");
	rc = read_events(in, attrs, each, events, err);
	if (rc == 0 && !h->is_unfinished && h->end_at <= foreign_input_bytes(in))
		rc = read_features(in, h->end_at, bits, features, events, err);
	if (rc == 0 && !foreign_input_skip(in, data.at))
		rc = foreign_input_wrong(in, err, "it is cut in front of its records");
	return rc;
}

int perf_header_read(struct perf_header *h, struct foreign_input *in, struct perf_events *events,
	struct perf_features *features, struct err *err)
{
	struct span first = foreign_input_peek(in, PERF_PIPE_HEADER);
	uint64_t size;

	*h = (struct perf_header){.end_at = UINT64_MAX};
	if (first.n < PERF_PIPE_HEADER)
		return foreign_input_wrong(in, err, "it is cut within its header");
	if (!memcmp(first.p, PERF_MAGIC_SWAPPED, PERF_MAGIC_BYTES))
		return foreign_input_wrong(
			in, err, "it is of a machine with the other byte order, which is not read");
	if (!memcmp(first.p, PERF_MAGIC_OLD, PERF_MAGIC_BYTES))
		return foreign_input_wrong(in, err, "it was written by a perf before Linux 3.1");
	if (memcmp(first.p, PERF_MAGIC, PERF_MAGIC_BYTES) != 0)
		return foreign_input_wrong(in, err, "it does not begin as a perf.data does");
	memcpy(&size, first.p + PERF_MAGIC_BYTES, sizeof(size));
	h->is_pipe = size == PERF_PIPE_HEADER;
	if (!h->is_pipe)
		return read_file_header(h, in, events, features, err);
	foreign_input_skip(in, PERF_PIPE_HEADER);
	return 0;
}
