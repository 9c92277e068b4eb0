/* SPDX-License-Identifier: MIT */
#include "elf/elf_object.h"

#include <stdlib.h>

#include "check.h"
#include "elf_maker.h"

#define LOCAL(type)  ELF64_ST_INFO(STB_LOCAL, type)
#define GLOBAL(type) ELF64_ST_INFO(STB_GLOBAL, type)
#define WEAK(type)   ELF64_ST_INFO(STB_WEAK, type)

#define SHT_ADDRSIG    0x6fff4c03
#define SHT_CALL_GRAPH 0x6fff4c02 /* with symbol numbers */
#define SHT_UNKNOWN    0x6fff1234

/* An object with something of everything. */
enum {
	TEXT = 1,
	GROUP,
	INLINED,
	RELA_INLINED,
	RELA_TEXT,
	DATA,
	ADDRSIG,
	CALL_GRAPH,
	BSS,
	ORDERED,
	SYMTAB,
	STRTAB,
	SHSTRTAB
};
enum {
	SYM_TEXT = 1,
	SYM_TEXT_AGAIN,
	SYM_LABEL,
	SYM_INLINED,
	SYM_F,
	SYM_OUTSIDE,
	SYM_WEAK,
	N_SYMBOLS
};

static struct span words(const void *p, size_t n)
{
	return (struct span){p, n};
}

static void make_sections(struct elf_maker *m)
{
	static const uint32_t members[] = {GRP_COMDAT, INLINED, RELA_INLINED};
	static const Elf64_Rela of_inlined[] = {{4, ELF64_R_INFO(SYM_F, R_X86_64_PLT32), -4}};
	static const Elf64_Rela of_text[] = {/* not in order, two of them at one place */
		{8, ELF64_R_INFO(SYM_OUTSIDE, R_X86_64_TLSGD), -4},
		{0, ELF64_R_INFO(SYM_INLINED, R_X86_64_PC32), 7},
		{8, ELF64_R_INFO(SYM_F, R_X86_64_NONE), 0}};
	static const uint8_t significant[] = {SYM_F, SYM_LABEL, SYM_INLINED};
	static const struct {
		uint32_t from, to;
		uint64_t weight;
	} calls[] = {{SYM_F, SYM_INLINED, 32}};
	static const struct elf_section headers[] = {
		[GROUP] = {.link = SYMTAB, .info = SYM_INLINED, .entsize = 4},
		[RELA_INLINED] = {.link = SYMTAB,
			.info = INLINED,
			.entsize = 24,
			.flags = SHF_GROUP},
		[RELA_TEXT] = {.link = SYMTAB, .info = TEXT, .entsize = 24, .flags = SHF_INFO_LINK},
		[ADDRSIG] = {.link = SYMTAB, .flags = SHF_EXCLUDE},
		[CALL_GRAPH] = {.link = SYMTAB, .flags = SHF_EXCLUDE},
		[ORDERED] = {.link = TEXT, .flags = SHF_ALLOC | SHF_LINK_ORDER}};

	elf_maker_code(m, ".text", 0, 16);
	elf_maker_section(m, ".group", SHT_GROUP, 0, words(members, sizeof(members)));
	elf_maker_code(m, ".text.inlined", 0, 8);
	elf_maker_section(
		m, ".rela.text.inlined", SHT_RELA, 0, words(of_inlined, sizeof(of_inlined)));
	elf_maker_section(m, ".rela.text", SHT_RELA, 0, words(of_text, sizeof(of_text)));
	elf_maker_section(m, ".data", SHT_PROGBITS, 0, words("0123456789abcdef", 16));
	elf_maker_section(m, ".llvm_addrsig", SHT_ADDRSIG, 0, words(significant, 3));
	elf_maker_section(m, ".llvm.call-graph-profile", SHT_CALL_GRAPH, 0, words(calls, 16));
	elf_maker_section(m, ".bss", SHT_NOBITS, 0, words(NULL, 0));
	elf_maker_section(m, "ordered", SHT_PROGBITS, 0, words("xyz", 3));
	for (uint32_t i = GROUP; i <= ORDERED; i++) {
		m->sections[i].link = headers[i].link;
		m->sections[i].info = headers[i].info;
		m->sections[i].entsize = headers[i].entsize;
		m->sections[i].flags |= headers[i].flags;
	}
	m->sections[INLINED].flags |= SHF_GROUP;
	m->sections[BSS].size = 4096;
}

static void make_object(struct elf_maker *m)
{
	elf_maker_init(m, true);
	m->type = ET_REL;
	make_sections(m);
	elf_maker_symbol(m, "", 0, 0, LOCAL(STT_SECTION), TEXT);
	elf_maker_symbol(m, "", 0, 0, LOCAL(STT_SECTION), TEXT);
	elf_maker_symbol(m, "label", 4, 0, LOCAL(STT_NOTYPE), DATA);
	elf_maker_symbol(m, "inlined", 0, 8, WEAK(STT_FUNC), INLINED);
	elf_maker_symbol(m, "f", 0, 16, GLOBAL(STT_FUNC), TEXT);
	elf_maker_symbol(m, "outside", 0, 0, GLOBAL(STT_NOTYPE), SHN_UNDEF);
	elf_maker_symbol(m, "label", 0, 0, WEAK(STT_NOTYPE), SHN_UNDEF);
	elf_maker_symbols(m, ".symtab", SHT_SYMTAB);
	m->sections[SYMTAB].info = SYM_INLINED;
}

static void open_made(struct elf_maker *m, struct elf_object *o)
{
	struct err err = {0};

	CHECK_EQ(elf_object_open(o, elf_maker_finish(m), &err), 0);
	CHECK_STR(err.text, "");
}

static void open_object(struct elf_maker *m, struct elf_object *o)
{
	make_object(m);
	open_made(m, o);
}

/* Writes `o` and opens what was written. */
static void reopen(struct elf_object *o, struct buf *out, struct elf_object *again)
{
	struct err err = {0};

	CHECK_EQ(elf_object_write(o, out, &err), 0);
	CHECK_STR(err.text, "");
	CHECK_EQ(elf_object_open(again, buf_span(out), &err), 0);
	CHECK_STR(err.text, "");
}

static void release(
	struct elf_object *o, struct elf_object *again, struct buf *out, struct elf_maker *m)
{
	elf_object_release(again);
	elf_object_release(o);
	buf_release(out);
	elf_maker_release(m);
}

static uint32_t find_symbol(const struct elf_object *o, const char *name)
{
	for (uint32_t i = (uint32_t)o->symbols.n; i-- > 1;)
		if (!strcmp(o->symbols.v[i].name, name))
			return i;
	return 0;
}

static const char *symbol_name(const struct elf_object *o, uint32_t symbol)
{
	return o->symbols.v[symbol].name;
}

static void test_open(void)
{
	struct elf_maker m;
	struct elf_object o;
	const struct object_section *s;

	open_object(&m, &o);
	CHECK_EQ(o.sections.n, SHSTRTAB + 1);
	CHECK_EQ(o.symbols.n, N_SYMBOLS);
	CHECK_EQ(o.symtab, SYMTAB);
	CHECK_EQ(elf_object_find_section(&o, ".text.inlined"), INLINED);
	CHECK_EQ(elf_object_find_section(&o, ".nothing"), 0);
	s = &o.sections.v[INLINED];
	CHECK_EQ(s->group, GROUP);
	CHECK_EQ(s->rela, RELA_INLINED);
	CHECK_EQ(s->relocs.n, 1);
	CHECK_EQ(s->relocs.v[0].addend, -4);
	CHECK_EQ(s->symbol, 0);
	CHECK_EQ(o.sections.v[RELA_INLINED].group, GROUP);
	s = &o.sections.v[TEXT];
	CHECK_EQ(s->symbol, SYM_TEXT); /* the first of two */
	CHECK_EQ(s->relocs.v[0].offset, 0);
	CHECK_EQ(s->relocs.v[0].symbol, SYM_INLINED);
	CHECK_EQ(s->relocs.v[1].type, R_X86_64_TLSGD);
	CHECK_EQ(s->relocs.v[2].type, R_X86_64_NONE);
	CHECK_EQ(o.sections.v[BSS].size, 4096);
	CHECK_EQ(o.sections.v[BSS].data.n, 0);
	CHECK_EQ(o.sections.v[DATA].data.n, 16);
	CHECK_STR(o.symbols.v[SYM_F].name, "f");
	CHECK_EQ(o.symbols.v[SYM_INLINED].bind, STB_WEAK);
	CHECK_EQ(o.symbols.v[SYM_INLINED].section, INLINED);
	elf_object_release(&o);
	elf_object_release(&o);
	elf_maker_release(&m);
}

static void test_unchanged(void)
{
	struct elf_maker m;
	struct elf_object o, again;
	struct buf out = {0};

	open_object(&m, &o);
	reopen(&o, &out, &again);
	CHECK_EQ(again.sections.n, o.sections.n);
	for (uint32_t i = 1; i < o.sections.n && i < again.sections.n; i++) {
		const struct object_section *a = &o.sections.v[i], *b = &again.sections.v[i];

		CHECK_STR(b->name, a->name);
		CHECK_EQ(b->type, a->type);
		CHECK_EQ(b->flags, a->flags);
		CHECK_EQ(b->align, a->align);
		CHECK_EQ(b->entsize, a->entsize);
		CHECK_EQ(b->link, a->link);
		CHECK_EQ(b->info, a->info);
		CHECK_EQ(b->size, a->size);
		CHECK_EQ(b->data.n, a->data.n);
		CHECK(b->data.n != a->data.n || !a->data.n ||
			!memcmp(a->data.p, b->data.p, a->data.n));
	}
	release(&o, &again, &out, &m);
}

/* What an added local symbol must not change: all the numbers that name global ones. */
static void test_renumbering(void)
{
	struct elf_maker m;
	struct elf_object o, again;
	struct buf out = {0};
	const struct object_section *s;
	uint32_t added, call[4];
	struct object_new_section wish = {
		.name = "added", .type = SHT_PROGBITS, .align = 8, .data = words("12345678", 8)};

	open_object(&m, &o);
	added = elf_object_add_section(&o, &wish);
	CHECK_EQ(added, SHSTRTAB + 1);
	CHECK_EQ(o.sections.v[added].symbol, N_SYMBOLS);
	vec_push(&o.sections.v[added].relocs,
		((struct object_reloc){0, R_X86_64_64, elf_object_section_symbol(&o, added), 3}));
	reopen(&o, &out, &again);

	CHECK_EQ(again.symbols.n, N_SYMBOLS + 1);
	CHECK_EQ(again.sections.v[SYMTAB].info, SYM_INLINED + 1);
	CHECK_EQ(again.symbols.v[SYM_LABEL + 1].section, added); /* behind the old locals */
	CHECK_EQ(again.symbols.v[SYM_LABEL + 1].type, STT_SECTION);
	CHECK_EQ(again.sections.v[added].symbol, SYM_LABEL + 1);
	s = &again.sections.v[added];
	CHECK_EQ(s->relocs.n, 1);
	CHECK_EQ(s->relocs.v[0].symbol, SYM_LABEL + 1);
	CHECK_STR(again.sections.v[s->rela].name, ".relaadded");
	CHECK_EQ(again.sections.v[s->rela].flags, SHF_INFO_LINK);
	s = &again.sections.v[TEXT];
	CHECK_STR(symbol_name(&again, s->relocs.v[0].symbol), "inlined");
	CHECK_STR(symbol_name(&again, s->relocs.v[1].symbol), "outside");
	CHECK_STR(symbol_name(&again, again.sections.v[INLINED].relocs.v[0].symbol), "f");
	CHECK_STR(symbol_name(&again, again.sections.v[GROUP].info), "inlined");
	s = &again.sections.v[ADDRSIG];
	CHECK_STR(symbol_name(&again, s->data.p[0]), "f");
	CHECK_EQ(s->data.p[1], SYM_LABEL); /* a local one keeps its number */
	CHECK_STR(symbol_name(&again, s->data.p[2]), "inlined");
	memcpy(call, again.sections.v[CALL_GRAPH].data.p, sizeof(call));
	CHECK_STR(symbol_name(&again, call[0]), "f");
	CHECK_STR(symbol_name(&again, call[1]), "inlined");
	CHECK_EQ(call[2], 32);
	release(&o, &again, &out, &m);
}

static void test_file_order(void)
{
	struct elf_maker m;
	struct elf_object o, again;
	struct buf out = {0};
	Elf64_Rela first;

	/* The numbers of symbols are new, the order is the old one. */
	open_object(&m, &o);
	elf_object_section_symbol(&o, DATA);
	reopen(&o, &out, &again);
	memcpy(&first, again.sections.v[RELA_TEXT].data.p, sizeof(first));
	CHECK_EQ(first.r_offset, 8);
	CHECK_EQ(ELF64_R_SYM(first.r_info), SYM_OUTSIDE + 1);
	release(&o, &again, &out, &m);

	/* Changed ones are written in their order. */
	open_object(&m, &o);
	o.sections.v[TEXT].relocs.v[2].addend++;
	reopen(&o, &out, &again);
	memcpy(&first, again.sections.v[RELA_TEXT].data.p, sizeof(first));
	CHECK_EQ(first.r_offset, 0);
	release(&o, &again, &out, &m);
}

static void test_groups(void)
{
	struct elf_maker m;
	struct elf_object o, again;
	struct buf out = {0};
	struct object_new_section wish = {.name = "counters",
		.type = SHT_NOBITS,
		.flags = SHF_ALLOC | SHF_WRITE,
		.align = 64,
		.nobits = 800,
		.group = GROUP,
		.link_order = INLINED};
	uint32_t counters, described, outside;
	const struct object_section *s;

	open_object(&m, &o);
	counters = elf_object_add_section(&o, &wish);
	wish.link_order = 0;
	wish.group = 0;
	outside = elf_object_add_section(&o, &wish);
	wish = (struct object_new_section){.name = "described",
		.type = SHT_PROGBITS,
		.group = GROUP,
		.data = words("abcdefgh", 8)};
	described = elf_object_add_section(&o, &wish);
	vec_push(&o.sections.v[described].relocs,
		((struct object_reloc){0, R_X86_64_64, o.sections.v[counters].symbol, 0}));
	reopen(&o, &out, &again);
	CHECK_EQ(again.sections.v[GROUP].data.n, 6 * sizeof(uint32_t));
	CHECK_EQ(again.sections.v[counters].group, GROUP);
	CHECK_EQ(again.sections.v[described].group, GROUP);
	CHECK_EQ(again.sections.v[outside].group, 0);
	CHECK(!(again.sections.v[outside].flags & (SHF_GROUP | SHF_LINK_ORDER)));
	s = &again.sections.v[again.sections.v[described].rela];
	CHECK_EQ(s->group, GROUP);
	CHECK_EQ(s->flags, SHF_INFO_LINK | SHF_GROUP);
	s = &again.sections.v[counters];
	CHECK_EQ(s->flags, SHF_ALLOC | SHF_WRITE | SHF_GROUP | SHF_LINK_ORDER);
	CHECK_EQ(s->link, INLINED);
	CHECK_EQ(s->size, 800);
	CHECK_EQ(s->align, 64);
	CHECK_EQ(again.sections.v[INLINED].group, GROUP);
	release(&o, &again, &out, &m);
}

static void test_contents(void)
{
	struct elf_maker m;
	struct elf_object o, again;
	struct buf out = {0};
	const struct object_section *s;

	open_object(&m, &o);
	object_section_set(&o, DATA, words("new contents, and longer", 24));
	object_section_set(&o, DATA, span_sub(o.sections.v[DATA].data, 4, 20)); /* its own bytes */
	vec_push(&o.sections.v[DATA].relocs,
		((struct object_reloc){12, R_X86_64_64, SYM_OUTSIDE, 5}));
	reopen(&o, &out, &again);
	s = &again.sections.v[DATA];
	CHECK_EQ(s->size, 20);
	CHECK(!memcmp(s->data.p, "contents, and longer", 20));
	CHECK_EQ(s->relocs.n, 1);
	CHECK_EQ(s->relocs.v[0].addend, 5);
	CHECK_STR(again.sections.v[s->rela].name, ".rela.data");
	CHECK_EQ(again.sections.v[s->rela].group, 0);
	CHECK_EQ(again.sections.v[BSS].size, 4096);
	release(&o, &again, &out, &m);
}

static void test_undefined(void)
{
	struct elf_maker m;
	struct elf_object o, again;
	struct buf out = {0};
	uint32_t enter;

	open_object(&m, &o);
	enter = elf_object_undefined(&o, "weir_count_enter", STV_HIDDEN);
	CHECK_EQ(enter, N_SYMBOLS);
	CHECK_EQ(elf_object_undefined(&o, "weir_count_enter", STV_HIDDEN), enter);
	CHECK_EQ(elf_object_undefined(&o, "f", STV_HIDDEN), SYM_F);
	CHECK_EQ(o.symbols.v[SYM_F].other, 0); /* a definition stays as it is */
	CHECK_EQ(elf_object_undefined(&o, "outside", STV_DEFAULT), SYM_OUTSIDE);
	CHECK_EQ(elf_object_undefined(&o, "label", STV_HIDDEN), SYM_WEAK); /* not the local one */
	CHECK_EQ(o.symbols.v[SYM_WEAK].bind, STB_GLOBAL);
	CHECK_EQ(o.symbols.v[SYM_WEAK].other, STV_HIDDEN);
	CHECK_EQ(elf_object_add_symbol(&o,
			 &(struct object_symbol){
				 .name = "later", .bind = STB_GLOBAL, .section = DATA}),
		N_SYMBOLS + 1);
	CHECK_EQ(elf_object_undefined(&o, "later", STV_HIDDEN), N_SYMBOLS + 1);
	reopen(&o, &out, &again);
	CHECK_EQ(again.sections.v[SYMTAB].info, SYM_INLINED); /* no local one was added */
	enter = find_symbol(&again, "weir_count_enter");
	CHECK_EQ(enter, N_SYMBOLS);
	CHECK_EQ(again.symbols.v[enter].other, STV_HIDDEN);
	CHECK_EQ(again.symbols.v[enter].section, SHN_UNDEF);
	CHECK_EQ(again.symbols.v[enter].bind, STB_GLOBAL);
	release(&o, &again, &out, &m);
}

static void test_names(void)
{
	struct elf_maker m;
	struct elf_object o, again;
	struct buf out = {0};
	struct object_new_section wish = {.name = "same_name", .type = SHT_PROGBITS};
	uint64_t names, more;

	open_object(&m, &o);
	elf_object_add_section(&o, &wish);
	o.symbols.v[SYM_F].name = "renamed";
	reopen(&o, &out, &again);
	CHECK(find_symbol(&again, "renamed"));
	CHECK(!find_symbol(&again, "f"));
	names = again.sections.v[SHSTRTAB].size;
	elf_object_release(&again);
	buf_reset(&out);
	for (int i = 0; i < 100; i++)
		elf_object_add_section(&o, &wish);
	reopen(&o, &out, &again);
	more = again.sections.v[SHSTRTAB].size;
	CHECK_EQ(more, names);
	CHECK_STR(again.sections.v[SHSTRTAB + 101].name, "same_name");
	release(&o, &again, &out, &m);
}

/* As LLVM has it: section and symbol names in one table. */
static void test_one_name_table(void)
{
	struct elf_maker m;
	struct elf_object o, again;
	struct buf out = {0};
	struct object_new_section wish = {.name = "added", .type = SHT_PROGBITS};

	elf_maker_init(&m, true);
	m.type = ET_REL;
	elf_maker_code(&m, ".text", 0, 8);
	m.sections[elf_maker_section(&m, ".symtab", SHT_SYMTAB, 0, buf_span(&m.symbols))] =
		(struct elf_section){.type = SHT_SYMTAB,
			.offset = {m.out.n - 24},
			.size = 24,
			.link = 3,
			.info = 1,
			.entsize = 24};
	open_made(&m, &o);
	elf_object_add_section(&o, &wish);
	elf_object_undefined(&o, "wanted", STV_HIDDEN);
	reopen(&o, &out, &again);
	CHECK_EQ(again.sections.n, 5);
	CHECK_STR(again.sections.v[1].name, ".text");
	CHECK_STR(again.sections.v[4].name, "added");
	CHECK_STR(symbol_name(&again, 2), "wanted");
	release(&o, &again, &out, &m);
}

static void test_no_symbols(void)
{
	struct elf_maker m;
	struct elf_object o, again;
	struct buf out = {0};

	elf_maker_init(&m, true);
	m.type = ET_REL;
	elf_maker_code(&m, ".text", 0, 8);
	open_made(&m, &o);
	CHECK_EQ(o.symbols.n, 1);
	CHECK_EQ(o.symtab, 0);
	reopen(&o, &out, &again);
	CHECK_EQ(again.sections.n, 3);
	CHECK_EQ(again.symtab, 0);
	elf_object_release(&again);
	buf_reset(&out);

	vec_push(&o.sections.v[1].relocs,
		((struct object_reloc){1, R_X86_64_PLT32, elf_object_undefined(&o, "g", 0), -4}));
	reopen(&o, &out, &again);
	CHECK(again.symtab != 0);
	CHECK_EQ(again.symbols.n, 2);
	CHECK_EQ(again.sections.v[again.symtab].info, 1);
	CHECK_EQ(again.sections.v[1].relocs.n, 1);
	CHECK_STR(symbol_name(&again, again.sections.v[1].relocs.v[0].symbol), "g");
	release(&o, &again, &out, &m);
}

static void test_many_sections(void)
{
	struct elf_maker m;
	struct elf_object o, again;
	struct buf out = {0}, second = {0};
	struct object_new_section wish = {.name = "many", .type = SHT_PROGBITS};
	uint32_t last = 0;

	open_object(&m, &o);
	for (int i = 0; i < 65300; i++)
		last = elf_object_add_section(&o, &wish);
	vec_push(&o.sections.v[last].relocs,
		((struct object_reloc){0, R_X86_64_NONE, o.sections.v[last].symbol, 0}));
	elf_object_add_symbol(&o, &(struct object_symbol){.name = "absolute",
					  .bind = STB_GLOBAL,
					  .section = OBJECT_SECTION_ABS,
					  .value = 77});
	elf_object_add_symbol(&o,
		&(struct object_symbol){
			.name = "common", .bind = STB_GLOBAL, .section = OBJECT_SECTION_COMMON});
	reopen(&o, &out, &again);
	CHECK_EQ(again.sections.n, SHSTRTAB + 1 + 65300 + 2); /* .relamany, .symtab_shndx */
	CHECK_EQ(again.symbols.v[again.sections.v[last].relocs.v[0].symbol].section, last);
	CHECK_EQ(again.symbols.v[find_symbol(&again, "absolute")].section, OBJECT_SECTION_ABS);
	CHECK_EQ(again.symbols.v[find_symbol(&again, "common")].section, OBJECT_SECTION_COMMON);
	CHECK_EQ(again.symbols.v[find_symbol(&again, "f")].section, TEXT);
	CHECK_EQ(elf_object_write(&again, &second, NULL), 0);
	CHECK_EQ(second.n, out.n);
	CHECK(second.n == out.n && !memcmp(out.p, second.p, out.n));
	buf_release(&second);
	release(&o, &again, &out, &m);
}

static void test_sorting(void)
{
	struct object_section s = {0};
	uint64_t state = 1;

	for (int i = 0; i < 1000; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		vec_push(&s.relocs, ((struct object_reloc){(state >> 33) % 300, 0, 0, i}));
	}
	object_section_sort_relocs(&s);
	for (size_t i = 1; i < s.relocs.n; i++) {
		const struct object_reloc *a = &s.relocs.v[i - 1], *b = &s.relocs.v[i];

		CHECK(a->offset < b->offset || (a->offset == b->offset && a->addend < b->addend));
	}
	for (uint64_t offset = 0; offset < 301; offset++) {
		size_t i = object_section_reloc_at(&s, offset);

		CHECK(i == s.relocs.n || s.relocs.v[i].offset >= offset);
		CHECK(!i || s.relocs.v[i - 1].offset < offset);
	}
	CHECK_EQ(object_section_reloc_at(&s, 301), 1000);
	vec_release(&s.relocs);
	object_section_sort_relocs(&s);
	CHECK_EQ(object_section_reloc_at(&s, 0), 0);
}

static void test_unknown_sections(void)
{
	struct elf_maker m;
	struct elf_object o, again;
	struct buf out = {0};
	struct err err = {0};

	make_object(&m);
	m.sections[ADDRSIG].type = SHT_UNKNOWN;
	open_made(&m, &o);
	elf_object_undefined(&o, "no_number_changes", STV_HIDDEN);
	reopen(&o, &out, &again);
	CHECK_EQ(again.sections.v[ADDRSIG].type, SHT_UNKNOWN);
	CHECK_EQ(again.sections.v[ADDRSIG].size, 3);
	elf_object_release(&again);
	buf_reset(&out);
	buf_put_u8(&out, 'x');
	elf_object_section_symbol(&o, DATA);
	CHECK_EQ(elf_object_write(&o, &out, &err), ERR_UNSUPPORTED);
	CHECK(strstr(err.text, "section 7 of type 0x6fff1234"));
	CHECK_EQ(out.n, 1);
	release(&o, &again, &out, &m);

	/* objcopy marks a list whose numbers it did not change so. */
	make_object(&m);
	m.sections[ADDRSIG].link = 0;
	open_made(&m, &o);
	elf_object_section_symbol(&o, DATA);
	reopen(&o, &out, &again);
	CHECK_EQ(again.sections.v[ADDRSIG].data.p[0], SYM_F);
	release(&o, &again, &out, &m);
}

static void test_compressed(void)
{
	static const Elf64_Chdr header = {.ch_type = ELFCOMPRESS_ZLIB, .ch_size = 1000};
	static const Elf64_Rela relocs[] = {{992, ELF64_R_INFO(0, R_X86_64_64), 0}};
	struct elf_maker m;
	struct elf_object o, again;
	struct buf out = {0};
	uint32_t table;

	elf_maker_init(&m, true);
	m.type = ET_REL;
	elf_maker_section(&m, ".debug_info", SHT_PROGBITS, 0, words(&header, sizeof(header)));
	m.sections[1].flags = SHF_COMPRESSED;
	table = elf_maker_section(
		&m, ".rela.debug_info", SHT_RELA, 0, words(relocs, sizeof(relocs)));
	m.sections[table].info = 1;
	m.sections[table].entsize = sizeof(Elf64_Rela);
	open_made(&m, &o);
	CHECK_EQ(o.sections.v[1].relocs.n, 1);
	reopen(&o, &out, &again);
	CHECK_EQ(again.sections.v[1].size, sizeof(header));
	CHECK_EQ(again.sections.v[1].relocs.v[0].offset, 992);
	release(&o, &again, &out, &m);
}

#define FIELD(name)    offsetof(struct elf_section, name), sizeof(((struct elf_section *)0)->name)
#define BYTE(at, byte) SIZE_MAX, 0, (uint64_t)(at) << 8 | (byte)

/* One number of the good object changed, and what is said of it. */
static const struct {
	const char *said;
	uint32_t section;
	size_t field, bytes; /* of struct elf_section; SIZE_MAX: a byte of the contents */
	uint64_t value;	     /* of contents: place << 8 | byte */
} bad_objects[] = {
	{"section 1: its bytes are not in the file", TEXT, FIELD(size), 1 << 20},
	{"section 6: its bytes are not in the file", DATA, FIELD(offset), UINT64_MAX - 3},
	{"sections 1 and 2 overlap", TEXT, FIELD(size), 18},
	{"section 10 is linked to section 99 of 14", ORDERED, FIELD(link), 99},
	{"section 12 is no table of symbol names", STRTAB, FIELD(type), SHT_PROGBITS},
	{"section 11 is no table of symbols", SYMTAB, FIELD(entsize), 16},
	{"section 11 is no table of symbols", SYMTAB, FIELD(size), 25},
	{"symbol names are in section 14 of 14", SYMTAB, FIELD(link), 14},
	{"symbol 3 is on the wrong side of the locals' end", SYMTAB, FIELD(info), 3},
	{"symbol 4 is on the wrong side of the locals' end", SYMTAB, FIELD(info), 5},
	{"symbol 0 is on the wrong side of the locals' end", SYMTAB, BYTE(4, GLOBAL(STT_FUNC))},
	{"symbol 1 is in section 200 of 14", SYMTAB, BYTE(24 + 6, 200)},
	{"symbol 1: its name is not in the file", SYMTAB, BYTE(24 + 1, 200)},
	{"sections 10 and 11 are both tables of type 2", ORDERED, FIELD(type), SHT_SYMTAB},
	{"section 2 is no list of a group's members", GROUP, FIELD(size), 6},
	{"section 2: the group has no signature", GROUP, FIELD(info), 99},
	{"section 2: the group has no signature", GROUP, FIELD(link), 1},
	{"section 2: the group has section 99 of 14", GROUP, BYTE(4, 99)},
	{"section 2: the group has section 0 of 14", GROUP, BYTE(4, 0)},
	{"section 2: the group has section 2, which cannot be in a group", GROUP, BYTE(4, GROUP)},
	{"section 3 is a member of groups 2 and 2", GROUP, BYTE(8, INLINED)},
	{"section 5 is no table of relocations", RELA_TEXT, FIELD(entsize), 16},
	{"section 5 is no table of relocations", RELA_TEXT, FIELD(size), 25},
	{"section 5: the relocations do not use the object's symbols", RELA_TEXT, FIELD(link), 1},
	{"section 5 has relocations for section 14 of 14", RELA_TEXT, FIELD(info), 14},
	{"section 5 has relocations for section 0 of 14", RELA_TEXT, FIELD(info), 0},
	{"section 5 has relocations for section 5, which cannot have any", RELA_TEXT, FIELD(info),
		5},
	{"sections 4 and 5 both have relocations for section 3", RELA_TEXT, FIELD(info), 3},
	{"section 5: relocation 0 is outside of section 1", RELA_TEXT, BYTE(0, 13)},
	{"section 5: relocation 0 is outside of section 1", RELA_TEXT, BYTE(7, 255)},
	{"section 5: relocation 1 uses symbol 99 of 8", RELA_TEXT, BYTE(24 + 12, 99)},
	{"section 7: compact relocations are not known", ADDRSIG, FIELD(type), 0x40000014},
	{"section 11, a table, is compressed", SYMTAB, FIELD(flags), SHF_COMPRESSED},
};

static void test_bad_objects(void)
{
	for (size_t i = 0; i < sizeof(bad_objects) / sizeof(bad_objects[0]); i++) {
		struct elf_maker m;
		struct elf_object o;
		struct err err = {0};
		struct elf_section *s;

		make_object(&m);
		s = &m.sections[bad_objects[i].section];
		if (bad_objects[i].field == SIZE_MAX)
			m.out.p[s->offset.v + (bad_objects[i].value >> 8)] =
				(uint8_t)bad_objects[i].value;
		else
			memcpy((char *)s + bad_objects[i].field, &bad_objects[i].value,
				bad_objects[i].bytes);
		CHECK(elf_object_open(&o, elf_maker_finish(&m), &err) != 0);
		CHECK_STR(err.text, bad_objects[i].said);
		elf_maker_release(&m);
	}
}

static void test_no_addends(void)
{
	static const Elf64_Rel relocs[] = {
		{0, ELF64_R_INFO(0, R_X86_64_NONE)}, {0, ELF64_R_INFO(0, R_X86_64_NONE)}};
	struct elf_maker m;
	struct elf_object o, again;
	struct buf out = {0};
	struct err err = {0};

	for (int is_call_graph = 0; is_call_graph < 2; is_call_graph++) {
		elf_maker_init(&m, true);
		m.type = ET_REL;
		elf_maker_section(&m, "target", is_call_graph ? 0x6fff4c09 : SHT_PROGBITS, 0,
			words("12345678", 8));
		elf_maker_section(&m, ".reltarget", SHT_REL, 0, words(relocs, sizeof(relocs)));
		m.sections[2].info = 1;
		m.sections[2].entsize = sizeof(Elf64_Rel);
		if (is_call_graph) {
			open_made(&m, &o);
			CHECK_EQ(o.sections.v[1].relocs.n, 2);
			reopen(&o, &out, &again);
			CHECK_EQ(again.sections.v[2].size, sizeof(relocs));
			release(&o, &again, &out, &m);
		} else {
			CHECK_EQ(elf_object_open(&o, elf_maker_finish(&m), &err), ERR_UNSUPPORTED);
			CHECK_STR(err.text,
				"section 2: relocations without addends are not for x86-64");
			elf_maker_release(&m);
		}
	}
}

static void test_other_files(void)
{
	struct elf_maker m;
	struct elf_object o;
	struct err err = {0};

	CHECK(!elf_object_is(words("!<arch>\n", 8)));
	CHECK_EQ(elf_object_open(&o, words("!<arch>\n", 8), &err), ERR_FORMAT);
	CHECK_STR(err.text, "is not an ELF file");
	for (int i = 0; i < 3; i++) {
		struct span bytes;

		elf_maker_init(&m, i != 0);
		m.type = i == 1 ? ET_DYN : ET_REL;
		if (i == 2)
			m.machine = EM_AARCH64;
		elf_maker_code(&m, ".text", 0, 8);
		bytes = elf_maker_finish(&m);
		CHECK(!elf_object_is(bytes));
		CHECK_EQ(elf_object_open(&o, bytes, &err), ERR_UNSUPPORTED);
		CHECK_STR(err.text, i == 1 ? "is not a relocatable object (its ELF type is 3)"
					   : "is an ELF file, but not for x86-64");
		elf_maker_release(&m);
	}
}

static void test_wrong_changes(void)
{
	struct elf_maker m;
	struct elf_object o;
	struct buf out = {0};
	struct err err = {0};

	open_object(&m, &o);
	o.sections.v[TEXT].relocs.v[0].symbol = 99;
	CHECK(elf_object_write(&o, &out, &err) != 0);
	CHECK_STR(err.text, "section 5 uses symbol 99 of 8");
	o.sections.v[TEXT].relocs.v[0].symbol = 0;
	o.symbols.v[SYM_F].section = 99;
	CHECK(elf_object_write(&o, &out, &err) != 0);
	CHECK_STR(err.text, "symbol 5 is in section 99 of 14");
	CHECK_EQ(out.n, 0);
	elf_object_release(&o);
	buf_release(&out);
	elf_maker_release(&m);
}

int main(void)
{
	static const struct test tests[] = {
		{"an object is opened with sections, symbols, relocations and groups", test_open},
		{"an object that nothing was done to is written as it was", test_unchanged},
		{"a new local symbol renumbers every place that names a symbol", test_renumbering},
		{"relocations that the file has in another order keep that, unless they changed",
			test_file_order},
		{"new sections and their relocations join a group", test_groups},
		{"a section gets other contents, and relocations when it had none", test_contents},
		{"an undefined symbol is made once, and a definition found", test_undefined},
		{"old names stay where they were and new ones are kept once", test_names},
		{"one table may have the names of sections and symbols", test_one_name_table},
		{"an object without symbols gets a table of them when it needs one",
			test_no_symbols},
		{"more sections than 16 bits count get a table of wide numbers",
			test_many_sections},
		{"relocations are sorted by offset, those of one offset in their order",
			test_sorting},
		{"a section that may hold symbol numbers is kept, or the object refused",
			test_unknown_sections},
		{"relocations of a compressed section are within its uncompressed bytes",
			test_compressed},
		{"an object that cannot be right is refused with a sentence", test_bad_objects},
		{"relocations without addends are for LLVM's call graph only", test_no_addends},
		{"files that are no objects for x86-64 are refused with a sentence",
			test_other_files},
		{"an object that was changed wrongly is not written", test_wrong_changes},
	};

	return RUN_TESTS(tests);
}
