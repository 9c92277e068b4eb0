/* SPDX-License-Identifier: MIT */
/*
 * How attribute values are written (DWARF 5 section 7.5.6). A form says what a value means and,
 * with the unit's address and offset size, how many bytes it takes; `enum form_how` is only the
 * latter.
 *
 * The functions here take a pointer and the end of the bytes instead of a cursor, and return NULL
 * when the bytes run out: they are called for each of millions of entries, and a cursor in memory
 * costs a store and a load a field.
 */
#ifndef WEIR_DWARF_ATTR_FORM_H
#define WEIR_DWARF_ATTR_FORM_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/span.h"

enum dwarf_form {
	FORM_ADDR = 0x01,
	FORM_BLOCK2 = 0x03,
	FORM_BLOCK4 = 0x04,
	FORM_DATA2 = 0x05,
	FORM_DATA4 = 0x06,
	FORM_DATA8 = 0x07,
	FORM_STRING = 0x08,
	FORM_BLOCK = 0x09,
	FORM_BLOCK1 = 0x0a,
	FORM_DATA1 = 0x0b,
	FORM_FLAG = 0x0c,
	FORM_SDATA = 0x0d,
	FORM_STRP = 0x0e,
	FORM_UDATA = 0x0f,
	FORM_REF_ADDR = 0x10,
	FORM_REF1 = 0x11,
	FORM_REF2 = 0x12,
	FORM_REF4 = 0x13,
	FORM_REF8 = 0x14,
	FORM_REF_UDATA = 0x15,
	FORM_INDIRECT = 0x16,
	FORM_SEC_OFFSET = 0x17,
	FORM_EXPRLOC = 0x18,
	FORM_FLAG_PRESENT = 0x19,
	FORM_STRX = 0x1a,
	FORM_ADDRX = 0x1b,
	FORM_REF_SUP4 = 0x1c,
	FORM_STRP_SUP = 0x1d,
	FORM_DATA16 = 0x1e,
	FORM_LINE_STRP = 0x1f,
	FORM_REF_SIG8 = 0x20,
	FORM_IMPLICIT_CONST = 0x21,
	FORM_LOCLISTX = 0x22,
	FORM_RNGLISTX = 0x23,
	FORM_REF_SUP8 = 0x24,
	FORM_STRX1 = 0x25,
	FORM_STRX2 = 0x26,
	FORM_STRX3 = 0x27,
	FORM_STRX4 = 0x28,
	FORM_ADDRX1 = 0x29,
	FORM_ADDRX2 = 0x2a,
	FORM_ADDRX3 = 0x2b,
	FORM_ADDRX4 = 0x2c,
	FORM_GNU_ADDR_INDEX = 0x1f01,
	FORM_GNU_STR_INDEX = 0x1f02,
	FORM_GNU_REF_ALT = 0x1f20,
	FORM_GNU_STRP_ALT = 0x1f21
};

enum form_how {
	HOW_UNKNOWN, /* a form that is not known: the entry's end cannot be found */
	HOW_NOTHING, /* no bytes: the abbreviation says it all */
	HOW_1,
	HOW_2,
	HOW_3,
	HOW_4,
	HOW_8,
	HOW_16,
	HOW_ULEB,
	HOW_SLEB,
	HOW_TEXT, /* up to and with a NUL */
	HOW_BLOCK1,
	HOW_BLOCK2,
	HOW_BLOCK4,
	HOW_BLOCK_ULEB,
	HOW_INDIRECT /* the form is in front of the value */
};

/* What a unit header says about sizes. */
struct form_sizes {
	uint8_t addr;	/* 4 or 8 */
	uint8_t offset; /* 4 or 8 */
	uint16_t version;
};

enum form_how form_how(uint64_t form, struct form_sizes sizes);
/* Bytes of a value, or -1 when that is only known from the value. */
int form_fixed_bytes(enum form_how how);
/* What a form says of its value. */
bool form_is_addr(uint16_t form);
bool form_is_constant(uint16_t form);

static inline uint64_t bytes_u16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint64_t bytes_u24(const uint8_t *p)
{
	return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16;
}

static inline uint64_t bytes_u32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint64_t bytes_u64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* An address or offset of 4 or 8 bytes that are known to be there. */
static inline uint64_t bytes_word(const uint8_t *p, uint8_t n)
{
	return n == 8 ? bytes_u64(p) : bytes_u32(p);
}

/* Entry `index` of a table of words of n bytes, 4 or 8, that begins at `base`. */
static inline bool table_word(
	struct span table, uint64_t base, uint64_t index, uint8_t n, uint64_t *out)
{
	uint64_t at = base + index * n;

	if (index > table.n || at < base || at > table.n || table.n - at < n)
		return false;
	*out = bytes_word(table.p + at, n);
	return true;
}

/* The length in front of a unit, and of how many bytes offsets in it are: 4 or 8. */
static inline uint64_t cursor_initial_length(struct cursor *c, uint8_t *offset_bytes)
{
	uint64_t length = cursor_u32(c);

	*offset_bytes = length == UINT32_MAX ? 8 : 4;
	return length == UINT32_MAX ? cursor_u64(c) : length;
}

const uint8_t *form_uleb_long(const uint8_t *p, const uint8_t *end, uint64_t *v);

static inline const uint8_t *form_uleb(const uint8_t *p, const uint8_t *end, uint64_t *v)
{
	if (p < end && *p < 0x80) {
		*v = *p;
		return p + 1;
	}
	return form_uleb_long(p, end, v);
}

const uint8_t *form_sleb(const uint8_t *p, const uint8_t *end, int64_t *v);

/* A value as a number. Texts, blocks and 16-byte values give the address of their first byte; the
 * NUL of a text has been seen. Not for HOW_INDIRECT. */
const uint8_t *form_read(const uint8_t *p, const uint8_t *end, enum form_how how, uint64_t *v);
/* Steps over a value of any kind. */
const uint8_t *form_skip(
	const uint8_t *p, const uint8_t *end, enum form_how how, struct form_sizes sizes);

#endif
