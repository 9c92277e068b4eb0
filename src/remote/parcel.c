/* SPDX-License-Identifier: MIT */
#include "remote/parcel.h"

#include <string.h>

#define HEADER_BYTES 5

void parcels_add(struct parcels *p, struct span bytes)
{
	if (p->used) {
		memmove(p->bytes.p, p->bytes.p + p->used, p->bytes.n - p->used);
		p->bytes.n -= p->used;
		p->used = 0;
	}
	buf_put(&p->bytes, bytes.p, bytes.n);
}

static uint32_t read_u32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static bool is_known(uint8_t kind)
{
	return (kind >= PARCEL_ARGUMENT && kind <= PARCEL_BEAT) ||
	       (kind >= PARCEL_TRACE && kind <= PARCEL_END);
}

int parcels_next(struct parcels *p, struct parcel *out, struct err *err)
{
	const uint8_t *at = p->bytes.p + p->used;
	size_t left = p->bytes.n - p->used, n;

	if (left && !is_known(at[0]))
		return err_set(err, ERR_FORMAT,
			"what comes is not from weir (a byte 0x%02x where a parcel begins)", at[0]);
	if (left < HEADER_BYTES)
		return 0;
	n = read_u32(at + 1);
	if (n > PARCEL_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "a parcel of %zu bytes is more than %zu", n,
			PARCEL_BYTES_MAX);
	if (left - HEADER_BYTES < n)
		return 0;
	*out = (struct parcel){(enum parcel_kind)at[0], {at + HEADER_BYTES, n}};
	p->used += HEADER_BYTES + n;
	return 1;
}

bool parcels_is_within(const struct parcels *p)
{
	return p->used < p->bytes.n;
}

void parcels_release(struct parcels *p)
{
	buf_release(&p->bytes);
}

void parcel_put(struct buf *to, enum parcel_kind kind, struct span content)
{
	buf_put_u8(to, (uint8_t)kind);
	buf_put_u32(to, (uint32_t)content.n);
	buf_put(to, content.p, content.n);
}

void parcel_put_number(struct buf *to, enum parcel_kind kind, uint32_t number)
{
	buf_put_u8(to, (uint8_t)kind);
	buf_put_u32(to, sizeof(number));
	buf_put_u32(to, number);
}

uint32_t parcel_number(const struct parcel *p)
{
	return p->content.n == sizeof(uint32_t) ? read_u32(p->content.p) : 0;
}
