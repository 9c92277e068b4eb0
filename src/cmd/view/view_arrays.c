/* SPDX-License-Identifier: MIT */
#include "cmd/view/view_arrays.h"

#include <string.h>

static void pad(struct buf *out)
{
	buf_put_zeros(out, (8 - out->n % 8) % 8);
}

static void put_head(struct buf *out, const char *name, enum view_type type, uint64_t n)
{
	pad(out);
	buf_put_u32(out, (uint32_t)strlen(name));
	buf_put_u32(out, type);
	buf_put_u64(out, n);
	buf_put(out, name, strlen(name));
	pad(out);
}

void view_arrays_begin(struct buf *out, uint32_t n_arrays)
{
	buf_put(out, "WV01", 4);
	buf_put_u32(out, n_arrays);
}

void *view_array(struct buf *out, const char *name, enum view_type type, size_t n)
{
	put_head(out, name, type, n);
	return buf_put_zeros(out, n * type);
}

void view_texts(struct buf *out, const char *name, const struct buf *texts)
{
	put_head(out, name, VIEW_U8, texts->n);
	buf_put(out, texts->p, texts->n);
}
