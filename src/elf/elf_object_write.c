/* SPDX-License-Identifier: MIT */
/*
 * Writes an object. In three steps:
 *	1. sections that only a file needs are added: tables of relocations, symbols and names;
 *	2. symbols get their numbers: locals first, otherwise in the order that they have;
 *	3. bytes, in the order that they have in the file, new sections behind; then the headers.
 *
 * Old names keep their place: a table of names is its old bytes with the new names behind. With
 * the old order of bytes, an object that nothing was done to comes out as it was, its offsets too
 * as far as they follow from sizes and alignments.
 */
#include "elf/elf_object.h"

#include <stdlib.h>

#include "base/sort.h"
#include "elf/elf_object_parts.h"

#define FILE_ALIGN_MAX 4096 /* of a section's bytes in the file */
#define RELA_NAME_MAX  4096 /* bytes of the section's name in that of its table of relocations */

struct name_table {
	struct buf bytes;
	struct intern added;
	VEC(uint32_t) places; /* of the added names */
};

struct writer {
	struct elf_object *o;
	struct buf *out;
	size_t base; /* of the object in `out` */
	struct err *err;
	uint32_t *new_number; /* of each symbol */
	uint32_t n_locals;
	bool is_renumbered;	     /* some symbol has another number than in the object */
	struct name_table names[2];  /* of symbols, of sections */
	struct name_table *sections; /* = names, when one table serves both */
	uint32_t *symbol_names;	     /* st_name of each symbol */
	uint32_t *next_member;	     /* for each section: the next new one of its group */
	uint32_t *first_member, *last_member; /* for each group */
	Elf64_Shdr *headers;
};

/* ---- 1. what a file needs ---- */

static void add_rela(struct elf_object *o, uint32_t section)
{
	struct buf name = {0};
	uint32_t group = o->sections.v[section].group;
	struct object_section s = {.type = SHT_RELA,
		.flags = SHF_INFO_LINK | (group ? SHF_GROUP : 0),
		.align = 8,
		.entsize = sizeof(Elf64_Rela),
		.info = section,
		.group = group};

	buf_put_cstr(&name, ".rela");
	buf_put(&name, o->sections.v[section].name,
		strnlen(o->sections.v[section].name, RELA_NAME_MAX));
	s.name = intern_get(&o->arena->names, intern_bytes(&o->arena->names, name.p, name.n));
	buf_release(&name);
	o->sections.v[section].rela = (uint32_t)o->sections.n;
	vec_push(&o->sections, s);
}

static uint32_t add_table(struct elf_object *o, const char *name, uint32_t type, uint64_t entsize)
{
	struct object_section s = {.name = name,
		.type = type,
		.align = entsize ? entsize % 8 ? 4 : 8 : 1,
		.entsize = entsize};

	vec_push(&o->sections, s);
	return (uint32_t)o->sections.n - 1;
}

static void add_needed_sections(struct elf_object *o)
{
	struct object_arena *a = o->arena;
	size_t n = o->sections.n;

	for (uint32_t i = 1; i < n; i++)
		if (o->sections.v[i].relocs.n && !o->sections.v[i].rela)
			add_rela(o, i);
	if (!o->symtab && (o->symbols.n > 1 || o->sections.n > n)) {
		a->strtab = add_table(o, ".strtab", SHT_STRTAB, 0);
		o->symtab = add_table(o, ".symtab", SHT_SYMTAB, sizeof(Elf64_Sym));
		o->sections.v[o->symtab].link = a->strtab;
	}
	for (size_t i = 0; i < o->symbols.n && !a->symtab_shndx; i++) {
		uint32_t section = o->symbols.v[i].section;

		if (section >= SHN_LORESERVE && section < OBJECT_SECTION_OTHER) {
			a->symtab_shndx =
				add_table(o, ".symtab_shndx", SHT_SYMTAB_SHNDX, sizeof(uint32_t));
			o->sections.v[a->symtab_shndx].link = o->symtab;
		}
	}
}

/* ---- 2. numbers and names ---- */

static void number_symbols(struct writer *w)
{
	const struct elf_object *o = w->o;
	uint32_t next = 0;

	w->new_number = mem_alloc(o->symbols.n * sizeof(*w->new_number));
	for (uint32_t i = 0; i < o->symbols.n; i++)
		if (!i || o->symbols.v[i].bind == STB_LOCAL)
			w->new_number[i] = next++;
	w->n_locals = next;
	for (uint32_t i = 1; i < o->symbols.n; i++)
		if (o->symbols.v[i].bind != STB_LOCAL)
			w->new_number[i] = next++;
	for (uint32_t i = 0; i < o->symbols.n && !w->is_renumbered; i++)
		w->is_renumbered = w->new_number[i] != i;
}

static void name_table_release(struct name_table *t)
{
	buf_release(&t->bytes);
	intern_release(&t->added);
	vec_release(&t->places);
}

/* `section` is the table in the object; its bytes there are those of the file. */
static void name_table_init(struct name_table *t, const struct elf_object *o, uint32_t section)
{
	struct span old = o->sections.v[section].data;

	buf_put(&t->bytes, old.p, old.n);
}

static uint32_t name_table_add(struct name_table *t, const char *name)
{
	uint32_t id;

	if (!t->bytes.n || t->bytes.p[t->bytes.n - 1])
		buf_put_u8(&t->bytes, 0);
	if (!*name && !t->bytes.p[0])
		return 0;
	id = intern_text(&t->added, name);
	if (id == t->places.n) {
		vec_push(&t->places, (uint32_t)t->bytes.n);
		buf_put_text(&t->bytes, name);
	}
	return t->places.v[id];
}

/* A name that still is where the file has it keeps its place. */
static uint32_t name_place(struct name_table *t, struct span old, const char *name)
{
	uintptr_t at = (uintptr_t)name - (uintptr_t)old.p;

	return old.p && at < old.n ? (uint32_t)at : name_table_add(t, name);
}

static void place_names(struct writer *w)
{
	const struct elf_object *o = w->o;
	const struct object_arena *a = o->arena;
	struct span old = o->sections.v[a->shstrtab].data;

	w->sections = &w->names[a->strtab != a->shstrtab];
	name_table_init(w->sections, o, a->shstrtab);
	for (size_t i = 1; i < o->sections.n; i++)
		w->headers[i].sh_name = name_place(w->sections, old, o->sections.v[i].name);
	if (!o->symtab)
		return;
	if (w->sections != w->names)
		name_table_init(w->names, o, a->strtab);
	old = o->sections.v[a->strtab].data;
	w->symbol_names = mem_alloc(o->symbols.n * sizeof(*w->symbol_names));
	for (size_t i = 0; i < o->symbols.n; i++)
		w->symbol_names[i] = name_place(w->names, old, o->symbols.v[i].name);
}

/* Lists the new sections of each group. */
static void list_members(struct writer *w)
{
	const struct elf_object *o = w->o;
	size_t n = o->sections.n;

	w->next_member = mem_calloc(3 * n, sizeof(*w->next_member));
	w->first_member = w->next_member + n;
	w->last_member = w->first_member + n;
	for (uint32_t i = o->arena->n_file_sections; i < n; i++) {
		uint32_t group = o->sections.v[i].group;

		if (!group || group >= n)
			continue;
		if (w->first_member[group])
			w->next_member[w->last_member[group]] = i;
		else
			w->first_member[group] = i;
		w->last_member[group] = i;
	}
}

/* ---- 3. bytes ---- */

/* Room for `n` more bytes, which the caller fills. */
static uint8_t *put_room(struct buf *out, size_t n)
{
	if (out->n + n > out->cap)
		mem_grow((void **)&out->p, &out->cap, out->n + n, 1);
	out->n += n;
	return out->p + out->n - n;
}

static uint16_t file_shndx(const struct elf_object *o, uint32_t symbol)
{
	Elf64_Sym e;

	memcpy(&e, o->sections.v[o->symtab].data.p + symbol * sizeof(e), sizeof(e));
	return e.st_shndx;
}

/* Is the number of the symbol's section in the table of wide numbers? A file may have it there
 * though it would fit. */
static bool is_wide(const struct elf_object *o, uint32_t symbol)
{
	uint32_t section = o->symbols.v[symbol].section;

	return section < OBJECT_SECTION_OTHER &&
	       (section >= SHN_LORESERVE ||
		       (o->arena->symtab_shndx && symbol < o->arena->n_file_symbols &&
			       file_shndx(o, symbol) == SHN_XINDEX));
}

static int put_symbols(struct writer *w)
{
	const struct elf_object *o = w->o;
	uint8_t *to = put_room(w->out, o->symbols.n * sizeof(Elf64_Sym));

	for (uint32_t i = 0; i < o->symbols.n; i++) {
		const struct object_symbol *s = &o->symbols.v[i];
		Elf64_Sym e = {.st_name = w->symbol_names[i],
			.st_info = (uint8_t)ELF64_ST_INFO(s->bind, s->type),
			.st_other = s->other,
			.st_shndx = is_wide(o, i) ? SHN_XINDEX : (uint16_t)s->section,
			.st_value = s->value,
			.st_size = s->size};

		if (s->section >= o->sections.n && s->section < OBJECT_SECTION_OTHER)
			return err_set(w->err, ERR_FORMAT, "symbol %u is in section %u of %zu", i,
				s->section, o->sections.n);
		memcpy(to + w->new_number[i] * sizeof(e), &e, sizeof(e));
	}
	return 0;
}

static int put_wide_sections(struct writer *w)
{
	const struct elf_object *o = w->o;
	uint8_t *to = put_room(w->out, o->symbols.n * sizeof(uint32_t));

	for (uint32_t i = 0; i < o->symbols.n; i++) {
		uint32_t section = is_wide(o, i) ? o->symbols.v[i].section : 0;

		memcpy(to + w->new_number[i] * sizeof(section), &section, sizeof(section));
	}
	return 0;
}

static int new_number(const struct writer *w, uint32_t place, uint32_t old, uint32_t *number)
{
	if (old >= w->o->symbols.n)
		return err_set(w->err, ERR_FORMAT, "section %u uses symbol %u of %zu", place, old,
			w->o->symbols.n);
	*number = w->new_number[old];
	return 0;
}

/* The relocations in the order of the file, when they are those of the file and have another order
 * there; NULL otherwise. */
static struct object_reloc *relocs_in_file_order(const struct elf_object *o, uint32_t section)
{
	const struct object_section *s = &o->sections.v[section];
	const struct object_section *table = &o->sections.v[s->rela];
	struct object_section file = {0};
	struct object_reloc *relocs = NULL;

	if (section >= o->arena->n_file_sections || !o->arena->is_unsorted[section] ||
		table->data.n / table->entsize != s->relocs.n)
		return NULL;
	file.relocs.n = s->relocs.n;
	file.relocs.v = mem_alloc(s->relocs.n * sizeof(*relocs));
	object_relocs_read(file.relocs.v, table->data, table->type);
	object_section_sort_relocs(&file);
	if (!memcmp(file.relocs.v, s->relocs.v, s->relocs.n * sizeof(*relocs))) {
		relocs = file.relocs.v;
		object_relocs_read(relocs, table->data, table->type);
		return relocs;
	}
	free(file.relocs.v);
	return NULL;
}

static int put_relocs(struct writer *w, uint32_t table)
{
	const struct elf_object *o = w->o;
	const struct object_section *t = &o->sections.v[table];
	const struct object_section *s = &o->sections.v[t->info];
	struct object_reloc *in_file_order = relocs_in_file_order(o, t->info);
	const struct object_reloc *from = in_file_order ? in_file_order : s->relocs.v;
	size_t bytes = t->type == SHT_RELA ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);
	uint8_t *to = put_room(w->out, s->relocs.n * bytes);
	int rc = 0;

	for (size_t i = 0; i < s->relocs.n && !rc; i++) {
		struct object_reloc r = from[i];

		rc = new_number(w, table, r.symbol, &r.symbol);
		memcpy(to + i * bytes, &r, bytes);
	}
	free(in_file_order);
	return rc;
}

static int put_group(struct writer *w, uint32_t group)
{
	struct span old = w->o->sections.v[group].data;

	buf_put(w->out, old.p, old.n);
	for (uint32_t i = w->first_member[group]; i; i = w->next_member[i])
		buf_put_u32(w->out, i);
	return 0;
}

static int put_address_significant(struct writer *w, uint32_t section)
{
	struct cursor c = cursor_of(w->o->sections.v[section].data);

	while (cursor_left(&c)) {
		uint64_t symbol = cursor_uleb(&c);
		uint32_t number = 0;

		if (c.failed || symbol > UINT32_MAX)
			return err_set(
				w->err, ERR_FORMAT, "section %u is no list of symbols", section);
		if (new_number(w, section, (uint32_t)symbol, &number))
			return ERR_FORMAT;
		buf_put_uleb(w->out, number);
	}
	return 0;
}

/* Entries of LLVM 12 and before: from, to (symbols), weight. */
static int put_call_graph(struct writer *w, uint32_t section)
{
	struct cursor c = cursor_of(w->o->sections.v[section].data);

	if (cursor_left(&c) % 16)
		return err_set(w->err, ERR_FORMAT, "section %u is no call graph", section);
	while (cursor_left(&c)) {
		for (int i = 0; i < 2; i++) {
			uint32_t number = 0;

			if (new_number(w, section, cursor_u32(&c), &number))
				return ERR_FORMAT;
			buf_put_u32(w->out, number);
		}
		buf_put_u64(w->out, cursor_u64(&c));
	}
	return 0;
}

/* Sections of other types that are linked to the symbol table may hold symbol numbers, which
 * nobody here knows how to change. */
static int check_link(const struct writer *w, uint32_t section)
{
	const struct object_section *s = &w->o->sections.v[section];

	switch (s->type) {
	case SHT_PROGBITS:
	case SHT_STRTAB:
	case SHT_NOTE:
	case SHT_INIT_ARRAY:
	case SHT_FINI_ARRAY:
	case SHT_PREINIT_ARRAY:
	case SHT_X86_64_UNWIND:
	case OBJECT_SHT_LLVM_CALL_GRAPH_PROFILE:
		return 0;
	default:
		return err_set(w->err, ERR_UNSUPPORTED,
			"section %u of type 0x%x belongs to the symbol table in a way that is not known",
			section, s->type);
	}
}

static int put_other(struct writer *w, uint32_t section)
{
	const struct object_section *s = &w->o->sections.v[section];
	bool has_symbols = w->is_renumbered && s->link && s->link == w->o->symtab &&
			   !(s->flags & SHF_LINK_ORDER);

	if (has_symbols && s->type == OBJECT_SHT_LLVM_ADDRSIG)
		return put_address_significant(w, section);
	if (has_symbols && s->type == OBJECT_SHT_LLVM_CALL_GRAPH_INDICES)
		return put_call_graph(w, section);
	if (has_symbols && check_link(w, section))
		return ERR_UNSUPPORTED;
	buf_put(w->out, s->data.p, s->data.n);
	return 0;
}

static int put_section(struct writer *w, uint32_t i)
{
	const struct elf_object *o = w->o;
	const struct object_arena *a = o->arena;
	const struct object_section *s = &o->sections.v[i];

	if (!object_type_has_bytes(s->type))
		return 0;
	if (i == o->symtab)
		return put_symbols(w);
	if (i == a->symtab_shndx)
		return put_wide_sections(w);
	if (i == a->strtab || i == a->shstrtab) {
		const struct buf *names = &(i == a->shstrtab ? w->sections : w->names)->bytes;

		buf_put(w->out, names->p, names->n);
		return 0;
	}
	if (s->type == SHT_RELA || s->type == SHT_REL)
		return put_relocs(w, i);
	if (s->type == SHT_GROUP)
		return put_group(w, i);
	return put_other(w, i);
}

/* Bytes of a section in the file begin at a multiple of this: of its alignment, unless the file
 * has a lesser one. So bytes never move up but for sections that grew. */
static uint64_t file_align(const struct elf_object *o, uint32_t section, uint64_t old_offset)
{
	uint64_t align = o->sections.v[section].align;

	if (align & (align - 1))
		align = 1;
	if (align > FILE_ALIGN_MAX)
		align = FILE_ALIGN_MAX;
	if (section < o->arena->n_file_sections) {
		uint64_t had = old_offset <= o->bytes.n ? old_offset & -old_offset : 1;

		align = align < had ? align : had;
	}
	return align ? align : 1;
}

static void put_padding(struct writer *w, uint64_t align)
{
	size_t n = -(w->out->n - w->base) & (align - 1);

	memset(put_room(w->out, n), 0, n);
}

/* Every section but the null one, in the order of its bytes; by offset in the old file. */
static struct sort_pair *order_sections(const struct elf_object *o)
{
	struct sort_pair *places = mem_alloc(o->sections.n * sizeof(*places));
	uint32_t n_file = o->arena->n_file_sections;

	for (uint32_t i = 1; i < o->sections.n; i++)
		places[i - 1] = (struct sort_pair){
			i < n_file ? object_file_header(o, i).sh_offset : UINT64_MAX, i};
	sort_pairs(places, n_file - 1);
	return places;
}

static int put_sections(struct writer *w)
{
	struct sort_pair *places = order_sections(w->o);
	int rc = 0;

	for (size_t i = 0; i + 1 < w->o->sections.n && !rc; i++) {
		uint32_t section = places[i].i;
		Elf64_Shdr *h = &w->headers[section];

		put_padding(w, file_align(w->o, section, places[i].key));
		h->sh_offset = w->out->n - w->base;
		rc = put_section(w, section);
		h->sh_size = w->out->n - w->base - h->sh_offset;
	}
	free(places);
	return rc;
}

/* Name, offset and size are there already. */
static int fill_header(struct writer *w, uint32_t i)
{
	const struct elf_object *o = w->o;
	const struct object_section *s = &o->sections.v[i];
	Elf64_Shdr *h = &w->headers[i];

	h->sh_type = s->type;
	h->sh_flags = s->flags;
	h->sh_addr = i < o->arena->n_file_sections ? object_file_header(o, i).sh_addr : 0;
	h->sh_link = s->link;
	h->sh_info = s->info;
	h->sh_addralign = s->align;
	h->sh_entsize = s->entsize;
	if (!object_type_has_bytes(s->type))
		h->sh_size = s->size;
	if (i == o->symtab)
		h->sh_info = w->n_locals;
	if (s->type == SHT_RELA || s->type == SHT_REL)
		h->sh_link = o->symtab;
	if (s->type == SHT_GROUP)
		return new_number(w, i, s->info, &h->sh_info);
	return 0;
}

static int put_headers(struct writer *w)
{
	const struct elf_object *o = w->o;
	Elf64_Ehdr e = o->arena->header;
	size_t n = o->sections.n;
	uint32_t names = o->arena->shstrtab;

	for (uint32_t i = 1; i < n; i++)
		if (fill_header(w, i))
			return ERR_FORMAT;
	if (n >= SHN_LORESERVE)
		w->headers[0].sh_size = n;
	if (names >= SHN_LORESERVE)
		w->headers[0].sh_link = names;
	put_padding(w, 8);
	e.e_ident[EI_OSABI] = o->os_abi;
	e.e_ident[EI_ABIVERSION] = o->abi_version;
	e.e_flags = o->flags;
	e.e_shoff = w->out->n - w->base;
	e.e_shnum = n >= SHN_LORESERVE ? 0 : (uint16_t)n;
	e.e_shstrndx = names >= SHN_LORESERVE ? SHN_XINDEX : (uint16_t)names;
	buf_put(w->out, w->headers, n * sizeof(*w->headers));
	memcpy(w->out->p + w->base, &e, sizeof(e));
	return 0;
}

int elf_object_write(struct elf_object *o, struct buf *out, struct err *err)
{
	struct writer w = {.o = o, .out = out, .base = out->n, .err = err};
	int rc;

	add_needed_sections(o);
	w.headers = mem_calloc(o->sections.n, sizeof(*w.headers));
	number_symbols(&w);
	place_names(&w);
	list_members(&w);
	memset(put_room(out, sizeof(Elf64_Ehdr)), 0, sizeof(Elf64_Ehdr));
	if (w.names[0].bytes.n > UINT32_MAX || w.names[1].bytes.n > UINT32_MAX)
		rc = err_set(err, ERR_LIMIT, "has more than 4 GiB of names");
	else
		rc = put_sections(&w);
	if (!rc)
		rc = put_headers(&w);
	if (rc)
		out->n = w.base;
	free(w.headers);
	free(w.new_number);
	free(w.symbol_names);
	free(w.next_member);
	name_table_release(&w.names[0]);
	name_table_release(&w.names[1]);
	return rc;
}
