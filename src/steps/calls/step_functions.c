/* SPDX-License-Identifier: MIT */
#include "steps/calls/step_functions.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/search.h"
#include "calltree/frame_names.h"

/* Unnamed code further apart than this is not one function. */
#define REGION_GAP (64u << 10)

#define COLD ".cold"

/* An instruction on its way to its function. */
struct placed {
	uint32_t image, insn;
	uint64_t start, addr; /* of the function, of itself */
	bool is_nameless;     /* what it is named after is itself: start means nothing */
};

struct maker {
	struct step_functions *out;
	const struct steps *steps;
	struct trace_reader *r;
	VEC(struct placed) placed;
	uint8_t *is_entry; /* by instruction: something calls it, or it is an endbr */
	bool has_nameless;
	struct frame_levels levels;
};

static const char *keep(struct maker *m, const char *text)
{
	return intern_get(&m->out->texts, intern_text(&m->out->texts, text));
}

/* ---- where functions begin ---- */

static void place(struct maker *m, uint32_t number)
{
	const struct step_insn *insn = steps_insn(m->steps, number);
	const struct trace_frame *frame = trace_reader_frame(m->r, insn->frame);
	const struct trace_symbol *symbol = trace_reader_symbol(m->r, insn->frame);
	struct placed p = {.insn = number, .image = frame->image, .addr = frame->addr};
	uint32_t offset = 0;

	if (!insn->frame)
		p.addr = insn->addr;
	if (symbol && symbol->n_levels)
		offset = symbol->levels[symbol->n_levels - 1].offset;
	p.start = offset <= p.addr ? p.addr - offset : 0;
	/* Without a name an address stands for itself, or CFI knows where its function begins. */
	p.is_nameless = !symbol || !symbol->n_levels || (symbol->reason && !offset);
	m->has_nameless |= p.is_nameless;
	vec_push(&m->placed, p);
}

ORDER_BY(compare_placed, struct placed, image, start, is_nameless, addr, insn)

static bool is_endbr(const struct step_insn *insn)
{
	return insn->n_bytes >= 4 && !memcmp(insn->bytes, "\xf3\x0f\x1e", 3) &&
	       (insn->bytes[3] == 0xfa || insn->bytes[3] == 0xfb);
}

static void find_entries(struct maker *m)
{
	uint32_t n = steps_n_insns(m->steps);

	m->is_entry = mem_calloc(n + 1, 1);
	for (uint32_t i = 1; m->has_nameless && i < n; i++) {
		const struct step_insn *insn = steps_insn(m->steps, i);
		uint32_t callee;

		if (is_endbr(insn))
			m->is_entry[i] = 1;
		if (insn->flow != X86_FLOW_CALL || !insn->has_target)
			continue;
		callee = steps_find(m->steps, insn->space, insn->target, insn->generation);
		m->is_entry[callee] = 1;
	}
}

/* Whether a nameless instruction is of the same function as the one before it. */
static bool goes_on(const struct maker *m, const struct placed *before, const struct placed *p)
{
	if (before->image != p->image)
		return false;
	if (before->start == p->start && before->addr == p->addr)
		return true; /* the same place in another process, or with other bytes */
	return before->is_nameless && !m->is_entry[p->insn] && p->addr - before->addr <= REGION_GAP;
}

static void add_function(struct maker *m, const struct placed *p)
{
	const struct step_insn *insn = steps_insn(m->steps, p->insn);
	struct step_function f = {.image = p->image,
		.kind = FRAME_KIND_NATIVE,
		.start = p->start,
		.owner = (uint32_t)m->out->v.n,
		.first_place = (uint32_t)m->out->places.n};

	if (insn->frame) {
		f.kind = trace_reader_frame(m->r, insn->frame)->kind;
		frame_names_get(m->r, insn->frame, &m->levels);
		f.name = keep(m, m->levels.v[m->levels.n - 1].name);
	} else {
		f.name = keep(m, "[unknown]");
	}
	f.linkage_name = f.name;
	vec_push(&m->out->v, f);
}

static void make_functions(struct maker *m)
{
	struct step_functions *out = m->out;

	vec_sort(&m->placed, compare_placed);
	for (size_t i = 0; i < m->placed.n; i++) {
		const struct placed *p = &m->placed.v[i], *before = i ? p - 1 : NULL;
		struct step_function *f;
		uint64_t end;

		if (!before || (before->image != p->image || before->start != p->start))
			if (!before || !p->is_nameless || !goes_on(m, before, p))
				add_function(m, p);
		f = &out->v.v[out->v.n - 1];
		out->of_insn[p->insn] = (uint32_t)out->v.n - 1;
		vec_push(&out->places, ((struct step_place_in){p->addr, p->insn}));
		f->n_places++;
		end = p->addr + steps_insn(m->steps, p->insn)->length;
		if (end > f->start && end - f->start > f->bytes)
			f->bytes = end - f->start;
	}
}

/* ---- what the images' tables know of them ---- */

static const struct trace_function *table_find(
	const struct trace_function *table, size_t n, uint64_t start)
{
	size_t low = SEARCH(0, n, middle, table[middle].start < start);

	return low < n && table[low].start == start ? &table[low] : NULL;
}

/* Up to the next function at most: stubs may be said to be as large as the largest kind. */
static uint64_t size_of(const struct trace_function *f, const struct trace_function *end)
{
	uint64_t room = f + 1 < end ? f[1].start - f->start : 0;

	return room && f->size > room ? room : f->size;
}

static void read_tables(struct maker *m)
{
	const struct trace_function *table = NULL;
	uint32_t image = 0;
	size_t n = 0;

	for (size_t i = 1; i < m->out->v.n; i++) {
		struct step_function *f = &m->out->v.v[i];
		const struct trace_function *known;

		if (!f->image)
			continue;
		if (f->image != image)
			n = trace_reader_functions(m->r, f->image, &table);
		image = f->image;
		known = table_find(table, n, f->start);
		if (!known)
			continue;
		if (size_of(known, table + n) > f->bytes)
			f->bytes = size_of(known, table + n);
		if (known->name)
			f->linkage_name = keep(m, trace_reader_string(m->r, known->name));
	}
}

/* ---- parts ---- */

/* Where ".cold" or ".cold.7" begins at the end of a name; 0: it does not. */
static size_t part_at(const char *name)
{
	const char *at = strstr(name, COLD), *end;

	if (!at || at == name)
		return 0;
	end = at + strlen(COLD);
	while (*end == '.' || (*end >= '0' && *end <= '9'))
		end++;
	return !*end || !strcmp(end, "]") ? (size_t)(at - name) : 0;
}

static bool is_part_of(const struct step_function *part, const struct step_function *f)
{
	size_t n = part_at(part->linkage_name);

	return !f->is_part && f->image == part->image &&
	       !strncmp(f->linkage_name, part->linkage_name, n) && !f->linkage_name[n];
}

/* A function that jumps to the part: of several of one name it is the right one. */
static void find_owners_by_jumps(struct maker *m)
{
	struct step_functions *out = m->out;

	for (uint32_t i = 1; i < steps_n_insns(m->steps); i++) {
		const struct step_insn *insn = steps_insn(m->steps, i);
		struct step_function *to;
		uint32_t from = out->of_insn[i];

		if (!insn->has_target || insn->flow == X86_FLOW_CALL)
			continue;
		to = &out->v.v[out->of_insn[steps_find(
			m->steps, insn->space, insn->target, insn->generation)]];
		if (to->is_part && is_part_of(to, &out->v.v[from]))
			to->owner = from;
	}
}

static void find_owners_by_name(struct maker *m)
{
	struct step_functions *out = m->out;
	struct intern names = {0};
	struct map last_of = {0}; /* name -> function */

	for (uint32_t i = 1; i < out->v.n; i++)
		if (!out->v.v[i].is_part)
			*map_ensure(&last_of, intern_text(&names, out->v.v[i].linkage_name), NULL) =
				i;
	for (uint32_t i = 1; i < out->v.n; i++) {
		struct step_function *part = &out->v.v[i];
		const uint64_t *owner;

		if (!part->is_part || part->owner != i)
			continue;
		owner = map_find(&last_of,
			intern_bytes(&names, part->linkage_name, part_at(part->linkage_name)));
		if (owner && is_part_of(part, &out->v.v[*owner]))
			part->owner = (uint32_t)*owner;
	}
	intern_release(&names);
	map_release(&last_of);
}

static void find_parts(struct maker *m)
{
	bool any = false;

	for (size_t i = 1; i < m->out->v.n; i++) {
		struct step_function *f = &m->out->v.v[i];

		f->is_part = part_at(f->linkage_name) != 0;
		any |= f->is_part;
	}
	if (!any)
		return;
	find_owners_by_jumps(m);
	find_owners_by_name(m);
}

/* ---- the whole ---- */

static bool is_setjmp(const char *name)
{
	static const char *const names[] = {
		"setjmp", "_setjmp", "__setjmp", "sigsetjmp", "__sigsetjmp", "getcontext"};
	size_t n = strcspn(name, "@");

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (n == strlen(names[i]) && !memcmp(name, names[i], n))
			return true;
	return false;
}

void step_functions_init(struct step_functions *f, const struct steps *s, struct trace_reader *r)
{
	struct maker m = {.out = f, .steps = s, .r = r};
	uint32_t n = steps_n_insns(s);
	struct step_function none = {.kind = FRAME_KIND_NATIVE};

	f->of_insn = mem_calloc(n + 1, sizeof(*f->of_insn));
	none.name = none.linkage_name = keep(&m, "[code that was not captured]");
	vec_push(&f->v, none);
	for (uint32_t i = 1; i < n; i++)
		place(&m, i);
	find_entries(&m);
	if (m.placed.n)
		make_functions(&m);
	read_tables(&m);
	find_parts(&m);
	for (size_t i = 1; i < f->v.n; i++)
		f->v.v[i].is_setjmp = is_setjmp(f->v.v[i].linkage_name);
	vec_release(&m.placed);
	free(m.is_entry);
}

void step_functions_release(struct step_functions *f)
{
	vec_release(&f->v);
	vec_release(&f->places);
	free(f->of_insn);
	intern_release(&f->texts);
	f->of_insn = NULL;
}
