/* SPDX-License-Identifier: MIT */
/* The input is BTF. Everything in it that has a name is asked for. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "probe/types/btf_data.h"
#include "probe/types/btf_types.h"

#define NAMES_MAX 200 /* asked for of one input */
#define DEPTH_MAX 200

static void check_type(const struct type *t, int depth)
{
	if (!t || depth > DEPTH_MAX)
		abort();
	if ((t->kind == TYPE_POINTER || t->kind == TYPE_FUNCTION) && !t->of)
		abort();
	if (t->kind == TYPE_ARRAY)
		check_type(t->of, depth + 1);
	if (t->kind != TYPE_STRUCT || depth > 8)
		return;
	for (uint32_t i = 0; i < t->n_fields && i < 20; i++)
		check_type(t->fields[i].type, depth + 1);
}

static void check_walks(const struct type *t)
{
	struct buf text = {0};
	struct type_field f;

	if (!t)
		return;
	check_type(t, 0);
	type_print(t, &text);
	buf_release(&text);
	if (t->kind == TYPE_STRUCT)
		type_find_field(t, "next", &f);
}

static void ask(struct btf_types *b, struct type_source source, const char *name)
{
	static const char *const words[] = {"struct", "union", "enum", ""};

	for (size_t i = 0; i < 4; i++)
		check_walks(source.named(source.ctx, words[i], name));
	check_walks(source.function(source.ctx, name));
	btf_types_function_id(b, name);
	btf_types_offset(b, name, "next");
	btf_types_offset(b, name, "a.b.c");
}

struct asking {
	struct btf_types *btf;
	struct type_source source;
	int n;
};

static void ask_function(void *ctx, const char *module, const char *name)
{
	struct asking *a = ctx;

	(void)module;
	if (a->n++ < NAMES_MAX)
		ask(a->btf, a->source, name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct span bytes = {data, n};
	struct types *types = types_new(MODE_64);
	struct btf_types *btf = NULL;
	struct btf_data d;
	struct err err = {0};

	if (btf_types_open(types, bytes, &btf, &err) == 0) {
		struct asking a = {btf, btf_types_source(btf), 0};

		if (btf_data_init(&d, bytes, &err) < 0)
			abort();
		for (uint32_t id = 1; id < d.offsets.n && id < NAMES_MAX; id++)
			ask(btf, a.source, btf_data_get(&d, id).name);
		btf_data_release(&d);
		btf_types_each_function(btf, ask_function, &a);
	} else if (!err.text[0]) {
		abort();
	}
	btf_types_close(btf);
	types_free(types);
	return 0;
}
