/* SPDX-License-Identifier: MIT */
/* Names of addresses in processes, most of which have ended when they are asked for. */
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "probe/print/kernel_names.h"
#include "probe/print/user_names.h"

__attribute__((noinline)) void names_test_target(void);
__attribute__((noinline)) void names_test_target(void)
{
	__asm__ volatile("nop; nop; nop; nop; nop; nop; nop; nop");
}

#define TARGET ((uint64_t)(uintptr_t)names_test_target)

static const char *own_path;

/* Runs `path` with an argument, or nothing but this program's own child code when `path` is NULL.
 * What it wrote is a number; it has ended on return. */
static uint64_t run_child(const char *path, const char *arg, pid_t *pid)
{
	char text[64] = "";
	int ends[2];
	size_t n = 0;
	ssize_t got;

	if (pipe(ends) < 0)
		return 0;
	*pid = fork();
	if (*pid == 0) {
		dup2(ends[1], 1);
		if (path)
			execl(path, path, arg, (char *)NULL);
		dprintf(1, "%lx\n", TARGET);
		if (arg)
			execl("/bin/true", "true", (char *)NULL);
		_exit(0);
	}
	close(ends[1]);
	while (n < sizeof(text) - 1 && (got = read(ends[0], text + n, sizeof(text) - 1 - n)) > 0)
		n += (size_t)got;
	close(ends[0]);
	waitpid(*pid, NULL, 0);
	return strtoull(text, NULL, 16);
}

static void check_target(struct user_names *un, pid_t pid, uint64_t address)
{
	struct printer_symbol symbol = {0};

	CHECK(address != 0);
	CHECK(user_names_find(un, (uint32_t)pid, address + 4, &symbol));
	CHECK_STR(symbol.name, "names_test_target");
	CHECK_EQ(symbol.offset, 4);
	CHECK(symbol.module && strstr(symbol.module, "names"));
}

static struct user_names *watching(bool is_all)
{
	struct user_names *un = user_names_new(is_all);
	struct err err;

	if (user_names_watch(un, &err) == 0)
		return un;
	printf("# skipped: %s\n", err.text);
	user_names_free(un);
	return NULL;
}

static void test_own(void)
{
	struct user_names *un = user_names_new(false);
	struct printer_symbol symbol = {0};

	CHECK_EQ(user_names_fd(un), UINT64_MAX);
	CHECK(user_names_process(un, getpid()));
	check_target(un, getpid(), TARGET);
	CHECK(user_names_find(un, (uint32_t)getpid(), (uint64_t)(uintptr_t)strtoull, &symbol));
	CHECK(!user_names_find(un, (uint32_t)getpid(), 16, &symbol));
	CHECK(!user_names_process(un, 0));
	CHECK(!user_names_process(un, 0x7ffffffe));
	CHECK(!user_names_find(un, 0x7ffffffe, TARGET, &symbol));
	user_names_free(un);
}

static void test_unasked(void)
{
	struct user_names *un = user_names_new(false);

	check_target(un, getpid(), TARGET); /* nobody told of the process */
	user_names_free(un);
}

static void test_forked(void)
{
	struct user_names *un = watching(false);
	pid_t pid;

	if (!un)
		return;
	user_names_process(un, getpid());
	check_target(un, (run_child(NULL, NULL, &pid), pid), TARGET);
	user_names_free(un);
}

static void test_executed(void)
{
	struct user_names *un = watching(true);
	uint64_t address;
	pid_t pid;

	if (!un)
		return;
	address = run_child(own_path, "child", &pid);
	CHECK_EQ(kill(pid, 0), UINT64_MAX); /* it is gone */
	check_target(un, pid, address);
	CHECK_EQ(user_names_n_lost(un), 0);
	user_names_free(un);
}

static void test_before_exec(void)
{
	struct user_names *un = watching(true);
	uint64_t address;
	pid_t pid;

	if (!un)
		return;
	address = run_child(NULL, "then /bin/true", &pid);
	check_target(un, pid, address);
	user_names_free(un);
}

static void test_only_asked(void)
{
	struct user_names *un = watching(false);
	struct printer_symbol symbol;
	uint64_t address;
	pid_t pid;

	if (!un)
		return;
	address = run_child(own_path, "child", &pid);
	CHECK(!user_names_find(un, (uint32_t)pid, address, &symbol));
	CHECK(user_names_process(un, getpid()));
	address = run_child(own_path, "child", &pid);
	check_target(un, pid, address);
	user_names_free(un);
}

static void test_32_bit(void)
{
	static const char source[] =
		"#include <stdio.h>\n__attribute__((noinline)) void names_test_target(void) { "
		"__asm__ volatile(\"nop; nop; nop; nop; nop\"); }\n"
		"int main(void) { names_test_target(); printf(\"%lx\\n\", (unsigned "
		"long)names_test_target); return 0; }\n";
	char folder[] = "/tmp/weir-names-XXXXXX", path[64], command[256];
	struct user_names *un = watching(true);
	uint64_t address;
	FILE *gcc;
	pid_t pid;

	if (!un || !mkdtemp(folder))
		return;
	snprintf(path, sizeof(path), "%s/names32", folder);
	snprintf(command, sizeof(command), "gcc -m32 -xc -o %s - 2>/dev/null", path);
	gcc = popen(command, "w");
	fputs(source, gcc);
	if (pclose(gcc) == 0) {
		address = run_child(path, NULL, &pid);
		CHECK(address >> 32 == 0);
		user_names_work(un);
		unlink(path); /* the file, too, is gone before its names are asked for */
		check_target(un, pid, address);
	} else {
		printf("# skipped: gcc -m32 makes no programs here\n");
	}
	rmdir(folder);
	user_names_free(un);
}

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	if (f) {
		fputs(text, f);
		fclose(f);
	}
}

static void test_made_at_run_time(void)
{
	struct user_names *un = user_names_new(false);
	struct printer_symbol symbol = {0};
	void *code = mmap(
		NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char path[64], text[128];
	uint64_t at = (uint64_t)(uintptr_t)code;

	if (code == MAP_FAILED) {
		printf("# skipped: no memory that can be written and executed\n");
		user_names_free(un);
		return;
	}
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	snprintf(text, sizeof(text), "%lx 40 first\n", at);
	write_file(path, text);
	CHECK(user_names_find(un, (uint32_t)getpid(), at + 8, &symbol));
	CHECK_STR(symbol.name, "first");
	CHECK_EQ(symbol.offset, 8);
	/* The map grows. */
	snprintf(text, sizeof(text), "%lx 40 first\n%lx 40 second\n", at, at + 0x40);
	write_file(path, text);
	CHECK(user_names_find(un, (uint32_t)getpid(), at + 0x41, &symbol));
	CHECK_STR(symbol.name, "second");
	CHECK(!user_names_find(un, (uint32_t)getpid(), at + 0x100, &symbol));
	unlink(path);
	munmap(code, 4096);
	user_names_free(un);
}

static void test_kernel(void)
{
	char path[] = "/tmp/weir-kallsyms-XXXXXX";
	int fd = mkstemp(path);
	struct kernel_names *kn = kernel_names_new(path);
	struct printer_symbol symbol = {0};

	close(fd);
	write_file(path, "ffffffff81000000 T alpha\nffffffff81000100 t beta\n"
			 "ffffffffc0000000 t gamma\t[fs]\nffffffffc0000100 d data\t[fs]\n");
	CHECK(kernel_names_find(kn, 0xffffffff81000010, &symbol));
	CHECK_STR(symbol.name, "alpha");
	CHECK_EQ(symbol.offset, 16);
	CHECK_STR(symbol.module, "[kernel]");
	CHECK(kernel_names_find(kn, 0xffffffffc0000001, &symbol));
	CHECK_STR(symbol.name, "gamma");
	CHECK_STR(symbol.module, "[fs]");
	CHECK(!kernel_names_find(kn, 0xffffffff80000000, &symbol));
	kernel_names_free(kn);
	write_file(path, "0000000000000000 T alpha\n0000000000000000 t beta\n");
	kn = kernel_names_new(path); /* hidden: kernel.kptr_restrict */
	CHECK(!kernel_names_find(kn, 0xffffffff81000010, &symbol));
	CHECK(!kernel_names_find(kn, 0, &symbol));
	kernel_names_free(kn);
	unlink(path);
}

int main(int argc, char **argv)
{
	const struct test tests[] = {
		{"functions of a running process have names", test_own},
		{"a process that nobody told of is read when it is asked for", test_unasked},
		{"a forked process that has ended keeps its parent's names", test_forked},
		{"a program that has ended keeps its names", test_executed},
		{"what a process was before its exec keeps its names", test_before_exec},
		{"only processes that were asked for and their children are followed",
			test_only_asked},
		{"32-bit programs have names, even when the file is gone", test_32_bit},
		{"code made at run time has the names of its perf map", test_made_at_run_time},
		{"kernel functions and those of its modules have names", test_kernel},
	};

	own_path = argv[0];
	if (argc > 1) {
		printf("%lx\n", TARGET);
		return 0;
	}
	names_test_target();
	return RUN_TESTS(tests);
}
