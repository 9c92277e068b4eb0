/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "base/arena.h"
#include "check.h"
#include "probe/stream/shape.h"

static struct arena *arena;

static struct shape *of(enum shape_kind kind, bool is_signed, uint32_t n)
{
	return shape_new(arena, kind, is_signed, n);
}

static struct shape *constant(void)
{
	struct shape *s = of(SHAPE_INT, true, 0);

	s->is_weak = true;
	return s;
}

static struct shape *pair(struct shape *a, struct shape *b)
{
	struct shape *both[] = {a, b};

	return shape_new_tuple(arena, both, 2);
}

static const char *text_of(const struct shape *s)
{
	static char text[200];
	struct buf b = {0};

	shape_print(s, &b);
	snprintf(text, sizeof(text), "%s", buf_text(&b));
	buf_release(&b);
	return text;
}

static void test_sizes(void)
{
	CHECK_EQ(of(SHAPE_INT, true, 0)->size, 8);
	CHECK_EQ(of(SHAPE_STRING, false, 16)->size, 16);
	CHECK_EQ(of(SHAPE_STRING, false, 17)->size, 24);
	CHECK_EQ(of(SHAPE_BYTES, false, 5)->size, 16);
	CHECK_EQ(of(SHAPE_NONE, false, 0)->size, 0);
	CHECK_EQ(of(SHAPE_USTACK, false, 0)->size, 16);
	CHECK_EQ(of(SHAPE_INET, false, 0)->size, 24);
	CHECK_EQ(of(SHAPE_HIST, false, 0)->size, 66 * 8);
	CHECK_EQ(of(SHAPE_MIN, false, 0)->size, 16);
	CHECK_EQ(of(SHAPE_COUNT, false, 0)->size, 8);
	CHECK_EQ(shape_new_lhist(arena, 0, 100, 10)->size, 12 * 8);
	CHECK_EQ(shape_new_lhist(arena, 0, 95, 10)->size, 12 * 8);
}

static void test_tuples(void)
{
	struct shape *t = pair(of(SHAPE_STRING, false, 3), of(SHAPE_USYM, false, 0));

	CHECK_EQ(t->size, 24);
	CHECK_EQ(t->fields[0].offset, 0);
	CHECK_EQ(t->fields[1].offset, 8);
	CHECK_STR(text_of(t), "(string[3], usym)");
}

static void test_strings_grow(void)
{
	struct shape *have = NULL;
	bool grown = false;

	CHECK(shape_merge(&have, pair(of(SHAPE_STRING, false, 3), constant()), &grown));
	CHECK(grown);
	grown = false;
	CHECK(shape_merge(&have, pair(of(SHAPE_STRING, false, 20), constant()), &grown));
	CHECK(grown);
	CHECK_EQ(have->fields[0].shape->n, 20);
	CHECK_EQ(have->fields[1].offset, 24);
	CHECK_EQ(have->size, 32);
	grown = false;
	CHECK(shape_merge(&have, pair(of(SHAPE_STRING, false, 7), constant()), &grown));
	CHECK(!grown);
}

static void test_signs(void)
{
	struct shape *have = NULL;
	bool grown = false;

	CHECK(shape_merge(&have, constant(), &grown));
	CHECK(have->is_signed && have->is_weak);
	CHECK(shape_merge(&have, of(SHAPE_INT, false, 0), &grown));
	CHECK(!have->is_signed && !have->is_weak);
	grown = false;
	CHECK(shape_merge(&have, constant(), &grown));
	CHECK(!have->is_signed && !grown);
	CHECK(shape_merge(&have, of(SHAPE_INT, true, 0), &grown));
	CHECK(have->is_signed && grown);
}

static void test_pointers(void)
{
	struct shape *have = NULL;
	bool grown = false;

	CHECK(shape_merge(&have, constant(), &grown));
	CHECK(shape_merge(&have, of(SHAPE_POINTER, false, 0), &grown));
	CHECK_EQ(have->kind, SHAPE_POINTER);
	CHECK(shape_merge(&have, constant(), &grown));
	CHECK_EQ(have->kind, SHAPE_POINTER);
	CHECK(shape_merge(&have, of(SHAPE_INT, false, 0), &grown));
	CHECK_EQ(have->kind, SHAPE_INT);
}

static void test_kinds(void)
{
	struct shape *have = of(SHAPE_INT, true, 0), *tuple = pair(constant(), constant());
	struct shape *hist = shape_new_lhist(arena, 0, 10, 1), *three[] = {have, have, have};
	bool grown = false;

	CHECK(!shape_merge(&have, of(SHAPE_STRING, false, 3), &grown));
	CHECK(!shape_merge(&have, of(SHAPE_COUNT, false, 0), &grown));
	CHECK(!shape_merge(&tuple, shape_new_tuple(arena, three, 3), &grown));
	CHECK(!shape_merge(&tuple, pair(of(SHAPE_STRING, false, 1), constant()), &grown));
	CHECK(!shape_merge(&hist, shape_new_lhist(arena, 0, 10, 2), &grown));
	CHECK(!grown);
	CHECK(shape_merge(&hist, shape_new_lhist(arena, 0, 10, 1), &grown));
	CHECK(!grown);
}

static void test_sameness(void)
{
	CHECK(shape_is_same(of(SHAPE_STRING, false, 3), of(SHAPE_STRING, false, 3)));
	CHECK(!shape_is_same(of(SHAPE_STRING, false, 3), of(SHAPE_STRING, false, 4)));
	CHECK(!shape_is_same(of(SHAPE_INT, false, 0), of(SHAPE_INT, true, 0)));
	CHECK(shape_is_same(pair(constant(), constant()), pair(constant(), constant())));
	CHECK(!shape_is_same(
		pair(constant(), constant()), pair(constant(), of(SHAPE_KSYM, false, 0))));
	CHECK(shape_is_aggregation(of(SHAPE_HIST, false, 0)));
	CHECK(!shape_is_aggregation(of(SHAPE_TUPLE, false, 0)));
}

int main(void)
{
	static const struct test tests[] = {
		{"every shape is a multiple of 8 bytes and has the size of its layout", test_sizes},
		{"the parts of a tuple lie one behind the other", test_tuples},
		{"merged strings have the length of the longest", test_strings_grow},
		{"constants take the sign of what else is there", test_signs},
		{"constants do not make a number of a pointer, other numbers do", test_pointers},
		{"shapes of different kinds do not merge", test_kinds},
		{"shapes are compared with all that they have", test_sameness},
	};
	int rc;

	arena = arena_new();
	rc = RUN_TESTS(tests);
	arena_free(arena);
	return rc;
}
