/* SPDX-License-Identifier: MIT */
#include "insert/link_files.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "elf/archive.h"
#include "elf/elf_file.h"
#include "insert/link_script.h"

/* Kinds of symbols as the linker's plug-ins number them. */
#define LTO_UNDEFINED	   2
#define LTO_WEAK_UNDEFINED 3

void link_names_release(struct link_names *names)
{
	intern_release(&names->names);
	vec_release(&names->is_defined);
	vec_release(&names->is_left);
}

static uint32_t name_number(struct link_names *names, const char *name)
{
	uint32_t number = intern_text(&names->names, name);

	vec_ensure_zero(&names->is_defined, number + (size_t)1);
	vec_ensure_zero(&names->is_left, number + (size_t)1);
	return number;
}

void link_names_define(struct link_names *names, const char *name)
{
	uint32_t number = name_number(names, name); /* the table may grow */

	names->is_defined.v[number] = true;
}

bool link_names_defines(struct link_names *names, const char *name)
{
	uint32_t number = name_number(names, name);

	return names->is_defined.v[number];
}

void link_names_leave(struct link_names *names, const char *name)
{
	uint32_t number = name_number(names, name); /* the table may grow */

	names->is_left.v[number] = true;
}

bool link_names_is_left(struct link_names *names, const char *name)
{
	uint32_t number = name_number(names, name);

	return names->is_left.v[number];
}

/* ---- names of one object ---- */

struct lto_traits {
	bool is_gnu, is_llvm, has_code;
};

static struct lto_traits lto_traits(const struct elf_file *elf)
{
	struct lto_traits t = {0};

	for (size_t i = 0; i < elf->n_sections; i++) {
		const struct elf_section *s = &elf->sections[i];

		t.is_gnu |= !strncmp(s->name, ".gnu.lto_", 9);
		t.is_llvm |= !strcmp(s->name, ".llvm.lto");
		t.has_code |= (s->flags & SHF_EXECINSTR) && s->size;
	}
	return t;
}

static enum link_file_kind object_kind(const struct elf_file *elf, enum link_lto lto)
{
	struct lto_traits t;

	if (elf->type == ET_DYN)
		return LINK_FILE_SHARED;
	if (elf->type != ET_REL)
		return LINK_FILE_OTHER;
	if (elf->machine != EM_X86_64 || !elf->is_64)
		return LINK_FILE_OTHER_MACHINE;
	t = lto_traits(elf);
	if (t.is_gnu && lto == LINK_LTO_COUNTED)
		return LINK_FILE_LTO_COUNTED;
	if (t.is_llvm || (t.is_gnu && (lto == LINK_LTO_LEFT || !t.has_code)))
		return LINK_FILE_LTO;
	return LINK_FILE_OBJECT;
}

bool link_lto_read(struct span table,
	void (*each)(void *context, const char *name, bool is_defined), void *context)
{
	struct cursor c = cursor_of(table);

	while (cursor_left(&c) && !c.failed) {
		const char *name = cursor_cstr(&c);
		uint8_t kind;

		cursor_cstr(&c); /* of its group */
		kind = cursor_u8(&c);
		cursor_skip(&c, 1 + 8 + 4); /* visibility, size, its place in gcc's own tables */
		if (!c.failed)
			each(context, name, kind != LTO_UNDEFINED && kind != LTO_WEAK_UNDEFINED);
	}
	return !c.failed;
}

static void define_lto_name(void *context, const char *name, bool is_defined)
{
	if (is_defined && *name)
		link_names_define(context, name);
}

static void add_symbols(struct link_file *f, const struct elf_file *elf,
	const struct elf_section *table, struct link_names *names)
{
	struct cursor c = cursor_of(elf_file_section_bytes(elf, table));
	struct span texts = {NULL, 0};
	Elf64_Sym symbol;

	if (table->link < elf->n_sections)
		texts = elf_file_section_bytes(elf, &elf->sections[table->link]);
	while (cursor_take(&c, &symbol, sizeof(symbol))) {
		const char *name = texts.p ? span_cstr(texts, symbol.st_name) : NULL;
		uint32_t number;

		if (!name || !*name || ELF64_ST_BIND(symbol.st_info) == STB_LOCAL)
			continue;
		number = name_number(names, name);
		if (symbol.st_shndx == SHN_UNDEF) {
			vec_push(&f->wanted, number);
		} else {
			vec_push(&f->defined, number);
			names->is_defined.v[number] = true;
		}
	}
}

static bool is_bitcode(struct span bytes)
{
	return bytes.n >= 4 &&
	       (!memcmp(bytes.p, "BC\xc0\xde", 4) || !memcmp(bytes.p, "\xde\xc0\x17\x0b", 4));
}

static enum link_file_kind add_object(
	struct link_file *f, struct span bytes, struct link_names *names)
{
	struct elf_file elf;
	enum link_file_kind kind;

	if (is_bitcode(bytes)) {
		f->n_lto++;
		return LINK_FILE_LTO;
	}
	if (elf_file_init(&elf, bytes, NULL) < 0)
		return LINK_FILE_OTHER;
	kind = object_kind(&elf, names->lto);
	for (size_t i = 0; i < elf.n_sections; i++) {
		const struct elf_section *s = &elf.sections[i];

		if (kind == LINK_FILE_OBJECT && s->type == SHT_SYMTAB)
			add_symbols(f, &elf, s, names);
		else if (kind == LINK_FILE_LTO_COUNTED && !strncmp(s->name, ".gnu.lto_.symtab", 16))
			link_lto_read(elf_file_section_bytes(&elf, s), define_lto_name, names);
	}
	f->n_lto += kind == LINK_FILE_LTO;
	elf_file_release(&elf);
	return kind;
}

/* ---- archives ---- */

static void add_outside_member(
	struct link_file *f, const struct archive_member *m, struct link_names *names)
{
	const char *base = path_base_name(f->path);
	char *path = m->name[0] == '/'
			     ? mem_strdup(m->name)
			     : mem_printf("%.*s%s", (int)(base - f->path), f->path, m->name);
	struct file_map map;

	if (file_map_open(&map, path, NULL) == 0) {
		vec_push(&f->outside, map);
		add_object(f, map.bytes, names);
	}
	free(path);
}

static enum link_file_kind add_archive(struct link_file *f, struct link_names *names)
{
	struct archive a;

	if (archive_open(&a, f->map.bytes, NULL) < 0)
		return LINK_FILE_OTHER;
	for (size_t i = 0; i < a.members.n; i++) {
		const struct archive_member *m = &a.members.v[i];

		if (m->is_outside)
			add_outside_member(f, m, names);
		else
			add_object(f, m->bytes, names);
	}
	archive_release(&a);
	return LINK_FILE_ARCHIVE;
}

/* ---- files ---- */

int link_file_open(struct link_file *f, const char *path, struct link_names *names, struct err *err)
{
	struct link_file fresh = {.path = mem_strdup(path)};
	int rc = file_map_open(&fresh.map, path, err);

	if (rc < 0) {
		free(fresh.path);
		return rc;
	}
	if (archive_is(fresh.map.bytes))
		fresh.kind = add_archive(&fresh, names);
	else if (link_script_read(fresh.map.bytes, NULL, NULL))
		fresh.kind = LINK_FILE_SCRIPT;
	else
		fresh.kind = add_object(&fresh, fresh.map.bytes, names);
	fresh.wanted.n = sort_distinct_u64(fresh.wanted.v, fresh.wanted.n);
	*f = fresh;
	return 0;
}

void link_file_release(struct link_file *f)
{
	file_map_release(&f->map);
	for (size_t i = 0; i < f->outside.n; i++)
		file_map_release(&f->outside.v[i]);
	vec_release(&f->outside);
	vec_release(&f->wanted);
	vec_release(&f->defined);
	free(f->path);
}

void link_file_hash(const struct link_file *f, struct content_hash *hash)
{
	content_hash_add_u64(hash, f->map.bytes.n);
	content_hash_add(hash, f->map.bytes);
	for (size_t i = 0; i < f->outside.n; i++) {
		content_hash_add_u64(hash, f->outside.v[i].bytes.n);
		content_hash_add(hash, f->outside.v[i].bytes);
	}
}
