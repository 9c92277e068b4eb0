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

#define ENTRY_SKIP_MAX	(1u << 30) /* bytes of values without interest, in a row */
#define DEPTH_MAX	4096	   /* of children inside children */
#define SIGNATURE_BYTES 8

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
	struct dwarf_debug *debug; /* borrowed */
	struct unit_set type_set;  /* of .debug_types: DWARF 4 */
	bool has_type_set;	   /* it was looked for */
	bool is_listed, is_alt_listed;
	VEC(const struct debug_unit *) list, alt_list;
	VEC(struct debug_unit *) owned; /* split units with what they take from their skeletons */
	struct map signed_sets;		/* unit sets whose signatures are known */
	struct map by_signature;	/* of signature and set -> unit */

	struct map tables; /* struct abbrev_table * -> struct entry_table * */
	const struct abbrev_table *last_abbrevs;
	const struct entry_table *last_table;
	uint64_t budget;
};

struct die_reader *die_reader_new(struct dwarf_debug *debug)
{
	struct die_reader *r = mem_zalloc(sizeof(*r));

	r->debug = debug;
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
	vec_release_all(&r->owned);
	vec_release(&r->list);
	vec_release(&r->alt_list);
	map_release(&r->signed_sets);
	map_release(&r->by_signature);
	unit_set_release(&r->type_set);
	free(r);
}

void die_reader_set_budget(struct die_reader *r, uint64_t n_bytes)
{
	r->budget = n_bytes;
}

/* --- which units hold entries of types --- */

/*
 * The units of .debug_types (DWARF 4 section 7.5.1.2): the headers of .debug_info with a signature
 * and an offset behind them. The reader of .debug_info takes these for entries, so what it made of
 * the roots is thrown away; type units have nothing there that is needed.
 */
static void read_type_set(struct die_reader *r)
{
	struct span bytes;
	struct err err;

	if (r->has_type_set)
		return;
	r->has_type_set = true;
	if (dwarf_file_section(&r->debug->file, ".debug_types", &bytes, &err) < 0) {
		dwarf_debug_note(r->debug, "type units: %s", err.text);
		return;
	}
	if (!bytes.n)
		return;
	r->type_set.sections = r->debug->units.sections;
	r->type_set.sections.of[DEBUG_INFO] = bytes;
	r->type_set.alt = r->debug->units.alt;
	unit_set_read(&r->type_set, false, NULL);
	for (size_t i = 0; i < r->type_set.units.n; i++) {
		struct debug_unit *unit = &r->type_set.units.v[i];

		unit->root.has = 0;
		unit->type = UNIT_TYPE_TYPE;
		if (unit->sizes.version == 5) /* has its signature already */
			continue;
		unit->first_die += SIGNATURE_BYTES + unit->sizes.offset;
		if (unit->first_die > unit->end)
			unit->first_die = unit->end;
	}
}

static void list_units(struct die_reader *r)
{
	const struct unit_set *set = &r->debug->units;

	r->is_listed = true;
	for (size_t i = 0; i < set->units.n; i++) {
		const struct debug_unit *unit = &set->units.v[i];
		struct debug_unit split;

		if (unit->type != UNIT_TYPE_SKELETON) {
			vec_push(&r->list, unit);
		} else if (split_unit_find(r->debug, unit, &split)) {
			struct debug_unit *copy = mem_dup(&split, sizeof(split));

			vec_push(&r->owned, copy);
			vec_push(&r->list, copy);
		}
	}
	/* Type units of the .dwo files, which no skeleton stands for. */
	for (size_t i = 0; i < r->debug->splits.n; i++) {
		const struct unit_set *split = &r->debug->splits.v[i]->units;

		for (size_t k = 0; k < split->units.n; k++)
			if (split->units.v[k].type == UNIT_TYPE_SPLIT_TYPE)
				vec_push(&r->list, &split->units.v[k]);
	}
	read_type_set(r);
	for (size_t i = 0; i < r->type_set.units.n; i++)
		vec_push(&r->list, &r->type_set.units.v[i]);
}

size_t die_reader_units(
	struct die_reader *r, bool is_shared, const struct debug_unit *const **units)
{
	if (!is_shared) {
		if (!r->is_listed)
			list_units(r);
		*units = r->list.v;
		return r->list.n;
	}
	if (!r->is_alt_listed && r->debug->units.alt)
		for (size_t i = 0; i < r->debug->alt_units.units.n; i++)
			vec_push(&r->alt_list, &r->debug->alt_units.units.v[i]);
	r->is_alt_listed = true;
	*units = r->alt_list.v;
	return r->alt_list.n;
}

uint64_t die_reader_bytes(struct die_reader *r)
{
	const struct debug_unit *const *units;
	const struct unit_set *last = NULL;
	uint64_t n_bytes = 0;

	for (int shared = 0; shared < 2; shared++)
		for (size_t i = die_reader_units(r, shared, &units); i-- > 0;) {
			n_bytes += units[i]->end - units[i]->offset;
			if (units[i]->set != last)
				n_bytes += units[i]->set->sections.of[DEBUG_STR].n +
					   units[i]->set->sections.of[DEBUG_LINE_STR].n;
			last = units[i]->set;
		}
	return n_bytes;
}

static bool is_type_unit(const struct debug_unit *unit)
{
	return (unit->type == UNIT_TYPE_TYPE || unit->type == UNIT_TYPE_SPLIT_TYPE) &&
	       unit->first_die - unit->offset >= SIGNATURE_BYTES + (uint64_t)unit->sizes.offset;
}

static uint64_t key_of(const struct unit_set *set, uint64_t signature)
{
	return map_hash_mix(map_hash(signature), (uintptr_t)set);
}

/* The signature stands in front of the root entry, then the place of the type. */
static uint64_t signature_of(const struct debug_unit *unit)
{
	const uint8_t *info = unit->set->sections.of[DEBUG_INFO].p;

	return bytes_u64(info + unit->first_die - unit->sizes.offset - SIGNATURE_BYTES);
}

static const struct debug_unit *find_signature(
	struct die_reader *r, const struct unit_set *set, uint64_t signature)
{
	const uint64_t *found;
	bool is_new;

	map_ensure(&r->signed_sets, (uintptr_t)set, &is_new);
	for (size_t i = 0; is_new && i < set->units.n; i++)
		if (is_type_unit(&set->units.v[i]))
			*map_ensure(&r->by_signature, key_of(set, signature_of(&set->units.v[i])),
				NULL) = (uintptr_t)&set->units.v[i];
	found = map_find(&r->by_signature, key_of(set, signature));
	return found ? (const struct debug_unit *)(uintptr_t)*found : NULL;
}

/* The type unit of a signature, asked for by a unit of `set`, and where its type is; or NULL. */
static const struct debug_unit *unit_by_signature(
	struct die_reader *r, const struct unit_set *set, uint64_t signature, uint64_t *offset)
{
	const struct debug_unit *unit = find_signature(r, set, signature);

	if (!unit) {
		read_type_set(r);
		unit = find_signature(r, &r->type_set, signature);
	}
	if (!unit)
		return NULL;
	*offset = unit->offset + bytes_word(unit->set->sections.of[DEBUG_INFO].p + unit->first_die -
						    unit->sizes.offset,
					 unit->sizes.offset);
	return unit;
}

/* --- entries --- */

static enum die_attr attr_of(uint64_t attr)
{
	static const uint8_t known[] = {
		[0x01] = DIE_SIBLING,
		[0x02] = DIE_LOCATION,
		[0x03] = DIE_NAME,
		[0x0b] = DIE_BYTE_SIZE,
		[0x0c] = DIE_BIT_OFFSET,
		[0x0d] = DIE_BIT_SIZE,
		[0x11] = DIE_LOW_PC,
		[0x12] = DIE_HIGH_PC,
		[0x1c] = DIE_CONST_VALUE,
		[0x2f] = DIE_UPPER_BOUND,
		[0x31] = DIE_ABSTRACT_ORIGIN,
		[0x36] = DIE_CALLING_CONVENTION,
		[0x37] = DIE_COUNT,
		[0x38] = DIE_MEMBER_LOCATION,
		[0x3c] = DIE_DECLARATION,
		[0x3e] = DIE_ENCODING,
		[0x3f] = DIE_EXTERNAL,
		[0x40] = DIE_FRAME_BASE,
		[0x47] = DIE_SPECIFICATION,
		[0x49] = DIE_TYPE,
		[0x55] = DIE_RANGES,
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
		u = unit_by_signature(r, u->set, from->value[attr], &ref.offset);
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

bool die_addr(const struct die *d, enum die_attr attr, uint64_t *out)
{
	uint64_t low;

	if (!die_says(d, attr))
		return false;
	if (attr != DIE_HIGH_PC || form_is_addr(d->form[attr]) || d->form[attr] == FORM_ADDR)
		return debug_unit_addr(d->unit, d->form[attr], d->value[attr], out);
	if (!die_addr(d, DIE_LOW_PC, &low))
		return false;
	*out = low + d->value[attr];
	return true;
}

bool die_flag(const struct die *d, enum die_attr attr)
{
	return die_says(d, attr) && (d->form[attr] == FORM_FLAG_PRESENT || d->value[attr] != 0);
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
