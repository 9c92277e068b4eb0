/* SPDX-License-Identifier: MIT */
/* Format files of tracepoints, and records that are laid out as they say. */
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

static const struct tracepoint_spec munmap_spec = {"syscalls/sys_enter_munmap", {"addr", "len"}};

static int parse(struct tracepoint *t, const struct tracepoint_spec *spec, const char *text)
{
	struct err err;

	return tracepoint_parse(t, spec, (struct span){(const uint8_t *)text, strlen(text)}, &err);
}

static void test_format(void)
{
	struct tracepoint t = {0};

	CHECK_EQ(parse(&t, &munmap_spec, linux_6), 0);
	CHECK_EQ(t.id, 693);
	CHECK_EQ(t.fields[0].at, 16);
	CHECK_EQ(t.fields[0].bytes, 8);
	CHECK_EQ(t.fields[1].at, 24);
	CHECK(!t.fields[1].is_signed);
	CHECK_EQ(parse(&t, &munmap_spec,
			 "ID: 7\nfield:u64 len; offset:40; size:8;\nfield:u64 addr; offset:8; "
			 "size:4;\n"),
		0);
	CHECK_EQ(t.id, 7);
	CHECK_EQ(t.fields[0].at, 8);
	CHECK_EQ(t.fields[0].bytes, 4);
	CHECK_EQ(t.fields[1].at, 40);
	CHECK_EQ(parse(&t, &(struct tracepoint_spec){"irq/x", {"__syscall_nr"}}, linux_6), 0);
	CHECK_EQ(t.fields[0].at, 8);
	CHECK_EQ(t.fields[0].bytes, 4);
	CHECK(t.fields[0].is_signed);
	CHECK_EQ(t.fields[1].bytes, 0);
	CHECK_EQ(parse(&t, &(struct tracepoint_spec){"irq/x", {NULL}}, "ID: 9\n"), 0);
	CHECK_EQ(t.id, 9);
	CHECK_EQ(t.fields[0].bytes, 0);
}

static void test_bad_format(void)
{
	static const char *const bad[] = {
		"",
		"ID: 0\nfield:u64 len; offset:40; size:8;\nfield:u64 addr; offset:8; size:8;\n",
		"ID: 7\nfield:u64 addr; offset:8; size:8;\n",
		"ID: 7\nfield:u64 len; offset:40; size:8;\n",
		"field:u64 len; offset:40; size:8;\nfield:u64 addr; offset:8; size:8;\n",
		"ID: 7\nfield:u64 len; offset:40; size:2;\nfield:u64 addr; offset:8; size:8;\n",
		"ID: 7\nfield:u64 len; offset:99999; size:8;\nfield:u64 addr; offset:8; size:8;\n",
		"ID: 7\nfield:u64 xlen; offset:40; size:8;\nfield:u64 addr; offset:8; size:8;\n",
		"ID: 7\nfield:len\nfield:addr\n",
		"ID: 7\nfield:len;\nfield:;\n",
		"ID: 7\nfield: len; offset:; size:;\n",
	};
	struct tracepoint t = {.id = 5};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(parse(&t, &munmap_spec, bad[i]) < 0);
	CHECK_EQ(t.id, 5);
	for (size_t n = 0; n < sizeof(linux_6) - 1; n++) { /* cut anywhere */
		char *text = mem_strndup(linux_6, n);

		parse(&t, &munmap_spec, text);
		free(text);
	}
}

static void put_head(struct buf *b)
{
	struct perf_event_header h = {.type = PERF_RECORD_SAMPLE};

	buf_put(b, &h, sizeof(h));
	buf_put_u64(b, 42); /* id */
	buf_put_u32(b, 100);
	buf_put_u32(b, 101);
	buf_put_u64(b, 123456789);
	buf_put_u32(b, 3);
	buf_put_u32(b, 0);
}

static void put_record(struct buf *b, uint32_t raw_bytes)
{
	put_head(b);
	buf_put_u32(b, raw_bytes);
	buf_put_u64(b, 0x0000006500000005u);
	buf_put_u64(b, 11);
	buf_put_u64(b, 0x7f0000001000u);
	buf_put_u64(b, 0x2000);
	buf_put_u32(b, 0);
}

static const struct tracepoint munmap_point = {
	.id = 693, .fields = {{16, 8, false}, {24, 8, false}}};

/* Cut at any length, in a copy of that length, so that ASan sees an overrun. */
static void refused_when_cut(
	enum kernel_event event, const struct tracepoint *t, struct span record, size_t n_whole)
{
	uint64_t id;

	for (size_t n = 0; n < n_whole; n++) {
		uint8_t *copy = mem_dup(record.p, n + !n);

		CHECK(!collected_decode_kernel(event, t, (struct span){copy, n}));
		collected_sample_event((struct span){copy, n}, &id);
		free(copy);
	}
}

static void test_munmap_record(void)
{
	struct tracepoint t = munmap_point;
	struct collected *c;
	struct buf b = {0};
	uint64_t id = 0;

	put_record(&b, 36);
	CHECK(collected_sample_event(buf_span(&b), &id));
	CHECK_EQ(id, 42);
	c = collected_decode_kernel(KERNEL_EVENT_MUNMAP, &t, buf_span(&b));
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
	t.fields[1].at = 32; /* beyond the raw data */
	CHECK(!collected_decode_kernel(KERNEL_EVENT_MUNMAP, &t, buf_span(&b)));
	/* the last 4 bytes are filling, but counted */
	refused_when_cut(KERNEL_EVENT_MUNMAP, &munmap_point, buf_span(&b), b.n - 4);
	buf_reset(&b);
	put_record(&b, 1000);
	CHECK(!collected_decode_kernel(KERNEL_EVENT_MUNMAP, &munmap_point, buf_span(&b)));
	b.p[0] = PERF_RECORD_MMAP2;
	CHECK(!collected_sample_event(buf_span(&b), &id));
	buf_release(&b);
}

static int64_t number_of(enum kernel_event event, const struct tracepoint *t, struct span record)
{
	struct collected *c = collected_decode_kernel(event, t, record);
	int64_t number = INT64_MIN;

	CHECK(c && c->kind == COLLECTED_KERNEL && c->kernel.event == event && c->tid == 101);
	if (c)
		number = c->kernel.number;
	collected_free(c);
	return number;
}

static void test_other_records(void)
{
	struct tracepoint t = {.id = 1, .fields = {{8, 8, true}}};
	struct buf b = {0};

	put_head(&b);
	CHECK_EQ(number_of(KERNEL_EVENT_FAULT, &(struct tracepoint){0}, buf_span(&b)), 0);
	buf_put_u32(&b, 20);
	buf_put_u64(&b, 0);
	buf_put_u64(&b, (uint64_t)-1);
	buf_put_u32(&b, 0);
	CHECK_EQ(number_of(KERNEL_EVENT_SYS_EXIT, &t, buf_span(&b)), -1);
	t.fields[0].bytes = 4;
	CHECK_EQ(number_of(KERNEL_EVENT_IRQ_ENTRY, &t, buf_span(&b)), -1);
	t.fields[0].is_signed = false;
	CHECK_EQ(number_of(KERNEL_EVENT_SOFTIRQ_EXIT, &t, buf_span(&b)), UINT32_MAX);
	t.fields[0].at = 20;
	CHECK(!collected_decode_kernel(KERNEL_EVENT_SYS_ENTER, &t, buf_span(&b)));
	t.fields[0].at = 8;
	refused_when_cut(KERNEL_EVENT_SYS_ENTER, &t, buf_span(&b), b.n);
	buf_release(&b);
}

int main(void)
{
	static const struct test tests[] = {
		{"number and fields are found where the format file says", test_format},
		{"a format file that does not tell all of it is refused", test_bad_format},
		{"a munmap record is decoded by it, and one that is cut off is refused",
			test_munmap_record},
		{"faults have no number, others are extended by their sign", test_other_records},
	};

	return RUN_TESTS(tests);
}
