/* SPDX-License-Identifier: MIT */
/*
 * .debug_info of an object whose code has moved. Nearly all addresses in it have relocations; what
 * does not are lengths and offsets (DW_AT_high_pc, DW_AT_entry_pc as constants), changed in place.
 * On the way, the lists of ranges and of locations that units refer to are found: in their own
 * sections nothing says where a list begins.
 *
 * Entries are a plain sequence here; which is whose child does not matter.
 *
 * The GNU assembler writes lengths as LEB128 numbers. When one needs more bytes, the section is
 * laid out anew, which is done only where no entry refers to another, as in its units.
 */
#include "insert/debug_stage.h"

#include <stdlib.h>

enum { UNIT_COMPILE = 1, UNIT_TYPE, UNIT_PARTIAL, UNIT_SKELETON, UNIT_SPLIT, UNIT_SPLIT_TYPE };

/* A value of an entry. */
struct info_value {
	bool is_there;
	uint16_t form;
	size_t at, n; /* where its bytes are in the section */
	uint64_t value;
};

/* A unit being read. */
struct info_unit {
	struct debug_mover *d;
	struct debug_stage *s;
	const struct debug_abbrev_table *table;
	size_t number;			/* in d->units */
	struct info_value list_base[2]; /* of the entry being read */
	struct info_value values[DEBUG_N_SINGLE];
	size_t start;			 /* in the section */
	VEC(struct info_number) numbers; /* of the section, when it may have to be laid out anew */
	bool must_grow;			 /* it has to */
};

static int fail_form(const struct info_unit *u, const struct info_value *v, struct err *err)
{
	return err_set(err, ERR_UNSUPPORTED, "%s+0x%zx: form 0x%x is not known there", u->s->name,
		v->at, v->form);
}

static int read_address(const struct info_unit *u, const struct info_value *v,
	struct code_place *place, struct err *err)
{
	*place = (struct code_place){0};
	if (v->form == FORM_ADDR) {
		debug_reloc_target(u->d, u->s->section, v->at, place);
		return 0;
	}
	if (!form_is_addr(v->form))
		return fail_form(u, v, err);
	if (!debug_index_target(u->d, &u->d->units.v[u->number], v->value, place))
		return debug_fail(u->s, v->at, err, "the unit has no such address");
	return 0;
}

/* Writes a LEB128 number in as many bytes as it has had. */
static bool put_leb(
	struct debug_stage *s, const struct info_value *v, uint64_t value, int sign_bits)
{
	if (v->n * 7 < 64 + (size_t)sign_bits && value >> (v->n * 7 - (size_t)sign_bits))
		return false;
	stage_put_leb(s, v->at, v->n, value);
	return true;
}

static void note_number(
	struct info_unit *u, const struct info_value *v, uint64_t value, bool is_ref)
{
	vec_push(&u->numbers, ((struct info_number){.at = v->at,
				      .n = v->n,
				      .unit = u->start,
				      .value = value,
				      .form = v->form,
				      .is_ref = is_ref}));
}

/* A constant that is the distance from `from` to another place of the code. */
static int move_distance(
	struct info_unit *u, struct code_place from, const struct info_value *v, struct err *err)
{
	uint64_t now = debug_distance(u->d, from, v->value);
	bool fits;

	if (now == v->value)
		return 0;
	stage_edit(u->s);
	if (v->form == FORM_UDATA || v->form == FORM_SDATA) {
		bool is_signed = v->form == FORM_SDATA;

		fits = put_leb(u->s, v, now, is_signed);
		if (!fits && !u->table->has_blocks && !u->d->has_indexes) {
			note_number(u, v, now, false);
			u->must_grow = true;
			return 0;
		}
	} else {
		fits = v->n && stage_put_number(u->s, v->at, (int)v->n, now);
	}
	if (!fits)
		return debug_fail(u->s, v->at, err, "a range has become too long for its form");
	return 0;
}

/* The lists and tables that the offset at `at` may refer to. */
static int note_offset(
	struct info_unit *u, const struct info_value *v, bool is_table, struct err *err)
{
	struct code_place target;
	const struct debug_stage *to;

	if (!debug_reloc_target(u->d, u->s->section, v->at, &target)) {
		if (v->form == FORM_SEC_OFFSET)
			return debug_fail(u->s, v->at, err, "an offset has no relocation");
		return 0;
	}
	to = debug_mover_stage(u->d, target.section);
	if (!to || to->kind < DEBUG_KIND_RANGES || to->kind > DEBUG_KIND_LOCLISTS)
		return 0;
	if (target.offset > to->in.n)
		return debug_fail(u->s, v->at, err, "an offset leads out of its section");
	vec_push(&u->d->refs,
		((struct debug_list_ref){target.section, target.offset, u->number, is_table}));
	return 0;
}

/* The step's value, at p. NULL when it is not there as a whole. */
static const uint8_t *read_value(const struct info_unit *u, const struct debug_abbrev_step *step,
	const uint8_t *p, const uint8_t *end, struct info_value *v)
{
	enum form_how how = step->how;
	uint64_t form = step->form;

	*v = (struct info_value){.is_there = true, .value = (uint64_t)step->implicit};
	if (how == HOW_INDIRECT) {
		p = form_uleb(p, end, &form);
		how = p && form != FORM_IMPLICIT_CONST ? form_how(form, u->table->sizes)
						       : HOW_UNKNOWN;
		if (how == HOW_INDIRECT || how == HOW_UNKNOWN)
			return NULL;
	}
	v->form = (uint16_t)form;
	v->at = (size_t)(p - u->s->in.p);
	if (form != FORM_IMPLICIT_CONST)
		p = form_read(p, end, how, &v->value);
	if (p)
		v->n = (size_t)(p - u->s->in.p) - v->at;
	return p;
}

/* Reads an entry's values into u->values and notes what it refers to. */
static int read_entry(struct info_unit *u, const struct debug_abbrev *a, const uint8_t **at,
	const uint8_t *end, struct err *err)
{
	const struct debug_abbrev_step *step =
		a->n_steps ? u->table->steps.v + a->first_step : NULL;
	const uint8_t *p = *at;
	size_t n_bases = 0;

	memset(u->values, 0, sizeof(u->values));
	memset(u->list_base, 0, sizeof(u->list_base));
	for (uint32_t i = 0; i < a->n_steps; i++, step++) {
		struct info_value v;
		int ret = 0;

		p = (size_t)(end - p) >= step->fixed ? p + step->fixed : NULL;
		if (p && !step->attr)
			p = form_skip(p, end, step->how, u->table->sizes);
		else if (p)
			p = read_value(u, step, p, end, &v);
		if (!p)
			return debug_fail(u->s, (uint64_t)(*at - u->s->in.p), err,
				"the entry cannot be read");
		if (step->attr == DEBUG_ATTR_OFFSET)
			ret = v.form == FORM_SEC_OFFSET || u->table->sizes.version < 4
				      ? note_offset(u, &v, false, err)
				      : 0;
		else if (step->attr == DEBUG_ATTR_REF && !u->table->has_blocks)
			note_number(u, &v, v.value, true);
		else if (step->attr == DEBUG_ATTR_LIST_BASE && n_bases < 2)
			u->list_base[n_bases++] = v;
		else if (step->attr && step->attr < DEBUG_N_SINGLE)
			u->values[step->attr] = v;
		if (ret < 0)
			return ret;
	}
	*at = p;
	return 0;
}

/* The first entry of a unit: what addresses and lists in it are relative to. */
static int read_root(struct info_unit *u, struct err *err)
{
	struct debug_unit_base *unit = &u->d->units.v[u->number];
	const struct info_value *addrs = &u->values[DEBUG_ATTR_ADDR_BASE];
	const struct info_value *low = &u->values[DEBUG_ATTR_LOW_PC];
	int ret = 0;

	if (addrs->is_there && !debug_reloc_target(u->d, u->s->section, addrs->at, &unit->addrs))
		return debug_fail(u->s, addrs->at, err, "an offset has no relocation");
	if (low->is_there)
		ret = read_address(u, low, &unit->low, err);
	for (int i = 0; i < 2 && ret == 0; i++)
		if (u->list_base[i].is_there)
			ret = note_offset(u, &u->list_base[i], true, err);
	return ret;
}

static int move_entry(struct info_unit *u, struct err *err)
{
	const struct info_value *low = &u->values[DEBUG_ATTR_LOW_PC];
	const struct info_value *high = &u->values[DEBUG_ATTR_HIGH_PC];
	const struct info_value *entry = &u->values[DEBUG_ATTR_ENTRY_PC];
	const struct info_value *ranges = &u->values[DEBUG_ATTR_RANGES];
	const struct info_value *scope = &u->values[DEBUG_ATTR_START_SCOPE];
	struct code_place from;
	int ret = 0;

	/* An offset from the start of the scope around it; no compiler is known to write it. */
	if (scope->is_there && form_is_constant(scope->form) &&
		!debug_reloc_target(u->d, u->s->section, scope->at, &from))
		return fail_form(u, scope, err);
	if (scope->is_there)
		ret = note_offset(u, scope, false, err);
	if (ret == 0 && ranges->is_there && ranges->form != FORM_RNGLISTX)
		ret = note_offset(u, ranges, false, err);
	if (ret < 0)
		return ret;
	if (high->is_there && !form_is_constant(high->form) && !form_is_addr(high->form))
		return fail_form(u, high, err);
	if (!low->is_there) {
		/* A DWARF 5 offset from the first range; no compiler is known to write it. */
		if (entry->is_there && form_is_constant(entry->form))
			return fail_form(u, entry, err);
		return 0;
	}
	ret = read_address(u, low, &from, err);
	if (ret == 0 && high->is_there && form_is_constant(high->form))
		ret = move_distance(u, from, high, err);
	if (ret == 0 && entry->is_there && form_is_constant(entry->form))
		ret = move_distance(u, from, entry, err);
	return ret;
}

static int move_entries(struct info_unit *u, struct cursor *c, struct err *err)
{
	const uint8_t *p = c->p, *end = c->end;
	bool is_root = true;

	while (p < end) {
		size_t at = (size_t)(p - u->s->in.p);
		const struct debug_abbrev *a;
		uint64_t code;
		int ret;

		p = form_uleb(p, end, &code);
		if (p && !code)
			continue;
		a = p ? debug_abbrev_find(u->table, code) : NULL;
		if (!a)
			return debug_fail(u->s, at, err, "the entry has no abbreviation");
		if (a->is_unknown)
			return debug_fail(u->s, at, err, "the entry has a form that is not known");
		ret = read_entry(u, a, &p, end, err);
		if (ret == 0 && is_root)
			ret = read_root(u, err);
		if (ret == 0)
			ret = move_entry(u, err);
		if (ret < 0)
			return ret;
		is_root = false;
	}
	return 0;
}

/* The offset at c: where it leads, by its relocation, and to the first section of that kind when it
 * has none. */
static struct debug_stage *read_abbrev_offset(
	struct info_unit *u, struct cursor *c, uint8_t offset_bytes, uint64_t *offset)
{
	size_t at = (size_t)(c->p - u->s->in.p);
	struct code_place target;
	struct debug_stage *stage;

	*offset = offset_bytes == 8 ? cursor_u64(c) : cursor_u32(c);
	if (!debug_reloc_target(u->d, u->s->section, at, &target))
		target = (struct code_place){u->d->abbrev_section, *offset};
	*offset = target.offset;
	stage = debug_mover_stage(u->d, target.section);
	return stage && stage->kind == DEBUG_KIND_ABBREV ? stage : NULL;
}

/* The unit whose length has been read: `c` ends where it ends. */
static int move_unit(struct info_unit *u, struct cursor *c, uint8_t offset_bytes, struct err *err)
{
	size_t at = (size_t)(c->p - u->s->in.p);
	struct form_sizes sizes = {.offset = offset_bytes};
	uint8_t type = UNIT_COMPILE;
	const struct debug_stage *abbrevs;
	uint64_t abbrev_offset;
	int ret;

	sizes.version = cursor_u16(c);
	if (c->failed || sizes.version < 2 || sizes.version > 5)
		return debug_fail(u->s, at, err, "the version of the unit is not known");
	if (sizes.version >= 5) {
		type = cursor_u8(c);
		sizes.addr = cursor_u8(c);
	}
	abbrevs = read_abbrev_offset(u, c, offset_bytes, &abbrev_offset);
	if (sizes.version < 5)
		sizes.addr = cursor_u8(c);
	if (type == UNIT_TYPE || type == UNIT_SPLIT_TYPE)
		return 0; /* types have no code */
	if (type == UNIT_SKELETON || type == UNIT_SPLIT)
		cursor_skip(c, 8);
	else if (type != UNIT_COMPILE && type != UNIT_PARTIAL)
		return debug_fail(u->s, at, err, "the type of the unit is not known");
	if (c->failed || sizes.addr != 8)
		return debug_fail(u->s, at, err, "the header of the unit is damaged");
	if (!abbrevs)
		return debug_fail(u->s, at, err, "the unit has no abbreviations");
	ret = debug_abbrevs_get(&u->d->abbrevs, abbrevs->section, abbrevs->in, abbrev_offset, sizes,
		&u->table, err);
	if (ret < 0)
		return ret;
	u->number = u->d->units.n;
	vec_push(&u->d->units, ((struct debug_unit_base){0}));
	return move_entries(u, c, err);
}

static int move_units(struct info_unit *u, struct err *err)
{
	struct debug_stage *s = u->s;
	struct cursor c = cursor_of(s->in);

	while (cursor_left(&c)) {
		size_t at = (size_t)(c.p - s->in.p);
		struct cursor unit;
		uint64_t length;
		uint8_t offset_bytes;
		int ret;

		if (!debug_unit_length(&c, &length, &offset_bytes))
			return debug_fail(s, at, err, "the unit does not fit in the section");
		u->start = at;
		unit = cursor_of(cursor_bytes(&c, length));
		ret = move_unit(u, &unit, offset_bytes, err);
		if (ret < 0)
			return ret;
	}
	if (!u->must_grow)
		return 0;
	return debug_info_grow(u->d, s, u->numbers.v, u->numbers.n, err);
}

int debug_info_move(struct debug_mover *d, struct debug_stage *s, struct err *err)
{
	struct info_unit u = {.d = d, .s = s};
	int ret = move_units(&u, err);

	vec_release(&u.numbers);
	return ret;
}
