/* SPDX-License-Identifier: MIT */
#include "probe/types/dwarf_types.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "dwarf/debug_sections.h"
#include "probe/types/dwarf_place.h"
#include "probe/types/dwarf_type_build.h"
#include "symbols/debug_file.h"

#define OP_ADDR		  0x03
#define OP_ADDRX	  0xa1
#define OP_GNU_ADDR_INDEX 0xfb
#define READ_TIMES	  16 /* bytes of entries that may be read, for each byte there is */
#define READ_AT_LEAST	  (1u << 20)

struct dwarf_types {
	char *path;
	struct file_map map;
	struct elf_file elf;
	struct debug_file separate; /* where the image has no debug information itself */
	struct dwarf_debug *debug;  /* opened when the first name is asked for */
	struct die_reader *reader;
	struct dwarf_name_index names;
	struct dwarf_builder builder;
	struct types *types;
	struct place_source places;
	struct arena *calls; /* places that were given out */
	bool was_tried;	     /* `debug` was */
};

static bool has_debug_info(const struct elf_file *elf)
{
	return elf_file_find_section(elf, ".debug_info") ||
	       elf_file_find_section(elf, ".zdebug_info");
}

static int open_image(struct dwarf_types *d, const char *path, struct err *err)
{
	bool is_64 = types_mode(d->types) == MODE_64;
	int rc = file_map_open(&d->map, path, err);

	if (rc < 0)
		return rc;
	rc = elf_file_init(&d->elf, d->map.bytes, err);
	if (rc < 0)
		return err_prefix(err, "'%s'", path);
	if (d->elf.is_64 != is_64)
		return err_set(err, ERR_UNSUPPORTED, "'%s': is not a file of %d-bit code", path,
			is_64 ? 64 : 32);
	if (!d->elf.is_64 && d->elf.machine == EM_X86_64)
		return err_set(err, ERR_UNSUPPORTED, "'%s': is an x32 file", path);
	if (has_debug_info(&d->elf))
		return 0;
	if (debug_file_open(&d->separate, &d->elf, path, NULL) == 0 &&
		has_debug_info(&d->separate.elf))
		return 0;
	return err_set(err, ERR_NOT_FOUND, "'%s': has no debug information", path);
}

int dwarf_types_open(
	struct types *types, const char *path, struct dwarf_types **out, struct err *err)
{
	struct dwarf_types *d = mem_zalloc(sizeof(*d));
	int rc;

	*out = NULL;
	d->types = types;
	d->path = mem_strdup(path);
	rc = open_image(d, path, err);
	if (rc < 0) {
		dwarf_types_close(d);
		return rc;
	}
	*out = d;
	return 0;
}

void dwarf_types_close(struct dwarf_types *d)
{
	if (!d)
		return;
	place_source_release(&d->places);
	arena_free(d->calls);
	dwarf_builder_release(&d->builder);
	dwarf_name_index_release(&d->names);
	die_reader_free(d->reader);
	dwarf_debug_close(d->debug);
	debug_file_close(&d->separate);
	elf_file_release(&d->elf);
	file_map_release(&d->map);
	free(d->path);
	free(d);
}

/* What opening leaves for later: units and their abbreviations. */
static bool ready(struct dwarf_types *d)
{
	const struct elf_file *elf = d->separate.is_open ? &d->separate.elf : &d->elf;
	const char *path = d->separate.is_open ? d->separate.path : d->path;

	if (!d->was_tried) {
		d->was_tried = true;
		if (dwarf_debug_open(&d->debug, elf, path, NULL) < 0)
			return false;
		d->reader = die_reader_new(d->debug);
		die_reader_set_budget(
			d->reader, READ_AT_LEAST + READ_TIMES * die_reader_bytes(d->reader));
		d->builder = (struct dwarf_builder){
			.types = d->types, .reader = d->reader, .names = &d->names};
		d->places = (struct place_source){.elf = &d->elf,
			.debug = d->separate.is_open ? &d->separate.elf : NULL,
			.lists.debug = d->debug};
	}
	return d->reader != NULL;
}

static const struct type *find_named(void *ctx, const char *word, const char *name)
{
	struct dwarf_types *d = ctx;
	enum name_kind kind = NAME_KIND_TYPE;
	struct die entry;

	if (!strcmp(word, "struct") || !strcmp(word, "class"))
		kind = NAME_KIND_STRUCT;
	else if (!strcmp(word, "union"))
		kind = NAME_KIND_UNION;
	else if (!strcmp(word, "enum"))
		kind = NAME_KIND_ENUM;
	if (!ready(d) || !dwarf_name_index_find(&d->names, d->reader, kind, name, &entry))
		return NULL;
	return dwarf_build_type(&d->builder, &entry);
}

/* A declaration inside a class or namespace is completed outside of it, under the name that linkers
 * see; there are the names of parameters, and the address of a variable. */
static void find_completion(struct dwarf_types *d, enum name_kind kind, struct die *entry)
{
	struct dwarf_text linkage;
	struct die better;
	char *text;

	if (!die_flag(entry, DIE_DECLARATION) || !die_text(entry, DIE_LINKAGE_NAME, &linkage))
		return;
	text = mem_strndup(linkage.p, linkage.n);
	if (dwarf_name_index_find(&d->names, d->reader, kind, text, &better))
		*entry = better;
	free(text);
}

/* Functions by their symbols: first where `name` is, then what else is there. */
struct alias_search {
	struct dwarf_types *types;
	const char *name;
	uint64_t addr;
	bool has_addr;
	bool is_found;
	struct die found;
};

static void find_address(void *ctx, const struct elf_symbol *symbol)
{
	struct alias_search *s = ctx;

	if (s->has_addr || strcmp(symbol->name, s->name) != 0)
		return;
	s->addr = symbol->addr.v;
	s->has_addr = true;
}

static bool find_definition(struct dwarf_types *d, const char *name, struct die *out)
{
	if (dwarf_name_index_find(&d->names, d->reader, NAME_KIND_LINKAGE, name, out) &&
		!die_flag(out, DIE_DECLARATION))
		return true;
	return dwarf_name_index_find(&d->names, d->reader, NAME_KIND_FUNCTION, name, out) &&
	       !die_flag(out, DIE_DECLARATION);
}

static void find_alias(void *ctx, const struct elf_symbol *symbol)
{
	struct alias_search *s = ctx;

	if (!s->is_found && symbol->addr.v == s->addr)
		s->is_found = find_definition(s->types, symbol->name, &s->found);
}

static void each_symbol(struct dwarf_types *d,
	void (*each)(void *ctx, const struct elf_symbol *symbol), struct alias_search *s)
{
	elf_file_each_function(&d->elf, true, each, s);
	elf_file_each_function(&d->elf, false, each, s);
	if (d->separate.is_open)
		elf_file_each_function(&d->separate.elf, false, each, s);
}

/* A function may have further names of which only the symbol table knows: libc's malloc is defined
 * as __libc_malloc. */
static bool find_by_alias(struct dwarf_types *d, const char *name, struct die *out)
{
	struct alias_search s = {.types = d, .name = name};

	each_symbol(d, find_address, &s);
	if (s.has_addr)
		each_symbol(d, find_alias, &s);
	if (s.is_found)
		*out = s.found;
	return s.is_found;
}

static bool find_function_entry(struct dwarf_types *d, const char *name, struct die *out)
{
	struct die defined;

	if (find_definition(d, name, out))
		return true;
	if (dwarf_name_index_find(&d->names, d->reader, NAME_KIND_FUNCTION, name, out)) {
		find_completion(d, NAME_KIND_LINKAGE, out);
		if (!die_flag(out, DIE_DECLARATION))
			return true;
	} else if (!dwarf_name_index_find(&d->names, d->reader, NAME_KIND_LINKAGE, name, out)) {
		return find_by_alias(d, name, out);
	}
	/* gcc declares what it has built in without parameters: that is no knowledge. */
	if (find_by_alias(d, name, &defined))
		*out = defined;
	return out->has_children || die_says(out, DIE_TYPE);
}

static const struct type *find_function(void *ctx, const char *name)
{
	struct dwarf_types *d = ctx;
	struct die entry;

	if (!ready(d) || !find_function_entry(d, name, &entry))
		return NULL;
	return dwarf_build_function(&d->builder, &entry);
}

bool dwarf_types_call(struct dwarf_types *d, uint64_t addr, struct call_facts *out)
{
	struct place_finder finder = {.source = &d->places,
		.builder = &d->builder,
		.mode = types_mode(d->types),
		.addr = addr};
	struct call_facts call = {0};

	if (!ready(d) ||
		!dwarf_name_index_code(&d->names, d->reader, addr, &finder.function, &finder.entry))
		return false;
	if (!d->calls)
		d->calls = arena_new();
	call.function = dwarf_build_function(&d->builder, &finder.function);
	call.places = arena_zalloc(d->calls, (call.function->n_fields + 1) * sizeof(*call.places));
	dwarf_call_places(&finder, &call);
	*out = call;
	return true;
}

/* A location that is one address (DWARF 5 section 2.5.1.1). */
static bool fixed_address(const struct die *d, uint64_t *out)
{
	struct span block;
	struct cursor c;
	uint8_t op;

	if (!die_block(d, DIE_LOCATION, &block))
		return false;
	c = cursor_of(block);
	op = cursor_u8(&c);
	if (op == OP_ADDR)
		*out = d->unit->sizes.addr == 8 ? cursor_u64(&c) : cursor_u32(&c);
	else if (op != OP_ADDRX && op != OP_GNU_ADDR_INDEX)
		return false;
	else if (!debug_unit_addr(d->unit, FORM_ADDRX, cursor_uleb(&c), out))
		return false;
	return !c.failed && !cursor_left(&c);
}

static bool find_variable(void *ctx, const char *name, const struct type **type, uint64_t *iaddr)
{
	struct dwarf_types *d = ctx;
	struct die entry;
	uint64_t addr;

	if (!ready(d) ||
		!dwarf_name_index_find(&d->names, d->reader, NAME_KIND_VARIABLE, name, &entry))
		return false;
	find_completion(d, NAME_KIND_VARIABLE, &entry);
	if (!fixed_address(&entry, &addr))
		return false;
	*type = dwarf_build_type_of(&d->builder, &entry);
	*iaddr = addr;
	return true;
}

static bool find_enumerator(void *ctx, const char *name, int64_t *value, const struct type **of)
{
	struct dwarf_types *d = ctx;
	struct die entry;

	if (!ready(d) ||
		!dwarf_name_index_find(&d->names, d->reader, NAME_KIND_ENUMERATOR, name, &entry) ||
		!die_number(&entry, DIE_CONST_VALUE, (uint64_t *)value))
		return false;
	*of = NULL;
	if (dwarf_name_index_find(&d->names, d->reader, NAME_KIND_ENUM_WITH, name, &entry))
		*of = dwarf_build_type(&d->builder, &entry);
	if (*of && (*of)->kind != TYPE_INT)
		*of = NULL;
	return true;
}

struct type_source dwarf_types_source(struct dwarf_types *d)
{
	return (struct type_source){.ctx = d,
		.named = find_named,
		.function = find_function,
		.variable = find_variable,
		.enumerator = find_enumerator};
}
