/* SPDX-License-Identifier: MIT */
/* The mappings of a space over time, by comparing what /proc says with what it said before. */
#include "steps/record/step_space.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/search.h"
#include "base/sort.h"
#include "process/proc.h"
#include "steps/record/step_memory.h"

/* All mappings of the process, executable or not: what was executable and is only protected
 * otherwise now is still the same code. */
struct maps_now {
	const struct step_space *space;
	VEC(struct step_region) all;
};

static bool is_ordinary_file(const struct proc_mapping *m)
{
	return m->inode && m->path[0] == '/' && strncmp(m->path, "/memfd:", 7) &&
	       strncmp(m->path, "/dev/", 5) && strncmp(m->path, "/SYSV", 5);
}

static void take_part(struct maps_now *now, const struct proc_mapping *m)
{
	struct step_region r = {.start = m->start,
		.end = m->end,
		.offset = m->offset,
		.inode = m->inode,
		.device = m->major << 20 | m->minor,
		.is_file = is_ordinary_file(m) && !m->is_shared,
		.is_executable = m->prot & PROT_EXEC,
		.was_written = m->prot & PROT_WRITE};

	if (!strcmp(m->path, "[vsyscall]") || step_mapping_is_kernels(m->path))
		return;
	r.path = mem_strdup(m->path);
	vec_push(&now->all, r);
}

/* Without what the engine has put there. */
static void take_mapping(void *ctx, const struct proc_mapping *m)
{
	struct maps_now *now = ctx;
	const struct step_space *s = now->space;
	struct proc_mapping part = *m;

	for (size_t i = 0; i < s->engine_own.n && part.start < part.end; i++) {
		const struct step_range *own = &s->engine_own.v[i]; /* by address */

		if (own->end <= part.start || own->start >= part.end)
			continue;
		if (own->start > part.start) {
			struct proc_mapping before = part;

			before.end = own->start;
			take_part(now, &before);
		}
		part.offset += own->end - part.start;
		part.start = own->end;
	}
	if (part.start < part.end)
		take_part(now, &part);
}

/* Whether both are the same memory, seen at `addr`. */
static bool is_same(const struct step_region *a, const struct step_region *b, uint64_t addr)
{
	if (a->inode != b->inode || a->device != b->device || strcmp(a->path, b->path))
		return false;
	return !a->inode || addr - a->start + a->offset == addr - b->start + b->offset;
}

static const struct step_region *find_region(const struct step_region *v, size_t n, uint64_t addr)
{
	size_t low = SEARCH(0, n, mid, addr >= v[mid].end);

	return low < n && addr >= v[low].start ? &v[low] : NULL;
}

const struct step_region *step_space_region(const struct step_space *s, uint64_t addr)
{
	return find_region(s->regions.v, s->regions.n, addr);
}

struct boundaries {
	VEC(uint64_t) all;
};

static void add_boundaries(struct boundaries *b, const struct step_region *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		vec_push(&b->all, v[i].start);
		vec_push(&b->all, v[i].end);
	}
}

static void map_module(struct step_space *s, const struct step_space_env *env,
	const struct step_region *r, uint64_t time)
{
	module_history_map(env->modules, s->process,
		&(struct image_query){.pid = s->process->pid,
			.mapping = {.path = r->path,
				.start = r->start,
				.end = r->end,
				.offset = r->offset,
				.inode = r->inode,
				.major = r->device >> 20,
				.minor = r->device & 0xfffff},
			.process_start_ns = s->process->start_ns},
		time);
}

/* A piece of a region; the path is the region's. */
static struct step_region piece_of(const struct step_region *r, uint64_t start, uint64_t end)
{
	struct step_region piece = *r;

	piece.offset = r->inode ? start - r->start + r->offset : 0;
	piece.start = start;
	piece.end = end;
	return piece;
}

/* Appends the piece, joined to the one before when it continues it. */
static void keep_piece(struct step_space *s, const struct step_region *r, uint64_t start,
	uint64_t end, bool was_written)
{
	struct step_region piece = piece_of(r, start, end);
	struct step_region *last = s->regions.n ? &s->regions.v[s->regions.n - 1] : NULL;

	if (last && last->end == start && is_same(last, r, start) &&
		last->was_written == was_written) {
		last->end = end;
		return;
	}
	piece.was_written = was_written;
	piece.path = mem_strdup(r->path);
	vec_push(&s->regions, piece);
}

static void release_regions(struct step_region *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(v[i].path);
	free(v);
}

struct comparison {
	struct step_space *s;
	const struct step_space_env *env;
	uint64_t time;
	void (*each)(void *ctx, const struct step_change *change);
	void *ctx;
	struct step_change open; /* told when it does not grow any more */
	bool is_open;
};

static void tell_open(struct comparison *c)
{
	if (c->is_open) {
		c->s->n_changes++;
		c->each(c->ctx, &c->open);
	}
	c->is_open = false;
}

static void tell(struct comparison *c, enum step_map_change what, uint64_t start, uint64_t end,
	const char *path)
{
	if (c->is_open && c->open.what == what && c->open.end == start &&
		!strcmp(c->open.path, path)) {
		c->open.end = end;
		return;
	}
	tell_open(c);
	c->open = (struct step_change){what, start, end, path};
	c->is_open = true;
}

/* One stretch in which neither side changes: `old` and `now` may be NULL. */
static void compare_stretch(struct comparison *c, const struct step_region *old,
	const struct step_region *now, uint64_t start, uint64_t end)
{
	bool is_kept = old && now && is_same(old, now, start);

	if (old && !is_kept) {
		module_history_unmap(c->env->modules, c->s->process, start, end, c->time,
			now ? MODULE_END_OVERLAP : MODULE_END_MUNMAP);
		step_space_forget(c->s, start, end);
		tell(c, STEP_MAP_REMOVED, start, end, old->path);
	}
	if (is_kept) {
		keep_piece(c->s, now, start, end, old->was_written || now->was_written);
	} else if (now && now->is_executable) {
		struct step_region piece = piece_of(now, start, end);

		keep_piece(c->s, now, start, end, now->was_written);
		map_module(c->s, c->env, &piece, c->time);
		tell(c, STEP_MAP_ADDED, start, end, now->path);
	}
}

void step_space_read_maps(struct step_space *s, const struct step_space_env *env, pid_t pid,
	uint64_t time, void (*each)(void *ctx, const struct step_change *change), void *ctx)
{
	struct comparison c = {s, env, time, each, ctx, {0}, false};
	struct maps_now now = {.space = s};
	struct boundaries b = {0};
	struct step_region *old = s->regions.v;
	size_t n_old = s->regions.n;

	if (proc_each_mapping(pid, take_mapping, &now, NULL) < 0 || !now.all.n) {
		release_regions(now.all.v, now.all.n); /* it has just ended */
		return;
	}
	add_boundaries(&b, old, n_old);
	add_boundaries(&b, now.all.v, now.all.n);
	sort_u64(b.all.v, b.all.n);
	memset(&s->regions, 0, sizeof(s->regions));
	for (size_t i = 0; i + 1 < b.all.n; i++) {
		uint64_t start = b.all.v[i], end = b.all.v[i + 1];
		const struct step_region *was, *is;

		if (start == end)
			continue;
		was = find_region(old, n_old, start);
		is = find_region(now.all.v, now.all.n, start);
		if (was || is)
			compare_stretch(&c, was, is, start, end);
	}
	tell_open(&c);
	if (s->memory)
		step_memory_compare(s->memory, env, s->process, now.all.v, now.all.n);
	release_regions(old, n_old);
	release_regions(now.all.v, now.all.n);
	vec_release(&b.all);
}

void step_space_read_memory(struct step_space *s, const struct step_space_env *env, pid_t pid)
{
	struct maps_now now = {.space = s};

	if (proc_each_mapping(pid, take_mapping, &now, NULL) == 0 && now.all.n)
		step_memory_compare(s->memory, env, s->process, now.all.v, now.all.n);
	release_regions(now.all.v, now.all.n);
}
