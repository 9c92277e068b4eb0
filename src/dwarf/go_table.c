/* SPDX-License-Identifier: MIT */
#include "dwarf/go_table.h"

#include <elf.h>
#include <string.h>

#include "base/order.h"
#include "base/search.h"

#define NAME_BYTES_MAX 65536
#define HEADER_ALIGN   8
#define HEADERS_TRIED  16 /* what looks like one in a larger part */
#define MAGIC_1_2      0xfffffffbu
#define MAGIC_1_16     0xfffffffau
#define MAGIC_1_18     0xfffffff0u
#define MAGIC_1_20     0xfffffff1u
/* Of a function's flags (runtime/symtab.go, funcFlag). */
#define FLAG_OUTERMOST 1
#define FLAG_WRITES_SP 2

static unsigned version_of(uint32_t magic)
{
	switch (magic) {
	case MAGIC_1_2:
		return 102;
	case MAGIC_1_16:
		return 116;
	case MAGIC_1_18:
		return 118;
	case MAGIC_1_20:
		return 120;
	default:
		return 0;
	}
}

/* The part of `s` from `offset` on. */
static struct span span_from(struct span s, uint64_t offset)
{
	return offset <= s.n ? span_sub(s, offset, s.n - offset) : (struct span){NULL, 0};
}

ORDER_BY(compare_relocations, struct go_relocation, at)

/* Relocations with addends leave zeros in the file where addresses will be. */
static void read_relocations(struct go_table *t, const struct elf_file *elf, uint64_t addr)
{
	uint64_t at = 0, n = 0;
	struct cursor c;

	if (!elf->is_64 || !elf_file_dynamic(elf, DT_RELA, &at) ||
		!elf_file_dynamic(elf, DT_RELASZ, &n))
		return;
	c = cursor_of(span_sub(elf_file_bytes_at(elf, (struct iaddr){at}), 0, n));
	while (cursor_left(&c) >= 3 * sizeof(uint64_t)) {
		uint64_t place = cursor_u64(&c), info = cursor_u64(&c), value = cursor_u64(&c);

		if (ELF64_R_TYPE(info) == R_X86_64_RELATIVE && place - addr < t->bytes.n)
			vec_push(&t->relocations, ((struct go_relocation){place - addr, value}));
	}
	vec_sort(&t->relocations, compare_relocations);
}

/* The word of the table at `at`, as it is once the program is loaded. */
static uint64_t word_at(const struct go_table *t, uint64_t at)
{
	struct cursor c = cursor_of(span_sub(t->bytes, at, t->word));
	size_t i = SEARCH(0, t->relocations.n, k, t->relocations.v[k].at <= at);

	if (i && t->relocations.v[i - 1].at == at)
		return t->relocations.v[i - 1].value;
	return t->word == 8 ? cursor_u64(&c) : cursor_u32(&c);
}

static uint64_t offset_of(const struct go_table *t, struct span part)
{
	return (uint64_t)(part.p - t->bytes.p);
}

/* Go 1.2: everything counts from the header; the table of files is behind the functions. */
static bool read_header_1_2(struct go_table *t)
{
	uint64_t n_max = t->bytes.n / (2 * t->word), first = 8 + t->word, end;
	struct cursor c;

	t->n = word_at(t, 8);
	if (!t->n || t->n > n_max)
		return false;
	end = first + t->n * 2 * t->word + t->word;
	t->index = span_sub(t->bytes, first, end - first);
	c = cursor_of(span_from(t->bytes, end));
	t->units = span_from(t->bytes, cursor_u32(&c));
	t->bodies = t->names = t->values = t->files = t->bytes;
	return t->index.n && !c.failed;
}

/* Later: the header has a word for the beginning of each part. */
static bool read_header(struct go_table *t)
{
	bool has_text = t->version >= 118;
	unsigned entry = t->version >= 118 ? 4 : t->word;
	uint64_t at = 8 + 2 * (uint64_t)t->word;
	struct span *const parts[] = {&t->names, &t->units, &t->files, &t->values, &t->bodies};

	t->n = word_at(t, 8);
	if (has_text) {
		t->text = word_at(t, at);
		at += t->word;
	}
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++, at += t->word) {
		*parts[i] = span_from(t->bytes, word_at(t, at));
		if (!parts[i]->n)
			return false;
	}
	if (!t->n || t->n > t->bodies.n / (2 * entry))
		return false;
	t->index = span_sub(t->bodies, 0, t->n * 2 * entry + entry);
	return t->index.n;
}

static bool read_table(
	struct go_table *t, const struct elf_file *elf, struct span bytes, uint64_t addr)
{
	struct cursor c = cursor_of(bytes);
	uint32_t magic = cursor_u32(&c);
	uint16_t zero = cursor_u16(&c);
	uint8_t quantum = cursor_u8(&c), word = cursor_u8(&c);

	*t = (struct go_table){.bytes = bytes, .version = version_of(magic), .word = word};
	if (c.failed || !t->version || zero || quantum != 1 || word != (elf->is_64 ? 8 : 4))
		return false;
	read_relocations(t, elf, addr);
	if (t->version == 102 ? read_header_1_2(t) : read_header(t))
		return true;
	go_table_release(t);
	return false;
}

/* Somewhere in a larger part of the file. */
static bool search_table(
	struct go_table *t, const struct elf_file *elf, struct span bytes, uint64_t addr)
{
	int n_tried = 0;

	for (uint64_t at = 0; at + HEADER_ALIGN <= bytes.n && n_tried < HEADERS_TRIED;
		at += HEADER_ALIGN) {
		uint32_t magic;

		memcpy(&magic, bytes.p + at, sizeof(magic));
		if (!version_of(magic))
			continue;
		n_tried++;
		if (read_table(t, elf, span_from(bytes, at), addr + at))
			return true;
	}
	return false;
}

static bool read_section(struct go_table *t, const struct elf_file *elf, const char *name,
	bool (*read)(struct go_table *, const struct elf_file *, struct span, uint64_t))
{
	const struct elf_section *s = elf_file_find_section(elf, name);

	return s && read(t, elf, elf_file_section_bytes(elf, s), s->addr.v);
}

/* The names of its section, where it has one of its own. Linkers other than Go's put it among other
 * data when the program is position-independent; without sections it is in a segment. */
bool go_table_init(struct go_table *t, const struct elf_file *elf)
{
	if (elf->machine != EM_X86_64 && elf->machine != EM_386)
		return false;
	if (read_section(t, elf, ".gopclntab", read_table) ||
		read_section(t, elf, ".data.rel.ro.gopclntab", read_table))
		return true;
	if (elf->n_sections)
		return (elf_file_find_section(elf, ".go.buildinfo") ||
			       elf_file_find_section(elf, ".note.go.buildid")) &&
		       read_section(t, elf, ".data.rel.ro", search_table);
	for (size_t i = 0; i < elf->n_segments; i++) {
		const struct elf_segment *s = &elf->segments[i];

		if (s->type == PT_LOAD && !(s->flags & PF_X) &&
			search_table(t, elf,
				span_sub(elf_file_bytes_at(elf, s->addr), 0, s->file_size),
				s->addr.v))
			return true;
	}
	return false;
}

void go_table_release(struct go_table *t)
{
	vec_release(&t->relocations);
}

/* One of the numbers of the index. */
static uint64_t index_at(const struct go_table *t, uint64_t i)
{
	struct cursor c;

	if (t->version < 118)
		return word_at(t, offset_of(t, t->index) + i * t->word);
	c = cursor_of(span_sub(t->index, i * sizeof(uint32_t), sizeof(uint32_t)));
	return cursor_u32(&c);
}

static enum go_role role_of(const char *name, uint8_t flags)
{
	static const struct {
		const char *name;
		enum go_role role;
	} known[] = {
		{"goexit", GO_ROLE_OUTERMOST},
		{"mstart", GO_ROLE_OUTERMOST},
		{"rt0_go", GO_ROLE_OUTERMOST},
		{"mcall", GO_ROLE_BASE},
		{"morestack", GO_ROLE_BASE},
		{"systemstack", GO_ROLE_BASE},
		{"asmcgocall", GO_ROLE_SWITCH},
		{"sigreturn", GO_ROLE_SIGNAL},
		{"sigreturn__sigaction", GO_ROLE_SIGNAL},
		{"cgocallback", GO_ROLE_EXACT},
		{"sigtramp", GO_ROLE_EXACT},
		{"asyncPreempt", GO_ROLE_EXACT},
		{"sigpanic", GO_ROLE_EXACT},
	};
	static const char package[] = "runtime.";

	if (!strncmp(name, package, strlen(package)))
		for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
			if (!strcmp(name + strlen(package), known[i].name))
				return known[i].role;
	return flags & FLAG_OUTERMOST	? GO_ROLE_OUTERMOST
	       : flags & FLAG_WRITES_SP ? GO_ROLE_SWITCH
					: GO_ROLE_PLAIN;
}

static struct span values_at(const struct go_table *t, uint32_t offset)
{
	return offset ? span_from(t->values, offset) : (struct span){NULL, 0};
}

bool go_table_function(const struct go_table *t, uint64_t i, struct go_function *f)
{
	uint64_t start = t->text + index_at(t, 2 * i), end = t->text + index_at(t, 2 * i + 2);
	struct cursor c = cursor_of(span_from(t->bodies, index_at(t, 2 * i + 1)));
	uint32_t name, frames, files, lines;
	uint8_t flags = 0;

	*f = (struct go_function){.start = start, .size = end - start};
	cursor_skip(&c, t->version < 118 ? t->word : sizeof(uint32_t)); /* its address again */
	name = cursor_u32(&c);
	cursor_skip(&c, 8); /* of arguments, and where deferred calls return to */
	frames = cursor_u32(&c);
	files = cursor_u32(&c);
	lines = cursor_u32(&c);
	cursor_u32(&c); /* number of further tables */
	if (t->version >= 116)
		f->unit = cursor_u32(&c);
	if (t->version >= 120)
		cursor_u32(&c); /* the first line */
	if (t->version >= 116) {
		cursor_u8(&c); /* which function of the runtime it is, in that version's numbers */
		flags = cursor_u8(&c);
	}
	f->name = span_short_cstr(t->names, name, NAME_BYTES_MAX);
	if (c.failed || end <= start || !f->name)
		return false;
	f->name_bytes = (uint32_t)strlen(f->name);
	f->role = role_of(f->name, flags);
	f->frames = values_at(t, frames);
	f->files = values_at(t, files);
	f->lines = values_at(t, lines);
	return true;
}

void go_values_init(struct go_values *v, struct span table, const struct go_function *f)
{
	*v = (struct go_values){.c = cursor_of(table),
		.at = f->start,
		.end = f->start + f->size,
		.value = -1,
		.is_first = true};
}

bool go_values_next(struct go_values *v, uint64_t *start, uint64_t *end, int32_t *value)
{
	uint64_t change, n;

	if (v->at >= v->end)
		return false;
	change = cursor_uleb(&v->c);
	n = cursor_uleb(&v->c);
	/* A change by 0 ends the table, but for the first. A run without code would never end. */
	if (v->c.failed || (!change && !v->is_first) || !n)
		return false;
	v->is_first = false;
	v->value = (int32_t)((uint32_t)v->value +
			     (uint32_t)(change & 1 ? ~(change >> 1) : change >> 1));
	*start = v->at;
	*end = v->at = n < v->end - v->at ? v->at + n : v->end;
	*value = v->value;
	return true;
}
