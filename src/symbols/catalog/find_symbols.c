/* SPDX-License-Identifier: MIT */
/*
 * Candidates are the catalog's images of the same base name, those of other names that may have the
 * same identity, and the file at the module's path. The best rung wins. Several that are exact are
 * the same version: then the one that knows most wins, which may be a debug file or a file that was
 * merged with its map.
 */
#include "symbols/catalog/find_symbols.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "symbols/catalog/image_make.h"

#define CANDIDATES_SHOWN 3 /* refused ones that the reason names */

struct file_candidate {
	struct file_map map;
	struct elf_file elf;
	struct image_identity id;
	bool is_open;
	struct err err;
};

struct finding {
	const struct image_identity *wanted;
	const struct symbols_search *search;
	struct symbols_found *out;
	VEC(struct catalog_image *) images; /* of candidates; NULL for the file */
	VEC(const struct image_identity *) ids;
	struct file_candidate file;
};

static void open_file(struct finding *f)
{
	struct file_candidate *c = &f->file;
	const char *path = f->wanted->path;
	struct stat st;

	if (f->search->no_files || !path || path[0] != '/' || f->wanted->kind != IMAGE_KIND_ELF) {
		err_set(&c->err, ERR_NOT_FOUND, "no file was looked at");
		return;
	}
	if (file_map_open(&c->map, path, &c->err) < 0)
		return;
	if (elf_file_init(&c->elf, c->map.bytes, &c->err) < 0) {
		err_prefix(&c->err, "'%s'", path);
		file_map_release(&c->map);
		return;
	}
	image_identity_init_elf(&c->id, &c->elf, path, stat(path, &st) == 0 ? &st : NULL,
		f->wanted->content_hash != 0);
	c->is_open = true;
}

static void close_file(struct file_candidate *c)
{
	if (!c->is_open)
		return;
	image_identity_release(&c->id);
	elf_file_release(&c->elf);
	file_map_release(&c->map);
}

static void add_candidate(struct finding *f, struct catalog_image *image,
	const struct image_identity *id, size_t catalog_i, char *where)
{
	vec_push(&f->images, image);
	vec_push(&f->ids, id);
	vec_push(&f->out->candidates,
		((struct symbols_candidate){.where = where, .catalog_i = catalog_i}));
}

static void add_catalog_image(struct finding *f, size_t i)
{
	struct catalog_entry entry = catalog_get(f->search->catalog, i);
	struct catalog_image *image;

	if (catalog_open_image(f->search->catalog, i, &image, NULL) < 0)
		return;
	add_candidate(f, image, catalog_image_identity(image), i,
		mem_printf("catalog image %s (%s)", entry.id, entry.path));
}

/* Without a name in common only an equal identity can tell; the directory has build-ids. */
static bool entry_may_match(const struct finding *f, const struct catalog_entry *entry)
{
	if (image_identity_has_build_id(f->wanted))
		return entry->build_id.n == f->wanted->build_id_n &&
		       !memcmp(entry->build_id.p, f->wanted->build_id, entry->build_id.n);
	return !entry->build_id.n && entry->bits == f->wanted->bits;
}

static void add_catalog(struct finding *f)
{
	const struct catalog *catalog = f->search->catalog;
	struct buf name = {0};
	size_t first = 0, n = 0;

	if (!catalog)
		return;
	if (f->wanted->kind == IMAGE_KIND_JIT)
		buf_printf(&name, "perf-%u", f->wanted->pid);
	else
		image_base_name(f->wanted->path ? f->wanted->path : "", &name);
	n = catalog_find_base(catalog, buf_text(&name), &first);
	if (!n && f->wanted->kind == IMAGE_KIND_JIT) {
		buf_reset(&name);
		buf_printf(&name, "jit-%u", f->wanted->pid);
		n = catalog_find_base(catalog, buf_text(&name), &first);
	}
	for (size_t i = 0; i < n; i++)
		add_catalog_image(f, first + i);
	for (size_t i = 0; i < catalog_n(catalog); i++) {
		struct catalog_entry entry = catalog_get(catalog, i);

		if ((i < first || i >= first + n) && entry_may_match(f, &entry))
			add_catalog_image(f, i);
	}
	buf_release(&name);
}

/* The best; match_best keeps the order given among equals, and the file stands last. */
static size_t judge(struct finding *f)
{
	size_t n = f->ids.n;
	struct match_verdict *verdicts = mem_calloc(n + 1, sizeof(*verdicts));
	size_t best = match_best(f->wanted, f->ids.v, n, verdicts, &f->out->n_tied);

	for (size_t i = 0; i < n; i++)
		f->out->candidates.v[i].verdict = verdicts[i];
	free(verdicts);
	return best;
}

/* Source lines before none, then more symbols; the symbols of a file are not counted. */
static uint64_t richness(const struct finding *f, size_t i)
{
	const uint64_t lines = (uint64_t)1 << 62;
	const struct catalog_image *image = f->images.v[i];

	if (!image)
		return image_has_lines(&f->file.elf, f->wanted->path) ? lines : 0;
	return (catalog_image_n_rows(image) ? lines : 0) + catalog_image_n_symbols(image);
}

static size_t richest(const struct finding *f, size_t best)
{
	uint64_t most = richness(f, best);

	for (size_t i = 0; i < f->ids.n; i++)
		if (i != best && f->out->candidates.v[i].verdict.rung == MATCH_BUILD_ID &&
			richness(f, i) > most) {
			most = richness(f, i);
			best = i;
		}
	return best;
}

/* --- the answer --- */

static void use_file(struct finding *f)
{
	struct symbols_found *out = f->out;
	struct image_recipe recipe = {.elf = &f->file.elf,
		.path = f->wanted->path,
		.addrs = f->search->addrs,
		.n_addrs = f->search->n_addrs,
		.columns = f->search->columns,
		.n_threads = f->search->n_threads};
	struct err err = {0};
	int rc = image_make_open(&f->file.id, &recipe, &out->bytes, &out->image, &err);

	if (rc == 0 && file_map_is_cut(&f->file.map)) {
		rc = err_set(&err, ERR_FAILED, "'%s': " FILE_CUT_REASON, f->wanted->path);
		catalog_image_close(out->image);
		out->image = NULL;
	}
	if (rc < 0) {
		free(out->reason);
		out->reason = mem_strdup(err.text);
		out->rung = MATCH_NONE;
	}
	out->path = mem_strdup(f->wanted->path);
}

static void say_tie(struct symbols_found *out)
{
	char *text = mem_printf(
		"%s; ambiguous: %zu other candidate%s of another version fit%s as well",
		out->reason, out->n_tied, out->n_tied == 1 ? "" : "s", out->n_tied == 1 ? "s" : "");

	free(out->reason);
	out->reason = text;
}

/* A name is no surer than the source that has it. */
static void judge_names(struct symbols_found *out)
{
	struct catalog_image *image = out->image;
	size_t n = image ? catalog_image_n_symbols(image) : 0, n_weak = 0, weakest = 0;
	bool has_weak = false;

	out->names_rung = out->rung;
	for (size_t i = 0; image && i < catalog_image_n_sources(image); i++)
		has_weak |= catalog_image_source(image, i).rung < out->rung;
	for (size_t i = 0; has_weak && i < n; i++) {
		enum match_rung rung = catalog_image_symbol_rung(image, i);

		n_weak += rung < out->rung;
		if (rung < out->names_rung) {
			out->names_rung = rung;
			weakest = i;
		}
	}
	if (n_weak) {
		struct catalog_source s =
			catalog_image_source(image, catalog_image_symbol_source(image, weakest));
		char *text = mem_printf(
			"%s; but %zu of its %zu names stand on a lower rung (%s): %s '%s': %s",
			out->reason, n_weak, n, match_rung_name(out->names_rung),
			symbol_source_name(s.kind), s.path, s.verdict);

		free(out->reason);
		out->reason = text;
	}
}

static void use_best(struct finding *f, size_t best)
{
	struct symbols_found *out = f->out;
	const struct symbols_candidate *c = &out->candidates.v[best];

	out->rung = c->verdict.rung;
	out->reason = mem_printf("%s: %s", c->where, c->verdict.reason);
	if (f->images.v[best]) {
		out->image = f->images.v[best];
		f->images.v[best] = NULL;
		snprintf(out->catalog_id, sizeof(out->catalog_id), "%s",
			catalog_image_id(out->image));
	} else {
		use_file(f);
	}
	if (out->n_tied)
		say_tie(out);
	judge_names(out);
}

static void say_none(struct finding *f)
{
	struct symbols_found *out = f->out;
	struct buf text = {0}, identity = {0};

	buf_printf(&text, "'%s' (%s): no symbols", f->wanted->path ? f->wanted->path : "?",
		image_identity_text(f->wanted, &identity));
	for (size_t i = 0; i < out->candidates.n && i < CANDIDATES_SHOWN; i++)
		buf_printf(&text, "; %s: %s", out->candidates.v[i].where,
			out->candidates.v[i].verdict.reason);
	if (out->candidates.n > CANDIDATES_SHOWN)
		buf_printf(&text, "; %zu more", out->candidates.n - CANDIDATES_SHOWN);
	if (!f->search->catalog)
		buf_put_cstr(&text, "; no catalog");
	else if (!out->candidates.n || out->candidates.v[0].catalog_i == SIZE_MAX)
		buf_put_cstr(&text, "; nothing of that name or identity in the catalog");
	if (!f->file.is_open && f->file.err.code)
		buf_printf(&text, "; %s", f->file.err.text);
	out->reason = mem_strdup(buf_text(&text));
	buf_release(&text);
	buf_release(&identity);
}

/* The best candidate to the front, the others by rung, in the order they were. */
static void order_candidates(struct symbols_found *out, size_t best)
{
	struct symbols_candidate c = out->candidates.v[best];

	memmove(&out->candidates.v[1], &out->candidates.v[0], best * sizeof(c));
	out->candidates.v[0] = c;
}

void symbols_find(struct symbols_found *out, const struct image_identity *wanted,
	const struct symbols_search *search)
{
	struct finding f = {.wanted = wanted, .search = search, .out = out};
	size_t best;

	memset(out, 0, sizeof(*out));
	add_catalog(&f);
	open_file(&f);
	if (f.file.is_open)
		add_candidate(
			&f, NULL, &f.file.id, SIZE_MAX, mem_printf("file '%s'", wanted->path));
	best = judge(&f);
	if (best == SIZE_MAX) {
		say_none(&f);
	} else {
		if (out->candidates.v[best].verdict.rung == MATCH_BUILD_ID)
			best = richest(&f, best);
		use_best(&f, best);
		order_candidates(out, best);
	}
	for (size_t i = 0; i < f.images.n; i++)
		catalog_image_close(f.images.v[i]);
	vec_release(&f.images);
	vec_release(&f.ids);
	close_file(&f.file);
}

void symbols_found_release(struct symbols_found *f)
{
	for (size_t i = 0; i < f->candidates.n; i++)
		free(f->candidates.v[i].where);
	vec_release(&f->candidates);
	catalog_image_close(f->image);
	buf_release(&f->bytes);
	free(f->reason);
	free(f->path);
}

void trace_image_identity(struct image_identity *id, const struct trace_reader *r, uint32_t image)
{
	const struct trace_image *t = trace_reader_image(r, image);
	const struct trace_image_facts *facts = trace_reader_image_facts(r, image);

	*id = (struct image_identity){.path = mem_strdup(trace_reader_string(r, t->path))};
	image_identity_take_traced(id, t);
	if (!facts)
		return;
	id->machine = facts->machine;
	id->content_hash = facts->content_hash;
	id->segments = mem_calloc(facts->n_segments + 1, sizeof(*id->segments));
	id->n_segments = facts->n_segments;
	for (uint32_t i = 0; i < facts->n_segments; i++) {
		const struct trace_segment *s = &facts->segments[i];

		id->segments[i] = (struct image_segment){.addr = s->addr,
			.offset = s->offset,
			.file_bytes = s->file_bytes,
			.mem_bytes = s->mem_bytes,
			.flags = s->flags};
	}
}
