/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "base/map.h"
#include "check.h"

static void test_empty(void)
{
	struct map m = {0};

	CHECK(!map_find(&m, 0));
	CHECK(!map_find(&m, 1));
	map_reset(&m);
	map_release(&m);
	map_release(&m);
	CHECK_EQ(m.n, 0);
}

static void test_ensure(void)
{
	struct map m = {0};
	bool created = false;

	CHECK_EQ(*map_ensure(&m, 0, &created), 0);
	CHECK(created);
	*map_ensure(&m, 0, &created) = 7;
	CHECK(!created);
	*map_ensure(&m, UINT64_MAX, NULL) = 8;
	CHECK_EQ(m.n, 2);
	CHECK(map_find(&m, 0) && *map_find(&m, 0) == 7);
	CHECK(map_find(&m, UINT64_MAX) && *map_find(&m, UINT64_MAX) == 8);
	CHECK(!map_find(&m, 1));
	map_reset(&m);
	CHECK_EQ(m.n, 0);
	CHECK(!map_find(&m, 0));
	CHECK_EQ(*map_ensure(&m, 0, &created), 0);
	CHECK(created);
	map_release(&m);
}

static void check_many(uint64_t step, uint64_t n)
{
	struct map m = {0};

	for (uint64_t i = 0; i < n; i++) {
		bool created;

		*map_ensure(&m, i * step, &created) = i + 1;
		CHECK(created);
	}
	CHECK_EQ(m.n, n);
	CHECK(m.cap > n && (m.cap & (m.cap - 1)) == 0);
	for (uint64_t i = 0; i < n; i++) {
		const uint64_t *v = map_find(&m, i * step);

		CHECK(v && *v == i + 1);
	}
	for (uint64_t i = 0; i < n; i++)
		CHECK(!map_find(&m, i * step + step / 2 + 1) || step <= 2);
	map_release(&m);
}

static void test_growth(void)
{
	check_many(1, 20000);
	check_many(4096, 20000);	     /* pages */
	check_many((uint64_t)1 << 40, 5000); /* only high bits differ */
}

/* Keys that start at the same slot of a table of 16 are told apart and survive its growth. */
static void test_collisions(void)
{
	uint64_t keys[40];
	size_t n = 0;
	struct map m = {0};

	for (uint64_t key = 0; n < 40; key++)
		if ((map_hash(key) & 15) == 15) /* the last slot: they wrap around */
			keys[n++] = key;
	for (size_t i = 0; i < n; i++) {
		*map_ensure(&m, keys[i], NULL) = keys[i] * 3;
		for (size_t k = 0; k <= i; k++)
			CHECK(map_find(&m, keys[k]) && *map_find(&m, keys[k]) == keys[k] * 3);
		CHECK(i + 1 == n || !map_find(&m, keys[i + 1]));
	}
	map_release(&m);
}

static void test_hashes(void)
{
	static const char text[] = "abcdefghijklmnopqrstuvwxyz";
	uint64_t seen[sizeof(text)];

	for (size_t n = 0; n < sizeof(text); n++) {
		seen[n] = map_hash_bytes(text, n);
		for (size_t i = 0; i < n; i++)
			CHECK(seen[i] != seen[n]);
	}
	CHECK(map_hash_bytes("a\0", 2) != map_hash_bytes("a", 1));
	CHECK(map_hash_bytes("a\0", 2) != map_hash_bytes("a\0\0", 3));
	CHECK(map_hash_mix(map_hash(1), 2) != map_hash_mix(map_hash(2), 1));
	CHECK_EQ(map_hash_bytes(text, 20), map_hash_bytes("abcdefghijklmnopqrst", 20));
}

static void test_intern_same_id(void)
{
	struct intern t = {0};

	CHECK_EQ(intern_text(&t, "one"), 0);
	CHECK_EQ(intern_text(&t, "two"), 1);
	CHECK_EQ(intern_text(&t, ""), 2);
	CHECK_EQ(intern_text(&t, "one"), 0);
	CHECK_EQ(intern_bytes(&t, "oneself", 3), 0);
	CHECK_EQ(intern_bytes(&t, "a\0b", 3), 3);
	CHECK_EQ(intern_bytes(&t, "a\0c", 3), 4);
	CHECK_EQ(intern_text(&t, "a"), 5);
	CHECK_STR(intern_get(&t, 1), "two");
	CHECK_STR(intern_get(&t, 2), "");
	CHECK_EQ(t.items[3].n, 3);
	CHECK(!memcmp(intern_get(&t, 3), "a\0b", 4)); /* with the NUL behind it */
	intern_release(&t);
	CHECK_EQ(t.n_items, 0);
	intern_release(&t);
}

static void test_intern_nothing(void)
{
	struct intern t = {0};

	CHECK_EQ(intern_bytes(&t, NULL, 0), 0);
	CHECK_EQ(intern_bytes(&t, NULL, 0), 0);
	CHECK_EQ(intern_text(&t, ""), 0);
	CHECK_STR(intern_get(&t, 0), "");
	intern_release(&t);
}

static void test_intern_growth(void)
{
	struct intern t = {0};
	const char *first;
	char *large = malloc(200000);
	char name[32];

	if (!large)
		abort();
	memset(large, 'x', 200000);
	CHECK_EQ(intern_text(&t, "first"), 0);
	first = intern_get(&t, 0);
	CHECK_EQ(intern_bytes(&t, large, 200000), 1); /* larger than a block */
	for (unsigned i = 0; i < 30000; i++) {
		snprintf(name, sizeof(name), "function_%u", i);
		CHECK_EQ(intern_text(&t, name), i + 2);
	}
	for (unsigned i = 0; i < 30000; i++) {
		snprintf(name, sizeof(name), "function_%u", i);
		CHECK_EQ(intern_text(&t, name), i + 2);
		CHECK_STR(intern_get(&t, i + 2), name);
	}
	CHECK(intern_get(&t, 0) == first); /* texts do not move */
	CHECK_EQ(strlen(intern_get(&t, 1)), 200000);
	CHECK_EQ(intern_bytes(&t, large, 199999), 30002);
	intern_release(&t);
	free(large);
}

int main(void)
{
	static const struct test tests[] = {
		{"an empty map finds nothing and can be released twice", test_empty},
		{"a value is created as 0 once and found afterwards", test_ensure},
		{"every value is found after the table grew", test_growth},
		{"keys that collide are told apart, also around the end", test_collisions},
		{"hashes of bytes depend on every byte and on the length", test_hashes},
		{"the same bytes get the same id, in order of first sight", test_intern_same_id},
		{"no bytes at all are the empty text", test_intern_nothing},
		{"interned texts stay in place while the table grows", test_intern_growth},
	};

	return RUN_TESTS(tests);
}
