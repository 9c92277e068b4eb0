/* SPDX-License-Identifier: MIT */
/* weir-test: tsan */
/* The debug information of this test itself, as the compiler of the day makes it. */
#include <elf.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/map.h"
#include "check.h"
#include "dwarf/source_map.h"

extern const char __executable_start; /* put there by the linker */

#define N_THREADS 4

/* The test looks for this function, and for the one that is inlined into it. */
enum { INLINED_LINE = __LINE__ + 3 };
static inline __attribute__((always_inline)) int inlined_one(volatile int *x)
{
	return *x * *x + 3; /* INLINED_LINE */
}

int marked_function(volatile int *x);
enum { CALL_LINE = __LINE__ + 3 };
__attribute__((noinline)) int marked_function(volatile int *x)
{
	return inlined_one(x); /* CALL_LINE */
}

struct image {
	struct file_map map;
	struct elf_file elf;
	struct dwarf_debug *debug;
};

static bool image_open(struct image *i)
{
	struct err err;

	*i = (struct image){0};
	if (file_map_open(&i->map, "/proc/self/exe", &err) < 0 ||
		elf_file_init(&i->elf, i->map.bytes, &err) < 0 ||
		dwarf_debug_open(&i->debug, &i->elf, "/proc/self/exe", &err) < 0) {
		printf("%s\n", err.text);
		return false;
	}
	return true;
}

static void image_close(struct image *i)
{
	dwarf_debug_close(i->debug);
	elf_file_release(&i->elf);
	file_map_release(&i->map);
}

static bool ends_with(struct dwarf_text text, const char *end)
{
	size_t n = strlen(end);

	return text.n >= n && !memcmp(text.p + text.n - n, end, n);
}

/* Some row of the function is in the inlined one, with the right lines at both levels. */
static bool has_inlined_row(const struct dwarf_unit_map *m, const struct dwarf_function *f)
{
	for (size_t i = 0; i < m->rows.n; i++) {
		const struct dwarf_row *r = &m->rows.v[i];
		const struct dwarf_site *s = &m->sites.v[r->site];

		if (r->addr >= f->start && r->addr < f->end && r->line == INLINED_LINE && r->site &&
			ends_with(m->files.v[r->file], "dwarf_self_test.c") &&
			ends_with(m->names.v[s->name], "inlined_one") && s->parent == 0 &&
			s->call_line == CALL_LINE &&
			ends_with(m->files.v[s->call_file], "dwarf_self_test.c"))
			return true;
	}
	return false;
}

static void finds_itself(void)
{
	uint64_t base, addr;
	struct image image;
	size_t found = 0, n;
	bool *wanted;

	CHECK(image_open(&image));
	base = image.elf.type == ET_DYN ? (uint64_t)(uintptr_t)&__executable_start : 0;
	addr = (uint64_t)(uintptr_t)marked_function - base;
	n = dwarf_debug_n_units(image.debug);
	wanted = malloc(n);
	dwarf_debug_units_at(image.debug, &addr, 1, wanted);
	for (size_t i = 0; i < n; i++) {
		struct dwarf_unit_map m = {0};

		CHECK_EQ(dwarf_unit_map_init(&m, image.debug, i, NULL), 0);
		for (size_t k = 0; k < m.functions.n; k++) {
			const struct dwarf_function *f = &m.functions.v[k];

			if (f->start != addr)
				continue;
			found++;
			CHECK(wanted[i] && f->is_entry && !f->is_plain_name);
			CHECK(ends_with(m.names.v[f->name], "marked_function"));
			CHECK(has_inlined_row(&m, f));
		}
		dwarf_unit_map_release(&m);
	}
	CHECK_EQ(found, 1);
	CHECK_STR(dwarf_debug_notes(image.debug), "");
	free(wanted);
	image_close(&image);
}

static uint64_t hash_text(uint64_t hash, struct dwarf_text text)
{
	return map_hash_mix(hash, map_hash_bytes(text.p, text.n));
}

static uint64_t hash_unit(struct dwarf_debug *d, size_t unit_i)
{
	struct dwarf_unit_map m = {0};
	uint64_t hash = 0;

	if (dwarf_unit_map_init(&m, d, unit_i, NULL) < 0)
		return 1;
	for (size_t i = 0; i < m.functions.n; i++)
		hash = hash_text(map_hash_mix(hash, m.functions.v[i].start),
			m.names.v[m.functions.v[i].name]);
	for (size_t i = 0; i < m.sites.n; i++)
		hash = hash_text(
			map_hash_mix(hash, m.sites.v[i].parent), m.names.v[m.sites.v[i].name]);
	for (size_t i = 0; i < m.rows.n; i++)
		hash = hash_text(map_hash_mix(map_hash_mix(hash, m.rows.v[i].addr),
					 (uint64_t)m.rows.v[i].line << 32 | m.rows.v[i].site),
			m.files.v[m.rows.v[i].file]);
	dwarf_unit_map_release(&m);
	return hash;
}

struct reader {
	struct dwarf_debug *debug;
	uint64_t *hashes;
	size_t first; /* each thread begins with another unit */
};

static void *read_all(void *ctx)
{
	struct reader *r = ctx;
	size_t n = dwarf_debug_n_units(r->debug);

	for (size_t i = 0; i < n; i++)
		r->hashes[(r->first + i) % n] = hash_unit(r->debug, (r->first + i) % n);
	return NULL;
}

static void threads_agree(void)
{
	struct reader readers[N_THREADS + 1];
	pthread_t threads[N_THREADS];
	struct image image;
	size_t n;

	CHECK(image_open(&image));
	n = dwarf_debug_n_units(image.debug);
	CHECK(n > 0);
	for (size_t i = 0; i <= N_THREADS; i++)
		readers[i] = (struct reader){image.debug, calloc(n, sizeof(uint64_t)), i * n / 4};
	for (int i = 0; i < N_THREADS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, read_all, &readers[i]), 0);
	for (int i = 0; i < N_THREADS; i++)
		pthread_join(threads[i], NULL);
	read_all(&readers[N_THREADS]);
	for (int i = 0; i <= N_THREADS; i++)
		CHECK(!memcmp(readers[i].hashes, readers[0].hashes, n * sizeof(uint64_t)));
	for (int i = 0; i <= N_THREADS; i++)
		free(readers[i].hashes);
	image_close(&image);
}

static const struct test tests[] = {
	{"a function of this test is found with what is inlined into it", finds_itself},
	{"several threads read the same from one image", threads_agree},
};

int main(void)
{
	volatile int x = 2;

	return marked_function(&x) == 7 ? RUN_TESTS(tests) : 1;
}
