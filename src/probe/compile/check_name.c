/* SPDX-License-Identifier: MIT */
/* Names: builtins (builtin.h), enumerators, globals of the probed program. */
#include <ctype.h>
#include <string.h>

#include "probe/compile/checker.h"

const char *check_point_text(const struct check_clause *c)
{
	return c->point->spec.text ? c->point->spec.text : "this trace point";
}

/* --- globals ---------------------------------------------------------------------------------- */

static bool has_globals(const struct check_clause *c)
{
	enum point_kind kind = c->point->spec.kind;

	return kind == POINT_UPROBE || kind == POINT_URETPROBE || kind == POINT_USDT;
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
			"'%s' is a %s, whose fields are not known", e->name,
			check_type_text(c->session, type));
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

static const struct type *enumerator(struct check_clause *c, struct expr *e, int64_t value)
{
	check_mean(c, e, MEANING_CONSTANT);
	return check_set_constant(c, e, check_int(c, 8, true), (uint64_t)value);
}

const struct type *check_name(struct check_clause *c, struct expr *e)
{
	const struct type *type = check_builtin_name(c, e);
	int64_t value;

	if (type)
		return type;
	if (types_enumerator(check_types(c), e->name, &value))
		return enumerator(c, e, value);
	type = check_global(c, e);
	if (type)
		return type;
	if (types_source_enumerator(check_types(c), e->name, &value))
		return enumerator(c, e, value);
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

struct c_word {
	const char *name;
	uint8_t bytes; /* 0: a long of the mode */
	bool is_signed;
};

static const struct c_word c_words[] = {
	{"size_t", 0, false},
	{"ssize_t", 0, true},
	{"off_t", 0, true},
	{"aio_context_t", 0, false},
	{"__kernel_old_time_t", 0, true},
	{"loff_t", 8, true},
	{"u64", 8, false},
	{"__u64", 8, false},
	{"uint64_t", 8, false},
	{"s64", 8, true},
	{"__s64", 8, true},
	{"int64_t", 8, true},
	{"u32", 4, false},
	{"__u32", 4, false},
	{"uint32_t", 4, false},
	{"s32", 4, true},
	{"__s32", 4, true},
	{"int32_t", 4, true},
	{"pid_t", 4, true},
	{"key_t", 4, true},
	{"key_serial_t", 4, true},
	{"clockid_t", 4, true},
	{"timer_t", 4, true},
	{"mqd_t", 4, true},
	{"rwf_t", 4, true},
	{"uid_t", 4, false},
	{"gid_t", 4, false},
	{"qid_t", 4, false},
	{"dev_t", 4, false},
	{"mode_t", 4, false},
	{"u16", 2, false},
	{"umode_t", 2, false},
	{"old_uid_t", 2, false},
	{"old_gid_t", 2, false},
	{"u8", 1, false},
	{"bool", 1, false},
};

struct c_base {
	bool is_unsigned, is_char, is_short, is_void, is_struct;
	uint32_t n_longs;
	const struct c_word *word;
	char tag[64];
};

static void take_word(struct c_base *b, const char *p, size_t n)
{
	char word[64];

	if (n >= sizeof(word))
		return;
	memcpy(word, p, n);
	word[n] = '\0';
	if (b->is_struct && !b->tag[0])
		memcpy(b->tag, word, n + 1);
	b->is_unsigned |= !strcmp(word, "unsigned");
	b->is_char |= !strcmp(word, "char");
	b->is_short |= !strcmp(word, "short");
	b->is_void |= !strcmp(word, "void");
	b->is_struct |= !strcmp(word, "struct") || !strcmp(word, "union");
	b->n_longs += !strcmp(word, "long");
	for (size_t i = 0; i < sizeof(c_words) / sizeof(c_words[0]); i++) {
		if (!strcmp(word, c_words[i].name))
			b->word = &c_words[i];
	}
}

static const struct type *base_type(struct types *t, const struct c_base *b)
{
	const struct type *type = NULL;

	if (b->is_struct && b->tag[0])
		type = check_struct_named(t, "struct", b->tag);
	if (type)
		return type;
	if (b->is_void || b->is_struct)
		return types_void(t);
	if (b->is_char)
		return b->is_unsigned ? types_int(t, 1, false) : types_char(t);
	if (b->word && b->word->bytes)
		return types_int(t, b->word->bytes, b->word->is_signed);
	if (b->word)
		return types_long(t, b->word->is_signed);
	if (b->n_longs > 1)
		return types_int(t, 8, !b->is_unsigned);
	if (b->n_longs)
		return types_long(t, !b->is_unsigned);
	return types_int(t, b->is_short ? 2 : 4, !b->is_unsigned);
}

const struct type *check_c_type(struct types *types, const char *text)
{
	struct c_base base = {0};
	const struct type *type;
	uint32_t n_stars = 0;

	for (const char *p = text; *p;) {
		size_t n = 0;

		while (isalnum((unsigned char)p[n]) || p[n] == '_')
			n++;
		if (n)
			take_word(&base, p, n);
		else
			n_stars += *p == '*';
		p += n ? n : 1;
	}
	type = base_type(types, &base);
	if (type->kind == TYPE_STRUCT && !n_stars)
		type = types_long(types, false);
	for (uint32_t i = 0; i < n_stars; i++)
		type = types_pointer(types, type, SPACE_USER);
	return type;
}
