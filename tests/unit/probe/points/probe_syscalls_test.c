/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "base/buf.h"
#include "check.h"
#include "probe/points/syscalls.h"
#include "process/syscall_names.h"

/* "int fd, char * buf" */
static const char *text_of(enum mode mode, const char *name)
{
	const struct syscall_arg *args = syscall_args(mode, name);
	static struct buf b;

	buf_reset(&b);
	if (!args)
		return "-";
	for (int i = 0; args[i].name; i++)
		buf_printf(&b, "%s%s %s", i ? ", " : "", args[i].type, args[i].name);
	return buf_text(&b);
}

static void test_numbers(void)
{
	CHECK_EQ(syscall_number(MODE_64, "read"), 0);
	CHECK_EQ(syscall_number(MODE_32, "read"), 3);
	CHECK_EQ(syscall_number(MODE_64, "openat"), 257);
	CHECK_EQ(syscall_number(MODE_32, "openat"), 295);
	CHECK_EQ(syscall_number(MODE_32, "mmap2"), 192);
	CHECK_EQ(syscall_number(MODE_64, "mmap2"), -1);
	CHECK_EQ(syscall_number(MODE_32, "_llseek"), 140);
	CHECK_EQ(syscall_number(MODE_64, "nosuch"), -1);
	CHECK_EQ(syscall_number(MODE_64, ""), -1);
}

static void test_arguments(void)
{
	CHECK_STR(text_of(MODE_64, "openat"),
		"int dfd, const char * filename, int flags, unsigned short mode");
	CHECK_STR(text_of(MODE_32, "openat"),
		"int dfd, const char * filename, int flags, unsigned short mode");
	CHECK_STR(text_of(MODE_64, "write"), "unsigned int fd, const char * buf, size_t count");
	CHECK_STR(text_of(MODE_64, "getpid"), "");
	CHECK_STR(text_of(MODE_64, "execve"), "const char * filename, char ** argv, char ** envp");
	/* The same name, but not the same arguments. */
	CHECK_STR(text_of(MODE_64, "pread64"),
		"unsigned int fd, char * buf, size_t count, long long pos");
	CHECK_STR(text_of(MODE_32, "pread64"),
		"unsigned int fd, char * buf, size_t count, unsigned int poslo, unsigned int poshi");
	CHECK_STR(text_of(MODE_32, "mmap"), "void * arg");
	CHECK_STR(text_of(MODE_32, "clone"),
		"unsigned long clone_flags, unsigned long newsp, int * parent_tidptr, "
		"unsigned long tls, int * child_tidptr");
	CHECK_STR(text_of(MODE_64, "setuid"), "unsigned int uid");
	CHECK_STR(text_of(MODE_32, "setuid"), "unsigned short uid");
	CHECK_STR(text_of(MODE_32, "setuid32"), "unsigned int uid");
	CHECK_STR(
		text_of(MODE_32, "sendfile"), "int out_fd, int in_fd, long * offset, size_t count");
	CHECK_STR(text_of(MODE_32, "sendfile64"),
		"int out_fd, int in_fd, long long * offset, size_t count");
	CHECK_STR(text_of(MODE_64, "mmap2"), "-");
	CHECK_STR(text_of(MODE_32, "_llseek"),
		"unsigned int fd, unsigned long offset_high, unsigned long offset_low, "
		"long long * result, unsigned int whence");
	CHECK_STR(text_of(MODE_64, "nosuch"), "-");
}

/* Calls that have a number and no function in any kernel of the last years. */
static bool is_dead(const char *name)
{
	static const char *const names[] = {"_sysctl", "afs_syscall", "break", "create_module",
		"epoll_ctl_old", "epoll_wait_old", "ftime", "get_kernel_syms", "getpmsg", "gtty",
		"idle", "lock", "mpx", "nfsservctl", "prof", "profil", "putpmsg", "query_module",
		"security", "stty", "tuxcall", "ulimit", "uselib", "vserver"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

static void test_complete(void)
{
	for (int mode = 0; mode < N_MODES; mode++) {
		int n = 0;

		for (int i = 0; i < SYSCALL_NUMBERS_MAX; i++) {
			const char *name = syscall_name(mode == MODE_32, i);

			if (!name || is_dead(name))
				continue;
			n++;
			CHECK_EQ(syscall_number(mode, name), i);
			if (!syscall_args(mode, name)) {
				check_failures++;
				printf("no arguments of %s\n", name);
			}
		}
		CHECK(n > 340);
	}
}

int main(void)
{
	static const struct test tests[] = {
		{"calls have the numbers of the mode", test_numbers},
		{"calls have the arguments of the mode", test_arguments},
		{"every call that a kernel serves has arguments", test_complete},
	};

	return RUN_TESTS(tests);
}
