/* SPDX-License-Identifier: MIT */
#include <linux/perf_event.h>

#include "check.h"
#include "record/event_spec.h"

static void fails_with(const char *list, int code, const char *sentence)
{
	struct event_spec specs[EVENT_SPECS_MAX];
	struct err err = {0};
	size_t n;

	CHECK_EQ(event_specs_parse(list, specs, &n, &err), code);
	CHECK_EQ(err.code, code);
	CHECK_STR(err.text, sentence);
}

static void test_list(void)
{
	struct event_spec specs[EVENT_SPECS_MAX];
	struct err err = {0};
	size_t n = 0;

	CHECK_EQ(event_specs_parse("cpu-clock,page-faults,cycles", specs, &n, &err), 0);
	CHECK_EQ(n, 3);
	CHECK_STR(specs[0].name, "cpu-clock");
	CHECK_EQ(specs[0].type, PERF_TYPE_SOFTWARE);
	CHECK_EQ(specs[0].config, PERF_COUNT_SW_CPU_CLOCK);
	CHECK_STR(specs[0].metric, "cpu");
	CHECK_STR(specs[0].unit, "ns");
	CHECK(!specs[0].every);
	CHECK_STR(specs[1].metric, "page-faults");
	CHECK_EQ(specs[1].config, PERF_COUNT_SW_PAGE_FAULTS);
	CHECK_STR(specs[1].unit, "1");
	CHECK(specs[1].every);
	CHECK_EQ(specs[2].type, PERF_TYPE_HARDWARE);
	CHECK_EQ(specs[2].config, PERF_COUNT_HW_CPU_CYCLES);
	CHECK(!specs[2].every);
}

static void test_known(void)
{
	struct event_spec spec;
	struct err err = {0};
	size_t n_known, n;
	const struct event_spec *known = event_specs_known(&n_known);

	CHECK(n_known > 5);
	for (size_t i = 0; i < n_known; i++) {
		CHECK_EQ(event_specs_parse(known[i].name, &spec, &n, &err), 0);
		CHECK_EQ(n, 1);
		CHECK_STR(spec.name, known[i].name);
		CHECK_EQ(spec.type, known[i].type);
		CHECK_EQ(spec.config, known[i].config);
		for (size_t k = 0; k < i; k++)
			CHECK(strcmp(known[i].name, known[k].name));
	}
}

static void test_raw(void)
{
	struct event_spec specs[EVENT_SPECS_MAX];
	struct err err = {0};
	size_t n = 0;

	CHECK_EQ(event_specs_parse("r01c2,rFFFFffffFFFFffff", specs, &n, &err), 0);
	CHECK_EQ(n, 2);
	CHECK_EQ(specs[0].type, PERF_TYPE_RAW);
	CHECK_EQ(specs[0].config, 0x1c2);
	CHECK_STR(specs[0].name, "r01c2");
	CHECK_STR(specs[0].metric, "r01c2");
	CHECK_STR(specs[0].unit, "1");
	CHECK_EQ(specs[1].config, UINT64_MAX);
}

static void test_bad_raw(void)
{
	static const char *const bad[] = {
		"r", "rxyz", "r1g", "r10000000000000000", "r-1", "r+1", "r 1", "r0x1c2"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char sentence[128];

		snprintf(sentence, sizeof(sentence),
			"'%s': is not a known event ('weir doctor' lists them)", bad[i]);
		fails_with(bad[i], ERR_UNSUPPORTED, sentence);
	}
}

static void test_errors(void)
{
	fails_with("", ERR_UNSUPPORTED, "-e: no event named");
	fails_with("cpu-clock,nonsense,cycles", ERR_UNSUPPORTED,
		"'nonsense': is not a known event ('weir doctor' lists them)");
	fails_with(
		"cpu", ERR_UNSUPPORTED, "'cpu': is not a known event ('weir doctor' lists them)");
	fails_with("cpu-clock,,cycles", ERR_UNSUPPORTED,
		"'': is not a known event ('weir doctor' lists them)");
	fails_with("cpu-clock-with-a-name-that-is-longer-than-any", ERR_UNSUPPORTED,
		"'cpu-clock-with-a-name-that-is-longer-than-any': is not a known event "
		"('weir doctor' lists them)");
}

static void test_limit(void)
{
	struct event_spec specs[EVENT_SPECS_MAX];
	struct err err = {0};
	size_t n = 0;

	CHECK_EQ(event_specs_parse("r1,r2,r3,r4,r5,r6,r7,r8", specs, &n, &err), 0);
	CHECK_EQ(n, EVENT_SPECS_MAX);
	fails_with("r1,r2,r3,r4,r5,r6,r7,r8,r9", ERR_LIMIT, "-e: more than 8 events");
}

int main(void)
{
	static const struct test tests[] = {
		{"a list names events, each with its metric and unit", test_list},
		{"every known name is parsed to itself", test_known},
		{"r and hexadecimal digits are a raw code", test_raw},
		{"r and anything else is not", test_bad_raw},
		{"an event that is not known is named", test_errors},
		{"one event more than the limit is refused", test_limit},
	};

	return RUN_TESTS(tests);
}
