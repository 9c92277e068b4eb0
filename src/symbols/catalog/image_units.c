/* SPDX-License-Identifier: MIT */
/*
 * Units are independent of each other until they are added to the image, which must happen in order
 * so that the bytes do not depend on the number of threads. Readers take the next unit that nobody
 * has, up to a window ahead of the one that is added next, so that finished units cannot pile up.
 */
#include "symbols/catalog/image_make.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "dwarf/source_map.h"

#define UNITS_AHEAD	 64
#define UNIT_THREADS_MAX 64
#define UNIT_NOTES_MAX	 8 /* unreadable units that are noted one by one */
/* What all units of a file together may add to an image, for each byte of them: lists and texts can
 * be named again and again by units of a few bytes. Real ones add 1 byte of texts and 0.3 items. */
#define TEXTS_TIMES   16
#define TEXTS_ATLEAST (16u << 20)
#define ITEMS_TIMES   2
#define ITEMS_ATLEAST (512u << 10)

enum unit_state { UNIT_WAITING, UNIT_TAKEN, UNIT_READ, UNIT_FAILED };

struct unit {
	size_t number; /* in the debug information */
	enum unit_state state;
	struct dwarf_unit_map map;
	char *why; /* it cannot be read */
};

struct reading {
	struct dwarf_debug *debug;
	struct unit *units;
	size_t n;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	size_t next;  /* the first unit that nobody has taken */
	size_t added; /* units before this one have been added */
	/* What the units so far had and what they made. */
	uint64_t n_bytes, n_text_bytes, n_items;
};

/* The next unit to read, or NULL when none may be taken now. Called with the lock held. */
static struct unit *take(struct reading *r)
{
	struct unit *u;

	if (r->next >= r->n || r->next >= r->added + UNITS_AHEAD)
		return NULL;
	u = &r->units[r->next++];
	u->state = UNIT_TAKEN;
	return u;
}

/* Called with the lock held; it is free while the unit is read. */
static void read_unit(struct reading *r, struct unit *u)
{
	struct err err;
	int rc;

	pthread_mutex_unlock(&r->lock);
	rc = dwarf_unit_map_init(&u->map, r->debug, u->number, &err);
	pthread_mutex_lock(&r->lock);
	if (rc < 0)
		u->why = mem_strdup(err.text);
	u->state = rc < 0 ? UNIT_FAILED : UNIT_READ;
	pthread_cond_broadcast(&r->changed);
}

static void *run_reader(void *ctx)
{
	struct reading *r = ctx;

	pthread_mutex_lock(&r->lock);
	while (r->next < r->n) {
		struct unit *u = take(r);

		if (u)
			read_unit(r, u);
		else
			pthread_cond_wait(&r->changed, &r->lock);
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

/* Waits for a unit, reading others meanwhile. */
static void finish_unit(struct reading *r, struct unit *u)
{
	pthread_mutex_lock(&r->lock);
	while (u->state < UNIT_READ) {
		struct unit *mine = take(r);

		if (mine)
			read_unit(r, mine);
		else
			pthread_cond_wait(&r->changed, &r->lock);
	}
	pthread_mutex_unlock(&r->lock);
}

static void unit_release(struct unit *u)
{
	dwarf_unit_map_release(&u->map);
	free(u->why);
}

static void add_unit(struct image_builder *b, struct unit *u, const char *path, size_t *n_failed)
{
	if (u->state == UNIT_READ)
		image_builder_unit(b, &u->map);
	else if ((*n_failed)++ < UNIT_NOTES_MAX)
		image_builder_note(b, "'%s': %s", path, u->why);
	unit_release(u);
}

/* Counts what a unit adds. False when that is too much for its bytes and those of all before. */
static bool can_afford(struct reading *r, const struct dwarf_unit_map *map)
{
	r->n_bytes += map->n_bytes;
	r->n_items += map->rows.n + map->functions.n + map->sites.n;
	for (size_t i = 0; i < map->names.n; i++)
		r->n_text_bytes += map->names.v[i].n;
	for (size_t i = 0; i < map->files.n; i++)
		r->n_text_bytes += map->files.v[i].n;
	return r->n_text_bytes <= TEXTS_ATLEAST + TEXTS_TIMES * r->n_bytes &&
	       r->n_items <= ITEMS_ATLEAST + ITEMS_TIMES * r->n_bytes;
}

/* No further unit is taken; those that are being read are finished in vain. */
static void stop(struct reading *r, struct image_builder *b, const char *path, size_t first)
{
	image_builder_note(b,
		"'%s': %zu units of %zu are left out: they repeat names, ranges or lines too often",
		path, r->n - first, r->n);
	pthread_mutex_lock(&r->lock);
	r->next = r->n;
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
}

static void add_all(struct image_builder *b, struct reading *r, const struct image_recipe *recipe,
	const char *path)
{
	size_t n_failed = 0;

	for (size_t i = 0; i < r->n; i++) {
		finish_unit(r, &r->units[i]);
		if (!can_afford(r, &r->units[i].map)) {
			stop(r, b, path, i);
			break;
		}
		add_unit(b, &r->units[i], path, &n_failed);
		pthread_mutex_lock(&r->lock);
		r->added = i + 1;
		pthread_cond_broadcast(&r->changed);
		pthread_mutex_unlock(&r->lock);
		if (recipe->progress)
			recipe->progress(recipe->ctx, i + 1, r->n);
	}
	if (n_failed > UNIT_NOTES_MAX)
		image_builder_note(b, "'%s': %zu further units cannot be read", path,
			n_failed - UNIT_NOTES_MAX);
}

static void read_and_add(struct image_builder *b, struct reading *r,
	const struct image_recipe *recipe, const char *path)
{
	pthread_t threads[UNIT_THREADS_MAX];
	unsigned n_threads = 0, wanted = recipe->n_threads;

	if (wanted > UNIT_THREADS_MAX)
		wanted = UNIT_THREADS_MAX;
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->changed, NULL);
	/* The caller is one of them; a thread that cannot be made is not missed. */
	while (n_threads + 1 < wanted && n_threads + 1 < r->n &&
		!pthread_create(&threads[n_threads], NULL, run_reader, r))
		n_threads++;
	add_all(b, r, recipe, path);
	while (n_threads)
		pthread_join(threads[--n_threads], NULL);
	for (size_t i = r->added; i < r->n; i++)
		unit_release(&r->units[i]);
	pthread_cond_destroy(&r->changed);
	pthread_mutex_destroy(&r->lock);
}

static void choose_units(struct reading *r, const struct image_recipe *recipe)
{
	size_t n = dwarf_debug_n_units(r->debug);
	bool *wanted = mem_calloc(n + 1, sizeof(*wanted));

	if (recipe->addrs)
		dwarf_debug_units_at(r->debug, recipe->addrs, recipe->n_addrs, wanted);
	else
		memset(wanted, true, n);
	r->units = mem_calloc(n + 1, sizeof(*r->units));
	for (size_t i = 0; i < n; i++)
		if (wanted[i])
			r->units[r->n++].number = i;
	free(wanted);
}

void image_units_add(struct image_builder *b, const struct image_recipe *recipe,
	const struct elf_file *elf, const struct catalog_source *source)
{
	bool is_open = recipe->opened.debug && !strcmp(recipe->opened.path, source->path);
	struct reading r = {.debug = is_open ? recipe->opened.debug : NULL};
	struct err err = {0};

	if (!is_open && dwarf_debug_open(&r.debug, elf, source->path, &err) < 0) {
		if (err.code != ERR_NOT_FOUND)
			image_builder_note(b, "'%s': %s", source->path, err.text);
		return;
	}
	choose_units(&r, recipe);
	image_builder_source(b, source);
	read_and_add(b, &r, recipe, source->path);
	image_builder_notes(b, dwarf_debug_notes(r.debug));
	free(r.units);
	if (!is_open)
		dwarf_debug_close(r.debug);
}
