/* SPDX-License-Identifier: MIT */
/*
 * .debug_ranges (DWARF 4 section 2.17.3) and .debug_rnglists (DWARF 5 section 2.17.3).
 *
 * Code that the linker dropped leaves its ranges behind, moved to address 0 (GNU ld), 1 (GNU ld, in
 * .debug_ranges, where 0 would end the list), -1 or -2 (lld). Ranges relative to such a base are
 * dropped with it, since base + offset might hit real code.
 */
#include "dwarf/range_list.h"

#include <elf.h>
#include <stdlib.h>

#include "base/order.h"
#include "base/search.h"

enum {
	RLE_END_OF_LIST = 0,
	RLE_BASE_ADDRESSX = 1,
	RLE_STARTX_ENDX = 2,
	RLE_STARTX_LENGTH = 3,
	RLE_OFFSET_PAIR = 4,
	RLE_BASE_ADDRESS = 5,
	RLE_START_END = 6,
	RLE_START_LENGTH = 7
};

ORDER_BY(order_ranges, struct addr_range, start)

void code_extents_init(struct code_extents *e, const struct elf_file *elf)
{
	size_t n = 0;

	for (size_t i = 0; i < elf->n_segments; i++) {
		const struct elf_segment *s = &elf->segments[i];
		uint64_t end = s->addr.v + s->mem_size;

		if (s->type == PT_LOAD && (s->flags & PF_X) && end > s->addr.v)
			vec_push(&e->parts, ((struct addr_range){s->addr.v, end}));
	}
	vec_sort(&e->parts, order_ranges);
	for (size_t i = 0; i < e->parts.n; i++) {
		struct addr_range part = e->parts.v[i];

		if (n && part.start <= e->parts.v[n - 1].end) {
			if (part.end > e->parts.v[n - 1].end)
				e->parts.v[n - 1].end = part.end;
		} else {
			e->parts.v[n++] = part;
		}
	}
	e->parts.n = n;
	/* A segment at 0 most often holds the ELF header there; only a section tells. */
	for (size_t i = 0; i < elf->n_sections; i++) {
		const struct elf_section *s = &elf->sections[i];

		if ((s->flags & SHF_ALLOC) && (s->flags & SHF_EXECINSTR) && !s->addr.v && s->size)
			e->zero_is_code = true;
	}
}

static bool is_dropped(const struct code_extents *e, uint64_t addr)
{
	return (!addr && !e->zero_is_code) || addr >= UINT64_MAX - 1 || addr == UINT32_MAX ||
	       addr == UINT32_MAX - 1;
}

bool code_extents_clip(const struct code_extents *e, struct addr_range *range)
{
	size_t low;

	if (is_dropped(e, range->start) || range->end <= range->start)
		return false;
	if (!e->parts.n)
		return true; /* no program headers: nothing to judge by */
	low = SEARCH(0, e->parts.n, middle, e->parts.v[middle].end <= range->start);
	if (low == e->parts.n || range->start < e->parts.v[low].start)
		return false;
	if (range->end > e->parts.v[low].end)
		range->end = e->parts.v[low].end;
	return true;
}

static void add(struct range_reader *r, uint64_t start, uint64_t end)
{
	struct addr_range range = {start, end};

	if (code_extents_clip(r->extents, &range))
		vec_push(&r->ranges, range);
}

static bool spend(struct range_reader *r)
{
	if (!r->budget) {
		r->is_cut = true;
		return false;
	}
	r->budget--;
	return true;
}

static void read_ranges_4(struct range_reader *r, const struct debug_unit *u, uint64_t offset)
{
	struct span section = u->set->sections.of[DEBUG_RANGES];
	uint64_t base = u->low_pc, highest = u->sizes.addr == 8 ? UINT64_MAX : UINT32_MAX;
	size_t pair = 2u * u->sizes.addr;
	bool is_gone = false;

	/* Split units of DWARF 4 count from what their skeleton says. */
	if (u->is_split)
		offset += u->ranges_base;
	for (; offset < section.n && section.n - offset >= pair && spend(r); offset += pair) {
		uint64_t start = bytes_word(section.p + offset, u->sizes.addr);
		uint64_t end = bytes_word(section.p + offset + u->sizes.addr, u->sizes.addr);

		if (!start && !end)
			return;
		if (start == highest) {
			base = end;
			/* A base of 0 may be meant: addresses behind it are absolute then. */
			is_gone = base == 1 || (base && is_dropped(r->extents, base));
		} else if (!is_gone && !(start == 1 && !base)) {
			add(r, base + start, base + end);
		}
	}
	r->is_cut = true; /* it had no end */
}

/* State of one DWARF 5 list. */
struct list {
	const struct debug_unit *unit;
	const uint8_t *p, *end; /* p is NULL after damage */
	uint64_t base;
	bool base_is_gone;
};

static uint64_t list_uleb(struct list *l)
{
	uint64_t v = 0;

	l->p = l->p ? form_uleb(l->p, l->end, &v) : NULL;
	return v;
}

static uint64_t list_addr(struct list *l)
{
	uint64_t v = 0;
	uint8_t n = l->unit->sizes.addr;

	if (!l->p || l->end - l->p < n) {
		l->p = NULL;
		return 0;
	}
	v = bytes_word(l->p, n);
	l->p += n;
	return v;
}

static uint64_t list_addrx(struct list *l)
{
	uint64_t v = 0;

	if (!debug_unit_addr(l->unit, FORM_ADDRX, list_uleb(l), &v))
		l->p = NULL;
	return v;
}

static void set_base(struct range_reader *r, struct list *l, uint64_t base)
{
	l->base = base;
	l->base_is_gone = is_dropped(r->extents, base);
}

/* False at the end of the list. */
static bool read_entry_5(struct range_reader *r, struct list *l)
{
	uint64_t start, end;

	switch (*l->p++) {
	case RLE_END_OF_LIST:
		return false;
	case RLE_BASE_ADDRESSX:
		set_base(r, l, list_addrx(l));
		return true;
	case RLE_BASE_ADDRESS:
		set_base(r, l, list_addr(l));
		return true;
	case RLE_STARTX_ENDX:
		start = list_addrx(l);
		end = list_addrx(l);
		break;
	case RLE_STARTX_LENGTH:
		start = list_addrx(l);
		end = start + list_uleb(l);
		break;
	case RLE_OFFSET_PAIR:
		start = l->base + list_uleb(l);
		end = l->base + list_uleb(l);
		if (l->base_is_gone)
			return true;
		break;
	case RLE_START_END:
		start = list_addr(l);
		end = list_addr(l);
		break;
	case RLE_START_LENGTH:
		start = list_addr(l);
		end = start + list_uleb(l);
		break;
	default:
		l->p = NULL;
		return true;
	}
	if (l->p)
		add(r, start, end);
	return true;
}

static void read_ranges_5(struct range_reader *r, const struct debug_unit *u, uint64_t offset)
{
	struct span section = u->set->sections.of[DEBUG_RNGLISTS];
	struct list l = {.unit = u, .base = u->low_pc};

	if (offset >= section.n) {
		r->is_cut = true;
		return;
	}
	l.p = section.p + offset;
	l.end = section.p + section.n;
	while (l.p && l.p < l.end && spend(r))
		if (!read_entry_5(r, &l))
			return;
	r->is_cut = true;
}

/* DW_FORM_rnglistx: a number in the table of offsets at the unit's base. */
static bool indexed_list(const struct debug_unit *u, uint64_t index, uint64_t *offset)
{
	if (!table_word(u->set->sections.of[DEBUG_RNGLISTS], u->rnglists_base, index,
		    u->sizes.offset, offset))
		return false;
	*offset += u->rnglists_base;
	return true;
}

bool range_reader_entry(
	struct range_reader *r, const struct debug_unit *u, const struct die_attrs *a)
{
	uint64_t low, high, offset;

	r->ranges.n = 0;
	if (die_has(a, SLOT_RANGES)) {
		offset = a->value[SLOT_RANGES];
		if (a->form[SLOT_RANGES] == FORM_RNGLISTX && !indexed_list(u, offset, &offset))
			r->is_cut = true;
		else if (u->sizes.version >= 5)
			read_ranges_5(r, u, offset);
		else
			read_ranges_4(r, u, offset);
		return true;
	}
	if (!die_has(a, SLOT_HIGH_PC) || !debug_unit_slot_addr(u, a, SLOT_LOW_PC, &low))
		return false;
	/* DWARF 4 and later: a constant is a length. */
	if (!debug_unit_slot_addr(u, a, SLOT_HIGH_PC, &high))
		high = low + a->value[SLOT_HIGH_PC];
	add(r, low, high);
	return true;
}
