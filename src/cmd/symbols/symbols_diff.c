/* SPDX-License-Identifier: MIT */
/*
 * weir symbols diff: what two merged symbol files, or two images of one, do not have in common.
 * Symbols are paired by their linkage name; several of one name (local functions) in order of
 * address.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/order.h"
#include "cmd/symbols/symbols_verbs.h"

struct diff {
	const struct symbols_call *call;
	size_t n_changes, n_shown;
	struct json json;
};

/* True when the change is to be shown. */
static bool count_change(struct diff *d)
{
	if (d->n_changes++ >= d->call->args->limit)
		return false;
	d->n_shown++;
	return true;
}

static void begin(struct diff *d, const char *a, const char *b)
{
	if (!d->call->args->json)
		return;
	symbols_json_begin(&d->json, d->call);
	json_string(&d->json, "a", a);
	json_string(&d->json, "b", b);
	json_newline(&d->json);
	json_array_begin(&d->json, "rows");
}

static void end(struct diff *d, const char *what)
{
	if (d->call->args->json) {
		json_array_end(&d->json);
		json_newline(&d->json);
		json_bool(&d->json, "equal", !d->n_changes);
		json_u64(&d->json, "changes", d->n_changes);
		json_object_end(&d->json);
		return;
	}
	if (d->n_shown < d->n_changes)
		printf("... %zu more\n", d->n_changes - d->n_shown);
	if (!d->n_changes && !d->call->args->quiet)
		printf("equal: the same %s\n", what);
}

/* --- merged symbol files --- */

struct side_entry {
	struct catalog_entry entry;
	size_t i;
};

static int compare_entries(const void *a, const void *b)
{
	return strcmp(
		((const struct side_entry *)a)->entry.id, ((const struct side_entry *)b)->entry.id);
}

static struct side_entry *entries_by_id(const struct catalog *c)
{
	struct side_entry *entries = mem_calloc(catalog_n(c) + 1, sizeof(*entries));

	for (size_t i = 0; i < catalog_n(c); i++)
		entries[i] = (struct side_entry){catalog_get(c, i), i};
	qsort(entries, catalog_n(c), sizeof(*entries), compare_entries);
	return entries;
}

static void json_side(struct json *j, const char *key, const struct catalog_entry *e)
{
	if (!e) {
		json_null(j, key);
		return;
	}
	json_object_begin(j, key);
	json_u64(j, "symbols", e->n_symbols);
	json_u64(j, "lines", e->n_rows);
	json_u64(j, "bytes", e->bytes);
	json_object_end(j);
}

static void show_image(struct diff *d, const char *change, const struct catalog_entry *a,
	const struct catalog_entry *b, const char *sources)
{
	const struct catalog_entry *e = a ? a : b;

	if (!count_change(d))
		return;
	if (!d->call->args->json) {
		printf("%c %s %s", a && b ? '~' : a ? '-' : '+', e->id, e->path);
		if (a && b)
			printf(": symbols %" PRIu64 " -> %" PRIu64 ", lines %" PRIu64 " -> %" PRIu64
			       "%s%s",
				a->n_symbols, b->n_symbols, a->n_rows, b->n_rows,
				*sources ? ", sources " : "", sources);
		putchar('\n');
		return;
	}
	json_newline(&d->json);
	json_object_begin(&d->json, NULL);
	json_string(&d->json, "change", change);
	json_string(&d->json, "id", e->id);
	json_string(&d->json, "path", e->path);
	json_side(&d->json, "a", a);
	json_side(&d->json, "b", b);
	report_json_text(&d->json, "sources", sources);
	json_object_end(&d->json);
}

static bool has_source(struct catalog_image *image, const struct catalog_source *wanted)
{
	for (size_t i = 0; i < catalog_image_n_sources(image); i++) {
		struct catalog_source s = catalog_image_source(image, i);

		if (s.kind == wanted->kind && !strcmp(s.path, wanted->path))
			return true;
	}
	return false;
}

/* "-dwarf /a +ld map /b": what one has and the other has not. */
static void put_missing_sources(
	struct buf *to, char sign, struct catalog_image *has, struct catalog_image *has_not)
{
	for (size_t i = 0; i < catalog_image_n_sources(has); i++) {
		struct catalog_source s = catalog_image_source(has, i);
		struct catalog_source last = catalog_image_source(has, i ? i - 1 : 0);

		/* A map may be two sources, by the rung of its names. */
		if (i && s.kind == last.kind && !strcmp(s.path, last.path))
			continue;
		if (!has_source(has_not, &s))
			buf_printf(to, "%s%c%s %s", to->n ? " " : "", sign,
				symbol_source_name(s.kind), s.path);
	}
}

static int diff_entry(struct diff *d, const struct catalog *ca, const struct side_entry *a,
	const struct catalog *cb, const struct side_entry *b, struct err *err)
{
	struct catalog_image *x = NULL, *y = NULL;
	struct buf sources = {0};
	struct span p, q;
	int rc = catalog_image_bytes(ca, a->i, &p, err);

	if (rc == 0)
		rc = catalog_image_bytes(cb, b->i, &q, err);
	if (rc < 0 || (p.n == q.n && !memcmp(p.p, q.p, p.n)))
		return rc;
	rc = catalog_open_image(ca, a->i, &x, err);
	if (rc == 0)
		rc = catalog_open_image(cb, b->i, &y, err);
	if (rc == 0) {
		put_missing_sources(&sources, '-', x, y);
		put_missing_sources(&sources, '+', y, x);
		show_image(d, "changed", &a->entry, &b->entry, buf_text(&sources));
	}
	catalog_image_close(x);
	catalog_image_close(y);
	buf_release(&sources);
	return rc;
}

static int diff_catalogs(
	struct diff *d, const struct catalog *ca, const struct catalog *cb, struct err *err)
{
	struct side_entry *a = entries_by_id(ca), *b = entries_by_id(cb);
	size_t i = 0, k = 0;
	int rc = 0;

	begin(d, d->call->operands[0], d->call->operands[1]);
	while (rc == 0 && (i < catalog_n(ca) || k < catalog_n(cb))) {
		int order = i >= catalog_n(ca)	 ? 1
			    : k >= catalog_n(cb) ? -1
						 : strcmp(a[i].entry.id, b[k].entry.id);

		if (order < 0)
			show_image(d, "removed", &a[i++].entry, NULL, "");
		else if (order > 0)
			show_image(d, "added", NULL, &b[k++].entry, "");
		else
			rc = diff_entry(d, ca, &a[i++], cb, &b[k++], err);
	}
	end(d, "images with the same content");
	free(a);
	free(b);
	return rc;
}

/* --- images --- */

static int compare_symbols(const void *a, const void *b)
{
	const struct catalog_symbol *x = a, *y = b;

	return strcmp(x->linkage_name, y->linkage_name) ?: ORDER(x->start, y->start);
}

static struct catalog_symbol *symbols_by_name(struct catalog_image *image, size_t *n)
{
	struct catalog_symbol *symbols;

	*n = catalog_image_n_symbols(image);
	symbols = mem_calloc(*n + 1, sizeof(*symbols));
	for (size_t i = 0; i < *n; i++)
		symbols[i] = catalog_image_symbol(image, i);
	qsort(symbols, *n, sizeof(*symbols), compare_symbols);
	return symbols;
}

static void json_symbol_side(struct json *j, const char *key, const struct catalog_symbol *s)
{
	if (!s) {
		json_null(j, key);
		return;
	}
	json_object_begin(j, key);
	json_address(j, "address", s->start);
	json_u64(j, "size", s->size);
	json_object_end(j);
}

static void show_symbol(
	struct diff *d, const struct catalog_symbol *a, const struct catalog_symbol *b)
{
	const struct catalog_symbol *s = a ? a : b;

	if (!count_change(d))
		return;
	if (d->call->args->json) {
		json_newline(&d->json);
		json_object_begin(&d->json, NULL);
		json_string(&d->json, "change", a && b ? "changed" : a ? "removed" : "added");
		json_string(&d->json, "name", s->name);
		json_string(&d->json, "linkage_name", s->linkage_name);
		json_symbol_side(&d->json, "a", a);
		json_symbol_side(&d->json, "b", b);
		json_object_end(&d->json);
	} else if (a && b) {
		printf("~ 0x%" PRIx64 " -> 0x%" PRIx64 " size %" PRIu64 " -> %" PRIu64 " %s\n",
			a->start, b->start, a->size, b->size, s->name);
	} else {
		printf("%c 0x%" PRIx64 " size %" PRIu64 " %s\n", a ? '-' : '+', s->start, s->size,
			s->name);
	}
}

static void diff_images(struct diff *d, struct catalog_image *x, struct catalog_image *y)
{
	size_t n, m, i = 0, k = 0;
	struct catalog_symbol *a = symbols_by_name(x, &n), *b = symbols_by_name(y, &m);

	begin(d, catalog_image_id(x), catalog_image_id(y));
	while (i < n || k < m) {
		int order = i >= n ? 1 : k >= m ? -1 : strcmp(a[i].linkage_name, b[k].linkage_name);

		if (order < 0) {
			show_symbol(d, &a[i++], NULL);
		} else if (order > 0) {
			show_symbol(d, NULL, &b[k++]);
		} else {
			if (a[i].start != b[k].start || a[i].size != b[k].size)
				show_symbol(d, &a[i], &b[k]);
			i++;
			k++;
		}
	}
	end(d, "symbols at the same addresses");
	free(a);
	free(b);
}

static int diff_two_images(struct diff *d, struct err *err)
{
	struct catalog_image *images[2] = {NULL, NULL};
	struct catalog *c = NULL;
	int rc = symbols_catalog_open(d->call, &c, err);

	for (size_t i = 0; rc == 0 && i < 2; i++) {
		size_t k = 0;

		rc = symbols_catalog_choose(c, d->call->operands[i], &k, err);
		if (rc == 0)
			rc = catalog_open_image(c, k, &images[i], err);
	}
	if (rc == 0)
		diff_images(d, images[0], images[1]);
	catalog_image_close(images[0]);
	catalog_image_close(images[1]);
	catalog_close(c);
	return rc;
}

/* Two merged symbol files when both operands are; else they name images. */
int symbols_diff(const struct symbols_call *call, struct err *err)
{
	struct diff d = {.call = call};
	struct catalog *a = NULL, *b = NULL;
	struct err err_a = {0}, err_b = {0};
	int rc_a = catalog_open(&a, call->operands[0], &err_a);
	int rc_b = catalog_open(&b, call->operands[1], &err_b), rc;

	if (rc_a == 0 && rc_b == 0) {
		rc = diff_catalogs(&d, a, b, err);
	} else if (rc_a == 0 || rc_b == 0) {
		rc = rc_a < 0 ? rc_a : rc_b;
		*err = rc_a < 0 ? err_a : err_b;
	} else {
		rc = diff_two_images(&d, err);
	}
	catalog_close(a);
	catalog_close(b);
	return rc;
}
