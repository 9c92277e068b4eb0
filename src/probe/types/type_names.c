/* SPDX-License-Identifier: MIT */
/* Names of types: those of the script, of the sources, and those that every C program has. */
#include <stdlib.h>
#include <string.h>

#include "probe/types/type_store.h"

struct declared *names_find(const struct names *names, const char *name)
{
	/* A name that is only asked for gets a key too; it has no entry. */
	uint32_t id = intern_text((struct intern *)&names->keys, name);

	if (id >= names->v.n || names->v.v[id].kind == DECLARED_NOTHING)
		return NULL;
	return &names->v.v[id];
}

struct declared *names_ensure(struct names *names, const char *name)
{
	uint32_t id = intern_text(&names->keys, name);

	while (names->v.n <= id)
		vec_push(&names->v, (struct declared){0});
	return &names->v.v[id];
}

void names_release(struct names *names)
{
	intern_release(&names->keys);
	vec_release(&names->v);
}

const struct type *source_named(const struct types *t, const char *word, const char *name)
{
	const struct type *found = NULL;

	for (size_t i = 0; i < t->n_sources; i++) {
		const struct type_source *s = &t->sources[i];
		const struct type *type = s->named ? s->named(s->ctx, word, name) : NULL;

		if (type && (type->kind != TYPE_STRUCT || type->is_complete))
			return type;
		if (!found)
			found = type;
	}
	return found;
}

const char *tag_name(struct types *t, const struct decl_type *decl)
{
	return arena_printf(t->arena, "%s %s",
		decl->kind == DECL_ENUM ? "enum"
		: decl->is_union	? "union"
					: "struct",
		decl->name);
}

/* Bytes in 32-bit and 64-bit programs as glibc has them without _FILE_OFFSET_BITS and _TIME_BITS;
 * a program built with those has debug information that says so. */
static const struct {
	const char *name;
	uint8_t bytes[N_MODES];
	bool is_signed;
} builtin_names[] = {
	{"blkcnt_t", {4, 8}, true},
	{"blksize_t", {4, 8}, true},
	{"clock_t", {4, 8}, true},
	{"clockid_t", {4, 4}, true},
	{"dev_t", {8, 8}, false},
	{"gid_t", {4, 4}, false},
	{"id_t", {4, 4}, false},
	{"in_addr_t", {4, 4}, false},
	{"in_port_t", {2, 2}, false},
	{"ino64_t", {8, 8}, false},
	{"ino_t", {4, 8}, false},
	{"intptr_t", {4, 8}, true},
	{"key_t", {4, 4}, true},
	{"loff_t", {8, 8}, true},
	{"mode_t", {4, 4}, false},
	{"nlink_t", {4, 8}, false},
	{"off64_t", {8, 8}, true},
	{"off_t", {4, 8}, true},
	{"pid_t", {4, 4}, true},
	{"pthread_t", {4, 8}, false},
	{"ptrdiff_t", {4, 8}, true},
	{"sa_family_t", {2, 2}, false},
	{"size_t", {4, 8}, false},
	{"socklen_t", {4, 4}, false},
	{"ssize_t", {4, 8}, true},
	{"suseconds_t", {4, 8}, true},
	{"time_t", {4, 8}, true},
	{"u_char", {1, 1}, false},
	{"u_int", {4, 4}, false},
	{"u_long", {4, 8}, false},
	{"u_short", {2, 2}, false},
	{"uid_t", {4, 4}, false},
	{"uint", {4, 4}, false},
	{"uintptr_t", {4, 8}, false},
	{"ulong", {4, 8}, false},
	{"useconds_t", {4, 4}, false},
	{"ushort", {2, 2}, false},
	{"wchar_t", {4, 4}, true},
	{"wint_t", {4, 4}, false},
};

const struct type *builtin_named(struct types *t, const char *name)
{
	for (size_t i = 0; i < sizeof(builtin_names) / sizeof(builtin_names[0]); i++)
		if (!strcmp(builtin_names[i].name, name))
			return types_named_int(t, name, builtin_names[i].bytes[t->mode],
				builtin_names[i].is_signed, false);
	return NULL;
}

bool types_enumerator(const struct types *t, const char *name, int64_t *value)
{
	const struct declared *d = names_find(&t->names, name);

	if (!d || d->kind != DECLARED_ENUMERATOR)
		return false;
	*value = d->value;
	return true;
}

bool types_source_enumerator(const struct types *t, const char *name, int64_t *value)
{
	for (size_t i = 0; i < t->n_sources; i++) {
		const struct type_source *s = &t->sources[i];

		if (s->enumerator && s->enumerator(s->ctx, name, value))
			return true;
	}
	return false;
}

const struct type *types_function(struct types *t, const char *name)
{
	const struct declared *d = names_find(&t->names, name);

	if (d && d->kind == DECLARED_FUNCTION)
		return d->type;
	for (size_t i = 0; i < t->n_sources; i++) {
		const struct type_source *s = &t->sources[i];
		const struct type *type = s->function ? s->function(s->ctx, name) : NULL;

		if (type)
			return type;
	}
	return NULL;
}

bool types_variable(struct types *t, const char *name, const struct type **type, uint64_t *iaddr)
{
	const struct declared *d = names_find(&t->names, name);
	bool is_declared = d && d->kind == DECLARED_VARIABLE;
	const struct type *own = is_declared ? d->type : NULL;

	for (size_t i = 0; i < t->n_sources; i++) {
		const struct type_source *s = &t->sources[i];

		if (!s->variable || !s->variable(s->ctx, name, type, iaddr))
			continue;
		if (own)
			*type = own;
		return true;
	}
	if (!own)
		return false;
	*type = own;
	*iaddr = 0;
	return true;
}

const struct type *types_completed(struct types *t, const struct type *type)
{
	const char *space = type->name ? strchr(type->name, ' ') : NULL;
	const char *word = type->is_union ? "union" : "struct";
	const struct declared *d;
	const struct type *found;

	if (type->kind != TYPE_STRUCT || type->is_complete || !space)
		return type;
	d = names_find(&t->tags, space + 1);
	if (d && d->type->kind == TYPE_STRUCT && d->type->is_complete &&
		d->type->is_union == type->is_union)
		return d->type;
	if (type->space == SPACE_KERNEL)
		word = type->is_union ? TYPE_WORD_KERNEL "union" : TYPE_WORD_KERNEL "struct";
	found = source_named(t, word, space + 1);
	return found && found->kind == TYPE_STRUCT && found->is_complete ? found : type;
}
