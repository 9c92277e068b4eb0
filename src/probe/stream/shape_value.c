/* SPDX-License-Identifier: MIT */
/* Values of aggregations added up: of several CPUs, of several keys. */
#include "probe/stream/shape.h"

/* MIN, MAX: {n, value}; n = 0 means that nothing was seen. */
static void merge_extreme(uint64_t *sum, const uint64_t *one, const struct shape *shape)
{
	bool is_less = shape->is_signed ? (int64_t)one[1] < (int64_t)sum[1] : one[1] < sum[1];

	if (!one[0])
		return;
	if (!sum[0] || (one[1] != sum[1] && is_less == (shape->kind == SHAPE_MIN)))
		sum[1] = one[1];
	sum[0] += one[0];
}

/* Of two intervals that share a slot the later one stays. */
static void merge_slot(
	struct tseries_slot *sum, const struct tseries_slot *one, const struct shape *shape)
{
	bool is_less = shape->is_signed ? (int64_t)one->value < (int64_t)sum->value
					: one->value < sum->value;

	if (!one->n || (sum->n && one->interval < sum->interval))
		return;
	if (!sum->n || one->interval > sum->interval) {
		*sum = *one;
		return;
	}
	switch ((enum tseries_function)shape->min) {
	case TSERIES_LAST:
		if (one->last_ns <= sum->last_ns)
			break;
		sum->last_ns = one->last_ns;
		sum->value = one->value;
		break;
	case TSERIES_MIN:
	case TSERIES_MAX:
		if (one->value != sum->value && is_less == (shape->min == TSERIES_MIN))
			sum->value = one->value;
		break;
	default:
		sum->value += one->value;
		break;
	}
	sum->n += one->n;
}

static void merge_series(uint64_t *sum, const uint64_t *one, const struct shape *shape)
{
	struct tseries_slot *to = (void *)sum;
	const struct tseries_slot *from = (const void *)one;

	for (size_t i = 0; i < shape->size / sizeof(*to); i++)
		merge_slot(&to[i], &from[i], shape);
}

void shape_add_value(const struct shape *s, uint64_t *sum, const uint64_t *one)
{
	if (s->kind == SHAPE_MIN || s->kind == SHAPE_MAX) {
		merge_extreme(sum, one, s);
		return;
	}
	if (s->kind == SHAPE_TSERIES) {
		merge_series(sum, one, s);
		return;
	}
	for (size_t i = 0; i < s->size / 8; i++)
		sum[i] += one[i];
}
