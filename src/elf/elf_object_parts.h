/* SPDX-License-Identifier: MIT */
/* What opening, changing and writing an object share and nobody else needs. */
#ifndef WEIR_ELF_ELF_OBJECT_PARTS_H
#define WEIR_ELF_ELF_OBJECT_PARTS_H

#include "base/map.h"
#include "elf/elf_object.h"

/* Types that <elf.h> does not have (llvm/BinaryFormat/ELF.h). */
#define OBJECT_SHT_LLVM_CALL_GRAPH_INDICES 0x6fff4c02 /* of LLVM 12 and before: symbol indices */
#define OBJECT_SHT_LLVM_ADDRSIG		   0x6fff4c03 /* symbol indices, ULEB128 */
#define OBJECT_SHT_LLVM_CALL_GRAPH_PROFILE 0x6fff4c09 /* has SHT_REL relocations */
#define OBJECT_SHT_CREL			   0x40000014

struct object_arena {
	Elf64_Ehdr header;
	uint32_t n_file_sections, n_file_symbols; /* those that the file has; the rest are new */
	uint32_t strtab, shstrtab;		  /* sections; the same one in objects of LLVM */
	uint32_t symtab_shndx;			  /* a section; 0 = none */
	uint8_t *is_unsorted; /* for each section of the file: its relocations are unsorted there */
	struct intern names;  /* of new sections and symbols */

	/* Global symbols by name: the last one of a hash, and for each symbol the one before. */
	struct map by_name;
	VEC(uint32_t) same_hash; /* for symbols [0, same_hash.n) */
};

/* The header of a section that the file has. */
static inline Elf64_Shdr object_file_header(const struct elf_object *o, uint32_t section)
{
	Elf64_Shdr h;

	memcpy(&h, o->bytes.p + o->arena->header.e_shoff + section * sizeof(h), sizeof(h));
	return h;
}

static inline bool object_type_has_bytes(uint32_t type)
{
	return type != SHT_NOBITS && type != SHT_NULL;
}

/* A relocation and an Elf64_Rela are the same bytes. */
_Static_assert(sizeof(struct object_reloc) == sizeof(Elf64_Rela) &&
		       offsetof(struct object_reloc, type) == offsetof(Elf64_Rela, r_info) &&
		       offsetof(struct object_reloc, symbol) == offsetof(Elf64_Rela, r_info) + 4 &&
		       offsetof(struct object_reloc, addend) == offsetof(Elf64_Rela, r_addend),
	"relocations are copied as they are");

/* Reads the entries of an SHT_RELA or SHT_REL section. */
void object_relocs_read(struct object_reloc *to, struct span table, uint32_t type);

#endif
