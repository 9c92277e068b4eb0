/* SPDX-License-Identifier: MIT */
/*
 * A stub jumps through a slot of the global offset table, and a relocation says which symbol the
 * slot is for:
 *
 *	stub:  [endbr] [bnd] jmp *slot		relocation: slot <- symbol
 *
 * So the slots are collected from the relocations, and each stub's jmp is decoded. This does not
 * depend on the order of the relocations, nor on which of the stub layouts (lazy, IBT, non-lazy)
 * the linker chose. The first stub of a lazy .plt calls the dynamic linker and gets no name.
 */
#include <elf.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "elf/elf_relocation.h"
#include "symbols/elf_tables.h"

#define STUB_BYTES	 16
#define STUB_BYTES_SHORT 8 /* .plt.got without IBT */

struct slot {
	const char *name;  /* borrowed from the image; NULL for indirect functions */
	uint64_t resolver; /* address, when there is no name */
};

struct plt {
	struct symtab_builder *b;
	const struct elf_file *elf;
	struct map slot_of; /* slot address -> index into slots, plus 1 */
	VEC(struct slot) slots;
	struct map resolvers; /* address -> candidate index, plus 1; made when first needed */
	bool has_resolvers;
	uint64_t got_base; /* what i386 stubs of position independent code have in ebx */
	size_t name_bytes;
};

static void add_slot(struct plt *p, uint64_t addr, struct slot slot)
{
	bool created;
	uint64_t *index = map_ensure(&p->slot_of, addr, &created);

	if (!created)
		return;
	vec_push(&p->slots, slot);
	*index = p->slots.n;
}

static void add_slots(struct plt *p, const struct elf_section *s)
{
	const struct elf_file *elf = p->elf;
	bool has_addend = s->type == SHT_RELA;
	uint32_t indirect = elf->is_64 ? R_X86_64_IRELATIVE : R_386_IRELATIVE;
	struct cursor c = cursor_of(elf_file_section_bytes(elf, s));
	const struct elf_section *symbols =
		s->link && s->link < elf->n_sections ? &elf->sections[s->link] : NULL;

	while (cursor_left(&c)) {
		struct elf_relocation r = elf_relocation_read(elf, &c, has_addend);
		const char *name;

		if (c.failed)
			break;
		if (r.type == indirect) {
			uint64_t resolver = has_addend ? r.addend : elf_word_at(elf, r.offset);

			add_slot(p, r.offset, (struct slot){NULL, resolver});
			continue;
		}
		/* The numbers are the same for x86-64 and i386. */
		if ((r.type != R_X86_64_JUMP_SLOT && r.type != R_X86_64_GLOB_DAT) || !symbols)
			continue;
		name = elf_file_symbol_name(elf, symbols, r.symbol);
		if (name)
			add_slot(p, r.offset, (struct slot){name, 0});
	}
}

/* The slot that the stub at `addr` jumps through. */
static bool decode_stub(const struct plt *p, struct span code, uint64_t addr, uint64_t *slot)
{
	static const uint8_t endbr[] = {0xf3, 0x0f, 0x1e};
	size_t at = 0;
	struct cursor c;
	uint8_t mode;
	uint32_t disp;

	if (code.n >= 4 && memcmp(code.p, endbr, 3) == 0 && (code.p[3] & 0xfe) == 0xfa)
		at = 4; /* endbr64, endbr32 */
	if (at < code.n && code.p[at] == 0xf2)
		at++; /* bnd */
	c = cursor_of(code);
	cursor_skip(&c, at);
	if (cursor_u8(&c) != 0xff)
		return false;
	mode = cursor_u8(&c);
	disp = cursor_u32(&c);
	if (c.failed)
		return false;
	if (mode == 0x25 && p->elf->is_64) /* jmp *disp(%rip) */
		*slot = addr + at + 6 + (uint64_t)(int64_t)(int32_t)disp;
	else if (mode == 0x25) /* jmp *address */
		*slot = disp;
	else if (mode == 0xa3 && !p->elf->is_64) /* jmp *disp(%ebx) */
		*slot = (uint32_t)(p->got_base + disp);
	else
		return false;
	return true;
}

static const struct candidate *find_resolver(struct plt *p, uint64_t addr)
{
	const uint64_t *index;

	if (!p->has_resolvers) {
		p->has_resolvers = true;
		for (size_t i = 0; i < p->b->all.n; i++) {
			const struct candidate *c = &p->b->all.v[i];
			bool created;
			uint64_t *best = map_ensure(&p->resolvers, c->start, &created);

			if (created || candidate_is_better(c, &p->b->all.v[*best - 1]))
				*best = i + 1;
		}
	}
	index = map_find(&p->resolvers, addr);
	return index ? &p->b->all.v[*index - 1] : NULL;
}

static char *stub_name(struct plt *p, const struct slot *slot)
{
	const struct candidate *resolver;

	if (slot->name && strnlen(slot->name, SYMTAB_NAME_BYTES_MAX) == SYMTAB_NAME_BYTES_MAX)
		return NULL;
	if (slot->name)
		return mem_printf("%s@plt", slot->name);
	resolver = find_resolver(p, slot->resolver);
	if (resolver)
		return mem_printf("%.*s@plt", (int)resolver->name_bytes, resolver->name);
	return mem_printf("*ABS*+0x%" PRIx64 "@plt", slot->resolver);
}

static void add_stub(struct plt *p, uint64_t addr, uint64_t bytes, const struct slot *slot)
{
	char *name = stub_name(p, slot);
	size_t n;

	if (!name)
		return;
	n = strlen(name);
	p->name_bytes += n + 1;
	if (p->name_bytes > PLT_NAME_BYTES_MAX) {
		free(name);
		p->b->n_skipped++;
		return;
	}
	vec_push(&p->b->owned, name);
	p->b->name_bytes_max += n + 1;
	symtab_builder_add(p->b, &(struct candidate){
					 .name = name,
					 .name_bytes = (uint32_t)n,
					 .source = SYMBOL_SOURCE_PLT,
					 .kind = CANDIDATE_KIND_MADE_UP,
					 .bind = CANDIDATE_BIND_LOCAL,
					 .start = addr,
					 .size = bytes,
					 .room = bytes,
				 });
}

static void add_stubs(struct plt *p, const char *section, size_t default_bytes)
{
	const struct elf_section *s = elf_file_find_section(p->elf, section);
	struct span code = s ? elf_file_section_bytes(p->elf, s) : (struct span){NULL, 0};
	size_t bytes = default_bytes;

	if (!code.n)
		return;
	if (s->entsize == STUB_BYTES || s->entsize == STUB_BYTES_SHORT)
		bytes = (size_t)s->entsize;
	else if (code.p[0] == 0xf3)
		bytes = STUB_BYTES; /* begins with endbr, which leaves no room in a short stub */
	for (size_t at = 0; at + bytes <= code.n; at += bytes) {
		uint64_t addr = s->addr.v + at, slot_addr;
		const uint64_t *index;

		if (!decode_stub(p, span_sub(code, at, bytes), addr, &slot_addr))
			continue;
		index = map_find(&p->slot_of, slot_addr);
		if (index)
			add_stub(p, addr, bytes, &p->slots.v[*index - 1]);
	}
}

static uint64_t find_got_base(const struct elf_file *elf)
{
	const struct elf_section *s;
	uint64_t value;

	if (elf_file_dynamic(elf, DT_PLTGOT, &value))
		return value;
	s = elf_file_find_section(elf, ".got.plt");
	if (!s)
		s = elf_file_find_section(elf, ".got");
	return s ? s->addr.v : 0;
}

void plt_add_names(struct symtab_builder *b, const struct elf_file *elf)
{
	static const char *const tables[] = {".rela.plt", ".rel.plt", ".rela.dyn", ".rel.dyn"};
	struct plt p = {.b = b, .elf = elf};

	if (elf->machine != EM_X86_64 && elf->machine != EM_386)
		return;
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		const struct elf_section *s = elf_file_find_section(elf, tables[i]);

		if (s && (s->type == SHT_RELA || s->type == SHT_REL))
			add_slots(&p, s);
	}
	if (p.slots.n) {
		p.got_base = find_got_base(elf);
		add_stubs(&p, ".plt", STUB_BYTES);
		add_stubs(&p, ".plt.sec", STUB_BYTES);
		add_stubs(&p, ".plt.got", STUB_BYTES_SHORT);
	}
	map_release(&p.slot_of);
	map_release(&p.resolvers);
	vec_release(&p.slots);
}
