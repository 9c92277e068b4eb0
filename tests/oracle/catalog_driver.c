/* SPDX-License-Identifier: MIT */
/*
 * A process that uses a catalog of made-up images (tests/unit/catalog_maker.h), for tests that kill
 * it or run several of it:
 *
 * catalog_driver add FILE FIRST STEP N [COMPACT]  applies the images FIRST, FIRST + STEP, ... one
 *	change each; prints "committed K" behind each. After every COMPACT changes it compacts.
 * catalog_driver check FILE    every image has its bytes; prints "has K" for each.
 * catalog_driver watch FILE N  opens it again and again until it has N images: never fewer than
 *	before, always whole. Prints the number of images of each state that it sees.
 * catalog_driver make FILE     writes a new file with some of everything.
 * catalog_driver images FILE   the same with real images instead of made-up ones.
 * catalog_driver dump FILE     prints it as JSON, in the form of tests/format/read_catalog.py.
 * catalog_driver hash FILE     prints the content hash of an ELF file.
 *
 * WEIR_CATALOG_CRASH_AT=N in the environment kills the process with SIGKILL at its Nth write, sync
 * or rename; WEIR_CATALOG_CRASH_PERMILLE says how much of that write is done before (default 0).
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../unit/catalog_maker.h"
#include "base/file.h"
#include "base/json.h"

static int say(const struct err *err)
{
	fprintf(stderr, "%s\n", err->text);
	return 1;
}

/* --- death --- */

static long calls_left = -1;
static size_t last_permille;

static bool is_last_call(void)
{
	return calls_left > 0 && --calls_left == 0;
}

static ssize_t write_or_die(int fd, const void *p, size_t n, off_t offset)
{
	if (!is_last_call())
		return pwrite(fd, p, n, offset);
	if (pwrite(fd, p, n * last_permille / 1000, offset) < 0)
		perror("pwrite");
	kill(getpid(), SIGKILL);
	return -1;
}

static int sync_or_die(int fd)
{
	if (is_last_call())
		kill(getpid(), SIGKILL);
	return fdatasync(fd);
}

static int rename_or_die(const char *from, const char *to)
{
	if (is_last_call())
		kill(getpid(), SIGKILL);
	return rename(from, to);
}

static void prepare_death(void)
{
	static const struct catalog_io io = {write_or_die, sync_or_die, rename_or_die};
	const char *at = getenv("WEIR_CATALOG_CRASH_AT");
	const char *permille = getenv("WEIR_CATALOG_CRASH_PERMILLE");

	if (!at)
		return;
	calls_left = atol(at);
	last_permille = permille ? (size_t)atol(permille) : 0;
	catalog_set_io(&io);
}

/* --- adding and checking --- */

static int add(const char *path, char **arg)
{
	uint32_t k = (uint32_t)atol(arg[0]), step = (uint32_t)atol(arg[1]);
	uint32_t n = (uint32_t)atol(arg[2]), compact = arg[3] ? (uint32_t)atol(arg[3]) : 0;
	struct err err;

	for (uint32_t i = 1; i <= n; i++, k += step) {
		if (made_apply(path, k, 1, 0, &err) < 0)
			return say(&err);
		printf("committed %u\n", k);
		fflush(stdout);
		if (compact && i % compact == 0 && catalog_compact(path, &err) < 0)
			return say(&err);
	}
	return 0;
}

/* The number of the image at i, after everything that is known of it was compared; -1 and a
 * sentence otherwise. */
static long number_of(const struct catalog *c, size_t i)
{
	struct catalog_entry e = catalog_get(c, i);
	struct catalog_item expected;
	unsigned k;
	bool same;

	if (sscanf(e.path, "/opt/%*u/lib%u.so.0", &k) != 1 &&
		sscanf(e.path, "/usr/lib/%u/libshared.so", &k) != 1) {
		fprintf(stderr, "image %s has the path '%s'\n", e.id, e.path);
		return -1;
	}
	expected = made_item(k, 0);
	same = strcmp(e.id, expected.entry.id) == 0 && strcmp(e.path, expected.entry.path) == 0 &&
	       e.n_symbols == expected.entry.n_symbols && made_is_there(c, k, 0);
	made_free(&expected);
	if (same)
		return k;
	fprintf(stderr, "image %u is not what was added\n", k);
	return -1;
}

static int check(const char *path)
{
	struct catalog *c;
	struct err err;
	int rc = 0;

	if (catalog_open(&c, path, &err) < 0)
		return say(&err);
	for (size_t i = 0; i < catalog_n(c); i++) {
		long k = number_of(c, i);

		if (k < 0)
			rc = 1;
		else
			printf("has %ld\n", k);
	}
	catalog_close(c);
	return rc;
}

static int watch(const char *path, size_t n_end)
{
	uint64_t generation = 0, n_states = 0;
	size_t n = 0;
	struct err err;

	while (n < n_end) {
		struct catalog *c;
		struct catalog_stats s;
		int rc = catalog_open(&c, path, &err);

		if (rc == ERR_NOT_FOUND && !generation)
			continue; /* not created yet */
		if (rc < 0)
			return say(&err);
		s = catalog_stats(c);
		if (s.n_images < n || s.generation < generation || *catalog_notes(c)) {
			fprintf(stderr,
				"%" PRIu64 " images of generation %" PRIu64
				" after %zu of generation %" PRIu64 " %s\n",
				s.n_images, s.generation, n, generation, catalog_notes(c));
			return 1;
		}
		for (size_t i = 0; s.generation > generation && i < s.n_images; i++)
			if (number_of(c, i) < 0)
				return 1;
		n = s.n_images;
		if (s.generation > generation) {
			n_states++;
			printf("%zu\n", n);
			fflush(stdout);
		}
		generation = s.generation;
		catalog_close(c);
	}
	printf("saw %" PRIu64 " states\n", n_states);
	return 0;
}

/* --- the format --- */

static int make(const char *path)
{
	static const struct catalog_fact_pair facts[] = {
		{"made_by", "a test"}, {"made_on", "Linux"}, {"cpus", "2"}, {"empty", ""}};
	struct catalog_change change = {.n_add = 12, .facts = facts, .n_facts = 4};
	struct catalog_item items[12];
	struct err err;
	int rc;

	for (uint32_t k = 0; k < 12; k++)
		items[k] = made_item(k, 0);
	rc = catalog_write_new_items(path, items, &change, &err);
	for (uint32_t k = 0; k < 12; k++)
		made_free(&items[k]);
	return rc < 0 ? say(&err) : 0;
}

static int images(const char *path)
{
	struct buf bytes[3] = {0};
	struct span spans[3];
	struct catalog_change change = {.add = spans, .n_add = 3};
	struct err err;
	int rc = 0;

	for (uint8_t i = 0; i < 3 && rc == 0; i++) {
		rc = real_image(&bytes[i], i ? "/usr/bin/prog" : "/lib/libx.so.1", i, i * 3, &err);
		spans[i] = buf_span(&bytes[i]);
	}
	if (rc == 0)
		rc = catalog_write_new(path, &change, &err);
	for (int i = 0; i < 3; i++)
		buf_release(&bytes[i]);
	return rc < 0 ? say(&err) : 0;
}

static void dump_image(struct json *j, const struct catalog *c, size_t i)
{
	struct catalog_entry e = catalog_get(c, i);
	struct buf b = {0};
	struct span bytes;

	json_object_begin(j, NULL);
	json_string(j, "id", e.id);
	json_string(j, "base", e.base_name);
	json_string(j, "path", e.path);
	json_u64(j, "bits", e.bits);
	json_u64(j, "machine", e.machine);
	for (size_t k = 0; k < e.build_id.n; k++)
		buf_printf(&b, "%02x", e.build_id.p[k]);
	json_string(j, "build_id", buf_text(&b));
	json_u64(j, "symbols", e.n_symbols);
	json_u64(j, "rows", e.n_rows);
	json_u64(j, "bytes", e.bytes);
	if (catalog_image_bytes(c, i, &bytes, NULL) < 0) {
		json_null(j, "content");
	} else {
		buf_reset(&b);
		for (size_t k = 0; k < bytes.n; k++)
			buf_printf(&b, "%02x", bytes.p[k]);
		json_string(j, "content", buf_text(&b));
	}
	json_object_end(j);
	json_newline(j);
	buf_release(&b);
}

static int dump(const char *path)
{
	const char *key, *value;
	struct catalog *c;
	struct err err;
	struct json j;

	if (catalog_open(&c, path, &err) < 0)
		return say(&err);
	json_init(&j, stdout);
	json_object_begin(&j, NULL);
	json_u64(&j, "generation", catalog_stats(c).generation);
	json_bool(&j, "damaged", *catalog_notes(c));
	json_array_begin(&j, "facts");
	for (size_t i = 0; (value = catalog_fact(c, i, &key)); i++) {
		json_array_begin(&j, NULL);
		json_string(&j, NULL, key);
		json_string(&j, NULL, value);
		json_array_end(&j);
	}
	json_array_end(&j);
	json_array_begin(&j, "images");
	for (size_t i = 0; i < catalog_n(c); i++)
		dump_image(&j, c, i);
	json_array_end(&j);
	json_object_end(&j);
	json_newline(&j);
	catalog_close(c);
	return 0;
}

static int hash(const char *path)
{
	struct file_map map;
	struct elf_file elf;
	struct err err;

	if (file_map_open(&map, path, &err) < 0)
		return say(&err);
	if (elf_file_init(&elf, map.bytes, &err) < 0) {
		file_map_release(&map);
		return say(&err);
	}
	printf("%016" PRIx64 "\n", image_content_hash(&elf));
	elf_file_release(&elf);
	file_map_release(&map);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";

	prepare_death();
	if (strcmp(what, "add") == 0 && (argc == 6 || argc == 7))
		return add(argv[2], argv + 3);
	if (strcmp(what, "check") == 0 && argc == 3)
		return check(argv[2]);
	if (strcmp(what, "watch") == 0 && argc == 4)
		return watch(argv[2], (size_t)atol(argv[3]));
	if (strcmp(what, "make") == 0 && argc == 3)
		return make(argv[2]);
	if (strcmp(what, "images") == 0 && argc == 3)
		return images(argv[2]);
	if (strcmp(what, "dump") == 0 && argc == 3)
		return dump(argv[2]);
	if (strcmp(what, "hash") == 0 && argc == 3)
		return hash(argv[2]);
	fprintf(stderr, "usage: catalog_driver add|check|watch|make|images|dump|hash FILE ...\n");
	return 2;
}
