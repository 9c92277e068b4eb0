/* SPDX-License-Identifier: MIT */
#include "insert/lsda.h"

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

static uint64_t offset_of(const struct lsda_source *s, const struct cursor *c)
{
	return (uint64_t)(c->p - s->bytes.p);
}

bool lsda_site_read(struct lsda_site *s, struct span section, const struct lsda *l, uint64_t at)
{
	struct cursor c = cursor_of(span_sub(section, at, l->sites_end - at));

	s->at = at;
	if (!eh_number_read(&c, l->site_encoding, &s->start) ||
		!eh_number_read(&c, l->site_encoding, &s->size) ||
		!eh_number_read(&c, l->site_encoding, &s->pad))
		return false;
	s->action_at = (uint64_t)(c.p - section.p);
	cursor_uleb(&c);
	s->end = (uint64_t)(c.p - section.p);
	return !c.failed;
}

/* The base of landing pads. */
static int pad_base_read(const struct lsda_source *s, struct cursor *c, struct lsda *l)
{
	const struct object_section *base;
	uint8_t encoding = cursor_u8(c);
	uint64_t ignored, at = offset_of(s, c);

	l->pad_base = (struct code_place){l->code.section, l->code.start};
	if (encoding == EH_OMIT)
		return 0;
	if (!eh_format_bytes(encoding) || !eh_number_read(c, encoding, &ignored) ||
		eh_field_target(s->o, s->section, at, encoding, &l->pad_base) != EH_TARGET_SECTION)
		return bad(s, l->offset, "the base of the landing pads is not known");
	base = &s->o->sections.v[l->pad_base.section];
	if (!(base->flags & SHF_EXECINSTR) || l->pad_base.offset > base->size)
		return bad(s, l->offset, "the base of the landing pads is no code");
	return 0;
}

static int head_read(const struct lsda_source *s, struct lsda *l)
{
	struct cursor c = cursor_of(span_sub(s->bytes, l->offset, s->bytes.n - l->offset));
	uint64_t distance = 0, length;

	if (pad_base_read(s, &c, l) < 0)
		return ERR_FORMAT;
	l->type_encoding = cursor_u8(&c);
	l->types_at = l->sites_encoding_at = offset_of(s, &c);
	if (l->type_encoding != EH_OMIT) {
		distance = cursor_uleb(&c);
		l->sites_encoding_at = offset_of(s, &c);
		if (distance > s->bytes.n - l->sites_encoding_at)
			return bad(s, l->offset, "the types leave the section");
		l->types_end = l->sites_encoding_at + distance;
	}
	l->site_encoding = cursor_u8(&c);
	l->length_at = offset_of(s, &c);
	length = cursor_uleb(&c);
	l->sites_at = offset_of(s, &c);
	if (c.failed || l->sites_at > l->limit || length > cursor_left(&c))
		return bad(s, l->offset, "the call sites leave the section");
	if (l->site_encoding & ~EH_FORMAT)
		return bad(s, l->offset, "call sites are written in a way that is not known");
	l->actions_at = l->sites_at + length;
	if (l->types_end && l->types_end < l->actions_at)
		return bad(s, l->offset, "the types begin within the call sites");
	return 0;
}

/* Where the call sites end. In front of another LSDA of the group there are only padding zeros. */
static int sites_bound(const struct lsda_source *s, struct lsda *l, const struct lsda *next)
{
	struct lsda_site site;
	uint64_t at;

	l->sites_end = l->actions_at;
	if (l->actions_at <= l->limit)
		return l->types_end <= l->limit
			       ? 0
			       : bad(s, l->offset,
					 "the types reach into another function's tables");
	if (!next || next->actions_at != l->actions_at || next->types_end != l->types_end)
		return bad(s, l->offset, "the call sites reach into another function's tables");
	l->sites_end = l->limit;
	for (at = l->sites_at; l->limit - at >= SITE_BYTES_MIN; at = site.end)
		if (!lsda_site_read(&site, s->bytes, l, at))
			return bad(s, at, "a call site is damaged");
	l->sites_end = at;
	for (; at < l->limit; at++)
		if (s->bytes.p[at])
			return bad(s, at, "something between two tables that is not known");
	return 0;
}

static int sites_check(const struct lsda_source *s, const struct lsda *l, struct code_places *pads)
{
	uint64_t pads_size = s->o->sections.v[l->pad_base.section].size - l->pad_base.offset;
	struct lsda_site site;

	for (uint64_t at = l->sites_at; at < l->sites_end; at = site.end) {
		if (!lsda_site_read(&site, s->bytes, l, at))
			return bad(s, at, "a call site is damaged");
		if (site.start > l->code.size || site.size > l->code.size - site.start)
			return bad(s, at, "a call site outside its function");
		if (site.pad >= pads_size && site.pad)
			return bad(s, at, "a landing pad outside its section");
		if (site.pad && pads)
			vec_push(&pads->list, ((struct code_place){l->pad_base.section,
						      l->pad_base.offset + site.pad}));
	}
	return 0;
}

static int read_all(const struct lsda_source *s, struct lsda_section *l,
	const struct lsda_ref *refs, size_t n, struct code_places *pads)
{
	for (size_t i = 0; i < n; i++) {
		struct lsda lsda = {.offset = refs[i].at.offset, .code = refs[i].code};

		lsda.limit = i + 1 < n ? refs[i + 1].at.offset : s->bytes.n;
		if (lsda.offset >= s->bytes.n)
			return bad(s, lsda.offset, "an LSDA outside its section");
		if (head_read(s, &lsda) < 0)
			return ERR_FORMAT;
		vec_push(&l->lsdas, lsda);
	}
	for (size_t i = 0; i < n; i++)
		if (sites_bound(s, &l->lsdas.v[i], i + 1 < n ? &l->lsdas.v[i + 1] : NULL) < 0 ||
			sites_check(s, &l->lsdas.v[i], pads) < 0)
			return ERR_FORMAT;
	return 0;
}

int lsda_section_read(struct lsda_section *l, const struct elf_object *o,
	const struct lsda_ref *refs, size_t n, struct code_places *pads, struct err *err)
{
	const struct object_section *os = &o->sections.v[refs->at.section];
	struct lsda_source s = {o, refs->at.section, os->name, os->data, err};

	*l = (struct lsda_section){.section = refs->at.section};
	if (s.bytes.n > LSDA_SECTION_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "%s: more than 1 GiB", s.name);
	if (read_all(&s, l, refs, n, pads) < 0) {
		lsda_section_release(l);
		return ERR_FORMAT;
	}
	return 0;
}
