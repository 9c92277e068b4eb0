/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "check.h"
#include "symbols/addrspace.h"

#define MODEL_BYTES 256
#define BASE	    0x400000u

static size_t map(struct addrspace **a, uint64_t start, uint64_t end, uint32_t image)
{
	return addrspace_map(a, &(struct mapping){.start = start,
					.end = end,
					.offset = {start * 16},
					.image = image,
					.bias = image * 1000u});
}

static void row_is(
	const struct addrspace *a, size_t i, uint64_t start, uint64_t end, uint32_t image)
{
	const struct mapping *m;

	CHECK(i < addrspace_n(a));
	if (i >= addrspace_n(a))
		return;
	m = addrspace_get(a, i);
	CHECK_EQ(m->start, start);
	CHECK_EQ(m->end, end);
	CHECK_EQ(m->image, image);
	CHECK_EQ(m->bias, image * 1000u);
}

static uint32_t image_at(const struct addrspace *a, uint64_t addr)
{
	const struct mapping *m = addrspace_find(a, (struct vaddr){addr});

	return m ? m->image : 0;
}

static void test_order(void)
{
	struct addrspace *a = addrspace_new();

	CHECK(!addrspace_find(a, (struct vaddr){0}));
	CHECK_EQ(map(&a, 300, 400, 3), 0);
	CHECK_EQ(map(&a, 100, 200, 1), 0);
	CHECK_EQ(map(&a, 200, 300, 2), 0);
	CHECK_EQ(addrspace_n(a), 3);
	row_is(a, 0, 100, 200, 1);
	row_is(a, 1, 200, 300, 2);
	row_is(a, 2, 300, 400, 3);
	CHECK_EQ(image_at(a, 99), 0);
	CHECK_EQ(image_at(a, 100), 1);
	CHECK_EQ(image_at(a, 199), 1);
	CHECK_EQ(image_at(a, 200), 2);
	CHECK_EQ(image_at(a, 399), 3);
	CHECK_EQ(image_at(a, 400), 0);
	CHECK_EQ(image_at(a, UINT64_MAX), 0);
	addrspace_free(a);
}

static void test_overlap_left(void)
{
	struct addrspace *a = addrspace_new();

	map(&a, 100, 200, 1);
	CHECK_EQ(map(&a, 50, 150, 2), 1);
	CHECK_EQ(addrspace_n(a), 2);
	row_is(a, 0, 50, 150, 2);
	row_is(a, 1, 150, 200, 1);
	CHECK_EQ(addrspace_get(a, 1)->offset.v,
		100 * 16 + 50); /* bytes into the file, not a scale */
	addrspace_free(a);
}

static void test_overlap_right(void)
{
	struct addrspace *a = addrspace_new();

	map(&a, 100, 200, 1);
	CHECK_EQ(map(&a, 150, 250, 2), 1);
	CHECK_EQ(addrspace_n(a), 2);
	row_is(a, 0, 100, 150, 1);
	CHECK_EQ(addrspace_get(a, 0)->offset.v, 100 * 16);
	row_is(a, 1, 150, 250, 2);
	addrspace_free(a);
}

static void test_split(void)
{
	struct addrspace *a = addrspace_new();

	map(&a, 100, 200, 1);
	map(&a, 300, 400, 3);
	CHECK_EQ(map(&a, 120, 130, 2), 1);
	CHECK_EQ(addrspace_n(a), 4);
	row_is(a, 0, 100, 120, 1);
	row_is(a, 1, 120, 130, 2);
	row_is(a, 2, 130, 200, 1);
	CHECK_EQ(addrspace_get(a, 2)->offset.v, 100 * 16 + 30);
	row_is(a, 3, 300, 400, 3);
	addrspace_free(a);
}

static void test_cover(void)
{
	struct addrspace *a = addrspace_new();

	for (uint32_t i = 0; i < 10; i++)
		map(&a, 100 + i * 10, 105 + i * 10, i + 1);
	CHECK_EQ(map(&a, 112, 182, 99), 8); /* cuts the second and the ninth, covers six */
	CHECK_EQ(addrspace_n(a), 5);
	row_is(a, 0, 100, 105, 1);
	row_is(a, 1, 110, 112, 2);
	row_is(a, 2, 112, 182, 99);
	row_is(a, 3, 182, 185, 9);
	row_is(a, 4, 190, 195, 10);
	CHECK_EQ(map(&a, 0, UINT64_MAX, 7), 5);
	CHECK_EQ(addrspace_n(a), 1);
	row_is(a, 0, 0, UINT64_MAX, 7);
	addrspace_free(a);
}

static void test_equal(void)
{
	struct addrspace *a = addrspace_new();

	map(&a, 100, 200, 1);
	CHECK_EQ(map(&a, 100, 200, 2), 1);
	CHECK_EQ(addrspace_n(a), 1);
	row_is(a, 0, 100, 200, 2);
	CHECK_EQ(map(&a, 100, 150, 3), 1); /* same start */
	CHECK_EQ(map(&a, 150, 200, 4), 1); /* same bounds as what is left */
	row_is(a, 0, 100, 150, 3);
	row_is(a, 1, 150, 200, 4);
	CHECK_EQ(addrspace_n(a), 2);
	addrspace_free(a);
}

static void test_empty_mapping(void)
{
	struct addrspace *a = addrspace_new();
	uint64_t generation;

	map(&a, 100, 200, 1);
	generation = addrspace_generation(a);
	CHECK_EQ(map(&a, 150, 150, 2), 0);
	CHECK_EQ(map(&a, 160, 140, 2), 0);
	CHECK_EQ(addrspace_n(a), 1);
	row_is(a, 0, 100, 200, 1);
	CHECK_EQ(addrspace_generation(a), generation);
	addrspace_free(a);
}

static void test_share(void)
{
	struct addrspace *parent = addrspace_new(), *child, *grandchild;

	map(&parent, 100, 200, 1);
	child = addrspace_share(parent);
	CHECK(child == parent);
	map(&child, 150, 160, 2);
	CHECK(child != parent);
	CHECK_EQ(image_at(parent, 155), 1);
	CHECK_EQ(image_at(child, 155), 2);
	grandchild = addrspace_share(child);
	map(&child, 150, 160, 3); /* the elder owner changes it */
	CHECK_EQ(image_at(child, 155), 3);
	CHECK_EQ(image_at(grandchild, 155), 2);
	addrspace_free(child);
	CHECK_EQ(image_at(grandchild, 155), 2);
	addrspace_free(parent);
	CHECK_EQ(image_at(grandchild, 105), 1);
	addrspace_free(grandchild);
	addrspace_free(NULL);
}

static void test_generation(void)
{
	struct addrspace *a = addrspace_new(), *b = addrspace_new(), *shared;
	uint64_t seen;

	CHECK(addrspace_generation(a) != addrspace_generation(b));
	seen = addrspace_generation(a);
	map(&a, 100, 200, 1);
	CHECK(addrspace_generation(a) != seen);
	seen = addrspace_generation(a);
	shared = addrspace_share(a);
	CHECK_EQ(addrspace_generation(shared), seen);
	CHECK_EQ(addrspace_generation(a), seen); /* looking changes nothing */
	map(&shared, 300, 400, 2);
	CHECK(addrspace_generation(shared) != seen);
	CHECK_EQ(addrspace_generation(a), seen);
	map(&a, 300, 400, 2);
	CHECK(addrspace_generation(a) != addrspace_generation(shared));
	addrspace_free(a);
	addrspace_free(b);
	addrspace_free(shared);
}

static void test_unmap(void)
{
	struct addrspace *a = addrspace_new();

	map(&a, 100, 200, 1);
	map(&a, 300, 400, 3);
	CHECK_EQ(addrspace_unmap(&a, 120, 130), 1); /* inside */
	CHECK_EQ(addrspace_n(a), 3);
	row_is(a, 0, 100, 120, 1);
	row_is(a, 1, 130, 200, 1);
	CHECK_EQ(addrspace_get(a, 1)->offset.v, 100 * 16 + 30);
	row_is(a, 2, 300, 400, 3);
	CHECK_EQ(addrspace_unmap(&a, 150, 310), 2); /* an end, a hole and a start */
	CHECK_EQ(addrspace_n(a), 3);
	row_is(a, 1, 130, 150, 1);
	row_is(a, 2, 310, 400, 3);
	CHECK_EQ(addrspace_get(a, 2)->offset.v, 300 * 16 + 10);
	CHECK_EQ(addrspace_unmap(&a, 100, 400), 3);
	CHECK_EQ(addrspace_n(a), 0);
	CHECK_EQ(image_at(a, 105), 0);
	addrspace_free(a);
}

static void test_unmap_nothing(void)
{
	struct addrspace *a = addrspace_new(), *shared;
	uint64_t generation;

	CHECK_EQ(addrspace_unmap(&a, 0, UINT64_MAX), 0);
	map(&a, 100, 200, 1);
	map(&a, 300, 400, 3);
	generation = addrspace_generation(a);
	shared = addrspace_share(a);
	CHECK_EQ(addrspace_unmap(&shared, 200, 300), 0); /* the hole between them */
	CHECK_EQ(addrspace_unmap(&shared, 0, 100), 0);
	CHECK_EQ(addrspace_unmap(&shared, 400, UINT64_MAX), 0);
	CHECK_EQ(addrspace_unmap(&shared, 150, 150), 0);
	CHECK_EQ(addrspace_unmap(&shared, 160, 140), 0);
	CHECK(shared == a);
	CHECK_EQ(addrspace_generation(a), generation);
	CHECK_EQ(addrspace_unmap(&shared, 199, 200), 1);
	CHECK(shared != a);
	CHECK_EQ(image_at(a, 199), 1);
	CHECK_EQ(image_at(shared, 199), 0);
	CHECK_EQ(addrspace_generation(a), generation);
	CHECK(addrspace_generation(shared) != generation);
	addrspace_free(a);
	addrspace_free(shared);
}

static void test_first_after(void)
{
	struct addrspace *a = addrspace_new();

	CHECK_EQ(addrspace_first_after(a, 0), 0);
	map(&a, 100, 200, 1);
	map(&a, 300, 400, 3);
	CHECK_EQ(addrspace_first_after(a, 0), 0);
	CHECK_EQ(addrspace_first_after(a, 199), 0);
	CHECK_EQ(addrspace_first_after(a, 200), 1);
	CHECK_EQ(addrspace_first_after(a, 400), 2);
	addrspace_free(a);
}

/* One byte of address space in the naive model. */
struct model_byte {
	uint32_t image; /* 0 = nothing mapped */
	uint64_t offset;
};

static uint32_t next_random(void)
{
	static uint64_t state = 0x2545f4914f6cdd1du;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 20);
}

static void model_map(struct model_byte *model, const struct mapping *m)
{
	for (uint64_t i = m->start; i < m->end; i++)
		model[i - BASE] = (struct model_byte){m->image, m->offset.v + (i - m->start)};
}

static bool agrees(const struct addrspace *a, const struct model_byte *model)
{
	for (uint64_t i = 0; i < MODEL_BYTES; i++) {
		const struct mapping *m = addrspace_find(a, (struct vaddr){BASE + i});

		if ((m ? m->image : 0) != model[i].image)
			return false;
		if (m && m->offset.v + (BASE + i - m->start) != model[i].offset)
			return false;
	}
	for (size_t i = 0; i < addrspace_n(a); i++) {
		const struct mapping *m = addrspace_get(a, i);

		if (m->start >= m->end || (i && addrspace_get(a, i - 1)->end > m->start))
			return false;
	}
	return true;
}

/* Three owners that fork from each other at random, each with a model of its own. */
static void test_model(void)
{
	static struct model_byte models[3][MODEL_BYTES];
	struct addrspace *spaces[3];
	int disagreements = 0;

	for (int i = 0; i < 3; i++)
		spaces[i] = addrspace_new();
	for (uint32_t step = 1; step <= 20000; step++) {
		uint32_t who = next_random() % 3, from = next_random() % 3;

		if (next_random() % 50 == 0 && who != from) {
			addrspace_free(spaces[who]);
			spaces[who] = addrspace_share(spaces[from]);
			memcpy(models[who], models[from], sizeof(models[who]));
		} else {
			uint64_t start = next_random() % MODEL_BYTES;
			uint64_t most = next_random() % 8 ? 24 : MODEL_BYTES;
			uint64_t end = start + next_random() % most;
			struct mapping m = {.start = BASE + start,
				.end = BASE + (end > MODEL_BYTES ? MODEL_BYTES : end),
				.offset = {step * 1000u},
				.image = step};

			if (next_random() % 3 == 0) {
				addrspace_unmap(&spaces[who], m.start, m.end);
				m.image = 0;
			} else {
				addrspace_map(&spaces[who], &m);
			}
			model_map(models[who], &m);
		}
		for (int i = 0; i < 3; i++)
			disagreements += !agrees(spaces[i], models[i]);
	}
	CHECK_EQ(disagreements, 0);
	for (int i = 0; i < 3; i++)
		addrspace_free(spaces[i]);
}

int main(void)
{
	static const struct test tests[] = {
		{"mappings are kept by address and found from their first to their last byte",
			test_order},
		{"a mapping over the start of an older one leaves its tail, further into the file",
			test_overlap_left},
		{"a mapping over the end of an older one leaves its head", test_overlap_right},
		{"a mapping inside an older one splits it", test_split},
		{"a mapping over several replaces those and cuts the outer two", test_cover},
		{"a mapping at the same place replaces the older one", test_equal},
		{"an empty mapping changes nothing", test_empty_mapping},
		{"owners of a shared table do not see each other's changes", test_share},
		{"the generation changes with the content and is nobody else's", test_generation},
		{"unmapping cuts what it touches and leaves the rest where it was", test_unmap},
		{"unmapping what is not executable changes nothing, not even the generation",
			test_unmap_nothing},
		{"a walk over a range begins at the first mapping that ends after it",
			test_first_after},
		{"random mappings, unmappings and forks agree with a table of single bytes",
			test_model},
	};

	return RUN_TESTS(tests);
}
