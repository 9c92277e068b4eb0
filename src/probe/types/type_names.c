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

	vec_ensure_zero(&names->v, id + 1);
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
	uint8_t bytes[N_MODES];
	bool is_signed;
	const char *names[12]; /* up to a NULL */
} builtin_names[] = {
	{{1, 1}, false, {"u_char"}},
	{{2, 2}, false, {"in_port_t", "sa_family_t", "u_short", "ushort"}},
	{{4, 4}, false,
		{"gid_t", "id_t", "in_addr_t", "mode_t", "socklen_t", "u_int", "uid_t", "uint",
			"useconds_t", "wint_t"}},
	{{4, 4}, true, {"clockid_t", "key_t", "pid_t", "wchar_t"}},
	{{4, 8}, false,
		{"ino_t", "nlink_t", "pthread_t", "size_t", "u_long", "uintptr_t", "ulong"}},
	{{4, 8}, true,
		{"blkcnt_t", "blksize_t", "clock_t", "intptr_t", "off_t", "ptrdiff_t", "ssize_t",
			"suseconds_t", "time_t"}},
	{{8, 8}, false, {"dev_t", "ino64_t"}},
	{{8, 8}, true, {"loff_t", "off64_t"}},
};

const struct type *builtin_named(struct types *t, const char *name)
{
	for (size_t i = 0; i < sizeof(builtin_names) / sizeof(builtin_names[0]); i++)
		for (const char *const *n = builtin_names[i].names; *n; n++)
			if (!strcmp(*n, name))
				return types_named_int(t, name, builtin_names[i].bytes[t->mode],
					builtin_names[i].is_signed);
	return NULL;
}

bool types_enumerator(
	const struct types *t, const char *name, int64_t *value, const struct type **type)
{
	const struct declared *d = names_find(&t->names, name);

	if (!d || d->kind != DECLARED_ENUMERATOR)
		return false;
	*value = d->value;
	*type = d->type;
	return true;
}

bool types_source_enumerator(
	const struct types *t, const char *name, int64_t *value, const struct type **type)
{
	for (size_t i = 0; i < t->n_sources; i++) {
		const struct type_source *s = &t->sources[i];

		if (s->enumerator && s->enumerator(s->ctx, name, value, type))
			return true;
	}
	return false;
}

const struct type *types_declared_function(struct types *t, const char *name)
{
	const struct declared *d = names_find(&t->names, name);

	return d && d->kind == DECLARED_FUNCTION ? d->type : NULL;
}

const struct type *types_function(struct types *t, const char *name)
{
	const struct type *declared = types_declared_function(t, name);

	if (declared)
		return declared;
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

bool types_has_tag(const struct types *t, const char *tag)
{
	const struct declared *d = names_find(&t->tags, tag);

	return d && d->type->is_complete;
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

const struct type *types_kernel_struct(struct types *t, const char *name, enum space space)
{
	const struct type *found = source_named(t,
		space == SPACE_KERNEL ? TYPE_WORD_KERNEL "struct" : TYPE_WORD_HANDED "struct",
		name);

	return found && found->kind == TYPE_STRUCT && found->is_complete ? found : NULL;
}

const struct type *types_kernel_enum(struct types *t, const char *name)
{
	const struct type *found = source_named(t, TYPE_WORD_KERNEL "enum", name);

	return found && found->kind == TYPE_INT && found->is_enum ? found : NULL;
}
