/* SPDX-License-Identifier: MIT */
/* The frames of a trace: named at the end of a recording, or when a report opens it. */
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "symbols/resolve/resolver_internal.h"
#include "symbols/symtab_build.h"

/* A function table larger than this is not stored: nobody asks for most of it, and it would be most
 * of the trace. The verdict's reason says so. */
#define FUNCTIONS_STORED_MAX 200000

static uint64_t lookup_address(const struct trace_frame *f)
{
	return f->is_caller && f->addr ? f->addr - 1 : f->addr;
}

static bool needs_name(const struct trace_frame *f)
{
	return f->kind != FRAME_KIND_MARKER && !f->name;
}

/* --- which addresses of which image --- */

struct wanted {
	VEC(uint64_t) addrs;
};

static void want(struct wanted *all, size_t n_images, const struct trace_frame *f)
{
	if (f->image < n_images)
		vec_push(&all[f->image].addrs, lookup_address(f));
}

/* Loads every image that is wanted, and releases the list. */
static void load_wanted(struct resolver *r, struct wanted *all, size_t n_images)
{
	for (uint32_t i = 0; i < n_images; i++) {
		struct resolver_entry *e = resolver_entry(r, i);

		if (e && !e->is_loaded && all[i].addrs.n) {
			sort_u64(all[i].addrs.v, all[i].addrs.n);
			resolver_load(r, e, all[i].addrs.v, all[i].addrs.n);
		}
		vec_release(&all[i].addrs);
	}
	free(all);
}

/* --- symbols, written to a trace or added to a reader --- */

/* Where strings and symbols go. */
struct target {
	struct trace_writer *w; /* or */
	struct trace_reader *r;
};

static uint32_t put_string(const struct target *t, const char *s)
{
	if (!s)
		return 0;
	return t->w ? trace_writer_string(t->w, s) : trace_reader_add_string(t->r, s);
}

static void put_symbol(const struct target *t, uint32_t id, const struct trace_frame *f,
	const struct resolved *found)
{
	uint64_t offset = found->offset + (f->addr - lookup_address(f));
	struct trace_symbol_level levels[SYMBOL_LEVELS_MAX] = {0};
	struct trace_symbol symbol = {.frame = id,
		.reason = put_string(t, found->reason),
		.n_levels = found->n_levels ? (uint32_t)found->n_levels : 1,
		.levels = levels};

	for (size_t i = 0; i < found->n_levels; i++) {
		levels[i].name = put_string(t, found->levels[i].name);
		levels[i].file = put_string(t, found->levels[i].file);
		levels[i].line = found->levels[i].line;
	}
	levels[symbol.n_levels - 1].name = put_string(t, found->name);
	levels[symbol.n_levels - 1].offset = offset > UINT32_MAX ? UINT32_MAX : (uint32_t)offset;
	if (t->w)
		trace_writer_symbol(t->w, &symbol);
	else
		trace_reader_set_symbol(t->r, &symbol);
}

static const char *sources_of(const struct resolver_entry *e, struct buf *to)
{
	buf_reset(to);
	if (e->symtab)
		buf_put_cstr(to, symtab_sources(e->symtab));
	else if (e->has_jitdump)
		buf_put_cstr(to, "jitdump");
	for (size_t i = 0; e->symbols && i < catalog_image_n_sources(e->symbols); i++) {
		struct catalog_source s = catalog_image_source(e->symbols, i);
		struct catalog_source last = catalog_image_source(e->symbols, i ? i - 1 : 0);

		/* A map may be two sources, by the rung of its names. */
		if (!i || s.kind != last.kind || strcmp(s.path, last.path))
			buf_printf(to, "%s%s", i ? "+" : "", symbol_source_name(s.kind));
	}
	return buf_text(to);
}

static uint64_t n_symbols_of(const struct resolver_entry *e)
{
	if (e->symbols)
		return catalog_image_n_symbols(e->symbols);
	if (e->symtab)
		return symtab_n(e->symtab);
	return e->has_jitdump ? e->jitdump.codes.n : 0;
}

static struct trace_match match_of(
	const struct target *t, uint32_t image, const struct resolver_entry *e)
{
	struct buf text = {0};
	uint64_t n = n_symbols_of(e);
	char *reason =
		n > FUNCTIONS_STORED_MAX && e->image.kind == IMAGE_KIND_ELF && t->w
			? mem_printf("%s; its %lu functions are too many to be kept in a trace",
				  e->reason ? e->reason : "", n)
			: NULL;
	struct trace_match m = {.image = image,
		.rung = (uint8_t)e->match.rung,
		.reason = put_string(t, reason ? reason : e->reason),
		.catalog_id = e->match.catalog_id[0] ? put_string(t, e->match.catalog_id) : 0,
		.sources = put_string(t, sources_of(e, &text)),
		.n_symbols = n};

	free(reason);
	buf_release(&text);
	return m;
}

static void write_functions(struct trace_writer *w, uint32_t image, struct resolver_entry *e)
{
	size_t n = (size_t)n_symbols_of(e);
	struct trace_function *v;

	if (e->image.kind != IMAGE_KIND_ELF || !n || n > FUNCTIONS_STORED_MAX)
		return;
	v = mem_calloc(n, sizeof(*v));
	for (size_t i = 0; i < n; i++) {
		if (e->symbols) {
			struct catalog_symbol s = catalog_image_symbol(e->symbols, i);

			v[i] = (struct trace_function){
				s.start, s.size, trace_writer_string(w, s.linkage_name)};
		} else {
			const struct symbol *s = &e->symtab->symbols[i]; /* no need to demangle */

			v[i] = (struct trace_function){
				s->start, s->size, trace_writer_string(w, s->linkage_name)};
		}
	}
	trace_writer_functions(w, image, v, n);
	free(v);
}

/* Whoever names a frame himself has looked into the image: what that is is told as of the others. One address will
 * do for that. */
static bool is_to_be_told(
	struct resolver *r, const struct trace_frame *f, const struct wanted *wanted)
{
	const struct resolver_entry *e =
		f->kind == FRAME_KIND_NATIVE && f->image ? resolver_entry(r, f->image) : NULL;

	return e && e->image.kind == IMAGE_KIND_ELF && !wanted[f->image].addrs.n;
}

void resolver_name_frames(struct resolver *r, struct trace_writer *w)
{
	const struct target target = {.w = w};
	uint32_t n = trace_writer_n_frames(w);
	size_t n_images = r->entries.n;
	struct wanted *wanted = mem_calloc(n_images + 1, sizeof(*wanted));

	for (uint32_t id = 1; id <= n; id++) {
		const struct trace_frame *f = trace_writer_get_frame(w, id);

		if (needs_name(f) || is_to_be_told(r, f, wanted))
			want(wanted, n_images, f);
	}
	load_wanted(r, wanted, n_images);
	for (uint32_t id = 1; id <= n; id++) {
		const struct trace_frame frame = *trace_writer_get_frame(w, id);
		struct resolved found;

		if (!needs_name(&frame))
			continue;
		resolver_find(r, frame.image, lookup_address(&frame), &found);
		put_symbol(&target, id, &frame, &found);
	}
	for (uint32_t i = 1; i < n_images; i++) {
		struct resolver_entry *e = resolver_entry(r, i);
		struct trace_match match;

		if (!e || !e->is_loaded)
			continue;
		match = match_of(&target, i, e);
		trace_writer_match(w, &match);
		write_functions(w, i, e);
	}
}

/* --- later --- */

struct naming {
	struct trace_reader *reader;
	struct resolver *resolver;
	const struct catalog *catalog;
	bool is_asked; /* the user named the catalog */
	bool *again;   /* by image: name all its frames again */
};

/* A frame without a symbol is named from all there is; one that has none but an address only from a
 * catalog, so that a report need not open the files of every stripped program. */
static bool should_name(const struct naming *n, uint32_t id)
{
	const struct trace_frame *frame = trace_reader_frame(n->reader, id);
	const struct trace_symbol *symbol = trace_reader_symbol(n->reader, id);

	if (!needs_name(frame))
		return false;
	return !symbol || (n->catalog && (symbol->reason || n->again[frame->image]));
}

static void add_images(struct naming *n)
{
	n->resolver = resolver_new();
	resolver_set_catalog(n->resolver, n->catalog);
	for (uint32_t i = 1; i < trace_reader_n_images(n->reader); i++)
		resolver_add_traced(n->resolver, n->reader, i);
}

/* Images that the named catalog knows for certain get all their names from it. */
static void find_known_images(struct naming *n)
{
	for (uint32_t i = 1; n->is_asked && i < trace_reader_n_images(n->reader); i++) {
		struct symbols_search search = {.catalog = n->catalog, .no_files = true};
		struct symbols_found found;
		struct image_identity id;

		trace_image_identity(&id, n->reader, i);
		symbols_find(&found, &id, &search);
		n->again[i] = found.image && found.rung == MATCH_BUILD_ID;
		symbols_found_release(&found);
		image_identity_release(&id);
	}
}

/* A recorded name that is true gives way only to one that is certain. */
static bool is_better_name(const struct trace_symbol *old, const struct resolved *found)
{
	if (!old)
		return true;
	return !found->reason && (old->reason || found->rung == MATCH_BUILD_ID);
}

static void set_names(struct naming *n, const bool *chosen)
{
	const struct target target = {.r = n->reader};
	bool *has_named = mem_calloc(trace_reader_n_images(n->reader) + 1, sizeof(*has_named));

	for (uint32_t id = 1; id < trace_reader_n_frames(n->reader); id++) {
		const struct trace_frame *frame = trace_reader_frame(n->reader, id);
		const struct trace_symbol *old = trace_reader_symbol(n->reader, id);
		struct resolved found;

		if (!chosen[id])
			continue;
		resolver_find(n->resolver, frame->image, lookup_address(frame), &found);
		if (!is_better_name(old, &found))
			continue;
		put_symbol(&target, id, frame, &found);
		has_named[frame->image] |= !found.reason;
	}
	for (uint32_t i = 1; i < trace_reader_n_images(n->reader); i++) {
		const struct resolver_entry *e = resolver_entry(n->resolver, i);
		const struct trace_match *old = trace_reader_match(n->reader, i);
		struct trace_match match;

		/* What named a frame is what the report's names rest on, be it weaker. */
		if (!e || !e->is_loaded || (old && old->rung > e->match.rung && !has_named[i]))
			continue;
		match = match_of(&target, i, e);
		trace_reader_set_match(n->reader, &match);
	}
	free(has_named);
}

static void name_missing(struct naming *n)
{
	uint32_t n_frames = trace_reader_n_frames(n->reader);
	uint32_t n_images = trace_reader_n_images(n->reader);
	struct wanted *wanted = mem_calloc(n_images + 1, sizeof(*wanted));
	bool *chosen = mem_calloc(n_frames + 1, sizeof(*chosen));
	bool any = false;

	n->again = mem_calloc(n_images + 1, sizeof(*n->again));
	find_known_images(n);
	for (uint32_t id = 1; id < n_frames; id++) {
		chosen[id] = should_name(n, id);
		any |= chosen[id];
		if (chosen[id])
			want(wanted, n_images, trace_reader_frame(n->reader, id));
	}
	if (any) {
		add_images(n);
		load_wanted(n->resolver, wanted, n_images);
		set_names(n, chosen);
		resolver_free(n->resolver);
	} else {
		free(wanted);
	}
	free(n->again);
	free(chosen);
}

int resolver_open_trace(
	struct trace_reader **out, const char *path, const char *catalog_path, struct err *err)
{
	char *default_path = catalog_path ? NULL : catalog_default_path();
	const char *from = catalog_path ? catalog_path : default_path;
	struct catalog *catalog = NULL;
	struct trace_reader *reader;
	int rc = trace_reader_open(&reader, path, err);

	if (rc == 0 && from) {
		rc = catalog_open(&catalog, from, err);
		if (!catalog_path)
			rc = 0; /* the user's own may be missing */
		if (rc < 0)
			trace_reader_close(reader);
	}
	if (rc == 0) {
		struct naming n = {
			.reader = reader, .catalog = catalog, .is_asked = catalog_path != NULL};

		name_missing(&n);
		*out = reader;
	}
	catalog_close(catalog);
	free(default_path);
	return rc;
}
