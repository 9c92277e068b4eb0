/* SPDX-License-Identifier: MIT */
/*
 * What is executable, and which functions are there: the recorder knows both. And code that may change: pages
 * that can be written and are executed lose their write permission until somebody writes there, which makes the
 * blocks of that page stale.
 */
#include <sys/mman.h>

#include "../base/proc_self.h"
#include "../base/proc_text.h"
#include "translate.h"

#define N_REGIONS     4096
#define BELOW_BYTES   (512ull << 20) /* left free between code and our own memory */
#define FUNCTION_ROOM (256ull << 20)
#define N_WATCHED     (1u << 16)
#define WATCH_CLOSED  1u /* has no write permission now, by us */
#define WATCH_OPENED  2u /* has it again, by us */
#define WATCH_BITS    3ull

static struct region regions[N_REGIONS];
static uint32_t n_regions, last;
static uint8_t *function_memory, *function_at;
static uint64_t watched[N_WATCHED]; /* pages with WATCH_*, by hash; 0 = none */
static uint32_t n_watched;

uint64_t gap_near(uint64_t start, uint64_t end, uint64_t bytes, uint64_t reach)
{
	/* The kernel maps what the program asks for below what it has: that is where it would be without us. */
	uint64_t at = maps_find_gap(start, end, bytes + BELOW_BYTES, reach);

	return at && at < start ? at : maps_find_gap(start, end, bytes, reach);
}

static struct region *add(const struct translate_region *r, uint64_t functions)
{
	struct region *to;

	if (n_regions == N_REGIONS)
		n_regions = 0; /* they are asked for anew */
	to = &regions[n_regions++];
	*to = (struct region){.start = r->start,
		.end = r->end,
		.flags = r->flags,
		.functions = (const struct translate_function *)functions,
		.n_functions = r->n_functions};
	return to;
}

/* Nobody is there to ask. */
static void find_alone(struct translate_region *r)
{
	struct maps_line line = {0};

	r->n_functions = 0;
	r->start = PAGE_DOWN(r->address);
	r->end = r->start + PAGE_BYTES;
	r->flags = TRANSLATE_REGION_SHARED; /* where /proc is not there: a page that can be read will do */
	if (!maps_find(r->address, &line))
		return;
	r->start = line.start;
	r->end = line.prot & PROT_EXEC ? line.end : line.start;
	r->flags = (line.inode && !line.is_shared ? TRANSLATE_REGION_FILE : 0) |
		   (line.prot & PROT_WRITE ? TRANSLATE_REGION_WRITABLE : 0) |
		   (line.is_shared ? TRANSLATE_REGION_SHARED : 0);
}

static const struct region *ask(uint64_t pc)
{
	struct translate_region r = {.address = pc};
	int64_t rc;

	if (!function_memory) {
		function_memory = memory_reserve(FUNCTION_ROOM);
		function_at = function_memory;
	}
	r.functions = (uint64_t)function_at;
	r.n_room = function_memory ? (uint64_t)(function_memory + FUNCTION_ROOM - function_at) /
					     sizeof(struct translate_function)
				   : 0;
	rc = translate_service(TRANSLATE_REGION, &r, 0);
	if (rc < 0)
		find_alone(&r);
	if (rc > 0 || r.n_functions > r.n_room)
		r.n_functions = 0;
	if (r.start >= r.end || pc < r.start || pc >= r.end)
		return NULL;
	function_at += r.n_functions * sizeof(struct translate_function);
	return add(&r, r.functions);
}

const struct region *region_at(uint64_t pc)
{
	if (last < n_regions && pc - regions[last].start < regions[last].end - regions[last].start)
		return &regions[last];
	for (uint32_t i = 0; i < n_regions; i++)
		if (pc - regions[i].start < regions[i].end - regions[i].start) {
			last = i;
			return &regions[i];
		}
	return ask(pc);
}

bool region_is_shared(uint64_t pc)
{
	const struct region *r = region_at(pc);

	return r && r->flags & TRANSLATE_REGION_SHARED;
}

const struct translate_function *region_function(uint64_t pc)
{
	const struct region *r = region_at(pc);
	uint32_t low = 0, high = r ? r->n_functions : 0;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (r->functions[middle].start <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || pc - r->functions[low - 1].start >= r->functions[low - 1].bytes)
		return NULL;
	return &r->functions[low - 1];
}

enum variant region_variant(uint64_t from, uint64_t to)
{
	const struct translate_function *f = region_function(to);

	if (!f || f->start != to)
		return VARIANT_PLAIN;
	return region_function(from) == f ? VARIANT_PLAIN : VARIANT_ENTER;
}

/* ---- code that may change ---- */

static uint64_t *row_of(uint64_t page)
{
	for (uint32_t i = (uint32_t)(page >> 12) * 0x9e3779b1u >> 16;; i++) {
		uint64_t *row = &watched[i & (N_WATCHED - 1)];

		if (!*row || (*row & ~WATCH_BITS) == page)
			return row;
	}
}

void region_watch(uint64_t start, uint64_t end)
{
	const struct region *r = region_at(start);

	if (!r)
		return;
	regions[last].has_code |= r == &regions[last];
	for (uint32_t i = 0; i < n_regions; i++)
		if (&regions[i] == r)
			regions[i].has_code = true;
	if (!(r->flags & TRANSLATE_REGION_WRITABLE) || is_confined)
		return;
	end = end < r->end ? end : r->end;
	for (uint64_t page = PAGE_DOWN(start); page < end; page += PAGE_BYTES) {
		uint64_t *row = row_of(page);

		if (n_watched > N_WATCHED / 2 || *row == (page | WATCH_CLOSED))
			continue;
		n_watched += !*row;
		*row = page;
		if (raw_call(SYS_mprotect, page, PAGE_BYTES, PROT_READ | PROT_EXEC) == 0)
			*row |= WATCH_CLOSED;
	}
}

static void open_page(uint64_t *row)
{
	uint64_t page = *row & ~WATCH_BITS;

	*row = page | WATCH_OPENED;
	raw_call(SYS_mprotect, page, PAGE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC);
	cache_forget(page, page + PAGE_BYTES);
}

bool region_written(uint64_t address)
{
	uint64_t page = PAGE_DOWN(address), *row;
	bool was;

	cache_lock();
	row = row_of(page);
	was = *row & WATCH_BITS; /* opened: by another thread, that was quicker */
	if (*row & WATCH_CLOSED)
		open_page(row);
	cache_unlock();
	return was;
}

bool regions_unwatch(void)
{
	bool was = false;

	cache_lock();
	for (uint32_t i = 0; n_watched && i < N_WATCHED; i++)
		if (watched[i] & WATCH_CLOSED) {
			open_page(&watched[i]);
			was = true;
		}
	cache_unlock();
	return was;
}

/* The program has said what these pages are. */
static void forget_watched(uint64_t start, uint64_t end)
{
	for (uint32_t i = 0; n_watched && i < N_WATCHED; i++)
		if (watched[i] & WATCH_BITS && watched[i] >= start && watched[i] < end)
			watched[i] &= ~WATCH_BITS;
}

void regions_changed(uint64_t start, uint64_t end)
{
	cache_lock();
	forget_watched(start, end);
	for (uint32_t i = 0; i < n_regions;) {
		if (regions[i].start >= end || regions[i].end <= start) {
			i++;
			continue;
		}
		if (regions[i].has_code)
			cache_forget(start, end);
		regions[i] = regions[--n_regions];
	}
	cache_unlock();
}
