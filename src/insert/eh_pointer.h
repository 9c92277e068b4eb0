/* SPDX-License-Identifier: MIT */
/* Writing the numbers of .eh_frame and LSDAs, and what a relocation of an object makes of an
 * address among them. */
#ifndef WEIR_INSERT_EH_POINTER_H
#define WEIR_INSERT_EH_POINTER_H

#include <stdbool.h>
#include <stdint.h>

#include "dwarf/eh_number.h"
#include "elf/elf_object.h"
#include "insert/exception_tables.h"

#define EH_POINTER_BYTES 8 /* objects are those of x86-64 */

/* Bytes of a number in a format of fixed width; 0 for the others. */
uint8_t eh_format_bytes(uint8_t encoding);
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
