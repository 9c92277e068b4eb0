/* SPDX-License-Identifier: MIT */
/*
 * Unit tests: a table of {sentence, function}; each CHECK that fails says where. One verdict line
 * a test.
 */
#ifndef WEIR_TESTS_CHECK_H
#define WEIR_TESTS_CHECK_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct test {
	const char *sentence;
	void (*run)(void);
};

static int check_failures;

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			check_failures++;                                                          \
			printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);             \
		}                                                                                  \
	} while (0)

#define CHECK_EQ(actual, expected)                                                                 \
	do {                                                                                       \
		uint64_t a_ = (uint64_t)(actual), e_ = (uint64_t)(expected);                       \
		if (a_ != e_) {                                                                    \
			check_failures++;                                                          \
			printf("%s:%d: %s is %" PRIu64 " (0x%" PRIx64 "), expected %" PRIu64 "\n", \
				__FILE__, __LINE__, #actual, a_, a_, e_);                          \
		}                                                                                  \
	} while (0)

#define CHECK_STR(actual, expected)                                                                \
	do {                                                                                       \
		const char *a_ = (actual), *e_ = (expected);                                       \
		if (!a_ || strcmp(a_, e_)) {                                                       \
			check_failures++;                                                          \
			printf("%s:%d: %s is '%s', expected '%s'\n", __FILE__, __LINE__, #actual,  \
				a_ ? a_ : "(null)", e_);                                           \
		}                                                                                  \
	} while (0)

static inline int run_tests(const struct test *tests, size_t n)
{
	int failed = 0;

	for (size_t i = 0; i < n; i++) {
		check_failures = 0;
		tests[i].run();
		printf("%s %s\n", check_failures ? "not ok" : "ok", tests[i].sentence);
		fflush(stdout);
		failed += check_failures != 0;
	}
	puts("end"); /* for tests/run: nothing stopped half-way */
	return failed ? 1 : 0;
}

#define RUN_TESTS(tests) run_tests(tests, sizeof(tests) / sizeof((tests)[0]))

#endif
