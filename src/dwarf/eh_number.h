/* SPDX-License-Identifier: MIT */
/* How .eh_frame and LSDAs write numbers: DW_EH_PE_* (LSB Core, "DWARF Exception Header Encoding"). */
#ifndef WEIR_DWARF_EH_NUMBER_H
#define WEIR_DWARF_EH_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

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
#define EH_DATAREL  0x30
#define EH_RELATION 0x70 /* mask */
#define EH_INDIRECT 0x80
#define EH_OMIT	    0xff

/* A number in the format of the encoding, as it is written: what it is relative to is not added.
 * False when the format is not known or the bytes end. */
bool eh_number_read(struct cursor *c, uint8_t encoding, uint8_t absptr_bytes, uint64_t *value);

#endif
