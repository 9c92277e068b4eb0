/* SPDX-License-Identifier: MIT */
/* Fields of kernel structures, whose offsets the kernel fills in. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "bpf/kernel_fields.h"
#include "bpf/kernel_map.h"
#include "check.h"

#define AT_NUMBER (-8)

/* The word of the map at `at` = a field of the current task. */
static void emit_read(
	struct bpf_code *c, struct kernel_fields *fields, uint32_t field_i, int map_fd, uint32_t at)
{
	bpf_store_imm(c, BPF_DW, BPF_REG_10, AT_NUMBER, 0);
	bpf_call(c, BPF_FUNC_get_current_task);
	bpf_mov(c, BPF_REG_3, BPF_REG_0);
	kernel_fields_add_offset(fields, c, BPF_REG_3, field_i);
	bpf_mov(c, BPF_REG_1, BPF_REG_10);
	bpf_alu_imm(c, BPF_ADD, BPF_REG_1, AT_NUMBER);
	bpf_mov_imm(c, BPF_REG_2, 4);
	bpf_call(c, BPF_FUNC_probe_read_kernel);
	bpf_load(c, BPF_DW, BPF_REG_2, BPF_REG_10, AT_NUMBER);
	bpf_load_map_value(c, BPF_REG_1, map_fd, at);
	bpf_store(c, BPF_DW, BPF_REG_1, 0, BPF_REG_2);
}

static int open_reader(struct kernel_fields *fields, int map_fd)
{
	struct bpf_code c = {0};
	struct bpf_program_spec spec = {.type = BPF_PROG_TYPE_RAW_TRACEPOINT, .name = "fields"};
	int fd;

	emit_read(&c, fields, 1, map_fd, 0);
	emit_read(&c, fields, 0, map_fd, 8);
	bpf_mov_imm(&c, BPF_REG_0, 0);
	bpf_exit(&c);
	spec.insns = c.insns.v;
	spec.n_insns = c.insns.n;
	fd = kernel_fields_open_program(fields, &spec);
	kernel_fields_release(fields);
	bpf_code_release(&c);
	return fd;
}

static int open_words(void)
{
	struct bpf_map_spec spec = {BPF_MAP_TYPE_ARRAY, 4, 16, 1, 0, "words"};

	return bpf_map_open(&spec);
}

static void test_numbers(void)
{
	struct kernel_fields fields = {.type = "task_struct", .names = {"tgid", "exit_code"}};
	int map_fd = open_words(), fd = open_reader(&fields, map_fd);
	uint64_t words[2] = {1, 1};
	uint32_t key = 0;

	CHECK(fd >= 0);
	CHECK_EQ(bpf_map_update(map_fd, &key, words), 0);
	CHECK_EQ(bpf_program_run(fd), 0);
	CHECK_EQ(bpf_map_find(map_fd, &key, words), 0);
	CHECK_EQ(words[0], 0);
	CHECK_EQ(words[1], (uint64_t)getpid());
	close(fd);
	close(map_fd);
}

static void test_unknown(void)
{
	struct kernel_fields fields = {.type = "task_struct", .names = {"tgid", "no_such_field"}};
	struct kernel_fields other = {.type = "no_such_struct", .names = {"a", "b"}};
	int map_fd = open_words();

	CHECK(open_reader(&fields, map_fd) < 0);
	CHECK(open_reader(&other, map_fd) < 0);
	close(map_fd);
}

static const struct test tests[] = {
	{"the kernel fills in where its fields are", test_numbers},
	{"a program that reads a field the kernel does not have is refused", test_unknown},
};

int main(void)
{
	int fd = open_words();

	if (fd < 0 || access("/sys/kernel/btf/vmlinux", R_OK) < 0) {
		for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
			printf("skip %s: %s\n", tests[i].sentence,
				fd < 0 ? "BPF is not permitted" : "the kernel has no BTF");
		return 0;
	}
	close(fd);
	return RUN_TESTS(tests);
}
