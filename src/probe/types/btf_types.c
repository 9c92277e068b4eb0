/* SPDX-License-Identifier: MIT */
#include "probe/types/btf_types.h"

#include <stdlib.h>
#include <string.h>

#include "probe/types/btf_data.h"
#include "probe/types/btf_type_build.h"

#define UNNAMED_MAX 16	    /* structures without names inside each other */
#define MEMBERS_MAX 1000000 /* looked at for one name */

struct btf_types {
	struct btf_data data;
	struct btf_builder builder; /* its types are NULL when only offsets are asked for */
};

int btf_types_open(struct types *types, struct span bytes, struct btf_types **out, struct err *err)
{
	struct btf_types *b = mem_zalloc(sizeof(*b));
	int rc = btf_data_init(&b->data, bytes, err);

	if (rc < 0) {
		free(b);
		return rc;
	}
	b->builder = (struct btf_builder){.types = types, .data = &b->data};
	*out = b;
	return 0;
}

void btf_types_set_handed(struct btf_types *b)
{
	b->builder.is_handed = true;
}

void btf_types_close(struct btf_types *b)
{
	if (!b)
		return;
	btf_builder_release(&b->builder);
	btf_data_release(&b->data);
	free(b);
}

/* The tables of names are made when they are needed, which no caller can see. */
static uint32_t find(const struct btf_types *b, enum btf_kind kind, const char *name)
{
	return btf_data_find(&((struct btf_types *)b)->data, kind, name);
}

static const struct type *find_named(void *ctx, const char *word, const char *name)
{
	struct btf_types *b = ctx;
	uint32_t id = 0;

	if (!b->builder.types)
		return NULL;
	if (!strcmp(word, "struct"))
		id = find(b, BTF_STRUCT, name);
	else if (!strcmp(word, "union"))
		id = find(b, BTF_UNION, name);
	else if (!strcmp(word, "enum"))
		id = find(b, BTF_ENUM, name);
	else
		id = find(b, BTF_TYPEDEF, name);
	if (!id && !strcmp(word, "enum"))
		id = find(b, BTF_ENUM64, name);
	if (!id && !word[0])
		id = find(b, BTF_INT, name);
	if (!id && !word[0])
		id = find(b, BTF_FLOAT, name);
	return id ? btf_build_type(&b->builder, id) : NULL;
}

static const struct type *find_function(void *ctx, const char *name)
{
	struct btf_types *b = ctx;
	uint32_t id = b->builder.types ? find(b, BTF_FUNC, name) : 0;
	const struct type *type = id ? btf_build_type(&b->builder, id) : NULL;

	return type && type->kind == TYPE_FUNCTION ? type : NULL;
}

/* BTF has the kernel's variables, but not where they are. */
static bool find_variable(void *ctx, const char *name, const struct type **type, uint64_t *iaddr)
{
	(void)ctx, (void)name, (void)type, (void)iaddr;
	return false;
}

/* Enumerator i < n of an ENUM or ENUM64. */
static const char *enumerator_at(
	const struct btf_data *d, const struct btf_record *r, uint32_t i, int64_t *value)
{
	size_t bytes = r->kind == BTF_ENUM64 ? 12 : 8;
	struct cursor c = cursor_of((struct span){r->rest + i * bytes, bytes});
	const char *name = btf_data_text(d, cursor_u32(&c));

	if (r->kind == BTF_ENUM64)
		*value = (int64_t)cursor_u64(&c);
	else
		*value = (int32_t)cursor_u32(&c);
	return name;
}

/* No table: enumerators are asked for seldom, and only by scripts that are about the kernel. */
static bool find_enumerator(void *ctx, const char *name, int64_t *value, const struct type **of)
{
	struct btf_types *b = ctx;
	const struct btf_data *d = &b->data;

	for (uint32_t id = 1; id < d->offsets.n; id++) {
		struct btf_record r = btf_data_get(d, id);
		int64_t v;

		for (uint32_t i = 0; (r.kind == BTF_ENUM || r.kind == BTF_ENUM64) && i < r.n; i++) {
			if (strcmp(enumerator_at(d, &r, i, &v), name))
				continue;
			*value = v;
			*of = b->builder.types ? btf_build_type(&b->builder, id) : NULL;
			if (*of && (*of)->kind != TYPE_INT)
				*of = NULL;
			return true;
		}
	}
	return false;
}

void btf_types_each_enumerator(const struct btf_types *b, const char *name,
	void (*each)(void *ctx, const char *name, int64_t value), void *ctx)
{
	uint32_t id = find(b, BTF_ENUM, name);
	struct btf_record r = btf_data_get(&b->data, id ? id : find(b, BTF_ENUM64, name));
	int64_t value;

	for (uint32_t i = 0; (r.kind == BTF_ENUM || r.kind == BTF_ENUM64) && i < r.n; i++) {
		const char *text = enumerator_at(&b->data, &r, i, &value);

		each(ctx, text, value);
	}
}

void btf_types_each_named(const struct btf_types *b, const char *word,
	void (*each)(void *ctx, const char *name), void *ctx)
{
	for (uint32_t id = 1; id < b->data.offsets.n; id++) {
		struct btf_record r = btf_data_get(&b->data, id);
		const char *own = r.kind == BTF_STRUCT			       ? "struct"
				  : r.kind == BTF_UNION			       ? "union"
				  : r.kind == BTF_ENUM || r.kind == BTF_ENUM64 ? "enum"
									       : "";

		if (r.name[0] && !strcmp(own, word))
			each(ctx, r.name);
	}
}

struct type_source btf_types_source(struct btf_types *b)
{
	return (struct type_source){.ctx = b,
		.named = find_named,
		.function = find_function,
		.variable = find_variable,
		.enumerator = find_enumerator};
}

uint32_t btf_types_function_id(const struct btf_types *b, const char *name)
{
	return find(b, BTF_FUNC, name);
}

struct member_search {
	const struct btf_data *data;
	const char *name; /* n bytes */
	size_t n;
	uint32_t left; /* members that may still be looked at */
	struct btf_member found;
};

/* A member by name, also inside members without one; its place is from the start of `id`. */
static bool find_member(struct member_search *s, uint32_t id, int depth)
{
	struct btf_record r = btf_data_get(s->data, btf_data_strip(s->data, id));

	if ((r.kind != BTF_STRUCT && r.kind != BTF_UNION) || depth > UNNAMED_MAX)
		return false;
	for (uint32_t i = 0; i < r.n && s->left; i++, s->left--) {
		struct btf_member m = btf_data_member(s->data, &r, i);

		if (strlen(m.name) == s->n && !memcmp(m.name, s->name, s->n)) {
			s->found = m;
			return true;
		}
		if (!m.name[0] && find_member(s, m.type, depth + 1)) {
			s->found.bit += m.bit;
			return true;
		}
		if (!s->left)
			break;
	}
	return false;
}

int64_t btf_types_offset(const struct btf_types *b, const char *struct_name, const char *path)
{
	uint32_t id = find(b, BTF_STRUCT, struct_name);
	int64_t offset = 0;

	if (!id)
		id = find(b, BTF_UNION, struct_name);
	while (id) {
		struct member_search s = {.data = &b->data,
			.name = path,
			.n = strcspn(path, "."),
			.left = MEMBERS_MAX};

		if (!s.n || !find_member(&s, id, 0))
			return -1;
		offset += s.found.bit / 8;
		if (!path[s.n])
			return offset;
		path += s.n + 1;
		id = s.found.type;
	}
	return -1;
}

void btf_types_each_function(const struct btf_types *b,
	void (*each)(void *ctx, const char *module, const char *name), void *ctx)
{
	for (uint32_t id = 1; id < b->data.offsets.n; id++) {
		struct btf_record r = btf_data_get(&b->data, id);

		if (r.kind == BTF_FUNC && r.name[0])
			each(ctx, "", r.name);
	}
}
