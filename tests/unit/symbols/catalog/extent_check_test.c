/* SPDX-License-Identifier: MIT */
#include "symbols/catalog/extent_check.h"

#include "check.h"

#define N(v) (sizeof(v) / sizeof((v)[0]))

/* What an image has: f, g and h of 0x10 bytes, a longer one, and one behind a gap. */
static const struct extent image[] = {
	{0x1000, 0x10}, {0x1010, 0x10}, {0x1020, 0x10}, {0x1030, 0x45}, {0x2000, 0x20}};

static struct candidate function(uint64_t start, uint64_t size)
{
	return (struct candidate){.name = "f", .name_bytes = 1, .start = start, .size = size};
}

static struct extent_result ask(const struct candidate *v, size_t n, const struct extent *pieces,
	size_t n_pieces, const bool *is_anchored, bool *is_pinned)
{
	static const bool none[8];
	struct extent_question q = {
		image, N(image), pieces, n_pieces, v, n, is_anchored ? is_anchored : none};
	struct extent_result r;

	extent_check(&q, &r, is_pinned);
	return r;
}

static void starts(void)
{
	const struct candidate v[] = {function(0x1000, 0), function(0x1014, 0), function(0x1078, 0),
		function(0x1800, 0), function(0x3000, 0), function(0x2000, 0x1f)};
	bool is_pinned[8];
	struct extent_result r = ask(v, 1, NULL, 0, NULL, is_pinned);

	CHECK_EQ(r.n_compared, 1);
	CHECK_EQ(r.n_agree, 1);
	CHECK_EQ(r.first_wrong, SIZE_MAX);
	r = ask(v, 2, NULL, 0, NULL, is_pinned);
	CHECK_EQ(r.n_compared, 2);
	CHECK_EQ(r.n_agree, 1);
	CHECK_EQ(r.first_wrong, 1);
	CHECK_EQ(r.wrong_in_image.start, 0x1010);
	/* Code that the table does not know says nothing, one of another size does. */
	r = ask(v + 2, 3, NULL, 0, NULL, is_pinned);
	CHECK_EQ(r.n_compared, 0);
	r = ask(v + 5, 1, NULL, 0, NULL, is_pinned);
	CHECK_EQ(r.n_compared, 1);
	CHECK_EQ(r.n_agree, 0);
}

static void padding(void)
{
	static const struct extent near[] = {{0x1000, 0xa}, {0x1010, 0x8}, {0x1028, 0x8}};
	const struct candidate v[] = {function(0x100c, 0), function(0x101a, 0)};
	static const bool none[2];
	struct extent_question q = {near, N(near), NULL, 0, v, 2, none};
	struct extent_result r;
	bool is_pinned[2];

	extent_check(&q, &r, is_pinned);
	CHECK_EQ(r.n_compared, 1); /* the second gap has room for a function without an entry */
	CHECK_EQ(r.n_agree, 0);
	CHECK_EQ(r.wrong_in_image.bytes, 0);
}

static void pieces_are_never_torn(void)
{
	static const struct extent whole[] = {{0x1000, 0x30}, {0x1030, 0x45}};
	static const struct extent begins_late[] = {{0x1008, 0x28}};
	static const struct extent ends_early[] = {{0x1000, 0x30}, {0x1030, 0x40}};
	const struct candidate v[] = {function(0x1000, 0)};
	bool is_pinned[8];

	CHECK_EQ(ask(v, 1, whole, N(whole), NULL, is_pinned).torn.bytes, 0);
	CHECK_EQ(ask(v, 1, begins_late, 1, NULL, is_pinned).torn.start, 0x1000);
	CHECK_EQ(ask(v, 1, ends_early, 2, NULL, is_pinned).torn.start, 0x1030);
	CHECK_EQ(ask(v, 1, ends_early, 2, NULL, is_pinned).torn_piece.bytes, 0x40);
}

static void pins(void)
{
	static const struct extent single[] = {
		{0x1000, 0x10}, {0x1010, 0x10}, {0x1020, 0x10}, {0x1030, 0x45}};
	static const struct extent joined[] = {{0x1000, 0x20}, {0x1020, 0x10}, {0x1030, 0x45}};
	static const bool anchored[] = {false, true, false, false};
	const struct candidate v[] = {
		function(0x1000, 0), function(0x1010, 0), function(0x1020, 0), function(0x1030, 0)};
	bool is_pinned[8];

	ask(v, 4, single, 4, NULL, is_pinned);
	CHECK(!is_pinned[0] && !is_pinned[1] && !is_pinned[2] && is_pinned[3]);
	ask(v, 4, joined, 3, NULL, is_pinned); /* f with g behind it is like no other */
	CHECK(is_pinned[0] && is_pinned[1] && is_pinned[2] && is_pinned[3]);
	ask(v, 4, single, 4, anchored, is_pinned);
	CHECK(!is_pinned[0] && is_pinned[1] && !is_pinned[2] && is_pinned[3]);
	ask(v, 4, NULL, 0, NULL, is_pinned); /* without pieces each function is one */
	CHECK(!is_pinned[0] && !is_pinned[1] && !is_pinned[2] && is_pinned[3]);
}

static void no_table(void)
{
	const struct candidate v[] = {function(0x1000, 0)};
	static const struct extent piece[] = {{0x1000, 0x10}};
	static const bool none[1];
	struct extent_question q = {NULL, 0, piece, 1, v, 1, none};
	struct extent_result r;
	bool is_pinned[1];

	extent_check(&q, &r, is_pinned);
	CHECK_EQ(r.n_compared, 0);
	CHECK(!is_pinned[0]);
}

int main(void)
{
	static const struct test tests[] = {
		{"functions begin where the image's do, and have their size", starts},
		{"in padding no function begins", padding},
		{"no function reaches over the border of a piece", pieces_are_never_torn},
		{"what could be exchanged unseen is not pinned", pins},
		{"without a table nothing is compared, and nothing pinned", no_table},
	};

	return RUN_TESTS(tests);
}
