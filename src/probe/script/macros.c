/* SPDX-License-Identifier: MIT */
#include "probe/script/macros.h"

#include "base/arena.h"

#define NODES_MAX 200000 /* of all bodies together, once they stand where they are used */
#define DEPTH_MAX 400	 /* as deep as the checker follows */

/* The uses of macros that a piece of the tree is in, the innermost first. */
struct macro_scope {
	const struct macro *macro;
	uint32_t instance;		 /* behind the names of its variables */
	uint32_t use;			 /* for places */
	const struct expr *const *given; /* for each parameter, in terms of the clause */
	const struct macro_scope *outer;
};

struct expander {
	struct script *script;
	struct diags *diags;
	struct arena *arena;
	language_has_fn *language_has;
	uint32_t n_instances, n_nodes, depth;
	bool is_stopped; /* a limit was passed: the rest stays as it is */
};

/* `scope` NULL: a copy of what was expanded already. */
static struct expr *copy_expr(
	struct expander *x, const struct expr *e, const struct macro_scope *scope);
static struct stmt *copy_stmts(
	struct expander *x, const struct stmt *s, const struct macro_scope *scope);

/* --- names ------------------------------------------------------------------------------------ */

/* What is given for a parameter of the macro; NULL when it has none of that kind and name. */
static const struct expr *find_given(
	const struct macro_scope *scope, enum parameter_kind kind, const char *name)
{
	const struct macro_parameter *p = scope && scope->macro ? scope->macro->parameters : NULL;

	if (scope && scope->macro && scope->macro->is_function)
		return NULL; /* they are variables of its own */
	for (uint32_t i = 0; p; p = p->next, i++)
		if (p->kind == kind && !strcmp(p->name, name))
			return scope->given[i];
	return NULL;
}

static const char *local_name(
	const struct expander *x, const struct macro_scope *scope, const char *name)
{
	const struct expr *given = find_given(scope, PARAMETER_LOCAL, name);

	if (given)
		return given->name;
	return scope && scope->macro ? arena_printf(x->arena, "%s#%u", name, scope->instance)
				     : name;
}

static const char *map_name(
	struct expander *x, const struct macro_scope *scope, const struct expr *e)
{
	const struct expr *given = find_given(scope, PARAMETER_MAP, e->name);

	if (given)
		return given->name;
	if (scope && scope->macro && !scope->macro->is_function) {
		diag_error(x->diags, e->place, "macro", "the macro %s() has no map @%s",
			scope->macro->name, e->name);
		diag_hint(x->diags, "hand it over: macro %s(@%s)", scope->macro->name, e->name);
	}
	return e->name;
}

static void mark(struct place *place, const struct macro_scope *scope)
{
	if (scope && scope->use)
		place->use = scope->use;
}

/* --- which macro is meant --------------------------------------------------------------------- */

static bool fits(const struct macro_parameter *p, const struct expr *given)
{
	switch (p->kind) {
	case PARAMETER_LOCAL:
		return given->kind == EXPR_LOCAL;
	case PARAMETER_MAP:
		return given->kind == EXPR_MAP && !given->n_args;
	default:
		return true;
	}
}

/* How well a macro suits: parameters that take nothing else count; negative when it does not. */
static int suits(const struct macro *m, const struct expr *const *given)
{
	const struct macro_parameter *p = m->parameters;
	int n = 0;

	for (uint32_t i = 0; p && !m->is_function; p = p->next, i++) {
		if (!fits(p, given[i]))
			return -1;
		n += p->kind != PARAMETER_VALUE;
	}
	return n;
}

/* Whether any macro has that name and takes so many arguments; so it stands before the builtin. */
static bool is_macro(const struct expander *x, const char *name, uint32_t n_args, bool *has_name)
{
	*has_name = false;
	for (const struct macro *m = x->script->macros; m; m = m->next) {
		if (strcmp(m->name, name))
			continue;
		*has_name = true;
		if (m->n_parameters == n_args)
			return true;
	}
	return false;
}

static const struct macro *choose(
	const struct expander *x, const struct expr *e, const struct expr *const *given)
{
	const struct macro *best = NULL;
	int best_suits = -1;

	for (const struct macro *m = x->script->macros; m; m = m->next) {
		int n = strcmp(m->name, e->name) || m->n_parameters != e->n_args ? -1
										 : suits(m, given);

		if (n > best_suits) {
			best = m;
			best_suits = n;
		}
	}
	return best;
}

/* None of that name and number of parameters takes what is given. */
static void refuse_given(struct expander *x, const struct expr *e, const struct expr *const *given)
{
	const struct macro *m = x->script->macros;
	const struct macro_parameter *p;
	const struct expr *written = e->args;
	uint32_t i = 0;

	while (strcmp(m->name, e->name) || m->n_parameters != e->n_args)
		m = m->next;
	for (p = m->parameters; fits(p, given[i]); p = p->next, i++)
		written = written->next;
	diag_error(x->diags, written->place, "macro",
		"the parameter %s%s of %s() takes a %s, and this is none",
		p->kind == PARAMETER_LOCAL ? "$" : "@", p->name, m->name,
		p->kind == PARAMETER_LOCAL ? "variable such as $x"
					   : "map such as @x, without keys");
}

static void refuse_count(struct expander *x, const struct expr *e)
{
	const struct macro *m = x->script->macros;

	while (strcmp(m->name, e->name))
		m = m->next;
	diag_error(x->diags, e->place, "arguments", "%s() takes %u argument%s, and here %s %u",
		e->name, m->n_parameters, m->n_parameters == 1 ? "" : "s",
		e->n_args == 1 ? "is" : "are", e->n_args);
}

/* --- a use ------------------------------------------------------------------------------------ */

static struct expr *node_new(struct expander *x, enum expr_kind kind, struct place place)
{
	struct expr *e = arena_zalloc(x->arena, sizeof(*e));

	e->kind = kind;
	e->place = place;
	return e;
}

static struct expr *local_new(struct expander *x, const char *name, struct place place)
{
	struct expr *e = node_new(x, EXPR_LOCAL, place);

	e->name = name;
	return e;
}

static bool uses_itself(struct expander *x, const struct expr *e, const struct macro *m,
	const struct macro_scope *in)
{
	for (const struct macro_scope *s = in; s; s = s->outer) {
		if (s->macro != m)
			continue;
		diag_error(x->diags, e->place, "macro", "%s() uses itself: it would never end",
			m->name);
		return true;
	}
	return false;
}

/* let $NAME : DECL [= value]; */
static struct stmt *let_new(struct expander *x, const char *name, struct decl_type *decl,
	struct expr *value, struct place place)
{
	struct stmt *s = arena_zalloc(x->arena, sizeof(*s));

	s->kind = STMT_LET;
	s->a = local_new(x, name, place);
	s->name = name;
	s->decl = decl;
	s->b = value;
	s->place = place;
	return s;
}

static bool has_result(const struct macro *m)
{
	return m->result && m->result->kind != DECL_VOID;
}

/* What a function gives that ends without return. */
static struct expr *empty_value(struct expander *x, const struct decl_type *type)
{
	struct expr *e = node_new(x, EXPR_INT, type->place);

	if (type->kind == DECL_STRING) {
		e->kind = EXPR_STRING;
		e->text = "";
	}
	return e;
}

/* A word of the language is no name of a variable, so it is free for this. */
static struct expr *return_variable(struct expander *x, const struct macro_scope *function)
{
	return local_new(x, local_name(x, function, "return"), function->macro->place);
}

/* return VALUE; of a function: the variable gets it. */
static void copy_return(struct expander *x, struct stmt *copy, const struct macro_scope *scope)
{
	struct expr *assign;

	while (scope && scope->macro && !scope->macro->is_function)
		scope = scope->outer;
	if (!scope || !scope->macro || !copy->a)
		return;
	if (!has_result(scope->macro)) {
		diag_error(x->diags, copy->a->place, "type",
			"%s() has no result type, so it gives nothing", scope->macro->name);
		diag_hint(
			x->diags, "fn %s(...) : int64 { ... } gives a number", scope->macro->name);
		return;
	}
	assign = node_new(x, EXPR_ASSIGN, copy->a->place);
	assign->a = return_variable(x, scope);
	assign->b = copy->a;
	copy->a = assign;
}

/* The body of a function between its parameters and its result. */
static struct expr *function_body(
	struct expander *x, const struct expr *e, const struct macro_scope *scope)
{
	const struct macro *m = scope->macro;
	struct expr *block = node_new(x, EXPR_BLOCK, e->place);
	struct stmt **next = &block->body;
	uint32_t i = 0;

	block->is_function = true;
	for (const struct macro_parameter *p = m->parameters; p; p = p->next, i++) {
		*next = let_new(x, local_name(x, scope, p->name), p->decl,
			copy_expr(x, scope->given[i], NULL), p->place);
		next = &(*next)->next;
	}
	if (has_result(m)) {
		block->a = return_variable(x, scope);
		*next = let_new(x, block->a->name, m->result, empty_value(x, m->result), m->place);
		next = &(*next)->next;
	}
	*next = copy_stmts(x, m->body->kind == EXPR_BLOCK ? m->body->body : NULL, scope);
	return block;
}

/* What stands for NAME or NAME(ARGUMENTS). */
static struct expr *put_in(
	struct expander *x, const struct expr *e, const struct macro_scope *scope)
{
	const struct expr **given = arena_zalloc(x->arena, (e->n_args + 1) * sizeof(*given));
	struct macro_scope inner = {.given = given, .outer = scope};
	uint32_t i = 0;

	for (const struct expr *a = e->args; a; a = a->next)
		given[i++] = copy_expr(x, a, scope);
	inner.macro = choose(x, e, given);
	if (!inner.macro) {
		refuse_given(x, e, given);
		return node_new(x, EXPR_INT, e->place);
	}
	if (uses_itself(x, e, inner.macro, scope))
		return node_new(x, EXPR_INT, e->place);
	inner.instance = ++x->n_instances;
	inner.use = diags_add_use(x->diags, inner.macro->name, e->place);
	if (inner.macro->is_function)
		return function_body(x, e, &inner);
	return copy_expr(x, inner.macro->body, &inner);
}

/* pid, pid() and strlen("x") are of the language. */
static bool language_has(const struct expander *x, const struct expr *e)
{
	bool is_call = e->kind == EXPR_CALL;

	return x->language_has(e->name, is_call) ||
	       (is_call && !e->n_args && x->language_has(e->name, false));
}

/* NULL when it means no macro. */
static struct expr *expand(
	struct expander *x, const struct expr *e, const struct macro_scope *scope)
{
	const struct expr *given =
		e->kind == EXPR_NAME ? find_given(scope, PARAMETER_VALUE, e->name) : NULL;
	bool is_call = e->kind == EXPR_CALL, has_name;
	struct expr at;

	if (given)
		return copy_expr(x, given, NULL);
	if ((!is_call && e->kind != EXPR_NAME) || x->is_stopped)
		return NULL;
	at = *e;
	mark(&at.place, scope);
	if (is_macro(x, e->name, e->n_args, &has_name))
		return put_in(x, &at, scope);
	if (has_name && !language_has(x, e)) {
		refuse_count(x, &at);
		return node_new(x, EXPR_INT, e->place);
	}
	return NULL;
}

/* --- copying ---------------------------------------------------------------------------------- */

static struct decl_type *copy_decl(
	struct expander *x, struct decl_type *decl, const struct macro_scope *scope)
{
	struct decl_type *copy;

	if (!decl || (!decl->of && decl->kind != DECL_TYPEOF))
		return decl;
	copy = arena_dup(x->arena, decl, sizeof(*decl));
	copy->of = copy_decl(x, decl->of, scope);
	if (decl->kind == DECL_TYPEOF)
		copy->of_value = copy_expr(x, decl->of_value, scope);
	return copy;
}

static struct expr *copy_parts(
	struct expander *x, const struct expr *e, const struct macro_scope *scope)
{
	struct expr *copy = arena_dup(x->arena, e, sizeof(*e)), **next = &copy->args;

	copy->next = NULL;
	mark(&copy->place, scope);
	if (scope && e->kind == EXPR_LOCAL)
		copy->name = local_name(x, scope, e->name);
	if (scope && e->kind == EXPR_MAP)
		copy->name = map_name(x, scope, copy);
	copy->a = copy_expr(x, e->a, scope);
	copy->b = copy_expr(x, e->b, scope);
	copy->c = copy_expr(x, e->c, scope);
	for (const struct expr *a = e->args; a; a = a->next) {
		*next = copy_expr(x, a, scope);
		(*next)->label = a->label;
		next = &(*next)->next;
	}
	copy->body = copy_stmts(x, e->body, scope);
	/* Statements may declare what the value is: their names are the same. */
	copy->decl = copy_decl(x, e->decl, scope);
	return copy;
}

static void stop(
	struct expander *x, struct place place, const char *tag, const char *sentence, int n)
{
	if (!x->is_stopped)
		diag_error(x->diags, place, tag, sentence, n);
	x->is_stopped = true;
}

static struct expr *copy_expr(
	struct expander *x, const struct expr *e, const struct macro_scope *scope)
{
	struct expr *copy = NULL;

	if (!e)
		return NULL;
	if (++x->n_nodes > NODES_MAX)
		stop(x, e->place, "size", "macros make more than %d expressions of the script",
			NODES_MAX);
	if (++x->depth > DEPTH_MAX)
		stop(x, e->place, "nesting", "macros make more than %d levels of expressions",
			DEPTH_MAX);
	if (x->is_stopped) {
		x->depth--;
		return node_new(x, EXPR_INT, e->place);
	}
	if (scope)
		copy = expand(x, e, scope);
	if (!copy)
		copy = copy_parts(x, e, scope);
	x->depth--;
	return copy;
}

static struct stmt *copy_stmts(
	struct expander *x, const struct stmt *s, const struct macro_scope *scope)
{
	struct stmt *first = NULL, **next = &first;

	for (; s; s = s->next) {
		struct stmt *copy = arena_dup(x->arena, s, sizeof(*s));

		mark(&copy->place, scope);
		copy->a = copy_expr(x, s->a, scope);
		copy->b = copy_expr(x, s->b, scope);
		copy->decl = copy_decl(x, s->decl, scope);
		if (scope && (s->kind == STMT_FOR || s->kind == STMT_FOR_MAP))
			copy->name = local_name(x, scope, s->name);
		else if (s->kind == STMT_LET)
			copy->name = copy->a->name;
		else if (s->kind == STMT_RETURN)
			copy_return(x, copy, scope);
		copy->body = copy_stmts(x, s->body, scope);
		copy->other = copy_stmts(x, s->other, scope);
		copy->next = NULL;
		*next = copy;
		next = &copy->next;
	}
	return first;
}

void macros_expand(struct script *s, language_has_fn *has, struct diags *diags)
{
	static const struct macro_scope outermost;
	struct expander x = {.script = s, .diags = diags, .arena = s->arena, .language_has = has};

	if (!s->macros)
		return;
	for (struct clause *c = s->clauses; c; c = c->next) {
		c->predicate = copy_expr(&x, c->predicate, &outermost);
		c->body = copy_stmts(&x, c->body, &outermost);
	}
}
