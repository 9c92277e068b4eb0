/* SPDX-License-Identifier: MIT */
/* Relocations: pointers into the image, and which names its stubs and pointers stand for. */
#include <elf.h>
#include <string.h>

#include "elf/elf_relocation.h"
#include "record/hooks/plan_internal.h"
#include "symbols/elf_tables.h"

static bool is_loaded_table(const struct elf_section *s, uint32_t type)
{
	return s->type == type && (s->flags & SHF_ALLOC);
}

/* --- callees ----------------------------------------------------------------------------- */

static const struct {
	const char *name;
	enum callee callee;
} callee_names[] = {
	{"mcount", CALLEE_MCOUNT},
	{"_mcount", CALLEE_MCOUNT},
	{"__mcount", CALLEE_MCOUNT},
	{"__fentry__", CALLEE_MCOUNT},
	{"__cyg_profile_func_enter", CALLEE_CYG_ENTER},
	{"__cyg_profile_func_exit", CALLEE_CYG_EXIT},
};

static enum callee callee_named(const char *name, size_t n)
{
	if (name[0] != '_' && name[0] != 'm')
		return CALLEE_NONE;
	for (size_t i = 0; i < sizeof(callee_names) / sizeof(callee_names[0]); i++)
		if (strlen(callee_names[i].name) == n && !memcmp(callee_names[i].name, name, n))
			return callee_names[i].callee;
	return CALLEE_NONE;
}

/* A symbol with a version was bound to libc when the program was linked: nobody else gives one to
 * these names. */
static bool has_version(const struct elf_file *elf, uint32_t symbol)
{
	const struct elf_section *s = elf_file_find_section(elf, ".gnu.version");
	struct cursor c;
	uint16_t version;

	if (!s)
		return false;
	c = cursor_of(elf_file_section_bytes(elf, s));
	cursor_skip(&c, 2ull * symbol);
	version = cursor_u16(&c);
	return !c.failed && (version & 0x7fff) >= 2;
}

static void add_slots(struct image_facts *f, const struct elf_section *s)
{
	const struct elf_file *elf = f->elf;
	struct cursor c = cursor_of(elf_file_section_bytes(elf, s));
	const struct elf_section *symbols =
		s->link && s->link < elf->n_sections ? &elf->sections[s->link] : NULL;

	while (symbols && cursor_left(&c)) {
		struct elf_relocation r = elf_relocation_read(elf, &c, s->type == SHT_RELA);
		const char *name;
		enum callee callee;

		if (c.failed)
			break;
		/* The numbers are the same for x86-64 and i386. */
		if (r.type != R_X86_64_JUMP_SLOT && r.type != R_X86_64_GLOB_DAT)
			continue;
		name = elf_file_symbol_name(elf, symbols, r.symbol);
		callee = name ? callee_named(name, strlen(name)) : CALLEE_NONE;
		if (callee >= CALLEE_CYG_ENTER && !has_version(elf, r.symbol))
			continue;
		if (callee)
			*map_ensure(&f->callee_slot, r.offset, NULL) = callee;
	}
}

static bool has_slot_for(const struct image_facts *f, enum callee callee)
{
	for (size_t i = 0; i < f->callee_slot.cap; i++)
		if (f->callee_slot.slots[i].used && f->callee_slot.slots[i].value == callee)
			return true;
	return false;
}

static void add_stubs(struct image_facts *f)
{
	struct symtab_builder b = {.name_bytes_max = f->elf->bytes.n};

	plt_add_names(&b, f->elf);
	for (size_t i = 0; i < b.all.n; i++) {
		const struct candidate *stub = &b.all.v[i];
		const char *at = memchr(stub->name, '@', stub->name_bytes);
		enum callee callee =
			at ? callee_named(stub->name, (size_t)(at - stub->name)) : CALLEE_NONE;

		if (callee && has_slot_for(f, callee))
			*map_ensure(&f->callee_of, stub->start, NULL) = callee;
	}
	symtab_free(symtab_builder_finish(&b, ""));
}

void image_find_callees(struct image_facts *f)
{
	bool defines_cyg = false, has_stub[CALLEE_CYG_EXIT + 1] = {false};

	for (size_t i = 0; i < f->elf->n_sections; i++) {
		const struct elf_section *s = &f->elf->sections[i];

		if (is_loaded_table(s, SHT_RELA) || is_loaded_table(s, SHT_REL))
			add_slots(f, s);
	}
	if (f->callee_slot.n)
		add_stubs(f);
	for (size_t i = 0; i < f->callee_of.cap; i++)
		if (f->callee_of.slots[i].used)
			has_stub[f->callee_of.slots[i].value] = true;
	for (size_t i = 0; i < f->names.n; i++) {
		enum callee callee = callee_named(f->names.v[i].name, f->names.v[i].name_bytes);

		if (callee == CALLEE_MCOUNT)
			*map_ensure(&f->callee_of, f->names.v[i].start, NULL) = callee;
		defines_cyg |= callee == CALLEE_CYG_ENTER;
	}
	f->has_cyg = has_stub[CALLEE_CYG_ENTER] && has_stub[CALLEE_CYG_EXIT] && !defines_cyg;
}

/* The pointer that an indirect call goes through; false when it is not known. */
static bool slot_of(
	const struct image_facts *f, struct span code, const struct x86_insn *insn, uint64_t *slot)
{
	struct cursor c = cursor_of(code);
	uint8_t modrm;

	if (!insn->modrm_at)
		return false;
	if (insn->disp_at) {
		*slot = insn->disp_target;
		return true;
	}
	if (f->is_64)
		return false;
	cursor_skip(&c, insn->modrm_at);
	modrm = cursor_u8(&c) & 0xc7;
	if (modrm == 0x05) /* call *address */
		*slot = cursor_u32(&c);
	else if (modrm == 0x83 && f->got_base) /* call *disp32(%ebx) */
		*slot = (uint32_t)(f->got_base + cursor_u32(&c));
	else if (modrm == 0x43 && f->got_base) /* call *disp8(%ebx) */
		*slot = (uint32_t)(f->got_base + (uint64_t)(int64_t)(int8_t)cursor_u8(&c));
	else
		return false;
	return !c.failed;
}

enum callee image_callee(const struct image_facts *f, uint64_t addr, const struct x86_insn *insn)
{
	const uint64_t *callee = NULL;
	uint64_t slot;

	if (insn->flow == X86_FLOW_CALL)
		callee = map_find(&f->callee_of, insn->target);
	else if (insn->flow == X86_FLOW_CALL_FAR && slot_of(f, image_code(f, addr), insn, &slot))
		callee = map_find(&f->callee_slot, slot);
	return callee ? (enum callee) * callee : CALLEE_NONE;
}

/* --- pointers ---------------------------------------------------------------------------- */

bool image_section_is_list_of_code(const char *name)
{
	static const char *const names[] = {
		"__patchable_function_entries", "__mcount_loc", "xray_instr_map", "xray_fn_idx"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

/* Where relocations make lists of places to patch, which nobody jumps to. */
static struct range find_list(const struct elf_file *elf)
{
	for (size_t i = 0; i < elf->n_sections; i++) {
		const struct elf_section *s = &elf->sections[i];

		if (image_section_is_list_of_code(s->name))
			return (struct range){s->addr.v, s->addr.v + s->size};
	}
	return (struct range){0, 0};
}

struct pointer_walk {
	struct image_facts *f;
	struct range list;
	void (*each)(struct image_facts *f, uint64_t target);
};

static void walk_pointer(const struct pointer_walk *w, uint64_t offset, uint64_t target)
{
	if (offset < w->list.start || offset >= w->list.end)
		w->each(w->f, target);
}

/* SHT_RELR: an address, then bitmaps of the words behind it. */
static void walk_packed(const struct pointer_walk *w, struct span bytes)
{
	const struct elf_file *elf = w->f->elf;
	unsigned word_bytes = elf->is_64 ? 8 : 4, n_bits = word_bytes * 8 - 1;
	struct cursor c = cursor_of(bytes);
	uint64_t where = 0, n_left = elf->bytes.n / word_bytes; /* a word has one at most */

	while (cursor_left(&c)) {
		uint64_t entry = elf_file_word(elf, &c);

		if (c.failed || n_left < n_bits)
			return;
		n_left -= (entry & 1) ? (uint64_t)__builtin_popcountll(entry >> 1) : 1;
		if (!(entry & 1)) {
			walk_pointer(w, entry, elf_word_at(elf, entry));
			where = entry + word_bytes;
			continue;
		}
		for (unsigned i = 0; i < n_bits; i++, where += word_bytes)
			if (entry >> (i + 1) & 1)
				walk_pointer(w, where, elf_word_at(elf, where));
	}
}

static void walk_table(const struct pointer_walk *w, const struct elf_section *s)
{
	const struct elf_file *elf = w->f->elf;
	struct cursor c = cursor_of(elf_file_section_bytes(elf, s));
	bool has_addend = s->type == SHT_RELA;

	while (cursor_left(&c)) {
		struct elf_relocation r = elf_relocation_read(elf, &c, has_addend);

		if (c.failed)
			return;
		/* The numbers are the same for x86-64 and i386. */
		if (r.type == R_X86_64_RELATIVE)
			walk_pointer(
				w, r.offset, has_addend ? r.addend : elf_word_at(elf, r.offset));
	}
}

void image_each_pointer(
	struct image_facts *f, void (*each)(struct image_facts *f, uint64_t target))
{
	struct pointer_walk w = {f, find_list(f->elf), each};

	for (size_t i = 0; i < f->elf->n_sections; i++) {
		const struct elf_section *s = &f->elf->sections[i];

		if (is_loaded_table(s, SHT_RELA) || is_loaded_table(s, SHT_REL))
			walk_table(&w, s);
		else if (is_loaded_table(s, SHT_RELR))
			walk_packed(&w, elf_file_section_bytes(f->elf, s));
	}
}
