/* SPDX-License-Identifier: MIT */
/* Any bytes as a script. */
#include <stdlib.h>

#include "../unit/script_print.h"
#include "probe/script/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_expr(const struct expr *e, size_t n)
{
	if (!e)
		return;
	if (!e->height || e->height > SCRIPT_NESTING_MAX || e->place.to > n ||
		e->place.from > e->place.to)
		abort();
	check_expr(e->a, n);
	check_expr(e->b, n);
	check_expr(e->c, n);
	for (const struct expr *arg = e->args; arg; arg = arg->next) {
		if (arg->height >= e->height)
			abort();
		check_expr(arg, n);
	}
}

static void check_statements(const struct stmt *s, size_t n, int depth)
{
	for (; s; s = s->next) {
		if (depth > SCRIPT_NESTING_MAX)
			abort();
		/* What the checker and the lowering rely on. */
		if ((s->kind == STMT_EXPR || s->kind == STMT_IF || s->kind == STMT_FOR_MAP) &&
			!s->a)
			abort();
		check_expr(s->a, n);
		check_expr(s->b, n);
		check_statements(s->body, n, depth + 1);
		check_statements(s->other, n, depth + 1);
	}
}

static void check_messages(const struct diags *d, size_t n)
{
	struct buf out = {0};

	for (size_t i = 0; i < d->v.n; i++)
		if (d->v.v[i].place.to > n || d->v.v[i].place.from > d->v.v[i].place.to)
			abort();
	diags_text(d, &out);
	if ((out.n == 0) != (d->n_errors + d->n_warnings == 0))
		abort();
	diags_json(d, &out);
	buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const char *const words[] = {"12", "abc", "-3"};
	static const char *const named[] = {"--a=5", "--text=x", "--on"};
	static const struct script_parameters parameters = {words, 3, named, 3, false};
	struct sources sources = {0};
	struct diags diags;
	struct script *s;
	struct buf out = {0};

	sources_add(&sources, "fuzz", (struct span){data, n});
	diags_init(&diags, &sources);
	s = script_parse(&sources, &parameters, &diags);
	if (!diags.n_errors && !s->n_clauses)
		abort();
	for (const struct clause *c = s->clauses; c; c = c->next) {
		if (!c->points || c->place.to > n)
			abort();
		check_expr(c->predicate, n);
		check_statements(c->body, n, 0);
	}
	check_messages(&diags, n);
	script_print(s, &out);
	buf_release(&out);
	script_free(s);
	diags_release(&diags);
	sources_release(&sources);
	return 0;
}
