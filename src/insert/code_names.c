/* SPDX-License-Identifier: MIT */
/*
 * Names of functions: which symbols may name one, labels by their place, and the function that a
 * .cold part belongs to, which only its name tells.
 *
 * The names of a hostile object may be long and share bytes, and each is copied more than once: in
 * all no more of them are taken than a few times the object's size.
 */
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/search.h"
#include "insert/object_code.h"

#define NAMES_PER_FILE_BYTE 4

const char *code_admit_name(struct code *c, const char *name)
{
	size_t left = NAMES_PER_FILE_BYTE * c->object->bytes.n - c->name_bytes;
	size_t n = strnlen(name, left);

	if (n >= left)
		return "";
	c->name_bytes += n;
	return name;
}

size_t code_fragment_base(const char *name)
{
	const char *at = strstr(name, ".cold");

	if (!at || at == name)
		return 0;
	if (at[5] == 0 || (at[5] == '.' && at[6 + strspn(at + 6, "0123456789")] == 0))
		return (size_t)(at - name);
	return 0;
}

/* ---- labels ---- */

bool code_is_signal_return(const char *name)
{
	return !strcmp(name, "__restore_rt") || !strcmp(name, "__restore");
}

bool code_symbol_lacks_size(const struct object_symbol *sym)
{
	return (sym->type == STT_FUNC || sym->type == STT_GNU_IFUNC) && !sym->size &&
	       !code_is_signal_return(sym->name);
}

ORDER_BY(by_place, struct code_label, section, offset, symbol)

void code_read_labels(struct code *c)
{
	const struct elf_object *o = c->object;

	for (size_t i = 1; i < o->symbols.n; i++) {
		const struct object_symbol *sym = &o->symbols.v[i];

		if ((sym->type == STT_NOTYPE || code_symbol_lacks_size(sym)) && sym->name[0] &&
			sym->section < c->n_sections && c->sections[sym->section].is_code)
			vec_push(&c->labels,
				((struct code_label){sym->value, sym->section, (uint32_t)i}));
	}
	vec_sort(&c->labels, by_place);
}

size_t code_label_from(const struct code *c, uint32_t section, uint64_t offset)
{
	struct code_label key = {offset, section, 0};

	return SEARCH(0, c->labels.n, mid, by_place(&c->labels.v[mid], &key) < 0);
}

const char *code_name_at(struct code *c, uint32_t section, uint64_t offset)
{
	size_t low = code_label_from(c, section, offset);

	if (low == c->labels.n || c->labels.v[low].section != section ||
		c->labels.v[low].offset != offset)
		return "";
	return code_admit_name(c, c->object->symbols.v[c->labels.v[low].symbol].name);
}

/* ---- parts of functions ---- */

struct named {
	const char *name;
	uint32_t section, function;
};

static int by_name(const void *a, const void *b)
{
	const struct named *x = a, *y = b;

	return strcmp(x->name, y->name) ?: ORDER(x->section, y->section)
		       ?: ORDER(x->function, y->function);
}

/* The first one of this name, in order of sections; NULL. */
static const struct named *find_named(
	const struct named *all, size_t n, const char *name, size_t length)
{
	size_t low = SEARCH(0, n, mid, strncmp(all[mid].name, name, length) < 0);

	/* Of those that begin so, the name itself comes first. */
	if (low == n || strncmp(all[low].name, name, length) || all[low].name[length])
		return NULL;
	return &all[low];
}

void code_find_parents(struct code *c)
{
	VEC(struct named) all = {0};

	for (struct code_section *s = code_next(c, NULL); s; s = code_next(c, s))
		for (uint32_t i = 0; i < s->functions.n; i++) {
			struct code_function *f = &s->functions.v[i];

			f->parent = i;
			f->parent_section = s->number;
			vec_push(&all, ((struct named){f->name, s->number, i}));
		}
	vec_sort(&all, by_name);
	for (struct code_section *s = code_next(c, NULL); s; s = code_next(c, s))
		for (size_t i = 0; i < s->functions.n; i++) {
			struct code_function *f = &s->functions.v[i];
			size_t base = f->is_fragment ? code_fragment_base(f->name) : 0;
			const struct named *parent =
				base ? find_named(all.v, all.n, f->name, base) : NULL;

			if (parent) {
				f->parent = parent->function;
				f->parent_section = parent->section;
			}
		}
	vec_release(&all);
}
