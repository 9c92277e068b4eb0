/* SPDX-License-Identifier: MIT */
/*
 * Writes LSDAs anew. The call sites of a group are written first; then the head's numbers, which
 * are uleb128 distances over each other, are laid out until none needs more bytes than it has. What
 * follows the call sites is kept as it is and at the same place modulo the size of a type: for that
 * the length of the last call-site table is written with more bytes than it needs, which uleb128
 * allows and gcc did too before assemblers could align there.
 */
#include <stdlib.h>

#include "insert/eh_pointer.h"
#include "insert/lsda_section.h"

#define LSDA_ROUNDS_MAX	   16
#define LSDA_LEB_BYTES_MAX 5 /* sections are far below 32 GiB */
#define LSDA_ALIGN_MAX	   8 /* of the types */

/* The new form of an LSDA of a group. */
struct lsda_new {
	struct buf sites;
	uint64_t offset; /* new */
	uint8_t types_bytes, length_bytes, pad_bytes;
	uint64_t types_distance, length;
};

struct lsda_move {
	const struct moved *m;
	struct section_rewrite *w;
	struct span old;
	struct err *err;
	VEC(struct lsda_new) group;
};

static uint64_t distance_of(const struct moved *m, uint32_t section, uint64_t from, uint64_t to)
{
	return moved_label(m, section, to) - moved_label(m, section, from);
}

static int site_move(
	struct lsda_move *x, const struct object_lsda *l, const struct lsda_site *s, struct buf *b)
{
	uint32_t section = l->code.section;
	uint8_t encoding = l->table.site_encoding;
	uint64_t base = l->code.start, first = base + s->start;
	uint64_t values[3] = {distance_of(x->m, section, base, first),
		distance_of(x->m, section, first, first + s->size), 0};

	if (s->pad)
		values[2] = distance_of(
			x->m, l->pad_base.section, l->pad_base.offset, l->pad_base.offset + s->pad);
	if (values[0] == s->start && values[1] == s->size && values[2] == s->pad) {
		buf_put(b, x->old.p + s->at, (size_t)(s->end - s->at));
		return 0;
	}
	if (!eh_number_put(b, encoding, values[0]) || !eh_number_put(b, encoding, values[1]) ||
		!eh_number_put(b, encoding, values[2]))
		return err_set(x->err, ERR_LIMIT,
			"%s+0x%llx: a function has become too long for its call-site table",
			x->w->object->sections.v[x->w->section].name, (unsigned long long)s->at);
	buf_put(b, x->old.p + s->action_at, (size_t)(s->end - s->action_at));
	return 0;
}

/* The call sites of one; *changed when they are not what they were. */
static int sites_move(
	struct lsda_move *x, const struct object_lsda *l, struct buf *b, bool *changed)
{
	size_t old_bytes = (size_t)(l->table.sites_end - l->table.sites_at);
	struct lsda_site site;
	int rc;

	for (uint64_t at = l->table.sites_at; at < l->table.sites_end; at = site.end) {
		lsda_site_read(&site, x->old, &l->table, at);
		rc = site_move(x, l, &site, b);
		if (rc)
			return rc;
	}
	if (b->n != old_bytes || (b->n && memcmp(b->p, x->old.p + l->table.sites_at, b->n)))
		*changed = true;
	return 0;
}

static uint8_t uleb_bytes(uint64_t v)
{
	uint8_t n = 1;

	while (v >>= 7)
		n++;
	return n;
}

static void uleb_put_wide(struct buf *b, uint64_t v, uint8_t bytes)
{
	while (--bytes) {
		buf_put_u8(b, (uint8_t)(v | 0x80));
		v >>= 7;
	}
	buf_put_u8(b, (uint8_t)(v & 0x7f));
}

/* Bytes that bring `at` to the place of `old` modulo the size of the types of the LSDA. */
static uint8_t padding(const struct object_lsda *l, uint64_t at, uint64_t old)
{
	unsigned align =
		eh_format_bytes(l->table.type_encoding) == LSDA_ALIGN_MAX ? LSDA_ALIGN_MAX : 4;

	return l->table.type_encoding == EH_OMIT ? 0 : (uint8_t)((old - at) % align);
}

/* One round: places for the sizes as they are. True when every number fits its size. */
static bool group_place(struct lsda_move *x, const struct object_lsda *l, size_t n)
{
	uint64_t at = x->group.v[0].offset, actions, types;
	bool fits = true;

	for (size_t i = 0; i < n; i++) {
		const struct lsda *t = &l[i].table;
		struct lsda_new *new = &x->group.v[i];

		new->offset = at;
		at += t->types_at - t->offset + new->types_bytes + 1 + new->length_bytes +
		      new->sites.n;
		new->pad_bytes = padding(l, at, i + 1 < n ? l[i + 1].table.offset : t->actions_at);
		at += new->pad_bytes;
	}
	actions = at;
	types = actions + (l[0].table.types_end - l[0].table.actions_at);
	for (size_t i = 0; i < n; i++) {
		const struct lsda *t = &l[i].table;
		struct lsda_new *new = &x->group.v[i];
		uint64_t head_end = new->offset + (t->types_at - t->offset) + new->types_bytes;
		uint64_t sites =
			head_end + 1 + new->length_bytes + (i + 1 < n ? 0 : new->pad_bytes);

		new->types_distance = types - head_end;
		new->length = actions - sites;
		if (new->types_bytes && uleb_bytes(new->types_distance) > new->types_bytes) {
			new->types_bytes++;
			fits = false;
		}
		if (uleb_bytes(new->length) > new->length_bytes) {
			new->length_bytes++;
			fits = false;
		}
	}
	return fits;
}

static void group_lay_out(struct lsda_move *x, const struct object_lsda *l, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		x->group.v[i].types_bytes = l[i].table.types_end ? 1 : 0;
		x->group.v[i].length_bytes = 1;
	}
	for (int round = 0; !group_place(x, l, n); round++) {
		/* Sizes only grow, so this ends; only forged tables need many rounds. */
		for (size_t i = 0; round >= LSDA_ROUNDS_MAX && i < n; i++) {
			x->group.v[i].types_bytes = l[i].table.types_end ? LSDA_LEB_BYTES_MAX : 0;
			x->group.v[i].length_bytes = LSDA_LEB_BYTES_MAX;
		}
	}
}

static int group_write(struct lsda_move *x, const struct object_lsda *l, size_t n)
{
	static const uint8_t zeros[LSDA_ALIGN_MAX];
	struct section_rewrite *w = x->w;
	struct buf number = {0};
	int rc = 0;

	for (size_t i = 0; i < n && !rc; i++) {
		const struct lsda *t = &l[i].table;
		const struct lsda_new *new = &x->group.v[i];
		bool is_last = i + 1 == n;

		section_rewrite_keep(w, t->types_at);
		if (new->types_bytes)
			uleb_put_wide(&number, new->types_distance, new->types_bytes);
		rc = section_rewrite_replace(w, t->sites_encoding_at, buf_span(&number), x->err);
		buf_reset(&number);
		section_rewrite_keep(w, t->length_at);
		uleb_put_wide(&number, new->length,
			(uint8_t)(new->length_bytes + (is_last ? new->pad_bytes : 0)));
		if (!rc)
			rc = section_rewrite_replace(w, t->sites_at, buf_span(&number), x->err);
		buf_reset(&number);
		if (!rc)
			rc = section_rewrite_replace(
				w, t->sites_end, buf_span(&new->sites), x->err);
		if (!rc && !is_last)
			rc = section_rewrite_replace(
				w, l[i].limit, (struct span){zeros, new->pad_bytes}, x->err);
	}
	buf_release(&number);
	if (!rc)
		section_rewrite_keep(w, l[n - 1].limit);
	return rc;
}

static void group_reset(struct lsda_move *x)
{
	for (size_t i = 0; i < x->group.n; i++)
		buf_release(&x->group.v[i].sites);
	x->group.n = 0;
}

static int group_move(struct lsda_move *x, const struct object_lsda *l, size_t n)
{
	static const uint8_t zeros[LSDA_ALIGN_MAX];
	bool changed = false;
	int rc;

	section_rewrite_keep(x->w, l->table.offset);
	rc = section_rewrite_replace(x->w, l->table.offset,
		(struct span){zeros, padding(l, x->w->bytes.n, l->table.offset)}, x->err);
	for (size_t i = 0; i < n && !rc; i++) {
		vec_push(&x->group, ((struct lsda_new){.offset = x->w->bytes.n}));
		rc = sites_move(x, &l[i], &x->group.v[i].sites, &changed);
	}
	if (rc)
		return rc;
	if (!changed) {
		section_rewrite_keep(x->w, l[n - 1].limit);
		return 0;
	}
	group_lay_out(x, l, n);
	return group_write(x, l, n);
}

int lsda_section_move(const struct lsda_section *l, const struct moved *m,
	struct section_rewrite *w, struct err *err)
{
	struct lsda_move x = {.m = m, .w = w, .err = err};
	int rc = 0;

	x.old = w->object->sections.v[l->section].data;
	for (size_t first = 0, n; first < l->lsdas.n && !rc; first += n) {
		for (n = 1; l->lsdas.v[first + n - 1].table.sites_end !=
			    l->lsdas.v[first + n - 1].table.actions_at;)
			n++;
		rc = group_move(&x, &l->lsdas.v[first], n);
		group_reset(&x);
	}
	vec_release(&x.group);
	return rc;
}
