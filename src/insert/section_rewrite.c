/* SPDX-License-Identifier: MIT */
#include "insert/section_rewrite.h"

#include <assert.h>
#include <stdlib.h>

void section_rewrite_release(struct section_rewrite *w)
{
	buf_release(&w->bytes);
	vec_release(&w->rows);
}

/* What is written next stands for the old bytes at w->at. */
static void mark(struct section_rewrite *w)
{
	const struct moved_row *last = w->rows.n ? &w->rows.v[w->rows.n - 1] : NULL;
	uint64_t distance = last ? last->place - last->old : 0;

	if (w->bytes.n - w->at == distance)
		return;
	vec_push(&w->rows, ((struct moved_row){w->at, w->bytes.n, w->bytes.n}));
}

void section_rewrite_keep(struct section_rewrite *w, uint64_t until)
{
	struct span old = w->object->sections.v[w->section].data;

	assert(until >= w->at && until <= old.n);
	if (until == w->at)
		return;
	mark(w);
	buf_put(&w->bytes, old.p + w->at, (size_t)(until - w->at));
	w->at = until;
}

int section_rewrite_replace(
	struct section_rewrite *w, uint64_t until, struct span bytes, struct err *err)
{
	const struct object_section *s = &w->object->sections.v[w->section];
	size_t i = object_section_reloc_at(s, w->at);

	assert(until >= w->at && until <= s->data.n);
	if (i < s->relocs.n && s->relocs.v[i].offset < until)
		return err_set(err, ERR_UNSUPPORTED,
			"%s+0x%llx: a relocation where a length or distance is expected", s->name,
			(unsigned long long)s->relocs.v[i].offset);
	if (until > w->at)
		mark(w);
	if (bytes.n)
		buf_put(&w->bytes, bytes.p, bytes.n);
	w->at = until;
	return 0;
}

void section_replace(struct elf_object *o, uint32_t section, struct span bytes,
	const struct moved_row *rows, size_t n_rows, struct moved *m)
{
	struct object_section *s = &o->sections.v[section];

	for (size_t i = 0; i < n_rows; i++)
		moved_add(m, section, rows[i].old, rows[i].label, rows[i].place);
	for (size_t i = 0; i < s->relocs.n; i++)
		s->relocs.v[i].offset = moved_place(m, section, s->relocs.v[i].offset);
	object_section_set(o, section, bytes);
}

void section_rewrite_commit(struct section_rewrite *w, struct elf_object *o, struct moved *m)
{
	const struct object_section *s = &o->sections.v[w->section];

	section_rewrite_keep(w, s->data.n);
	if (w->bytes.n == s->data.n && (!s->data.n || !memcmp(w->bytes.p, s->data.p, s->data.n)))
		return;
	mark(w); /* the end of the section is a place too */
	section_replace(o, w->section, buf_span(&w->bytes), w->rows.v, w->rows.n, m);
}
