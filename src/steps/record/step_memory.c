/* SPDX-License-Identifier: MIT */
#include "steps/record/step_memory.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"

#define PAGE_BYTES UINT64_C(4096) /* the least that is mapped */

/* What a region is; compared byte by byte. */
struct step_memory_kind {
	uint32_t kind;	/* enum step_place_kind */
	uint32_t image; /* number; of STEP_PLACE_IMAGE */
	uint32_t name;	/* string of the trace; of the others */
};

struct step_memory *step_memory_new(void)
{
	struct step_memory *m = mem_zalloc(sizeof(*m));

	m->regions = addrspace_new();
	m->told = addrspace_new();
	m->unknown_page = UINT64_MAX;
	return m;
}

void step_memory_free(struct step_memory *m)
{
	if (!m)
		return;
	addrspace_free(m->regions);
	addrspace_free(m->told);
	intern_release(&m->kinds);
	vec_release(&m->changes);
	free(m);
}

static struct step_memory_kind kind_of(const struct step_memory *m, uint32_t number)
{
	struct step_memory_kind kind;

	memcpy(&kind, intern_get(&m->kinds, number), sizeof(kind));
	return kind;
}

/* --- regions --------------------------------------------------------------------------------- */

static bool is_memory(const struct step_region *r)
{
	return !r->path[0] || r->path[0] == '[';
}

/* Memory that the loader may have made for an image: nobody else has given it a purpose. A heap
 * that follows the last variables without a gap is one mapping with them. */
static bool is_spare(const struct step_region *r)
{
	return !r->path[0] || !strcmp(r->path, "[heap]");
}

static void add_region(struct step_memory *m, struct addrspace **to,
	const struct step_space_env *env, const struct step_region *r)
{
	struct step_memory_kind kind = {.kind = is_memory(r) ? STEP_PLACE_MEMORY : STEP_PLACE_FILE};
	struct mapping mapping = {.start = r->start, .end = r->end};

	kind.name = trace_writer_string(env->w, r->path[0] ? r->path : "[anonymous]");
	mapping.image = intern_bytes(&m->kinds, &kind, sizeof(kind));
	mapping.bias = is_memory(r) ? 0 : r->start - r->offset;
	addrspace_map(to, &mapping);
}

/* Regions as they are, and the image that is looked at. */
struct placing {
	struct step_memory *m;
	struct addrspace **to;
	struct images *images;
	const struct step_region *regions;
	size_t n;
	const struct mapping *module;
};

static uint64_t page_down(uint64_t addr)
{
	return addr & ~(PAGE_BYTES - 1);
}

static uint64_t page_up(uint64_t addr)
{
	return page_down(addr + PAGE_BYTES - 1);
}

/* [start, end) of the region is the image's. */
static void place(
	const struct placing *p, const struct step_region *r, uint64_t start, uint64_t end)
{
	struct step_memory_kind kind = {.kind = STEP_PLACE_IMAGE, .image = p->module->image};
	struct mapping mapping = {.start = r->start > start ? r->start : start,
		.end = r->end < end ? r->end : end,
		.bias = p->module->bias};

	if (mapping.start >= mapping.end)
		return;
	mapping.image = intern_bytes(&p->m->kinds, &kind, sizeof(kind));
	addrspace_map(p->to, &mapping);
}

/*
 * A segment that is mapped from the file, and behind that the memory for what the file does not
 * hold. The latter looks like any other: it is the image's when the segment's beginning is.
 */
static void place_segment(const struct placing *p, const struct elf_segment *s)
{
	uint64_t start = s->addr.v + p->module->bias, end = start + s->mem_size;
	uint64_t file_end = start + s->file_size, from = start - s->offset.v;
	bool has_file = !s->file_size;

	if (end < start || file_end > end)
		return;
	for (size_t i = SEARCH(0, p->n, k, p->regions[k].end <= page_down(start));
		i < p->n && p->regions[i].start < page_up(end); i++) {
		const struct step_region *r = &p->regions[i];

		if (!is_memory(r) && r->start - r->offset == from &&
			images_has_path(p->images, p->module->image, r->path)) {
			has_file |= r->start <= start && start < r->end;
			place(p, r, page_down(start), page_up(file_end));
		} else if (has_file && is_spare(r)) {
			place(p, r, page_up(file_end), page_up(end));
		}
	}
}

static void place_images(struct placing *p, const struct addrspace *modules)
{
	const struct mapping *last = NULL;

	for (size_t i = 0; i < addrspace_n(modules); i++) {
		const struct image *image;

		p->module = addrspace_get(modules, i);
		if (last && last->image == p->module->image && last->bias == p->module->bias)
			continue;
		last = p->module;
		image = images_get(p->images, p->module->image);
		for (size_t k = 0; image->has_elf && k < image->elf.n_segments; k++)
			if (image->elf.segments[k].type == PT_LOAD)
				place_segment(p, &image->elf.segments[k]);
	}
}

/* --- what has changed ------------------------------------------------------------------------ */

/* The mapping at `addr`, or NULL; *until is where that answer ends at the latest. */
static const struct mapping *look(
	const struct addrspace *a, size_t *i, uint64_t addr, uint64_t *until)
{
	const struct mapping *m;

	while (*i < addrspace_n(a) && addrspace_get(a, *i)->end <= addr)
		++*i;
	if (*i == addrspace_n(a))
		return NULL;
	m = addrspace_get(a, *i);
	if (m->start > addr) {
		*until = m->start < *until ? m->start : *until;
		return NULL;
	}
	*until = m->end < *until ? m->end : *until;
	return m;
}

static void note_change(struct step_memory *m, const struct mapping *was, const struct mapping *is,
	uint64_t start, uint64_t end)
{
	struct step_memory_change *last = m->changes.n ? &m->changes.v[m->changes.n - 1] : NULL;
	struct step_memory_change change = {.is_gone = !is, .was_there = was != NULL};

	if (is)
		change.now = *is;
	change.now.start = start;
	change.now.end = end;
	if (last && last->now.end == start && last->is_gone == change.is_gone &&
		last->now.image == change.now.image && last->now.bias == change.now.bias) {
		last->now.end = end;
		last->was_there |= change.was_there;
		return;
	}
	vec_push(&m->changes, change);
}

static void note_changes(struct step_memory *m, const struct addrspace *now)
{
	size_t i_was = 0, i_is = 0;

	for (uint64_t at = 0, until; at < UINT64_MAX; at = until) {
		const struct mapping *was, *is;

		until = UINT64_MAX;
		was = look(m->regions, &i_was, at, &until);
		is = look(now, &i_is, at, &until);
		if (was && is ? was->image != is->image || was->bias != is->bias : was || is)
			note_change(m, was, is, at, until);
	}
}

void step_memory_compare(struct step_memory *m, const struct step_space_env *env,
	const struct process *process, const struct step_region *regions, size_t n)
{
	struct addrspace *now = addrspace_new();
	struct placing p = {.m = m, .to = &now, .images = env->images, .regions = regions, .n = n};

	for (size_t i = 0; i < n; i++)
		add_region(m, &now, env, &regions[i]);
	place_images(&p, process->space);
	note_changes(m, now);
	addrspace_free(m->regions);
	m->regions = now;
	m->unknown_page = UINT64_MAX;
}

bool step_memory_has_losses(const struct step_memory *m)
{
	for (size_t i = 0; i < m->changes.n; i++)
		if (m->changes.v[i].was_there)
			return true;
	return false;
}

/* --- records --------------------------------------------------------------------------------- */

static void write_place(const struct step_space_env *env, const struct step_place *p, uint64_t time)
{
	struct buf b = {0};

	step_place_encode(&b, p);
	trace_writer_record(
		env->w, env->code_stream, time, RECORD_MAJOR_STEP, RECORD_STEP_PLACE, b.p, b.n);
	buf_release(&b);
}

void step_memory_tell(
	struct step_memory *m, const struct step_space_env *env, uint32_t space, uint64_t time)
{
	for (size_t i = 0; i < m->changes.n; i++) {
		const struct step_memory_change *c = &m->changes.v[i];
		struct step_place p = {
			.space = space, .start = c->now.start, .bytes = c->now.end - c->now.start};

		if (c->is_gone) {
			addrspace_unmap(&m->told, c->now.start, c->now.end);
		} else {
			struct step_memory_kind kind = kind_of(m, c->now.image);

			addrspace_map(&m->told, &c->now);
			p.kind = (enum step_place_kind)kind.kind;
			p.name = kind.name;
			if (p.kind == STEP_PLACE_IMAGE)
				p.image = images_trace_id(env->images, kind.image, env->w);
			if (p.kind != STEP_PLACE_MEMORY)
				p.at = c->now.start - c->now.bias;
		}
		write_place(env, &p, time);
	}
	m->changes.n = 0;
}

bool step_memory_access(struct step_memory *m, const struct step_space_env *env,
	const struct step_space *space, uint64_t addr, uint64_t time, step_memory_symbols *symbols,
	void *ctx)
{
	const struct mapping *region = addrspace_find(m->told, (struct vaddr){addr});
	struct step_place p = {.space = space->number, .kind = STEP_PLACE_VARIABLE};
	struct mapping variable = {.image = STEP_MEMORY_VARIABLE};
	struct step_memory_kind kind;
	const struct symtab *table;
	const struct symbol *s;

	if (!region || region->image == STEP_MEMORY_VARIABLE)
		return region;
	kind = kind_of(m, region->image);
	table = kind.kind == STEP_PLACE_IMAGE ? symbols(ctx, kind.image) : NULL;
	s = table ? symtab_find_stretch(table, addr - region->bias, &variable.start, &variable.end)
		  : NULL;
	if (!s)
		return true;
	variable.bias = region->bias;
	variable.start += region->bias;
	variable.end += region->bias;
	/* No further than the region is known to be the image's. */
	variable.start = variable.start > region->start ? variable.start : region->start;
	variable.end = variable.end < region->end ? variable.end : region->end;
	p.start = variable.start;
	p.bytes = variable.end - variable.start;
	p.image = images_trace_id(env->images, kind.image, env->w);
	p.at = variable.start - region->bias - s->start;
	p.name = trace_writer_string(env->w, s->name);
	addrspace_map(&m->told, &variable);
	write_place(env, &p, time);
	return true;
}
