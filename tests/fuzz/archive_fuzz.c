/* SPDX-License-Identifier: MIT */
/* Any bytes as an archive: what is read can be written, reads as the same members then, and is
 * written to the same bytes again. */
#include <stdlib.h>

#include "elf/archive.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_inside(const struct archive *a, const uint8_t *data, size_t n)
{
	for (size_t i = 0; i < a->members.n; i++) {
		const struct archive_member *m = &a->members.v[i];

		if (strlen(m->name) > n)
			abort();
		if (m->is_outside ? m->bytes.n != 0
				  : m->bytes.p < data || m->bytes.p + m->bytes.n > data + n)
			abort();
	}
}

/* The files of a thin archive, whose names are paths there. */
static void bring_inside(struct archive *a)
{
	for (size_t i = 0; i < a->members.n && a->is_thin; i++)
		a->members.v[i].is_outside = false;
}

static void check_again(const struct archive *a, const struct buf *written)
{
	struct archive b;
	struct buf again = {0};

	if (archive_open(&b, buf_span(written), NULL) < 0 || b.members.n != a->members.n)
		abort();
	for (size_t i = 0; i < b.members.n; i++) {
		const struct archive_member *x = &a->members.v[i], *y = &b.members.v[i];

		if (x->bytes.n != y->bytes.n ||
			(x->bytes.n && memcmp(x->bytes.p, y->bytes.p, x->bytes.n)))
			abort();
		if ((!a->is_thin && strcmp(x->name, y->name)) || x->mtime != y->mtime ||
			x->uid != y->uid || x->gid != y->gid || x->mode != y->mode)
			abort();
	}
	if (archive_write(&b, &again, NULL) < 0 || again.n != written->n ||
		memcmp(again.p, written->p, again.n))
		abort();
	buf_release(&again);
	archive_release(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct archive a;
	struct buf written = {0};

	if (archive_open(&a, (struct span){data, n}, NULL) < 0)
		return 0;
	check_inside(&a, data, n);
	bring_inside(&a);
	if (archive_write(&a, &written, NULL) == 0)
		check_again(&a, &written);
	else if (written.n)
		abort();
	buf_release(&written);
	archive_release(&a);
	return 0;
}
