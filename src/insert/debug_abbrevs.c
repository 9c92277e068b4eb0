/* SPDX-License-Identifier: MIT */
#include "insert/debug_abbrevs.h"

#include <stdlib.h>

#include "base/order.h"
#include "base/search.h"
#include "dwarf/abbrev.h"

/* Tables do not overlap, but units of another version read theirs again. */
#define BYTES_TIMES_MAX 4
#define BYTES_EXTRA	4096
#define FIXED_MAX	(1u << 30) /* bytes of an entry */

static enum debug_attr attr_of(uint64_t name, uint64_t form, struct form_sizes sizes)
{
	static const uint8_t attrs[] = {
		[0x11] = DEBUG_ATTR_LOW_PC,
		[0x12] = DEBUG_ATTR_HIGH_PC,
		[0x2c] = DEBUG_ATTR_START_SCOPE,
		[0x52] = DEBUG_ATTR_ENTRY_PC,
		[0x55] = DEBUG_ATTR_RANGES,
		[0x73] = DEBUG_ATTR_ADDR_BASE,
		[0x74] = DEBUG_ATTR_LIST_BASE, /* DW_AT_rnglists_base */
		[0x8c] = DEBUG_ATTR_LIST_BASE, /* DW_AT_loclists_base */
	};

	if (name < sizeof(attrs) && attrs[name])
		return (enum debug_attr)attrs[name];
	if (name == 0x2133) /* DW_AT_GNU_addr_base */
		return DEBUG_ATTR_ADDR_BASE;
	/* DW_AT_GNU_ranges_base: added to offsets in another file; DW_AT_GNU_locviews: numbers that
	 * are no addresses. */
	if (name == 0x2132 || name == 0x2137)
		return DEBUG_ATTR_NONE;
	/* Before DWARF 4 offsets had the forms of constants; the relocation tells them apart. */
	if (form == FORM_SEC_OFFSET || form == FORM_INDIRECT ||
		(sizes.version < 4 && (form == FORM_DATA4 || form == FORM_DATA8)))
		return DEBUG_ATTR_OFFSET;
	if (form >= FORM_REF1 && form <= FORM_REF_UDATA)
		return DEBUG_ATTR_REF;
	return DEBUG_ATTR_NONE;
}

/* An abbreviation being compiled. */
struct compiler {
	struct debug_abbrev_table *table;
	struct debug_abbrev abbrev;
	uint64_t fixed; /* bytes since the last step */
	uint32_t seen;	/* bit for each single attribute */
};

static void add_step(struct compiler *c, struct debug_abbrev_step step)
{
	step.fixed = (uint32_t)c->fixed;
	vec_push(&c->table->steps, step);
	c->abbrev.n_steps++;
	c->fixed = 0;
}

static void add_attribute(struct compiler *c, uint64_t name, uint64_t form, int64_t implicit)
{
	enum form_how how = form_how(form, c->table->sizes);
	enum debug_attr attr = attr_of(name, form, c->table->sizes);
	int n = form_fixed_bytes(how);

	if (how == HOW_UNKNOWN || c->fixed > FIXED_MAX)
		c->abbrev.is_unknown = true;
	c->table->has_blocks |= how >= HOW_BLOCK1 && how <= HOW_INDIRECT;
	if (attr < DEBUG_N_SINGLE && attr) {
		/* A unit has a base for each kind of list. */
		if (attr != DEBUG_ATTR_LIST_BASE && (c->seen >> attr & 1))
			attr = DEBUG_ATTR_NONE;
		c->seen |= 1u << attr;
	}
	if (attr == DEBUG_ATTR_LIST_BASE && n <= 0)
		attr = DEBUG_ATTR_NONE;
	if (!attr && n >= 0)
		c->fixed += (uint64_t)n;
	else
		add_step(c, (struct debug_abbrev_step){
				    .form = (uint16_t)form,
				    .how = (uint8_t)how,
				    .attr = (uint8_t)attr,
				    .implicit = implicit,
			    });
}

/* The abbreviation whose code has been read. */
static bool compile(struct compiler *c, struct cursor *in)
{
	struct abbrev_attr a;

	cursor_uleb(in); /* tag */
	cursor_u8(in);	 /* has children */
	c->abbrev.first_step = (uint32_t)c->table->steps.n;
	while (abbrev_next_attr(in, &a))
		add_attribute(c, a.name, a.form, a.implicit);
	if (in->failed)
		return false;
	if (c->fixed)
		add_step(c,
			(struct debug_abbrev_step){.form = FORM_FLAG_PRESENT, .how = HOW_NOTHING});
	return true;
}

ORDER_BY(order_codes, struct debug_abbrev, code)

static int compile_table(
	struct debug_abbrev_table *t, struct span bytes, uint64_t *n_read, struct err *err)
{
	struct cursor in = cursor_of(bytes);

	for (;;) {
		struct compiler c = {.table = t};
		uint64_t code = cursor_uleb(&in);

		*n_read = bytes.n - cursor_left(&in);
		if (!code && !in.failed)
			break;
		c.abbrev.code = code;
		if (in.failed || !compile(&c, &in))
			return err_set(err, ERR_FORMAT,
				".debug_abbrev+0x%llx: the table has no end",
				(unsigned long long)t->offset);
		vec_push(&t->abbrevs, c.abbrev);
	}
	vec_sort(&t->abbrevs, order_codes);
	return 0;
}

static void release_table(struct debug_abbrev_table *t)
{
	vec_release(&t->abbrevs);
	vec_release(&t->steps);
}

void debug_abbrevs_release(struct debug_abbrevs *a)
{
	for (size_t i = 0; i < a->tables.n; i++)
		release_table(&a->tables.v[i]);
	vec_release(&a->tables);
	map_release(&a->known);
}

int debug_abbrevs_get(struct debug_abbrevs *a, uint32_t section, struct span bytes, uint64_t offset,
	struct form_sizes sizes, const struct debug_abbrev_table **table, struct err *err)
{
	struct debug_abbrev_table t = {.offset = offset, .sizes = sizes};
	uint64_t key =
		(uint64_t)section << 44 | offset << 4 | (sizes.offset == 8) << 3 | sizes.version;
	uint64_t n = 0, *index;
	int ret;

	if (offset > bytes.n)
		return err_set(err, ERR_FORMAT, ".debug_abbrev+0x%llx: there is no such table",
			(unsigned long long)offset);
	index = map_find(&a->known, key);
	if (index) {
		*table = &a->tables.v[*index];
		return 0;
	}
	if (a->n_bytes > BYTES_TIMES_MAX * (uint64_t)bytes.n + BYTES_EXTRA)
		return err_set(err, ERR_LIMIT, ".debug_abbrev: the tables overlap");
	ret = compile_table(&t, span_sub(bytes, offset, bytes.n - offset), &n, err);
	a->n_bytes += n;
	if (ret < 0) {
		release_table(&t);
		return ret;
	}
	*map_ensure(&a->known, key, NULL) = a->tables.n;
	vec_push(&a->tables, t);
	*table = &a->tables.v[a->tables.n - 1];
	return 0;
}

const struct debug_abbrev *debug_abbrev_find(const struct debug_abbrev_table *t, uint64_t code)
{
	size_t low;

	/* Compilers count from 1. */
	if (code - 1 < t->abbrevs.n && t->abbrevs.v[code - 1].code == code)
		return &t->abbrevs.v[code - 1];
	low = SEARCH(0, t->abbrevs.n, i, t->abbrevs.v[i].code < code);
	return low < t->abbrevs.n && t->abbrevs.v[low].code == code ? &t->abbrevs.v[low] : NULL;
}
