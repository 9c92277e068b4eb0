/* SPDX-License-Identifier: MIT */
/* weir-test: tsan */
/* The merged symbol file with real images in it: what the directory says comes from their bytes. */
#include "base/mem.h"
#include "catalog_maker.h"
#include "check.h"

#define PATH "images.wsym"

static struct err err;

static int apply_images(const char *path, uint8_t version, unsigned n_symbols)
{
	struct catalog_change change = {.n_add = 1};
	struct buf b = {0};
	struct span bytes;
	int rc;

	CHECK_EQ(real_image(&b, path, version, n_symbols, &err), 0);
	bytes = buf_span(&b);
	change.add = &bytes;
	rc = catalog_apply(PATH, &change, &err);
	buf_release(&b);
	return rc;
}

static void test_directory(void)
{
	struct catalog_range range;
	struct catalog_level level;
	struct catalog_image *image = NULL;
	struct catalog_entry e;
	struct catalog *c = NULL;
	size_t first;

	CHECK_EQ(apply_images("/usr/lib/libfoo.so.1", 1, 5), 0);
	CHECK_EQ(apply_images("/usr/lib/libfoo.so.1", 2, 7), 0); /* another version */
	CHECK_EQ(apply_images("/opt/libfoo.so.2", 1, 9), 0);
	CHECK_EQ(catalog_open(&c, PATH, &err), 0);
	CHECK_EQ(catalog_n(c), 3);
	CHECK_EQ(catalog_find_base(c, "libfoo", &first), 3);
	e = catalog_get(c, first);
	CHECK_STR(e.path, "/opt/libfoo.so.2");
	CHECK_EQ(e.n_symbols, 9);
	CHECK_EQ(e.bits, 64);
	CHECK_EQ(e.machine, 62);
	CHECK_EQ(e.build_id.n, 20);
	CHECK_EQ(e.build_id.p[0], 0x5e);
	CHECK_EQ(catalog_stats(c).n_symbols, 5 + 7 + 9);

	CHECK_EQ(catalog_open_image(c, first, &image, &err), 0);
	CHECK_STR(catalog_image_id(image), e.id);
	CHECK_STR(catalog_image_identity(image)->path, e.path);
	CHECK(catalog_image_find_range(image, (struct iaddr){0x1000 + 16 * 8 + 3}, &range));
	CHECK_EQ(catalog_image_levels(image, &range, &level, 1), 1);
	CHECK_STR(level.name, "f8");
	catalog_image_close(image);
	catalog_close(c);
}

static void test_same_image(void)
{
	struct catalog *c = NULL;
	uint64_t generation;

	CHECK_EQ(catalog_open(&c, PATH, &err), 0);
	generation = catalog_stats(c).generation;
	catalog_close(c);
	CHECK_EQ(apply_images("/usr/lib/libfoo.so.1", 1, 5), 0);
	CHECK_EQ(catalog_open(&c, PATH, &err), 0);
	CHECK_EQ(catalog_stats(c).generation, generation);
	catalog_close(c);
	CHECK_EQ(apply_images("/usr/lib/libfoo.so.1", 1, 6), 0); /* more is known of it now */
	CHECK_EQ(catalog_open(&c, PATH, &err), 0);
	CHECK_EQ(catalog_n(c), 3);
	CHECK_EQ(catalog_stats(c).n_symbols, 6 + 7 + 9);
	catalog_close(c);
}

static void test_not_an_image(void)
{
	struct span bytes[2];
	struct catalog_change change = {.add = bytes, .n_add = 2};
	struct buf b = {0};
	struct catalog *c = NULL;

	CHECK_EQ(real_image(&b, "/good", 1, 2, &err), 0);
	bytes[0] = buf_span(&b);
	bytes[1] = (struct span){(const uint8_t *)"no image at all", 15};
	CHECK(catalog_apply(PATH, &change, &err) < 0);
	CHECK(strncmp(err.text, "the image to be added: ", 23) == 0);
	CHECK(catalog_write_new(PATH, &change, &err) < 0);
	CHECK_EQ(catalog_open(&c, PATH, &err), 0);
	CHECK_EQ(catalog_n(c), 3);
	catalog_close(c);
	buf_release(&b);
}

/* An entry that leads to another image than it says. */
static void test_wrong_id(void)
{
	struct catalog_item item = {.entry = {.id = "0123456789abcdef", .path = "/x"}};
	struct catalog_change change = {.n_add = 1};
	struct catalog_image *image;
	struct catalog *c = NULL;
	struct buf b = {0};

	CHECK_EQ(real_image(&b, "/x", 1, 2, &err), 0);
	item.bytes = buf_span(&b);
	CHECK_EQ(catalog_apply_items("wrong.wsym", &item, &change, &err), 0);
	CHECK_EQ(catalog_open(&c, "wrong.wsym", &err), 0);
	CHECK_EQ(catalog_open_image(c, 0, &image, &err), ERR_FORMAT);
	CHECK(strstr(err.text, "image 0123456789abcdef (/x) calls itself ") != NULL);
	catalog_close(c);
	buf_release(&b);
}

static void test_copy(void)
{
	struct catalog *from = NULL, *to = NULL;
	struct span bytes[3];
	struct catalog_change change = {.add = bytes, .n_add = 3};

	CHECK_EQ(catalog_open(&from, PATH, &err), 0);
	for (size_t i = 0; i < 3; i++)
		CHECK_EQ(catalog_image_bytes(from, i, &bytes[i], &err), 0);
	CHECK_EQ(catalog_write_new("copy.wsym", &change, &err), 0);
	CHECK_EQ(catalog_open(&to, "copy.wsym", &err), 0);
	for (size_t i = 0; i < 3; i++)
		CHECK_STR(catalog_get(to, i).id, catalog_get(from, i).id);
	catalog_close(to);
	/* Onto itself: the mapped file stays while it is replaced. */
	CHECK_EQ(catalog_write_new(PATH, &change, &err), 0);
	CHECK_EQ(catalog_open(&to, PATH, &err), 0);
	CHECK_EQ(catalog_n(to), 3);
	catalog_close(to);
	catalog_close(from);
}

int main(void)
{
	static const struct test tests[] = {
		{"the directory says what the images say of themselves", test_directory},
		{"an image that is there already is replaced only when it differs",
			test_same_image},
		{"bytes that are no image are refused and change nothing", test_not_an_image},
		{"an image with another id than its entry is refused", test_wrong_id},
		{"images are copied from one catalog into another, or into itself", test_copy},
	};

	return RUN_TESTS(tests);
}
