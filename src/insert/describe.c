/* SPDX-License-Identifier: MIT */
/* The unit of each text section: what its functions are called and where their blocks lie, for the
 * reader of the counts (rt/count/count_abi.h). */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "insert/object_code.h"
#include "rt/count/count_abi.h"

/* Bytes of the new section that are not the program's. */
struct stretch {
	uint32_t start, end;
};

struct describe {
	struct code *code;
	struct buf bytes, names;
	VEC(struct count_foreign_site) foreign;
	VEC(struct stretch) inserted;
	VEC(struct count_call) calls;
	struct map foreign_names; /* function or symbol -> its name in the unit */
	const char *object_name;
};

static uint32_t name_of(struct describe *d, const char *name)
{
	uint32_t at = (uint32_t)d->names.n;

	if (!name[0])
		return 0;
	buf_put(&d->names, name, strlen(name) + 1);
	return at;
}

static void add_counters(struct code *c, struct code_section *s)
{
	s->counters = elf_object_add_section(
		c->object, &(struct object_new_section){.name = COUNT_SECTION_COUNTERS,
				   .type = SHT_NOBITS,
				   .flags = SHF_ALLOC | SHF_WRITE,
				   .align = 8,
				   .nobits = 8 * (uint64_t)s->blocks.n,
				   .group = c->object->sections.v[s->number].group});
}

static const char *object_name(const struct code *c)
{
	if (c->options->object_name)
		return c->options->object_name;
	for (size_t i = 1; i < c->object->symbols.n; i++)
		if (c->object->symbols.v[i].type == STT_FILE)
			return c->object->symbols.v[i].name;
	return "";
}

/* Behind the call of enter, which identifies the function. */
static uint32_t entry_of(
	const struct code *c, const struct code_section *s, const struct code_function *f)
{
	if (f->reason != INSERT_REASON_DONE || !code_function_enters_at(c, f, f->entry_insn))
		return 0;
	return s->insns.v[f->entry_insn].label + CODE_CALL_BYTES;
}

static void put_function(
	struct describe *d, const struct code_section *s, const struct code_function *f)
{
	struct count_function out = {.start = f->start,
		.bytes = f->end - f->start,
		.entry = entry_of(d->code, s, f),
		.name = name_of(d, f->name),
		.first_block = f->first_block,
		.n_blocks = f->reason == INSERT_REASON_DONE ? f->n_blocks : 0,
		.reason = (uint16_t)f->reason,
		.flags = (f->is_fragment && !f->is_thunk ? COUNT_FUNCTION_FRAGMENT : 0) |
			 (f->is_global ? COUNT_FUNCTION_GLOBAL : 0)};

	if (code_section_is_inserted(s) && f->n_insns) {
		out.start = s->insns.v[f->first_insn].label;
		out.bytes = code_insn_end(&s->insns.v[f->first_insn + f->n_insns - 1]) - out.start;
	}
	buf_put(&d->bytes, &out, sizeof(out));
}

static void put_block(struct describe *d, const struct code_section *s, const struct code_block *b)
{
	const struct code_function *f = &s->functions.v[b->function];
	const struct code_insn *head =
		&s->insns.v[code_head_insn(s, f, (uint32_t)(b - s->blocks.v))];
	struct count_block out = {.old_start = s->insns.v[b->first_insn].offset,
		.start = head->label,
		.end = code_insn_end(&s->insns.v[b->first_insn + b->n_insns - 1]),
		.inserted_bytes = (uint16_t)(head->place - head->label),
		.n_insns = (uint16_t)(b->n_insns < 0xffff ? b->n_insns : 0xffff)};

	buf_put(&d->bytes, &out, sizeof(out));
}

/* Of what is called: a function of this object, or a symbol. */
static uint32_t foreign_name_of(
	struct describe *d, const struct code_section *s, const struct code_insn *insn)
{
	const struct code_function *called = code_called(d->code, s, insn);
	const struct object_symbol *symbol;
	const void *key = called;
	uint64_t *at;
	bool is_new;

	code_insn_callee(d->code, s, insn, &symbol);
	if (!called)
		key = symbol;
	if (!key)
		return 0;
	at = map_ensure(&d->foreign_names, (uint64_t)(uintptr_t)key, &is_new);
	if (is_new)
		*at = name_of(d, called ? called->name : code_admit_name(d->code, symbol->name));
	return (uint32_t)*at;
}

static void find_foreign(struct describe *d, const struct code_section *s)
{
	d->foreign.n = 0;
	if (d->foreign_names.n)
		map_reset(&d->foreign_names);
	for (size_t i = 0; code_section_is_inserted(s) && i < s->insns.n; i++) {
		const struct code_insn *insn = &s->insns.v[i];

		if (!(insn->bits & CODE_INSN_FOREIGN) || !insn->after)
			continue;
		vec_push(&d->foreign,
			((struct count_foreign_site){insn->place, foreign_name_of(d, s, insn)}));
	}
}

static void add_inserted(struct describe *d, uint32_t start, uint32_t end)
{
	struct stretch *last = d->inserted.n ? &d->inserted.v[d->inserted.n - 1] : NULL;

	if (last && last->end == start)
		last->end = end;
	else if (start != end)
		vec_push(&d->inserted, ((struct stretch){start, end}));
}

static void find_inserted(
	struct describe *d, const struct code_section *s, const struct code_function *f)
{
	for (uint32_t i = f->first_insn; i < f->first_insn + f->n_insns; i++) {
		const struct code_insn *insn = &s->insns.v[i];

		add_inserted(d, insn->label, insn->place);
		add_inserted(d, insn->place + code_insn_own_bytes(insn), code_insn_end(insn));
	}
}

/* Bytes of the block that are in front of what put_block has as its start. */
static uint32_t bytes_in_front(const struct code_section *s, const struct code_block *b)
{
	const struct code_function *f = &s->functions.v[b->function];
	uint32_t head = code_head_insn(s, f, (uint32_t)(b - s->blocks.v));
	uint32_t start = s->insns.v[head].label, own = s->insns.v[b->first_insn].place;

	return own < start ? start - own : 0;
}

static void put_inserted(struct describe *d, const struct code_section *s)
{
	uint32_t end = 0;

	d->inserted.n = 0;
	for (size_t i = 0; i < s->functions.n; i++)
		find_inserted(d, s, &s->functions.v[i]);
	for (size_t i = 0; i < s->blocks.n; i++)
		buf_put_uleb(&d->bytes, bytes_in_front(s, &s->blocks.v[i]));
	buf_put_uleb(&d->bytes, d->inserted.n);
	for (size_t i = 0; i < d->inserted.n; i++) {
		const struct stretch *stretch = &d->inserted.v[i];

		buf_put_uleb(&d->bytes, stretch->start - end);
		buf_put_uleb(&d->bytes, stretch->end - stretch->start);
		end = stretch->end;
	}
}

static void find_calls(struct describe *d, const struct code_section *s, const struct code_block *b)
{
	bool is_tree = d->code->options->mode == INSERT_MODE_TREE;
	const struct code_insn *first = &s->insns.v[b->first_insn];

	if (s->functions.v[b->function].reason != INSERT_REASON_DONE)
		return;
	if (!is_tree && (first->bits & CODE_INSN_LANDING))
		vec_push(&d->calls, ((struct count_call){.end = first->place}));
	for (uint32_t i = 0; i < b->n_insns; i++) {
		const struct code_insn *insn = first + i;
		uint32_t rest = b->n_insns - 1 - i;

		if ((insn->flow != X86_FLOW_CALL && insn->flow != X86_FLOW_CALL_FAR) ||
			(!is_tree && !(insn->bits & CODE_INSN_TWICE)))
			continue;
		vec_push(&d->calls, ((struct count_call){insn->place + code_insn_bytes(insn),
					    (uint16_t)code_insn_bytes(insn),
					    (uint16_t)(rest < 0xffff ? rest : 0xffff)}));
	}
}

static void put_calls(struct describe *d, const struct code_section *s)
{
	uint64_t n;

	d->calls.n = 0;
	for (size_t i = 0; i < s->blocks.n; i++)
		find_calls(d, s, &s->blocks.v[i]);
	n = d->calls.n;
	buf_put(&d->bytes, d->calls.v, n * sizeof(d->calls.v[0]));
	buf_put(&d->bytes, &n, sizeof(n));
}

static void add_unit(struct describe *d, struct code_section *s, const struct count_unit *unit)
{
	struct elf_object *o = d->code->object;
	struct object_section *os;
	uint32_t text = elf_object_section_symbol(o, s->number), units;

	s->unit = units = elf_object_add_section(
		o, &(struct object_new_section){.name = COUNT_SECTION_FUNCTIONS,
			   .type = SHT_PROGBITS,
			   .flags = SHF_ALLOC,
			   .align = 8,
			   .data = buf_span(&d->bytes),
			   .group = o->sections.v[s->number].group,
			   .link_order = s->number});
	os = &o->sections.v[units];
	vec_push(&os->relocs,
		((struct object_reloc){offsetof(struct count_unit, text), R_X86_64_PC32, text, 0}));
	if (unit->n_blocks)
		vec_push(
			&os->relocs, ((struct object_reloc){offsetof(struct count_unit, counters),
					     R_X86_64_PC32, o->sections.v[s->counters].symbol, 0}));
}

static void describe_section(struct describe *d, struct code_section *s)
{
	struct count_unit unit = {.magic = COUNT_UNIT_MAGIC, .version = COUNT_UNIT_VERSION};
	size_t n_blocks = code_section_is_inserted(s) ? s->blocks.n : 0;

	if (n_blocks)
		add_counters(d->code, s);
	buf_reset(&d->bytes);
	buf_reset(&d->names);
	buf_put_u8(&d->names, 0);
	buf_put(&d->bytes, &unit, sizeof(unit));
	for (size_t i = 0; i < s->functions.n; i++)
		put_function(d, s, &s->functions.v[i]);
	for (size_t i = 0; i < n_blocks; i++)
		put_block(d, s, &s->blocks.v[i]);
	find_foreign(d, s);
	unit.object_name = name_of(d, code_admit_name(d->code, d->object_name));
	buf_put(&d->bytes, d->foreign.v, d->foreign.n * sizeof(d->foreign.v[0]));
	unit.names_bytes = (uint32_t)d->names.n;
	buf_put(&d->bytes, d->names.p, d->names.n);
	if (n_blocks)
		put_inserted(d, s);
	while (d->bytes.n % 8)
		buf_put_u8(&d->bytes, 0);
	if (n_blocks)
		put_calls(d, s);
	unit.bytes = (uint32_t)d->bytes.n;
	unit.flags =
		(d->code->options->mode == INSERT_MODE_TREE && !s->is_apart ? COUNT_UNIT_TREE : 0) |
		(d->code->options->with_cycles && !s->is_apart ? COUNT_UNIT_CYCLES : 0) |
		(d->code->is_compiled ? COUNT_UNIT_COMPILED : 0) |
		(n_blocks ? COUNT_UNIT_INSERTED | COUNT_UNIT_CALLS : 0);
	unit.text_bytes = code_section_is_inserted(s) ? s->new_bytes : (uint32_t)s->bytes.n;
	unit.n_functions = (uint32_t)s->functions.n;
	unit.n_blocks = (uint32_t)n_blocks;
	unit.n_foreign = (uint32_t)d->foreign.n;
	memcpy(d->bytes.p, &unit, sizeof(unit));
	add_unit(d, s, &unit);
}

void code_describe(struct code *c)
{
	struct describe d = {.code = c, .object_name = object_name(c)};

	for (struct code_section *s = code_next(c, NULL); s; s = code_next(c, s))
		if (s->functions.n)
			describe_section(&d, s);
	buf_release(&d.bytes);
	buf_release(&d.names);
	vec_release(&d.foreign);
	vec_release(&d.inserted);
	vec_release(&d.calls);
	map_release(&d.foreign_names);
}

void code_keep_units(struct code *c)
{
	for (struct code_section *s = code_next(c, NULL); s; s = code_next(c, s)) {
		struct object_section *text = &c->object->sections.v[s->number];

		if (!s->unit)
			continue;
		vec_push(&text->relocs, ((struct object_reloc){.type = R_X86_64_NONE,
						.symbol = c->object->sections.v[s->unit].symbol}));
		object_section_sort_relocs(text);
	}
}
