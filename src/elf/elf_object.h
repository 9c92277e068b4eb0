/* SPDX-License-Identifier: MIT */
/*
 * A relocatable object (ET_REL, x86-64) that can be changed: sections, symbols and relocations as
 * arrays, written back as an object that every linker takes.
 *
 *	elf_object_open   bytes -> object; nothing is trusted, what cannot be kept is an error
 *	  ... change section contents, relocations, symbols; add sections and symbols ...
 *	elf_object_write  object -> bytes
 *
 * Numbers of sections and symbols stay valid as long as the object lives: sections are only added
 * at the end, symbols too. Writing puts local symbols in front, as ELF wants them, and renumbers
 * every place that names a symbol: relocations, SHT_GROUP signatures, SHT_SYMTAB_SHNDX,
 * SHT_LLVM_ADDRSIG, SHT_LLVM_CALL_GRAPH_PROFILE.
 *
 * What an open object promises to its readers:
 *	1. Sections with bytes do not overlap in the file.
 *	2. Symbols of relocations, sections of symbols, members and signatures of groups, and the
 *	   sh_link of SHF_LINK_ORDER sections exist; nothing is a member of two groups.
 *	3. The bytes that a relocation changes are inside its section (object_reloc_bytes). Of an
 *	   SHF_COMPRESSED section, which is kept as it is, inside the uncompressed bytes.
 *	4. Names end with a NUL. They may be long and share bytes: do not measure all of them.
 *
 * Invariant: an object that nothing was done to is written with every section's bytes, flags,
 * order, link, info and alignment as they were (tests/oracle/elf_object_identity.sh).
 */
#ifndef WEIR_ELF_ELF_OBJECT_H
#define WEIR_ELF_ELF_OBJECT_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/span.h"

struct object_reloc {
	uint64_t offset; /* in the section that it changes */
	uint32_t type;	 /* R_X86_64_* */
	uint32_t symbol; /* index into symbols; 0 = none */
	int64_t addend;
};

struct object_section {
	const char *name; /* owned by the object */
	uint32_t type;	  /* SHT_* */
	uint64_t flags;	  /* SHF_* */
	uint64_t align, entsize;
	uint32_t link, info; /* as in the file; meaningless for symtab, strtab and rela sections */
	struct span data;    /* borrowed from the file or from `owned`; empty for SHT_NOBITS */
	uint64_t size;	     /* = data.n, or the size of an SHT_NOBITS section */
	struct buf owned;    /* bytes set by object_section_set */
	VEC(struct object_reloc) relocs; /* sorted by offset; equal offsets in file order */
	uint32_t rela;			 /* the section that holds them in the file; 0 = none yet */
	uint32_t group;	 /* the SHT_GROUP section that it is a member of; 0 = none */
	uint32_t symbol; /* its STT_SECTION symbol; 0 = none */
};

struct object_symbol {
	const char *name; /* owned by the object; "" for section symbols */
	uint8_t bind;	  /* STB_* */
	uint8_t type;	  /* STT_* */
	uint8_t other;	  /* visibility and more */
	uint32_t section; /* a section; SHN_UNDEF, OBJECT_SECTION_ABS or OBJECT_SECTION_COMMON */
	uint64_t value, size;
};
#define OBJECT_SECTION_ABS    0xfffffff1u
#define OBJECT_SECTION_COMMON 0xfffffff2u
#define OBJECT_SECTION_OTHER  0xffffff00u /* and above: a reserved index that is kept as it is */

struct object_arena;
struct elf_object {
	struct span bytes;		     /* borrowed: the file */
	VEC(struct object_section) sections; /* [0] is the null section */
	VEC(struct object_symbol) symbols;   /* [0] is the null symbol */
	uint32_t symtab;		     /* a section; 0 = none */
	uint8_t os_abi, abi_version;
	uint32_t flags;		    /* e_flags */
	struct object_arena *arena; /* names and what only opening and writing know */
};

/* Is this an ELF relocatable for x86-64 at all? Cheap. */
bool elf_object_is(struct span bytes);
/* Fails with a sentence without subject. `bytes` must outlive the object. On failure nothing is
 * left to release. */
int elf_object_open(struct elf_object *o, struct span bytes, struct err *err);
void elf_object_release(struct elf_object *o);

/* The section's contents become a copy of `data`. */
void object_section_set(struct elf_object *o, uint32_t section, struct span data);
/* A new section without relocations, and a section symbol for it. `group` 0, or the SHT_GROUP
 * section that it joins (SHF_GROUP is set); `link_order` 0, or the section it is linked to
 * (SHF_LINK_ORDER is set). Returns its number. May move o->sections.v. */
struct object_new_section {
	const char *name; /* copied */
	uint32_t type;
	uint64_t flags, align, entsize;
	struct span data; /* copied */
	uint64_t nobits;  /* size of an SHT_NOBITS section */
	uint32_t group, link_order;
};
uint32_t elf_object_add_section(struct elf_object *o, const struct object_new_section *s);
/* The section symbol of any section, made when it has none. */
uint32_t elf_object_section_symbol(struct elf_object *o, uint32_t section);
/* A new symbol; its name is copied. Returns its number. May move o->symbols.v. */
uint32_t elf_object_add_symbol(struct elf_object *o, const struct object_symbol *symbol);
/* The undefined global symbol of this name and visibility (STV_*), made when there is none. When
 * the object defines the name, that symbol. An undefined symbol that is there becomes global when
 * it was weak, and gets the visibility when it had the default one. */
uint32_t elf_object_undefined(struct elf_object *o, const char *name, uint8_t visibility);
/* 0 = none; looks at every section. */
uint32_t elf_object_find_section(const struct elf_object *o, const char *name);

/* Relocations may have been added or moved in any order: puts them in order of offset; those of
 * equal offset keep their order. */
void object_section_sort_relocs(struct object_section *s);
/* The first relocation at an offset >= `offset`; n when there is none. Needs them sorted. */
size_t object_section_reloc_at(const struct object_section *s, uint64_t offset);
/* How many bytes a relocation of a type changes; 0 for those that change none or are not known. */
uint32_t object_reloc_bytes(uint32_t type);

/* Appends the object to `out`, which stays as it was on failure. Relocations are written in the
 * order that they have (sort them before). Sections that only the file needs (SHT_RELA, symbol and
 * string tables) are added to the object; it may be written again. */
int elf_object_write(struct elf_object *o, struct buf *out, struct err *err);

#endif
