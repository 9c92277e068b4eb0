/* SPDX-License-Identifier: MIT */
/* Types of the kernel, listed as points are: "struct task_struct", with -v as C declares them. */
#include <string.h>

#include "base/buf.h"
#include "base/glob.h"
#include "probe/points/point_listing.h"

#define NESTED_MAX 8 /* structures without a name inside of each other */

static const char *const words[] = {"struct ", "union ", "enum "};

bool types_list_is_meant(const char *pattern)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strncmp(pattern, words[i], strlen(words[i])))
			return true;
	return false;
}

static void add_fields(struct point_listing *l, const struct type *type, int depth);

/* "struct {", its fields, "} name;" */
static void add_nested(struct point_listing *l, const struct type_field *f, int depth)
{
	const char *name = f->name ? f->name : "";

	listing_add_detail(l, arena_printf(l->arena, "%*s%s {", 4 * depth, "",
				      f->type->is_union ? "union" : "struct"));
	add_fields(l, f->type, depth + 1);
	listing_add_detail(
		l, arena_printf(l->arena, "%*s}%s%s;", 4 * depth, "", *name ? " " : "", name));
}

static void add_field(struct point_listing *l, const struct type_field *f, int depth)
{
	struct buf b = {0};

	if (f->type->kind == TYPE_STRUCT && !f->type->name && depth < NESTED_MAX) {
		add_nested(l, f, depth);
		return;
	}
	type_print_named(f->type, f->name ? f->name : "", &b);
	if (f->bit_size)
		buf_printf(&b, " : %u", f->bit_size);
	listing_add_detail(l, arena_printf(l->arena, "%*s%s;", 4 * depth, "", buf_text(&b)));
	buf_release(&b);
}

static void add_fields(struct point_listing *l, const struct type *type, int depth)
{
	for (uint32_t i = 0; i < type->n_fields; i++)
		add_field(l, &type->fields[i], depth);
}

static void take_enumerator(void *ctx, const char *name, int64_t value)
{
	struct point_listing *l = ctx;

	listing_add_detail(l, arena_printf(l->arena, "%s = %lld,", name, (long long)value));
}

/* "struct NAME" */
static void detail_type(struct point_listing *l, const char *name, const char *word)
{
	struct btf_types *btf = listing_btf(l);
	struct type_source s = btf_types_source(btf);
	const char *tag = strchr(name, ' ') + 1;
	const struct type *type;

	if (!strcmp(word, "enum")) {
		btf_types_each_enumerator(btf, tag, take_enumerator, l);
		return;
	}
	type = s.named(s.ctx, word, tag);
	if (type && type->kind == TYPE_STRUCT)
		add_fields(l, type, 0);
}

struct type_walk {
	struct point_listing *l;
	const char *word, *pattern;
};

static void take_type(void *ctx, const char *name)
{
	struct type_walk *w = ctx;

	if (glob_match(w->pattern, name))
		listing_add(w->l, arena_printf(w->l->arena, "%s %s", w->word, name), w->word,
			detail_type);
}

int types_list(struct point_listing *l, const char *pattern, struct err *err)
{
	const char *blank = strchr(pattern, ' ');
	struct type_walk w = {l, arena_strndup(l->arena, pattern, (size_t)(blank - pattern)),
		blank + strspn(blank, " ")};
	struct btf_types *btf = listing_btf(l);

	if (!btf)
		return err_set(
			err, ERR_UNSUPPORTED, "'%s': the kernel's BTF is not there", pattern);
	btf_types_each_named(btf, w.word, take_type, &w);
	return 0;
}
