/* SPDX-License-Identifier: MIT */
#include "symbols/resolve/resolver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "symbols/resolve/resolver_internal.h"

struct resolver *resolver_new(void)
{
	return mem_zalloc(sizeof(struct resolver));
}

void resolver_free(struct resolver *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->entries.n; i++)
		resolver_entry_release(&r->entries.v[i]);
	vec_release(&r->entries);
	free(r->text);
	free(r);
}

void resolver_set_catalog(struct resolver *r, const struct catalog *catalog)
{
	r->catalog = catalog;
}

void resolver_set_place(struct resolver *r, const struct name_place *place)
{
	r->place = place;
}

void resolver_add_image(struct resolver *r, uint32_t id, const struct trace_image *image,
	const char *path, const struct elf_file *elf, const struct cfi_table *cfi)
{
	vec_ensure_zero(&r->entries, (size_t)id + 1);
	if (r->entries.v[id].is_known)
		return; /* one file, met once with its build-id and once with its inode */
	r->entries.v[id] = (struct resolver_entry){.is_known = true,
		.image = *image,
		.path = mem_strdup(path),
		.elf = elf,
		.cfi = cfi};
	if (elf)
		r->entries.v[id].entry = elf->entry;
}

void resolver_add_traced(struct resolver *r, const struct trace_reader *reader, uint32_t image)
{
	const struct trace_image *t = trace_reader_image(reader, image);

	resolver_add_image(r, image, t, trace_reader_string(reader, t->path), NULL, NULL);
	trace_image_identity(&r->entries.v[image].identity, reader, image);
	r->entries.v[image].has_identity = true;
}

void resolver_lend_debug(struct resolver *r, uint32_t id, struct opened_debug opened)
{
	r->entries.v[id].opened = opened;
}

struct resolver_entry *resolver_entry(struct resolver *r, uint32_t id)
{
	return id < r->entries.n && r->entries.v[id].is_known ? &r->entries.v[id] : NULL;
}

static const char *why_unnamed(const struct resolver_entry *e)
{
	if (!e)
		return "address in no known module";
	if (e->match.rung == MATCH_NONE && e->reason)
		return e->reason;
	if (e->image.kind == IMAGE_KIND_JIT)
		return "address not in the process's perf map";
	return "stripped: no symbol covers the address";
}

static void name_by_address(
	struct resolver *r, struct resolver_entry *e, uint64_t addr, struct resolved *out)
{
	struct iaddr start = {addr};
	uint64_t size;

	if (e && e->cfi && e->image.kind != IMAGE_KIND_JIT)
		cfi_table_function_at(e->cfi, (struct iaddr){addr}, &start, &size);
	if (e && e->entry.v && start.v == e->entry.v) {
		/* What the ELF header calls the entry point has one name everywhere. */
		*out = (struct resolved){.name = "_start", .offset = addr - start.v};
		return;
	}
	free(r->text);
	r->text = e ? mem_printf("%s+0x%lx", path_base_name(e->path), start.v)
		    : mem_printf("[unknown 0x%lx]", addr);
	*out = (struct resolved){
		.name = r->text, .offset = addr - start.v, .reason = why_unnamed(e)};
}

/* The file of an image of kind OTHER could not be read when it was mapped: its addresses are places in
 * the file. The symbols' image knows which addresses those are; false when it does not. */
static bool find_address(const struct resolver_entry *e, uint64_t *addr)
{
	return e->image.kind != IMAGE_KIND_OTHER ||
	       image_identity_address(catalog_image_identity(e->symbols), *addr, addr);
}

/* From the catalog's kind of image: the chain, its last level is the function itself. */
static bool find_in_image(
	struct resolver *r, struct resolver_entry *e, uint64_t addr, struct resolved *out)
{
	struct catalog_range range;
	struct catalog_symbol symbol;
	size_t n;

	if (!e->symbols || !find_address(e, &addr) ||
		!catalog_image_find_range(e->symbols, (struct iaddr){addr}, &range) ||
		range.symbol == UINT32_MAX)
		return false;
	n = catalog_image_levels(e->symbols, &range, r->levels, RESOLVER_LEVELS_MAX);
	symbol = catalog_image_symbol(e->symbols, range.symbol);
	*out = (struct resolved){.name = symbol.name,
		.offset = addr - symbol.start,
		.rung = symbol.rung < e->match.image_rung ? symbol.rung : e->match.image_rung,
		.levels = r->levels,
		.n_levels = n};
	return true;
}

/* The last line that begins at or before the address; NULL when none does. */
static const struct jit_line *line_at(const struct jit_code *code, uint64_t addr)
{
	const struct jit_line *best = NULL;

	for (size_t i = 0; i < code->n_lines; i++)
		if (code->lines[i].addr <= addr && (!best || code->lines[i].addr >= best->addr))
			best = &code->lines[i];
	return best;
}

static bool is_printable(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return false;
	return true;
}

/* Compilers write into their dumps what they like; a terminal must not be steered by it. */
static const char *printable(struct resolver *r, const char *name)
{
	if (is_printable(name))
		return name;
	free(r->text);
	r->text = mem_strdup(name);
	for (char *p = r->text; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = '?';
	return r->text;
}

static bool find_in_jitdump(
	struct resolver *r, const struct resolver_entry *e, uint64_t addr, struct resolved *out)
{
	const struct jit_code *code =
		e->has_jitdump ? jitdump_find(&e->jitdump, addr, UINT64_MAX) : NULL;
	const struct jit_line *line = code ? line_at(code, addr) : NULL;

	if (!code)
		return false;
	*out = (struct resolved){.name = printable(r, code->name),
		.offset = addr - code->addr,
		.rung = e->match.rung};
	if (line) {
		r->levels[0] = (struct catalog_level){.name = out->name,
			.linkage_name = out->name,
			.file = is_printable(line->file) && line->file[0] ? line->file : NULL,
			.line = line->line};
		out->levels = r->levels;
		out->n_levels = 1;
	}
	return true;
}

void resolver_find(struct resolver *r, uint32_t id, uint64_t addr, struct resolved *out)
{
	struct resolver_entry *e = resolver_entry(r, id);
	const struct symbol *s;

	if (e && !e->is_loaded)
		resolver_load(r, e, NULL, 0);
	if (e && (find_in_image(r, e, addr, out) || find_in_jitdump(r, e, addr, out)))
		return;
	s = e && e->symtab ? symtab_find(e->symtab, addr) : NULL;
	if (!s) {
		name_by_address(r, e, addr, out);
		return;
	}
	*out = (struct resolved){.name = s->name, .offset = addr - s->start, .rung = e->match.rung};
	if (s->file) { /* and no line */
		r->levels[0] = (struct catalog_level){
			.name = s->name, .linkage_name = s->linkage_name, .file = s->file};
		out->levels = r->levels;
		out->n_levels = 1;
	}
}
