/* SPDX-License-Identifier: MIT */
#include "insert/insert.h"

#include <stdlib.h>
#include <string.h>

#define REPORT_MAGIC "weir insert report 2\n"
#define TEXT_MAX     (1 << 20)

static void put_text(struct buf *out, const char *text)
{
	buf_put_uleb(out, strlen(text));
	buf_put_cstr(out, text);
}

void insert_report_put(const struct insert_report *r, struct buf *out)
{
	buf_put_cstr(out, REPORT_MAGIC);
	buf_put_uleb(out, r->n_objects);
	buf_put_uleb(out, r->n_left_alone);
	buf_put_uleb(out, r->n_blocks);
	buf_put_uleb(out, r->old_text);
	buf_put_uleb(out, r->new_text);
	buf_put_uleb(out, r->functions.n);
	for (size_t i = 0; i < r->functions.n; i++) {
		const struct insert_function *f = &r->functions.v[i];

		put_text(out, f->name);
		put_text(out, f->member ? f->member : "");
		buf_put_uleb(out, f->reason);
		buf_put_uleb(out, f->n_blocks);
		buf_put_uleb(out, f->n_insns);
		buf_put_uleb(out, f->old_bytes);
		buf_put_uleb(out, f->new_bytes);
		buf_put_u8(out, f->is_compiled);
	}
	buf_put_uleb(out, r->left_names.n);
	for (size_t i = 0; i < r->left_names.n; i++)
		put_text(out, r->left_names.v[i]);
	buf_put_uleb(out, r->notes.n);
	for (size_t i = 0; i < r->notes.n; i++)
		put_text(out, r->notes.v[i]);
}

/* Never NULL; the cursor says whether it is right. */
static char *get_text(struct cursor *c)
{
	uint64_t n = cursor_uleb(c);
	struct span text;

	if (n > TEXT_MAX)
		c->failed = true;
	text = cursor_bytes(c, n);
	return mem_strndup(text.p ? (const char *)text.p : "", text.n);
}

static void get_function(struct cursor *c, struct insert_function *f)
{
	uint64_t reason;

	f->name = get_text(c);
	f->member = get_text(c);
	if (!*f->member) {
		free(f->member);
		f->member = NULL;
	}
	reason = cursor_uleb(c);
	if (reason >= INSERT_N_REASONS)
		c->failed = true;
	f->reason = c->failed ? INSERT_REASON_DONE : (enum insert_reason)reason;
	f->n_blocks = (uint32_t)cursor_uleb(c);
	f->n_insns = (uint32_t)cursor_uleb(c);
	f->old_bytes = cursor_uleb(c);
	f->new_bytes = cursor_uleb(c);
	f->is_compiled = cursor_u8(c);
}

int insert_report_get(struct insert_report *r, struct span bytes, struct err *err)
{
	struct cursor c = cursor_of(bytes);
	struct span magic = cursor_bytes(&c, strlen(REPORT_MAGIC));
	uint64_t n;

	if (!magic.p || memcmp(magic.p, REPORT_MAGIC, magic.n))
		return err_set(err, ERR_FORMAT, "is not a report of an insertion");
	r->n_objects = cursor_uleb(&c);
	r->n_left_alone = cursor_uleb(&c);
	r->n_blocks = cursor_uleb(&c);
	r->old_text = cursor_uleb(&c);
	r->new_text = cursor_uleb(&c);
	for (n = cursor_uleb(&c); n && !c.failed; n--) {
		struct insert_function f = {0};

		get_function(&c, &f);
		vec_push(&r->functions, f);
	}
	for (n = cursor_uleb(&c); n && !c.failed; n--)
		vec_push(&r->left_names, get_text(&c));
	for (n = cursor_uleb(&c); n && !c.failed; n--)
		vec_push(&r->notes, get_text(&c));
	if (!c.failed)
		return 0;
	insert_report_release(r);
	memset(r, 0, sizeof(*r));
	return err_set(err, ERR_FORMAT, "the report of an insertion is cut or damaged");
}

void insert_totals_add(struct insert_totals *t, const struct insert_report *r)
{
	for (size_t i = 0; i < r->functions.n; i++) {
		const struct insert_function *f = &r->functions.v[i];

		t->n_functions++;
		t->n_compiled += f->is_compiled;
		t->by_reason[f->reason]++;
		if (f->reason == INSERT_REASON_DONE) {
			t->n_inserted++;
			t->n_compiled_inserted += f->is_compiled;
		}
	}
}
