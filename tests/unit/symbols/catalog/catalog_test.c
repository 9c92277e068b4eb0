/* SPDX-License-Identifier: MIT */
/* weir-test: tsan */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/file.h"
#include "catalog_maker.h"
#include "check.h"

static struct err err;

static void write_bytes(const char *path, struct span bytes)
{
	FILE *f = fopen(path, "wb");

	CHECK(f && fwrite(bytes.p, 1, bytes.n, f) == bytes.n && fclose(f) == 0);
}

static void flip(const char *path, uint64_t offset)
{
	struct buf b = {0};

	read_whole(path, &b);
	CHECK(offset < b.n);
	b.p[offset] ^= 0x10;
	write_bytes(path, buf_span(&b));
	buf_release(&b);
}

/* --- what is in it --- */

static void test_entries(void)
{
	struct catalog_item item = made_item(1, 0);
	const struct catalog_fact_pair facts[] = {
		{"zeta", "last"}, {"made_at", "2026"}, {"cpus", "x"}};
	struct catalog_change change = {.n_add = 1, .facts = facts, .n_facts = 3};
	struct catalog_entry e;
	const char *key = NULL, *before = "";
	struct catalog *c;
	size_t n = 0;

	CHECK_EQ(catalog_apply_items("a/b/entries.wsym", &item, &change, &err), 0);
	c = open_or_die("a/b/entries.wsym");
	CHECK_EQ(catalog_n(c), 1);
	e = catalog_get(c, 0);
	CHECK_STR(e.id, item.entry.id);
	CHECK_STR(e.path, "/opt/1/lib1.so.0");
	CHECK_STR(e.base_name, "lib1");
	CHECK_EQ(e.bits, 64);
	CHECK_EQ(e.machine, 62);
	CHECK_EQ(e.build_id.n, item.entry.build_id.n);
	CHECK(e.build_id.n && memcmp(e.build_id.p, item.entry.build_id.p, e.build_id.n) == 0);
	CHECK_EQ(e.bytes, item.bytes.n);
	CHECK_EQ(e.n_symbols, 10);
	CHECK_EQ(e.n_rows, 100);
	CHECK(made_is_there(c, 1, 0));
	while (catalog_fact(c, n, &key)) {
		CHECK(strcmp(before, key) < 0);
		before = key;
		n++;
	}
	CHECK_EQ(n, 6);
	CHECK_STR(catalog_find_fact(c, "cpus"), "x");
	CHECK_STR(catalog_find_fact(c, "made_at"), "2026");
	CHECK_STR(catalog_find_fact(c, "zeta"), "last");
	CHECK_STR(catalog_find_fact(c, "made_by"), "weir " WEIR_VERSION);
	CHECK(strncmp(catalog_find_fact(c, "made_on"), "Linux ", 6) == 0);
	CHECK(atoi(catalog_find_fact(c, "page_bytes")) >= 4096);
	CHECK(!catalog_find_fact(c, "absent"));
	CHECK_STR(catalog_notes(c), "");
	CHECK(catalog_stats(c).n_symbols == 10 && catalog_stats(c).n_rows == 100);
	CHECK(access("a/b/entries.wsym.new", F_OK) < 0);
	catalog_close(c);
	made_free(&item);
}

static void test_order(void)
{
	struct catalog *c;
	size_t first = 99, n;

	for (uint32_t k = 0; k < 40; k++)
		CHECK_EQ(made_apply("order.wsym", (k * 7) % 40, 1, 0, &err), 0);
	c = open_or_die("order.wsym");
	CHECK(has_exactly(c, 40));
	for (size_t i = 1; i < catalog_n(c); i++)
		CHECK(catalog_row_compare(&c->dir.rows.v[i - 1], &c->dir.rows.v[i]) < 0);
	n = catalog_find_base(c, "libshared", &first);
	CHECK_EQ(n, 14);
	for (size_t i = 0; i < catalog_n(c); i++)
		CHECK_EQ(strcmp(catalog_get(c, i).base_name, "libshared") == 0,
			i >= first && i < first + n);
	CHECK_EQ(catalog_find_base(c, "lib7", &first), 1);
	CHECK_STR(catalog_get(c, first).path, "/opt/2/lib7.so.0");
	CHECK_EQ(catalog_find_base(c, "", &first), 0);
	CHECK_EQ(catalog_find_base(c, "libz", &first), 0);
	CHECK_EQ(catalog_find_base(c, "lib", &first), 0);
	catalog_close(c);
}

static void test_find(void)
{
	static const char *const ids[] = {
		"00aa000000000001", "00aa000000000002", "0b00000000000003"};
	static const char *const paths[] = {"/x/one", "/y/two", "00"};
	struct catalog_item items[4] = {0};
	struct catalog_change change = {.n_add = 4};
	struct catalog *c;

	for (size_t i = 0; i < 3; i++) {
		strcpy(items[i].entry.id, ids[i]);
		items[i].entry.path = paths[i];
	}
	strcpy(items[3].entry.id, "fff0000000000000"); /* no path: code without a file */
	CHECK_EQ(catalog_apply_items("find.wsym", items, &change, &err), 0);
	c = open_or_die("find.wsym");
	for (size_t i = 0; i < 3; i++) {
		CHECK_STR(catalog_get(c, catalog_find(c, ids[i])).path, paths[i]);
		CHECK_STR(catalog_get(c, catalog_find(c, paths[i])).id, ids[i]);
	}
	CHECK_STR(catalog_get(c, catalog_find(c, "0b")).id, ids[2]);
	CHECK_STR(catalog_get(c, catalog_find(c, "ff")).path, "");
	CHECK_EQ(catalog_find(c, "00aa"), SIZE_MAX); /* two */
	CHECK_EQ(catalog_find(c, "0c"), SIZE_MAX);
	CHECK_EQ(catalog_find(c, ""), SIZE_MAX);
	CHECK_EQ(catalog_find(c, "0b000000000000031"), SIZE_MAX);
	catalog_close(c);
}

/* --- changes --- */

static void test_replace(void)
{
	struct catalog_item twice[2] = {made_item(5, 1), made_item(5, 2)};
	struct catalog_change change = {.n_add = 2};
	struct catalog_stats before, after;
	struct catalog *c;

	CHECK_EQ(made_apply("replace.wsym", 0, 10, 0, &err), 0);
	CHECK_EQ(catalog_apply_items("replace.wsym", twice, &change, &err), 0);
	c = open_or_die("replace.wsym");
	CHECK_EQ(catalog_n(c), 10);
	CHECK(made_is_there(c, 5, 2));
	CHECK(made_is_there(c, 4, 0));
	before = catalog_stats(c);
	CHECK_EQ(before.generation, 2);
	CHECK(before.dead_bytes > 0);
	catalog_close(c);

	CHECK_EQ(made_apply("replace.wsym", 5, 1, 2, &err), 0); /* as it is already */
	CHECK_EQ(made_apply("replace.wsym", 0, 0, 0, &err), 0);
	c = open_or_die("replace.wsym");
	after = catalog_stats(c);
	CHECK_EQ(after.generation, before.generation);
	CHECK_EQ(after.file_bytes, before.file_bytes);
	catalog_close(c);
	made_free(&twice[0]);
	made_free(&twice[1]);
}

static void test_remove(void)
{
	char ids[3][17];
	const char *remove[3] = {ids[0], ids[1], ids[2]};
	struct catalog_item again = made_item(1, 0);
	struct catalog_change change = {.remove = remove, .n_remove = 2};
	struct catalog *c;

	made_id(2, ids[0]);
	made_id(1, ids[1]);
	CHECK_EQ(made_apply("remove.wsym", 0, 3, 0, &err), 0);
	CHECK_EQ(catalog_apply_items("remove.wsym", NULL, &change, &err), 0);
	CHECK(file_has_exactly("remove.wsym", 1));

	CHECK_EQ(catalog_apply_items("remove.wsym", NULL, &change, &err), ERR_NOT_FOUND);
	CHECK(strstr(err.text, "'") && strstr(err.text, "remove.wsym': has no image "));
	change = (struct catalog_change){.remove = (const char *[]){"../x"}, .n_remove = 1};
	CHECK_EQ(catalog_apply_items("remove.wsym", NULL, &change, &err), ERR_NOT_FOUND);
	CHECK(file_has_exactly("remove.wsym", 1));

	/* Removed and added in one change: added. */
	CHECK_EQ(made_apply("remove.wsym", 1, 1, 0, &err), 0);
	change = (struct catalog_change){.remove = remove + 1, .n_remove = 1, .n_add = 1};
	CHECK_EQ(catalog_apply_items("remove.wsym", &again, &change, &err), 0);
	CHECK(file_has_exactly("remove.wsym", 2));

	made_id(0, ids[0]); /* the last one may go, too */
	change = (struct catalog_change){.remove = remove, .n_remove = 2};
	CHECK_EQ(catalog_apply_items("remove.wsym", NULL, &change, &err), 0);
	c = open_or_die("remove.wsym");
	CHECK_EQ(catalog_n(c), 0);
	catalog_close(c);
	made_free(&again);
}

static void test_write_new(void)
{
	struct catalog_item items[8], reversed[8];
	const struct catalog_fact_pair facts[] = {{"made_at", "now"}};
	struct catalog_change change = {.n_add = 8, .facts = facts, .n_facts = 1};
	struct buf a = {0}, b = {0};
	struct catalog *old, *new;
	struct stat st;

	for (uint32_t k = 0; k < 8; k++)
		reversed[7 - k] = items[k] = made_item(k, 0);
	CHECK_EQ(made_apply("new.wsym", 0, 20, 0, &err), 0);
	CHECK_EQ(chmod("new.wsym", 0600), 0);
	old = open_or_die("new.wsym");
	CHECK_EQ(catalog_write_new_items("new.wsym", items, &change, &err), 0);
	CHECK(has_exactly(old, 20));
	catalog_close(old);
	new = open_or_die("new.wsym");
	CHECK(has_exactly(new, 8));
	CHECK_EQ(catalog_stats(new).dead_bytes, 0);
	CHECK_EQ(catalog_stats(new).generation, 1);
	catalog_close(new);
	CHECK_EQ(stat("new.wsym", &st), 0);
	CHECK_EQ(st.st_mode & 07777, 0600);

	CHECK_EQ(catalog_write_new_items("new2.wsym", reversed, &change, &err), 0);
	read_whole("new.wsym", &a);
	read_whole("new2.wsym", &b);
	CHECK_EQ(a.n, b.n);
	CHECK(a.n == b.n && memcmp(a.p, b.p, a.n) == 0);
	change.n_remove = 1;
	change.remove = (const char *[]){items[0].entry.id};
	CHECK_EQ(catalog_write_new_items("new2.wsym", NULL, &change, &err), ERR_NOT_FOUND);
	CHECK(access("new2.wsym.new", F_OK) < 0);
	buf_release(&a);
	buf_release(&b);
	for (uint32_t k = 0; k < 8; k++)
		made_free(&items[k]);
}

static void test_compact(void)
{
	struct catalog_stats s;
	struct catalog *before, *c;

	for (uint32_t version = 0; version < 5; version++)
		CHECK_EQ(made_apply("compact.wsym", 0, 12, 4 - version, &err), 0);
	before = open_or_die("compact.wsym");
	CHECK(catalog_stats(before).dead_bytes > catalog_stats(before).live_bytes);
	CHECK_EQ(symlink("compact.wsym", "link.wsym"), 0);
	CHECK_EQ(catalog_compact("link.wsym", &err), 0);
	c = open_or_die("compact.wsym");
	s = catalog_stats(c);
	CHECK_EQ(s.dead_bytes, 0);
	CHECK_EQ(s.live_bytes, s.file_bytes);
	CHECK_EQ(s.generation, 6);
	CHECK(has_exactly(c, 12));
	CHECK(has_exactly(before, 12)); /* the replaced file is still mapped */
	CHECK_STR(catalog_find_fact(c, "made_by"), catalog_find_fact(before, "made_by"));
	catalog_close(before);
	catalog_close(c);
	CHECK_EQ(catalog_compact("compact.wsym", &err), 0); /* nothing to do */
	CHECK_EQ(made_apply("compact.wsym", 12, 1, 0, &err), 0);
	CHECK(file_has_exactly("compact.wsym", 13));
	CHECK_EQ(catalog_compact("absent.wsym", &err), ERR_NOT_FOUND);
	CHECK(access("absent.wsym", F_OK) < 0 && access("absent.wsym.new", F_OK) < 0);
}

/* --- damage --- */

static void test_damaged_image(void)
{
	struct catalog *c;
	struct span bytes;
	uint64_t offset;
	size_t i;
	char id[17];

	made_id(4, id);
	CHECK_EQ(made_apply("damaged.wsym", 0, 6, 0, &err), 0);
	CHECK_EQ(made_apply("damaged.wsym", 1, 1, 1, &err), 0); /* something to compact */
	c = open_or_die("damaged.wsym");
	i = catalog_find(c, id);
	offset = c->dir.rows.v[i].offset;
	catalog_close(c);
	for (int header = 0; header < 2; header++) {
		flip("damaged.wsym", offset + (header ? 20 : 64 + 5));
		c = open_or_die("damaged.wsym");
		CHECK_EQ(catalog_image_bytes(c, i, &bytes, &err), ERR_FORMAT);
		CHECK(strstr(err.text, id) && strstr(err.text, "/opt/4/lib4.so.0"));
		CHECK(made_is_there(c, 5, 0));
		catalog_close(c);
		CHECK_EQ(catalog_compact("damaged.wsym", &err), ERR_FORMAT);
		CHECK(strstr(err.text, id) != NULL);
	}
	/* Adding it anew heals it. */
	CHECK_EQ(made_apply("damaged.wsym", 4, 1, 0, &err), 0);
	c = open_or_die("damaged.wsym");
	CHECK(made_is_there(c, 4, 0));
	catalog_close(c);
	CHECK_EQ(catalog_compact("damaged.wsym", &err), 0);
}

static void test_damaged_directory(void)
{
	struct catalog *c;
	uint64_t directory;

	for (uint32_t k = 0; k < 3; k++)
		CHECK_EQ(made_apply("directory.wsym", k, 1, 0, &err), 0);
	c = open_or_die("directory.wsym");
	directory = c->root.dir_offset;
	catalog_close(c);
	flip("directory.wsym", directory + 64 + 3);
	c = open_or_die("directory.wsym");
	CHECK(has_exactly(c, 2));
	CHECK(strstr(catalog_notes(c), "generation 3 is damaged"));
	catalog_close(c);
	CHECK_EQ(made_apply("directory.wsym", 2, 2, 0, &err), 0);
	c = open_or_die("directory.wsym");
	CHECK(has_exactly(c, 4));
	CHECK_STR(catalog_notes(c), "");
	CHECK_EQ(catalog_stats(c).generation, 4);
	catalog_close(c);
}

static void test_damaged_roots(void)
{
	struct catalog *c;

	for (uint32_t k = 0; k < 3; k++)
		CHECK_EQ(made_apply("roots.wsym", k, 1, 0, &err), 0);
	flip("roots.wsym", 30); /* root A, generation 3 */
	c = open_or_die("roots.wsym");
	CHECK(has_exactly(c, 2));
	CHECK_STR(catalog_notes(c), "Root A is damaged; the last change may be missing.");
	catalog_close(c);
	CHECK_EQ(made_apply("roots.wsym", 2, 1, 0, &err), 0);
	c = open_or_die("roots.wsym");
	CHECK(has_exactly(c, 3));
	CHECK_STR(catalog_notes(c), "");
	catalog_close(c);
	flip("roots.wsym", 4096 + 511);
	CHECK(file_has_exactly("roots.wsym", 3));
	flip("roots.wsym", 0);
	CHECK_EQ(catalog_open(&c, "roots.wsym", &err), ERR_FORMAT);
	CHECK_STR(err.text, "'roots.wsym': is not a symbol catalog");
	CHECK_EQ(made_apply("roots.wsym", 3, 1, 0, &err), ERR_FORMAT);
}

static void test_cut_file(void)
{
	struct buf b = {0};
	struct catalog *c;
	size_t n;

	CHECK_EQ(made_apply("cut.wsym", 0, 2, 0, &err), 0);
	read_whole("cut.wsym", &b);
	n = b.n;
	CHECK_EQ(made_apply("cut.wsym", 2, 2, 0, &err), 0);
	read_whole("cut.wsym", &b);
	for (size_t cut = 0; cut <= b.n; cut += cut == b.n - 1 ? 1 : 61) {
		int rc;

		if (cut > b.n - 1)
			cut = b.n - 1;
		rc = catalog_open_bytes(&c, (struct span){b.p, cut}, "cut", &err);
		CHECK_EQ(rc == 0, cut >= n);
		if (rc == 0) {
			CHECK(has_exactly(c, 2) && *catalog_notes(c));
			catalog_close(c);
		}
		if (cut == b.n - 1)
			break;
	}
	buf_release(&b);
}

static void test_versions(void)
{
	struct buf b = {0};
	struct catalog *c;
	uint32_t crc;

	CHECK_EQ(made_apply("version.wsym", 0, 2, 0, &err), 0);
	read_whole("version.wsym", &b);
	b.p[10] = 9; /* minor */
	crc = crc32c(0, b.p, 508);
	memcpy(b.p + 508, &crc, 4);
	CHECK_EQ(catalog_open_bytes(&c, buf_span(&b), "version", &err), 0);
	catalog_close(c);
	b.p[8] = 2; /* major */
	crc = crc32c(0, b.p, 508);
	memcpy(b.p + 508, &crc, 4);
	CHECK_EQ(catalog_open_bytes(&c, buf_span(&b), "version", &err), ERR_UNSUPPORTED);
	CHECK_STR(err.text, "'version': is a symbol catalog of version 2, not 1");
	buf_release(&b);
}

static void test_not_a_catalog(void)
{
	static const char text[] = "a text, and not a short one";
	struct catalog *c;
	struct buf b = {0};

	CHECK_EQ(catalog_open(&c, "absent.wsym", &err), ERR_NOT_FOUND);
	CHECK_EQ(catalog_open(&c, ".", &err), ERR_FAILED);
	CHECK_EQ(catalog_open(&c, "/dev/null", &err), ERR_FAILED);
	write_bytes("empty.wsym", (struct span){(const uint8_t *)"", 0});
	CHECK_EQ(catalog_open(&c, "empty.wsym", &err), ERR_FORMAT);
	CHECK_EQ(made_apply("empty.wsym", 0, 1, 0, &err), 0);
	CHECK(file_has_exactly("empty.wsym", 1));

	write_bytes("text.txt", (struct span){(const uint8_t *)text, sizeof(text)});
	CHECK_EQ(made_apply("text.txt", 0, 1, 0, &err), ERR_FORMAT);
	CHECK_EQ(catalog_compact("text.txt", &err), ERR_FORMAT);
	read_whole("text.txt", &b);
	CHECK(b.n == sizeof(text) && memcmp(b.p, text, b.n) == 0);
	CHECK_EQ(made_apply(".", 0, 1, 0, &err), ERR_FAILED);
	CHECK_EQ(made_apply("text.txt/x/y", 0, 1, 0, &err), ERR_FAILED);
	buf_release(&b);
}

static void test_foreign_new_file(void)
{
	/* Somebody's file under the name of ours, with another name, too. */
	CHECK_EQ(made_apply("keep.wsym", 0, 3, 0, &err), 0);
	CHECK_EQ(link("keep.wsym", "victim.wsym.new"), 0);
	CHECK_EQ(made_apply("victim.wsym", 0, 1, 0, &err), ERR_PERMISSION);
	CHECK(file_has_exactly("keep.wsym", 3));
	CHECK_EQ(unlink("victim.wsym.new"), 0);
	CHECK_EQ(symlink("keep.wsym", "victim.wsym.new"), 0);
	CHECK(made_apply("victim.wsym", 0, 1, 0, &err) < 0);
	CHECK(file_has_exactly("keep.wsym", 3));
}

/* --- several at once --- */

static void *apply_more(void *path)
{
	CHECK_EQ(made_apply(path, 3, 3, 0, &err), 0);
	return NULL;
}

static void test_replaced_while_waiting(void)
{
	struct catalog *reader;
	pthread_t writer;
	int fd = -1;

	CHECK_EQ(made_apply("wait.wsym", 0, 3, 0, &err), 0);
	CHECK_EQ(made_apply("wait2.wsym", 0, 3, 0, &err), 0);
	reader = open_or_die("wait.wsym");
	CHECK_EQ(catalog_lock("wait.wsym", &fd, &err), 0);
	pthread_create(&writer, NULL, apply_more, (void *)"wait.wsym");
	usleep(50000); /* most likely it waits by now; if not, the test is only weaker */
	CHECK_EQ(rename("wait2.wsym", "wait.wsym"), 0);
	close(fd);
	pthread_join(writer, NULL);
	CHECK(has_exactly(reader, 3));
	CHECK(file_has_exactly("wait.wsym", 6));
	catalog_close(reader);
}

static void *apply_every_other(void *first)
{
	for (uint32_t k = *(uint32_t *)first; k < 40; k += 2) {
		struct err why;

		if (made_apply("both.wsym", k, 1, 0, &why) < 0)
			return mem_strdup(why.text);
		if (k % 10 < 2 && catalog_compact("both.wsym", &why) < 0)
			return mem_strdup(why.text);
	}
	return NULL;
}

static void test_two_writers(void)
{
	uint32_t first[2] = {0, 1};
	pthread_t writers[2];
	void *failed;

	for (int i = 0; i < 2; i++)
		pthread_create(&writers[i], NULL, apply_every_other, &first[i]);
	for (int i = 0; i < 2; i++) {
		pthread_join(writers[i], &failed);
		CHECK(!failed);
		free(failed);
	}
	CHECK(file_has_exactly("both.wsym", 40));
}

/* --- paths --- */

static const char *default_path(void)
{
	static char kept[200];
	char *path = catalog_default_path();

	snprintf(kept, sizeof(kept), "%s", path ? path : "none");
	free(path);
	return kept;
}

static void test_default_path(void)
{
	setenv("HOME", "/home/u", 1);
	setenv("XDG_CACHE_HOME", "/cache", 1);
	setenv("WEIR_CATALOG", "/c.wsym", 1);
	CHECK_STR(default_path(), "/c.wsym");
	setenv("WEIR_CATALOG", "", 1);
	CHECK_STR(default_path(), "/cache/weir/catalog.wsym");
	setenv("XDG_CACHE_HOME", "relative", 1);
	CHECK_STR(default_path(), "/home/u/.cache/weir/catalog.wsym");
	unsetenv("XDG_CACHE_HOME");
	CHECK_STR(default_path(), "/home/u/.cache/weir/catalog.wsym");
	unsetenv("HOME");
	CHECK_STR(default_path(), "none");
}

int main(void)
{
	static const struct test tests[] = {
		{"an image is there with what the directory says of it", test_entries},
		{"images are sorted and found by base name", test_order},
		{"images are found by id, path and unique prefix", test_find},
		{"an image of the same id replaces, equal bytes are not written again",
			test_replace},
		{"images are removed, and an absent one is an error", test_remove},
		{"a new file has the same bytes for any order and replaces the old one",
			test_write_new},
		{"compaction leaves nothing dead and readers alone", test_compact},
		{"a damaged image is refused by name and the others are not", test_damaged_image},
		{"a damaged directory gives the state before, with a note", test_damaged_directory},
		{"a damaged root gives the state of the other, with a note", test_damaged_roots},
		{"a cut file gives the last state that is whole", test_cut_file},
		{"a later minor version is read and another major version refused", test_versions},
		{"what is no catalog is neither read nor changed", test_not_a_catalog},
		{"a foreign file in the place of the new one is left alone", test_foreign_new_file},
		{"a writer that waited for a file that was replaced writes into its successor",
			test_replaced_while_waiting},
		{"two writers that also compact lose nothing", test_two_writers},
		{"the default path follows the environment", test_default_path},
	};

	return RUN_TESTS(tests);
}
