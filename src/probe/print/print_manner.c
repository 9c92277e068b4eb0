/* SPDX-License-Identifier: MIT */
#include "probe/print/print_manner.h"

static const struct print_manner manners[N_STREAM_LIKES] = {
	[STREAM_LIKE_0_26] = {.version = "0.26"},
	[STREAM_LIKE_0_17] = {.version = "0.17",
		.has_decimal_pointers = true,
		.has_plain_numbers = true,
		.has_stats_in_words = true,
		.has_tight_keys = true,
		.has_spaced_objects = true,
		.has_signed_keys = true,
		.has_int_sign = true,
		.has_maps_by_name = true,
		.has_empty_maps = true,
		.has_blank_averages = true,
		.has_blank_after_name = true,
		.has_blank_end = true,
		.says_attaching = true,
		.has_old_points = true,
		.has_old_failures = true},
};

const struct print_manner *print_manner_of(const struct stream *s)
{
	return &manners[s ? s->like : STREAM_LIKE_0_26];
}
