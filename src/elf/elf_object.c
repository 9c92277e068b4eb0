/* SPDX-License-Identifier: MIT */
/*
 * Opens a relocatable object. Every number of the file is checked here, once, so that those who
 * change and write the object can index with what they find (the promises are in the header).
 *
 * Memory and time are linear in the file's size but for one sort: sections do not overlap, so
 * that no byte is read as a relocation or a symbol twice, and names are not measured.
 */
#include "elf/elf_object.h"

#include <stdlib.h>

#include "base/sort.h"
#include "elf/elf_object_parts.h"

#define OBJECT_SYMBOLS_MAX 0x7fffffffu

bool elf_object_is(struct span bytes)
{
	Elf64_Ehdr h;

	if (bytes.n < sizeof(h))
		return false;
	memcpy(&h, bytes.p, sizeof(h));
	return !memcmp(h.e_ident, ELFMAG, SELFMAG) && h.e_ident[EI_CLASS] == ELFCLASS64 &&
	       h.e_ident[EI_DATA] == ELFDATA2LSB && h.e_type == ET_REL && h.e_machine == EM_X86_64;
}

static int read_header(struct elf_object *o, struct err *err)
{
	Elf64_Ehdr *h = &o->arena->header;

	if (o->bytes.n < sizeof(*h) || memcmp(o->bytes.p, ELFMAG, SELFMAG))
		return err_set(err, ERR_FORMAT, "is not an ELF file");
	memcpy(h, o->bytes.p, sizeof(*h));
	if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB ||
		h->e_machine != EM_X86_64)
		return err_set(err, ERR_UNSUPPORTED, "is an ELF file, but not for x86-64");
	if (h->e_type != ET_REL)
		return err_set(err, ERR_UNSUPPORTED,
			"is not a relocatable object (its ELF type is %u)", h->e_type);
	if (h->e_phnum)
		return err_set(err, ERR_UNSUPPORTED, "is a relocatable object with segments");
	if (h->e_shoff < sizeof(*h) || h->e_shentsize != sizeof(Elf64_Shdr) ||
		!span_sub(o->bytes, h->e_shoff, sizeof(Elf64_Shdr)).p)
		return err_set(err, ERR_FORMAT, "has no section headers at 0x%llx",
			(unsigned long long)h->e_shoff);
	o->os_abi = h->e_ident[EI_OSABI];
	o->abi_version = h->e_ident[EI_ABIVERSION];
	o->flags = h->e_flags;
	return 0;
}

/* The counts that do not fit into the file's header are in the null section. */
static int count_sections(struct elf_object *o, struct err *err)
{
	struct object_arena *a = o->arena;
	Elf64_Shdr null = object_file_header(o, 0);
	uint64_t n = a->header.e_shnum ? a->header.e_shnum : null.sh_size;
	uint64_t room = (o->bytes.n - a->header.e_shoff) / sizeof(Elf64_Shdr);

	a->shstrtab = a->header.e_shstrndx == SHN_XINDEX ? null.sh_link : a->header.e_shstrndx;
	if (n > room)
		return err_set(err, ERR_FORMAT, "has room for %llu section headers of %llu",
			(unsigned long long)room, (unsigned long long)n);
	if (a->shstrtab >= n || !a->shstrtab)
		return err_set(err, ERR_FORMAT, "has no table of section names");
	a->n_file_sections = (uint32_t)n;
	return 0;
}

static int read_sections(struct elf_object *o, struct err *err)
{
	uint32_t n = o->arena->n_file_sections;

	vec_reserve(&o->sections, n + 8);
	for (uint32_t i = 0; i < n; i++) {
		Elf64_Shdr h = object_file_header(o, i);
		struct object_section s = {.name = "",
			.type = h.sh_type,
			.flags = h.sh_flags,
			.align = h.sh_addralign,
			.entsize = h.sh_entsize,
			.link = h.sh_link,
			.info = h.sh_info,
			.size = h.sh_size};

		if (i && h.sh_size && object_type_has_bytes(h.sh_type)) {
			s.data = span_sub(o->bytes, h.sh_offset, h.sh_size);
			if (!s.data.p)
				return err_set(err, ERR_FORMAT,
					"section %u: its bytes are not in the file", i);
		}
		if ((h.sh_flags & SHF_LINK_ORDER) && h.sh_link >= n)
			return err_set(err, ERR_FORMAT, "section %u is linked to section %u of %u",
				i, h.sh_link, n);
		vec_push(&o->sections, s);
	}
	return 0;
}

/* Bytes from the start of the string table up to its last NUL: a name that begins in them ends. */
static size_t named_bytes(struct span table)
{
	const uint8_t *last = table.n ? memrchr(table.p, 0, table.n) : NULL;

	return last ? (size_t)(last - table.p) + 1 : 0;
}

static int name_sections(struct elf_object *o, struct err *err)
{
	const struct object_section *table = &o->sections.v[o->arena->shstrtab];
	size_t named = named_bytes(table->data);

	if (table->type != SHT_STRTAB || (table->flags & SHF_COMPRESSED))
		return err_set(err, ERR_FORMAT, "section %u is no table of section names",
			o->arena->shstrtab);
	for (uint32_t i = 1; i < o->sections.n; i++) {
		uint32_t name = object_file_header(o, i).sh_name;

		if (name >= named)
			return err_set(
				err, ERR_FORMAT, "section %u: its name is not in the file", i);
		o->sections.v[i].name = (const char *)table->data.p + name;
	}
	return 0;
}

static int check_overlaps(struct elf_object *o, struct err *err)
{
	struct sort_pair *by_offset = mem_alloc(o->sections.n * sizeof(*by_offset));
	size_t n = 0;
	int rc = 0;

	for (uint32_t i = 1; i < o->sections.n; i++) {
		struct span data = o->sections.v[i].data;

		if (data.n)
			by_offset[n++] =
				(struct sort_pair){(uint64_t)(data.p - o->bytes.p), i};
	}
	sort_pairs(by_offset, n);
	for (size_t i = 1; i < n && !rc; i++) {
		const struct sort_pair *before = &by_offset[i - 1];

		if (by_offset[i].key < before->key + o->sections.v[before->i].data.n)
			rc = err_set(err, ERR_FORMAT, "sections %u and %u overlap", before->i,
				by_offset[i].i);
	}
	free(by_offset);
	return rc;
}

/* The only table of its type, or 0. */
static int find_table(struct elf_object *o, uint32_t type, uint32_t *found, struct err *err)
{
	*found = 0;
	for (uint32_t i = 1; i < o->sections.n; i++) {
		if (o->sections.v[i].type != type)
			continue;
		if (type == SHT_SYMTAB_SHNDX && o->sections.v[i].link != o->symtab)
			continue;
		if (*found)
			return err_set(err, ERR_UNSUPPORTED,
				"sections %u and %u are both tables of type %u", *found, i, type);
		if (o->sections.v[i].flags & SHF_COMPRESSED)
			return err_set(
				err, ERR_UNSUPPORTED, "section %u, a table, is compressed", i);
		*found = i;
	}
	return 0;
}

static int find_symbol_tables(struct elf_object *o, struct err *err)
{
	struct object_arena *a = o->arena;
	const struct object_section *symtab, *strtab;
	int rc = find_table(o, SHT_SYMTAB, &o->symtab, err);

	if (rc || !o->symtab)
		return rc;
	symtab = &o->sections.v[o->symtab];
	if (symtab->entsize != sizeof(Elf64_Sym) || symtab->size % sizeof(Elf64_Sym) ||
		!symtab->size || symtab->size / sizeof(Elf64_Sym) > OBJECT_SYMBOLS_MAX)
		return err_set(err, ERR_FORMAT, "section %u is no table of symbols", o->symtab);
	a->n_file_symbols = (uint32_t)(symtab->size / sizeof(Elf64_Sym));
	if (!symtab->link || symtab->link >= o->sections.n)
		return err_set(err, ERR_FORMAT, "symbol names are in section %u of %zu",
			symtab->link, o->sections.n);
	a->strtab = symtab->link;
	strtab = &o->sections.v[a->strtab];
	if (strtab->type != SHT_STRTAB || (strtab->flags & SHF_COMPRESSED))
		return err_set(
			err, ERR_FORMAT, "section %u is no table of symbol names", a->strtab);
	rc = find_table(o, SHT_SYMTAB_SHNDX, &a->symtab_shndx, err);
	if (!rc && a->symtab_shndx &&
		o->sections.v[a->symtab_shndx].size != a->n_file_symbols * sizeof(uint32_t))
		return err_set(err, ERR_FORMAT,
			"section %u has not as many section numbers as there are symbols",
			a->symtab_shndx);
	return rc;
}

/* The section of symbol `i`, whose st_shndx is given. */
static int symbol_section(
	const struct elf_object *o, uint32_t i, uint16_t shndx, uint32_t *section, struct err *err)
{
	uint32_t wide = shndx;

	if (shndx == SHN_XINDEX) {
		uint32_t table = o->arena->symtab_shndx;

		if (!table)
			return err_set(err, ERR_FORMAT,
				"symbol %u: there is no table of section numbers", i);
		memcpy(&wide, o->sections.v[table].data.p + i * sizeof(wide), sizeof(wide));
	} else if (shndx >= SHN_LORESERVE) {
		*section = OBJECT_SECTION_OTHER + (uint32_t)(shndx - SHN_LORESERVE);
		return 0;
	}
	if (wide >= o->sections.n)
		return err_set(err, ERR_FORMAT, "symbol %u is in section %u of %zu", i, wide,
			o->sections.n);
	*section = wide;
	return 0;
}

static int read_symbol(struct elf_object *o, uint32_t i, size_t named, struct err *err)
{
	const struct object_section *table = &o->sections.v[o->symtab];
	struct object_symbol s;
	Elf64_Sym e;
	int rc;

	memcpy(&e, table->data.p + i * sizeof(e), sizeof(e));
	if (e.st_name >= named)
		return err_set(err, ERR_FORMAT, "symbol %u: its name is not in the file", i);
	s = (struct object_symbol){
		.name = (const char *)o->sections.v[o->arena->strtab].data.p + e.st_name,
		.bind = ELF64_ST_BIND(e.st_info),
		.type = ELF64_ST_TYPE(e.st_info),
		.other = e.st_other,
		.value = e.st_value,
		.size = e.st_size};
	rc = symbol_section(o, i, e.st_shndx, &s.section, err);
	if (rc)
		return rc;
	if ((s.bind == STB_LOCAL) != (i < table->info || !i))
		return err_set(
			err, ERR_FORMAT, "symbol %u is on the wrong side of the locals' end", i);
	if (s.type == STT_SECTION && s.bind == STB_LOCAL && !s.value && s.section &&
		s.section < o->sections.n && !o->sections.v[s.section].symbol)
		o->sections.v[s.section].symbol = i;
	vec_push(&o->symbols, s);
	return 0;
}

static int read_symbols(struct elf_object *o, struct err *err)
{
	uint32_t n = o->arena->n_file_symbols;
	size_t named;

	vec_reserve(&o->symbols, n + 8);
	if (!o->symtab) {
		vec_push(&o->symbols, ((struct object_symbol){.name = ""}));
		return 0;
	}
	named = named_bytes(o->sections.v[o->arena->strtab].data);
	for (uint32_t i = 0; i < n; i++) {
		int rc = read_symbol(o, i, named, err);

		if (rc)
			return rc;
	}
	return 0;
}

static int read_group(struct elf_object *o, uint32_t group, struct err *err)
{
	const struct object_section *g = &o->sections.v[group];
	uint32_t member;

	if (g->size % 4 || g->size < 4 || (g->flags & SHF_COMPRESSED))
		return err_set(
			err, ERR_FORMAT, "section %u is no list of a group's members", group);
	if (!o->symtab || g->link != o->symtab || g->info >= o->symbols.n)
		return err_set(err, ERR_FORMAT, "section %u: the group has no signature", group);
	for (size_t at = 4; at < g->data.n; at += 4) {
		struct object_section *s;

		memcpy(&member, g->data.p + at, sizeof(member));
		if (!member || member >= o->sections.n)
			return err_set(err, ERR_FORMAT,
				"section %u: the group has section %u of %zu", group, member,
				o->sections.n);
		s = &o->sections.v[member];
		if (s->type == SHT_GROUP || member == o->symtab || member == o->arena->strtab ||
			member == o->arena->shstrtab)
			return err_set(err, ERR_FORMAT,
				"section %u: the group has section %u, which cannot be in a group",
				group, member);
		if (s->group)
			return err_set(err, ERR_FORMAT,
				"section %u is a member of groups %u and %u", member, s->group,
				group);
		s->group = group;
	}
	return 0;
}

uint32_t object_reloc_bytes(uint32_t type)
{
	switch (type) {
	case R_X86_64_8:
	case R_X86_64_PC8:
		return 1;
	case R_X86_64_16:
	case R_X86_64_PC16:
		return 2;
	case R_X86_64_PC32:
	case R_X86_64_GOT32:
	case R_X86_64_PLT32:
	case R_X86_64_GOTPCREL:
	case R_X86_64_32:
	case R_X86_64_32S:
	case R_X86_64_TLSGD:
	case R_X86_64_TLSLD:
	case R_X86_64_DTPOFF32:
	case R_X86_64_GOTTPOFF:
	case R_X86_64_TPOFF32:
	case R_X86_64_GOTPC32:
	case R_X86_64_SIZE32:
	case R_X86_64_GOTPC32_TLSDESC:
	case R_X86_64_GOTPCRELX:
	case R_X86_64_REX_GOTPCRELX:
		return 4;
	case R_X86_64_64:
	case R_X86_64_GLOB_DAT:
	case R_X86_64_JUMP_SLOT:
	case R_X86_64_RELATIVE:
	case R_X86_64_DTPMOD64:
	case R_X86_64_DTPOFF64:
	case R_X86_64_TPOFF64:
	case R_X86_64_PC64:
	case R_X86_64_GOTOFF64:
	case R_X86_64_GOT64:
	case R_X86_64_GOTPCREL64:
	case R_X86_64_GOTPC64:
	case R_X86_64_GOTPLT64:
	case R_X86_64_PLTOFF64:
	case R_X86_64_SIZE64:
	case R_X86_64_IRELATIVE:
	case R_X86_64_RELATIVE64:
		return 8;
	case R_X86_64_TLSDESC:
		return 16;
	default:
		return 0;
	}
}

void object_relocs_read(struct object_reloc *to, struct span table, uint32_t type)
{
	if (type == SHT_RELA) {
		memcpy(to, table.p, table.n);
		return;
	}
	for (size_t i = 0; i < table.n / sizeof(Elf64_Rel); i++) {
		memcpy(&to[i], table.p + i * sizeof(Elf64_Rel), sizeof(Elf64_Rel));
		to[i].addend = 0;
	}
}

/* The section that the relocations of section `table` apply to. */
static int relocated_section(
	const struct elf_object *o, uint32_t table, uint32_t *section, struct err *err)
{
	const struct object_section *t = &o->sections.v[table], *s;
	size_t entry = t->type == SHT_RELA ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);

	if (t->entsize != entry || t->size % entry || (t->flags & SHF_COMPRESSED))
		return err_set(err, ERR_FORMAT, "section %u is no table of relocations", table);
	if (t->link != o->symtab)
		return err_set(err, ERR_UNSUPPORTED,
			"section %u: the relocations do not use the object's symbols", table);
	if (!t->info || t->info >= o->sections.n)
		return err_set(err, ERR_FORMAT, "section %u has relocations for section %u of %zu",
			table, t->info, o->sections.n);
	s = &o->sections.v[t->info];
	if (s->rela)
		return err_set(err, ERR_UNSUPPORTED,
			"sections %u and %u both have relocations for section %u", s->rela, table,
			t->info);
	if (s->type == SHT_NULL || s->type == SHT_RELA || s->type == SHT_REL ||
		s->type == SHT_GROUP || t->info == o->symtab || t->info == o->arena->strtab ||
		t->info == o->arena->shstrtab || t->info == o->arena->symtab_shndx)
		return err_set(err, ERR_FORMAT,
			"section %u has relocations for section %u, which cannot have any", table,
			t->info);
	/* LLVM gives its call graph a table without addends, also for x86-64. */
	if (t->type == SHT_REL && s->type != OBJECT_SHT_LLVM_CALL_GRAPH_PROFILE)
		return err_set(err, ERR_UNSUPPORTED,
			"section %u: relocations without addends are not for x86-64", table);
	*section = t->info;
	return 0;
}

/* How many bytes relocations may speak of. */
static uint64_t relocatable_bytes(const struct object_section *s)
{
	Elf64_Chdr h;

	if (!(s->flags & SHF_COMPRESSED))
		return s->size;
	if (s->data.n < sizeof(h))
		return 0;
	memcpy(&h, s->data.p, sizeof(h));
	return h.ch_size;
}

static int read_relocs(struct elf_object *o, uint32_t table, struct err *err)
{
	const struct object_section *t = &o->sections.v[table];
	struct object_section *s;
	uint32_t target = 0;
	uint64_t bytes;
	size_t n;
	int rc = relocated_section(o, table, &target, err);

	if (rc)
		return rc;
	s = &o->sections.v[target];
	s->rela = table;
	n = t->data.n / t->entsize;
	if (!n)
		return 0;
	bytes = relocatable_bytes(s);
	s->relocs.v = mem_alloc(n * sizeof(*s->relocs.v));
	s->relocs.n = s->relocs.cap = n;
	object_relocs_read(s->relocs.v, t->data, t->type);
	for (size_t i = 0; i < n; i++) {
		const struct object_reloc *r = &s->relocs.v[i];

		if (r->offset > bytes || object_reloc_bytes(r->type) > bytes - r->offset)
			return err_set(err, ERR_FORMAT,
				"section %u: relocation %zu is outside of section %u", table, i,
				target);
		if (r->symbol >= o->symbols.n)
			return err_set(err, ERR_FORMAT,
				"section %u: relocation %zu uses symbol %u of %zu", table, i,
				r->symbol, o->symbols.n);
		if (i && r[-1].offset > r->offset)
			o->arena->is_unsorted[target] = 1;
	}
	if (o->arena->is_unsorted[target])
		object_section_sort_relocs(s);
	return 0;
}

static int read_links(struct elf_object *o, struct err *err)
{
	o->arena->is_unsorted = mem_zalloc(o->sections.n);
	for (uint32_t i = 1; i < o->sections.n; i++) {
		int rc = 0;

		switch (o->sections.v[i].type) {
		case SHT_GROUP:
			rc = read_group(o, i, err);
			break;
		case SHT_RELA:
		case SHT_REL:
			rc = read_relocs(o, i, err);
			break;
		case OBJECT_SHT_CREL:
			rc = err_set(err, ERR_UNSUPPORTED,
				"section %u: compact relocations are not known", i);
			break;
		default:
			break;
		}
		if (rc)
			return rc;
	}
	return 0;
}

int elf_object_open(struct elf_object *o, struct span bytes, struct err *err)
{
	static int (*const steps[])(struct elf_object *, struct err *) = {read_header,
		count_sections, read_sections, check_overlaps, name_sections, find_symbol_tables,
		read_symbols, read_links};
	int rc = 0;

	*o = (struct elf_object){.bytes = bytes};
	o->arena = mem_zalloc(sizeof(*o->arena));
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && !rc; i++)
		rc = steps[i](o, err);
	if (rc)
		elf_object_release(o);
	return rc;
}

void elf_object_release(struct elf_object *o)
{
	for (size_t i = 0; i < o->sections.n; i++) {
		buf_release(&o->sections.v[i].owned);
		vec_release(&o->sections.v[i].relocs);
	}
	vec_release(&o->sections);
	vec_release(&o->symbols);
	if (o->arena) {
		free(o->arena->is_unsorted);
		intern_release(&o->arena->names);
		map_release(&o->arena->by_name);
		vec_release(&o->arena->same_hash);
		free(o->arena);
	}
	*o = (struct elf_object){0};
}
