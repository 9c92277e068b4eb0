/* SPDX-License-Identifier: MIT */
/* Making, comparing and joining canonical shapes. */
#include "probe/stream/shape.h"

#include "base/arena.h"

uint32_t shape_fixed_size(enum shape_kind kind)
{
	switch (kind) {
	case SHAPE_NONE:
		return 0;
	case SHAPE_USTACK:
	case SHAPE_USYM:
	case SHAPE_TIME:
	case SHAPE_NAME:
	case SHAPE_MIN:
	case SHAPE_MAX:
	case SHAPE_AVG:
	case SHAPE_STATS:
		return 16;
	case SHAPE_INET:
		return 24;
	default:
		return 8;
	}
}

static void set_size(struct shape *s)
{
	uint32_t at = 0;

	switch (s->kind) {
	case SHAPE_STRING:
	case SHAPE_STRUCT:
		s->size = (uint32_t)shape_padded(s->n);
		return;
	case SHAPE_BYTES:
		s->size = 8 + (uint32_t)shape_padded(s->n);
		return;
	case SHAPE_TUPLE:
		for (uint32_t i = 0; i < s->n_fields; i++) {
			s->fields[i].offset = at;
			at += s->fields[i].shape->size;
		}
		s->size = at;
		return;
	case SHAPE_HIST:
		s->size = 8 * hist_n_buckets(s->n);
		return;
	case SHAPE_LHIST:
		s->size = (uint32_t)(8 * ((s->max - s->min + s->step - 1) / s->step + 2));
		return;
	case SHAPE_TSERIES:
		s->size = (uint32_t)((uint64_t)s->max * sizeof(struct tseries_slot));
		return;
	default:
		s->size = shape_fixed_size(s->kind);
	}
}

struct shape *shape_new(struct arena *a, enum shape_kind kind, bool is_signed, uint32_t n)
{
	struct shape *s = arena_zalloc(a, sizeof(*s));

	s->kind = kind;
	s->is_signed = is_signed;
	s->n = n;
	set_size(s);
	return s;
}

struct shape *shape_new_lhist(struct arena *a, int64_t min, int64_t max, int64_t step)
{
	struct shape *s = arena_zalloc(a, sizeof(*s));

	*s = (struct shape){
		.kind = SHAPE_LHIST, .is_signed = true, .min = min, .max = max, .step = step};
	set_size(s);
	return s;
}

struct shape *shape_new_tseries(struct arena *a, enum tseries_function function,
	int64_t n_intervals, int64_t interval_ns, bool is_signed)
{
	struct shape *s = arena_zalloc(a, sizeof(*s));

	*s = (struct shape){.kind = SHAPE_TSERIES,
		.is_signed = is_signed,
		.min = function,
		.max = n_intervals,
		.step = interval_ns};
	set_size(s);
	return s;
}

struct shape *shape_new_tuple(struct arena *a, struct shape *const *of, uint32_t n)
{
	struct shape *s = arena_zalloc(a, sizeof(*s));

	s->kind = SHAPE_TUPLE;
	s->n_fields = n;
	s->fields = arena_zalloc(a, n * sizeof(*s->fields));
	for (uint32_t i = 0; i < n; i++)
		s->fields[i].shape = of[i];
	set_size(s);
	return s;
}

struct shape *shape_copy(struct arena *a, const struct shape *s)
{
	struct shape *copy = arena_dup(a, s, sizeof(*s));

	if (s->n_fields)
		copy->fields = arena_dup(a, s->fields, s->n_fields * sizeof(*s->fields));
	for (uint32_t i = 0; i < s->n_fields; i++)
		copy->fields[i].shape = shape_copy(a, s->fields[i].shape);
	return copy;
}

static bool fields_are_same(const struct shape_field *a, const struct shape_field *b)
{
	return name_is_same(a->name, b->name) && a->offset == b->offset && a->bytes == b->bytes &&
	       a->bit_offset == b->bit_offset && a->bit_size == b->bit_size &&
	       shape_is_same(a->shape, b->shape);
}

bool shape_is_same(const struct shape *a, const struct shape *b)
{
	if (a->kind != b->kind || a->is_signed != b->is_signed || a->is_bool != b->is_bool ||
		!name_is_same(a->enumerators, b->enumerators) || a->n != b->n ||
		a->size != b->size || a->n_fields != b->n_fields)
		return false;
	if (a->min != b->min || a->max != b->max || a->step != b->step)
		return false;
	for (uint32_t i = 0; i < a->n_fields; i++) {
		if (!fields_are_same(&a->fields[i], &b->fields[i]))
			return false;
	}
	return true;
}

/* Integers and pointers go together: a constant takes what the other is, and otherwise the address
 * is a number. */
static bool merge_scalar(struct shape *have, const struct shape *add, bool *has_grown)
{
	struct shape was = *have;

	have->is_bool &= add->is_bool;
	if (!name_is_same(have->enumerators, add->enumerators))
		have->enumerators = NULL;

	if (have->is_weak) {
		have->kind = add->kind;
		have->is_signed = add->is_signed || (add->is_weak && was.is_signed);
		have->is_weak = add->is_weak;
	} else if (!add->is_weak) {
		have->kind = have->kind == add->kind ? have->kind : SHAPE_INT;
		have->is_signed |= add->is_signed;
	}
	*has_grown |= was.kind != have->kind || was.is_signed != have->is_signed ||
		      was.is_weak != have->is_weak || was.is_bool != have->is_bool ||
		      was.enumerators != have->enumerators;
	return true;
}

uint32_t shape_field_find(const struct shape *s, const char *name, uint32_t i)
{
	if (!name)
		return i;
	for (i = 0; i < s->n_fields; i++)
		if (name_is_same(s->fields[i].name, name))
			break;
	return i;
}

/* Records have the order of the first. */
static bool merge_tuple(struct shape *have, struct shape *add, bool *has_grown)
{
	if (have->n_fields != add->n_fields || shape_is_record(have) != shape_is_record(add))
		return false;
	for (uint32_t i = 0; i < have->n_fields; i++) {
		uint32_t k = shape_field_find(add, have->fields[i].name, i);

		if (k >= add->n_fields ||
			!shape_merge(&have->fields[i].shape, add->fields[k].shape, has_grown))
			return false;
	}
	set_size(have);
	return true;
}

static bool is_scalar(const struct shape *s)
{
	return s->kind == SHAPE_INT || s->kind == SHAPE_POINTER;
}

bool shape_merge(struct shape **have, struct shape *add, bool *has_grown)
{
	struct shape *h = *have;

	if (!h) {
		*have = add;
		*has_grown = true;
		return true;
	}
	if (is_scalar(h) && is_scalar(add))
		return merge_scalar(h, add, has_grown);
	if (h->kind != add->kind)
		return false;
	switch (h->kind) {
	case SHAPE_STRING:
	case SHAPE_BYTES:
		if (add->n > h->n) {
			h->n = add->n;
			set_size(h);
			*has_grown = true;
		}
		return true;
	case SHAPE_TUPLE:
		return merge_tuple(h, add, has_grown);
	case SHAPE_SUM:
	case SHAPE_MIN:
	case SHAPE_MAX:
	case SHAPE_AVG:
	case SHAPE_STATS:
		*has_grown |= add->is_signed && !h->is_signed;
		h->is_signed |= add->is_signed;
		return true;
	case SHAPE_USTACK:
	case SHAPE_KSTACK:
	case SHAPE_STRUCT:
	case SHAPE_FLOAT:
	case SHAPE_LHIST:
		return shape_is_same(h, add);
	case SHAPE_HIST:
		return add->n == h->n;
	case SHAPE_TSERIES:
		if (h->min != add->min || h->max != add->max || h->step != add->step)
			return false;
		*has_grown |= add->is_signed && !h->is_signed;
		h->is_signed |= add->is_signed;
		return true;
	default:
		return true;
	}
}

static const char *const kind_names[] = {
	[SHAPE_NONE] = "nothing",
	[SHAPE_INT] = "int",
	[SHAPE_POINTER] = "pointer",
	[SHAPE_FLOAT] = "float",
	[SHAPE_STRING] = "string",
	[SHAPE_BYTES] = "buf",
	[SHAPE_USTACK] = "ustack",
	[SHAPE_KSTACK] = "kstack",
	[SHAPE_USYM] = "usym",
	[SHAPE_KSYM] = "ksym",
	[SHAPE_PROBE] = "probe",
	[SHAPE_FUNC] = "func",
	[SHAPE_TIME] = "strftime",
	[SHAPE_INET] = "ntop",
	[SHAPE_NAME] = "name",
	[SHAPE_STRUCT] = "struct",
	[SHAPE_TUPLE] = "tuple",
};

void shape_print(const struct shape *s, struct buf *out)
{
	if (s->kind == SHAPE_TUPLE) {
		for (uint32_t i = 0; i < s->n_fields; i++) {
			buf_put_cstr(out, i ? ", " : "(");
			shape_print(s->fields[i].shape, out);
		}
		buf_put_cstr(out, ")");
		return;
	}
	buf_put_cstr(out, shape_is_aggregation(s)
				  ? aggregation_name((enum aggregation)(
					    AGGREGATION_COUNT + (s->kind - SHAPE_COUNT)))
				  : kind_names[s->kind]);
	if (s->kind == SHAPE_STRING || s->kind == SHAPE_BYTES)
		buf_printf(out, "[%u]", s->n);
}
