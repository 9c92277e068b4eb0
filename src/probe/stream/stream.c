/* SPDX-License-Identifier: MIT */
#include "probe/stream/stream.h"

#include <stdlib.h>

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
