/* SPDX-License-Identifier: MIT */
/* Which sections hold exception tables, and in which order they are read and written. */
#include "insert/exception_tables.h"

#include <stdlib.h>

#include "base/order.h"
#include "insert/eh_frame.h"
#include "insert/lsda_section.h"

/* All tables of an object. */
struct tables {
	VEC(struct frame_section) frames;
	VEC(struct lsda_section) lsdas;
};

static void tables_release(struct tables *t)
{
	for (size_t i = 0; i < t->frames.n; i++)
		frame_section_release(&t->frames.v[i]);
	for (size_t i = 0; i < t->lsdas.n; i++)
		lsda_section_release(&t->lsdas.v[i]);
	vec_release(&t->frames);
	vec_release(&t->lsdas);
}

static bool is_frame_section(const struct object_section *s)
{
	return s->type != SHT_NOBITS && s->data.n &&
	       (!strcmp(s->name, ".eh_frame") || !strcmp(s->name, ".debug_frame"));
}

ORDER_BY(place_compare, struct code_place, section, offset)

ORDER_BY(ref_compare, struct lsda_ref, at.section, at.offset, code.section, code.start)

/* One section's LSDAs: refs of the section, sorted. */
static int lsdas_read_section(struct tables *t, const struct elf_object *o, struct lsda_ref *refs,
	size_t n, struct exception_tables *found, struct err *err)
{
	const struct object_section *section = &o->sections.v[refs->at.section];
	struct lsda_section l;
	size_t n_kept = 0;

	if (section->flags & (SHF_EXECINSTR | SHF_COMPRESSED) || is_frame_section(section))
		return err_set(err, ERR_UNSUPPORTED, "%s: LSDAs among other things", section->name);

	for (size_t i = 0; i < n; i++) {
		struct lsda_ref *last = n_kept ? &refs[n_kept - 1] : NULL;

		if (!last || last->at.offset != refs[i].at.offset)
			refs[n_kept++] = refs[i];
		else if (last->code.section != refs[i].code.section ||
			 last->code.start != refs[i].code.start)
			return err_set(err, ERR_UNSUPPORTED, "%s+0x%llx: an LSDA of two functions",
				section->name, (unsigned long long)refs[i].at.offset);
	}
	if (lsda_section_read(&l, o, refs, n_kept, found, err) < 0)
		return ERR_FORMAT;
	vec_push(&t->lsdas, l);
	return 0;
}

static int lsdas_read(struct tables *t, const struct elf_object *o, struct exception_tables *found,
	struct err *err)
{
	VEC(struct lsda_ref) refs = {0};
	int rc = 0;

	for (size_t i = 0; i < t->frames.n; i++)
		for (size_t j = 0; j < t->frames.v[i].fdes.n; j++) {
			const struct frame_fde *fde = &t->frames.v[i].fdes.v[j];

			if (fde->lsda.section)
				vec_push(&refs, ((struct lsda_ref){fde->lsda, fde->range}));
		}
	vec_sort(&refs, ref_compare);
	for (size_t first = 0, n; first < refs.n && !rc; first += n) {
		for (n = 1; first + n < refs.n &&
			    refs.v[first + n].at.section == refs.v[first].at.section;)
			n++;
		rc = lsdas_read_section(t, o, &refs.v[first], n, found, err);
	}
	vec_release(&refs);
	return rc;
}

static int tables_read(struct tables *t, const struct elf_object *o, struct exception_tables *found,
	struct err *err)
{
	struct frame_section f;
	int rc;

	*t = (struct tables){0};
	for (uint32_t i = 1; i < o->sections.n; i++) {
		if (!is_frame_section(&o->sections.v[i]))
			continue;
		rc = frame_section_read(&f, o, i, err);
		if (rc) {
			tables_release(t);
			return rc;
		}
		vec_push(&t->frames, f);
	}
	rc = lsdas_read(t, o, found, err);
	if (rc)
		tables_release(t);
	return rc;
}

void exception_tables_release(struct exception_tables *t)
{
	vec_release(&t->ranges);
	vec_release(&t->landing_pads);
}

/* Sorted, each once. */
static void order_landing_pads(struct exception_tables *t)
{
	struct code_place *pads = t->landing_pads.v;
	size_t n = 0;

	vec_sort(&t->landing_pads, place_compare);
	for (size_t i = 0; i < t->landing_pads.n; i++)
		if (!n || place_compare(&pads[n - 1], &pads[i]))
			pads[n++] = pads[i];
	t->landing_pads.n = n;
}

int exception_tables_read(struct exception_tables *t, const struct elf_object *o, struct err *err)
{
	struct exception_tables found = {0};
	struct tables tables;
	int rc = tables_read(&tables, o, &found, err);

	if (rc) {
		exception_tables_release(&found);
		return rc;
	}
	for (size_t i = 0; i < tables.frames.n; i++)
		for (size_t j = 0; tables.frames.v[i].is_eh && j < tables.frames.v[i].fdes.n; j++)
			if (tables.frames.v[i].fdes.v[j].is_here)
				vec_push(&found.ranges, tables.frames.v[i].fdes.v[j].range);
	order_landing_pads(&found);
	tables_release(&tables);
	*t = found;
	return 0;
}

/* Everything is written before anything is changed, so that a failure leaves the object as it was.
 */
int exception_tables_move(struct elf_object *o, struct moved *m, struct err *err)
{
	struct section_rewrite *rewrites;
	size_t n = 0;
	struct tables t;
	int rc = tables_read(&t, o, NULL, err);

	if (rc)
		return rc;
	rewrites = mem_calloc(t.lsdas.n + t.frames.n + 1, sizeof(*rewrites));
	for (size_t i = 0; i < t.lsdas.n && !rc; i++) {
		rewrites[n] =
			(struct section_rewrite){.object = o, .section = t.lsdas.v[i].section};
		rc = lsda_section_move(&t.lsdas.v[i], m, &rewrites[n++], err);
	}
	for (size_t i = 0; i < t.frames.n && !rc; i++) {
		rewrites[n] =
			(struct section_rewrite){.object = o, .section = t.frames.v[i].section};
		rc = frame_section_move(&t.frames.v[i], m, &rewrites[n++], err);
	}
	for (size_t i = 0; i < n && !rc; i++)
		section_rewrite_commit(&rewrites[i], o, m);
	for (size_t i = 0; i < n; i++)
		section_rewrite_release(&rewrites[i]);
	free(rewrites);
	tables_release(&t);
	return rc;
}
