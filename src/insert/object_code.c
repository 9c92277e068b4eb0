/* SPDX-License-Identifier: MIT */
/*
 * Taking an object's code apart. Functions are what symbols call functions, and code that has frame
 * information but no such symbol; what lies between them is padding, data, or code that nothing
 * names but branches go to (unnamed_code.c finds that).
 */
#include "insert/object_code.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/search.h"

#define USUAL_INSN_BYTES 4

struct code_insn *code_insn_at(const struct code *c, uint32_t section, uint64_t offset)
{
	const struct code_section *s = code_section_at(c, section);

	if (!s || offset >= s->bytes.n || !s->at[offset])
		return NULL;
	return &s->insns.v[s->at[offset] - 1];
}

struct code_function *code_function_at(const struct code *c, uint32_t section, uint64_t offset)
{
	struct code_section *s = code_section_at(c, section);
	struct code_function *f;
	size_t low;

	if (!s || !s->functions.n)
		return NULL;
	/* Mostly the one that was asked for last. */
	f = &s->functions.v[s->asked_function < s->functions.n ? s->asked_function : 0];
	if (f->start <= offset && offset < f->end)
		return f;
	low = SEARCH(0, s->functions.n, i, s->functions.v[i].start <= offset);
	if (!low || offset >= s->functions.v[low - 1].end)
		return NULL;
	s->asked_function = (uint32_t)(low - 1);
	return &s->functions.v[low - 1];
}

const struct code_gap *code_gap_at(const struct code_section *s, uint64_t offset)
{
	size_t low = SEARCH(0, s->gaps.n, mid, s->gaps.v[mid].start <= offset);

	return low && offset < s->gaps.v[low - 1].end ? &s->gaps.v[low - 1] : NULL;
}

void code_section_refuse(struct code_section *s, enum insert_reason reason)
{
	if (s->reason != INSERT_REASON_DONE)
		return;
	s->reason = reason;
	for (size_t i = 0; i < s->functions.n; i++)
		if (s->functions.v[i].reason == INSERT_REASON_DONE)
			s->functions.v[i].reason = reason;
}

void code_refuse(struct code *c, enum insert_reason reason)
{
	for (struct code_section *s = code_next(c, NULL); s; s = code_next(c, s))
		code_section_refuse(s, reason);
}

/* Objects with tables that hold distances within the code as plain numbers: of Go, of code that a
 * garbage collector walks, of restartable sequences. */
static bool has_distances(const struct elf_object *o)
{
	static const char *const names[] = {".gopclntab", ".data.rel.ro.gopclntab",
		".llvm_stackmaps", ".llvm_faultmaps", "__rseq_cs"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (elf_object_find_section(o, names[i]))
			return true;
	return false;
}

/* Pieces that linkers put together, in which a call would come between two halves of a function. */
static bool is_pieces(const char *name)
{
	return !strcmp(name, ".init") || !strcmp(name, ".fini") || !strcmp(name, ".plt") ||
	       !strncmp(name, ".plt.", 5);
}

static int by_start(const void *a, const void *b)
{
	const struct code_function *x = a, *y = b;

	/* The longest first; of equal ones a symbol's before frame information's, a global one
	 * first. */
	return ORDER(x->start, y->start) ?: ORDER(y->end, x->end)
		       ?: ORDER(y->is_named, x->is_named) ?: ORDER(y->is_global, x->is_global)
		       ?: strcmp(x->name, y->name);
}

static void add_symbols(struct code *c)
{
	const struct elf_object *o = c->object;

	for (size_t i = 1; i < o->symbols.n; i++) {
		const struct object_symbol *sym = &o->symbols.v[i];
		struct code_section *s = code_section_at(c, sym->section);
		struct code_function f = {.is_named = true};

		if (!s || (sym->type != STT_FUNC && sym->type != STT_GNU_IFUNC))
			continue;
		if (!sym->size || sym->value >= s->bytes.n || sym->size > s->bytes.n - sym->value)
			continue;
		f.start = (uint32_t)sym->value;
		f.end = (uint32_t)(sym->value + sym->size);
		f.is_global = sym->bind != STB_LOCAL;
		f.name = code_admit_name(c, sym->name);
		f.is_fragment = code_fragment_base(f.name) > 0;
		vec_push(&s->functions, f);
	}
}

/* Does one of the first n functions, which are in order of their start, share bytes with the range?
 * Nested ones are rare enough that the nearest one in front is answer enough. */
static bool is_covered(const struct code_section *s, size_t n, uint64_t start, uint64_t end)
{
	size_t low = SEARCH(0, n, mid, s->functions.v[mid].start < end);

	return low && s->functions.v[low - 1].end > start;
}

static void add_frames(struct code *c)
{
	size_t *n_named = mem_calloc(c->n_sections + 1, sizeof(*n_named));

	for (size_t i = 1; i < c->n_sections; i++)
		n_named[i] = c->sections[i].functions.n;
	for (size_t i = 0; i < c->tables.ranges.n; i++) {
		const struct code_range *r = &c->tables.ranges.v[i];
		struct code_section *s = code_section_at(c, r->section);
		const char *name;

		if (!s || !r->size)
			continue;
		if (r->start >= s->bytes.n || r->size > s->bytes.n - r->start ||
			is_covered(s, n_named[r->section], r->start, r->start + r->size))
			continue;
		name = code_name_at(c, r->section, r->start);
		if (!name[0] && r->start)
			continue; /* signal trampolines have frames that begin one byte early */
		vec_push(&s->functions, ((struct code_function){.name = name,
						.start = (uint32_t)r->start,
						.end = (uint32_t)(r->start + r->size)}));
	}
	free(n_named);
}

/* Aliases become one function; functions that share code otherwise are left alone. */
static void merge_functions(struct code_section *s)
{
	size_t n = 0;

	vec_sort(&s->functions, by_start);
	for (size_t i = 0; i < s->functions.n; i++) {
		struct code_function *f = &s->functions.v[i];
		struct code_function *last = n ? &s->functions.v[n - 1] : NULL;

		if (last && f->start == last->start) {
			last->is_global |= f->is_global;
			if (f->end != last->end)
				last->reason = INSERT_REASON_OVERLAP;
			continue;
		}
		if (last && f->start < last->end) {
			last->reason = INSERT_REASON_OVERLAP;
			if (f->end > last->end)
				last->end = f->end;
			continue;
		}
		s->functions.v[n++] = *f;
	}
	s->functions.n = n;
}

static void note_insn(struct code_section *s, const struct x86_insn *x, const struct x86_effects *e,
	uint32_t offset, size_t *reloc, const struct object_section *os)
{
	struct code_insn insn = {.offset = offset,
		.length = x->length,
		.flow = x->flow,
		.rel_at = x->rel_at,
		.rel_bytes = x->rel_bytes,
		.disp_at = x->disp_at,
		.opcode = x->opcode,
		.bits = (x->is_nop ? CODE_INSN_NOP : 0u) | (x->is_endbr ? CODE_INSN_ENDBR : 0u) |
			(x->is_bound ? CODE_INSN_BOUND : 0u) | (e->uses_gs ? CODE_INSN_GS : 0u) |
			(e->is_transaction ? CODE_INSN_TRANSACTION : 0u),
		.reloc = CODE_NONE,
		.reads = e->reads,
		.kills = e->kills,
		.flags_read = e->flags_read,
		.flags_killed = e->flags_killed};

	while (*reloc < os->relocs.n && os->relocs.v[*reloc].offset < offset)
		(*reloc)++;
	if (*reloc < os->relocs.n && os->relocs.v[*reloc].offset < offset + x->length)
		insn.reloc = (uint32_t)*reloc;
	else if (x->has_target || x->disp_at) {
		insn.to_section = s->number;
		insn.to = (uint32_t)(x->has_target ? x->target : x->disp_target);
	}
	vec_push(&s->insns, insn);
	s->at[offset] = (uint32_t)s->insns.n;
}

void code_decode_function(struct code *c, struct code_section *s, struct code_function *f)
{
	const struct object_section *os = &c->object->sections.v[s->number];
	size_t reloc = object_section_reloc_at(os, f->start);
	uint32_t offset = f->start;

	f->first_insn = (uint32_t)s->insns.n;
	f->is_decoded = true;
	while (offset < f->end) {
		struct x86_insn x;
		struct x86_effects e;

		if (!x86_decode_effects(
			    &x, &e, span_sub(s->bytes, offset, f->end - offset), offset)) {
			f->is_decoded = false;
			break;
		}
		note_insn(s, &x, &e, offset, &reloc, os);
		offset += x.length;
	}
	f->n_insns = (uint32_t)s->insns.n - f->first_insn;
	if (f->is_decoded)
		return;
	for (uint32_t i = f->first_insn; i < s->insns.n; i++)
		s->at[s->insns.v[i].offset] = 0;
	s->insns.n = f->first_insn;
	f->n_insns = 0;
	f->reason = INSERT_REASON_UNDECODABLE;
}

uint32_t code_padding_bytes(const struct code_section *s, uint32_t at, uint32_t end)
{
	struct x86_insn x;

	if (s->bytes.p[at] == 0xcc || s->bytes.p[at] == 0)
		return 1;
	if (!x86_decode(&x, span_sub(s->bytes, at, end - at), at, true) || !x.is_nop || x.is_endbr)
		return 0;
	return x.length;
}

static void add_gap(struct code_section *s, uint32_t start, uint32_t end)
{
	uint32_t at = start, n = 1;

	if (start >= end)
		return;
	while (at < end && (n = code_padding_bytes(s, at, end)))
		at += n;
	vec_push(&s->gaps, ((struct code_gap){start, end, .is_padding = n}));
}

void code_section_find_gaps(struct code_section *s)
{
	uint32_t end = 0;

	s->gaps.n = 0;
	vec_sort(&s->functions, by_start);
	for (size_t i = 0; i < s->functions.n; i++) {
		add_gap(s, end, s->functions.v[i].start);
		end = s->functions.v[i].end;
	}
	add_gap(s, end, (uint32_t)s->bytes.n);
}

static void read_section(struct code *c, struct code_section *s)
{
	merge_functions(s);
	s->at = mem_calloc(s->bytes.n + 1, sizeof(*s->at));
	if (s->functions.n)
		vec_reserve(&s->insns, s->bytes.n / USUAL_INSN_BYTES + 1);
	for (size_t i = 0; i < s->functions.n; i++)
		code_decode_function(c, s, &s->functions.v[i]);
	code_section_find_gaps(s);
}

/* Sections that are left alone whatever is in them. */
static void refuse_section(struct code_section *s, bool is_bound)
{
	if (is_bound)
		code_section_refuse(s, INSERT_REASON_BOUND);
	if (is_pieces(s->name))
		code_section_refuse(s, INSERT_REASON_SECTION_KIND);
	for (size_t i = 0; i < s->functions.n; i++)
		if (!s->functions.v[i].is_decoded)
			code_section_refuse(s, s->functions.v[i].reason);
}

static bool comment_names_compiler(const struct elf_object *o)
{
	uint32_t n = elf_object_find_section(o, ".comment");

	return n && o->sections.v[n].data.n > 1;
}

int code_read(
	struct code *c, struct elf_object *o, const struct insert_options *options, struct err *err)
{
	bool is_bound = has_distances(o);
	int rc;

	*c = (struct code){.object = o, .options = options, .n_sections = o->sections.n};
	c->sections = mem_calloc(c->n_sections + 1, sizeof(*c->sections));
	moved_init(&c->moved, c->n_sections);
	c->is_compiled = comment_names_compiler(o);
	rc = exception_tables_read(&c->tables, o, err);
	for (size_t i = 1; i < c->n_sections; i++) {
		const struct object_section *os = &o->sections.v[i];
		struct code_section *s = &c->sections[i];

		s->number = (uint32_t)i;
		s->name = os->name;
		s->bytes = os->data;
		s->align = os->align ? (uint32_t)os->align : 1;
		s->is_code = os->type == SHT_PROGBITS && (os->flags & SHF_ALLOC) &&
			     (os->flags & SHF_EXECINSTR) && os->data.n &&
			     os->data.n < CODE_SECTION_BYTES_MAX && os->align <= 65536;
	}
	c->has_patch_places = elf_object_find_section(o, "__patchable_function_entries");
	code_read_labels(c);
	add_symbols(c);
	for (struct code_section *s = code_next(c, NULL); s; s = code_next(c, s))
		vec_sort(&s->functions, by_start);
	add_frames(c);
	for (struct code_section *s = code_next(c, NULL); s; s = code_next(c, s))
		read_section(c, s);
	code_find_unnamed(c);
	for (struct code_section *s = code_next(c, NULL); s; s = code_next(c, s))
		refuse_section(s, is_bound);
	code_find_parents(c);
	if (rc)
		code_refuse(c, INSERT_REASON_TABLES);
	return rc;
}

void code_release(struct code *c)
{
	for (size_t i = 0; c->sections && i < c->n_sections; i++) {
		struct code_section *s = &c->sections[i];

		vec_release(&s->insns);
		vec_release(&s->functions);
		vec_release(&s->gaps);
		vec_release(&s->blocks);
		free(s->at);
	}
	free(c->sections);
	exception_tables_release(&c->tables);
	moved_release(&c->moved);
	vec_release(&c->table_entries);
	vec_release(&c->labels);
	free(c->callee_kinds);
	*c = (struct code){0};
}
