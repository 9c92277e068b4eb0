/* SPDX-License-Identifier: MIT */
#include "dwarf/attr_form.h"

/* Forms up to 0x2c whose size does not depend on the unit. */
static const uint8_t plain_how[] = {
	[FORM_BLOCK2] = HOW_BLOCK2,
	[FORM_BLOCK4] = HOW_BLOCK4,
	[FORM_DATA2] = HOW_2,
	[FORM_DATA4] = HOW_4,
	[FORM_DATA8] = HOW_8,
	[FORM_STRING] = HOW_TEXT,
	[FORM_BLOCK] = HOW_BLOCK_ULEB,
	[FORM_BLOCK1] = HOW_BLOCK1,
	[FORM_DATA1] = HOW_1,
	[FORM_FLAG] = HOW_1,
	[FORM_SDATA] = HOW_SLEB,
	[FORM_UDATA] = HOW_ULEB,
	[FORM_REF1] = HOW_1,
	[FORM_REF2] = HOW_2,
	[FORM_REF4] = HOW_4,
	[FORM_REF8] = HOW_8,
	[FORM_REF_UDATA] = HOW_ULEB,
	[FORM_INDIRECT] = HOW_INDIRECT,
	[FORM_EXPRLOC] = HOW_BLOCK_ULEB,
	[FORM_FLAG_PRESENT] = HOW_NOTHING,
	[FORM_STRX] = HOW_ULEB,
	[FORM_ADDRX] = HOW_ULEB,
	[FORM_REF_SUP4] = HOW_4,
	[FORM_DATA16] = HOW_16,
	[FORM_REF_SIG8] = HOW_8,
	[FORM_IMPLICIT_CONST] = HOW_NOTHING,
	[FORM_LOCLISTX] = HOW_ULEB,
	[FORM_RNGLISTX] = HOW_ULEB,
	[FORM_REF_SUP8] = HOW_8,
	[FORM_STRX1] = HOW_1,
	[FORM_STRX2] = HOW_2,
	[FORM_STRX3] = HOW_3,
	[FORM_STRX4] = HOW_4,
	[FORM_ADDRX1] = HOW_1,
	[FORM_ADDRX2] = HOW_2,
	[FORM_ADDRX3] = HOW_3,
	[FORM_ADDRX4] = HOW_4,
};

enum form_how form_how(uint64_t form, struct form_sizes sizes)
{
	enum form_how offset = sizes.offset == 8 ? HOW_8 : HOW_4;
	enum form_how addr = sizes.addr == 8 ? HOW_8 : HOW_4;

	if (form < sizeof(plain_how) && plain_how[form])
		return plain_how[form];
	switch (form) {
	case FORM_ADDR:
		return addr;
	case FORM_REF_ADDR: /* an address in DWARF 2, an offset since */
		return sizes.version <= 2 ? addr : offset;
	case FORM_STRP:
	case FORM_SEC_OFFSET:
	case FORM_STRP_SUP:
	case FORM_LINE_STRP:
	case FORM_GNU_REF_ALT:
	case FORM_GNU_STRP_ALT:
		return offset;
	case FORM_GNU_ADDR_INDEX:
	case FORM_GNU_STR_INDEX:
		return HOW_ULEB;
	default:
		return HOW_UNKNOWN;
	}
}

int form_fixed_bytes(enum form_how how)
{
	static const int8_t bytes[] = {[HOW_UNKNOWN] = -1,
		[HOW_NOTHING] = 0,
		[HOW_1] = 1,
		[HOW_2] = 2,
		[HOW_3] = 3,
		[HOW_4] = 4,
		[HOW_8] = 8,
		[HOW_16] = 16};

	return how <= HOW_16 ? bytes[how] : -1;
}

bool form_is_addr(uint16_t form)
{
	return form == FORM_ADDR || form == FORM_ADDRX || form == FORM_GNU_ADDR_INDEX ||
	       (form >= FORM_ADDRX1 && form <= FORM_ADDRX4);
}

bool form_is_constant(uint16_t form)
{
	switch (form) {
	case FORM_DATA1:
	case FORM_DATA2:
	case FORM_DATA4:
	case FORM_DATA8:
	case FORM_UDATA:
	case FORM_SDATA:
	case FORM_IMPLICIT_CONST:
		return true;
	default:
		return false;
	}
}

const uint8_t *form_uleb_long(const uint8_t *p, const uint8_t *end, uint64_t *v)
{
	uint64_t value = 0;

	/* Ten groups of seven bits hold 64; bits above are dropped, longer padding is damage. */
	for (unsigned shift = 0; shift < 70 && p < end; shift += 7) {
		uint8_t byte = *p++;

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80) {
			*v = value;
			return p;
		}
	}
	return NULL;
}

const uint8_t *form_sleb(const uint8_t *p, const uint8_t *end, int64_t *v)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 70 && p < end; shift += 7) {
		uint8_t byte = *p++;

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80) {
			if ((byte & 0x40) && shift < 57)
				value |= ~(uint64_t)0 << (shift + 7);
			*v = (int64_t)value;
			return p;
		}
	}
	return NULL;
}

static const uint8_t *skip_bytes(const uint8_t *p, const uint8_t *end, uint64_t n)
{
	return n <= (uint64_t)(end - p) ? p + n : NULL;
}

/* The length in front of a block of `n` bytes of length. */
static const uint8_t *skip_block(const uint8_t *p, const uint8_t *end, int n)
{
	if (end - p < n)
		return NULL;
	return skip_bytes(p + n, end, n == 1 ? *p : n == 2 ? bytes_u16(p) : bytes_u32(p));
}

const uint8_t *form_read(const uint8_t *p, const uint8_t *end, enum form_how how, uint64_t *v)
{
	int n = form_fixed_bytes(how);

	if (n >= 0) {
		if (end - p < n)
			return NULL;
		if (n <= 3)
			*v = n == 1 ? *p : n == 2 ? bytes_u16(p) : n == 3 ? bytes_u24(p) : 0;
		else
			*v = n == 4 ? bytes_u32(p) : n == 8 ? bytes_u64(p) : (uintptr_t)p;
		return p + n;
	}
	if (how == HOW_ULEB)
		return form_uleb(p, end, v);
	if (how == HOW_SLEB)
		return form_sleb(p, end, (int64_t *)v);
	*v = (uintptr_t)p;
	return form_skip(p, end, how, (struct form_sizes){8, 8, 5});
}

const uint8_t *form_skip(
	const uint8_t *p, const uint8_t *end, enum form_how how, struct form_sizes sizes)
{
	const uint8_t *nul;
	uint64_t n;

	switch (how) {
	case HOW_ULEB:
	case HOW_SLEB:
		while (p < end && *p >= 0x80)
			p++;
		return p < end ? p + 1 : NULL;
	case HOW_TEXT:
		nul = p < end ? memchr(p, 0, (size_t)(end - p)) : NULL;
		return nul ? nul + 1 : NULL;
	case HOW_BLOCK1:
		return skip_block(p, end, 1);
	case HOW_BLOCK2:
		return skip_block(p, end, 2);
	case HOW_BLOCK4:
		return skip_block(p, end, 4);
	case HOW_BLOCK_ULEB:
		p = form_uleb(p, end, &n);
		return p ? skip_bytes(p, end, n) : NULL;
	case HOW_INDIRECT:
		p = form_uleb(p, end, &n);
		if (!p)
			return NULL;
		how = form_how(n, sizes);
		/* One step only: an indirect form that names itself would never end, and an
		 * implicit constant has no abbreviation to be in. */
		if (how == HOW_INDIRECT || n == FORM_IMPLICIT_CONST)
			return NULL;
		return how == HOW_UNKNOWN ? NULL : form_skip(p, end, how, sizes);
	case HOW_UNKNOWN:
		return NULL;
	default:
		return skip_bytes(p, end, (uint64_t)form_fixed_bytes(how));
	}
}
