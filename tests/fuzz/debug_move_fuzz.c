/* SPDX-License-Identifier: MIT */
/*
 * The input is an object. Code that stays in place must not change a byte of the debug information;
 * then the code grows.
 */
#include <stdlib.h>

#include "insert/debug_move.h"

#define ROWS_MAX 4096 /* of a section */

static void make_map(const struct elf_object *o, struct moved *m, uint64_t grow)
{
	moved_init(m, o->sections.n);
	for (uint32_t i = 1; i < o->sections.n; i++) {
		uint64_t n = o->sections.v[i].size / 4;

		if (!(o->sections.v[i].flags & SHF_EXECINSTR))
			continue;
		for (uint64_t k = 0; k <= n && k < ROWS_MAX; k++)
			moved_add(m, i, 4 * k, (4 + grow) * k, (4 + grow) * k + grow);
	}
}

static void stay(struct elf_object *o)
{
	const uint8_t **was = mem_calloc(o->sections.n, sizeof(*was));
	struct moved m;
	struct err err;

	for (size_t i = 0; i < o->sections.n; i++)
		was[i] = o->sections.v[i].data.p;
	make_map(o, &m, 0);
	debug_move(o, &m, NULL, &err);
	for (size_t i = 0; i < o->sections.n; i++)
		if (o->sections.v[i].data.p != was[i])
			abort();
	moved_release(&m);
	free(was);
}

static void grow(struct elf_object *o, uint64_t bytes)
{
	struct moved m;
	struct err err = {0};
	bool is_split;

	make_map(o, &m, bytes);
	if (debug_move(o, &m, &is_split, &err) < 0 && !err.text[0])
		abort();
	for (size_t i = 0; i < o->sections.n; i++) {
		const struct object_section *s = &o->sections.v[i];

		if (s->data.n && s->size != s->data.n)
			abort();
		for (size_t k = 1; k < s->relocs.n; k++)
			if (s->relocs.v[k - 1].offset > s->relocs.v[k].offset)
				abort();
	}
	moved_release(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct elf_object o;
	struct err err;

	if (elf_object_open(&o, (struct span){data, n}, &err) < 0)
		return 0;
	stay(&o);
	grow(&o, n % 2 ? 9 : 300);
	elf_object_release(&o);
	return 0;
}
