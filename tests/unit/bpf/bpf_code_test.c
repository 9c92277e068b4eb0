/* SPDX-License-Identifier: MIT */
/* The BPF instruction builder, and with enough rights also the loader and the ring buffer. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bpf/code.h"
#include "bpf/kernel_map.h"
#include "bpf/program.h"
#include "bpf/ring.h"
#include "check.h"

/* The eight bytes of an instruction, laid out by hand as the kernel's documentation says. */
static uint64_t word(unsigned code, unsigned dst, unsigned src, int off, int32_t imm)
{
	return code | (uint64_t)(src << 4 | dst) << 8 | (uint64_t)(uint16_t)off << 16 |
	       (uint64_t)(uint32_t)imm << 32;
}

static uint64_t insn(const struct bpf_code *c, size_t i)
{
	uint64_t v = 0;

	CHECK(i < c->insns.n);
	if (i < c->insns.n)
		memcpy(&v, &c->insns.v[i], sizeof(v));
	return v;
}

static void test_encoding(void)
{
	struct bpf_code c = {0};

	bpf_mov_imm(&c, BPF_REG_0, -7);
	bpf_mov(&c, BPF_REG_6, BPF_REG_10);
	bpf_alu_imm(&c, BPF_ADD, BPF_REG_2, -16);
	bpf_alu(&c, BPF_SUB, BPF_REG_3, BPF_REG_4);
	bpf_load(&c, BPF_DW, BPF_REG_1, BPF_REG_9, 32767);
	bpf_load(&c, BPF_B, BPF_REG_1, BPF_REG_9, -32768);
	bpf_store(&c, BPF_W, BPF_REG_10, -4, BPF_REG_5);
	bpf_call(&c, BPF_FUNC_get_current_pid_tgid);
	bpf_exit(&c);
	CHECK_EQ(c.insns.n, 9);
	CHECK_EQ(insn(&c, 0), word(0xb7, 0, 0, 0, -7));
	CHECK_EQ(insn(&c, 1), word(0xbf, 6, 10, 0, 0));
	CHECK_EQ(insn(&c, 2), word(0x07, 2, 0, 0, -16));
	CHECK_EQ(insn(&c, 3), word(0x1f, 3, 4, 0, 0));
	CHECK_EQ(insn(&c, 4), word(0x79, 1, 9, 32767, 0));
	CHECK_EQ(insn(&c, 5), word(0x71, 1, 9, -32768, 0));
	CHECK_EQ(insn(&c, 6), word(0x63, 10, 5, -4, 0));
	CHECK_EQ(insn(&c, 7), word(0x85, 0, 0, 0, 14));
	CHECK_EQ(insn(&c, 8), word(0x95, 0, 0, 0, 0));
	bpf_code_release(&c);
}

static void test_map(void)
{
	struct bpf_code c = {0};

	bpf_load_map(&c, BPF_REG_1, 77);
	CHECK_EQ(c.insns.n, 2); /* a 16-byte instruction */
	CHECK_EQ(insn(&c, 0), word(0x18, 1, 1, 0, 77));
	CHECK_EQ(insn(&c, 1), 0);
	bpf_code_release(&c);
}

static void test_forward(void)
{
	struct bpf_code c = {0};
	int first = bpf_label(&c), second = bpf_label(&c);

	bpf_jump_imm(&c, BPF_JEQ, BPF_REG_1, 5, second);
	bpf_jump(&c, first);
	bpf_jump_reg(&c, BPF_JGT, BPF_REG_1, BPF_REG_2, second);
	bpf_place(&c, first);
	bpf_mov_imm(&c, BPF_REG_0, 0);
	bpf_jump_imm(&c, BPF_JNE, BPF_REG_3, -1, second);
	bpf_place(&c, second);
	bpf_exit(&c);
	CHECK_EQ(insn(&c, 0), word(0x15, 1, 0, 4, 5));
	CHECK_EQ(insn(&c, 1), word(0x05, 0, 0, 1, 0));
	CHECK_EQ(insn(&c, 2), word(0x2d, 1, 2, 2, 0));
	CHECK_EQ(insn(&c, 4), word(0x55, 3, 0, 0, -1));
	CHECK_EQ(c.jumps.n, 0);
	bpf_code_release(&c);
}

static void test_backward(void)
{
	struct bpf_code c = {0};
	int top = bpf_label(&c);

	bpf_mov_imm(&c, BPF_REG_1, 3);
	bpf_place(&c, top);
	bpf_alu_imm(&c, BPF_SUB, BPF_REG_1, 1);
	bpf_jump_imm(&c, BPF_JNE, BPF_REG_1, 0, top);
	bpf_jump(&c, top);
	CHECK_EQ(insn(&c, 2), word(0x55, 1, 0, -2, 0));
	CHECK_EQ(insn(&c, 3), word(0x05, 0, 0, -3, 0));
	CHECK_EQ(c.jumps.n, 0);
	bpf_code_release(&c);
}

/* A resolved offset that equals the number of a label placed later must stay as it is. */
static void test_offset_like_label(void)
{
	struct bpf_code c = {0};
	int labels[4];

	for (int i = 0; i < 4; i++)
		labels[i] = bpf_label(&c);
	bpf_jump(&c, labels[0]);
	bpf_exit(&c);
	bpf_exit(&c);
	bpf_exit(&c);
	bpf_place(&c, labels[0]); /* three ahead: now the offset is 3 */
	bpf_jump(&c, labels[3]);
	bpf_exit(&c);
	bpf_place(&c, labels[3]);
	bpf_exit(&c);
	CHECK_EQ(insn(&c, 0), word(0x05, 0, 0, 3, 0));
	CHECK_EQ(insn(&c, 4), word(0x05, 0, 0, 1, 0));
	bpf_code_release(&c);
}

static int run_program(int fd)
{
	union bpf_attr attr;
	uint8_t packet[64] = {0};

	memset(&attr, 0, sizeof(attr));
	attr.test.prog_fd = (uint32_t)fd;
	attr.test.data_in = (uintptr_t)packet;
	attr.test.data_size_in = sizeof(packet);
	if (syscall(SYS_bpf, BPF_PROG_TEST_RUN, &attr, sizeof(attr)) < 0)
		return -1;
	return (int)attr.test.retval;
}

/* Counts 10 down to 0 by 1s into r0, through both kinds of jump. */
static void test_load_and_run(void)
{
	struct bpf_code c = {0};
	int top = bpf_label(&c), done = bpf_label(&c);
	struct err err = {0};
	int fd;

	bpf_mov_imm(&c, BPF_REG_0, 0);
	bpf_mov_imm(&c, BPF_REG_1, 10);
	bpf_place(&c, top);
	bpf_jump_imm(&c, BPF_JEQ, BPF_REG_1, 0, done);
	bpf_alu(&c, BPF_ADD, BPF_REG_0, BPF_REG_1);
	bpf_alu_imm(&c, BPF_SUB, BPF_REG_1, 1);
	bpf_jump(&c, top);
	bpf_place(&c, done);
	bpf_exit(&c);
	fd = bpf_program_load(BPF_PROG_TYPE_SOCKET_FILTER, "sum", &c, &err);
	CHECK_STR(err.text, "");
	CHECK(fd >= 0);
	if (fd >= 0) {
		CHECK_EQ(run_program(fd), 55);
		close(fd);
	}
	bpf_code_release(&c);
}

static void test_refused(void)
{
	struct bpf_code c = {0};
	struct err err = {0};

	bpf_exit(&c); /* r0 was never set */
	CHECK_EQ(bpf_program_load(BPF_PROG_TYPE_SOCKET_FILTER, "bad", &c, &err), ERR_UNSUPPORTED);
	CHECK(strstr(err.text, "'bad'") && strstr(err.text, "R0 !read_ok"));
	CHECK(!strchr(err.text, '\n'));
	bpf_code_release(&c);
}

struct seen {
	size_t n;
	uint64_t words[64];
	size_t wrong; /* records of another length, or not in order */
};

static void see(void *ctx, const uint8_t *record, size_t n)
{
	struct seen *s = ctx;

	if (n != sizeof(uint64_t) || s->n == 64)
		s->wrong++;
	else
		memcpy(&s->words[s->n++], record, n);
}

/* bpf_ringbuf_output(ring, &value, 8, 0) for a value given in the program */
static int writer_of(int ring_fd, int32_t value)
{
	struct bpf_code c = {0};
	struct err err = {0};
	int fd;

	bpf_mov_imm(&c, BPF_REG_1, value);
	bpf_store(&c, BPF_DW, BPF_REG_10, -8, BPF_REG_1);
	bpf_load_map(&c, BPF_REG_1, ring_fd);
	bpf_mov(&c, BPF_REG_2, BPF_REG_10);
	bpf_alu_imm(&c, BPF_ADD, BPF_REG_2, -8);
	bpf_mov_imm(&c, BPF_REG_3, 8);
	bpf_mov_imm(&c, BPF_REG_4, 0);
	bpf_call(&c, BPF_FUNC_ringbuf_output);
	bpf_mov_imm(&c, BPF_REG_0, 0);
	bpf_exit(&c);
	fd = bpf_program_load(BPF_PROG_TYPE_SOCKET_FILTER, "ring", &c, &err);
	CHECK_STR(err.text, "");
	bpf_code_release(&c);
	return fd;
}

static void test_ring(void)
{
	struct bpf_ring ring;
	struct err err = {0};
	size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
	int first, second;

	CHECK_EQ(bpf_ring_open(&ring, bytes, &err), 0);
	CHECK_STR(err.text, "");
	if (ring.fd < 0)
		return;
	first = writer_of(ring.fd, 11);
	second = writer_of(ring.fd, 22);
	/* many times around the ring */
	for (int round = 0; round < 100 && first >= 0 && second >= 0; round++) {
		struct seen seen = {0};

		for (int i = 0; i < 10; i++) {
			CHECK_EQ(run_program(first), 0);
			CHECK_EQ(run_program(second), 0);
		}
		bpf_ring_drain(&ring, see, &seen);
		CHECK_EQ(seen.n, 20);
		CHECK_EQ(seen.wrong, 0);
		for (size_t i = 0; i < seen.n; i++)
			CHECK_EQ(seen.words[i], i % 2 ? 22 : 11);
		bpf_ring_drain(&ring, see, &seen);
		CHECK_EQ(seen.n, 20); /* they are gone */
	}
	CHECK(first >= 0 && second >= 0);
	close(first);
	close(second);
	bpf_ring_close(&ring);
	CHECK(ring.fd < 0);
	bpf_ring_close(&ring);
}

static void test_bad_ring(void)
{
	struct bpf_ring ring;
	struct err err = {0};

	CHECK(bpf_ring_open(&ring, 1000, &err) < 0); /* no power of two */
	CHECK(strstr(err.text, "BPF ring buffer"));
	CHECK(ring.fd < 0);
	bpf_ring_close(&ring);
}

static void test_lru_map(void)
{
	struct bpf_map_spec spec = {BPF_MAP_TYPE_LRU_HASH, 4, 8, 64, 0, "lru"};
	uint32_t key = 5;
	uint64_t value = 1234567890123u;
	union bpf_attr attr;
	int fd = bpf_map_open(&spec);

	CHECK(fd >= 0);
	CHECK_EQ(bpf_map_update(fd, &key, &value), 0);
	value = 0;
	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (uint32_t)fd;
	attr.key = (uintptr_t)&key;
	attr.value = (uintptr_t)&value;
	CHECK_EQ(syscall(SYS_bpf, BPF_MAP_LOOKUP_ELEM, &attr, sizeof(attr)), 0);
	CHECK_EQ(value, 1234567890123u);
	CHECK(bpf_map_update(-1, &key, &value) < 0);
	close(fd);
}

/* NULL when programs may be loaded, else why not. */
static const char *loading_refused(struct err *err)
{
	struct bpf_code c = {0};
	int fd;

	bpf_mov_imm(&c, BPF_REG_0, 0);
	bpf_exit(&c);
	fd = bpf_program_load(BPF_PROG_TYPE_SOCKET_FILTER, "probe", &c, err);
	bpf_code_release(&c);
	if (fd < 0)
		return err->text;
	close(fd);
	return NULL;
}

int main(void)
{
	static const struct test tests[] = {
		{"instructions have the bytes that the kernel documents", test_encoding},
		{"loading a map takes two instructions", test_map},
		{"jumps forward are filled in when their label is placed", test_forward},
		{"jumps backward count from the instruction after them", test_backward},
		{"a finished offset is not taken for a label's number", test_offset_like_label},
	};
	static const struct test with_rights[] = {
		{"a program is loaded and computes what it says", test_load_and_run},
		{"a program that the kernel refuses gives the verifier's last line", test_refused},
		{"records come out of the ring once each, in order", test_ring},
		{"a ring of a wrong size is refused with a sentence", test_bad_ring},
		{"what is put into the map is there", test_lru_map},
	};
	struct err err = {0};
	int rc = RUN_TESTS(tests);

	if (!loading_refused(&err))
		return rc | RUN_TESTS(with_rights);
	for (size_t i = 0; i < sizeof(with_rights) / sizeof(with_rights[0]); i++)
		printf("skip %s: %s\n", with_rights[i].sentence, err.text);
	return rc;
}
