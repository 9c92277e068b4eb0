/* SPDX-License-Identifier: MIT */
#include "steps/tables/code_use.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/order.h"
#include "base/sort.h"

ORDER_BY(compare_places, struct code_spot, region, addr)

static int compare_by_group(const void *a, const void *b)
{
	const struct code_spot *x = a, *y = b;

	return ORDER(x->group, y->group) ?: compare_places(x, y);
}

static int compare_uses(const void *a, const void *b)
{
	const struct code_use *x = a, *y = b;

	return ORDER(y->executed, x->executed) ?: ORDER(x->group, y->group);
}

/* How many pieces of `bytes` bytes [addr, end) touches from number `*behind` on, which is moved
 * behind the last of them: places come in order, so all before it were counted. */
static uint64_t new_pieces(uint64_t addr, uint64_t end, uint64_t bytes, uint64_t *behind)
{
	uint64_t first = addr / bytes, last = (end - 1) / bytes, n;

	if (first < *behind)
		first = *behind;
	n = last + 1 > first ? last + 1 - first : 0;
	if (n)
		*behind = last + 1;
	return n;
}

/* The use of spots of one group, in order of places. */
static struct code_use measure(const struct code_spot *spots, size_t n)
{
	struct code_use use = {.group = spots->group};
	uint64_t byte = 0, line = 0, page = 0;

	for (size_t i = 0; i < n; i++) {
		const struct code_spot *s = &spots[i];
		bool is_other = i && s->region != s[-1].region;
		/* The last bytes of the address space: nothing lies behind them. */
		uint64_t end = s->addr > UINT64_MAX - s->length ? UINT64_MAX : s->addr + s->length;

		if (is_other)
			byte = line = page = 0;
		use.executed += s->executed;
		/* Code that was overwritten has several spots at one address. */
		use.n_insns++;
		if (end == s->addr)
			continue;
		use.n_bytes += new_pieces(s->addr, end, 1, &byte);
		use.n_lines += new_pieces(s->addr, end, CODE_LINE_BYTES, &line);
		use.n_pages += new_pieces(s->addr, end, CODE_PAGE_BYTES, &page);
	}
	return use;
}

size_t code_use_of_groups(struct code_use **uses, struct code_spot *spots, size_t n)
{
	size_t n_uses = 0;

	*uses = NULL;
	if (!n)
		return 0;
	qsort(spots, n, sizeof(*spots), compare_by_group);
	for (size_t i = 0; i < n; i++)
		n_uses += !i || spots[i].group != spots[i - 1].group;
	*uses = mem_calloc(n_uses, sizeof(**uses));
	n_uses = 0;
	for (size_t i = 0, j; i < n; i = j) {
		for (j = i + 1; j < n && spots[j].group == spots[i].group; j++)
			;
		(*uses)[n_uses++] = measure(spots + i, j - i);
	}
	qsort(*uses, n_uses, sizeof(**uses), compare_uses);
	return n_uses;
}

/* --- covers ----------------------------------------------------------------------------------- */

/* Executions of each piece, most executed last; spots are in order of places. */
static size_t count_pieces(
	uint64_t *counts, const struct code_spot *spots, size_t n, uint64_t bytes)
{
	size_t n_counts = 0;

	for (size_t i = 0; i < n; i++) {
		const struct code_spot *s = &spots[i];

		if (i && s->region == s[-1].region && s->addr / bytes == s[-1].addr / bytes)
			counts[n_counts - 1] += s->executed;
		else
			counts[n_counts++] = s->executed;
	}
	sort_u64(counts, n_counts);
	return n_counts;
}

/* How many of the largest counts reach so many percent of their sum. */
static uint64_t cover(const uint64_t *counts, size_t n, unsigned percent)
{
	unsigned __int128 total = 0, sum = 0;
	size_t i = 0;

	for (size_t j = 0; j < n; j++)
		total += counts[j];
	while (i < n && sum * 100 < total * percent)
		sum += counts[n - ++i];
	return i;
}

void code_covers_get(struct code_cover covers[CODE_N_COVERS], struct code_spot *spots, size_t n)
{
	static const unsigned percents[CODE_N_COVERS] = {50, 90, 99};
	static const uint64_t sizes[] = {1, CODE_LINE_BYTES, CODE_PAGE_BYTES};
	uint64_t *counts = mem_calloc(n ? n : 1, sizeof(*counts));

	if (n)
		qsort(spots, n, sizeof(*spots), compare_places);
	for (size_t size = 0; size < sizeof(sizes) / sizeof(sizes[0]); size++) {
		size_t n_counts = n ? count_pieces(counts, spots, n, sizes[size]) : 0;

		for (size_t i = 0; i < CODE_N_COVERS; i++) {
			uint64_t needed = cover(counts, n_counts, percents[i]);

			covers[i].percent = percents[i];
			if (sizes[size] == 1)
				covers[i].n_insns = needed;
			else if (sizes[size] == CODE_LINE_BYTES)
				covers[i].n_lines = needed;
			else
				covers[i].n_pages = needed;
		}
	}
	free(counts);
}
