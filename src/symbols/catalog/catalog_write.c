/* SPDX-License-Identifier: MIT */
/*
 * Changing the merged symbol file. A change is one commit: fresh segments and a new directory
 * behind everything that any valid root knows, sync, then the root that is not in use, sync.
 *
 * Invariants:
 * 1. Only the holder of the file's lock writes to it; only the holder of the new file's lock
 *    (catalog_lock_new) creates or replaces the file.
 * 2. A byte below the committed length of a valid root is never written again, nor is a block that
 *    holds one: a commit begins at a block's border.
 * 3. The root in use is not touched; until the other one is whole, the state is the old one.
 * 4. A file at the path always has a valid root: new files are filled beside it and renamed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/file.h"
#include "base/map.h"
#include "base/output.h"
#include "symbols/catalog/catalog_file.h"

#define WRITE_BYTES	 (1u << 20) /* small segments are gathered up to this */
#define CREATE_TRIES_MAX 1000

struct fresh_row {
	struct catalog_row row;
	struct span fresh; /* p != NULL: the bytes, still to be written */
	bool is_removed;
};

/* The state that the commit will bring. Texts are borrowed but for base names. */
struct state {
	VEC(struct fresh_row) rows;
	VEC(struct catalog_fact_pair) facts;
	struct map by_id;	  /* id -> index of rows */
	struct intern base_names; /* of fresh rows */
	bool is_changed;
};

static void state_release(struct state *s)
{
	vec_release(&s->rows);
	vec_release(&s->facts);
	map_release(&s->by_id);
	intern_release(&s->base_names);
}

/* --- what the change means --- */

static void state_take(struct state *s, const struct catalog *old)
{
	for (size_t i = 0; i < old->dir.rows.n; i++) {
		*map_ensure(&s->by_id, old->dir.rows.v[i].id, NULL) = i;
		vec_push(&s->rows, ((struct fresh_row){.row = old->dir.rows.v[i]}));
	}
	for (size_t i = 0; i < old->dir.facts.n; i++)
		vec_push(&s->facts, old->dir.facts.v[i]);
}

static int state_remove(struct state *s, const char *id, const char *name, struct err *err)
{
	uint64_t number, *at = catalog_id_parse(id, &number) ? map_find(&s->by_id, number) : NULL;

	if (!at)
		return err_set(err, ERR_NOT_FOUND, "'%s': has no image %s", name, id);
	s->rows.v[*at].is_removed = true;
	s->is_changed = true;
	return 0;
}

static bool has_same_bytes(const struct catalog *old, size_t i, struct span bytes)
{
	struct span there;

	return old && i < old->dir.rows.n && catalog_image_bytes(old, i, &there, NULL) == 0 &&
	       span_equal(there, bytes);
}

static int state_add(struct state *s, const struct catalog *old, const struct catalog_item *item,
	const char *name, struct err *err)
{
	struct fresh_row fresh = {.row.entry = item->entry, .fresh = item->bytes};
	struct catalog_entry *e = &fresh.row.entry;
	static const uint8_t nothing[1];
	struct buf base = {0};
	uint64_t *at;
	bool created;

	if (!catalog_id_parse(e->id, &fresh.row.id) || e->build_id.n > BUILD_ID_MAX)
		return err_set(err, ERR_FORMAT, "'%s': an image with the id '%s' cannot be added",
			name, e->id);
	if (!fresh.fresh.p)
		fresh.fresh.p = nothing;
	e->path = e->path ? e->path : "";
	e->base_name = intern_get(
		&s->base_names, intern_text(&s->base_names, image_base_name(e->path, &base)));
	buf_release(&base);
	e->bytes = item->bytes.n;
	fresh.row.crc = crc32c(0, fresh.fresh.p, item->bytes.n);
	at = map_ensure(&s->by_id, fresh.row.id, &created);
	if (created) {
		*at = s->rows.n;
		vec_push(&s->rows, fresh);
	} else if (s->rows.v[*at].fresh.p || !has_same_bytes(old, *at, item->bytes)) {
		s->rows.v[*at] = fresh;
	} else {
		s->rows.v[*at].is_removed = false;
		return 0;
	}
	s->is_changed = true;
	return 0;
}

static void state_set_fact(struct state *s, struct catalog_fact_pair fact)
{
	size_t i = 0;
	int d = 1;

	while (i < s->facts.n && (d = strcmp(s->facts.v[i].key, fact.key)) < 0)
		i++;
	if (i < s->facts.n && d == 0) {
		s->is_changed |= strcmp(s->facts.v[i].value, fact.value) != 0;
		s->facts.v[i] = fact;
		return;
	}
	vec_insert(&s->facts, i, fact);
	s->is_changed = true;
}

static int compare_rows(const void *a, const void *b)
{
	return catalog_row_compare(
		&((const struct fresh_row *)a)->row, &((const struct fresh_row *)b)->row);
}

static int state_change(struct state *s, const struct catalog *old,
	const struct catalog_item *items, const struct catalog_change *change, const char *name,
	struct err *err)
{
	size_t n = 0;
	int rc = 0;

	for (size_t i = 0; i < change->n_remove && rc == 0; i++)
		rc = state_remove(s, change->remove[i], name, err);
	for (size_t i = 0; i < change->n_add && rc == 0; i++)
		rc = state_add(s, old, &items[i], name, err);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < change->n_facts; i++)
		state_set_fact(s, change->facts[i]);
	for (size_t i = 0; i < s->rows.n; i++)
		if (!s->rows.v[i].is_removed)
			s->rows.v[n++] = s->rows.v[i];
	s->rows.n = n;
	vec_sort(&s->rows, compare_rows);
	return 0;
}

/* --- the commit --- */

struct commit {
	int fd;
	const char *name;
	struct catalog_root root; /* to be written */
	unsigned slot;
	uint64_t offset;    /* of the first byte in `pending` */
	struct buf pending; /* gathered, not yet written */
	struct err *err;
	int rc; /* of the first failure */
};

static void commit_flush(struct commit *c)
{
	if (c->rc == 0)
		c->rc = catalog_write_at(c->fd, buf_span(&c->pending), c->offset, c->name, c->err);
	c->offset += c->pending.n;
	buf_reset(&c->pending);
}

static void commit_put(struct commit *c, struct span bytes)
{
	if (c->pending.n + bytes.n > WRITE_BYTES)
		commit_flush(c);
	if (bytes.n <= WRITE_BYTES) {
		if (bytes.n)
			buf_put(&c->pending, bytes.p, bytes.n);
		return;
	}
	if (c->rc == 0)
		c->rc = catalog_write_at(c->fd, bytes, c->offset, c->name, c->err);
	c->offset += bytes.n;
}

/* Returns the offset of the segment. */
static uint64_t commit_put_segment(
	struct commit *c, const struct catalog_segment *segment, struct span payload)
{
	static const uint8_t zeros[CATALOG_SEGMENT_BYTES];
	uint8_t header[CATALOG_SEGMENT_BYTES];
	uint64_t at = c->offset + c->pending.n;
	uint64_t start = catalog_align(at, CATALOG_SEGMENT_BYTES);

	commit_put(c, (struct span){zeros, (size_t)(start - at)});
	catalog_segment_encode(segment, header);
	commit_put(c, (struct span){header, sizeof(header)});
	commit_put(c, payload);
	return start;
}

static void commit_put_directory(struct commit *c, const struct state *s)
{
	struct catalog_segment segment = {.type = CATALOG_SEGMENT_DIRECTORY};
	struct catalog_dir dir = {0};
	struct buf payload = {0};
	int rc;

	for (size_t i = 0; i < s->rows.n; i++)
		vec_push(&dir.rows, s->rows.v[i].row);
	for (size_t i = 0; i < s->facts.n; i++)
		vec_push(&dir.facts, s->facts.v[i]);
	rc = catalog_dir_encode(&dir, &payload, c->err);
	if (rc < 0 && c->rc == 0)
		c->rc = rc;
	segment.bytes = payload.n;
	segment.crc = crc32c(0, payload.p, payload.n);
	c->root.dir_bytes = payload.n;
	c->root.dir_offset = commit_put_segment(c, &segment, buf_span(&payload));
	commit_flush(c);
	c->root.committed_bytes = c->offset;
	catalog_dir_release(&dir);
	buf_release(&payload);
}

static int commit_root(struct commit *c)
{
	uint8_t block[CATALOG_ROOT_BYTES];
	int rc;

	catalog_root_encode(&c->root, block);
	rc = catalog_write_at(c->fd, (struct span){block, sizeof(block)},
		(uint64_t)c->slot * CATALOG_BLOCK_BYTES, c->name, c->err);
	return rc < 0 ? rc : catalog_sync(c->fd, c->name, c->err);
}

/* Writes what is fresh, the directory and the root. `c` says where. */
static int commit_state(struct commit *c, struct state *s)
{
	struct stat before;
	int rc = 0;

	if (fstat(c->fd, &before) < 0)
		return err_sys(c->err, errno, "'%s': cannot stat", c->name);
	for (size_t i = 0; i < s->rows.n; i++) {
		struct catalog_row *row = &s->rows.v[i].row;
		struct catalog_segment segment = {.type = CATALOG_SEGMENT_IMAGE,
			.bytes = row->entry.bytes,
			.id = row->id,
			.crc = row->crc};

		if (s->rows.v[i].fresh.p)
			row->offset = commit_put_segment(
				c, &segment, (struct span){s->rows.v[i].fresh.p, row->entry.bytes});
	}
	commit_put_directory(c, s);
	rc = c->rc ? c->rc : catalog_sync(c->fd, c->name, c->err);
	buf_release(&c->pending);
	if (rc == 0)
		return commit_root(c);
	/* A full disk should not stay full. No root refers to what is behind the old end, so no
	 * reader misses it; where this fails the next writer overwrites it. */
	if (ftruncate(c->fd, before.st_size) < 0)
		return rc;
	return rc;
}

/* --- whole files --- */

/* Not an error: another writer created the file first. */
#define FILE_IS_THERE 1

struct new_file {
	const char *path;
	uint64_t generation;
	int like;	  /* fd of the file that it takes the place of, locked; -1 = none */
	bool must_be_new; /* else whatever is at the path is replaced */
};

static int take_owner_and_mode(int fd, const struct new_file *f, struct err *err)
{
	struct stat st;

	if (f->like < 0)
		return 0;
	if (fstat(f->like, &st) < 0 || (geteuid() == 0 && fchown(fd, st.st_uid, st.st_gid) < 0) ||
		fchmod(fd, st.st_mode & 07777) < 0)
		return err_sys(err, errno, "'%s': cannot keep its owner and mode", f->path);
	return 0;
}

static int write_file(const struct new_file *f, struct state *s, struct err *err)
{
	struct commit c = {.name = f->path,
		.root.generation = f->generation,
		.offset = CATALOG_BODY_OFFSET,
		.err = err};
	FD_AUTO fd = -1;
	struct stat st;
	int rc = catalog_lock_new(f->path, &fd, err);

	if (rc < 0)
		return rc;
	/* Whoever created the file while we waited held this lock. */
	if (f->must_be_new && stat(f->path, &st) == 0) {
		catalog_discard_new(f->path);
		return FILE_IS_THERE;
	}
	c.fd = fd;
	rc = take_owner_and_mode(fd, f, err);
	if (rc == 0)
		rc = commit_state(&c, s);
	if (rc == 0)
		rc = catalog_replace(f->path, err);
	if (rc < 0)
		catalog_discard_new(f->path);
	return rc;
}

/* Takes over `value`. */
static void set_system_fact(struct state *s, struct intern *texts, const char *key, char *value)
{
	state_set_fact(s,
		(struct catalog_fact_pair){key, intern_get(texts, intern_text(texts, value))});
	free(value);
}

/* What is to be known of every file: who made it and on which system. */
static void set_system_facts(struct state *s, struct intern *texts)
{
	struct utsname u;

	state_set_fact(s, (struct catalog_fact_pair){"made_by", "weir " WEIR_VERSION});
	if (uname(&u) == 0)
		set_system_fact(s, texts, "made_on",
			mem_printf("%s %s %s", u.sysname, u.release, u.machine));
	set_system_fact(s, texts, "cpus", mem_printf("%ld", sysconf(_SC_NPROCESSORS_CONF)));
	set_system_fact(s, texts, "page_bytes", mem_printf("%ld", sysconf(_SC_PAGESIZE)));
}

/* A first commit in a file of its own. */
static int create_file(const struct new_file *f, const struct catalog_item *items,
	const struct catalog_change *change, struct err *err)
{
	struct intern texts = {0};
	struct state s = {0};
	int rc;

	set_system_facts(&s, &texts);
	rc = state_change(&s, NULL, items, change, f->path, err);
	if (rc == 0)
		rc = write_file(f, &s, err);
	state_release(&s);
	intern_release(&texts);
	return rc;
}

/* A further commit in the file that is locked. */
static int append_to_file(int fd, const char *path, const struct catalog_item *items,
	const struct catalog_change *change, struct err *err)
{
	struct commit c = {.fd = fd, .name = path, .err = err};
	struct state s = {0};
	struct catalog *old;
	int rc = catalog_open_fd(&old, fd, path, err);

	if (rc < 0)
		return rc;
	if (change->has_base && old->root.generation != change->base_generation) {
		catalog_close(old);
		return err_set(err, ERR_CHANGED, "'%s': was changed by another writer", path);
	}
	state_take(&s, old);
	rc = state_change(&s, old, items, change, path, err);
	if (rc == 0 && s.is_changed && old->newest == UINT64_MAX)
		rc = err_set(err, ERR_LIMIT, "'%s': has no generation left", path);
	if (rc == 0 && s.is_changed) {
		c.root.generation = old->newest + 1;
		c.slot = !old->slot;
		c.offset = catalog_align(old->end, CATALOG_BLOCK_BYTES);
		rc = commit_state(&c, &s);
	}
	state_release(&s);
	catalog_close(old);
	return rc;
}

/* --- the changes offered --- */

/* The file itself when `path` is a link, so that a replacement does not replace the link. */
static char *follow_links(const char *path)
{
	char *real = realpath(path, NULL);

	return real ? real : output_follow(path);
}

static int apply_to(const char *path, const struct catalog_item *items,
	const struct catalog_change *change, struct err *err)
{
	struct new_file f = {.path = path, .generation = 1, .like = -1, .must_be_new = true};
	FD_AUTO fd = -1;
	struct stat st;
	int rc;

	for (int i = 0; (rc = catalog_lock(path, &fd, err)) == ERR_NOT_FOUND; i++) {
		rc = create_file(&f, items, change, err);
		if (rc != FILE_IS_THERE)
			return rc;
		if (i == CREATE_TRIES_MAX)
			return err_set(err, ERR_FAILED,
				"'%s': appears and vanishes again and again", path);
	}
	if (rc < 0)
		return rc;
	if (fstat(fd, &st) == 0 && st.st_size > 0)
		return append_to_file(fd, path, items, change, err);
	f.like = fd; /* as mktemp makes it: empty */
	f.must_be_new = false;
	return create_file(&f, items, change, err);
}

/* What a change is done by: the file at the path, the images, ... */
typedef int change_function(const char *path, const struct catalog_item *items,
	const struct catalog_change *change, struct err *err);

/* With the file itself, in a folder that is there. */
static int change_file(change_function *to_file, const char *path,
	const struct catalog_item *items, const struct catalog_change *change, struct err *err)
{
	char *real = follow_links(path);
	int rc = catalog_make_folder(real, err);

	if (rc == 0)
		rc = to_file(real, items, change, err);
	free(real);
	return rc;
}

int catalog_apply_items(const char *path, const struct catalog_item *items,
	const struct catalog_change *change, struct err *err)
{
	return change_file(apply_to, path, items, change, err);
}

static int write_new_at(const char *path, const struct catalog_item *items,
	const struct catalog_change *change, struct err *err)
{
	struct new_file f = {.path = path, .generation = 1};
	FD_AUTO fd = -1;
	int rc = catalog_lock(path, &fd, err);

	if (rc < 0 && rc != ERR_NOT_FOUND)
		return rc;
	rc = output_check(path, err);
	if (rc < 0)
		return rc;
	f.like = fd;
	return create_file(&f, items, change, err);
}

int catalog_write_new_items(const char *path, const struct catalog_item *items,
	const struct catalog_change *change, struct err *err)
{
	return change_file(write_new_at, path, items, change, err);
}

static int compact_locked(int fd, const char *path, struct err *err)
{
	struct new_file f = {.path = path, .like = fd};
	struct state s = {0};
	struct catalog *old;
	int rc = catalog_open_fd(&old, fd, path, err);

	if (rc < 0)
		return rc;
	state_take(&s, old);
	for (size_t i = 0; i < s.rows.n && rc == 0; i++)
		rc = catalog_image_bytes(old, i, &s.rows.v[i].fresh, err);
	if (rc == 0 && old->newest == UINT64_MAX)
		rc = err_set(err, ERR_LIMIT, "'%s': has no generation left", path);
	f.generation = old->newest + 1;
	if (rc == 0 && (catalog_stats(old).dead_bytes || old->notes))
		rc = write_file(&f, &s, err);
	state_release(&s);
	catalog_close(old);
	return rc;
}

int catalog_compact(const char *path, struct err *err)
{
	char *real = follow_links(path);
	FD_AUTO fd = -1;
	int rc = catalog_lock(real, &fd, err);

	if (rc == 0)
		rc = compact_locked(fd, real, err);
	free(real);
	return rc;
}

/* --- images --- */

/* Copies what the directory says of an image into `texts`. */
static int describe_image(
	struct catalog_item *item, struct span bytes, struct intern *texts, struct err *err)
{
	struct catalog_image *image;
	struct span *build_id = &item->entry.build_id;
	int rc = catalog_image_open(&image, bytes, err);

	if (rc < 0)
		return err_prefix(err, "the image to be added");
	*item = (struct catalog_item){.bytes = bytes, .entry = catalog_image_entry(image)};
	item->entry.path = intern_get(texts, intern_text(texts, item->entry.path));
	if (build_id->n)
		build_id->p = (const uint8_t *)intern_get(
			texts, intern_bytes(texts, build_id->p, build_id->n));
	catalog_image_close(image);
	return 0;
}

static int describe_and(change_function *then, const char *path,
	const struct catalog_change *change, struct err *err)
{
	struct catalog_item *items = mem_calloc(change->n_add + 1, sizeof(*items));
	struct intern texts = {0};
	int rc = 0;

	for (size_t i = 0; i < change->n_add && rc == 0; i++)
		rc = describe_image(&items[i], change->add[i], &texts, err);
	if (rc == 0)
		rc = then(path, items, change, err);
	intern_release(&texts);
	free(items);
	return rc;
}

int catalog_apply(const char *path, const struct catalog_change *change, struct err *err)
{
	return describe_and(catalog_apply_items, path, change, err);
}

int catalog_write_new(const char *path, const struct catalog_change *change, struct err *err)
{
	return describe_and(catalog_write_new_items, path, change, err);
}
