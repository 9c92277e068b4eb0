/* SPDX-License-Identifier: MIT */
#include "dwarf/debug_unit.h"

#include <stdlib.h>

#include "base/order.h"
#include "base/search.h"
#include "dwarf/debug_info.h"

#define NO_LINES	UINT64_MAX
#define ENTRY_BYTES_MAX (128 * 1024) /* of an entry read on its own: two long names fit in */

static void note(const struct note_sink *notes, uint64_t offset, const char *what)
{
	if (notes)
		dwarf_debug_note(notes->debug, "%s.debug_info+0x%llx: %s", notes->prefix,
			(unsigned long long)offset, what);
}

/* The unit at the cursor (DWARF 5 section 7.5.1), which goes to the end of it. NULL or why the
 * unit is left out; `c->failed` when what follows cannot be found either. */
static const char *read_header(struct debug_unit *u, struct cursor *c, uint64_t offset)
{
	uint64_t length = cursor_initial_length(c, &u->sizes.offset);
	struct cursor in = cursor_of(cursor_bytes(c, length));

	u->offset = offset;
	if (c->failed)
		return "the unit is longer than the section";
	u->end = offset + (u->sizes.offset == 8 ? 12 : 4) + length;
	u->sizes.version = cursor_u16(&in);
	if (u->sizes.version < 2 || u->sizes.version > 5)
		return "the unit has a version that is not known";
	if (u->sizes.version == 5) {
		u->type = cursor_u8(&in);
		u->sizes.addr = cursor_u8(&in);
	}
	u->abbrev_offset = u->sizes.offset == 8 ? cursor_u64(&in) : cursor_u32(&in);
	if (u->sizes.version < 5)
		u->sizes.addr = cursor_u8(&in);
	if (u->type == UNIT_TYPE_SKELETON || u->type == UNIT_TYPE_SPLIT_COMPILE)
		u->dwo_id = cursor_u64(&in);
	if (u->type == UNIT_TYPE_TYPE || u->type == UNIT_TYPE_SPLIT_TYPE)
		cursor_skip(&in, 8u + u->sizes.offset);
	if (in.failed)
		return "the unit is shorter than its header";
	if (u->sizes.addr != 4 && u->sizes.addr != 8)
		return "the unit has addresses of a size that is not known";
	u->first_die = u->end - cursor_left(&in);
	return NULL;
}

static void read_headers(struct unit_set *set, const struct note_sink *notes)
{
	struct span info = set->sections.of[DEBUG_INFO];
	struct cursor c = cursor_of(info);

	while (cursor_left(&c)) {
		uint64_t offset = info.n - cursor_left(&c);
		struct debug_unit u = {.set = set, .line_offset = NO_LINES};
		const char *why = read_header(&u, &c, offset);

		if (why)
			note(notes, offset, why);
		else
			vec_push(&set->units, u);
		if (c.failed)
			return;
	}
}

/* The order in which tables are made: by place, then by what they are compiled for. */
static int order_units(const void *a, const void *b)
{
	const struct debug_unit *x = *(const struct debug_unit *const *)a;
	const struct debug_unit *y = *(const struct debug_unit *const *)b;
	uint32_t p = x->sizes.addr | (uint32_t)x->sizes.offset << 8 | (x->sizes.version == 2) << 16;
	uint32_t q = y->sizes.addr | (uint32_t)y->sizes.offset << 8 | (y->sizes.version == 2) << 16;

	return ORDER(x->abbrev_offset, y->abbrev_offset) ?: ORDER(p, q);
}

/* Makes each table once. A table ends where the next begins, so that tables which a hostile file
 * lets overlap are not read again and again. */
static void read_tables(struct unit_set *set, const struct note_sink *notes)
{
	struct span bytes = set->sections.of[DEBUG_ABBREV];
	size_t n = set->units.n, n_tables = 0;
	struct debug_unit **by_table = mem_calloc(n, sizeof(*by_table));
	uint32_t *table_of = mem_calloc(n, sizeof(*table_of)); /* + 1; 0 = not readable */
	uint64_t end = bytes.n;

	for (size_t i = 0; i < n; i++)
		by_table[i] = &set->units.v[i];
	qsort(by_table, n, sizeof(*by_table), order_units);
	for (size_t i = n; i-- > 0;) { /* from the last, to know where the next begins */
		struct debug_unit *u = by_table[i];
		struct abbrev_table t;
		struct err err;

		if (i + 1 < n && by_table[i + 1]->abbrev_offset != u->abbrev_offset)
			end = by_table[i + 1]->abbrev_offset;
		if (i + 1 < n && !order_units(&by_table[i], &by_table[i + 1])) {
			table_of[i] = table_of[i + 1];
			continue;
		}
		if (end > bytes.n)
			end = bytes.n;
		if (u->abbrev_offset >= end) {
			note(notes, u->offset,
				"the unit's abbreviations lie outside their section");
		} else if (abbrev_table_init(&t,
				   span_sub(bytes, u->abbrev_offset, end - u->abbrev_offset),
				   u->abbrev_offset, u->sizes, &err) < 0) {
			if (notes)
				dwarf_debug_note(notes->debug, "%s%s", notes->prefix, err.text);
		} else {
			vec_push(&set->tables, t);
			table_of[i] = (uint32_t)++n_tables;
		}
	}
	for (size_t i = 0; i < n; i++)
		if (table_of[i])
			by_table[i]->abbrevs = &set->tables.v[table_of[i] - 1];
	free(table_of);
	free(by_table);
}

/* Where tables begin when the root does not say: behind the header of the first one, which is what
 * split units rely on. Before DWARF 5 such tables have no header. */
static void default_bases(struct debug_unit *u)
{
	uint64_t length = u->sizes.offset == 8 ? 12 : 4;

	if (u->sizes.version < 5)
		return;
	u->str_offsets_base = length + 4;
	u->addr_base = length + 4;
	u->rnglists_base = length + 8;
	u->loclists_base = length + 8;
}

static void slot_number(const struct die_attrs *a, enum die_slot slot, uint64_t *to)
{
	if (die_has(a, slot))
		*to = a->value[slot];
}

/* DWARF 5 table 7.17, and those that came later */
static bool language_mangles(uint64_t language)
{
	switch (language) {
	case 0x0001: /* C89 */
	case 0x0002: /* C */
	case 0x0003: /* Ada 83 */
	case 0x0005: /* Cobol 74 */
	case 0x0006: /* Cobol 85 */
	case 0x0007: /* Fortran 77 */
	case 0x0009: /* Pascal 83 */
	case 0x000c: /* C99 */
	case 0x000f: /* PL/I */
	case 0x0012: /* UPC */
	case 0x001d: /* C11 */
	case 0x002c: /* C17 */
	case 0x8001: /* assembler */
		return false;
	default:
		return true;
	}
}

static bool read_root(struct debug_unit *u)
{
	uint64_t n_bytes;
	const struct abbrev *a = debug_unit_entry(u, u->first_die, &u->root, &n_bytes);

	if (!a) {
		u->root.has = 0;
		return false;
	}
	default_bases(u);
	u->has_linkage_names =
		die_has(&u->root, SLOT_LANGUAGE) && language_mangles(u->root.value[SLOT_LANGUAGE]);
	slot_number(&u->root, SLOT_STR_OFFSETS_BASE, &u->str_offsets_base);
	slot_number(&u->root, SLOT_ADDR_BASE, &u->addr_base);
	slot_number(&u->root, SLOT_RNGLISTS_BASE, &u->rnglists_base);
	slot_number(&u->root, SLOT_LOCLISTS_BASE, &u->loclists_base);
	slot_number(&u->root, SLOT_GNU_RANGES_BASE, &u->ranges_base);
	slot_number(&u->root, SLOT_STMT_LIST, &u->line_offset);
	if (u->sizes.version < 5) {
		slot_number(&u->root, SLOT_DWO_ID, &u->dwo_id);
		if (a->tag == TAG_PARTIAL_UNIT)
			u->type = UNIT_TYPE_PARTIAL;
		else if (u->is_split)
			u->type = UNIT_TYPE_SPLIT_COMPILE;
		else
			u->type = die_has(&u->root, SLOT_DWO_NAME) ? UNIT_TYPE_SKELETON
								   : UNIT_TYPE_COMPILE;
	}
	debug_unit_slot_text(u, &u->root, SLOT_COMP_DIR, &u->comp_dir);
	debug_unit_slot_addr(u, &u->root, SLOT_LOW_PC, &u->low_pc);
	return true;
}

void unit_set_read(struct unit_set *set, bool is_split, const struct note_sink *notes)
{
	read_headers(set, notes);
	if (!set->units.n)
		return;
	read_tables(set, notes);
	for (size_t i = 0; i < set->units.n; i++) {
		struct debug_unit *u = &set->units.v[i];

		u->is_split = is_split;
		if (!read_root(u) && u->abbrevs)
			note(notes, u->offset, "the unit's root entry cannot be read");
	}
}

void unit_set_release(struct unit_set *set)
{
	for (size_t i = 0; i < set->tables.n; i++)
		abbrev_table_release(&set->tables.v[i]);
	vec_release(&set->tables);
	vec_release(&set->units);
}

const struct debug_unit *unit_set_find(const struct unit_set *set, uint64_t offset)
{
	size_t low = SEARCH(0, set->units.n, middle, set->units.v[middle].end <= offset);

	return low < set->units.n && set->units.v[low].first_die <= offset ? &set->units.v[low]
									   : NULL;
}

const struct abbrev *debug_unit_entry(
	const struct debug_unit *u, uint64_t offset, struct die_attrs *out, uint64_t *n_bytes)
{
	struct span info = u->set->sections.of[DEBUG_INFO];
	const uint8_t *start, *p, *end;
	const struct abbrev *a;
	uint64_t code;

	*n_bytes = 0;
	if (!u->abbrevs || offset < u->first_die || offset >= u->end)
		return NULL;
	start = info.p + offset;
	end = u->end - offset > ENTRY_BYTES_MAX ? start + ENTRY_BYTES_MAX : info.p + u->end;
	p = form_uleb(start, end, &code);
	a = p ? abbrev_table_find(u->abbrevs, code) : NULL;
	p = a ? abbrev_read(u->abbrevs, a, p, end, out) : NULL;
	*n_bytes = (uint64_t)((p ? p : end) - start);
	return p ? a : NULL;
}

static bool text_at(struct span section, uint64_t offset, struct dwarf_text *out)
{
	const uint8_t *p, *nul;
	size_t n;

	if (offset >= section.n)
		return false;
	p = section.p + offset;
	n = section.n - (size_t)offset;
	if (n > DWARF_TEXT_MAX)
		n = DWARF_TEXT_MAX;
	nul = memchr(p, 0, n);
	*out = (struct dwarf_text){(const char *)p, (uint32_t)(nul ? (size_t)(nul - p) : n)};
	return true;
}

static bool indexed_text(const struct debug_unit *u, uint64_t index, struct dwarf_text *out)
{
	uint64_t offset;

	return table_word(u->set->sections.of[DEBUG_STR_OFFSETS], u->str_offsets_base, index,
		       u->sizes.offset, &offset) &&
	       text_at(u->set->sections.of[DEBUG_STR], offset, out);
}

bool debug_unit_text(
	const struct debug_unit *u, uint16_t form, uint64_t value, struct dwarf_text *out)
{
	const char *text;

	switch (form) {
	case FORM_STRING:
		text = (const char *)(uintptr_t)value;
		*out = (struct dwarf_text){text, (uint32_t)strnlen(text, DWARF_TEXT_MAX)};
		return true;
	case FORM_STRP:
		return text_at(u->set->sections.of[DEBUG_STR], value, out);
	case FORM_LINE_STRP:
		return text_at(u->set->sections.of[DEBUG_LINE_STR], value, out);
	case FORM_STRP_SUP:
	case FORM_GNU_STRP_ALT:
		return u->set->alt && text_at(u->set->alt->sections.of[DEBUG_STR], value, out);
	case FORM_STRX:
	case FORM_STRX1:
	case FORM_STRX2:
	case FORM_STRX3:
	case FORM_STRX4:
	case FORM_GNU_STR_INDEX:
		return indexed_text(u, value, out);
	default:
		return false;
	}
}

bool debug_unit_addr(const struct debug_unit *u, uint16_t form, uint64_t value, uint64_t *out)
{
	if (form == FORM_ADDR) {
		*out = value;
		return true;
	}
	return form_is_addr(form) && table_word(u->set->sections.of[DEBUG_ADDR], u->addr_base,
					     value, u->sizes.addr, out);
}

bool debug_unit_ref(const struct debug_unit *u, uint16_t form, uint64_t value, struct die_ref *out)
{
	switch (form) {
	case FORM_REF1:
	case FORM_REF2:
	case FORM_REF4:
	case FORM_REF8:
	case FORM_REF_UDATA:
		*out = (struct die_ref){u->set, u->offset + value};
		return value < u->end - u->offset;
	case FORM_REF_ADDR:
		*out = (struct die_ref){u->set, value};
		return true;
	case FORM_REF_SUP4:
	case FORM_REF_SUP8:
	case FORM_GNU_REF_ALT:
		*out = (struct die_ref){u->set->alt, value};
		return u->set->alt != NULL;
	default: /* FORM_REF_SIG8: a type, which has no code and no function's name */
		return false;
	}
}
