/* SPDX-License-Identifier: MIT */
/* Chunks with right check sums and wrong content: a sentence, never wrong data. */
#include "check.h"

#include <stdlib.h>

#include "base/buf.h"
#include "trace/layout.h"
#include "trace/reader.h"
#include "trace_seen.h"

static void put_chunk(struct buf *b, struct chunk_header h, const char *payload, size_t n)
{
	uint8_t header[CHUNK_HEADER_BYTES];

	if (!h.stored_bytes)
		h.stored_bytes = (uint32_t)n;
	if (!h.raw_bytes)
		h.raw_bytes = (uint32_t)n;
	chunk_header_encode(header, &h, (struct span){(const uint8_t *)payload, n});
	buf_put(b, header, sizeof(header));
	buf_put(b, payload, n);
}

#define CHUNK(b, type_, count_, payload)                                                           \
	put_chunk(b, (struct chunk_header){.type = type_, .count = count_}, payload,               \
		sizeof(payload) - 1)

/* One of each table, so that id 1 is defined everywhere and 2 nowhere. */
static void put_basis(struct buf *b)
{
	uint8_t header[TRACE_HEADER_BYTES];

	trace_header_encode(header);
	buf_put(b, header, sizeof(header));
	CHUNK(b, CHUNK_TYPE_STRINGS, 1, "\1a\0");
	CHUNK(b, CHUNK_TYPE_METRICS, 1, "\1\1\1");
	CHUNK(b, CHUNK_TYPE_THREADS, 1, "\1\1\1\1");
	CHUNK(b, CHUNK_TYPE_STREAMS, 1, "\1\2\0");
	CHUNK(b, CHUNK_TYPE_IMAGES, 1, "\1\1\1\0\0\0\0\0");
	CHUNK(b, CHUNK_TYPE_FRAMES, 1, "\1\1\0");
	CHUNK(b, CHUNK_TYPE_STACKS, 1, "\1\1\1");
	CHUNK(b, CHUNK_TYPE_KINDS, 1, "\1\x40\x40");
}

struct forgery {
	uint16_t type;
	uint32_t count;
	const char *payload;
	size_t n;
	const char *phrase; /* of the sentence; NULL: it is fine */
};
#define PAYLOAD(p) p, sizeof(p) - 1

#define EIGHT "abcdefgh"
#define ROW   "\1\1\1\1\1\1\1\1\1" /* of the address index, the first of its chunk */

static const struct forgery forgeries[] = {
	{CHUNK_TYPE_STRINGS, 1, PAYLOAD("\2b\0"), NULL},
	{CHUNK_TYPE_STRINGS, 1, PAYLOAD("\3b\0"), "begins with id 3, but 2 is next"},
	{CHUNK_TYPE_STRINGS, 1, PAYLOAD("\1b\0"), "begins with id 1, but 2 is next"},
	{CHUNK_TYPE_STRINGS, 1, PAYLOAD("\2b"), "entry 0: is cut off"},
	{CHUNK_TYPE_STRINGS, 2, PAYLOAD("\2b\0"), "entry 1: is cut off"},
	{CHUNK_TYPE_STRINGS, 1, PAYLOAD("\2b\0c"), "1 bytes are left over"},
	{CHUNK_TYPE_STRINGS, 0xffffffff, PAYLOAD("\2b\0"), "the table is larger than"},
	{CHUNK_TYPE_STRINGS, 1, PAYLOAD(""), "begins with id 0"},
	{CHUNK_TYPE_META, 0xffffffff, PAYLOAD("a\0b\0"), "entries do not fit"},
	{CHUNK_TYPE_META, 1, PAYLOAD("a\0b"), "cut off"},
	{CHUNK_TYPE_METRICS, 1, PAYLOAD("\2\2\0"), "entry 0: the name is 2"},
	{CHUNK_TYPE_METRICS, 1, PAYLOAD("\2\0\x80\x80\4"), "the unit is 65536"},
	{CHUNK_TYPE_STREAMS, 1, PAYLOAD("\2\3\1"), NULL},
	{CHUNK_TYPE_STREAMS, 1, PAYLOAD("\2\3\2"), "the thread is 2"},
	{CHUNK_TYPE_STREAMS, 1, PAYLOAD("\2\0\1"), "the kind of stream is 0"},
	{CHUNK_TYPE_STREAMS, 1, PAYLOAD("\2\4\1"), "the kind of stream is 4"},
	{CHUNK_TYPE_STREAMS, 1, PAYLOAD("\2\1\x80\x80\x80\x80\x10"), "the number is 4294967296"},
	{CHUNK_TYPE_IMAGES, 1, PAYLOAD("\2\1\2\0\0\0\0\0"), "the path is 2"},
	{CHUNK_TYPE_IMAGES, 1, PAYLOAD("\2\6\1\0\0\0\0\0"), "the kind of image is 6"},
	{CHUNK_TYPE_IMAGES, 1, PAYLOAD("\2\0\1\0\0\0\0\0"), "the kind of image is 0"},
	{CHUNK_TYPE_IMAGES, 1, PAYLOAD("\2\1\1\x10\0\0\0\0"), "the number of bits is 16"},
	{CHUNK_TYPE_IMAGES, 1, PAYLOAD("\2\1\1\0\x21\0\0\0"), "the length of the build-id is 33"},
	{CHUNK_TYPE_IMAGES, 1, PAYLOAD("\2\1\1\0\4\0\0\0"), "entry 0: is cut off"},
	{CHUNK_TYPE_FRAMES, 1, PAYLOAD("\2\x61\1\0\1"), NULL},
	{CHUNK_TYPE_FRAMES, 1, PAYLOAD("\2\x21\2\0"), "the image is 2"},
	{CHUNK_TYPE_FRAMES, 1, PAYLOAD("\2\x41\0\2"), "the name is 2"},
	{CHUNK_TYPE_FRAMES, 1, PAYLOAD("\2\x21\0\0"), "the image or name is 0"},
	{CHUNK_TYPE_FRAMES, 1, PAYLOAD("\2\x81\0"), "the tag is 129"},
	{CHUNK_TYPE_FRAMES, 1, PAYLOAD("\2\0\0"), "the tag is 0"},
	{CHUNK_TYPE_FRAMES, 1, PAYLOAD("\2\7\0"), "the tag is 7"},
	{CHUNK_TYPE_FRAMES, 1, PAYLOAD("\2\1"), "entry 0: is cut off"},
	{CHUNK_TYPE_STACKS, 2, PAYLOAD("\2\1\1\1\1"), NULL},
	{CHUNK_TYPE_STACKS, 1, PAYLOAD("\2\0\1"), "the step to the caller is 0"},
	{CHUNK_TYPE_STACKS, 1, PAYLOAD("\2\3\1"), "the step to the caller is 3"},
	{CHUNK_TYPE_STACKS, 1, PAYLOAD("\2\1\2"), "the frame is 2"},
	{CHUNK_TYPE_STACKS, 1, PAYLOAD("\2\1\0"), "the frame is 0"},
	{CHUNK_TYPE_KINDS, 1, PAYLOAD("\2\1"), "entry 0: is cut off"},
	{CHUNK_TYPE_SYMBOLS, 1, PAYLOAD("\1\1\1\1\1\0\0"), NULL},
	{CHUNK_TYPE_SYMBOLS, 1, PAYLOAD("\0\1\0"), "the frame is 0"},
	{CHUNK_TYPE_SYMBOLS, 1, PAYLOAD("\2\1\0"), "the frame is 2"},
	{CHUNK_TYPE_SYMBOLS, 1, PAYLOAD("\1\2\0"), "the reason is 2"},
	{CHUNK_TYPE_SYMBOLS, 1, PAYLOAD("\1\1\x41"), "the number of levels is 65"},
	{CHUNK_TYPE_SYMBOLS, 1, PAYLOAD("\1\1\1\2\0\0\0"), "the name is 2"},
	{CHUNK_TYPE_SYMBOLS, 1, PAYLOAD("\1\1\1\0\2\0\0"), "the file is 2"},
	{CHUNK_TYPE_IMAGE_FACTS, 1, PAYLOAD("\1\x3e" EIGHT "\1\1\2\3\4\5"), NULL},
	{CHUNK_TYPE_IMAGE_FACTS, 1, PAYLOAD("\1\0" EIGHT "\0"), NULL},
	{CHUNK_TYPE_IMAGE_FACTS, 1, PAYLOAD("\0\0" EIGHT "\0"), "the image is 0"},
	{CHUNK_TYPE_IMAGE_FACTS, 1, PAYLOAD("\2\0" EIGHT "\0"), "the image is 2"},
	{CHUNK_TYPE_IMAGE_FACTS, 1, PAYLOAD("\1\x80\x80\4" EIGHT "\0"), "the machine is 65536"},
	{CHUNK_TYPE_IMAGE_FACTS, 1, PAYLOAD("\1\0abcdefg"), "entry 0: is cut off"},
	{CHUNK_TYPE_IMAGE_FACTS, 1, PAYLOAD("\1\0" EIGHT), "entry 0: is cut off"},
	{CHUNK_TYPE_IMAGE_FACTS, 1, PAYLOAD("\1\0" EIGHT "\1\1\2\3\4"), "entry 0: is cut off"},
	{CHUNK_TYPE_IMAGE_FACTS, 1, PAYLOAD("\1\0" EIGHT "\1\1\2\3\4\x80"), "entry 0: is cut off"},
	{CHUNK_TYPE_IMAGE_FACTS, 1, PAYLOAD("\1\0" EIGHT "\1\1\2\3\4\5\6"),
		"1 bytes are left over"},
	{CHUNK_TYPE_IMAGE_FACTS, 1, PAYLOAD("\1\0" EIGHT "\1\1\2\3\4\x80\x80\x80\x80\x10"),
		"the flags is 4294967296"},
	{CHUNK_TYPE_IMAGE_FACTS, 1, PAYLOAD("\1\0" EIGHT "\x81\2\1\2\3\4\5"),
		"the number of segments is 257"},
	{CHUNK_TYPE_IMAGE_FACTS, 0xffffffff, PAYLOAD("\1\0" EIGHT "\0"), "entries do not fit"},
	{CHUNK_TYPE_MATCHES, 1, PAYLOAD("\1\4\1\1\1\0"), NULL},
	{CHUNK_TYPE_MATCHES, 1, PAYLOAD("\0\4\1\1\1\0"), "the image is 0"},
	{CHUNK_TYPE_MATCHES, 1, PAYLOAD("\2\4\1\1\1\0"), "the image is 2"},
	{CHUNK_TYPE_MATCHES, 1, PAYLOAD("\1\5\1\1\1\0"), "the rung is 5"},
	{CHUNK_TYPE_MATCHES, 1, PAYLOAD("\1\4\2\1\1\0"), "the reason is 2"},
	{CHUNK_TYPE_MATCHES, 1, PAYLOAD("\1\4\1\2\1\0"), "the catalog's id is 2"},
	{CHUNK_TYPE_MATCHES, 1, PAYLOAD("\1\4\1\1\2\0"), "the sources is 2"},
	{CHUNK_TYPE_MATCHES, 1, PAYLOAD("\1\4\1\1\1"), "entry 0: is cut off"},
	{CHUNK_TYPE_ADDRESSES, 1, PAYLOAD("\0\1" ROW), NULL},
	{CHUNK_TYPE_ADDRESSES, 2, PAYLOAD("\0\2" ROW "\0\0\0\1\0\0\1\0\x36"), NULL},
	{CHUNK_TYPE_ADDRESSES, 1, PAYLOAD("\1\1" ROW), "begins with id 1, but 0 is next"},
	{CHUNK_TYPE_ADDRESSES, 2, PAYLOAD("\0\1" ROW ROW), "the number of all rows is 1"},
	{CHUNK_TYPE_ADDRESSES, 1, PAYLOAD("\0\x81\x80\x80\x80\1" ROW),
		"the number of all rows is 268435457"},
	{CHUNK_TYPE_ADDRESSES, 1, PAYLOAD("\0"), "entry 0: is cut off"},
	{CHUNK_TYPE_ADDRESSES, 1, PAYLOAD("\0\1\1\1\1\1\1\1\1\1"), "entry 0: is cut off"},
	{CHUNK_TYPE_ADDRESSES, 1, PAYLOAD("\0\1\1\1\1\0\1\1\1\1\0"), "the length is 0"},
	{CHUNK_TYPE_ADDRESSES, 1, PAYLOAD("\0\1\1\1\x7f\1\1\1\1\1\0"), "the length is 1"},
	{CHUNK_TYPE_ADDRESSES, 1, PAYLOAD("\0\1\1\1\1\1\x7f\2\1\1\0"), "the duration is 2"},
	{CHUNK_TYPE_ADDRESSES, 1, PAYLOAD("\0\1\1\1\1\1\1\1\0\1\0"), "the image is 0"},
	{CHUNK_TYPE_ADDRESSES, 1, PAYLOAD("\0\1\1\1\1\1\1\1\2\1\0"), "the image is 2"},
	{CHUNK_TYPE_ADDRESSES, 1, PAYLOAD("\0\1\1\1\1\1\1\1\1\1\x07"), "the tag is 7"},
	{CHUNK_TYPE_ADDRESSES, 1, PAYLOAD("\0\1\1\1\1\1\1\1\1\1\x40"), "the tag is 64"},
	{CHUNK_TYPE_ADDRESSES, 1, PAYLOAD("\0\1\1\1\1\1\1\1\1\1\x80"), "the tag is 128"},
	{CHUNK_TYPE_ADDRESSES, 2, PAYLOAD("\0\2" ROW "\0\x7f\1\1\1\1\1\1\0"),
		"entry 1: is out of order"},
	{CHUNK_TYPE_ADDRESSES, 2, PAYLOAD("\0\2" ROW "\0\0\x7f\1\1\1\1\1\0"),
		"entry 1: is out of order"},
	{CHUNK_TYPE_ADDRESSES, 2, PAYLOAD("\0\2" ROW "\0\0\0\1\x7f\1\1\1\0"),
		"entry 1: is out of order"},
	{CHUNK_TYPE_ADDRESSES, 2, PAYLOAD("\0\2" ROW "\xff\xff\xff\xff\x0f\0\0\1\0\1\1\1\0"),
		"the step to the pid is 4294967295"},
	{99, 5, PAYLOAD("what is this"), NULL},
};

static void forged_tables(void)
{
	for (size_t i = 0; i < sizeof(forgeries) / sizeof(forgeries[0]); i++) {
		const struct forgery *f = &forgeries[i];
		struct buf b = {0};
		struct seen s;

		put_basis(&b);
		put_chunk(&b, (struct chunk_header){.type = f->type, .count = f->count}, f->payload,
			f->n);
		s = look(b.p, b.n);
		/* Nothing that is too large is taken for granted; the rest costs its chunk. */
		CHECK(s.is_open || f->count > CHUNK_RAW_BYTES_MAX);
		CHECK_EQ(s.n_damaged_tables, f->phrase && s.is_open);
		if (f->phrase && !strstr(s.err.text, f->phrase))
			printf("forgery %zu: %s\n", i, s.err.text);
		CHECK(!f->phrase || strstr(s.err.text, f->phrase));
		buf_release(&b);
	}
}

/* Chunks of image 1; what is wrong in one costs the table and nothing else. */
static const struct forgery function_forgeries[] = {
	{1, 2, PAYLOAD("\1\2\1\3\4\x7f"), NULL},
	{1, 0, PAYLOAD(""), NULL},
	{2, 1, PAYLOAD("\1\2\1"), "image 2 is not defined"},
	{0, 1, PAYLOAD("\1\2\1"), "image 0 is not defined"},
	{1, 1, PAYLOAD("\1\2\2"), "entry 0: the name is 2"},
	{1, 1, PAYLOAD("\1\2\x7f"), "entry 0: the name is 18446744073709551615"},
	{1, 1, PAYLOAD("\1\2\x81"), "entry 0: is cut off"},
	{1, 2, PAYLOAD("\1\2\1"), "2 entries do not fit"},
	{1, 0xffffffff, PAYLOAD("\1\2\1"), "4294967295 entries do not fit"},
	{1, 1, PAYLOAD("\1\2\1\1"), "1 bytes are left over"},
	{1, 1, PAYLOAD("\1\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\1"),
		"entry 0: the size is 18446744073709551615"},
	{1, 2, PAYLOAD("\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\0\1\1\0\0"),
		"entry 1: the step to the start is 1"},
};

static void forged_functions(void)
{
	size_t n_cases = sizeof(function_forgeries) / sizeof(function_forgeries[0]);

	for (size_t i = 0; i < n_cases; i++) {
		const struct forgery *f = &function_forgeries[i];
		struct chunk_header h = {
			.type = CHUNK_TYPE_FUNCTIONS, .stream = f->type, .count = f->count};
		bool is_refused = f->phrase && strstr(f->phrase, "not defined");
		struct buf b = {0};
		struct seen s;

		put_basis(&b);
		put_chunk(&b, h, f->payload, f->n);
		s = look(b.p, b.n);
		CHECK(s.is_open);
		CHECK_EQ(s.n_damaged_tables, is_refused);
		CHECK_EQ(s.n_damaged_functions, f->phrase && !is_refused);
		CHECK_EQ(s.n_functions, f->phrase ? 0 : f->count);
		if (f->phrase && !strstr(s.err.text, f->phrase))
			printf("case %zu: %s\n", i, s.err.text);
		CHECK(!f->phrase || strstr(s.err.text, f->phrase));
		buf_release(&b);
	}
}

/* Names may refer to strings that came before, whatever comes later; starts go on from chunk to
 * chunk. */
static void functions_in_several_chunks(void)
{
	static const struct {
		const char *second;
		size_t n;
		const char *phrase;
	} cases[] = {
		{PAYLOAD("\5\0\1"), NULL},
		{PAYLOAD("\4\0\1"), "entry 0: is out of order"},
		{PAYLOAD("\5\0\2"), "entry 0: the name is 2"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct chunk_header h = {.type = CHUNK_TYPE_FUNCTIONS, .stream = 1, .count = 1};
		struct buf b = {0};
		struct seen s;

		put_basis(&b);
		put_chunk(&b, h, "\5\1\1", 3);
		put_chunk(&b, h, cases[i].second, cases[i].n);
		CHUNK(&b, CHUNK_TYPE_STRINGS, 1, "\2b\0");
		s = look(b.p, b.n);
		CHECK(s.is_open);
		CHECK_EQ(s.n_functions, cases[i].phrase ? 0 : 2);
		CHECK_EQ(s.n_damaged_functions, cases[i].phrase != NULL);
		CHECK(!cases[i].phrase || strstr(s.err.text, cases[i].phrase));
		buf_release(&b);
	}
}

/* A recording that was killed between two chunks of its address index. */
static void address_index_that_is_not_whole(void)
{
	struct buf b = {0};

	put_basis(&b);
	CHUNK(&b, CHUNK_TYPE_ADDRESSES, 2, "\0\3" ROW ROW);
	CHECK(look(b.p, b.n).is_open);
	CHECK_EQ(look(b.p, b.n).n_spans, 0);
	CHUNK(&b, CHUNK_TYPE_ADDRESSES, 1, "\2\3\3\3\3\3\3\1\1\1\0");
	CHECK_EQ(look(b.p, b.n).n_spans, 3);
	CHUNK(&b, CHUNK_TYPE_ADDRESSES, 1, "\3\4\4\3\3\3\3\1\1\1\0");
	CHECK_EQ(look(b.p, b.n).n_damaged_tables, 1);
	CHECK_EQ(look(b.p, b.n).n_spans, 0);
	CHECK(strstr(look(b.p, b.n).err.text, "the number of all rows is 4"));
	buf_release(&b);
	put_basis(&b);
	CHUNK(&b, CHUNK_TYPE_ADDRESSES, 1, "\0\2" ROW);
	CHUNK(&b, CHUNK_TYPE_ADDRESSES, 1, "\1\2\0\1\1\1\1\1\1\1\0");
	CHECK(strstr(look(b.p, b.n).err.text, "entry 0: is out of order"));
	buf_release(&b);
}

static const struct {
	struct chunk_header header;
	const char *payload;
	size_t n;
	const char *phrase;
} forged_records_cases[] = {
	{{.stream = 1, .count = 1}, PAYLOAD("\1\0\0"), NULL},
	{{.stream = 1, .count = 2, .last_time = 5}, PAYLOAD("\1\2\3ab\1\0\2"), NULL},
	{{.stream = 2, .count = 1}, PAYLOAD("\1\0\0"), "stream 2 is not defined"},
	{{.stream = 0, .count = 1}, PAYLOAD("\1\0\0"), "stream 0 is not defined"},
	{{.stream = 1, .count = 1, .first_time = 2, .last_time = 1}, PAYLOAD("\1\0\0"),
		"its last time is before its first"},
	{{.stream = 1, .count = 1}, PAYLOAD("\2\0\0"), "record 0: its kind is not defined"},
	{{.stream = 1, .count = 1}, PAYLOAD("\0\0\0"), "record 0: its kind is not defined"},
	{{.stream = 1, .count = 1}, PAYLOAD("\1\1\0"), "record 0: is cut off"},
	{{.stream = 1, .count = 2}, PAYLOAD("\1\0\0"), "record 1: is cut off"},
	{{.stream = 1, .count = 1}, PAYLOAD("\1\0\0\1"), "its end is not where"},
	{{.stream = 1, .count = 1}, PAYLOAD("\1\0\1"), "record 0: is later than the last"},
	{{.stream = 1, .count = 1, .last_time = 9}, PAYLOAD("\1\0\1"), "its end is not where"},
	{{.stream = 1, .count = 0}, PAYLOAD("\1\0\1"), "has bytes but no records"},
	{{.stream = 1, .count = 1}, PAYLOAD("\1\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\2"),
		"record 0: is cut off"},
	{{.stream = 1, .count = 1, .flags = 2}, PAYLOAD("\1\0\0"), "flags 0x2 are not known"},
	{{.stream = 1, .count = 1, .flags = 1}, PAYLOAD("\1\0\0"), "cannot unpack"},
	{{.stream = 1, .count = 1, .raw_bytes = 4}, PAYLOAD("\1\0\0"), "its two lengths differ"},
};

static void forged_records(void)
{
	size_t n_cases = sizeof(forged_records_cases) / sizeof(forged_records_cases[0]);

	for (size_t i = 0; i < n_cases; i++) {
		struct chunk_header h = forged_records_cases[i].header;
		const char *phrase = forged_records_cases[i].phrase;
		struct buf b = {0};
		struct seen s;

		h.type = CHUNK_TYPE_RECORDS;
		put_basis(&b);
		put_chunk(&b, h, forged_records_cases[i].payload, forged_records_cases[i].n);
		s = look(b.p, b.n);
		CHECK((s.is_open && !s.n_damaged) == !phrase);
		if (phrase && !strstr(s.err.text, phrase))
			printf("case %zu: %s\n", i, s.err.text);
		CHECK(!phrase || strstr(s.err.text, phrase));
		buf_release(&b);
	}
}

static void chunks_that_are_too_large(void)
{
	struct buf b = {0};
	struct seen s;
	struct chunk_header h = {.type = CHUNK_TYPE_META, .raw_bytes = CHUNK_RAW_BYTES_MAX + 1};

	put_basis(&b);
	put_chunk(&b, h, "", 0);
	s = look(b.p, b.n); /* a scan stops there */
	CHECK(s.is_open && s.is_recovered);
	CHECK_EQ(s.n_entries, 7);
	buf_release(&b);
}

static void time_that_goes_back(void)
{
	struct chunk_header h = {.type = CHUNK_TYPE_RECORDS,
		.stream = 1,
		.count = 1,
		.first_time = 9,
		.last_time = 9};
	struct buf b = {0};
	struct seen s;

	put_basis(&b);
	put_chunk(&b, h, "\1\0\0", 3);
	h.first_time = h.last_time = 8;
	put_chunk(&b, h, "\1\0\0", 3);
	s = look(b.p, b.n);
	CHECK(!s.is_open);
	CHECK(strstr(s.err.text, "time goes back in stream 1"));
	buf_release(&b);
}

static void forged_samples(void)
{
	static const struct {
		const char *payload;
		size_t n;
		const char *phrase;
	} cases[] = {
		{PAYLOAD("\1\1\1\1"), NULL},
		{PAYLOAD("\0\0\0\0"), NULL},
		{PAYLOAD("\1\1\1\1new"), NULL},
		{PAYLOAD("\2\1\1\1"), "its thread is not defined"},
		{PAYLOAD("\1\2\1\1"), "its stack is not defined"},
		{PAYLOAD("\1\1\2\1"), "its metric is not defined"},
		{PAYLOAD("\1\1\1"), "its payload is too short"},
	};
	struct trace_sample sample = {9, 9, 9, 9};
	struct trace_reader *r = NULL;
	struct buf b = {0};
	struct err err;

	put_basis(&b);
	CHECK_EQ(trace_reader_open_bytes(&r, buf_span(&b), true, "x.weir", &err), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct trace_record record = {77, 1, RECORD_MAJOR_STACK_SAMPLE, RECORD_MINOR_STACK,
			{(const uint8_t *)cases[i].payload, cases[i].n}};
		int rc = trace_record_sample(r, &record, &sample, &err);

		CHECK_EQ(rc, cases[i].phrase ? ERR_FORMAT : 0);
		CHECK(!cases[i].phrase || strstr(err.text, cases[i].phrase));
	}
	CHECK(strstr(err.text, "'x.weir': record 0x40/0x7fffffff of stream 1 at time 77: "));
	trace_reader_close(r);
	buf_release(&b);
}

int main(void)
{
	static const struct test tests[] = {
		{"tables that refer to what is not there are refused", forged_tables},
		{"a forged function table counts as none, and says why", forged_functions},
		{"functions go on from chunk to chunk, in order", functions_in_several_chunks},
		{"an address index that is not whole counts as none",
			address_index_that_is_not_whole},
		{"record chunks that do not add up are refused", forged_records},
		{"a chunk beyond the limit ends the scan", chunks_that_are_too_large},
		{"a stream whose time goes back is refused", time_that_goes_back},
		{"samples that refer to what is not there are refused", forged_samples},
	};

	return RUN_TESTS(tests);
}
