/* SPDX-License-Identifier: MIT */
#include "probe/stream/stream.h"

#include <stdlib.h>

const struct format_traits format_traits[] = {
	[FORMAT_PRINTF] = {"printf", .has_text = true, .first_arg = 1},
	[FORMAT_PRINT] = {"print", .has_argument = true},
	[FORMAT_JOIN] = {.name = "join"},
	[FORMAT_ERROR] = {.name = "error"},
	[FORMAT_EXIT] = {"exit", .has_argument = true},
	[FORMAT_PRINT_MAP] = {"print", .has_map = true, .first_arg = 1},
	[FORMAT_CLEAR_MAP] = {"clear", .has_map = true, .first_arg = 1},
	[FORMAT_ZERO_MAP] = {"zero", .has_map = true, .first_arg = 1},
	[FORMAT_TIME] = {"time", .has_text = true, .first_arg = 1},
	[FORMAT_CAT] = {"cat", .has_text = true, .first_arg = 1},
	[FORMAT_SYSTEM] = {"system", .has_text = true, .first_arg = 1},
	[FORMAT_ENABLE] = {"enable", .has_argument = true},
	[FORMAT_DISABLE] = {"disable", .has_argument = true},
	[FORMAT_PRINT_ENTRY] = {"print", .has_map = true, .has_argument = true},
	[FORMAT_ERRORF] = {"errorf", .has_text = true, .first_arg = 1},
	[FORMAT_WARNF] = {"warnf", .has_text = true, .first_arg = 1},
};

struct stream *stream_new(void)
{
	struct stream *s = mem_zalloc(sizeof(*s));

	s->arena = arena_new();
	return s;
}

void stream_free(struct stream *s)
{
	if (!s)
		return;
	sources_release(&s->sources);
	vec_release(&s->clauses);
	vec_release(&s->points);
	vec_release(&s->maps);
	vec_release(&s->formats);
	vec_release(&s->strings);
	for (int mode = 0; mode < N_MODES; mode++) {
		vec_release(&s->code[mode]);
		vec_release(&s->lines[mode]);
	}
	arena_free(s->arena);
	free(s);
}
