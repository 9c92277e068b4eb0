/* SPDX-License-Identifier: MIT */
#include "insert/lsda_section.h"

#include <stdlib.h>

#include "insert/eh_pointer.h"

#define SITE_BYTES_MIN	       4 /* four numbers */
#define LSDA_SECTION_BYTES_MAX (1u << 30)

struct lsda_source {
	const struct elf_object *o;
	uint32_t section;
	const char *name;
	struct span bytes;
	struct err *err;
};

void lsda_section_release(struct lsda_section *l)
{
	vec_release(&l->lsdas);
}

static int bad(const struct lsda_source *s, uint64_t offset, const char *what)
{
	return err_set(
		s->err, ERR_FORMAT, "%s+0x%llx: %s", s->name, (unsigned long long)offset, what);
}

/* The base of landing pads: the start of the function unless a relocation says otherwise. */
static int pad_base_find(const struct lsda_source *s, struct object_lsda *l)
{
	uint8_t encoding = l->table.pad_base_encoding;
	const struct object_section *base;

	l->pad_base = (struct code_place){l->code.section, l->code.start};
	if (encoding == EH_OMIT)
		return 0;
	if (!eh_format_bytes(encoding) || eh_field_target(s->o, s->section, l->table.pad_base_at,
						  encoding, &l->pad_base) != EH_TARGET_SECTION)
		return bad(s, l->table.offset, "the base of the landing pads is not known");
	base = &s->o->sections.v[l->pad_base.section];
	if (!(base->flags & SHF_EXECINSTR) || l->pad_base.offset > base->size)
		return bad(s, l->table.offset, "the base of the landing pads is no code");
	return 0;
}

static int head_read(const struct lsda_source *s, struct object_lsda *l, uint64_t offset)
{
	const char *wrong = lsda_read(&l->table, s->bytes, offset, EH_POINTER_BYTES);

	if (wrong)
		return bad(s, offset, wrong);
	if (pad_base_find(s, l) < 0)
		return ERR_FORMAT;
	if (l->table.sites_at > l->limit)
		return bad(s, offset, "the call sites leave the section");
	return 0;
}

/* Where the call sites end. In front of another LSDA of the group there are only padding zeros. */
static int sites_bound(
	const struct lsda_source *s, struct object_lsda *l, const struct object_lsda *next)
{
	struct lsda *t = &l->table;
	struct lsda_site site;
	uint64_t at;

	if (t->actions_at <= l->limit)
		return t->types_end <= l->limit
			       ? 0
			       : bad(s, t->offset,
					 "the types reach into another function's tables");
	if (!next || next->table.actions_at != t->actions_at ||
		next->table.types_end != t->types_end)
		return bad(s, t->offset, "the call sites reach into another function's tables");
	t->sites_end = l->limit;
	for (at = t->sites_at; l->limit - at >= SITE_BYTES_MIN; at = site.end)
		if (!lsda_site_read(&site, s->bytes, t, at))
			return bad(s, at, "a call site is damaged");
	t->sites_end = at;
	for (; at < l->limit; at++)
		if (s->bytes.p[at])
			return bad(s, at, "something between two tables that is not known");
	return 0;
}

static int sites_check(
	const struct lsda_source *s, const struct object_lsda *l, struct exception_tables *found)
{
	uint64_t pads_size = s->o->sections.v[l->pad_base.section].size - l->pad_base.offset;
	struct lsda_site site;

	for (uint64_t at = l->table.sites_at; at < l->table.sites_end; at = site.end) {
		if (!lsda_site_read(&site, s->bytes, &l->table, at))
			return bad(s, at, "a call site is damaged");
		if (site.start > l->code.size || site.size > l->code.size - site.start)
			return bad(s, at, "a call site outside its function");
		if (site.pad >= pads_size && site.pad)
			return bad(s, at, "a landing pad outside its section");
		if (site.pad && found)
			vec_push(&found->landing_pads, ((struct code_place){l->pad_base.section,
							       l->pad_base.offset + site.pad}));
	}
	return 0;
}

static int read_all(const struct lsda_source *s, struct lsda_section *l,
	const struct lsda_ref *refs, size_t n, struct exception_tables *found)
{
	for (size_t i = 0; i < n; i++) {
		struct object_lsda lsda = {.code = refs[i].code};

		lsda.limit = i + 1 < n ? refs[i + 1].at.offset : s->bytes.n;
		if (head_read(s, &lsda, refs[i].at.offset) < 0)
			return ERR_FORMAT;
		vec_push(&l->lsdas, lsda);
	}
	for (size_t i = 0; i < n; i++)
		if (sites_bound(s, &l->lsdas.v[i], i + 1 < n ? &l->lsdas.v[i + 1] : NULL) < 0 ||
			sites_check(s, &l->lsdas.v[i], found) < 0)
			return ERR_FORMAT;
	return 0;
}

int lsda_section_read(struct lsda_section *l, const struct elf_object *o,
	const struct lsda_ref *refs, size_t n, struct exception_tables *found, struct err *err)
{
	const struct object_section *os = &o->sections.v[refs->at.section];
	struct lsda_source s = {o, refs->at.section, os->name, os->data, err};

	*l = (struct lsda_section){.section = refs->at.section};
	if (s.bytes.n > LSDA_SECTION_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "%s: more than 1 GiB", s.name);
	if (read_all(&s, l, refs, n, found) < 0) {
		lsda_section_release(l);
		return ERR_FORMAT;
	}
	return 0;
}
