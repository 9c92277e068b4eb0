/* SPDX-License-Identifier: MIT */
/*
 * Symbol tables: .symtab, .dynsym, and the dynamic table found through PT_DYNAMIC when a file or a
 * memory image has no section headers.
 */
#include "elf/elf_file.h"

#include <elf.h>
#include <string.h>

/* One symbol table: entries and the texts they point into. */
struct table {
	struct span entries;
	struct span names;  /* ends with a NUL, or is empty */
	size_t entry_bytes; /* stride, at least the size of a symbol */
};

struct raw_symbol {
	uint32_t name;
	uint8_t info;
	uint16_t shndx;
	uint64_t value, size;
};

static size_t symbol_bytes(const struct elf_file *elf)
{
	return elf->is_64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
}

static struct raw_symbol read_symbol(const struct elf_file *elf, struct span entry)
{
	struct cursor c = cursor_of(entry);
	struct raw_symbol s = {.name = cursor_u32(&c)};

	if (!elf->is_64) {
		s.value = cursor_u32(&c);
		s.size = cursor_u32(&c);
	}
	s.info = cursor_u8(&c);
	cursor_skip(&c, 1); /* st_other */
	s.shndx = cursor_u16(&c);
	if (elf->is_64) {
		s.value = cursor_u64(&c);
		s.size = cursor_u64(&c);
	}
	return s;
}

/* Cut to the last NUL, so that every offset inside begins a terminated text and no name needs a
 * search of its own. */
static struct span terminated(struct span names)
{
	while (names.n && names.p[names.n - 1] != 0)
		names.n--;
	return names;
}

static struct table table_of_section(const struct elf_file *elf, const struct elf_section *s)
{
	struct table t = {.entry_bytes = symbol_bytes(elf)};

	if (s->entsize > t.entry_bytes && s->entsize <= s->size)
		t.entry_bytes = (size_t)s->entsize;
	if (s->link >= elf->n_sections)
		return t;
	t.entries = elf_file_section_bytes(elf, s);
	t.names = terminated(elf_file_section_bytes(elf, &elf->sections[s->link]));
	return t;
}

bool elf_file_dynamic(const struct elf_file *elf, uint64_t tag, uint64_t *value)
{
	const struct elf_segment *s;
	struct cursor c;
	size_t i = 0;

	while (i < elf->n_segments && elf->segments[i].type != PT_DYNAMIC)
		i++;
	if (i == elf->n_segments)
		return false;
	s = &elf->segments[i];
	c = cursor_of(span_sub(elf->bytes, s->offset.v, s->file_size));
	while (cursor_left(&c)) {
		uint64_t entry_tag = elf_file_word(elf, &c);
		uint64_t entry_value = elf_file_word(elf, &c);

		if (c.failed || entry_tag == DT_NULL)
			return false;
		if (entry_tag == tag) {
			*value = entry_value;
			return true;
		}
	}
	return false;
}

/* DT_GNU_HASH does not tell the number of symbols: it is one more than the end of the chain that
 * begins last. */
static uint64_t count_by_gnu_hash(const struct elf_file *elf, struct span hash)
{
	struct cursor c = cursor_of(hash);
	uint32_t n_buckets = cursor_u32(&c);
	uint32_t first = cursor_u32(&c);
	uint32_t n_bloom = cursor_u32(&c);
	uint64_t last = 0;

	cursor_skip(&c, 4);
	cursor_skip(&c, (uint64_t)n_bloom * (elf->is_64 ? 8 : 4));
	for (uint32_t i = 0; i < n_buckets && !c.failed; i++) {
		uint32_t start = cursor_u32(&c);

		if (start > last)
			last = start;
	}
	if (c.failed || last < first)
		return first;
	cursor_skip(&c, (last - first) * 4);
	while (!c.failed && !(cursor_u32(&c) & 1))
		last++;
	return last + 1;
}

static struct table table_of_dynamic(const struct elf_file *elf)
{
	struct table t = {.entry_bytes = symbol_bytes(elf)};
	uint64_t symbols, names, names_bytes, hash, n = 0;
	struct span s;

	if (!elf_file_dynamic(elf, DT_SYMTAB, &symbols) ||
		!elf_file_dynamic(elf, DT_STRTAB, &names) ||
		!elf_file_dynamic(elf, DT_STRSZ, &names_bytes))
		return t;
	if (elf_file_dynamic(elf, DT_HASH, &hash)) {
		struct cursor c = cursor_of(elf_file_bytes_at(elf, (struct iaddr){hash}));

		cursor_skip(&c, 4); /* nbucket */
		n = cursor_u32(&c); /* nchain: as many as there are symbols */
	} else if (elf_file_dynamic(elf, DT_GNU_HASH, &hash)) {
		n = count_by_gnu_hash(elf, elf_file_bytes_at(elf, (struct iaddr){hash}));
	}
	s = elf_file_bytes_at(elf, (struct iaddr){names});
	if (names_bytes < s.n)
		s.n = (size_t)names_bytes;
	t.names = terminated(s);
	s = elf_file_bytes_at(elf, (struct iaddr){symbols});
	if (n < s.n / t.entry_bytes)
		s.n = (size_t)n * t.entry_bytes;
	t.entries = s;
	return t;
}

static struct table find_table(const struct elf_file *elf, bool dynamic)
{
	for (size_t i = 0; i < elf->n_sections; i++) {
		if (elf->sections[i].type == (dynamic ? SHT_DYNSYM : SHT_SYMTAB))
			return table_of_section(elf, &elf->sections[i]);
	}
	return dynamic && !elf->n_sections ? table_of_dynamic(elf)
					   : (struct table){.entry_bytes = symbol_bytes(elf)};
}

/* Where code of this symbol may lie, as bytes from its address to the end of its section (or
 * segment); 0 when it is not in one. *executable says what the place is. */
static uint64_t room_in_segment(const struct elf_file *elf, uint64_t addr, bool *executable)
{
	for (size_t i = 0; i < elf->n_segments; i++) {
		const struct elf_segment *s = &elf->segments[i];

		if (s->type == PT_LOAD && addr >= s->addr.v && addr - s->addr.v < s->mem_size) {
			*executable = s->flags & PF_X;
			return s->mem_size - (addr - s->addr.v);
		}
	}
	return 0;
}

static uint64_t room_of(
	const struct elf_file *elf, const struct raw_symbol *raw, uint64_t *addr, bool *executable)
{
	const struct elf_section *s;
	uint64_t into;

	*addr = raw->value;
	*executable = false;
	if (!elf->n_sections || raw->shndx == SHN_XINDEX)
		return room_in_segment(elf, raw->value, executable);
	if (raw->shndx >= elf->n_sections)
		return 0; /* SHN_ABS, SHN_COMMON, or wrong */
	s = &elf->sections[raw->shndx];
	/* In a relocatable file values count from the section's start. */
	into = elf->type == ET_REL ? raw->value : raw->value - s->addr.v;
	if (elf->type == ET_REL)
		*addr = s->addr.v + raw->value;
	if (into >= s->size)
		return 0;
	*executable = s->flags & SHF_EXECINSTR;
	return s->size - into;
}

/* A defined symbol with a name, in a section or segment; those without a type only in code. */
static bool symbol_of(const struct elf_file *elf, const struct table *t,
	const struct raw_symbol *raw, struct elf_symbol *out)
{
	uint8_t type = raw->info & 0xf;
	uint64_t addr, room;
	bool executable;

	if (raw->shndx == SHN_UNDEF || raw->name >= t->names.n || !t->names.p[raw->name])
		return false;
	room = room_of(elf, raw, &addr, &executable);
	if (!room || (type == STT_NOTYPE && !executable))
		return false;
	*out = (struct elf_symbol){
		.name = (const char *)t->names.p + raw->name,
		.addr = {addr},
		.size = raw->size < room ? raw->size : room,
		.room = room,
		.type = type,
		.bind = raw->info >> 4,
	};
	return true;
}

/* The source file that the local symbols behind this entry are from; NULL when it says none, as for
 * what the linker makes and for the parts of link-time optimisation. */
static const char *file_of(const struct table *t, const struct raw_symbol *raw)
{
	const char *name = raw->name < t->names.n ? (const char *)t->names.p + raw->name : "";

	return *name && *name != '<' ? name : NULL;
}

/* The next function from entry *i on, which moves behind it; *file is that of the entries before. */
static bool next_function(const struct elf_file *elf, const struct table *t, size_t *i,
	const char **file, struct elf_symbol *out)
{
	size_t n = t->entries.n / t->entry_bytes;

	while (*i < n) {
		struct span entry = span_sub(t->entries, (*i)++ * t->entry_bytes, t->entry_bytes);
		struct raw_symbol raw = read_symbol(elf, entry);
		uint8_t type = raw.info & 0xf;

		if (type == STT_FILE)
			*file = file_of(t, &raw);
		if ((type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE) &&
			symbol_of(elf, t, &raw, out)) {
			out->file = out->bind == STB_LOCAL ? *file : NULL;
			return true;
		}
	}
	return false;
}

void elf_file_each_function(const struct elf_file *elf, bool dynamic,
	void (*each)(void *ctx, const struct elf_symbol *symbol), void *ctx)
{
	struct table t = find_table(elf, dynamic);
	struct elf_symbol symbol;
	const char *file = NULL;

	for (size_t i = 0; next_function(elf, &t, &i, &file, &symbol);)
		each(ctx, &symbol);
}

void elf_file_each_object(const struct elf_file *elf, bool dynamic,
	void (*each)(void *ctx, const struct elf_symbol *symbol), void *ctx)
{
	struct table t = find_table(elf, dynamic);
	size_t n = t.entry_bytes ? t.entries.n / t.entry_bytes : 0;

	for (size_t i = 0; i < n; i++) {
		struct raw_symbol raw =
			read_symbol(elf, span_sub(t.entries, i * t.entry_bytes, t.entry_bytes));
		struct elf_symbol symbol;

		if ((raw.info & 0xf) == STT_OBJECT && raw.size && symbol_of(elf, &t, &raw, &symbol))
			each(ctx, &symbol);
	}
}

bool elf_symbol_is_internal(const struct elf_symbol *s)
{
	if (strncmp(s->name, ".L", 2) == 0)
		return true;
	if (s->type != STT_NOTYPE)
		return false;
	if (s->name[0] == '.')
		return true;
	return s->name[0] == '$' && s->name[1] && strchr("adtx", s->name[1]) &&
	       (!s->name[2] || s->name[2] == '.');
}

bool elf_file_has_functions(const struct elf_file *elf)
{
	struct table t = find_table(elf, false);
	struct elf_symbol symbol;
	const char *file = NULL;

	for (size_t i = 0; next_function(elf, &t, &i, &file, &symbol);)
		if (!elf_symbol_is_internal(&symbol))
			return true;
	return false;
}

static bool find_object(
	const struct elf_file *elf, bool dynamic, const char *name, struct elf_symbol *out)
{
	struct table t = find_table(elf, dynamic);
	size_t n = t.entries.n / t.entry_bytes;

	for (size_t i = 0; i < n; i++) {
		struct span entry = span_sub(t.entries, i * t.entry_bytes, t.entry_bytes);
		struct raw_symbol raw = read_symbol(elf, entry);

		if ((raw.info & 0xf) == STT_OBJECT && symbol_of(elf, &t, &raw, out) &&
			!strcmp(out->name, name))
			return true;
	}
	return false;
}

bool elf_file_find_object(const struct elf_file *elf, const char *name, struct elf_symbol *out)
{
	return find_object(elf, false, name, out) || find_object(elf, true, name, out);
}

const char *elf_file_symbol_name(
	const struct elf_file *elf, const struct elf_section *table, uint64_t index)
{
	struct span entries = elf_file_section_bytes(elf, table);
	size_t entry_bytes = symbol_bytes(elf);
	struct span names;
	struct raw_symbol raw;

	if (index >= entries.n / entry_bytes || table->link >= elf->n_sections)
		return NULL;
	raw = read_symbol(elf, span_sub(entries, index * entry_bytes, entry_bytes));
	names = elf_file_section_bytes(elf, &elf->sections[table->link]);
	if (raw.name >= names.n || !names.p[raw.name])
		return NULL;
	return span_short_cstr(names, raw.name, ELF_NAME_MAX);
}
