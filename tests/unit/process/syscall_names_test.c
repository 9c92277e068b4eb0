/* SPDX-License-Identifier: MIT */
/* The names of system calls, against the kernel's headers of this machine. */
#include <asm/unistd.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/file.h"
#include "check.h"
#include "process/syscall_names.h"

#define HEADERS		 "/usr/include/x86_64-linux-gnu/asm/"
#define HEADER_BYTES_MAX 100000

static void test_spots(void)
{
	CHECK_STR(syscall_name(false, 0), "read");
	CHECK_STR(syscall_name(false, 1), "write");
	CHECK_STR(syscall_name(false, __NR_getppid), "getppid");
	CHECK_STR(syscall_name(false, __NR_rt_sigreturn), "rt_sigreturn");
	CHECK_STR(syscall_name(false, __NR_exit_group), "exit_group");
	CHECK_STR(syscall_name(false, 435), "clone3");
	CHECK_STR(syscall_name(true, 1), "exit");
	CHECK_STR(syscall_name(true, 4), "write");
	CHECK_STR(syscall_name(true, 64), "getppid");
	CHECK_STR(syscall_name(true, 192), "mmap2");
	CHECK_STR(syscall_name(true, 435), "clone3");
	CHECK_STR(syscall_name(false, 462), "mseal");
}

static void test_unknown(void)
{
	static const int64_t numbers[] = {
		-1, INT64_MIN, INT64_MAX, SYSCALL_NUMBERS_MAX, SYSCALL_NUMBERS_MAX - 1, 400};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		CHECK(!syscall_name(false, numbers[i]));
	CHECK(!syscall_name(true, 222)); /* a gap */
}

/* "#define __NR_read 0" */
static size_t compare_with(const char *path, bool is_32_bit)
{
	struct buf b = {0};
	size_t n = 0;

	if (file_read(&b, path, HEADER_BYTES_MAX, NULL) < 0) {
		printf("%s is not there: nothing to compare with\n", path);
		return 0;
	}
	for (char *save, *line = strtok_r((char *)(uintptr_t)buf_text(&b), "\n", &save); line;
		line = strtok_r(NULL, "\n", &save)) {
		char name[64];
		int number;

		if (sscanf(line, "#define __NR_%63s %d", name, &number) != 2)
			continue;
		CHECK_STR(syscall_name(is_32_bit, number), name);
		n++;
	}
	buf_release(&b);
	CHECK(n > 300);
	return n;
}

static void test_headers(void)
{
	compare_with(HEADERS "unistd_64.h", false);
	compare_with(HEADERS "unistd_32.h", true);
}

int main(void)
{
	static const struct test tests[] = {
		{"numbers that everybody knows", test_spots},
		{"numbers without a name", test_unknown},
		{"every name of this machine's headers, 64 and 32 bit", test_headers},
	};

	return RUN_TESTS(tests);
}
