/* SPDX-License-Identifier: MIT */
/* What a user writes: the map of names, and limits. */
#include "check.h"

#include <stdlib.h>

#include "query/diff/fail_limit.h"
#include "query/diff/name_map.h"

static int parse_map(struct name_map **m, const char *text, struct err *err)
{
	return name_map_parse(m, (struct span){(const uint8_t *)text, strlen(text)}, "names", err);
}

static void maps_have_two_names_a_line(void)
{
	struct name_map *m;
	struct err err = {0};

	CHECK_EQ(parse_map(&m, "# comment\n\nold new\r\nf(int, char)\tf(long, char)", &err), 0);
	CHECK_EQ(name_map_n(m), 2);
	CHECK_STR(name_map_find(m, "old"), "new");
	CHECK_STR(name_map_find(m, "f(int, char)"), "f(long, char)");
	CHECK(!name_map_find(m, "new"));
	name_map_free(m);
	CHECK_EQ(parse_map(&m, "", &err), 0);
	CHECK_EQ(name_map_n(m), 0);
	name_map_free(m);
	name_map_free(NULL);
}

static void check_map_is_wrong(const char *text, const char *sentence)
{
	struct name_map *m = NULL;
	struct err err = {0};

	CHECK(parse_map(&m, text, &err) < 0 && !m);
	CHECK_STR(err.text, sentence);
}

static void wrong_maps_are_refused_with_the_line(void)
{
	check_map_is_wrong("a b\nc\n",
		"'names': there are not two names (OLD NEW; names with blanks need a tab between) in line 2");
	check_map_is_wrong("f(int, char) g(int, char)",
		"'names': there are not two names (OLD NEW; names with blanks need a tab between) in line 1");
	check_map_is_wrong(
		"a b\na c\n", "'names': there is a function that has a new name already in line 2");
}

static void check_limit(const char *text, const char *name, double percent)
{
	struct fail_limit limit;
	struct err err = {0};

	CHECK_EQ(fail_limit_parse(&limit, text, &err), 0);
	CHECK(limit.percent > percent - 1e-9 && limit.percent < percent + 1e-9);
	CHECK(name ? limit.name_n == strlen(name) && !memcmp(limit.name, name, limit.name_n)
		   : !limit.name);
}

static void limits_are_percent_of_all_or_of_one(void)
{
	static const char *const wrong[] = {"", "5%", "+5", "+%", "+.%", "+5.5.5%", "-5%", "f:5%",
		":+5%", "+1e3%", "+99999999999999999999%", "+5%f"};
	struct fail_limit limit;
	struct err err = {0};

	check_limit("+5%", NULL, 5);
	check_limit("+0.25%", NULL, 0.25);
	check_limit("total:+12.5%", "total", 12.5);
	check_limit("ns::f(int):+100%", "ns::f(int)", 100);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CHECK(fail_limit_parse(&limit, wrong[i], &err) < 0 && err.text[0]);
}

int main(void)
{
	static const struct test tests[] = {
		{"maps have an old and a new name in each line", maps_have_two_names_a_line},
		{"wrong maps are refused with the line", wrong_maps_are_refused_with_the_line},
		{"limits are percent of any function or of one",
			limits_are_percent_of_all_or_of_one},
	};

	return RUN_TESTS(tests);
}
