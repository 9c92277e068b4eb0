/* SPDX-License-Identifier: MIT */
/*
 * The sections of lists are large and rarely asked for, so they are looked up (and uncompressed)
 * when the first list of a file is read. Those of packages of split units (.dwp) are not read.
 */
#include "dwarf/location_list.h"

#include "dwarf/attr_form.h"
#include "dwarf/debug_info.h"

#define ENTRIES_MAX 100000 /* of one list */

enum { /* DW_LLE_* */
	LLE_END,
	LLE_BASE_X,
	LLE_START_END_X,
	LLE_START_LENGTH_X,
	LLE_OFFSETS,
	LLE_DEFAULT,
	LLE_BASE,
	LLE_START_END,
	LLE_START_LENGTH,
	LLE_VIEWS /* of GNU: numbers of views, in front of an entry */
};

void location_lists_release(struct location_lists *l)
{
	map_release(&l->known);
	vec_release(&l->sections);
}

/* The file that a set of units is from: the image's own, or a .dwo. */
static struct dwarf_file *file_of(struct dwarf_debug *debug, const struct unit_set *set)
{
	if (set == &debug->units)
		return &debug->file;
	for (size_t i = 0; i < debug->splits.n; i++)
		if (set == &debug->splits.v[i]->units)
			return &debug->splits.v[i]->file;
	return NULL;
}

static struct location_sections sections_of(struct location_lists *l, const struct unit_set *set)
{
	struct location_sections s = {{NULL, 0}, {NULL, 0}};
	struct dwarf_file *file;
	struct err err = {0};
	uint64_t *at;
	bool is_new;

	at = map_ensure(&l->known, (uintptr_t)set, &is_new);
	if (!is_new)
		return l->sections.v[*at];
	*at = l->sections.n;
	file = file_of(l->debug, set);
	if (file && file == &l->debug->file) {
		dwarf_file_section(file, ".debug_loc", &s.loc, &err);
		dwarf_file_section(file, ".debug_loclists", &s.loclists, &err);
	} else if (file) {
		dwarf_file_section(file, ".debug_loc.dwo", &s.loc, &err);
		dwarf_file_section(file, ".debug_loclists.dwo", &s.loclists, &err);
	}
	vec_push(&l->sections, s);
	return s;
}

/* One list while it is read. */
struct list {
	const struct debug_unit *unit;
	struct cursor c;
	uint64_t base, addr;
	struct span expression; /* that of the address, once it is found */
	uint64_t next_start;	/* of the first entry behind the address: UINT64_MAX is none */
	struct span next;
};

/* False when the entry is not that of the address. */
static bool look_at(struct list *l, uint64_t start, uint64_t end, struct span expression)
{
	if (start > l->addr && start < l->next_start && end > start) {
		l->next_start = start;
		l->next = expression;
	}
	if (l->addr < start || l->addr >= end)
		return false;
	l->expression = expression;
	return true;
}

static uint64_t take_addr(struct list *l)
{
	return l->unit->sizes.addr == 8 ? cursor_u64(&l->c) : cursor_u32(&l->c);
}

static uint64_t take_addrx(struct list *l)
{
	uint64_t v = 0;

	if (!debug_unit_addr(l->unit, FORM_ADDRX, cursor_uleb(&l->c), &v))
		l->c.failed = true;
	return v;
}

/* What holds where no other entry does; entries for an address come before it or behind it. */
struct range {
	uint64_t start, end;
	bool is_default;
};

/* False for an entry without a location; LLE_END is the caller's. */
static bool take_range(struct list *l, uint8_t kind, struct range *r)
{
	*r = (struct range){0, 0, false};
	switch (kind) {
	case LLE_VIEWS:
		cursor_uleb(&l->c);
		cursor_uleb(&l->c);
		return false;
	case LLE_BASE_X:
		l->base = take_addrx(l);
		return false;
	case LLE_BASE:
		l->base = take_addr(l);
		return false;
	case LLE_START_END_X:
		r->start = take_addrx(l);
		r->end = take_addrx(l);
		return true;
	case LLE_START_LENGTH_X:
		r->start = take_addrx(l);
		r->end = r->start + cursor_uleb(&l->c);
		return true;
	case LLE_OFFSETS:
		r->start = l->base + cursor_uleb(&l->c);
		r->end = l->base + cursor_uleb(&l->c);
		return true;
	case LLE_START_END:
		r->start = take_addr(l);
		r->end = take_addr(l);
		return true;
	case LLE_START_LENGTH:
		r->start = take_addr(l);
		r->end = r->start + cursor_uleb(&l->c);
		return true;
	case LLE_DEFAULT:
		r->is_default = true;
		return true;
	default:
		l->c.failed = true;
		return false;
	}
}

static enum location_answer find_5(struct list *l)
{
	enum location_answer answer = LOCATION_NOT_HERE;

	for (int i = 0; i < ENTRIES_MAX; i++) {
		uint8_t kind = cursor_u8(&l->c);
		struct span expression;
		struct range r;

		if (l->c.failed)
			return LOCATION_UNREADABLE;
		if (kind == LLE_END)
			return answer;
		if (!take_range(l, kind, &r))
			continue;
		expression = cursor_bytes(&l->c, cursor_uleb(&l->c));
		if (l->c.failed)
			return LOCATION_UNREADABLE;
		if (!r.is_default && look_at(l, r.start, r.end, expression))
			return LOCATION_HERE;
		if (r.is_default) {
			l->expression = expression;
			answer = LOCATION_HERE;
		}
	}
	return LOCATION_UNREADABLE;
}

static enum location_answer find_4(struct list *l)
{
	uint64_t highest = l->unit->sizes.addr == 8 ? UINT64_MAX : UINT32_MAX;

	for (int i = 0; i < ENTRIES_MAX; i++) {
		uint64_t start = take_addr(l), end = take_addr(l);
		struct span expression;

		if (l->c.failed)
			return LOCATION_UNREADABLE;
		if (!start && !end)
			return LOCATION_NOT_HERE;
		if (start == highest) {
			l->base = end;
			continue;
		}
		expression = cursor_bytes(&l->c, cursor_u16(&l->c));
		if (l->c.failed)
			return LOCATION_UNREADABLE;
		if (look_at(l, l->base + start, l->base + end, expression))
			return LOCATION_HERE;
	}
	return LOCATION_UNREADABLE;
}

/* Split units before DWARF 5, as GNU has them: addresses are numbers in .debug_addr. */
static enum location_answer find_split_4(struct list *l)
{
	enum { END, BASE, START_END, START_LENGTH };

	for (int i = 0; i < ENTRIES_MAX; i++) {
		uint8_t kind = cursor_u8(&l->c);
		uint64_t start, end;
		struct span expression;

		if (kind == END && !l->c.failed)
			return LOCATION_NOT_HERE;
		start = take_addrx(l);
		if (kind == BASE)
			continue;
		end = kind == START_END ? take_addrx(l) : start + cursor_u32(&l->c);
		expression = cursor_bytes(&l->c, cursor_u16(&l->c));
		if (l->c.failed || kind > START_LENGTH)
			return LOCATION_UNREADABLE;
		if (look_at(l, start, end, expression))
			return LOCATION_HERE;
	}
	return LOCATION_UNREADABLE;
}

/* Where the list of an attribute begins in its section. */
static bool list_offset(const struct die *d, enum die_attr attr, struct span section, uint64_t *at)
{
	const struct debug_unit *u = d->unit;

	*at = d->value[attr];
	switch (d->form[attr]) {
	case FORM_LOCLISTX:
		if (!table_word(section, u->loclists_base, *at, u->sizes.offset, at))
			return false;
		*at += u->loclists_base;
		break;
	case FORM_SEC_OFFSET:
	case FORM_DATA4: /* before DWARF 4 */
	case FORM_DATA8:
		break;
	default:
		return false;
	}
	return *at < section.n;
}

static enum location_answer read_list(
	struct location_lists *l, const struct die *d, enum die_attr attr, struct list *list)
{
	bool is_5 = d->unit->sizes.version >= 5;
	struct location_sections s = sections_of(l, d->unit->set);
	struct span section = is_5 ? s.loclists : s.loc;
	uint64_t at;

	if (!list_offset(d, attr, section, &at))
		return LOCATION_UNREADABLE;
	list->c = cursor_of(span_sub(section, at, section.n - at));
	if (is_5)
		return find_5(list);
	return d->unit->is_split ? find_split_4(list) : find_4(list);
}

static struct list list_at(const struct die *d, uint64_t addr)
{
	return (struct list){
		.unit = d->unit, .base = d->unit->low_pc, .addr = addr, .next_start = UINT64_MAX};
}

enum location_answer location_find(struct location_lists *l, const struct die *d,
	enum die_attr attr, uint64_t addr, struct span *expression)
{
	struct list list = list_at(d, addr);
	enum location_answer answer;

	if (!die_says(d, attr))
		return LOCATION_NONE;
	if (die_block(d, attr, expression))
		return LOCATION_EVERYWHERE;
	answer = read_list(l, d, attr, &list);
	if (answer == LOCATION_HERE)
		*expression = list.expression;
	return answer;
}

bool location_next(struct location_lists *l, const struct die *d, enum die_attr attr, uint64_t addr,
	uint64_t *start, struct span *expression)
{
	struct list list = list_at(d, addr);
	struct span block;

	if (!die_says(d, attr) || die_block(d, attr, &block) ||
		read_list(l, d, attr, &list) != LOCATION_NOT_HERE || list.next_start == UINT64_MAX)
		return false;
	*start = list.next_start;
	*expression = list.next;
	return true;
}
