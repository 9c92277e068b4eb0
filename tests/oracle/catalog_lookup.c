/* SPDX-License-Identifier: MIT */
/*
 * Makes the catalog image of one ELF file in memory, from all that belongs to it, for look-ups:
 *
 *   catalog_lookup answer FILE
 *	reads addresses (0x...) from standard input, one a line, and prints JSON: the rows of
 *	`weir symbols resolve --json` without what is the same in all of them
 *
 *   catalog_lookup bench FILE
 *	measures look-ups of random addresses of the executable sections, and prints lines of
 *	NAME, VALUE, UNIT and REMARK with tabs between them
 */
#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "elf/elf_file.h"
#include "symbols/catalog/image_make.h"
#include "symbols/debug_file.h"

#define LEVELS_MAX	256
#define BENCH_ADDRESSES 200000
#define BENCH_ROUNDS	9

struct image_file {
	struct file_map map, debug_map;
	struct elf_file elf, debug_elf;
	char *debug_path; /* NULL = none */
	struct buf bytes;
	struct catalog_image *image;
};

static bool open_elf(struct file_map *map, struct elf_file *elf, const char *path)
{
	struct err err = {0};

	if (file_map_open(map, path, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		return false;
	}
	if (elf_file_init(elf, map->bytes, &err) < 0) {
		fprintf(stderr, "'%s': %s\n", path, err.text);
		file_map_release(map);
		return false;
	}
	return true;
}

static bool make_image(struct image_file *f, const char *path)
{
	struct debug_source debug = {.verdict = "found by build-id or debuglink"};
	struct image_recipe recipe = {.path = path, .n_threads = 1};
	struct image_identity id = {0};
	struct image_builder *b;
	struct err err = {0};
	int rc;

	memset(f, 0, sizeof(*f));
	if (!open_elf(&f->map, &f->elf, path))
		return false;
	recipe.elf = &f->elf;
	if (!elf_file_has_dwarf(&f->elf) && !debug_file_find(&f->elf, path, &f->debug_path, &err) &&
		open_elf(&f->debug_map, &f->debug_elf, f->debug_path)) {
		debug.elf = &f->debug_elf;
		debug.path = f->debug_path;
		recipe.debug = &debug;
	}
	image_identity_init_elf(&id, &f->elf, path, NULL, false);
	b = image_builder_new(&id);
	image_identity_release(&id);
	image_make_add(b, &recipe);
	rc = image_builder_finish(b, 1, &f->bytes, &err);
	image_builder_free(b);
	if (rc < 0 || catalog_image_open(&f->image, buf_span(&f->bytes), &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		return false;
	}
	if (*catalog_image_notes(f->image))
		fprintf(stderr, "%s\n", catalog_image_notes(f->image));
	return true;
}

static void release_image(struct image_file *f)
{
	catalog_image_close(f->image);
	buf_release(&f->bytes);
	if (f->debug_elf.bytes.p) {
		elf_file_release(&f->debug_elf);
		file_map_release(&f->debug_map);
	}
	free(f->debug_path);
	elf_file_release(&f->elf);
	file_map_release(&f->map);
}

static void print_levels(struct json *j, struct catalog_image *image, uint64_t addr)
{
	struct catalog_level levels[LEVELS_MAX];
	struct catalog_range range;
	size_t n = 0;

	if (catalog_image_find_range(image, (struct iaddr){addr}, &range))
		n = catalog_image_levels(image, &range, levels, LEVELS_MAX);
	for (size_t i = 0; i < n; i++) {
		json_object_begin(j, NULL);
		json_string(j, "name", levels[i].name);
		json_string(j, "linkage_name", levels[i].linkage_name);
		json_string(j, "file", levels[i].file);
		json_u64(j, "line", levels[i].line);
		json_bool(j, "inline", levels[i].is_inline);
		json_object_end(j);
	}
}

static void answer(struct catalog_image *image, const char *path)
{
	struct json j;
	char line[64], text[32];

	json_init(&j, stdout);
	json_object_begin(&j, NULL);
	json_u64(&j, "weir", 1);
	json_string(&j, "kind", "resolve");
	json_array_begin(&j, "rows");
	while (fgets(line, sizeof(line), stdin)) {
		uint64_t addr = strtoull(line, NULL, 16);

		snprintf(text, sizeof(text), "0x%" PRIx64, addr);
		json_newline(&j);
		json_object_begin(&j, NULL);
		json_string(&j, "address", text);
		json_string(&j, "image", path);
		json_array_begin(&j, "levels");
		print_levels(&j, image, addr);
		json_array_end(&j);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_object_end(&j);
	putchar('\n');
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Uniform over the bytes of the executable sections. */
static void draw_addresses(const struct elf_file *elf, uint64_t *addrs, size_t n)
{
	uint64_t state = 0x9e3779b97f4a7c15u, total = 0;

	for (size_t i = 0; i < elf->n_sections; i++)
		if (elf->sections[i].flags & SHF_EXECINSTR)
			total += elf->sections[i].size;
	for (size_t k = 0; total && k < n; k++) {
		uint64_t at = next_random(&state) % total;

		for (size_t i = 0; i < elf->n_sections; i++) {
			const struct elf_section *s = &elf->sections[i];

			if (!(s->flags & SHF_EXECINSTR))
				continue;
			if (at < s->size) {
				addrs[k] = s->addr.v + at;
				break;
			}
			at -= s->size;
		}
	}
}

/* What the look-ups found, so that none of them can be optimised away. */
struct looked_up {
	uint64_t n_found, n_levels, n_name_bytes;
};

static uint64_t look_up_ranges(
	struct catalog_image *image, const uint64_t *addrs, size_t n, struct looked_up *found)
{
	uint64_t start = clock_mono_ns();
	struct catalog_range range;

	for (size_t i = 0; i < n; i++)
		if (catalog_image_find_range(image, (struct iaddr){addrs[i]}, &range)) {
			found->n_found++;
			found->n_levels += range.site;
		}
	return clock_mono_ns() - start;
}

static uint64_t look_up_levels(
	struct catalog_image *image, const uint64_t *addrs, size_t n, struct looked_up *found)
{
	uint64_t start = clock_mono_ns();
	struct catalog_level levels[LEVELS_MAX];
	struct catalog_range range;

	for (size_t i = 0; i < n; i++) {
		size_t n_levels;

		if (!catalog_image_find_range(image, (struct iaddr){addrs[i]}, &range))
			continue;
		n_levels = catalog_image_levels(image, &range, levels, LEVELS_MAX);
		found->n_found++;
		found->n_levels += n_levels;
		for (size_t k = 0; k < n_levels; k++)
			found->n_name_bytes +=
				levels[k].name ? (unsigned char)levels[k].name[0] : 0;
	}
	return clock_mono_ns() - start;
}

static void bench(struct image_file *f)
{
	uint64_t *addrs = mem_calloc(BENCH_ADDRESSES, sizeof(*addrs));
	uint64_t best_range = UINT64_MAX, best_levels = UINT64_MAX, first_levels, ns;
	struct looked_up found = {0};

	draw_addresses(&f->elf, addrs, BENCH_ADDRESSES);
	for (int i = 0; i < BENCH_ROUNDS; i++) {
		found = (struct looked_up){0};
		ns = look_up_ranges(f->image, addrs, BENCH_ADDRESSES, &found);
		if (ns < best_range)
			best_range = ns;
	}
	printf("range look-up\t%.1f\tns\t%d random addresses, %.2f %% in a range; %zu rows, %zu sites\n",
		(double)best_range / BENCH_ADDRESSES, BENCH_ADDRESSES,
		100.0 * (double)found.n_found / BENCH_ADDRESSES, catalog_image_n_rows(f->image),
		catalog_image_n_sites(f->image));
	found = (struct looked_up){0};
	first_levels = look_up_levels(f->image, addrs, BENCH_ADDRESSES, &found);
	for (int i = 0; i < BENCH_ROUNDS; i++) {
		ns = look_up_levels(f->image, addrs, BENCH_ADDRESSES, &found);
		if (ns < best_levels)
			best_levels = ns;
	}
	printf("whole chain, names known\t%.3f\tM addresses/s/thread\t%.2f levels each\n",
		BENCH_ADDRESSES * 1e3 / (double)best_levels,
		(double)found.n_levels / (double)found.n_found);
	printf("whole chain, first time\t%.3f\tM addresses/s/thread\tnames decoded and demangled\n",
		BENCH_ADDRESSES * 1e3 / (double)first_levels);
	fprintf(stderr, "%" PRIu64 " bytes\n", found.n_name_bytes);
	free(addrs);
}

int main(int argc, char **argv)
{
	struct image_file f;

	if (argc != 3 || (strcmp(argv[1], "answer") && strcmp(argv[1], "bench"))) {
		fprintf(stderr, "catalog_lookup answer|bench FILE\n");
		return 2;
	}
	if (!make_image(&f, argv[2]))
		return 1;
	if (!strcmp(argv[1], "answer"))
		answer(f.image, argv[2]);
	else
		bench(&f);
	release_image(&f);
	return 0;
}
