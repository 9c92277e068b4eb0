/* SPDX-License-Identifier: MIT */
/*
 * A read-only view of an ELF image, 32 or 64 bit, little endian, x86 only in meaning but not in
 * parsing. Everything is borrowed from the bytes given to elf_file_init; nothing is trusted: a
 * table that does not fit is cut, a section that does not fit is empty.
 */
#ifndef WEIR_ELF_ELF_FILE_H
#define WEIR_ELF_ELF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/err.h"
#include "base/span.h"

#define ELF_SECTIONS_MAX 65536
#define ELF_SEGMENTS_MAX 4096
#define ELF_NAME_MAX	 65536 /* bytes of a name asked for by index */
#define ELF_BUILD_ID_MAX 64    /* bytes; 20 (SHA-1) is usual */

struct elf_section {
	const char *name; /* "" when it has none; borrowed */
	uint32_t type;	  /* SHT_* */
	uint64_t flags;	  /* SHF_* */
	struct iaddr addr;
	struct foff offset;
	uint64_t size;
	uint32_t link, info;
	uint64_t align;
	uint64_t entsize;
};

struct elf_segment {
	uint32_t type;	/* PT_* */
	uint32_t flags; /* PF_* */
	struct foff offset;
	struct iaddr addr;
	uint64_t file_size, mem_size;
	uint64_t align;
};

struct elf_file {
	struct span bytes;
	bool is_64;
	uint16_t machine; /* EM_X86_64, EM_386, ... */
	uint16_t type;	  /* ET_EXEC, ET_DYN, ET_REL, ET_CORE */
	struct iaddr entry;
	struct elf_section *sections; /* owned */
	size_t n_sections;
	struct elf_segment *segments; /* owned */
	size_t n_segments;
};

/* Fails with a sentence (no subject: the caller puts the file name in front) when the bytes are
 * not an ELF file this can read. Works with segments alone, so that a vdso or a memory image
 * without section headers opens too. */
int elf_file_init(struct elf_file *elf, struct span bytes, struct err *err);
void elf_file_release(struct elf_file *elf);

const struct elf_section *elf_file_find_section(const struct elf_file *elf, const char *name);
/* The section's bytes; empty for SHT_NOBITS and for sections that lie outside the file. Compressed
 * sections (SHF_COMPRESSED) are returned as they are: see elf_section_inflate. */
struct span elf_file_section_bytes(const struct elf_file *elf, const struct elf_section *s);
/* Uncompresses an SHF_COMPRESSED (zlib or zstd) section into memory the caller frees; at most
 * max_bytes. */
int elf_section_inflate(const struct elf_file *elf, const struct elf_section *s, uint64_t max_bytes,
	uint8_t **out, size_t *out_n, struct err *err);

/* The zlib stream `in` holds exactly `out_n` bytes once unpacked; false when it does not. */
bool elf_inflate_zlib(struct span in, uint8_t *out, size_t out_n);

/* Bytes at a linker address, through the segments: those up to the segment's file end. */
struct span elf_file_bytes_at(const struct elf_file *elf, struct iaddr addr);

/* The linker address of the first byte of a mapping of the file at `offset` (through PT_LOAD;
 * tolerates offsets rounded down, and ends rounded up, to a page). Two segments may share a page of
 * the file: an executable one is preferred, then one that really holds the offset. False when no
 * segment covers the offset. */
bool elf_file_offset_to_iaddr(const struct elf_file *elf, struct foff offset, struct iaddr *out);

/* The build-id note, from a note section or PT_NOTE; empty when there is none. */
struct span elf_file_build_id(const struct elf_file *elf);
/* The same of the bytes of notes alone, padded to `align`: 4 or 8. */
struct span elf_notes_build_id(struct span notes, uint64_t align);

/* .gnu_debuglink: file name (borrowed) and CRC. False when absent or malformed. */
bool elf_file_debuglink(const struct elf_file *elf, const char **name, uint32_t *crc);

/* Calls `each` for every defined function-like symbol (STT_FUNC, STT_GNU_IFUNC, and STT_NOTYPE in
 * an executable section) of .symtab (or, with `dynamic`, .dynsym; without section headers the one
 * that PT_DYNAMIC names). Symbols outside their section, such as _etext, are left out.
 * In a relocatable file, whose sections all start at 0, addresses count from the section. */
struct elf_symbol {
	const char *name; /* borrowed, never empty */
	struct iaddr addr;
	uint64_t size; /* 0 = not said; never more than room */
	uint64_t room; /* bytes from addr to the end of its section, or segment when unknown */
	uint8_t type;  /* STT_* */
	uint8_t bind;  /* STB_* */
	const char
		*file; /* of a local function: the source that STT_FILE names; NULL = not known */
};
void elf_file_each_function(const struct elf_file *elf, bool dynamic,
	void (*each)(void *ctx, const struct elf_symbol *symbol), void *ctx);
/* The same for variables and constants that have a size. */
void elf_file_each_object(const struct elf_file *elf, bool dynamic,
	void (*each)(void *ctx, const struct elf_symbol *symbol), void *ctx);
/* Names that assemblers and compilers make for themselves: .L1, $d, .annobin_x. */
bool elf_symbol_is_internal(const struct elf_symbol *symbol);
/* True when .symtab has a function whose name is not internal. Stops at the first one. */
bool elf_file_has_functions(const struct elf_file *elf);

/* A variable (STT_OBJECT) by name, of .symtab or else of .dynsym; false when there is none. Looks at
 * every symbol. */
bool elf_file_find_object(const struct elf_file *elf, const char *name, struct elf_symbol *out);

/* The name of entry `index` of the symbol table in section `table` (as relocations refer to it),
 * defined here or not; NULL when there is no such entry or it has no name. */
const char *elf_file_symbol_name(
	const struct elf_file *elf, const struct elf_section *table, uint64_t index);

/* The value of the first DT_* entry `tag` of PT_DYNAMIC. False when there is none. */
bool elf_file_dynamic(const struct elf_file *elf, uint64_t tag, uint64_t *value);

/* Reads an address, offset or size of the file's class: 4 or 8 bytes. */
static inline uint64_t elf_file_word(const struct elf_file *elf, struct cursor *c)
{
	return elf->is_64 ? cursor_u64(c) : cursor_u32(c);
}

#endif
