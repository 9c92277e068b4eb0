/* SPDX-License-Identifier: MIT */
/* Whether the file at a path is the one that was mapped. */
#include "process/images.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/file.h"
#include "check.h"

static char path[] = "/tmp/weir-images-XXXXXX";
static struct stat st;

static void copy_self(void)
{
	struct file_map self;
	struct err err;
	int fd = open(path, O_WRONLY | O_TRUNC);

	CHECK_EQ(file_map_open(&self, "/proc/self/exe", &err), 0);
	CHECK_EQ(write(fd, self.bytes.p, self.bytes.n), self.bytes.n);
	CHECK_EQ(fstat(fd, &st), 0);
	close(fd);
	file_map_release(&self);
}

/* No process has this id: only the path itself can be opened. */
static struct image_query query_of(uint32_t further)
{
	return (struct image_query){.pid = 0x7fffffff,
		.mapping = {.path = path,
			.inode = st.st_ino,
			.major = major(st.st_dev),
			.minor = minor(st.st_dev) + further}};
}

static void tells_devices_apart(void)
{
	struct images *t = images_new();
	struct image_query here = query_of(0), elsewhere = query_of(1);
	uint32_t a, b;

	copy_self();
	here = query_of(0);
	elsewhere = query_of(1);
	a = images_ensure(t, &here);
	b = images_ensure(t, &elsewhere);
	CHECK(a != b);
	CHECK_EQ(images_ensure(t, &here), a);
	CHECK(images_get(t, a)->has_elf);
	CHECK(!images_get(t, b)->has_elf);
	CHECK_STR(images_get(t, b)->problem,
		"the file there now is another one (device differs)");
	images_free(t);
}

static void drops_what_was_changed(void)
{
	struct images *t = images_new();
	struct image_query q;
	uint32_t a;

	copy_self();
	q = query_of(0);
	a = images_ensure(t, &q);
	images_drop_changed(t);
	CHECK(images_get(t, a)->has_elf);
	CHECK_EQ(truncate(path, 10), 0); /* within the first page: no signal tells of it */
	images_drop_changed(t);
	CHECK(!images_get(t, a)->has_elf);
	CHECK_STR(images_get(t, a)->problem, "the file was changed after it had been mapped");
	CHECK(images_cfi(t, a) == NULL);
	images_free(t);
}

static void keeps_what_was_replaced(void)
{
	struct images *t = images_new();
	char other[] = "/tmp/weir-images-XXXXXX";
	struct image_query q;
	uint32_t a;

	copy_self();
	q = query_of(0);
	a = images_ensure(t, &q);
	close(mkstemp(other));
	CHECK_EQ(rename(other, path), 0);
	images_drop_changed(t);
	CHECK(images_get(t, a)->has_elf); /* what is mapped is still the old one */
	CHECK(images_cfi(t, a) != NULL);
	images_free(t);
}

int main(void)
{
	static const struct test tests[] = {
		{"files of the same inode on two devices are two images", tells_devices_apart},
		{"a file that was changed in place is of no use any more", drops_what_was_changed},
		{"a file that was replaced is still the one that was mapped",
			keeps_what_was_replaced},
	};
	int rc;

	close(mkstemp(path));
	rc = RUN_TESTS(tests);
	unlink(path);
	return rc;
}
