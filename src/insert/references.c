/* SPDX-License-Identifier: MIT */
/*
 * Who refers to which code. The assembler has folded distances within a section into numbers, so
 * every branch and every rip-relative operand is followed; everything else has a relocation. What
 * is referred to must be the start of an instruction, or it cannot be moved.
 *
 * Jump tables of position-independent code hold `target - table`, as R_X86_64_PC32 (in the large
 * code model R_X86_64_PC64) against the text section with the addend target + (entry - table): the
 * label is known only when the start of the table is. It is the nearest place in front that code
 * refers to, with nothing but such entries in between; that all labels then fall on instructions of
 * one function is checked.
 */
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/search.h"
#include "base/sort.h"
#include "insert/object_code.h"

#define OFFSET_FAR ((int64_t)1 << 60)

bool code_reloc_is_pc(uint32_t type)
{
	return type == R_X86_64_PC32 || type == R_X86_64_PLT32 || type == R_X86_64_PC64;
}

bool code_reloc_is_address(uint32_t type)
{
	return type == R_X86_64_64 || type == R_X86_64_32 || type == R_X86_64_32S ||
	       type == R_X86_64_GOTOFF64 || type == R_X86_64_PLTOFF64;
}

struct code_target code_reloc_target(
	const struct code *c, const struct object_reloc *r, const struct code_insn *insn)
{
	const struct elf_object *o = c->object;
	const struct object_symbol *sym;
	struct code_target none = {0, 0};
	int64_t offset;

	if (!r->symbol || r->symbol >= o->symbols.n)
		return none;
	sym = &o->symbols.v[r->symbol];
	if (!sym->section || sym->section >= c->n_sections || sym->type == STT_TLS)
		return none;
	if (__builtin_add_overflow((int64_t)sym->value, r->addend, &offset) ||
		offset > OFFSET_FAR || offset < -OFFSET_FAR)
		offset = -OFFSET_FAR; /* nothing is there, and sums with it are numbers still */
	if (code_reloc_is_pc(r->type)) {
		if (insn)
			offset += (int64_t)(insn->offset + insn->length) - (int64_t)r->offset;
	} else if (!code_reloc_is_address(r->type))
		return none;
	return (struct code_target){sym->section, offset};
}

enum label_kind {
	LABEL_BRANCH, /* of a direct branch */
	LABEL_CODE,   /* an instruction takes its address */
	LABEL_DATA,   /* data hold its address, or a distance to it */
	LABEL_UNWIND, /* a landing pad */
};

static void note_label_kind(
	struct code *c, struct code_function *f, uint32_t offset, enum label_kind kind)
{
	struct code_function *parent;

	if (offset == f->start && !f->is_fragment)
		return;
	parent = &c->sections[f->parent_section].functions.v[f->parent];
	if (kind == LABEL_DATA)
		f->has_data_labels = parent->has_data_labels = true;
	if (kind == LABEL_CODE)
		f->has_code_labels = parent->has_code_labels = true;
}

/* Compilers leave branches that are never taken to what lies behind a function. */
static bool is_in_padding(const struct code_section *s, uint32_t offset)
{
	const struct code_gap *g = code_gap_at(s, offset);

	return g && g->is_padding;
}

/* Bytes that look like padding, and are data: something reads them. */
static void keep_gap(struct code_section *s, uint64_t offset)
{
	const struct code_gap *g = code_gap_at(s, offset);

	if (g)
		s->gaps.v[g - s->gaps.v].is_padding = false;
}

/* Something refers to `offset` of a code section: it becomes the head of a block. `from` is the
 * function that it stands in, if any. */
static void mark_label(struct code *c, const struct code_function *from, uint32_t section,
	int64_t offset, enum label_kind kind)
{
	struct code_section *s = code_section_at(c, section);
	struct code_insn *insn;
	struct code_function *f;

	if (!s)
		return;
	if (offset < 0 || (uint64_t)offset > s->bytes.n) {
		code_section_refuse(s, INSERT_REASON_MIDDLE);
		return;
	}
	if ((uint64_t)offset == s->bytes.n)
		return; /* the end of a range */
	insn = code_insn_at(c, section, (uint64_t)offset);
	f = code_function_at(c, section, (uint64_t)offset);
	if (insn) {
		insn->bits |= CODE_INSN_HEAD | CODE_INSN_LABEL;
		if (kind != LABEL_BRANCH || from != f)
			insn->bits |= CODE_INSN_ELSEWHERE;
		if (kind == LABEL_DATA)
			insn->bits |= CODE_INSN_DATA_LABEL;
		if (f)
			note_label_kind(c, f, (uint32_t)offset, kind);
		return;
	}
	if (f && kind == LABEL_BRANCH && from == f)
		f->reason = INSERT_REASON_MIDDLE;
	else if (f)
		code_section_refuse(s, INSERT_REASON_MIDDLE);
	else if (kind != LABEL_BRANCH)
		keep_gap(s, (uint64_t)offset);
	else if (!is_in_padding(s, (uint32_t)offset))
		code_section_refuse(s, INSERT_REASON_SECTION_DATA);
}

/*
 * What is written anew or moved must be all that there is: a relocation lies within one
 * instruction, a branch that has any is made by it, and so is a rip-relative operand. A distance that is
 * neither counts from a place that is not known.
 */
static bool has_odd_relocs(const struct object_section *os, const struct code_insn *insn)
{
	uint32_t end = insn->offset + insn->length;
	uint32_t field = insn->rel_bytes ? insn->rel_at : insn->disp_at;
	bool has_field = !field;

	if (insn->reloc == CODE_NONE)
		return false;
	if (insn->rel_bytes && os->relocs.v[insn->reloc].offset != insn->offset + insn->rel_at)
		return true;
	for (size_t k = insn->reloc; code_insn_has_reloc(insn, os, k); k++) {
		const struct object_reloc *r = &os->relocs.v[k];
		uint32_t bytes = object_reloc_bytes(r->type);

		if (bytes > end - r->offset ||
			(code_reloc_is_pc(r->type) && r->offset != insn->offset + field))
			return true;
		has_field |= r->offset == insn->offset + field &&
			     (bytes == 4 || (!bytes && r->type != R_X86_64_NONE));
	}
	return !has_field;
}

/* lea of a place that a distance counts from */
static bool names_place(const struct code *c, const struct code_insn *insn)
{
	const struct code_insn *to = code_insn_at(c, insn->to_section, insn->to);

	return insn->disp_at && to && (to->bits & CODE_INSN_PLACE);
}

#define LOCK_PREFIX 0xf0

/* glibc branches past a lock prefix when there is one thread only. The block begins at the prefix.
 */
static bool goes_past_lock(struct code *c, struct code_section *s, const struct code_function *from,
	struct code_insn *insn)
{
	struct code_insn *locked;

	if (insn->flow != X86_FLOW_BRANCH || (insn->rel_bytes == 1 && insn->opcode >= 0xe0) ||
		insn->to_section != s->number || !from || insn->to <= from->start ||
		insn->to >= from->end || code_insn_at(c, s->number, insn->to))
		return false;
	locked = code_insn_at(c, s->number, insn->to - 1);
	if (!locked || locked->length < 2 || s->bytes.p[locked->offset] != LOCK_PREFIX)
		return false;
	locked->bits |= CODE_INSN_HEAD | CODE_INSN_LABEL | CODE_INSN_ELSEWHERE;
	insn->bits |= CODE_INSN_PAST_LOCK;
	return true;
}

/* What instructions mean by relocations against sections of this object. */
static void resolve_insns(struct code *c, struct code_section *s, const struct code_function *from)
{
	const struct object_section *os = &c->object->sections.v[s->number];

	for (size_t i = from->first_insn; i < from->first_insn + from->n_insns; i++) {
		struct code_insn *insn = &s->insns.v[i];

		if (has_odd_relocs(os, insn))
			code_section_refuse(s, INSERT_REASON_BOUND);
		for (size_t k = insn->reloc; code_insn_has_reloc(insn, os, k); k++) {
			struct code_target t = code_reloc_target(c, &os->relocs.v[k], insn);

			if (!t.section || !code_section_at(c, t.section))
				continue;
			mark_label(c, from, t.section, t.offset,
				insn->rel_bytes ? LABEL_BRANCH : LABEL_CODE);
			if (code_reloc_is_pc(os->relocs.v[k].type) && t.offset >= 0 &&
				t.offset <= UINT32_MAX) {
				insn->to_section = t.section;
				insn->to = (uint32_t)t.offset;
			}
		}
		if (insn->reloc == CODE_NONE && insn->to_section && !names_place(c, insn) &&
			!goes_past_lock(c, s, from, insn))
			mark_label(c, from, insn->to_section, (int32_t)insn->to,
				insn->rel_bytes ? LABEL_BRANCH : LABEL_CODE);
	}
}

/* ---- tables ---- */

/* For each section that is data: which offsets code refers to. Sorted. */
struct data_refs {
	VEC(uint64_t) v;
};

static void find_data_refs(const struct code *c, struct data_refs *refs)
{
	for (const struct code_section *s = code_next(c, NULL); s; s = code_next(c, s)) {
		const struct object_section *os = &c->object->sections.v[s->number];

		for (size_t i = 0; i < s->insns.n; i++) {
			const struct code_insn *insn = &s->insns.v[i];

			for (size_t k = insn->reloc; code_insn_has_reloc(insn, os, k); k++) {
				struct code_target t = code_reloc_target(c, &os->relocs.v[k], insn);

				if (t.section && !c->sections[t.section].is_code && t.offset >= 0 &&
					t.offset < UINT32_MAX)
					vec_push(&refs[t.section].v, (uint64_t)t.offset);
			}
		}
	}
	for (size_t n = 1; n < c->n_sections; n++)
		sort_u64(refs[n].v.v, refs[n].v.n);
}

/* Is there a reference at exactly this offset? */
static bool is_referred(const struct data_refs *refs, uint64_t offset)
{
	size_t at = SEARCH(0, refs->v.n, i, refs->v.v[i] < offset);

	return at < refs->v.n && refs->v.v[at] == offset;
}

/* clang lets impossible cases of a switch lead to what lies behind the function. */
static bool is_impossible_case(const struct code *c, uint32_t section, int64_t offset)
{
	const struct code_section *s = &c->sections[section];

	return offset >= 0 && !code_function_at(c, section, (uint64_t)offset) &&
	       ((uint64_t)offset == s->bytes.n || is_in_padding(s, (uint32_t)offset));
}

/* An entry of a table. All labels of it lie in one function, or each is the start of one. */
static void read_distance(struct code *c, const struct code_function **first, uint32_t section,
	int64_t offset, bool is_first)
{
	const struct code_function *f = code_function_at(c, section, (uint64_t)offset);
	const struct code_function *parent =
		f ? &c->sections[f->parent_section].functions.v[f->parent] : NULL;

	if (is_first)
		*first = NULL;
	/* Nothing reads the padding there. */
	if (is_impossible_case(c, section, offset))
		return;
	mark_label(c, NULL, section, offset, LABEL_DATA);
	if (!*first)
		*first = parent;
	if (!f || (parent != *first && offset != f->start))
		code_section_refuse(&c->sections[section], INSERT_REASON_TABLE);
}

/*
 * Entries of data that are distances to code: each run of neighbours is cut at the places that code
 * refers to.
 */
static void read_tables_of(struct code *c, uint32_t number, const struct data_refs *refs)
{
	const struct object_section *os = &c->object->sections.v[number];
	uint64_t base = 0, next = UINT64_MAX;
	const struct code_function *first = NULL;

	for (size_t k = 0; k < os->relocs.n; k++) {
		const struct object_reloc *r = &os->relocs.v[k];
		struct code_target t = code_reloc_target(c, r, NULL);

		if (!t.section || !c->sections[t.section].is_code)
			continue;
		if (!code_reloc_is_pc(r->type)) {
			mark_label(c, NULL, t.section, t.offset, LABEL_DATA);
			continue;
		}
		if (r->offset != next || is_referred(refs, r->offset))
			base = r->offset;
		next = r->offset + (r->type == R_X86_64_PC64 ? 8 : 4);
		read_distance(c, &first, t.section, t.offset - (int64_t)(r->offset - base),
			r->offset == base);
		if (r->offset != base)
			vec_push(&c->table_entries, ((struct code_table_entry){number, (uint32_t)k,
							    (uint32_t)(r->offset - base), false}));
	}
}

/* A table of addresses or distances, as far as it is one: relocations [first, end) of a section. */
struct table_run {
	size_t first, end;
	bool is_pc;
};

/* The code that an entry of it means. */
static struct code_target table_target(
	const struct code *c, uint32_t number, const struct table_run *run, size_t k)
{
	const struct object_section *os = &c->object->sections.v[number];
	struct code_target t = code_reloc_target(c, &os->relocs.v[k], NULL);

	if (!t.section || !c->sections[t.section].is_code)
		return (struct code_target){0, 0};
	if (run->is_pc)
		t.offset -= (int64_t)(os->relocs.v[k].offset - os->relocs.v[run->first].offset);
	return t;
}

static struct table_run next_run(
	const struct code *c, uint32_t number, const struct data_refs *refs, size_t k)
{
	const struct object_section *os = &c->object->sections.v[number];
	const struct object_reloc *r = &os->relocs.v[k];
	struct table_run run = {k, k + 1, code_reloc_is_pc(r->type)};
	uint32_t type = r->type, bytes = object_reloc_bytes(type);

	while (run.end < os->relocs.n && os->relocs.v[run.end].type == type &&
		os->relocs.v[run.end].offset == r->offset + (run.end - k) * bytes &&
		!is_referred(refs, os->relocs.v[run.end].offset) &&
		table_target(c, number, &run, run.end).section)
		run.end++;
	return run;
}

/* A constant table with a place in the middle of a function is its jump table: then an entry that
 * is the function's start is no call of it, but a jump back to there. */
static void note_inner_entries(struct code *c, uint32_t number, const struct table_run *run)
{
	const struct code_function *owner = NULL;
	const struct object_section *os = &c->object->sections.v[number];

	for (size_t k = run->first; k < run->end && !owner; k++) {
		struct code_target t = table_target(c, number, run, k);

		owner = code_function_at(c, t.section, (uint64_t)t.offset);
		if (owner && (uint64_t)t.offset == owner->start)
			owner = NULL;
	}
	for (size_t k = run->first; owner && k < run->end; k++) {
		struct code_target t = table_target(c, number, run, k);
		const struct code_function *f = code_function_at(c, t.section, (uint64_t)t.offset);

		if (f && (uint64_t)t.offset == f->start && f->parent == owner->parent &&
			f->parent_section == owner->parent_section)
			vec_push(&c->table_entries,
				((struct code_table_entry){number, (uint32_t)k,
					run->is_pc ? (uint32_t)(os->relocs.v[k].offset -
								os->relocs.v[run->first].offset)
						   : 0,
					true}));
	}
}

static void read_inner_entries(struct code *c, uint32_t number, const struct data_refs *refs)
{
	const struct object_section *os = &c->object->sections.v[number];

	if ((os->flags & SHF_WRITE) && strncmp(os->name, ".data.rel.ro", 12))
		return;
	for (size_t k = 0; k < os->relocs.n;) {
		struct table_run run = next_run(c, number, refs, k);

		if (object_reloc_bytes(os->relocs.v[k].type) >= 4 &&
			table_target(c, number, &run, k).section)
			note_inner_entries(c, number, &run);
		k = run.end;
	}
}

/* Of two about one relocation the one that knows more comes first. */
static int by_reloc(const void *a, const void *b)
{
	const struct code_table_entry *x = a, *y = b;

	return ORDER(x->section, y->section) ?: ORDER(x->reloc, y->reloc)
		       ?: ((int)y->is_inner - (int)x->is_inner);
}

static void sort_table_entries(struct code *c)
{
	size_t n = 0;

	vec_sort(&c->table_entries, by_reloc);
	for (size_t i = 0; i < c->table_entries.n; i++) {
		const struct code_table_entry *e = &c->table_entries.v[i];

		if (!n || c->table_entries.v[n - 1].section != e->section ||
			c->table_entries.v[n - 1].reloc != e->reloc)
			c->table_entries.v[n++] = *e;
		else if (c->table_entries.v[n - 1].from_base != e->from_base)
			c->table_entries.v[n - 1] = *e; /* kinds are mixed: not the same table */
	}
	c->table_entries.n = n;
}

/* Sections whose relocations against code are ranges, not control flow. */
static bool is_about_code(const struct object_section *os)
{
	return !(os->flags & SHF_ALLOC) || os->type == SHT_X86_64_UNWIND ||
	       !strcmp(os->name, ".eh_frame") || !strncmp(os->name, ".gcc_except_table", 17);
}

static void read_tables(struct code *c)
{
	struct data_refs *refs = mem_calloc(c->n_sections + 1, sizeof(*refs));

	find_data_refs(c, refs);
	for (size_t n = 1; n < c->n_sections; n++)
		if (!c->sections[n].is_code && !is_about_code(&c->object->sections.v[n])) {
			read_tables_of(c, (uint32_t)n, &refs[n]);
			read_inner_entries(c, (uint32_t)n, &refs[n]);
		}
	sort_table_entries(c);
	for (size_t n = 1; n < c->n_sections; n++)
		vec_release(&refs[n].v);
	free(refs);
}

/* Relocations that lie in no instruction: data within the text, or code that could not be decoded.
 * Addresses of code are understood, and so are distances to symbols; others are not. */
static void check_data_relocs(struct code *c, struct code_section *s)
{
	const struct object_section *os = &c->object->sections.v[s->number];

	for (size_t k = 0; k < os->relocs.n; k++) {
		const struct object_reloc *r = &os->relocs.v[k];
		const struct code_function *f = code_function_at(c, s->number, r->offset);
		struct code_target t;

		if (f && f->is_decoded)
			continue;
		keep_gap(s, r->offset);
		t = code_reloc_target(c, r, NULL);
		if (!t.section || !c->sections[t.section].is_code)
			continue;
		if (code_reloc_is_address(r->type)) {
			mark_label(c, NULL, t.section, t.offset, LABEL_DATA);
			continue;
		}
		code_section_refuse(s, INSERT_REASON_SECTION_DATA);
		if (c->object->symbols.v[r->symbol].type == STT_SECTION || r->addend != -4)
			code_section_refuse(&c->sections[t.section], INSERT_REASON_SECTION_DATA);
	}
}

/* Other objects may read data among the code that has a global name, or an object's. */
static void keep_named_gaps(struct code *c)
{
	for (size_t i = 1; i < c->object->symbols.n; i++) {
		const struct object_symbol *sym = &c->object->symbols.v[i];

		if (sym->section < c->n_sections && c->sections[sym->section].is_code &&
			(sym->type == STT_OBJECT ||
				(sym->type == STT_NOTYPE && sym->bind != STB_LOCAL)))
			keep_gap(&c->sections[sym->section], sym->value);
	}
}

/* Other objects may call or jump to a global label in the midst of a function. */
static void mark_entries(struct code *c)
{
	for (size_t i = 0; i < c->labels.n; i++) {
		const struct code_label *l = &c->labels.v[i];
		const struct object_symbol *sym = &c->object->symbols.v[l->symbol];
		struct code_insn *insn = code_insn_at(c, l->section, l->offset);

		if (insn && (sym->bind != STB_LOCAL || code_symbol_lacks_size(sym)))
			insn->bits |= CODE_INSN_HEAD | CODE_INSN_LABEL | CODE_INSN_ELSEWHERE;
	}
}

void code_resolve(struct code *c)
{
	code_find_distances(c);
	for (struct code_section *s = code_next(c, NULL); s; s = code_next(c, s)) {
		for (size_t i = 0; i < s->functions.n; i++)
			resolve_insns(c, s, &s->functions.v[i]);
		check_data_relocs(c, s);
	}
	read_tables(c);
	mark_entries(c);
	keep_named_gaps(c);
	for (size_t i = 0; i < c->tables.landing_pads.n; i++) {
		const struct code_place *p = &c->tables.landing_pads.v[i];
		struct code_insn *insn = code_insn_at(c, p->section, p->offset);

		mark_label(c, NULL, p->section, (int64_t)p->offset, LABEL_UNWIND);
		if (insn)
			insn->bits |= CODE_INSN_LANDING;
	}
}
