/* SPDX-License-Identifier: MIT */
/*
 * Functions of an ELF file by name, pattern or address. Names are compared where they lie, so that
 * a table of a million symbols costs one pass and no allocation; only what matches is copied.
 * Names may be those of .gnu_debugdata and of a separate debug file: their addresses are those of
 * the image, and the file offset always comes from the image's own segments.
 */
#include "probe/points/find_sites.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/order.h"
#include "probe/points/point_kind.h"
#include "probe/points/site_cost.h"
#include "probe/points/source_line.h"
#include "probe/points/usdt_notes.h"
#include "symbols/function_pattern.h"
#include "symbols/elf_tables.h"
#include "symbols/symtab.h"

#define SCAN_BYTES_MAX	    (512u << 10) /* of one file, to offer cheaper sites */
#define FUNCTION_NAME_MAX   4096
#define CODE_SEGMENT	    "it is not in the code of the file"
#define IMPLEMENTATIONS_MAX 256 /* bytes of a hint */

static const char why_ifunc[] =
	"it is chosen when the program is loaded (IFUNC): a probe would only see the choice";

struct match {
	struct elf_symbol symbol;
	bool is_exact; /* the very name that was asked for */
};

struct functions {
	struct site_search *search;
	struct function_pattern pattern;
	VEC(struct match) matches;
	/* With an address instead of a name: the function that holds it. */
	uint64_t address;
	struct elf_symbol holder;
};

/* --- matching --------------------------------------------------------------------------------- */

/* In a hostile table every symbol names the rest of one long text; and labels of assembler code are
 * no functions, unless one is asked for by name. */
static bool is_candidate(const struct functions *f, const struct elf_symbol *symbol)
{
	return strnlen(symbol->name, FUNCTION_NAME_MAX + 1) <= FUNCTION_NAME_MAX &&
	       (f->pattern.is_exact || symbol->type != STT_NOTYPE || symbol->bind != STB_LOCAL);
}

static void take_symbol(void *ctx, const struct elf_symbol *symbol)
{
	struct functions *f = ctx;
	struct function_name name = {.linkage = symbol->name};
	enum function_match match;

	if (!is_candidate(f, symbol) || f->matches.n >= 2 * SITES_MAX)
		return;
	match = function_pattern_match(&f->pattern, &name);
	function_name_release(&name);
	if (match)
		vec_push(&f->matches, ((struct match){*symbol, match == FUNCTION_MATCH_LINKAGE}));
}

static void take_holder(void *ctx, const struct elf_symbol *symbol)
{
	struct functions *f = ctx;
	uint64_t size = symbol->size ? symbol->size : 1;

	if (symbol->addr.v > f->address || f->address - symbol->addr.v >= size)
		return;
	if (f->holder.name && f->holder.addr.v >= symbol->addr.v && f->holder.type != STT_NOTYPE)
		return;
	f->holder = *symbol;
}

static void take_near(void *ctx, const struct elf_symbol *symbol)
{
	struct functions *f = ctx;

	if (is_candidate(f, symbol) && (symbol->type != STT_NOTYPE || symbol->bind != STB_LOCAL))
		function_pattern_offer(&f->pattern, &f->search->near, symbol->name);
}

/* --- sites ------------------------------------------------------------------------------------ */

static bool is_code(const struct elf_file *elf, struct iaddr addr)
{
	for (size_t i = 0; i < elf->n_segments; i++) {
		const struct elf_segment *s = &elf->segments[i];

		if (s->type == PT_LOAD && addr.v >= s->addr.v && addr.v - s->addr.v < s->mem_size)
			return s->flags & PF_X;
	}
	return false;
}

void site_list_leave_out(
	struct site_list *l, const char *function, struct foff offset, const char *why)
{
	vec_push(&l->left_out, ((struct left_out){function, offset, why}));
}

static void offer_cheaper(struct site_list *l, struct site *site, struct span code, uint64_t size)
{
	uint32_t into;

	if (site->cost != SITE_SINGLE_STEPPED || !size || size > code.n || size > l->scan_left)
		return;
	into = site_cheaper(span_sub(code, 0, size), site->offset, l->mode);
	l->scan_left -= size;
	if (into)
		site->cheaper.v = site->offset.v + into;
}

void site_list_add(struct site_list *l, struct site *site, uint64_t size)
{
	struct span code = elf_file_bytes_at(l->elf, site->addr);
	const char *why = NULL;

	if (!is_code(l->elf, site->addr) ||
		!elf_iaddr_to_offset(l->elf, site->addr, &site->offset)) {
		site_list_leave_out(l, site->function, (struct foff){0}, CODE_SEGMENT);
		return;
	}
	site->cost = site_cost(code, site->offset, l->mode, &why);
	if (!why && point_has(l->search->spec->kind, POINT_AT_RETURN))
		why = unwind_refusal(site->function, code);
	if (why) {
		site_list_leave_out(l, site->function, site->offset, why);
		return;
	}
	if (!site->into_function && !site->probe)
		offer_cheaper(l, site, code, size);
	vec_push(&l->sites, *site);
}

ORDER_BY(compare_offsets, struct site, offset.v)

/* Code that was laid out twice (inlined) may have two notes of one address: the same probe. */
static void drop_doubles(struct site_list *l)
{
	size_t kept = 0;

	for (size_t i = 0; i < l->sites.n; i++) {
		const struct site *s = &l->sites.v[i], *last = kept ? &l->sites.v[kept - 1] : NULL;

		if (!last || !s->probe || last->offset.v != s->offset.v ||
			strcmp(last->probe, s->probe) != 0 ||
			strcmp(last->provider, s->provider) != 0)
			l->sites.v[kept++] = *s;
	}
	l->sites.n = kept;
}

/* Sorts by offset and moves both lists into the arena. */
static void finish(struct site_list *l, const struct probe_file *file, struct target *out)
{
	struct arena *arena = l->search->arena;

	vec_sort(&l->sites, compare_offsets);
	drop_doubles(l);
	*out = (struct target){.path = file->path,
		.device = file->device,
		.inode = file->inode,
		.modified_ns = file->modified_ns,
		.mode = file->mode,
		.n_sites = l->sites.n,
		.n_left_out = l->left_out.n};
	if (l->sites.n)
		out->sites = arena_dup(arena, l->sites.v, l->sites.n * sizeof(*l->sites.v));
	if (l->left_out.n)
		out->left_out =
			arena_dup(arena, l->left_out.v, l->left_out.n * sizeof(*l->left_out.v));
	vec_release(&l->sites);
	vec_release(&l->left_out);
}

/* --- from matches to sites -------------------------------------------------------------------- */

static unsigned underscores(const char *name)
{
	return (unsigned)strspn(name, "_");
}

/* By address; of one address the name asked for first, then the most public one. */
static int compare_matches(const void *a, const void *b)
{
	const struct elf_symbol *x = &((const struct match *)a)->symbol;
	const struct elf_symbol *y = &((const struct match *)b)->symbol;

	return ORDER(x->addr.v, y->addr.v)
		       ?: ORDER(((const struct match *)b)->is_exact, ((const struct match *)a)->is_exact)
		       ?: ORDER(x->type == STT_NOTYPE, y->type == STT_NOTYPE)
		       ?: ORDER(x->bind == STB_LOCAL, y->bind == STB_LOCAL)
		       ?: ORDER(underscores(x->name), underscores(y->name)) ?: strcmp(x->name, y->name);
}

/* Without the version that .symtab has, and never with what could steer a terminal. */
static const char *copy_name(struct arena *arena, const char *name)
{
	size_t n = strnlen(name, FUNCTION_NAME_MAX);
	const char *at = memchr(name, '@', n);
	char *copy = arena_strndup(arena, name, at && at > name ? (size_t)(at - name) : n);

	for (char *p = copy; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = '?';
	return copy;
}

/* "+OFFSET" must lie in the function, on an instruction. */
static const char *check_offset(
	const struct site_list *l, const struct elf_symbol *m, uint64_t into)
{
	struct span code = elf_file_bytes_at(l->elf, m->addr);
	uint64_t size = m->size ? m->size : m->room;

	if (!into)
		return NULL;
	if (into >= size || into >= code.n)
		return "the offset lies behind the function";
	if (into > UINT32_MAX || !site_is_boundary(code, into, l->mode))
		return "the offset is not the start of an instruction";
	return NULL;
}

static void add_match(struct site_list *l, const struct elf_symbol *m, uint64_t into)
{
	struct site_search *s = l->search;
	const char *name = copy_name(s->arena, m->name);
	const char *why = m->type == STT_GNU_IFUNC ? why_ifunc : check_offset(l, m, into);
	struct foff offset = {0};
	struct site site = {
		.function = name, .addr = {m->addr.v + into}, .into_function = (uint32_t)into};

	if (why) {
		elf_iaddr_to_offset(l->elf, m->addr, &offset);
		site_list_leave_out(l, name, offset, why);
	} else {
		site_list_add(l, &site, m->size > into ? m->size - into : 0);
	}
}

static void add_matches(struct site_list *l, struct functions *f)
{
	struct match *v = f->matches.v;

	vec_sort(&f->matches, compare_matches);
	for (size_t i = 0; i < f->matches.n; i++) {
		if (i && v[i].symbol.addr.v == v[i - 1].symbol.addr.v)
			continue;
		add_match(l, &v[i].symbol, f->search->spec->offset);
	}
}

static void add_address(struct site_list *l, const struct functions *f)
{
	const struct elf_symbol *m = &f->holder;
	struct site site = {.addr = {f->address}};

	l->search->has_match = true;
	if (m->name && m->size) {
		const char *why = check_offset(l, m, f->address - m->addr.v);

		site.function = copy_name(l->search->arena, m->name);
		site.into_function = (uint32_t)(f->address - m->addr.v);
		if (why) {
			site_list_leave_out(l, site.function, (struct foff){0},
				"the address is not the start of an instruction");
			return;
		}
	}
	site_list_add(l, &site, 0);
}

/* --- the implementations of an IFUNC ---------------------------------------------------------- */

struct implementations {
	const char *name;
	char text[IMPLEMENTATIONS_MAX];
	size_t n;
};

/* glibc's are named "__strlen_avx2". */
static void take_implementation(void *ctx, const struct elf_symbol *symbol)
{
	struct implementations *w = ctx;
	size_t n = strlen(w->name), room = sizeof(w->text) - w->n;
	const char *name = symbol->name;

	name += underscores(name);
	if (strncmp(name, w->name, n) != 0 || name[n] != '_' || strcmp(name + n, "_ifunc") == 0 ||
		symbol->type == STT_GNU_IFUNC || symbol->type == STT_NOTYPE ||
		strlen(symbol->name) + 3 > room)
		return;
	w->n += (size_t)snprintf(w->text + w->n, room, "%s%s", w->n ? ", " : "", symbol->name);
}

/* What to do instead when all that was found is one. */
static void hint_ifunc(struct site_list *l, const struct elf_tables *t)
{
	struct site_search *s = l->search;
	struct implementations w = {.name = s->spec->name};

	if (s->hint[0] || s->spec->is_glob || l->sites.n || !l->left_out.n ||
		l->left_out.v[0].why != why_ifunc)
		return;
	elf_tables_each(t, take_implementation, &w);
	if (w.n)
		snprintf(s->hint, sizeof(s->hint), "probe what it may choose: %s", w.text);
	else
		snprintf(s->hint, sizeof(s->hint),
			"with the library's debug symbols installed, probe what it may choose (such "
			"as __%.64s_avx2)",
			s->spec->name);
}

/* --- a file ----------------------------------------------------------------------------------- */

static void search_names(struct site_list *l, struct functions *f, const struct elf_tables *t)
{
	const struct point_spec *spec = l->search->spec;

	if (spec->has_address) {
		f->address = spec->address;
		elf_tables_each(t, take_holder, f);
		add_address(l, f);
		return;
	}
	if (function_pattern_init_name(&f->pattern, spec->name, NULL) < 0)
		return; /* it was read before, with the point */
	elf_tables_each(t, take_symbol, f);
	if (f->matches.n)
		l->search->has_match = true;
	else
		elf_tables_each(t, take_near, f);
	add_matches(l, f);
	function_pattern_release(&f->pattern);
}

static int search_lines(struct site_list *l, struct functions *f, const struct elf_tables *t,
	const char *path, struct err *err)
{
	struct line_addresses found = {0};
	int rc = source_line_find(&found, l->search, l->elf, path, err);

	for (size_t i = 0; i < found.v.n; i++) {
		f->address = found.v.v[i];
		f->holder = (struct elf_symbol){0};
		elf_tables_each(t, take_holder, f);
		add_address(l, f);
	}
	vec_release(&found.v);
	return rc;
}

static int search_functions(struct site_list *l, const char *path, struct err *err)
{
	struct site_search *s = l->search;
	struct functions f = {.search = s};
	struct elf_tables tables;
	int rc = 0;

	elf_tables_open(&tables, l->elf, path);
	s->is_stripped = tables.is_stripped;
	if (point_is_source_line(s->spec))
		rc = search_lines(l, &f, &tables, path, err);
	else
		search_names(l, &f, &tables);
	hint_ifunc(l, &tables);
	elf_tables_close(&tables);
	vec_release(&f.matches);
	if (point_has(s->spec->kind, POINT_AT_RETURN) && l->sites.n &&
		unwind_risk_of(l->elf) > s->unwind_risk)
		s->unwind_risk = unwind_risk_of(l->elf);
	return rc;
}

bool find_functions(
	struct point *out, const struct find_options *options, struct arena *arena, struct diags *d)
{
	struct site_search s = {.spec = &out->spec,
		.arena = arena,
		.d = d,
		.search = search_functions,
		.what = point_is_source_line(&out->spec) ? "line of source" : "function"};

	return find_in_files(&s, options, out);
}

bool find_sites(struct site_search *s, const struct probe_file *file, struct target *out)
{
	struct site_list l = {.search = s, .mode = file->mode, .scan_left = SCAN_BYTES_MAX};
	struct file_map map;
	struct elf_file elf;
	struct err err;
	int rc;

	if (file_map_open(&map, file->path, &err) < 0)
		return diag_error(s->d, s->spec->place, "not-found", "%s", err.text);
	s->near.wanted = s->spec->name;
	rc = elf_file_init(&elf, map.bytes, &err);
	if (rc == 0) {
		l.elf = &elf;
		rc = s->search(&l, file->path, &err);
		elf_file_release(&elf);
	}
	if (rc < 0)
		diag_error(s->d, s->spec->place, "not-elf", "'%s': %s", file->path, err.text);
	finish(&l, file, out);
	file_map_release(&map);
	return rc >= 0;
}
