/* SPDX-License-Identifier: MIT */
/* Files that are cut off, flipped or could not be written: a sentence, never wrong data. */
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
#include "trace/layout.h"
#include "trace/reader.h"
#include "trace_everything.h"
#include "trace_seen.h"

static char path[64];

static struct file_map everything(void)
{
	struct trace_writer *w = NULL;
	struct file_map map = {0};
	struct err err = {0};

	unlink(path);
	if (trace_writer_open(&w, path, &err) == 0)
		everything_write_all(w);
	if (trace_writer_close(w, &err) < 0 || file_map_open(&map, path, &err) < 0) {
		printf("%s\n", err.text);
		exit(1);
	}
	unlink(path);
	return map;
}

static bool has_entries(uint32_t type)
{
	return type >= CHUNK_TYPE_STRINGS && type <= CHUNK_TYPE_STACKS;
}

/* What the whole chunks within the first n bytes hold, from their headers alone. */
static void expect_prefix(struct span file, size_t n, struct seen *expected)
{
	size_t at = TRACE_HEADER_BYTES;
	struct chunk_header h;

	*expected = (struct seen){0};
	while (at + CHUNK_HEADER_BYTES <= n && chunk_header_decode(&h, file.p + at) &&
		at + CHUNK_HEADER_BYTES + h.stored_bytes <= n) {
		if (h.type == CHUNK_TYPE_RECORDS)
			expected->n_records += h.count;
		else if (h.type == CHUNK_TYPE_FUNCTIONS)
			expected->n_functions += h.count;
		else if (h.type == CHUNK_TYPE_ADDRESSES)
			expected->n_spans += h.count;
		else if (has_entries(h.type))
			expected->n_entries += h.count;
		at += CHUNK_HEADER_BYTES + h.stored_bytes;
	}
}

static void every_prefix(void)
{
	struct file_map map = everything();
	struct span file = map.bytes;

	for (size_t n = 0; n < file.n; n++) {
		struct seen s = look(file.p, n), expected;

		CHECK(s.is_open == (n >= TRACE_HEADER_BYTES));
		if (!s.is_open) {
			CHECK(!strncmp(s.err.text, "'x.weir': ", 10));
			continue;
		}
		expect_prefix(file, n, &expected);
		CHECK(s.is_recovered);
		CHECK_EQ(s.n_damaged + s.n_damaged_functions, 0);
		CHECK_EQ(s.n_records, expected.n_records);
		CHECK_EQ(s.n_entries, expected.n_entries);
		CHECK_EQ(s.n_functions, expected.n_functions);
		CHECK_EQ(s.n_spans, expected.n_spans);
	}
	file_map_release(&map);
}

static void every_bit(void)
{
	struct file_map map = everything();
	size_t n = map.bytes.n, n_refused = 0, n_damaged = 0, n_recovered = 0, n_same = 0;
	size_t n_tables = 0, n_definitions = 0;
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
		} else if (s.n_damaged_tables) {
			CHECK(strstr(s.err.text, " chunk at offset "));
			CHECK_EQ(s.n_records + s.n_unplaced, whole.n_records);
			CHECK(s.n_entries >= whole.n_entries); /* what stands in, and how it is called */
			n_definitions++;
		} else if (s.n_damaged) {
			CHECK_EQ(s.n_damaged, 1);
			CHECK(strstr(s.err.text, "RECORDS chunk at offset "));
			CHECK(s.n_records < whole.n_records && s.n_records > 0);
			n_damaged++;
		} else if (s.n_damaged_functions) {
			CHECK_EQ(s.n_damaged_functions, 1);
			CHECK(strstr(s.err.text, "FUNCTIONS chunk at offset "));
			CHECK_EQ(s.n_records, whole.n_records);
			CHECK(s.n_functions == 2 || s.n_functions == 4);
			n_tables++;
		} else {
			CHECK_EQ(s.content, whole.content);
			n_recovered += s.is_recovered;
			n_same += !s.is_recovered;
		}
	}
	/* Only the minor version and the reserved word of the header may flip unseen. */
	CHECK_EQ(n_same, 6 * 8);
	CHECK(n_refused > 0 && n_damaged > 0 && n_definitions > 1000 && n_tables > 0 && n_recovered > 0);
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
	CHECK_EQ(trace_reader_open_bytes(&r, (struct span){copy, map.bytes.n}, true, "x", &err), 0);
	CHECK(trace_reader_is_recovered(r, &why));
	CHECK(why && strstr(why, "the end of the file is damaged; "));
	trace_reader_close(r);
	CHECK_EQ(trace_reader_open_bytes(&r, (struct span){copy, 1000}, true, "x", &err), 0);
	CHECK(trace_reader_is_recovered(r, &why));
	CHECK(why && strstr(why, "the recording ended without its index after "));
	CHECK(why && strstr(why, " bytes that follow are not readable"));
	trace_reader_close(r);
	free(copy);
	file_map_release(&map);
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
		everything_write_all(w);
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
		struct seen expected;

		s = look(map.bytes.p, map.bytes.n);
		expect_prefix(map.bytes, map.bytes.n, &expected);
		CHECK(map.bytes.n <= limit);
		CHECK(s.is_open && s.is_recovered);
		CHECK_EQ(s.n_records, expected.n_records);
		CHECK_EQ(s.n_entries, expected.n_entries);
		CHECK_EQ(s.n_functions, expected.n_functions);
		CHECK_EQ(s.n_spans, expected.n_spans);
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

/* The file loses its contents while a reader has it open. */
static void truncated_meanwhile(void)
{
	struct file_map map = everything();
	struct trace_reader *r;
	struct trace_cursor *c;
	struct trace_record record;
	struct err err = {0};
	int fd = open(path, O_WRONLY | O_CREAT, 0600), rc;
	unsigned n_damaged = 0;

	CHECK_EQ(write(fd, map.bytes.p, map.bytes.n), map.bytes.n);
	close(fd);
	CHECK_EQ(trace_reader_open(&r, path, &err), 0);
	CHECK_EQ(truncate(path, 0), 0);
	CHECK_EQ(trace_cursor_open(&c, r, TRACE_ALL_STREAMS, 0, UINT64_MAX, &err), 0);
	while ((rc = trace_cursor_next(c, &record, &err)) != 0)
		if (rc < 0) {
			CHECK(strstr(err.text, "the file was truncated while it was read"));
			n_damaged++;
		}
	CHECK(n_damaged > 0);
	trace_cursor_close(c);
	trace_reader_close(r);
	file_map_release(&map);
	unlink(path);
}

int main(void)
{
	static const struct test tests[] = {
		{"every prefix of a trace keeps all its whole chunks, or says why not",
			every_prefix},
		{"every flipped bit is found, or changes nothing", every_bit},
		{"a damaged record chunk costs that chunk alone", damage_costs_one_chunk},
		{"a trace that is truncated while it is read says so", truncated_meanwhile},
		{"a reader that had to scan says why", reasons_for_a_scan},
		{"a file that is something else is refused with its first bytes", other_files},
		{"a file that is not there is refused by name", missing_file},
		{"a full device is reported at once", full_device},
		{"a full disk leaves whole chunks and one sentence", file_size_limit},
	};

	snprintf(path, sizeof(path), "trace-damage-%d.weir", (int)getpid());
	return RUN_TESTS(tests);
}
