/* SPDX-License-Identifier: MIT */
#include "dwarf/lsda.h"

#include "dwarf/eh_number.h"

static uint64_t offset_of(struct span bytes, const struct cursor *c)
{
	return (uint64_t)(c->p - bytes.p);
}

/* The base of landing pads and where the types end. */
static const char *head_read(struct lsda *l, struct span bytes, struct cursor *c)
{
	uint64_t ignored, distance;

	l->pad_base_encoding = cursor_u8(c);
	l->pad_base_at = offset_of(bytes, c);
	if (l->pad_base_encoding != EH_OMIT &&
		!eh_number_read(c, l->pad_base_encoding, l->pointer_bytes, &ignored))
		return "the base of the landing pads is not known";
	l->type_encoding = cursor_u8(c);
	l->types_at = l->sites_encoding_at = offset_of(bytes, c);
	if (l->type_encoding != EH_OMIT) {
		distance = cursor_uleb(c);
		l->sites_encoding_at = offset_of(bytes, c);
		if (distance > bytes.n - l->sites_encoding_at)
			return "the types leave the section";
		l->types_end = l->sites_encoding_at + distance;
	}
	return NULL;
}

const char *lsda_read(struct lsda *l, struct span bytes, uint64_t offset, uint8_t pointer_bytes)
{
	struct cursor c;
	const char *wrong;
	uint64_t length;

	*l = (struct lsda){.offset = offset, .pointer_bytes = pointer_bytes};
	if (offset >= bytes.n)
		return "an LSDA outside its section";
	c = cursor_of(span_sub(bytes, offset, bytes.n - offset));
	wrong = head_read(l, bytes, &c);
	if (wrong)
		return wrong;
	l->site_encoding = cursor_u8(&c);
	l->length_at = offset_of(bytes, &c);
	length = cursor_uleb(&c);
	l->sites_at = offset_of(bytes, &c);
	if (c.failed || length > cursor_left(&c))
		return "the call sites leave the section";
	if (l->site_encoding & ~EH_FORMAT)
		return "call sites are written in a way that is not known";
	l->sites_end = l->actions_at = l->sites_at + length;
	if (l->types_end && l->types_end < l->actions_at)
		return "the types begin within the call sites";
	return NULL;
}

bool lsda_site_read(struct lsda_site *s, struct span bytes, const struct lsda *l, uint64_t at)
{
	struct cursor c = cursor_of(span_sub(bytes, at, l->sites_end - at));

	s->at = at;
	if (!eh_number_read(&c, l->site_encoding, l->pointer_bytes, &s->start) ||
		!eh_number_read(&c, l->site_encoding, l->pointer_bytes, &s->size) ||
		!eh_number_read(&c, l->site_encoding, l->pointer_bytes, &s->pad))
		return false;
	s->action_at = offset_of(bytes, &c);
	cursor_uleb(&c);
	s->end = offset_of(bytes, &c);
	return !c.failed;
}
