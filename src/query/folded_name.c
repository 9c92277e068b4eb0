/* SPDX-License-Identifier: MIT */
#include "query/folded_name.h"

void folded_name_put(struct buf *b, const char *name)
{
	size_t from = b->n;

	buf_put_cstr(b, name);
	for (size_t i = from; i < b->n; i++) {
		if (b->p[i] == ';')
			b->p[i] = ':';
		else if (b->p[i] == '\n' || b->p[i] == '\r')
			b->p[i] = ' ';
	}
}
