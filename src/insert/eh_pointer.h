/* SPDX-License-Identifier: MIT */
/* How .eh_frame and LSDAs write numbers and addresses (LSB Core, "DWARF Exception Header
 * Encoding"), and what a relocation of an object makes of them. */
#ifndef WEIR_INSERT_EH_POINTER_H
#define WEIR_INSERT_EH_POINTER_H

#include <stdbool.h>
#include <stdint.h>

#include "elf/elf_object.h"
#include "insert/exception_tables.h"

#define EH_ABSPTR   0x00
#define EH_ULEB128  0x01
#define EH_UDATA2   0x02
#define EH_UDATA4   0x03
#define EH_UDATA8   0x04
#define EH_SLEB128  0x09
#define EH_SDATA2   0x0a
#define EH_SDATA4   0x0b
#define EH_SDATA8   0x0c
#define EH_FORMAT   0x0f /* mask */
#define EH_PCREL    0x10
#define EH_RELATION 0x70 /* mask */
#define EH_INDIRECT 0x80
#define EH_OMIT	    0xff

/* Bytes of a number in a format of fixed width; 0 for the others. */
uint8_t eh_format_bytes(uint8_t encoding);
/* A number in any format; false when the format is not known or the bytes end. */
bool eh_number_read(struct cursor *c, uint8_t encoding, uint64_t *value);
/* Writes a number that is not negative; false when it does not fit the format. */
bool eh_number_put(struct buf *b, uint8_t encoding, uint64_t value);

/* What the field at `offset` of a section of an object means. */
enum eh_target {
	EH_TARGET_NONE,	   /* no relocation: the literal is all there is */
	EH_TARGET_SECTION, /* an offset in a section of the object */
	EH_TARGET_OUTSIDE, /* something that is not in the object */
	EH_TARGET_UNKNOWN  /* a relocation that does not go with the encoding */
};
enum eh_target eh_field_target(const struct elf_object *o, uint32_t section, uint64_t offset,
	uint8_t encoding, struct code_place *place);

#endif
