/* SPDX-License-Identifier: MIT */
/* Files that are cut off, flipped, forged or could not be written: a sentence, never wrong data. */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/map.h"
#include "trace/layout.h"
#include "trace/reader.h"
#include "trace_everything.h"

static char path[64];

static struct file_map everything(void)
{
	struct trace_writer *w = NULL;
	struct file_map map = {0};
	struct err err = {0};

	unlink(path);
	if (trace_writer_open(&w, path, &err) == 0)
		everything_write(w);
	if (trace_writer_close(w, &err) < 0 || file_map_open(&map, path, &err) < 0) {
		printf("%s\n", err.text);
		exit(1);
	}
	unlink(path);
	return map;
}

/* What a reader got to see. */
struct seen {
	bool is_open;
	bool is_recovered;
	unsigned n_damaged; /* negative answers of the cursor */
	uint64_t n_records;
	uint64_t n_entries; /* of all tables */
	uint64_t content;   /* a hash of everything */
	struct err err;	    /* of the open, or the last damaged chunk */
};

static void mix(struct seen *s, uint64_t word)
{
	s->content = map_hash_mix(s->content, word);
}

static void mix_text(struct seen *s, const char *text)
{
	mix(s, text ? map_hash_bytes(text, strlen(text)) : 1);
}

static void see_symbols(struct seen *s, const struct trace_reader *r)
{
	for (uint32_t i = 0; i < trace_reader_n_frames(r); i++) {
		const struct trace_symbol *symbol = trace_reader_symbol(r, i);

		mix(s, symbol ? symbol->n_levels + 1 : 0);
		if (!symbol)
			continue;
		mix_text(s, trace_reader_string(r, symbol->reason));
		for (uint32_t k = 0; k < symbol->n_levels; k++) {
			mix_text(s, trace_reader_string(r, symbol->levels[k].name));
			mix_text(s, trace_reader_string(r, symbol->levels[k].file));
			mix(s, symbol->levels[k].line);
			mix(s, symbol->levels[k].offset);
		}
	}
}

static void see_tables(struct seen *s, const struct trace_reader *r)
{
	const char *key;

	for (uint32_t i = 0; (key = trace_reader_meta_key(r, i)); i++) {
		mix_text(s, key);
		mix_text(s, trace_reader_meta(r, key));
	}
	for (uint32_t i = 0; i < trace_reader_n_strings(r); i++)
		mix_text(s, trace_reader_string(r, i));
	for (uint32_t i = 0; i < trace_reader_n_metrics(r); i++)
		mix(s, (uint64_t)trace_reader_metric(r, i)->name << 32 |
				trace_reader_metric(r, i)->unit);
	for (uint32_t i = 0; i < trace_reader_n_streams(r); i++)
		mix(s, (uint64_t)trace_reader_stream(r, i)->kind << 32 |
				trace_reader_stream(r, i)->number);
	for (uint32_t i = 0; i < trace_reader_n_images(r); i++) {
		const struct trace_image *image = trace_reader_image(r, i);

		mix_text(s, trace_reader_string(r, image->path));
		mix(s, image->kind ^ image->bits << 8 ^ (uint64_t)image->pid << 16);
		mix(s, map_hash_bytes(image->build_id, image->build_id_n));
		mix(s, image->file_bytes);
		mix(s, image->file_mtime_ns);
	}
	for (uint32_t i = 0; i < trace_reader_n_threads(r); i++) {
		mix(s, (uint64_t)trace_reader_thread(r, i)->pid << 32 |
				trace_reader_thread(r, i)->tid);
		mix(s, trace_reader_thread(r, i)->start_ns);
	}
	for (uint32_t i = 0; i < trace_reader_n_frames(r); i++) {
		const struct trace_frame *f = trace_reader_frame(r, i);

		mix(s, f->addr);
		mix(s, (uint64_t)f->image << 32 | f->name);
		mix(s, f->kind << 1 | f->is_caller);
	}
	for (uint32_t i = 0; i < trace_reader_n_stacks(r); i++)
		mix(s, (uint64_t)trace_reader_stack(r, i)->parent << 32 |
				trace_reader_stack(r, i)->frame);
	see_symbols(s, r);
	s->n_entries = trace_reader_n_strings(r) + trace_reader_n_metrics(r) +
		       trace_reader_n_streams(r) + trace_reader_n_images(r) +
		       trace_reader_n_threads(r) + trace_reader_n_frames(r) +
		       trace_reader_n_stacks(r) - 7;
}

static void see_records(struct seen *s, const struct trace_reader *r)
{
	struct trace_record record;
	struct trace_cursor *c;
	int rc;

	if (trace_cursor_open(&c, r, TRACE_ALL_STREAMS, 0, UINT64_MAX, &s->err) < 0)
		return;
	while ((rc = trace_cursor_next(c, &record, &s->err)) != 0) {
		if (rc < 0) {
			s->n_damaged++;
			continue;
		}
		s->n_records++;
		mix(s, record.time);
		mix(s, record.stream);
		mix(s, (uint64_t)record.major << 32 | record.minor);
		mix(s, map_hash_bytes(record.payload.p, record.payload.n));
	}
	trace_cursor_close(c);
}

/* Opens an exact-size copy, so that a sanitizer sees reads behind the end. */
static struct seen look(const uint8_t *p, size_t n)
{
	struct seen s = {0};
	struct trace_reader *r = NULL;
	uint8_t *copy = malloc(n ? n : 1);

	if (n)
		memcpy(copy, p, n);
	if (trace_reader_open_bytes(&r, (struct span){copy, n}, "x.weir", &s.err) == 0) {
		s.is_open = true;
		s.is_recovered = trace_reader_is_recovered(r, NULL);
		see_tables(&s, r);
		see_records(&s, r);
		trace_reader_close(r);
	}
	free(copy);
	return s;
}

static bool has_entries(uint32_t type)
{
	return type != CHUNK_TYPE_META && type != CHUNK_TYPE_SYMBOLS && type != CHUNK_TYPE_KINDS &&
	       type != CHUNK_TYPE_INDEX;
}

/* What the whole chunks within the first n bytes hold, from their headers alone. */
static void expect_prefix(struct span file, size_t n, uint64_t *n_records, uint64_t *n_entries)
{
	size_t at = TRACE_HEADER_BYTES;
	struct chunk_header h;

	*n_records = *n_entries = 0;
	while (at + CHUNK_HEADER_BYTES <= n && chunk_header_decode(&h, file.p + at) &&
		at + CHUNK_HEADER_BYTES + h.stored_bytes <= n) {
		if (h.type == CHUNK_TYPE_RECORDS)
			*n_records += h.count;
		else if (has_entries(h.type))
			*n_entries += h.count;
		at += CHUNK_HEADER_BYTES + h.stored_bytes;
	}
}

static void every_prefix(void)
{
	struct file_map map = everything();
	struct span file = map.bytes;

	for (size_t n = 0; n < file.n; n++) {
		struct seen s = look(file.p, n);
		uint64_t n_records, n_entries;

		CHECK(s.is_open == (n >= TRACE_HEADER_BYTES));
		if (!s.is_open) {
			CHECK(!strncmp(s.err.text, "'x.weir': ", 10));
			continue;
		}
		expect_prefix(file, n, &n_records, &n_entries);
		CHECK(s.is_recovered);
		CHECK_EQ(s.n_damaged, 0);
		CHECK_EQ(s.n_records, n_records);
		CHECK_EQ(s.n_entries, n_entries);
	}
	file_map_release(&map);
}

static void every_bit(void)
{
	struct file_map map = everything();
	size_t n = map.bytes.n, n_refused = 0, n_damaged = 0, n_recovered = 0, n_same = 0;
	uint8_t *copy = malloc(n);
	struct seen whole = look(map.bytes.p, n);

	CHECK(whole.is_open && !whole.is_recovered && !whole.n_damaged);
	CHECK(whole.n_records > 100);
	memcpy(copy, map.bytes.p, n);
	for (size_t bit = 0; bit < n * 8; bit++) {
		struct seen s;

		copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
		s = look(copy, n);
		copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
		if (!s.is_open) {
			CHECK(strlen(s.err.text) > 20);
			n_refused++;
		} else if (s.n_damaged) {
			CHECK_EQ(s.n_damaged, 1);
			CHECK(strstr(s.err.text, "RECORDS chunk at offset "));
			CHECK(s.n_records < whole.n_records && s.n_records > 0);
			n_damaged++;
		} else {
			CHECK_EQ(s.content, whole.content);
			n_recovered += s.is_recovered;
			n_same += !s.is_recovered;
		}
	}
	/* Only the minor version and the reserved word of the header may flip unseen. */
	CHECK_EQ(n_same, 6 * 8);
	CHECK(n_refused > 0 && n_damaged > 0 && n_recovered > 0);
	free(copy);
	file_map_release(&map);
}

static void damage_costs_one_chunk(void)
{
	struct file_map map = everything();
	uint8_t *copy = malloc(map.bytes.n);
	struct seen whole = look(map.bytes.p, map.bytes.n);
	size_t at = TRACE_HEADER_BYTES, n_chunks = 0;
	struct chunk_header h;

	memcpy(copy, map.bytes.p, map.bytes.n);
	while (chunk_header_decode(&h, map.bytes.p + at) && h.type != CHUNK_TYPE_INDEX) {
		if (h.type == CHUNK_TYPE_RECORDS) {
			struct seen s;

			copy[at + CHUNK_HEADER_BYTES] ^= 1;
			s = look(copy, map.bytes.n);
			copy[at + CHUNK_HEADER_BYTES] ^= 1;
			CHECK_EQ(s.n_damaged, 1);
			CHECK_EQ(s.n_records, whole.n_records - h.count);
			n_chunks++;
		}
		at += CHUNK_HEADER_BYTES + h.stored_bytes;
	}
	CHECK(n_chunks > 8);
	free(copy);
	file_map_release(&map);
}

static void other_files(void)
{
	static const struct {
		const char *bytes;
		size_t n;
		const char *sentence;
	} cases[] = {
		{"", 0, "'x.weir': is not a weir trace (the file is empty)"},
		{"\x7f"
		 "ELF\x02",
			5, "'x.weir': is not a weir trace (first bytes are 7f 45 4c 46)"},
		{"a", 1, "'x.weir': is not a weir trace (first bytes are 61)"},
		{"\x89wei", 4, "'x.weir': the header of this weir trace is cut off after 4 bytes"},
		{"\x89weir\n\x1a\1\0\0\0\0\0\0\0\0", 16,
			"'x.weir': is not a weir trace (first bytes are 89 77 65 69)"},
		{TRACE_MAGIC "\2\0\0\0\0\0\0\0", 16,
			"'x.weir': has format version 2, this weir reads version 1 only"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct seen s = look((const uint8_t *)cases[i].bytes, cases[i].n);

		CHECK(!s.is_open);
		CHECK_STR(s.err.text, cases[i].sentence);
	}
	CHECK(look((const uint8_t *)TRACE_MAGIC "\1\0\7\0\0\0\0\0", 16).is_open);
}

static void missing_file(void)
{
	struct trace_reader *r;
	struct err err;

	CHECK(trace_reader_open(&r, "no-such.weir", &err) == ERR_NOT_FOUND);
	CHECK(!strncmp(err.text, "'no-such.weir': cannot open: No such file", 41));
	CHECK(trace_reader_open(&r, "/", &err) < 0);
	trace_reader_close(NULL);
	trace_cursor_close(NULL);
}

/* Forged files: chunks with right CRCs and wrong content. */

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
		CHECK(s.is_open == !f->phrase);
		if (!s.is_open && !strstr(s.err.text, f->phrase ? f->phrase : "?"))
			printf("forgery %zu: %s\n", i, s.err.text);
		CHECK(s.is_open || strstr(s.err.text, f->phrase ? f->phrase : "?"));
		buf_release(&b);
	}
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

/* The two ways to be without an index have sentences of their own. */
static void reasons_for_a_scan(void)
{
	struct file_map map = everything();
	uint8_t *copy = malloc(map.bytes.n);
	struct trace_reader *r = NULL;
	const char *why = NULL;
	struct err err;

	memcpy(copy, map.bytes.p, map.bytes.n);
	copy[map.bytes.n - 1] ^= 1;
	CHECK_EQ(trace_reader_open_bytes(&r, (struct span){copy, map.bytes.n}, "x", &err), 0);
	CHECK(trace_reader_is_recovered(r, &why));
	CHECK(why && strstr(why, "the end of the file is damaged; "));
	trace_reader_close(r);
	CHECK_EQ(trace_reader_open_bytes(&r, (struct span){copy, 1000}, "x", &err), 0);
	CHECK(trace_reader_is_recovered(r, &why));
	CHECK(why && strstr(why, "the recording ended without its index after "));
	CHECK(why && strstr(why, " bytes that follow are not readable"));
	trace_reader_close(r);
	free(copy);
	file_map_release(&map);
}

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
	CHECK_EQ(trace_reader_open_bytes(&r, buf_span(&b), "x.weir", &err), 0);
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

/* Disks that are full. */

static void full_device(void)
{
	struct trace_writer *w;
	struct err err = {0};

	CHECK(trace_writer_open(&w, "/dev/full", &err) < 0);
	CHECK_STR(err.text, "'/dev/full': cannot write after 0 bytes: No space left on device");
}

/* Writes everything under a limit for the file's size; what is there must be whole chunks. */
static void write_limited(rlim_t limit)
{
	struct rlimit old, small;
	struct trace_writer *w = NULL;
	struct err flush_err = {0}, close_err = {0};
	struct file_map map = {0};
	struct seen s;
	int opened;

	unlink(path);
	getrlimit(RLIMIT_FSIZE, &old);
	small = (struct rlimit){limit, old.rlim_max};
	setrlimit(RLIMIT_FSIZE, &small);
	opened = trace_writer_open(&w, path, &close_err);
	if (opened == 0) {
		everything_write(w);
		CHECK(trace_writer_flush(w, &flush_err) < 0);
		CHECK(trace_writer_bytes(w) <= limit);
		everything_write(w); /* harmless */
		CHECK(trace_writer_close(w, &close_err) < 0);
		CHECK_STR(close_err.text, flush_err.text);
	}
	setrlimit(RLIMIT_FSIZE, &old);
	CHECK(strstr(close_err.text, "cannot write after "));
	CHECK(strstr(close_err.text, "File too large"));
	CHECK(opened == 0 || access(path, F_OK) < 0);
	if (opened == 0 && file_map_open(&map, path, &close_err) == 0) {
		uint64_t n_records, n_entries;

		s = look(map.bytes.p, map.bytes.n);
		expect_prefix(map.bytes, map.bytes.n, &n_records, &n_entries);
		CHECK(map.bytes.n <= limit);
		CHECK(s.is_open && s.is_recovered);
		CHECK_EQ(s.n_records, n_records);
		CHECK_EQ(s.n_entries, n_entries);
		file_map_release(&map);
	}
	unlink(path);
}

static void file_size_limit(void)
{
	signal(SIGXFSZ, SIG_IGN);
	for (rlim_t limit = 0; limit < 2600; limit += 61)
		write_limited(limit);
	signal(SIGXFSZ, SIG_DFL);
}

int main(void)
{
	static const struct test tests[] = {
		{"every prefix of a trace keeps all its whole chunks, or says why not",
			every_prefix},
		{"every flipped bit is found, or changes nothing", every_bit},
		{"a damaged record chunk costs that chunk alone", damage_costs_one_chunk},
		{"a reader that had to scan says why", reasons_for_a_scan},
		{"a file that is something else is refused with its first bytes", other_files},
		{"a file that is not there is refused by name", missing_file},
		{"tables that refer to what is not there are refused", forged_tables},
		{"record chunks that do not add up are refused", forged_records},
		{"a chunk beyond the limit ends the scan", chunks_that_are_too_large},
		{"a stream whose time goes back is refused", time_that_goes_back},
		{"samples that refer to what is not there are refused", forged_samples},
		{"a full device is reported at once", full_device},
		{"a full disk leaves whole chunks and one sentence", file_size_limit},
	};

	snprintf(path, sizeof(path), "trace-damage-%d.weir", (int)getpid());
	return RUN_TESTS(tests);
}
