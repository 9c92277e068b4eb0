/* SPDX-License-Identifier: MIT */
/* Names: builtins (builtin.h), enumerators, globals of the probed program. */
#include <assert.h>
#include <string.h>

#include "probe/compile/checker.h"
#include "probe/points/point_kind.h"

const char *check_point_text(const struct check_clause *c)
{
	return c->point->spec.text ? c->point->spec.text : "this trace point";
}

/* --- globals ---------------------------------------------------------------------------------- */

static bool has_globals(const struct check_clause *c)
{
	return point_has(c->point->spec.kind, POINT_IN_FILES);
}

static const struct type *check_global(struct check_clause *c, struct expr *e)
{
	struct global_use *g;
	const struct type *type;
	uint64_t iaddr;

	if (!has_globals(c) || !types_variable(check_types(c), e->name, &type, &iaddr) || !iaddr)
		return NULL;
	type = types_completed(check_types(c), type);
	g = arena_zalloc(c->session->arena, sizeof(*g));
	*g = (struct global_use){.name = e->name, .iaddr = iaddr, .type = type};
	check_mean(c, e, MEANING_GLOBAL)->global = g;
	if (type->kind == TYPE_STRUCT && !type->is_complete)
		return check_refuse(c, e->place, "incomplete",
			"'%s' is a %s, whose fields are not known", e->name, type_text(c, type));
	return type;
}

static const struct type *unknown_name(struct check_clause *c, struct expr *e)
{
	check_error(c, e->place, "unknown-name", "'%s' is not known", e->name);
	if (!check_hint_builtin(c, e) && !has_globals(c))
		check_hint(c,
			"variables are written $%s (of the clause), self->%s (of the thread) or @%s",
			e->name, e->name, e->name);
	return check_bad(c);
}

/* `type`: its enum, or NULL when that is not known. */
static const struct type *enumerator(
	struct check_clause *c, struct expr *e, int64_t value, const struct type *type)
{
	check_mean(c, e, MEANING_CONSTANT);
	if (check_is_like_0_17(c)) /* a number */
		type = NULL;
	return check_set_constant(c, e, type ? type : check_int(c, 8, true), (uint64_t)value);
}

const struct type *check_name(struct check_clause *c, struct expr *e)
{
	const struct type *type = check_builtin_name(c, e), *of;
	int64_t value;

	if (type)
		return type;
	if (types_enumerator(check_types(c), e->name, &value, &of))
		return enumerator(c, e, value, of);
	type = check_global(c, e);
	if (type)
		return type;
	if (types_source_enumerator(check_types(c), e->name, &value, &of))
		return enumerator(c, e, value, of);
	if (check_known_constant(c->mode, e->name, &value))
		return enumerator(c, e, value, NULL);
	return unknown_name(c, e);
}

/* --- C types in tables ------------------------------------------------------------------------ */

const struct type *check_struct_named(struct types *types, const char *word, const char *tag)
{
	struct sources none = {0};
	struct diags ignored;
	struct decl_type decl = {.kind = DECL_STRUCT, .name = tag};
	const struct type *type;

	decl.is_union = !strcmp(word, "union");
	if (!*word)
		decl.kind = DECL_NAMED;
	diags_init(&ignored, &none);
	type = types_of_decl(types, &decl, SPACE_USER, &ignored);
	diags_release(&ignored);
	return type->kind == TYPE_BAD ? NULL : type;
}

/* What the table of system calls has (probe/points/syscall_args.def). */
static const struct {
	const char *name;
	uint8_t bytes; /* 0: a long of the mode */
	bool is_signed;
} c_ints[] = {
	{"int", 4, true},
	{"unsigned int", 4, false},
	{"unsigned short", 2, false},
	{"long", 0, true},
	{"unsigned long", 0, false},
	{"size_t", 0, false},
	{"long long", 8, true},
	{"unsigned long long", 8, false},
};

static const struct type *base_type(struct types *t, const char *name, size_t n)
{
	if (n == 4 && !memcmp(name, "void", n))
		return types_void(t);
	if (n == 4 && !memcmp(name, "char", n))
		return types_char(t);
	for (size_t i = 0; i < sizeof(c_ints) / sizeof(c_ints[0]); i++) {
		if (strlen(c_ints[i].name) != n || memcmp(name, c_ints[i].name, n))
			continue;
		return c_ints[i].bytes ? types_int(t, c_ints[i].bytes, c_ints[i].is_signed)
				       : types_long(t, c_ints[i].is_signed);
	}
	assert(!"a type of the table");
	return types_void(t);
}

const struct type *check_c_type(struct types *types, const char *text)
{
	const char *name = text + (strncmp(text, "const ", 6) ? 0 : 6), *star = strchr(name, '*');
	const struct type *type =
		base_type(types, name, star ? (size_t)(star - name) - 1 : strlen(name));

	for (; star && *star; star++)
		type = types_pointer(types, type, SPACE_USER);
	return type;
}
