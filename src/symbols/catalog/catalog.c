/* SPDX-License-Identifier: MIT */
/*
 * Reading the merged symbol file. The directory is decoded when the file is opened, images stay
 * where they are.
 *
 * Invariants:
 * 1. Bytes below the committed length of a valid root never change, so a reader needs no lock.
 * 2. Roots do change under a reader: they are copied until two copies are equal (read_roots).
 * 3. The state used is that of the newest root whose directory is whole. If that is not the newest
 *    root, or a root is damaged, catalog_notes says so.
 */
#include "symbols/catalog/catalog.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/file.h"
#include "base/map_guard.h"
#include "base/search.h"
#include "symbols/catalog/catalog_file.h"

#define ROOT_READS_MAX	 1000
#define PATH_VARIABLE	 "WEIR_CATALOG"
#define PATH_BELOW_CACHE "weir/catalog.wsym"

struct root_blocks {
	uint8_t v[CATALOG_N_ROOTS][CATALOG_ROOT_BYTES];
	size_t n[CATALOG_N_ROOTS]; /* bytes that are there */
};

/* --- choosing the root --- */

static void add_note(struct catalog *c, const char *sentence)
{
	char *notes = c->notes ? mem_printf("%s\n%s", c->notes, sentence) : mem_strdup(sentence);

	free(c->notes);
	c->notes = notes;
}

static int load_directory(struct catalog *c, const struct catalog_root *root, struct err *err)
{
	struct catalog_segment segment = {
		.type = CATALOG_SEGMENT_DIRECTORY, .bytes = root->dir_bytes};
	struct span payload;
	int rc;

	if (root->committed_bytes > c->file_bytes)
		return err_set(err, ERR_FORMAT,
			"the file has %" PRIu64 " bytes instead of %" PRIu64 "", c->file_bytes,
			root->committed_bytes);
	if (root->dir_offset < CATALOG_BODY_OFFSET || root->dir_offset % CATALOG_SEGMENT_BYTES)
		return err_set(err, ERR_FORMAT, "the directory cannot be at offset %" PRIu64,
			root->dir_offset);
	rc = catalog_segment_find(span_sub(c->bytes, 0, root->committed_bytes), root->dir_offset,
		&segment, &payload, err);
	if (rc < 0)
		return rc;
	if (crc32c(0, payload.p, payload.n) != segment.crc)
		return err_set(err, ERR_FORMAT, "the check sum of the directory is wrong");
	rc = catalog_dir_decode(&c->dir, payload, root->committed_bytes, err);
	if (rc < 0)
		catalog_dir_release(&c->dir);
	return rc;
}

/* Tries the valid roots from the newest; the first failure is the one to tell. */
static int load_newest(struct catalog *c, const struct catalog_root *roots, unsigned newest,
	bool both, struct err *err)
{
	struct err first;
	char *note;
	int rc = load_directory(c, &roots[newest], &first);

	c->slot = newest;
	if (rc < 0 && both) {
		c->slot = !newest;
		if (load_directory(c, &roots[c->slot], NULL) == 0) {
			note = mem_printf("The change of generation %" PRIu64
					  " is damaged (%s); the state before it is used.",
				roots[newest].generation, first.text);
			add_note(c, note);
			free(note);
			rc = 0;
		}
	}
	if (rc < 0)
		return err_set(err, first.code, "%s", first.text);
	c->root = roots[c->slot];
	return 0;
}

static int load(struct catalog *c, const struct root_blocks *blocks, struct err *err)
{
	enum catalog_root_state state[CATALOG_N_ROOTS];
	struct catalog_root roots[CATALOG_N_ROOTS];
	bool valid[CATALOG_N_ROOTS];

	for (unsigned i = 0; i < CATALOG_N_ROOTS; i++) {
		state[i] =
			catalog_root_decode((struct span){blocks->v[i], blocks->n[i]}, &roots[i]);
		valid[i] = state[i] == CATALOG_ROOT_VALID;
		if (state[i] == CATALOG_ROOT_UNKNOWN)
			return err_set(err, ERR_UNSUPPORTED,
				"is a symbol catalog of version %" PRIu64 ", not %d",
				roots[i].generation, CATALOG_MAJOR);
		if (!valid[i])
			continue;
		if (roots[i].generation > c->newest)
			c->newest = roots[i].generation;
		if (roots[i].committed_bytes > c->end && roots[i].committed_bytes <= c->file_bytes)
			c->end = roots[i].committed_bytes;
	}
	if (c->end < CATALOG_BODY_OFFSET)
		c->end = CATALOG_BODY_OFFSET;
	if (!valid[0] && !valid[1])
		return err_set(err, ERR_FORMAT, "is not a symbol catalog");
	for (unsigned i = 0; i < CATALOG_N_ROOTS; i++)
		if (state[i] == CATALOG_ROOT_DAMAGED)
			add_note(c, i ? "Root B is damaged; the last change may be missing."
				      : "Root A is damaged; the last change may be missing.");
	return load_newest(c, roots,
		!valid[0] || (valid[1] && roots[1].generation > roots[0].generation),
		valid[0] && valid[1], err);
}

/* --- opening and closing --- */

void catalog_close(struct catalog *c)
{
	if (!c)
		return;
	catalog_dir_release(&c->dir);
	if (c->mapped) {
		map_guard_remove(c->bytes.p);
		munmap((void *)c->bytes.p, c->bytes.n);
	}
	free(c->is_checked);
	free(c->notes);
	free(c->name);
	free(c);
}

/* Takes over `c`. */
static int finish_open(
	struct catalog **out, struct catalog *c, const struct root_blocks *blocks, struct err *err)
{
	struct err why;
	int rc = load(c, blocks, &why);

	if (rc < 0) {
		err_set(err, rc, "'%s': %s", c->name, why.text);
		catalog_close(c);
		return rc;
	}
	c->is_checked = mem_calloc(c->dir.rows.n + 1, sizeof(*c->is_checked));
	*out = c;
	return 0;
}

int catalog_open_bytes(struct catalog **out, struct span bytes, const char *name, struct err *err)
{
	struct catalog *c = mem_zalloc(sizeof(*c));
	struct root_blocks blocks = {0};

	c->name = mem_strdup(name);
	c->bytes = bytes;
	c->file_bytes = bytes.n;
	for (size_t i = 0; i < CATALOG_N_ROOTS; i++) {
		uint64_t at = i * CATALOG_BLOCK_BYTES;

		if (at >= bytes.n)
			break;
		blocks.n[i] = bytes.n - at < CATALOG_ROOT_BYTES ? bytes.n - at : CATALOG_ROOT_BYTES;
		memcpy(blocks.v[i], bytes.p + at, blocks.n[i]);
	}
	return finish_open(out, c, &blocks, err);
}

static int read_once(int fd, struct root_blocks *to, const char *name, struct err *err)
{
	*to = (struct root_blocks){0};
	for (size_t i = 0; i < CATALOG_N_ROOTS; i++) {
		ssize_t n;

		do
			n = pread(
				fd, to->v[i], CATALOG_ROOT_BYTES, (off_t)(i * CATALOG_BLOCK_BYTES));
		while (n < 0 && errno == EINTR);
		if (n < 0)
			return err_sys(err, errno, "'%s': cannot read", name);
		to->n[i] = (size_t)n;
	}
	return 0;
}

/*
 * A writer may be between the two reads, or within one. One torn root would do no harm, but a root
 * read long before the other one could bring back a state older than one already seen; two equal
 * readings were both true at the time between them.
 */
static int read_roots(int fd, struct root_blocks *to, const char *name, struct err *err)
{
	struct root_blocks before;
	int rc = read_once(fd, to, name, err);

	for (int i = 0; rc == 0 && i < ROOT_READS_MAX; i++) {
		before = *to;
		rc = read_once(fd, to, name, err);
		if (memcmp(&before, to, sizeof(before)) == 0)
			break;
	}
	return rc;
}

int catalog_open_fd(struct catalog **out, int fd, const char *name, struct err *err)
{
	struct root_blocks blocks;
	struct catalog *c;
	struct stat st;
	void *p;
	int rc = read_roots(fd, &blocks, name, err);

	if (rc < 0)
		return rc;
	/* After the roots: a file is long enough before a root says how long it is. */
	if (fstat(fd, &st) < 0)
		return err_sys(err, errno, "'%s': cannot stat", name);
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_FAILED, "'%s': is not a regular file", name);
	if (st.st_size == 0)
		return err_set(err, ERR_FORMAT, "'%s': is empty, not a symbol catalog", name);
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return err_sys(err, errno, "'%s': cannot map", name);
	map_guard_add(p, (size_t)st.st_size);
	c = mem_zalloc(sizeof(*c));
	c->name = mem_strdup(name);
	c->bytes = (struct span){p, (size_t)st.st_size};
	c->mapped = true;
	c->file_bytes = (uint64_t)st.st_size;
	return finish_open(out, c, &blocks, err);
}

int catalog_open(struct catalog **out, const char *path, struct err *err)
{
	FD_AUTO fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return err_sys(err, errno, "'%s': cannot open", path);
	if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
		return err_set(err, ERR_FAILED, "'%s': is a directory", path);
	return catalog_open_fd(out, fd, path, err);
}

char *catalog_default_path(void)
{
	const char *path = getenv(PATH_VARIABLE);
	const char *cache = getenv("XDG_CACHE_HOME");
	const char *home = getenv("HOME");

	if (path && *path)
		return mem_strdup(path);
	if (cache && *cache == '/') /* others must be ignored: XDG Base Directory Specification */
		return mem_printf("%s/" PATH_BELOW_CACHE, cache);
	return home && *home ? mem_printf("%s/.cache/" PATH_BELOW_CACHE, home) : NULL;
}

/* --- the directory --- */

const char *catalog_notes(const struct catalog *c)
{
	return c->notes ? c->notes : "";
}

const char *catalog_fact(const struct catalog *c, size_t i, const char **key)
{
	if (i >= c->dir.facts.n)
		return NULL;
	*key = c->dir.facts.v[i].key;
	return c->dir.facts.v[i].value;
}

const char *catalog_find_fact(const struct catalog *c, const char *key)
{
	for (size_t i = 0; i < c->dir.facts.n; i++)
		if (strcmp(c->dir.facts.v[i].key, key) == 0)
			return c->dir.facts.v[i].value;
	return NULL;
}

struct catalog_entry catalog_image_entry(const struct catalog_image *image)
{
	const struct image_identity *id = catalog_image_identity(image);
	struct catalog_entry e = {.path = id->path ? id->path : "",
		.bits = id->bits,
		.machine = id->machine,
		.build_id = {id->build_id, id->build_id_n},
		.n_symbols = catalog_image_n_symbols(image),
		.n_rows = catalog_image_n_rows(image)};

	memcpy(e.id, catalog_image_id(image), sizeof(e.id));
	return e;
}

size_t catalog_n(const struct catalog *c)
{
	return c->dir.rows.n;
}

struct catalog_entry catalog_get(const struct catalog *c, size_t i)
{
	return c->dir.rows.v[i].entry;
}

size_t catalog_find_base(const struct catalog *c, const char *base_name, size_t *first)
{
	const struct catalog_base *bases = c->dir.bases.v;
	size_t n = c->dir.bases.n, at = SEARCH(0, n, i, strcmp(bases[i].name, base_name) < 0);

	*first = 0;
	if (at == n || strcmp(bases[at].name, base_name))
		return 0;
	*first = bases[at].first;
	return bases[at].n;
}

size_t catalog_find(const struct catalog *c, const char *id_or_path)
{
	size_t n = strlen(id_or_path), by_path = SIZE_MAX, by_prefix = SIZE_MAX;
	bool is_unique = true;

	for (size_t i = 0; i < c->dir.rows.n; i++) {
		const struct catalog_entry *e = &c->dir.rows.v[i].entry;

		if (strcmp(e->id, id_or_path) == 0)
			return i;
		if (by_path == SIZE_MAX && strcmp(e->path, id_or_path) == 0)
			by_path = i;
		if (n && strncmp(e->id, id_or_path, n) == 0) {
			is_unique = by_prefix == SIZE_MAX;
			by_prefix = i;
		}
	}
	if (n && by_path != SIZE_MAX)
		return by_path;
	return is_unique ? by_prefix : SIZE_MAX;
}

struct catalog_stats catalog_stats(const struct catalog *c)
{
	struct catalog_stats s = {.file_bytes = c->file_bytes,
		.generation = c->root.generation,
		.n_images = c->dir.rows.n};

	s.live_bytes = CATALOG_BODY_OFFSET + CATALOG_SEGMENT_BYTES + c->root.dir_bytes;
	for (size_t i = 0; i < c->dir.rows.n; i++) {
		const struct catalog_entry *e = &c->dir.rows.v[i].entry;

		s.live_bytes +=
			catalog_align(CATALOG_SEGMENT_BYTES + e->bytes, CATALOG_SEGMENT_BYTES);
		s.n_symbols += e->n_symbols;
		s.n_rows += e->n_rows;
	}
	/* A hostile directory may name one segment many times. */
	if (s.live_bytes > s.file_bytes)
		s.live_bytes = s.file_bytes;
	s.dead_bytes = s.file_bytes - s.live_bytes;
	return s;
}

/* --- images --- */

int catalog_image_bytes(const struct catalog *c, size_t i, struct span *out, struct err *err)
{
	const struct catalog_row *row = &c->dir.rows.v[i];
	struct catalog_segment segment = {
		.type = CATALOG_SEGMENT_IMAGE, .bytes = row->entry.bytes, .id = row->id};
	struct span payload;
	int rc = catalog_segment_find(c->bytes, row->offset, &segment, &payload, err);

	if (rc == 0 && segment.crc != row->crc)
		rc = err_set(err, ERR_FORMAT,
			"the segment at offset %" PRIu64 " is not the one that is referred to",
			row->offset);
	if (rc == 0 && !atomic_load_explicit(&c->is_checked[i], memory_order_relaxed)) {
		if (crc32c(0, payload.p, payload.n) != row->crc)
			rc = err_set(err, ERR_FORMAT,
				"the check sum of the segment at offset %" PRIu64 " is wrong",
				row->offset);
		else
			atomic_store_explicit(&c->is_checked[i], true, memory_order_relaxed);
	}
	if (rc < 0) {
		err_prefix(err, "'%s': image %s (%s)", c->name, row->entry.id, row->entry.path);
		return rc;
	}
	*out = payload;
	return 0;
}

int catalog_open_image(
	const struct catalog *c, size_t i, struct catalog_image **out, struct err *err)
{
	const struct catalog_entry *e = &c->dir.rows.v[i].entry;
	struct catalog_image *image;
	struct span bytes;
	int rc = catalog_image_bytes(c, i, &bytes, err);

	if (rc < 0)
		return rc;
	rc = catalog_image_open(&image, bytes, err);
	if (rc < 0) {
		err_prefix(err, "'%s': image %s (%s)", c->name, e->id, e->path);
		return rc;
	}
	if (strcmp(catalog_image_id(image), e->id)) {
		rc = err_set(err, ERR_FORMAT, "'%s': image %s (%s) calls itself %s", c->name, e->id,
			e->path, catalog_image_id(image));
		catalog_image_close(image);
		return rc;
	}
	*out = image;
	return 0;
}
