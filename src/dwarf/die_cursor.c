/* SPDX-License-Identifier: MIT */
/*
 * The abbreviations of abbrev.h are compiled for what readers of code want. Here each table is
 * compiled a second time, when one of its entries is first read, for the attributes of types; the
 * first compilation stays the one that steps over entries of no interest.
 */
#include "dwarf/die_cursor.h"

#include <stdlib.h>

#include "base/map.h"
#include "dwarf/debug_info.h"
#include "dwarf/die_units.h"

#define ENTRY_SKIP_MAX (1u << 30) /* bytes of values without interest, in a row */
#define DEPTH_MAX      4096	  /* of children inside children */

/* Reads of one abbreviation, in order. */
struct entry_code {
	uint32_t first_read, n_reads;
	bool is_known, is_bad;
};

struct entry_table {
	struct entry_code *codes;      /* by abbrev_number */
	VEC(struct abbrev_read) reads; /* slots are enum die_attr */
};

struct die_reader {
	struct die_units units;
	struct map tables; /* struct abbrev_table * -> struct entry_table * */
	const struct abbrev_table *last_abbrevs;
	const struct entry_table *last_table;
	uint64_t budget;
};

struct die_reader *die_reader_new(struct dwarf_debug *debug)
{
	struct die_reader *r = mem_zalloc(sizeof(*r));

	die_units_init(&r->units, debug);
	r->budget = UINT64_MAX;
	return r;
}

static void entry_table_free(struct entry_table *t)
{
	free(t->codes);
	vec_release(&t->reads);
	free(t);
}

void die_reader_free(struct die_reader *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->tables.cap; i++)
		if (r->tables.slots[i].used)
			entry_table_free((struct entry_table *)(uintptr_t)r->tables.slots[i].value);
	map_release(&r->tables);
	die_units_release(&r->units);
	free(r);
}

void die_reader_set_budget(struct die_reader *r, uint64_t n_bytes)
{
	r->budget = n_bytes;
}

size_t die_reader_units(
	struct die_reader *r, bool is_shared, const struct debug_unit *const **units)
{
	return die_units_list(&r->units, is_shared, units);
}

uint64_t die_reader_bytes(struct die_reader *r)
{
	return die_units_bytes(&r->units);
}

static enum die_attr attr_of(uint64_t attr)
{
	static const uint8_t known[] = {
		[0x01] = DIE_SIBLING,
		[0x02] = DIE_LOCATION,
		[0x03] = DIE_NAME,
		[0x0b] = DIE_BYTE_SIZE,
		[0x0c] = DIE_BIT_OFFSET,
		[0x0d] = DIE_BIT_SIZE,
		[0x1c] = DIE_CONST_VALUE,
		[0x2f] = DIE_UPPER_BOUND,
		[0x31] = DIE_ABSTRACT_ORIGIN,
		[0x37] = DIE_COUNT,
		[0x38] = DIE_MEMBER_LOCATION,
		[0x3c] = DIE_DECLARATION,
		[0x3e] = DIE_ENCODING,
		[0x3f] = DIE_EXTERNAL,
		[0x47] = DIE_SPECIFICATION,
		[0x49] = DIE_TYPE,
		[0x69] = DIE_SIGNATURE,
		[0x6b] = DIE_DATA_BIT_OFFSET,
		[0x6e] = DIE_LINKAGE_NAME,
		[0x88] = DIE_ALIGNMENT,
	};

	if (attr == 0x2007) /* DW_AT_MIPS_linkage_name, before DWARF 4 */
		return DIE_LINKAGE_NAME;
	return attr < sizeof(known) ? (enum die_attr)known[attr] : DIE_NO_ATTR;
}

/* The attributes of one abbreviation (DWARF 5 section 7.5.3). False when the bytes run out. */
static bool compile_code(
	struct entry_table *t, struct cursor *in, struct form_sizes sizes, struct entry_code *code)
{
	struct abbrev_attr a;
	uint64_t skip = 0;
	uint32_t seen = 0;

	code->first_read = (uint32_t)t->reads.n;
	while (abbrev_next_attr(in, &a)) {
		enum form_how how = form_how(a.form, sizes);
		enum die_attr slot = attr_of(a.name);
		int n = form_fixed_bytes(how);

		if (how == HOW_UNKNOWN || skip > ENTRY_SKIP_MAX)
			code->is_bad = true;
		if (seen >> slot & 1)
			slot = DIE_NO_ATTR; /* the first one counts */
		seen |= 1u << slot;
		if (!slot && n >= 0) {
			skip += (uint64_t)n;
			continue;
		}
		vec_push(&t->reads, ((struct abbrev_read){a.implicit, (uint32_t)skip,
					    (uint16_t)a.form, (uint8_t)how, (uint8_t)slot}));
		skip = 0;
	}
	if (in->failed)
		return false;
	if (skip)
		vec_push(&t->reads, ((struct abbrev_read){0, (uint32_t)skip, FORM_FLAG_PRESENT,
					    HOW_NOTHING, DIE_NO_ATTR}));
	code->n_reads = (uint32_t)t->reads.n - code->first_read;
	code->is_known = true;
	return true;
}

/* The table was read whole before, by abbrev_table_init, so it has an end. */
static struct entry_table *compile_table(const struct debug_unit *u)
{
	struct entry_table *t = mem_zalloc(sizeof(*t));
	struct span bytes = u->set->sections.of[DEBUG_ABBREV];
	struct cursor in = cursor_of(span_sub(bytes, u->abbrev_offset, bytes.n - u->abbrev_offset));
	uint64_t code;

	vec_reserve(&t->reads, 1); /* never NULL, so that readers may add to it */
	t->codes = mem_calloc(abbrev_table_n(u->abbrevs), sizeof(*t->codes));
	while ((code = cursor_uleb(&in))) {
		const struct abbrev *a = abbrev_table_find(u->abbrevs, code);
		struct entry_code entry = {0};

		cursor_uleb(&in);
		cursor_u8(&in);
		if (!compile_code(t, &in, u->sizes, &entry))
			break;
		if (a && !t->codes[abbrev_number(u->abbrevs, a)].is_known)
			t->codes[abbrev_number(u->abbrevs, a)] = entry;
	}
	return t;
}

static const struct entry_table *table_of(struct die_reader *r, const struct debug_unit *u)
{
	uint64_t *place;
	bool is_new;

	if (u->abbrevs == r->last_abbrevs)
		return r->last_table;
	place = map_ensure(&r->tables, (uintptr_t)u->abbrevs, &is_new);
	if (is_new)
		*place = (uintptr_t)compile_table(u);
	r->last_abbrevs = u->abbrevs;
	r->last_table = (const struct entry_table *)(uintptr_t)*place;
	return r->last_table;
}

bool die_reader_spend(struct die_reader *r, uint64_t n_bytes)
{
	if (n_bytes > r->budget) {
		r->budget = 0;
		return false;
	}
	r->budget -= n_bytes;
	return true;
}

bool die_read(struct die_reader *r, const struct debug_unit *u, uint64_t offset, struct die *out)
{
	struct span info = u->set->sections.of[DEBUG_INFO];
	const struct entry_table *table;
	const struct entry_code *code;
	const struct abbrev *abbrev;
	const uint8_t *p, *end;
	uint64_t number;

	if (!u->abbrevs || offset < u->first_die || offset >= u->end)
		return false;
	out->unit = u;
	out->offset = offset;
	out->has = 0;
	end = info.p + u->end;
	p = form_uleb(info.p + offset, end, &number);
	if (p && !number) {
		out->tag = DIE_TAG_END;
		out->has_children = false;
		out->next = (uint64_t)(p - info.p);
		return die_reader_spend(r, 1);
	}
	abbrev = p ? abbrev_table_find(u->abbrevs, number) : NULL;
	if (!abbrev)
		return false;
	table = table_of(r, u);
	code = &table->codes[abbrev_number(u->abbrevs, abbrev)];
	if (!code->is_known || code->is_bad)
		return false;
	p = abbrev_run_reads(table->reads.v + code->first_read, code->n_reads, u->sizes, p, end,
		&(struct abbrev_values){&out->has, out->form, out->value});
	if (!p)
		return false;
	out->tag = abbrev->tag;
	out->has_children = abbrev->has_children;
	out->next = (uint64_t)(p - info.p);
	return die_reader_spend(r, out->next - offset);
}

/* Steps over children, whose first is at `offset`, and the entry that ends them. */
static uint64_t skip_children(struct die_reader *r, const struct debug_unit *u, uint64_t offset)
{
	struct span info = u->set->sections.of[DEBUG_INFO];
	const uint8_t *p = info.p + offset, *end = info.p + u->end;
	const struct abbrev *a;
	uint32_t depth = 1;
	uint64_t code;

	while (depth) {
		p = p < end ? form_uleb(p, end, &code) : NULL;
		if (!p)
			break;
		if (!code) {
			depth--;
			continue;
		}
		a = abbrev_table_find(u->abbrevs, code);
		p = a ? abbrev_skip(u->abbrevs, a, p, end) : NULL;
		if (!p || (a->has_children && ++depth > DEPTH_MAX))
			break;
	}
	if (!die_reader_spend(r, (uint64_t)((p ? p : end) - info.p) - offset))
		return 0;
	return p && !depth ? (uint64_t)(p - info.p) : 0;
}

uint64_t die_behind(struct die_reader *r, const struct die *d)
{
	struct die_ref ref;

	if (!d->has_children)
		return d->next;
	if (die_says(d, DIE_SIBLING) &&
		debug_unit_ref(d->unit, d->form[DIE_SIBLING], d->value[DIE_SIBLING], &ref) &&
		ref.set == d->unit->set && ref.offset >= d->next && ref.offset < d->unit->end)
		return ref.offset;
	return skip_children(r, d->unit, d->next);
}

bool die_follow(struct die_reader *r, const struct die *from, enum die_attr attr, struct die *out)
{
	const struct debug_unit *u = from->unit;
	struct die_ref ref;

	if (!die_says(from, attr))
		return false;
	if (from->form[attr] == FORM_REF_SIG8) {
		u = die_units_by_signature(&r->units, u->set, from->value[attr], &ref.offset);
		return u && die_read(r, u, ref.offset, out);
	}
	if (!debug_unit_ref(u, from->form[attr], from->value[attr], &ref))
		return false;
	if (ref.set != u->set || ref.offset < u->first_die || ref.offset >= u->end)
		u = unit_set_find(ref.set, ref.offset);
	return u && die_read(r, u, ref.offset, out);
}

bool die_text(const struct die *d, enum die_attr attr, struct dwarf_text *out)
{
	return die_says(d, attr) && debug_unit_text(d->unit, d->form[attr], d->value[attr], out);
}

bool die_number(const struct die *d, enum die_attr attr, uint64_t *out)
{
	if (!die_says(d, attr) || !form_is_constant(d->form[attr]))
		return false;
	*out = d->value[attr];
	return true;
}

bool die_flag(const struct die *d, enum die_attr attr)
{
	if (!die_says(d, attr))
		return false;
	return d->form[attr] == FORM_FLAG_PRESENT || d->value[attr] != 0;
}

bool die_block(const struct die *d, enum die_attr attr, struct span *out)
{
	const uint8_t *p;
	uint64_t n = 0;

	if (!die_says(d, attr))
		return false;
	p = (const uint8_t *)(uintptr_t)d->value[attr]; /* form_read has seen all of it */
	switch (d->form[attr]) {
	case FORM_BLOCK1:
		*out = (struct span){p + 1, *p};
		return true;
	case FORM_BLOCK2:
		*out = (struct span){p + 2, (size_t)bytes_u16(p)};
		return true;
	case FORM_BLOCK4:
		*out = (struct span){p + 4, (size_t)bytes_u32(p)};
		return true;
	case FORM_BLOCK:
	case FORM_EXPRLOC:
		p = form_uleb(p, p + 10, &n);
		*out = (struct span){p, (size_t)n};
		return p != NULL;
	default:
		return false;
	}
}
