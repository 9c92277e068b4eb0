/* SPDX-License-Identifier: MIT */
/* The format file of the tracepoint, and records that are laid out as it says. */
#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "check.h"
#include "record/collected.h"

static const char linux_6[] =
	"name: sys_enter_munmap\n"
	"ID: 693\n"
	"format:\n"
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
	"\n"
	"\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n"
	"\tfield:unsigned long addr;\toffset:16;\tsize:8;\tsigned:0;\n"
	"\tfield:size_t len;\toffset:24;\tsize:8;\tsigned:0;\n"
	"\n"
	"print fmt: \"addr: 0x%08lx, len: 0x%08lx\", ((unsigned long)(REC->addr)), "
	"((unsigned long)(REC->len))\n";

static int parse(struct munmap_trace *t, const char *text)
{
	struct err err;

	return munmap_trace_parse(t, (struct span){(const uint8_t *)text, strlen(text)}, &err);
}

static void test_format(void)
{
	struct munmap_trace t = {0};

	CHECK_EQ(parse(&t, linux_6), 0);
	CHECK_EQ(t.id, 693);
	CHECK_EQ(t.addr_at, 16);
	CHECK_EQ(t.len_at, 24);
	CHECK_EQ(parse(&t, "ID: 7\nfield:u64 len; offset:40; size:8;\nfield:u64 addr; offset:8; "
			   "size:8;\n"),
		0);
	CHECK_EQ(t.id, 7);
	CHECK_EQ(t.addr_at, 8);
	CHECK_EQ(t.len_at, 40);
}

static void test_bad_format(void)
{
	static const char *const bad[] = {
		"",
		"ID: 0\nfield:u64 len; offset:40; size:8;\nfield:u64 addr; offset:8; size:8;\n",
		"ID: 7\nfield:u64 addr; offset:8; size:8;\n",
		"ID: 7\nfield:u64 len; offset:40; size:8;\n",
		"field:u64 len; offset:40; size:8;\nfield:u64 addr; offset:8; size:8;\n",
		"ID: 7\nfield:u64 len; offset:40; size:4;\nfield:u64 addr; offset:8; size:8;\n",
		"ID: 7\nfield:u64 len; offset:99999; size:8;\nfield:u64 addr; offset:8; size:8;\n",
		"ID: 7\nfield:u64 xlen; offset:40; size:8;\nfield:u64 addr; offset:8; size:8;\n",
		"ID: 7\nfield:len\nfield:addr\n",
		"ID: 7\nfield:len;\nfield:;\n",
		"ID: 7\nfield: len; offset:; size:;\n",
	};
	struct munmap_trace t = {.id = 5};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(parse(&t, bad[i]) < 0);
	CHECK_EQ(t.id, 5);
	for (size_t n = 0; n < sizeof(linux_6) - 1; n++) { /* cut anywhere */
		char *text = mem_strndup(linux_6, n);

		parse(&t, text);
		free(text);
	}
}

static void put_record(struct buf *b, uint32_t raw_bytes)
{
	struct perf_event_header h = {.type = PERF_RECORD_SAMPLE};

	buf_put(b, &h, sizeof(h));
	buf_put_u64(b, 42); /* id */
	buf_put_u32(b, 100);
	buf_put_u32(b, 101);
	buf_put_u64(b, 123456789);
	buf_put_u32(b, 3);
	buf_put_u32(b, 0);
	buf_put_u32(b, raw_bytes);
	buf_put_u64(b, 0x0000006500000005u);
	buf_put_u64(b, 11);
	buf_put_u64(b, 0x7f0000001000u);
	buf_put_u64(b, 0x2000);
	buf_put_u32(b, 0);
}

static void test_record(void)
{
	struct munmap_trace t = {.id = 693, .addr_at = 16, .len_at = 24};
	struct collected *c;
	struct buf b = {0};
	uint64_t id = 0;

	put_record(&b, 36);
	CHECK(collected_sample_event(buf_span(&b), &id));
	CHECK_EQ(id, 42);
	c = collected_decode_munmap(&t, buf_span(&b));
	CHECK(c != NULL);
	if (c) {
		CHECK_EQ(c->kind, COLLECTED_MUNMAP);
		CHECK_EQ(c->pid, 100);
		CHECK_EQ(c->tid, 101);
		CHECK_EQ(c->time, 123456789);
		CHECK_EQ(c->cpu, 3);
		CHECK_EQ(c->munmap.start, 0x7f0000001000u);
		CHECK_EQ(c->munmap.bytes, 0x2000);
	}
	collected_free(c);
	t.len_at = 32; /* beyond the raw data */
	CHECK(!collected_decode_munmap(&t, buf_span(&b)));
	t.len_at = 24;
	for (size_t n = 0; n < b.n - 4; n++) { /* the last 4 bytes are filling, but counted */
		uint8_t *copy = mem_dup(b.p, n + !n);

		CHECK(!collected_decode_munmap(&t, (struct span){copy, n}));
		collected_sample_event((struct span){copy, n}, &id);
		free(copy);
	}
	buf_reset(&b);
	put_record(&b, 1000);
	CHECK(!collected_decode_munmap(&t, buf_span(&b)));
	b.p[0] = PERF_RECORD_MMAP2;
	CHECK(!collected_sample_event(buf_span(&b), &id));
	buf_release(&b);
}

int main(void)
{
	static const struct test tests[] = {
		{"id, address and length are found where the format file says", test_format},
		{"a format file that does not tell all of it is refused", test_bad_format},
		{"a record is decoded by it, and one that is cut off is refused", test_record},
	};

	return RUN_TESTS(tests);
}
