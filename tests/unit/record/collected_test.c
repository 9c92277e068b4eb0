/* SPDX-License-Identifier: MIT */
/* Hand-made perf records, laid out as perf_event_open(2) says, and what is decoded from them. */
#include <asm/perf_regs.h>
#include <stdlib.h>

#include "base/buf.h"
#include "check.h"
#include "record/collected.h"

#define PLAIN_SAMPLE                                                                               \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |            \
		PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD)
#define ALL_REGS                                                                                   \
	(((1ull << (PERF_REG_X86_IP + 1)) - 1) |                                                   \
		(((1ull << (PERF_REG_X86_R15 + 1)) - 1) & ~((1ull << PERF_REG_X86_R8) - 1)))
#define N_REGS	      17
#define TRAILER_BYTES 32

static const struct perf_event_attr plain = {.sample_type = PLAIN_SAMPLE, .sample_id_all = 1};
static const struct perf_event_attr full = {
	.sample_type = PLAIN_SAMPLE | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER |
		       PERF_SAMPLE_STACK_USER,
	.sample_id_all = 1,
	.sample_regs_user = ALL_REGS,
	.sample_stack_user = 64,
};

static bool refused(const struct perf_event_attr *attr, struct span record)
{
	struct collected *c = collected_decode(attr, record);

	free(c);
	return !c;
}

static void begin(struct buf *b, uint32_t type, uint16_t misc)
{
	buf_reset(b);
	buf_put_u32(b, type);
	buf_put_u16(b, misc);
	buf_put_u16(b, 0);
}

static struct span finish(struct buf *b)
{
	uint16_t size;

	while (b->n % 8)
		buf_put_u8(b, 0);
	size = (uint16_t)b->n;
	memcpy(b->p + 6, &size, sizeof(size));
	return buf_span(b);
}

/* What sample_id_all puts behind every record but samples. */
static struct span finish_with_id(struct buf *b)
{
	while (b->n % 8)
		buf_put_u8(b, 0);
	buf_put_u32(b, 901);
	buf_put_u32(b, 902);
	buf_put_u64(b, 123456789);
	buf_put_u32(b, 3);
	buf_put_u32(b, 0);
	buf_put_u64(b, 77);
	return finish(b);
}

static void put_sample_head(struct buf *b)
{
	buf_put_u64(b, 77);		     /* identifier */
	buf_put_u64(b, 0xffffffff81000010u); /* ip */
	buf_put_u32(b, 100);
	buf_put_u32(b, 101);
	buf_put_u64(b, 5555);
	buf_put_u32(b, 2);
	buf_put_u32(b, 0xdeadbeef); /* reserved */
	buf_put_u64(b, 250000);
}

static void put_full_sample(struct buf *b, uint64_t abi)
{
	put_sample_head(b);
	buf_put_u64(b, 4);
	buf_put_u64(b, (uint64_t)PERF_CONTEXT_KERNEL);
	buf_put_u64(b, 0xffffffff81000010u);
	buf_put_u64(b, 0xffffffff81000020u);
	buf_put_u64(b, 0xffffffff81000030u);
	buf_put_u64(b, abi);
	for (uint64_t i = 0; abi && i < N_REGS; i++)
		buf_put_u64(b, 1000 + i);
	buf_put_u64(b, abi ? 64 : 0);
	for (int i = 0; abi && i < 64; i++)
		buf_put_u8(b, (uint8_t)i);
	if (abi)
		buf_put_u64(b, 40);
}

static void test_plain_sample(void)
{
	struct buf b = {0};
	struct collected *c;

	begin(&b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
	put_sample_head(&b);
	c = collected_decode(&plain, finish(&b));
	CHECK(c);
	if (!c)
		return;
	CHECK_EQ(c->kind, COLLECTED_SAMPLE);
	CHECK_EQ(c->time, 5555);
	CHECK_EQ(c->cpu, 2);
	CHECK_EQ(c->pid, 100);
	CHECK_EQ(c->tid, 101);
	CHECK_EQ(c->sample.id, 77);
	CHECK_EQ(c->sample.ip, 0xffffffff81000010u);
	CHECK_EQ(c->sample.period, 250000);
	CHECK(!c->sample.in_kernel);
	CHECK(!c->sample.has_regs);
	CHECK_EQ(c->sample.n_kernel, 0);
	CHECK_EQ(c->sample.stack.n, 0);
	CHECK(c->bytes >= sizeof(*c));
	free(c);
	buf_release(&b);
}

static void test_full_sample(void)
{
	static const enum cpu_reg order[N_REGS] = {CPU_REG_RAX, CPU_REG_RBX, CPU_REG_RCX,
		CPU_REG_RDX, CPU_REG_RSI, CPU_REG_RDI, CPU_REG_RBP, CPU_REG_RSP, CPU_REG_RIP,
		CPU_REG_R8, CPU_REG_R9, CPU_REG_R10, CPU_REG_R11, CPU_REG_R12, CPU_REG_R13,
		CPU_REG_R14, CPU_REG_R15};
	struct buf b = {0};
	struct collected *c;

	begin(&b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL);
	put_full_sample(&b, PERF_SAMPLE_REGS_ABI_64);
	c = collected_decode(&full, finish(&b));
	buf_release(&b); /* nothing is borrowed from it */
	CHECK(c);
	if (!c)
		return;
	CHECK(c->sample.in_kernel);
	CHECK_EQ(c->sample.n_kernel, 3);
	for (uint64_t i = 0; i < c->sample.n_kernel; i++)
		CHECK_EQ(c->sample.kernel[i], 0xffffffff81000010u + 16 * i);
	CHECK(c->sample.has_regs);
	CHECK(c->sample.regs.is_64);
	CHECK_EQ(c->sample.regs.known, (1u << CPU_N_REGS) - 1);
	for (uint64_t i = 0; i < N_REGS; i++)
		CHECK_EQ(c->sample.regs.r[order[i]], 1000 + i);
	CHECK_EQ(c->sample.stack.n, 40);
	for (size_t i = 0; i < c->sample.stack.n; i++)
		CHECK_EQ(c->sample.stack.p[i], i);
	free(c);
}

static void test_32bit_sample(void)
{
	struct buf b = {0};
	struct collected *c;

	begin(&b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
	put_full_sample(&b, PERF_SAMPLE_REGS_ABI_32);
	c = collected_decode(&full, finish(&b));
	CHECK(c);
	if (!c)
		return;
	CHECK(c->sample.has_regs);
	CHECK(!c->sample.regs.is_64);
	CHECK(c->sample.regs.known >> CPU_REG_RSP & 1);
	CHECK(c->sample.regs.known >> CPU_REG_RIP & 1);
	for (int reg = CPU_REG_R8; reg <= CPU_REG_R15; reg++)
		CHECK(!(c->sample.regs.known >> reg & 1));
	CHECK_EQ(c->sample.regs.r[CPU_REG_RIP], 1008);
	free(c);
	buf_release(&b);
}

static void test_no_user_part(void)
{
	struct buf b = {0};
	struct collected *c;

	begin(&b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL);
	put_full_sample(&b, PERF_SAMPLE_REGS_ABI_NONE);
	c = collected_decode(&full, finish(&b));
	CHECK(c);
	if (!c)
		return;
	CHECK(!c->sample.has_regs);
	CHECK_EQ(c->sample.regs.known, 0);
	CHECK_EQ(c->sample.n_kernel, 3);
	CHECK_EQ(c->sample.stack.n, 0);
	free(c);
	buf_release(&b);
}

static void test_some_registers(void)
{
	struct perf_event_attr attr = full;
	struct buf b = {0};
	struct collected *c;

	attr.sample_type = PLAIN_SAMPLE | PERF_SAMPLE_REGS_USER;
	attr.sample_regs_user =
		1u << PERF_REG_X86_BP | 1u << PERF_REG_X86_SP | 1u << PERF_REG_X86_IP;
	begin(&b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
	put_sample_head(&b);
	buf_put_u64(&b, PERF_SAMPLE_REGS_ABI_64);
	buf_put_u64(&b, 51);
	buf_put_u64(&b, 52);
	buf_put_u64(&b, 53);
	c = collected_decode(&attr, finish(&b));
	CHECK(c);
	if (!c)
		return;
	CHECK_EQ(c->sample.regs.known, 1u << CPU_REG_RBP | 1u << CPU_REG_RSP | 1u << CPU_REG_RIP);
	CHECK_EQ(c->sample.regs.r[CPU_REG_RBP], 51);
	CHECK_EQ(c->sample.regs.r[CPU_REG_RSP], 52);
	CHECK_EQ(c->sample.regs.r[CPU_REG_RIP], 53);
	free(c);
	buf_release(&b);
}

static void test_full_stack(void)
{
	struct perf_event_attr attr = full;
	struct buf b = {0};
	struct collected *c;

	attr.sample_type = PLAIN_SAMPLE | PERF_SAMPLE_STACK_USER;
	begin(&b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
	put_sample_head(&b);
	buf_put_u64(&b, 8);
	buf_put_u64(&b, 0x1122334455667788u);
	buf_put_u64(&b, 8);
	c = collected_decode(&attr, finish(&b));
	CHECK(c && c->sample.stack.n == 8);
	free(c);
	b.p[b.n - 8] = 9; /* more used than copied */
	CHECK(refused(&attr, finish(&b)));
	buf_release(&b);
}

static void test_absurd_counts(void)
{
	static const uint64_t counts[] = {5, 1000, UINT64_MAX, UINT64_MAX / 8 + 2, 1ull << 61};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		struct perf_event_attr chain = plain, stack = plain;
		struct buf b = {0};

		chain.sample_type |= PERF_SAMPLE_CALLCHAIN;
		stack.sample_type |= PERF_SAMPLE_STACK_USER;
		begin(&b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
		put_sample_head(&b);
		buf_put_u64(&b, counts[i]);
		for (int k = 0; k < 4; k++)
			buf_put_u8(&b, 0);
		CHECK(refused(&chain, buf_span(&b)));
		CHECK(refused(&stack, buf_span(&b)));
		buf_release(&b);
	}
}

/* Every length short of the whole is refused; the copy is exact, so that ASan sees an overrun. */
static void refused_when_cut(const struct perf_event_attr *attr, struct span record)
{
	for (size_t n = 0; n < record.n; n++) {
		uint8_t *copy = malloc(n ? n : 1);
		struct collected *c;

		if (!copy)
			abort();
		memcpy(copy, record.p, n);
		c = collected_decode(attr, (struct span){copy, n});
		if (c)
			printf("a record of %zu bytes was taken when cut to %zu\n", record.n, n);
		CHECK(!c);
		free(c);
		free(copy);
	}
}

static void test_cut_samples(void)
{
	struct buf b = {0};

	begin(&b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
	put_sample_head(&b);
	refused_when_cut(&plain, finish(&b));
	begin(&b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
	put_full_sample(&b, PERF_SAMPLE_REGS_ABI_64);
	refused_when_cut(&full, finish(&b));
	buf_release(&b);
}

static void put_mmap_head(struct buf *b, uint16_t misc)
{
	begin(b, PERF_RECORD_MMAP2, misc);
	buf_put_u32(b, 100);
	buf_put_u32(b, 101);
	buf_put_u64(b, 0x7f0000000000u);
	buf_put_u64(b, 0x3000);
	buf_put_u64(b, 0x1000);
}

static void id_was_taken(const struct collected *c)
{
	CHECK_EQ(c->time, 123456789);
	CHECK_EQ(c->cpu, 3);
}

static void test_mmap_inode(void)
{
	struct buf b = {0};
	struct collected *c;

	put_mmap_head(&b, PERF_RECORD_MISC_USER);
	buf_put_u32(&b, 8);
	buf_put_u32(&b, 2);
	buf_put_u64(&b, 4242);
	buf_put_u64(&b, 1);
	buf_put_u32(&b, 5);
	buf_put_u32(&b, 2);
	buf_put_cstr(&b, "/usr/lib/libx y.so");
	buf_put_u8(&b, 0);
	c = collected_decode(&full, finish_with_id(&b));
	buf_release(&b);
	CHECK(c);
	if (!c)
		return;
	id_was_taken(c);
	CHECK_EQ(c->kind, COLLECTED_MMAP);
	CHECK_EQ(c->pid, 100); /* the record's own, not the trailer's */
	CHECK_EQ(c->tid, 101);
	CHECK_EQ(c->mmap.mapping.start, 0x7f0000000000u);
	CHECK_EQ(c->mmap.mapping.end, 0x7f0000003000u);
	CHECK_EQ(c->mmap.mapping.offset, 0x1000);
	CHECK_EQ(c->mmap.build_id_n, 0);
	CHECK_EQ(c->mmap.mapping.major, 8);
	CHECK_EQ(c->mmap.mapping.minor, 2);
	CHECK_EQ(c->mmap.mapping.inode, 4242);
	CHECK_EQ(c->mmap.mapping.prot, 5);
	CHECK_STR(c->mmap.mapping.path, "/usr/lib/libx y.so");
	free(c);
}

static void put_build_id_mmap(struct buf *b, uint8_t size)
{
	put_mmap_head(b, PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_BUILD_ID);
	buf_put_u8(b, size);
	buf_put_u8(b, 0);
	buf_put_u16(b, 0);
	for (uint8_t i = 0; i < 20; i++)
		buf_put_u8(b, i < size ? 0xa0 + i : 0);
	buf_put_u32(b, 5);
	buf_put_u32(b, 2);
	buf_put_cstr(b, "/bin/x");
	buf_put_u8(b, 0);
}

static void test_mmap_build_id(void)
{
	static const uint8_t sizes[] = {20, 16, 8};

	for (int i = 0; i < 3; i++) {
		struct buf b = {0};
		struct collected *c;

		put_build_id_mmap(&b, sizes[i]);
		c = collected_decode(&full, finish_with_id(&b));
		buf_release(&b);
		CHECK(c);
		if (!c)
			return;
		id_was_taken(c);
		CHECK_EQ(c->mmap.build_id_n, sizes[i]);
		for (uint8_t k = 0; k < c->mmap.build_id_n; k++)
			CHECK_EQ(c->mmap.build_id[k], 0xa0 + k);
		CHECK_EQ(c->mmap.mapping.inode, 0);
		CHECK_EQ(c->mmap.mapping.prot, 5);
		CHECK_STR(c->mmap.mapping.path, "/bin/x");
		free(c);
	}
}

/* Device 8:2, 254:0 and 0:35, with the mark of another recorder's event. */
static void test_mark_of_another(void)
{
	static const uint32_t devices[][2] = {{8, 2}, {254, 0}, {0, 35}};

	for (int i = 0; i < 3; i++) {
		struct buf b = {0};
		struct collected *c;

		put_mmap_head(&b, PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_BUILD_ID);
		buf_put_u32(&b, devices[i][0]);
		buf_put_u32(&b, devices[i][1]);
		buf_put_u64(&b, 4242);
		buf_put_u64(&b, 0);
		buf_put_u32(&b, 5);
		buf_put_u32(&b, 2);
		buf_put_cstr(&b, "/bin/x");
		buf_put_u8(&b, 0);
		c = collected_decode(&full, finish_with_id(&b));
		buf_release(&b);
		CHECK(c);
		if (!c)
			return;
		CHECK_EQ(c->mmap.build_id_n, 0);
		CHECK_EQ(c->mmap.mapping.major, devices[i][0]);
		CHECK_EQ(c->mmap.mapping.minor, devices[i][1]);
		CHECK_EQ(c->mmap.mapping.inode, 4242);
		free(c);
	}
}

/* Every field that comes in front of the stack, one that is skipped after the other. */
static void test_all_fields(void)
{
	static const struct perf_event_attr attr = {
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID |
			       PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_READ |
			       PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW | PERF_SAMPLE_BRANCH_STACK |
			       PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER | PERF_SAMPLE_WEIGHT,
		.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_ENABLED,
		.branch_sample_type = PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_CALL_STACK,
		.sample_regs_user = 1ull << PERF_REG_X86_SP | 1ull << PERF_REG_X86_FLAGS |
				    1ull << PERF_REG_X86_IP,
		.sample_id_all = 1,
	};
	static const uint64_t words[] = {0x401010, 101ull << 32 | 100, 5555, 0xadd7, 42, 43, 3,
		250000, /* two counters */ 2, 9, 1, 10, 2, 20,
		/* the chain */ 4, (uint64_t)PERF_CONTEXT_KERNEL, 0xffffffff81000010u,
		(uint64_t)PERF_CONTEXT_USER, 0x401010};
	static const uint64_t behind[] = {/* branches */ 2, 0x402000, 0x401000, 0, 0x403000,
		0x402ff0, 0, /* registers, by bit: SP, IP, FLAGS */ PERF_SAMPLE_REGS_ABI_64, 0x7000,
		0x401010, 0x246, /* stack */ 16, 1, 2, 8, /* weight */ 77};
	struct buf b = {0};
	struct collected *c;

	begin(&b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		buf_put_u64(&b, words[i]);
	buf_put_u32(&b, 4); /* raw */
	buf_put_u32(&b, 0x12345678);
	for (size_t i = 0; i < sizeof(behind) / sizeof(behind[0]); i++)
		buf_put_u64(&b, behind[i]);
	c = collected_decode(&attr, finish(&b));
	buf_release(&b);
	CHECK(c);
	if (!c)
		return;
	CHECK_EQ(c->pid, 100);
	CHECK_EQ(c->tid, 101);
	CHECK_EQ(c->time, 5555);
	CHECK_EQ(c->cpu, 3);
	CHECK_EQ(c->sample.id, 42);
	CHECK_EQ(c->sample.period, 250000);
	CHECK_EQ(c->sample.n_kernel, 1);
	CHECK_EQ(c->sample.kernel[0], 0xffffffff81000010u);
	CHECK_EQ(c->sample.n_user, 3); /* where it is, and behind the begin of each call */
	CHECK_EQ(c->sample.user[0], 0x401010);
	CHECK_EQ(c->sample.user[1], 0x402001);
	CHECK_EQ(c->sample.user[2], 0x403001);
	CHECK_EQ(c->sample.regs.r[CPU_REG_RSP], 0x7000);
	CHECK_EQ(c->sample.regs.r[CPU_REG_RIP], 0x401010);
	CHECK_EQ(c->sample.stack.n, 8);
	free(c);
}

static void put_comm(struct buf *b, uint16_t misc)
{
	begin(b, PERF_RECORD_COMM, misc);
	buf_put_u32(b, 100);
	buf_put_u32(b, 101);
	buf_put_cstr(b, "my name");
	buf_put_u8(b, 0);
}

static void test_comm(void)
{
	for (int is_exec = 0; is_exec < 2; is_exec++) {
		struct buf b = {0};
		struct collected *c;

		put_comm(&b, is_exec ? PERF_RECORD_MISC_COMM_EXEC : 0);
		c = collected_decode(&full, finish_with_id(&b));
		buf_release(&b);
		CHECK(c);
		if (!c)
			return;
		id_was_taken(c);
		CHECK_EQ(c->kind, COLLECTED_COMM);
		CHECK_EQ(c->pid, 100);
		CHECK_EQ(c->tid, 101);
		CHECK_STR(c->comm.name, "my name");
		CHECK_EQ(c->comm.is_exec, is_exec);
		free(c);
	}
}

static void put_task(struct buf *b, uint32_t type)
{
	begin(b, type, 0);
	buf_put_u32(b, 200);
	buf_put_u32(b, 100);
	buf_put_u32(b, 201);
	buf_put_u32(b, 101);
	buf_put_u64(b, 99999);
}

static void test_tasks(void)
{
	for (int i = 0; i < 2; i++) {
		struct buf b = {0};
		struct collected *c;

		put_task(&b, i ? PERF_RECORD_EXIT : PERF_RECORD_FORK);
		c = collected_decode(&full, finish_with_id(&b));
		buf_release(&b);
		CHECK(c);
		if (!c)
			return;
		id_was_taken(c);
		CHECK_EQ(c->kind, i ? COLLECTED_EXIT : COLLECTED_FORK);
		CHECK_EQ(c->pid, 200);
		CHECK_EQ(c->tid, 201);
		CHECK_EQ(c->fork.parent_pid, 100);
		CHECK_EQ(c->fork.parent_tid, 101);
		free(c);
	}
}

static void test_switches(void)
{
	static const uint16_t misc[] = {0, PERF_RECORD_MISC_SWITCH_OUT,
		PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT};

	for (int i = 0; i < 6; i++) {
		struct buf b = {0};
		struct collected *c;

		begin(&b, i < 3 ? PERF_RECORD_SWITCH : PERF_RECORD_SWITCH_CPU_WIDE, misc[i % 3]);
		if (i >= 3)
			buf_put_u64(&b, 0x0000000500000006u); /* the other side's pid and tid */
		c = collected_decode(&full, finish_with_id(&b));
		buf_release(&b);
		CHECK(c);
		if (!c)
			return;
		id_was_taken(c);
		CHECK_EQ(c->kind, COLLECTED_SWITCH);
		CHECK_EQ(c->pid, 901);
		CHECK_EQ(c->tid, 902);
		CHECK_EQ(c->sw.is_out, i % 3 != 0);
		CHECK_EQ(c->sw.is_preempted, i % 3 == 2);
		free(c);
	}
}

static void test_losses(void)
{
	struct buf b = {0};
	struct collected *c;

	begin(&b, PERF_RECORD_LOST, 0);
	buf_put_u64(&b, 77);
	buf_put_u64(&b, 12);
	c = collected_decode(&full, finish_with_id(&b));
	CHECK(c && c->kind == COLLECTED_LOST && c->lost.n == 12 && c->time == 123456789);
	free(c);
	begin(&b, PERF_RECORD_LOST_SAMPLES, 0);
	buf_put_u64(&b, 13);
	c = collected_decode(&full, finish_with_id(&b));
	CHECK(c && c->kind == COLLECTED_LOST && c->lost.n == 13 && c->cpu == 3);
	free(c);
	begin(&b, PERF_RECORD_THROTTLE, 0);
	buf_put_u64(&b, 1);
	buf_put_u64(&b, 2);
	buf_put_u64(&b, 3);
	c = collected_decode(&full, finish_with_id(&b));
	CHECK(c && c->kind == COLLECTED_THROTTLE && c->pid == 901);
	free(c);
	buf_release(&b);
}

static void test_cut_others(void)
{
	struct buf b = {0};

	/* The trailer is part of every one of these: without all of it the record is too short. */
	put_task(&b, PERF_RECORD_FORK);
	refused_when_cut(&full, finish_with_id(&b));
	begin(&b, PERF_RECORD_LOST, 0);
	buf_put_u64(&b, 77);
	buf_put_u64(&b, 12);
	refused_when_cut(&full, finish_with_id(&b));
	begin(&b, PERF_RECORD_SWITCH, 0);
	refused_when_cut(&full, finish_with_id(&b));
	buf_release(&b);
}

/* A text that is not ended before the trailer must not go on into it. */
static void test_unended_texts(void)
{
	struct buf b = {0};

	put_comm(&b, 0);
	b.n--;
	buf_put_cstr(&b, "x"); /* eight letters: no NUL, no padding */
	CHECK(refused(&full, finish_with_id(&b)));
	put_build_id_mmap(&b, 20);
	b.n--;
	while (b.n % 8)
		buf_put_cstr(&b, "x");
	CHECK(refused(&full, finish_with_id(&b)));
	buf_release(&b);
}

static void test_others(void)
{
	static const uint32_t types[] = {
		0, PERF_RECORD_READ, PERF_RECORD_AUX, PERF_RECORD_KSYMBOL, 9999};
	struct buf b = {0};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		begin(&b, types[i], 0);
		buf_put_u64(&b, 0);
		CHECK(refused(&full, finish_with_id(&b)));
	}
	CHECK(refused(&full, (struct span){NULL, 0}));
	buf_release(&b);
}

int main(void)
{
	static const struct test tests[] = {
		{"a plain sample gives who, when, where and how much", test_plain_sample},
		{"a full sample gives kernel frames, registers and the used stack",
			test_full_sample},
		{"a 32-bit sample has no r8 to r15", test_32bit_sample},
		{"a kernel thread's sample has neither registers nor stack", test_no_user_part},
		{"only the registers asked for are known", test_some_registers},
		{"a stack copy that is full says so, one that is overfull is refused",
			test_full_stack},
		{"counts larger than the record are refused", test_absurd_counts},
		{"a sample cut at any length is refused", test_cut_samples},
		{"a mapping with an inode", test_mmap_inode},
		{"a mapping with a build-id", test_mmap_build_id},
		{"the mark for build-ids on a record that has none", test_mark_of_another},
		{"a sample with all fields", test_all_fields},
		{"a name, set by exec or not", test_comm},
		{"forks and exits tell child and parent apart", test_tasks},
		{"switches tell in from out and preempted from waiting", test_switches},
		{"losses are counted from both kinds of record", test_losses},
		{"other records cut at any length are refused", test_cut_others},
		{"a text without end does not run into the record's trailer", test_unended_texts},
		{"records of other kinds are passed over", test_others},
	};

	return RUN_TESTS(tests);
}
