/* SPDX-License-Identifier: MIT */
/* Declarations of maps before the clauses. */
#include <string.h>

#include "probe/script/parser.h"

#define ENTRIES_MAX (1u << 28) /* as max_map_keys */

static const struct {
	const char *word;
	bool is_lru, is_per_cpu;
} kinds[] = {
	{"hash", false, false},
	{"lruhash", true, false},
	{"percpuhash", false, true},
	{"percpulruhash", true, true},
};
#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

static void parse_kind(struct parser *p, struct map_decl *d)
{
	for (size_t i = 0; i < N_KINDS; i++) {
		if (!parser_accept_word(p, kinds[i].word))
			continue;
		d->is_lru = kinds[i].is_lru;
		d->is_per_cpu = kinds[i].is_per_cpu;
		return;
	}
	parser_error(p, parser_here(p), "declaration",
		"a map is hash(N), lruhash(N), percpuhash(N) or percpulruhash(N)");
}

static void parse_entries(struct parser *p, struct map_decl *d)
{
	struct expr *n = parse_conditional(p);

	if (p->panic)
		return;
	if (n->kind != EXPR_INT || n->value < 1 || n->value > ENTRIES_MAX)
		parser_error(p, n->place, "range", "the entries of a map are a number from 1 to %u",
			ENTRIES_MAX);
	else
		d->max_entries = (uint32_t)n->value;
}

static void add(struct parser *p, struct map_decl *d)
{
	struct map_decl **at = &p->script->map_decls;

	for (; *at; at = &(*at)->next)
		if (!strcmp((*at)->name, d->name))
			parser_error(p, d->place, "duplicate", "@%s is declared twice", d->name);
	*at = d;
}

/* map declaration = "let" map "=" kind "(" number ")" ";" */
void parse_map_decl(struct parser *p)
{
	struct map_decl *d = arena_zalloc(p->arena, sizeof(*d));
	uint32_t from = p->token.from;
	struct token open;

	parser_take(p);
	d->name = parser_text(p, p->token, 1);
	parser_take(p);
	parser_expect(p, '=', "'=' and the kind of the map");
	parse_kind(p, d);
	open = p->token;
	parser_expect(p, '(', "'(' and the number of entries");
	parse_entries(p, d);
	parser_expect_closing(p, ')', open);
	d->place = parser_since(p, from);
	if (!p->panic)
		add(p, d);
	parser_expect(p, ';', "';' after the declaration");
	if (p->panic) {
		parser_skip_to(p, ';', '}');
		parser_accept(p, ';');
	}
}
