/* SPDX-License-Identifier: MIT */
/* Payloads of records: rows of numbers, and the sample, which is checked against the tables. */
#include <inttypes.h>

#include "trace/reader_internal.h"

static int bad_record(const struct trace_reader *r, const struct trace_record *record,
	struct err *err, const char *what)
{
	return err_set(err, ERR_FORMAT,
		"'%s': record 0x%02x/0x%x of stream %u at time %" PRIu64 ": %s", r->name,
		record->major, record->minor, record->stream, record->time, what);
}

int trace_record_numbers(const struct trace_reader *r, const struct trace_record *record,
	uint64_t *numbers, size_t n, struct err *err)
{
	const uint8_t *p = record->payload.p, *end = p + record->payload.n;

	for (size_t i = 0; i < n; i++) {
		p = uleb_get(p, end, &numbers[i]);
		if (!p)
			return bad_record(r, record, err, "its payload is too short");
	}
	return 0;
}

int trace_record_sample(const struct trace_reader *r, const struct trace_record *record,
	struct trace_sample *sample, struct err *err)
{
	uint64_t n[4];
	int rc = trace_record_numbers(r, record, n, 4, err);

	if (rc < 0)
		return rc;
	if (n[0] >= r->threads.n)
		return bad_record(r, record, err, "its thread is not defined");
	if (n[1] >= r->stacks.n)
		return bad_record(r, record, err, "its stack is not defined");
	if (n[2] >= r->metrics.n)
		return bad_record(r, record, err, "its metric is not defined");
	*sample = (struct trace_sample){(uint32_t)n[0], (uint32_t)n[1], (uint32_t)n[2], n[3]};
	return 0;
}
