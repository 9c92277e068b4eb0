/* SPDX-License-Identifier: MIT */
#include "probe/compile/file_types.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "elf/elf_file.h"
#include "probe/types/dwarf_types.h"

#define FILES_MAX 64 /* of a set: where a glob matches more, nothing is known of types */

struct one_file {
	char *path;
	struct types *types; /* of its mode */
	struct dwarf_types *dwarf;
	bool is_tried;
	bool is_used; /* something was taken from it */
};

struct file_set {
	struct one_file *files[FILES_MAX];
	size_t n; /* may be more than FILES_MAX: then it is empty */
};

struct file_types {
	struct types *types[N_MODES];
	VEC(struct one_file *) files;
	struct file_set sets[N_MODES];
};

struct file_types *file_types_new(struct types *const *types)
{
	struct file_types *f = mem_zalloc(sizeof(*f));

	for (enum mode m = 0; m < N_MODES; m++)
		f->types[m] = types[m];
	return f;
}

void file_types_free(struct file_types *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->files.n; i++) {
		dwarf_types_close(f->files.v[i]->dwarf);
		free(f->files.v[i]->path);
		free(f->files.v[i]);
	}
	vec_release(&f->files);
	free(f);
}

/* --- one file --------------------------------------------------------------------------------- */

static bool open_dwarf(struct one_file *f, struct type_source *out)
{
	struct err err = {0};

	/* Without debug information there is nothing to ask; the checker says what is not known. */
	if (!f->is_tried && dwarf_types_open(f->types, f->path, &f->dwarf, &err) < 0)
		f->dwarf = NULL;
	f->is_tried = true;
	if (f->dwarf)
		*out = dwarf_types_source(f->dwarf);
	return f->dwarf;
}

/* As bpftrace has it: an integer as large as the variable, or a word of the program. */
static bool find_symbol(
	struct one_file *f, const char *name, const struct type **type, uint64_t *iaddr)
{
	struct elf_symbol symbol;
	struct elf_file elf;
	struct file_map map;
	struct err err = {0};
	bool is_there = false;

	if (file_map_open(&map, f->path, &err) < 0)
		return false;
	if (elf_file_init(&elf, map.bytes, &err) == 0) {
		is_there = elf_file_find_object(&elf, name, &symbol);
		elf_file_release(&elf);
	}
	file_map_release(&map);
	if (!is_there)
		return false;
	*iaddr = symbol.addr.v;
	if (type_is_int_size(symbol.size))
		*type = types_int(f->types, (uint32_t)symbol.size, false);
	else
		*type = types_long(f->types, false);
	return true;
}

static bool find_variable(
	struct one_file *f, const char *name, const struct type **type, uint64_t *iaddr)
{
	struct type_source s;

	return (open_dwarf(f, &s) && s.variable(s.ctx, name, type, iaddr)) ||
	       find_symbol(f, name, type, iaddr);
}

/* --- a set ------------------------------------------------------------------------------------ */

static size_t n_asked(const struct file_set *set)
{
	return set->n <= FILES_MAX ? set->n : 0;
}

static bool is_complete(const struct type *t)
{
	return t->kind != TYPE_STRUCT || t->is_complete;
}

static const struct type *set_named(void *ctx, const char *word, const char *name)
{
	const struct file_set *set = ctx;
	const struct type *found = NULL;
	struct type_source s;

	if (!strncmp(word, TYPE_WORD_KERNEL, strlen(TYPE_WORD_KERNEL)) ||
		!strncmp(word, TYPE_WORD_HANDED, strlen(TYPE_WORD_HANDED)))
		return NULL;
	for (size_t i = 0; i < n_asked(set); i++) {
		const struct type *one =
			open_dwarf(set->files[i], &s) ? s.named(s.ctx, word, name) : NULL;

		if (!one || (found && !is_complete(one)))
			continue;
		set->files[i]->is_used = true;
		if (found && is_complete(found) && !type_is_same(one, found))
			return NULL;
		found = one;
	}
	return found;
}

static const struct type *set_function(void *ctx, const char *name)
{
	const struct file_set *set = ctx;
	const struct type *found = NULL;
	struct type_source s;

	for (size_t i = 0; i < n_asked(set); i++) {
		const struct type *one =
			open_dwarf(set->files[i], &s) ? s.function(s.ctx, name) : NULL;

		if (one && found && !type_is_same(one, found))
			return NULL;
		if (one)
			found = one;
		set->files[i]->is_used |= one != NULL;
	}
	return found;
}

/* An address must be that of all files: there is one in the code. */
static bool set_variable(void *ctx, const char *name, const struct type **type, uint64_t *iaddr)
{
	const struct file_set *set = ctx;
	const struct type *found = NULL;
	uint64_t found_at = 0;

	for (size_t i = 0; i < n_asked(set); i++) {
		const struct type *one;
		uint64_t at;

		if (!find_variable(set->files[i], name, &one, &at) ||
			(found && (at != found_at || !type_is_same(one, found))))
			return false;
		found = one;
		found_at = at;
		set->files[i]->is_used = true;
	}
	if (!found)
		return false;
	*type = found;
	*iaddr = found_at;
	return true;
}

void file_types_reset(struct file_types *f, enum mode mode)
{
	f->sets[mode].n = 0;
}

static struct one_file *find_file(struct file_types *f, enum mode mode, const char *path)
{
	struct one_file *one = NULL;

	for (size_t i = 0; i < f->files.n && !one; i++)
		if (f->files.v[i]->types == f->types[mode] && !strcmp(f->files.v[i]->path, path))
			one = f->files.v[i];
	if (!one) {
		one = mem_zalloc(sizeof(*one));
		one->path = mem_strdup(path);
		one->types = f->types[mode];
		vec_push(&f->files, one);
	}
	return one;
}

void file_types_add(struct file_types *f, enum mode mode, const char *path)
{
	struct file_set *set = &f->sets[mode];
	struct one_file *one = find_file(f, mode, path);

	if (set->n < FILES_MAX)
		set->files[set->n] = one;
	set->n++;
}

/* Variables of one name: static ones of several source files have the same. */
struct same_name {
	const char *name;
	uint64_t addr;
	uint32_t n; /* at different addresses */
};

static void note_object(void *ctx, const struct elf_symbol *symbol)
{
	struct same_name *s = ctx;

	if (strcmp(symbol->name, s->name) || (s->n && s->addr == symbol->addr.v))
		return;
	s->addr = symbol->addr.v;
	s->n++;
}

bool file_types_symbol(
	struct file_types *f, enum mode mode, const char *path, const char *name, uint64_t *iaddr)
{
	struct same_name same = {.name = name};
	struct elf_file elf;
	struct file_map map;
	struct err err = {0};

	if (file_map_open(&map, path, &err) < 0)
		return false;
	if (elf_file_init(&elf, map.bytes, &err) == 0) {
		elf_file_each_object(&elf, false, note_object, &same);
		elf_file_each_object(&elf, true, note_object, &same);
		elf_file_release(&elf);
	}
	file_map_release(&map);
	*iaddr = same.addr;
	find_file(f, mode, path)->is_used |= same.n == 1;
	return same.n == 1;
}

bool file_types_is_used(const struct file_types *f, enum mode mode, const char *path)
{
	for (size_t i = 0; i < f->files.n; i++)
		if (f->files.v[i]->types == f->types[mode] && !strcmp(f->files.v[i]->path, path))
			return f->files.v[i]->is_used;
	return false;
}

bool file_types_call(struct file_types *f, enum mode mode, const char *path, uint64_t addr,
	struct call_facts *out)
{
	struct one_file *one = find_file(f, mode, path);
	struct type_source s;

	if (!open_dwarf(one, &s) || !dwarf_types_call(one->dwarf, addr, out))
		return false;
	one->is_used = true;
	return true;
}

/* Files that say different things say nothing. */
static bool set_enumerator(void *ctx, const char *name, int64_t *value, const struct type **of)
{
	const struct file_set *set = ctx;
	struct type_source s;
	const struct type *type;
	bool is_found = false;
	int64_t one;

	for (size_t i = 0; i < n_asked(set); i++) {
		if (!open_dwarf(set->files[i], &s) || !s.enumerator(s.ctx, name, &one, &type))
			continue;
		if (is_found && one != *value)
			return false;
		*of = is_found && type != *of ? NULL : type;
		*value = one;
		is_found = true;
		set->files[i]->is_used = true;
	}
	return is_found;
}

struct type_source file_types_source(struct file_types *f, enum mode mode)
{
	return (struct type_source){.ctx = &f->sets[mode],
		.named = set_named,
		.function = set_function,
		.variable = set_variable,
		.enumerator = set_enumerator};
}
