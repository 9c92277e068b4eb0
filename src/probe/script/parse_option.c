/* SPDX-License-Identifier: MIT */
/*
 * Named parameters: getopt("name", default, "what it is for") is the value of --name=value among the words behind
 * the script, or the default, whose kind is that of the option. It is a constant from here on.
 */
#include <string.h>

#include "base/buf.h"
#include "probe/script/parser.h"

/* "VALUE", "" for a lone --NAME, NULL when it is not given; the last one counts. */
static const char *given_value(const struct parser *p, const char *name, bool *has_value)
{
	const char *value = NULL;
	size_t n = strlen(name);

	for (size_t i = 0; i < p->parameters->n_named; i++) {
		const char *word = p->parameters->named[i] + 2;

		if (strncmp(word, name, n) || (word[n] && word[n] != '='))
			continue;
		*has_value = word[n] == '=';
		value = word + n + *has_value;
	}
	return value;
}

/* Of the source, for the usage. */
static const char *source_text(struct parser *p, struct place place)
{
	return arena_strndup(p->arena, p->lexer.text + place.from, place.to - place.from);
}

/* --- the value -------------------------------------------------------------------------------- */

static void set_number(struct parser *p, struct expr *e, const char *name, const char *value)
{
	bool is_negative = *value == '-';
	const char *digits = value + is_negative, *why = "has no digits";

	if (!*digits || !literal_number(digits, strlen(digits), &e->value, &e->is_unsigned, &why) ||
		(is_negative && e->value > (uint64_t)INT64_MAX + 1)) {
		diag_error(p->diags, e->place, "parameter", "--%s=%s: a number is needed", name,
			value);
	} else if (is_negative) {
		e->value = -e->value;
		e->is_unsigned = false;
	}
	e->kind = EXPR_INT;
}

static void set_bool(
	struct parser *p, struct expr *e, const char *name, const char *value, bool has_value)
{
	bool is_true = !has_value || !strcasecmp(value, "true") || !strcmp(value, "1");

	if (!is_true && strcasecmp(value, "false") && strcmp(value, "0"))
		diag_error(p->diags, e->place, "parameter", "--%s=%s: true or false is needed",
			name, value);
	e->kind = EXPR_INT;
	e->is_bool = true;
	e->value = is_true;
}

static void set_text(struct parser *p, struct expr *e, const char *value)
{
	e->kind = EXPR_STRING;
	e->text_n = strlen(value);
	e->text = arena_strndup(p->arena, value, e->text_n);
}

/* The place of the call stays. */
static struct expr *set_given(struct parser *p, struct expr *e, const struct script_option *o,
	const char *value, bool has_value)
{
	e->args = NULL;
	e->n_args = 0;
	e->is_unsigned = false;
	if (o->kind != OPTION_IS_BOOL && !has_value)
		diag_error(p->diags, e->place, "parameter", "--%s needs a value: --%s=%s", o->name,
			o->name, o->kind == OPTION_IS_TEXT ? "TEXT" : "NUMBER");
	if (o->kind == OPTION_IS_BOOL)
		set_bool(p, e, o->name, value, has_value);
	else if (o->kind == OPTION_IS_TEXT)
		set_text(p, e, value);
	else if (has_value)
		set_number(p, e, o->name, value);
	else
		e->kind = EXPR_INT;
	return e;
}

/* --- the option ------------------------------------------------------------------------------- */

/* What a literal default is; false when it is none. -1 is two nodes. */
static bool kind_of_default(struct expr *unset, enum option_of_script *kind)
{
	bool is_signed_number =
		unset->kind == EXPR_UNARY && unset->op == OP_NEGATE && unset->a->kind == EXPR_INT;

	*kind = unset->kind == EXPR_STRING ? OPTION_IS_TEXT
		: unset->is_bool	   ? OPTION_IS_BOOL
					   : OPTION_IS_NUMBER;
	return unset->kind == EXPR_STRING || unset->kind == EXPR_INT || is_signed_number;
}

static struct script_option *find_option(struct parser *p, const char *name)
{
	for (struct script_option *o = p->script->options; o; o = o->next)
		if (!strcmp(o->name, name))
			return o;
	return NULL;
}

static struct script_option *add_option(struct parser *p, const char *name)
{
	struct script_option **last = &p->script->options;

	while (*last)
		last = &(*last)->next;
	*last = arena_zalloc(p->arena, sizeof(**last));
	(*last)->name = name;
	return *last;
}

/* The arguments as they should be; false, and a message. */
static bool check_arguments(struct parser *p, const struct expr *call)
{
	const struct expr *name = call->args, *unset = name ? name->next : NULL,
			  *help = unset ? unset->next : NULL;

	if (p->panic)
		return false;
	if (name && name->kind == EXPR_STRING && name->text_n && call->n_args <= 3 &&
		(!help || help->kind == EXPR_STRING))
		return true;
	diag_error(p->diags, call->place, "parameter",
		"getopt() takes the name of an option as a text");
	return diag_hint(p->diags, "getopt(\"NAME\" [, DEFAULT [, \"WHAT IT IS FOR\"]])");
}

struct expr *option_value(struct parser *p, struct expr *call)
{
	struct expr *unset = call->args ? call->args->next : NULL;
	enum option_of_script kind = OPTION_IS_BOOL;
	bool has_value = false;
	struct script_option *o;
	const char *given;

	if (!check_arguments(p, call))
		return expr_nothing(p);
	if (unset && !kind_of_default(unset, &kind)) {
		diag_error(p->diags, unset->place, "parameter",
			"the default of an option is a number, a text, true or false");
		return expr_nothing(p);
	}
	o = find_option(p, call->args->text);
	if (o && o->kind != kind)
		diag_error(p->diags, call->place, "parameter",
			"the option --%s has a default of another kind elsewhere", o->name);
	if (!o) {
		o = add_option(p, call->args->text);
		o->kind = kind;
		o->unset = unset ? source_text(p, unset->place) : "false";
	}
	if (unset && unset->next)
		o->help = unset->next->text;
	given = given_value(p, o->name, &has_value);
	if (given)
		return set_given(p, call, o, given, has_value);
	if (unset) {
		unset->next = NULL;
		return unset;
	}
	set_bool(p, call, o->name, "false", true);
	call->args = NULL;
	call->n_args = 0;
	return call;
}

/* --- all of them ------------------------------------------------------------------------------ */

static void put_option(struct buf *b, const struct script_option *o)
{
	static const char *const values[] = {
		[OPTION_IS_BOOL] = "", [OPTION_IS_NUMBER] = "=NUMBER", [OPTION_IS_TEXT] = "=TEXT"};
	size_t at = b->n;

	buf_printf(b, "  --%s%s", o->name, values[o->kind]);
	while (b->n < at + 24)
		buf_put_u8(b, ' ');
	buf_printf(b, " %s%s(%s)\n", o->help ? o->help : "", o->help ? " " : "", o->unset);
}

static const char *usage_of(struct parser *p)
{
	struct buf b = {0};
	const char *usage;

	buf_put_cstr(&b, p->script->options ? "Options of the script, behind --:\n"
					    : "The script has no options.\n");
	for (const struct script_option *o = p->script->options; o; o = o->next)
		put_option(&b, o);
	usage = arena_strndup(p->arena, buf_text(&b), b.n);
	buf_release(&b);
	return usage;
}

static void refuse_unknown(struct parser *p, const char *name)
{
	struct buf known = {0};

	for (const struct script_option *o = p->script->options; o; o = o->next)
		buf_printf(&known, " --%s", o->name);
	diag_error(p->diags, (struct place){UINT32_MAX, 0, 0, 0}, "parameter",
		"the script has no option --%s", name);
	if (known.n)
		diag_hint(p->diags, "it has%s", buf_text(&known));
	else
		diag_hint(p->diags, "getopt(\"%s\") in the script would make it one", name);
	buf_release(&known);
}

void options_check(struct parser *p)
{
	for (size_t i = 0; i < p->parameters->n_named; i++) {
		const char *word = p->parameters->named[i] + 2;
		char *name = arena_strndup(p->arena, word, strcspn(word, "="));

		if (find_option(p, name))
			continue;
		if (!strcmp(name, "help"))
			p->script->usage = usage_of(p);
		else if (!p->diags->n_errors)
			refuse_unknown(p, name); /* else it may be in what is wrong */
	}
}
