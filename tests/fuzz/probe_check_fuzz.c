/* SPDX-License-Identifier: MIT */
/* Any bytes as a script, through parser and checker. */
#include "../unit/check_world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* What the lowering relies on: no expression of a checked clause is without a type. */
static void must_have_type(const struct expr *e, enum mode mode)
{
	if (!e->type[mode] || e->type[mode]->kind == TYPE_BAD)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct check_world w;
	char *text = strndup((const char *)data, n);

	check_world_init(&w, text);
	if (check_world_run(&w)) {
		for (const struct clause *c = w.script->clauses; c; c = c->next) {
			if (c->predicate && c->points)
				must_have_type(c->predicate, MODE_64);
			if (c->points && c->body && c->body->kind == STMT_EXPR)
				must_have_type(c->body->a, MODE_64);
		}
		for (size_t i = 0; i < w.s.stream->maps.n; i++) {
			if (!w.s.stream->maps.v[i].key || !w.s.stream->maps.v[i].value)
				abort();
		}
	}
	check_world_release(&w);
	free(text);
	return 0;
}
