/* SPDX-License-Identifier: MIT */
#include "insert/left_objects.h"

#include <elf.h>
#include <string.h>

#include "rt/count/count_abi.h"

#define PATH_BYTES_MAX 1024 /* longer names lose their beginnings */
#define TEXT_BYTE      0xcc /* int3: nobody comes here */

enum { NO_SECTION, TEXT, UNITS, RELOCATIONS, STACK_NOTE, SYMBOLS, STRINGS, N_SECTIONS };
enum { NO_SYMBOL, TEXT_SYMBOL, LEFT_SYMBOL, N_SYMBOLS };

/* Section and symbol names. */
static const char strings[] = "\0.text\0" COUNT_SECTION_FUNCTIONS "\0.rela" COUNT_SECTION_FUNCTIONS
			      "\0.note.GNU-stack\0.symtab\0.strtab\0" LEFT_OBJECTS_SYMBOL;

static uint32_t string_at(const char *text)
{
	for (size_t i = 1; i < sizeof(strings); i += strlen(strings + i) + 1)
		if (!strcmp(strings + i, text))
			return (uint32_t)i;
	return 0;
}

/* Each object has a byte of the text, so that each is somewhere else. */
static void put_unit(const struct left_object *objects, size_t n, struct buf *out)
{
	struct count_unit unit = {.magic = COUNT_UNIT_MAGIC,
		.version = COUNT_UNIT_VERSION,
		.text_bytes = (uint32_t)n,
		.n_functions = (uint32_t)n};
	struct buf names = {0};

	buf_put_u8(&names, 0);
	buf_put(out, &unit, sizeof(unit));
	for (size_t i = 0; i < n; i++) {
		const struct left_object *o = &objects[i];
		size_t bytes = strlen(o->path);
		const char *path = o->path + (bytes > PATH_BYTES_MAX ? bytes - PATH_BYTES_MAX : 0);
		struct count_function row = {.start = (uint32_t)i,
			.bytes = 1,
			.name = (uint32_t)names.n,
			.reason = (uint16_t)o->reason,
			.flags = COUNT_FUNCTION_OBJECT};

		buf_printf(&names, "all functions of %s", path);
		if (o->sentence)
			buf_printf(&names, ": %.*s", PATH_BYTES_MAX, o->sentence);
		buf_put_u8(&names, 0);
		buf_put(out, &row, sizeof(row));
	}
	buf_put(out, names.p, names.n);
	while (out->n % 8)
		buf_put_u8(out, 0);
	unit.bytes = (uint32_t)out->n;
	unit.names_bytes = (uint32_t)names.n;
	memcpy(out->p, &unit, sizeof(unit));
	buf_release(&names);
}

static void put_contents(struct buf *parts, size_t n)
{
	Elf64_Rela text = {.r_offset = offsetof(struct count_unit, text),
		.r_info = ELF64_R_INFO(TEXT_SYMBOL, R_X86_64_PC32)};
	Elf64_Sym symbols[N_SYMBOLS] = {
		[TEXT_SYMBOL] = {.st_info = ELF64_ST_INFO(STB_LOCAL, STT_SECTION),
			.st_shndx = TEXT},
		[LEFT_SYMBOL] = {.st_name = string_at(LEFT_OBJECTS_SYMBOL),
			.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_NOTYPE),
			.st_other = STV_HIDDEN,
			.st_shndx = UNITS},
	};

	for (size_t i = 0; i < n; i++)
		buf_put_u8(&parts[TEXT], TEXT_BYTE);
	buf_put(&parts[RELOCATIONS], &text, sizeof(text));
	buf_put(&parts[SYMBOLS], symbols, sizeof(symbols));
	buf_put(&parts[STRINGS], strings, sizeof(strings));
}

static const Elf64_Shdr section_heads[N_SECTIONS] = {
	[TEXT] = {.sh_type = SHT_PROGBITS,
		.sh_flags = SHF_ALLOC | SHF_EXECINSTR,
		.sh_addralign = 1},
	[UNITS] = {.sh_type = SHT_PROGBITS,
		.sh_flags = SHF_ALLOC | SHF_LINK_ORDER,
		.sh_link = TEXT,
		.sh_addralign = 8},
	[RELOCATIONS] = {.sh_type = SHT_RELA,
		.sh_flags = SHF_INFO_LINK,
		.sh_link = SYMBOLS,
		.sh_info = UNITS,
		.sh_addralign = 8,
		.sh_entsize = sizeof(Elf64_Rela)},
	[STACK_NOTE] = {.sh_type = SHT_PROGBITS, .sh_addralign = 1},
	[SYMBOLS] = {.sh_type = SHT_SYMTAB,
		.sh_link = STRINGS,
		.sh_info = LEFT_SYMBOL,
		.sh_addralign = 8,
		.sh_entsize = sizeof(Elf64_Sym)},
	[STRINGS] = {.sh_type = SHT_STRTAB, .sh_addralign = 1},
};

static void put_object(const struct buf *parts, struct buf *out)
{
	static const char *const names[N_SECTIONS] = {"", ".text", COUNT_SECTION_FUNCTIONS,
		".rela" COUNT_SECTION_FUNCTIONS, ".note.GNU-stack", ".symtab", ".strtab"};
	Elf64_Ehdr head = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				   EV_CURRENT},
		.e_type = ET_REL,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = N_SECTIONS,
		.e_shstrndx = STRINGS};
	Elf64_Shdr sections[N_SECTIONS];

	memcpy(sections, section_heads, sizeof(sections));
	buf_put(out, &head, sizeof(head));
	for (size_t i = 1; i < N_SECTIONS; i++) {
		while (out->n % 8)
			buf_put_u8(out, 0);
		sections[i].sh_name = string_at(names[i]);
		sections[i].sh_offset = out->n;
		sections[i].sh_size = parts[i].n;
		buf_put(out, parts[i].p, parts[i].n);
	}
	while (out->n % 8)
		buf_put_u8(out, 0);
	head.e_shoff = out->n;
	buf_put(out, sections, sizeof(sections));
	memcpy(out->p, &head, sizeof(head));
}

void left_objects_write(const struct left_object *objects, size_t n, struct buf *out)
{
	struct buf parts[N_SECTIONS] = {{0}};

	put_unit(objects, n, &parts[UNITS]);
	put_contents(parts, n);
	put_object(parts, out);
	for (size_t i = 0; i < N_SECTIONS; i++)
		buf_release(&parts[i]);
}
