/* SPDX-License-Identifier: MIT */
/*
 * Code that no symbol calls a function of some size: top-level assembly without .type or .size,
 * objects of nasm, objects without local symbols. It is found by following control from wherever
 * something refers to it. A gap between functions is taken for code only when that reaches all of
 * it, padding aside: bytes that were not reached may be data, and data must not be taken for
 * instructions. What is a function all the same is told of, and left alone with its section.
 *
 * What is called gets entry code; what is only jumped to, or whose address is only taken, is
 * counted as a fragment is.
 */
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/search.h"
#include "insert/object_code.h"

#define ROUNDS_MAX     8
#define LOOK_INSNS_MAX 256 /* data is none for so long */

/* A reference from outside into a gap. */
struct entry {
	uint32_t section, offset;
	bool is_call;
};

struct entries {
	VEC(struct entry) v;
};

static int by_place(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return ORDER(x->section, y->section) ?: ORDER(x->offset, y->offset)
		       ?: ((int)y->is_call - (int)x->is_call);
}

static void add_entry(
	const struct code *c, struct entries *e, uint32_t section, int64_t offset, bool is_call)
{
	if (!section || section >= c->n_sections || !c->sections[section].is_code || offset < 0 ||
		(uint64_t)offset >= c->sections[section].bytes.n ||
		code_function_at(c, section, (uint64_t)offset))
		return;
	vec_push(&e->v, ((struct entry){section, (uint32_t)offset, is_call}));
}

static void add_insn_entries(const struct code *c, const struct code_section *s, struct entries *e)
{
	const struct object_section *os = &c->object->sections.v[s->number];

	for (size_t i = 0; i < s->insns.n; i++) {
		const struct code_insn *insn = &s->insns.v[i];
		bool is_call = insn->flow == X86_FLOW_CALL;

		/* Operands are data until something jumps there. */
		if (insn->reloc == CODE_NONE && insn->rel_bytes && insn->to_section)
			add_entry(c, e, insn->to_section, (int32_t)insn->to, is_call);
		if (insn->reloc != CODE_NONE && insn->rel_bytes) {
			struct code_target t =
				code_reloc_target(c, &os->relocs.v[insn->reloc], insn);

			add_entry(c, e, t.section, t.offset, is_call);
		}
	}
}

static void find_entries(const struct code *c, struct entries *e)
{
	e->v.n = 0;
	for (size_t n = 1; n < c->n_sections; n++) {
		const struct object_section *os = &c->object->sections.v[n];

		if (c->sections[n].is_code) {
			add_insn_entries(c, &c->sections[n], e);
			continue;
		}
		for (size_t k = 0; (os->flags & SHF_ALLOC) && k < os->relocs.n; k++) {
			struct code_target t = code_reloc_target(c, &os->relocs.v[k], NULL);

			if (code_reloc_is_address(os->relocs.v[k].type))
				add_entry(c, e, t.section, t.offset, false);
		}
	}
	/* Another object may call a global label. */
	for (size_t i = 1; i < c->object->symbols.n; i++) {
		const struct object_symbol *sym = &c->object->symbols.v[i];

		if (sym->section && (code_symbol_lacks_size(sym) ||
					    (sym->type == STT_NOTYPE && sym->bind != STB_LOCAL)))
			add_entry(c, e, sym->section, (int64_t)sym->value, true);
	}
	vec_sort(&e->v, by_place);
}

/* Adds what the call `x` leads to, when that is in the same gap: without local symbols nothing else names it. A call of the
 * instruction behind it asks for an address only. */
static void add_called(const struct code *c, const struct code_section *s, const struct code_gap *g,
	const struct x86_insn *x, uint32_t at, struct entries *e)
{
	const struct object_section *os = &c->object->sections.v[s->number];
	size_t k = object_section_reloc_at(os, at);
	struct code_target t = {s->number, (int64_t)x->target};

	if (k < os->relocs.n && os->relocs.v[k].offset < at + x->length)
		t = code_reloc_target(c, &os->relocs.v[k],
			&(struct code_insn){.offset = at, .length = (uint8_t)x->length});
	if (t.section == s->number && t.offset >= g->start && t.offset < g->end &&
		t.offset != at + x->length)
		vec_push(&e->v, ((struct entry){s->number, (uint32_t)t.offset, true}));
}

/* Follows control from `offset` within the gap; `seen` has a byte for each of the gap's: 1 = start
 * of an instruction, 2 = its rest. What is called goes into `e`. False when it runs into something
 * that is no code, or out of the gap's end. */
static bool follow(const struct code *c, const struct code_section *s, const struct code_gap *g,
	uint32_t offset, uint8_t *seen, struct entries *e)
{
	VEC(uint32_t) todo = {0};
	bool is_code = true;

	vec_push(&todo, offset);
	while (todo.n && is_code) {
		uint32_t at = todo.v[--todo.n];
		struct x86_insn x;

		if (at < g->start || at >= g->end)
			continue; /* a branch to elsewhere */
		if (seen[at - g->start] == 1)
			continue;
		if (seen[at - g->start] == 2 ||
			!x86_decode(&x, span_sub(s->bytes, at, g->end - at), at, true)) {
			is_code = false;
			break;
		}
		seen[at - g->start] = 1;
		for (uint32_t i = 1; i < x.length; i++) {
			is_code &= seen[at + i - g->start] != 1;
			seen[at + i - g->start] = 2;
		}
		if (x.has_target && x.flow == X86_FLOW_CALL)
			add_called(c, s, g, &x, at, e);
		else if (x.has_target)
			vec_push(&todo, (uint32_t)x.target);
		if (x.flow != X86_FLOW_JUMP && x.flow != X86_FLOW_JUMP_FAR &&
			x.flow != X86_FLOW_RETURN && x.flow != X86_FLOW_STOP)
			vec_push(&todo, at + x.length);
	}
	vec_release(&todo);
	return is_code;
}

/* Behind a return there may be one that nothing reaches: hand-written code has such. */
static void add_dead_returns(const struct code_section *s, const struct code_gap *g, uint8_t *seen)
{
	for (uint32_t at = g->start + 1; at < g->end; at++)
		if (!seen[at - g->start] && s->bytes.p[at] == 0xc3 && s->bytes.p[at - 1] == 0xc3 &&
			seen[at - 1 - g->start] == 1)
			seen[at - g->start] = 1;
}

/* Is everything in the gap that was not reached padding? */
static bool is_covered(const struct code_section *s, const struct code_gap *g, const uint8_t *seen)
{
	for (uint32_t at = g->start, n; at < g->end; at += n) {
		n = seen[at - g->start] ? 1 : code_padding_bytes(s, at, g->end);
		if (!n)
			return false;
	}
	return true;
}

/* One function from each entry that is called to the next; bytes in front of the first are another.
 */
static void add_functions(struct code *c, struct code_section *s, const struct code_gap *g,
	const struct entry *entries, size_t n, const uint8_t *seen)
{
	uint32_t end = g->end;
	size_t i = 0;

	while (end > g->start && !seen[end - 1 - g->start])
		end--;
	for (uint32_t start = g->start; start < end;) {
		uint32_t next = end;
		bool is_call = false;
		struct code_function f = {0};

		while (start < end && !seen[start - g->start])
			start++;
		/* They are in order. */
		for (; i < n && entries[i].offset <= start; i++)
			is_call |= entries[i].offset == start && entries[i].is_call;
		while (i < n && !entries[i].is_call)
			i++;
		if (i < n && entries[i].offset < next)
			next = entries[i].offset;
		f.name = code_name_at(c, s->number, start);
		f.start = start;
		f.end = next;
		while (f.end > f.start && !seen[f.end - 1 - g->start])
			f.end--;
		f.is_fragment = !is_call;
		if (f.end > f.start) {
			vec_push(&s->functions, f);
			code_decode_function(c, s, &s->functions.v[s->functions.n - 1]);
		}
		start = next;
	}
}

/* True when the gap was code. */
static bool try_gap(struct code *c, struct code_section *s, const struct code_gap *g,
	const struct entry *entries, size_t n)
{
	uint8_t *seen = mem_calloc(g->end - g->start + X86_INSN_BYTES_MAX, 1);
	struct entries e = {0};
	bool is_code = true;

	for (size_t i = 0; i < n; i++)
		vec_push(&e.v, entries[i]);
	/* Calls lead to more. */
	for (size_t i = 0; i < e.v.n && is_code; i++)
		is_code = follow(c, s, g, e.v.v[i].offset, seen, &e);
	add_dead_returns(s, g, seen);
	is_code = is_code && is_covered(s, g, seen);
	vec_sort(&e.v, by_place);
	if (is_code)
		add_functions(c, s, g, e.v.v, e.v.n, seen);
	vec_release(&e.v);
	free(seen);
	return is_code;
}

static bool try_section(struct code *c, struct code_section *s, const struct entries *e)
{
	struct code_gap *gaps = mem_dup(s->gaps.v, s->gaps.n * sizeof(*gaps));
	size_t n_gaps = s->gaps.n, k = SEARCH(0, e->v.n, i, e->v.v[i].section < s->number);
	bool is_changed = false;

	for (size_t i = 0; i < n_gaps; i++) {
		size_t first;

		while (k < e->v.n && e->v.v[k].section == s->number &&
			e->v.v[k].offset < gaps[i].start)
			k++;
		first = k;
		while (k < e->v.n && e->v.v[k].section == s->number &&
			e->v.v[k].offset < gaps[i].end)
			k++;
		if (k > first && !gaps[i].is_padding)
			is_changed |= try_gap(c, s, &gaps[i], &e->v.v[first], k - first);
	}
	free(gaps);
	if (is_changed)
		code_section_find_gaps(s);
	return is_changed;
}

/* A global label may be that of data. Do instructions begin here, up to one that goes on elsewhere? */
static bool looks_like_code(const struct code_section *s, const struct code_gap *g, uint32_t at)
{
	struct x86_insn x;

	for (int n = 0; n < LOOK_INSNS_MAX; n++, at += x.length) {
		if (at >= g->end ||
			!x86_decode(&x, span_sub(s->bytes, at, g->end - at), at, true) ||
			(g->end - at >= 2 && !s->bytes.p[at] && !s->bytes.p[at + 1]))
			return false;
		if (x.flow == X86_FLOW_JUMP || x.flow == X86_FLOW_JUMP_FAR ||
			x.flow == X86_FLOW_RETURN || x.flow == X86_FLOW_STOP)
			return true;
	}
	return true;
}

static bool is_sizeless_function(const struct code *c, uint32_t section, uint32_t offset)
{
	for (size_t i = code_label_from(c, section, offset);
		i < c->labels.n && c->labels.v[i].section == section &&
		c->labels.v[i].offset == offset;
		i++)
		if (code_symbol_lacks_size(&c->object->symbols.v[c->labels.v[i].symbol]))
			return true;
	return false;
}

/* Functions in gaps that are not understood: they reach to the next one or to the gap's end. */
static bool add_refused(struct code *c, struct code_section *s, const struct entries *e)
{
	struct code_gap *gaps = mem_dup(s->gaps.v, s->gaps.n * sizeof(*gaps));
	size_t n_gaps = s->gaps.n, k = SEARCH(0, e->v.n, i, e->v.v[i].section < s->number), g = 0;
	struct code_function *last = NULL;
	bool is_changed = false;

	for (; k < e->v.n && e->v.v[k].section == s->number; k++) {
		const struct entry *entry = &e->v.v[k];
		struct code_function f = {
			.start = entry->offset, .reason = INSERT_REASON_SECTION_DATA};

		while (g < n_gaps && gaps[g].end <= entry->offset)
			g++;
		if (g == n_gaps || entry->offset < gaps[g].start || gaps[g].is_padding ||
			!entry->is_call || (last && last->start == entry->offset) ||
			!(is_sizeless_function(c, s->number, entry->offset) ||
				looks_like_code(s, &gaps[g], entry->offset)))
			continue;
		f.end = gaps[g].end;
		f.name = code_name_at(c, s->number, f.start);
		if (last && last->end > f.start)
			last->end = f.start;
		vec_push(&s->functions, f);
		last = &s->functions.v[s->functions.n - 1];
		is_changed = true;
	}
	free(gaps);
	return is_changed;
}

static bool has_gaps(const struct code *c)
{
	for (const struct code_section *s = code_next(c, NULL); s; s = code_next(c, s))
		for (size_t i = 0; i < s->gaps.n; i++)
			if (!s->gaps.v[i].is_padding)
				return true;
	return false;
}

void code_find_unnamed(struct code *c)
{
	struct entries e = {0};
	bool is_changed = true;

	if (!has_gaps(c))
		return;
	/* What is found may lead to more. */
	for (int round = 0; is_changed && round < ROUNDS_MAX; round++) {
		is_changed = false;
		find_entries(c, &e);
		for (struct code_section *s = code_next(c, NULL); s; s = code_next(c, s))
			if (e.v.n && s->gaps.n)
				is_changed |= try_section(c, s, &e);
	}
	find_entries(c, &e);
	for (struct code_section *s = code_next(c, NULL); s; s = code_next(c, s))
		if (e.v.n && s->gaps.n && add_refused(c, s, &e))
			code_section_find_gaps(s);
	vec_release(&e.v);
}
