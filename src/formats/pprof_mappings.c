/* SPDX-License-Identifier: MIT */
#include "formats/pprof_mappings.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"

#define PAGE_BYTES  UINT64_C(4096)
#define SHIFT_BYTES (UINT64_C(1) << 32)

void pprof_mappings_init(struct pprof_mappings *m, const struct trace_reader *r)
{
	*m = (struct pprof_mappings){
		.reader = r, .place_of = mem_calloc(trace_reader_n_images(r), sizeof(uint32_t))};
}

void pprof_mappings_release(struct pprof_mappings *m)
{
	free(m->place_of);
	vec_release(&m->v);
}

static struct pprof_mapping *find(const struct pprof_mappings *m, uint32_t image)
{
	return m->place_of[image] ? &m->v.v[m->place_of[image] - 1] : NULL;
}

const struct pprof_mapping *pprof_mapping_find(const struct pprof_mappings *m, uint32_t image)
{
	return find(m, image);
}

void pprof_mappings_add(struct pprof_mappings *m, uint32_t image, uint64_t addr)
{
	uint64_t low = addr & ~(PAGE_BYTES - 1);
	uint64_t high = low > UINT64_MAX - PAGE_BYTES ? UINT64_MAX : low + PAGE_BYTES;
	struct pprof_mapping *mapping = find(m, image);

	if (!image)
		return;
	if (!mapping) {
		vec_push(&m->v, ((struct pprof_mapping){.image = image, .low = low, .high = high}));
		m->place_of[image] = (uint32_t)m->v.n;
		return;
	}
	mapping->low = low < mapping->low ? low : mapping->low;
	mapping->high = high > mapping->high ? high : mapping->high;
}

void pprof_mappings_begin(struct pprof_mappings *m, uint32_t image, uint64_t n)
{
	struct pprof_mapping *mapping = find(m, image);

	if (mapping)
		mapping->n_begun += n;
}

bool pprof_is_program(const struct trace_reader *r, uint32_t image)
{
	const struct trace_image *i = trace_reader_image(r, image);

	return image && i->kind == IMAGE_KIND_ELF &&
	       !strstr(path_base_name(trace_reader_string(r, i->path)), ".so");
}

/* The place of the program in `v`; 0 when there is none to be seen: then the first file is, in which an
 * address means something to others. */
static size_t find_program(const struct pprof_mappings *m)
{
	size_t best = SIZE_MAX;

	for (size_t i = 0; i < m->v.n; i++) {
		const struct trace_image *image = trace_reader_image(m->reader, m->v.v[i].image);

		if (image->kind == IMAGE_KIND_ELF &&
			(best == SIZE_MAX || m->v.v[i].n_begun > m->v.v[best].n_begun))
			best = i;
	}
	return best == SIZE_MAX ? 0 : best;
}

/* Readers find addresses in the file by it. */
static uint64_t file_offset(const struct pprof_mappings *m, const struct pprof_mapping *mapping)
{
	const struct trace_image_facts *facts = trace_reader_image_facts(m->reader, mapping->image);

	for (uint32_t i = 0; facts && i < facts->n_segments; i++) {
		const struct trace_segment *s = &facts->segments[i];
		uint64_t end = mapping->low + PAGE_BYTES;

		/* The first page may begin before the segment does, which begins in it. */
		if (s->flags & 1 && s->addr < end && mapping->low < s->addr + s->mem_bytes)
			return mapping->low - (s->addr - s->offset);
	}
	return 0;
}

static bool overlaps(const struct pprof_mapping *a, const struct pprof_mapping *b)
{
	return a->low + a->shift < b->high + b->shift && b->low + b->shift < a->high + a->shift;
}

/* Moves mapping i off those before it, each time beyond the one that is in its way. Addresses that no
 * process has (a damaged trace) may not find a place. */
static void find_place(struct pprof_mappings *m, size_t i)
{
	struct pprof_mapping *mapping = &m->v.v[i];
	size_t n_moves = 0;

	for (size_t k = 0; k < i && n_moves <= i; k++) {
		const struct pprof_mapping *other = &m->v.v[k];
		uint64_t way = other->high + other->shift - mapping->low - mapping->shift;

		if (!overlaps(mapping, other))
			continue;
		mapping->shift += (way + SHIFT_BYTES - 1) & ~(SHIFT_BYTES - 1);
		n_moves++;
		k = SIZE_MAX; /* and again from the first one on */
	}
}

void pprof_mappings_settle(struct pprof_mappings *m)
{
	struct pprof_mapping program;
	size_t at = m->v.n ? find_program(m) : 0;

	if (!m->v.n)
		return;
	program = m->v.v[at];
	memmove(&m->v.v[1], &m->v.v[0], at * sizeof(m->v.v[0]));
	m->v.v[0] = program;
	for (size_t i = 0; i < m->v.n; i++) {
		struct pprof_mapping *mapping = &m->v.v[i];

		mapping->id = (uint32_t)i + 1;
		mapping->offset = file_offset(m, mapping);
		m->place_of[mapping->image] = mapping->id;
		find_place(m, i);
	}
}
