/* SPDX-License-Identifier: MIT */
/* Sentences of failures, and what allocation promises. */
#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "check.h"

static void test_set(void)
{
	struct err err = {0};

	CHECK_EQ(err_set(&err, ERR_FORMAT, "'%s': byte %d", "x", 7), ERR_FORMAT);
	CHECK_EQ(err.code, ERR_FORMAT);
	CHECK_STR(err.text, "'x': byte 7");
	CHECK_EQ(err_set(NULL, ERR_LIMIT, "%s", "nobody listens"), ERR_LIMIT);
}

static void test_sys(void)
{
	struct err err = {0};

	CHECK_EQ(err_sys(&err, ENOENT, "'%s': cannot open", "f"), ERR_NOT_FOUND);
	CHECK_STR(err.text, "'f': cannot open: No such file or directory");
	CHECK_EQ(err.code, ERR_NOT_FOUND);
	CHECK_EQ(err_sys(&err, ESRCH, "x"), ERR_NOT_FOUND);
	CHECK_EQ(err_sys(&err, EACCES, "x"), ERR_PERMISSION);
	CHECK_EQ(err_sys(&err, EPERM, "x"), ERR_PERMISSION);
	CHECK_EQ(err_sys(&err, EIO, "x"), ERR_FAILED);
	CHECK_STR(err.text, "x: Input/output error");
	CHECK_EQ(err_sys(NULL, EPERM, "x"), ERR_PERMISSION);
}

static void test_prefix(void)
{
	struct err err;

	err_set(&err, ERR_LIMIT, "too long");
	CHECK_EQ(err_prefix(&err, "'%s'", "lib.so"), ERR_LIMIT);
	CHECK_EQ(err_prefix(&err, "report"), ERR_LIMIT);
	CHECK_STR(err.text, "report: 'lib.so': too long");
	CHECK_EQ(err_prefix(NULL, "x"), ERR_FAILED);
}

static void test_long(void)
{
	struct err err;
	char *text = mem_alloc(2001);

	memset(text, 'y', 2000);
	text[2000] = 0;
	err_set(&err, ERR_FAILED, "%s", text);
	CHECK_EQ(strlen(err.text), sizeof(err.text) - 1);
	err_prefix(&err, "context");
	CHECK_EQ(strlen(err.text), sizeof(err.text) - 1);
	CHECK(!strncmp(err.text, "context: yyyy", 13));
	err_prefix(&err, "%s", text);
	CHECK_EQ(strlen(err.text), sizeof(err.text) - 1);
	err_sys(&err, EIO, "%s", text);
	CHECK_EQ(strlen(err.text), sizeof(err.text) - 1);
	err_sys(&err, EIO, "%.*s", (int)sizeof(err.text) - 1, text);
	CHECK_EQ(strlen(err.text), sizeof(err.text) - 1);
	free(text);
}

static void test_copies(void)
{
	char *a = mem_strndup("abcdef", 3), *b = mem_strdup(""), *c = mem_printf("%d-%s", 5, "x");
	char *d = mem_dup("q\0r", 4);
	void *none = mem_alloc(0), *none_either = mem_calloc(0, 0), *dup = mem_dup(NULL, 0);
	const uint8_t *zeros = mem_zalloc(100);

	CHECK_STR(a, "abc");
	CHECK_STR(b, "");
	CHECK_STR(c, "5-x");
	CHECK(!memcmp(d, "q\0r", 4));
	CHECK(none && none_either && dup);
	for (int i = 0; i < 100; i++)
		CHECK_EQ(zeros[i], 0);
	free(a);
	free(b);
	free(c);
	free(d);
	free(none);
	free(none_either);
	free(dup);
	free((void *)(uintptr_t)zeros);
}

static void test_vec(void)
{
	VEC(uint64_t) v = {0};

	for (uint64_t i = 0; i < 1000; i++) {
		vec_push(&v, i * i);
		CHECK(v.cap >= v.n);
	}
	CHECK_EQ(v.n, 1000);
	for (uint64_t i = 0; i < 1000; i++)
		CHECK_EQ(v.v[i], i * i);
	vec_reserve(&v, 5000);
	CHECK(v.cap >= 5000);
	CHECK_EQ(v.v[999], 999 * 999);
	memset(v.v + 1000, 1, 4000 * sizeof(*v.v));
	vec_ensure_zero(&v, 10);
	CHECK_EQ(v.n, 1000);
	vec_ensure_zero(&v, 9000);
	CHECK_EQ(v.n, 9000);
	CHECK_EQ(v.v[999], 999 * 999);
	for (size_t i = 1000; i < v.n; i++)
		CHECK_EQ(v.v[i], 0);
	vec_release(&v);
	CHECK(!v.v && !v.n && !v.cap);
	vec_release(&v);
}

static void leave(size_t bytes)
{
	_exit(bytes == SIZE_MAX ? 41 : 42);
}

/* Runs in a child, whose exit status tells whether the hook was called. */
static int status_of(void (*ask)(void))
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		mem_set_failure_hook(leave);
		ask();
		_exit(1);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void ask_overflowing_growth(void)
{
	void *data = NULL;
	size_t cap = 0;

	mem_grow(&data, &cap, SIZE_MAX / 2, 64);
}

static void test_growth_limit(void)
{
	CHECK_EQ(status_of(ask_overflowing_growth), 41);
}

int main(void)
{
	static const struct test tests[] = {
		{"a failure is a code and a sentence", test_set},
		{"a failed system call says why and gives its kind", test_sys},
		{"callers put context in front and keep the code", test_prefix},
		{"a sentence that is too long is cut, never overrun", test_long},
		{"allocations and copies are what was asked for, also of nothing", test_copies},
		{"a vector keeps its items while it grows", test_vec},
		{"growth past the size of memory calls the failure hook", test_growth_limit},
	};

	return RUN_TESTS(tests);
}
