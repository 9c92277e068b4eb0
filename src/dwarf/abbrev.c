/* SPDX-License-Identifier: MIT */
#include "dwarf/abbrev.h"

#include <stdlib.h>

#include "base/search.h"

#define ABBREV_FIXED_MAX    (1u << 30) /* bytes of an entry's values */
#define ABBREV_DIRECT_EXTRA 16	       /* a table by code may have this many holes, */
#define ABBREV_DIRECT_TIMES 4	       /* and this many times the codes in use */

static enum die_slot slot_of(uint64_t attr)
{
	switch (attr) {
	case 0x03:
		return SLOT_NAME;
	case 0x10:
		return SLOT_STMT_LIST;
	case 0x11:
		return SLOT_LOW_PC;
	case 0x12:
		return SLOT_HIGH_PC;
	case 0x13:
		return SLOT_LANGUAGE;
	case 0x1b:
		return SLOT_COMP_DIR;
	case 0x31:
		return SLOT_ABSTRACT_ORIGIN;
	case 0x47:
		return SLOT_SPECIFICATION;
	case 0x52:
		return SLOT_ENTRY_PC;
	case 0x55:
		return SLOT_RANGES;
	case 0x58:
		return SLOT_CALL_FILE;
	case 0x59:
		return SLOT_CALL_LINE;
	case 0x6e:
	case 0x2007: /* DW_AT_MIPS_linkage_name, before DWARF 4 */
		return SLOT_LINKAGE_NAME;
	case 0x72:
		return SLOT_STR_OFFSETS_BASE;
	case 0x73:
	case 0x2133: /* DW_AT_GNU_addr_base */
		return SLOT_ADDR_BASE;
	case 0x74:
		return SLOT_RNGLISTS_BASE;
	case 0x76:
	case 0x2130: /* DW_AT_GNU_dwo_name */
		return SLOT_DWO_NAME;
	case 0x2131:
		return SLOT_DWO_ID;
	case 0x2132:
		return SLOT_GNU_RANGES_BASE;
	default:
		return SLOT_NONE;
	}
}

#define ATTR_SIBLING 0x01

/* Entries whose children cannot be code. Structures are not among them: methods of local classes,
 * and in some languages of all, have their code inside. */
static bool tag_has_no_code(uint64_t tag)
{
	return tag == TAG_ARRAY_TYPE || tag == TAG_ENUMERATION_TYPE || tag == TAG_SUBROUTINE_TYPE ||
	       tag == TAG_CALL_SITE || tag == TAG_GNU_CALL_SITE;
}

/* One abbreviation being compiled. */
struct compiler {
	struct abbrev_table *table;
	struct abbrev abbrev;
	uint64_t pending; /* fixed bytes since the last read op */
	uint64_t seen;	  /* bit per slot */
	bool has_sibling;
	bool is_bad;
};

static void add_fixed(struct compiler *c, uint64_t n)
{
	uint32_t *fixed = c->abbrev.n_steps ? &c->table->steps.v[c->table->steps.n - 1].fixed
					    : &c->abbrev.fixed;

	if (*fixed + n > ABBREV_FIXED_MAX)
		c->is_bad = true;
	else
		*fixed += (uint32_t)n;
	c->pending += n;
}

static void add_read(struct compiler *c, struct abbrev_read read)
{
	read.skip = (uint32_t)c->pending;
	vec_push(&c->table->reads, read);
	c->abbrev.n_reads++;
	c->pending = 0;
}

static void add_attribute(struct compiler *c, uint64_t attr, uint64_t form, int64_t implicit)
{
	enum form_how how = form_how(form, c->table->sizes);
	enum die_slot slot = slot_of(attr);
	int n = form_fixed_bytes(how);

	if (how == HOW_UNKNOWN)
		c->is_bad = true;
	if (slot && (c->seen >> slot & 1))
		slot = SLOT_NONE; /* the first one counts */
	c->seen |= (uint64_t)1 << slot;
	if (attr == ATTR_SIBLING && !c->abbrev.n_steps && n > 0 && n <= 8 &&
		form != FORM_REF_ADDR) {
		c->abbrev.sibling_at = c->abbrev.fixed;
		c->abbrev.sibling_how = (uint8_t)how;
		c->has_sibling = true;
	}
	if (slot || n < 0)
		add_read(c, (struct abbrev_read){implicit, 0, (uint16_t)form, (uint8_t)how, slot});
	if (n >= 0) {
		uint64_t pending = c->pending;

		add_fixed(c, (uint64_t)n);
		if (slot)
			c->pending = pending; /* the read op steps over its value */
	} else {
		vec_push(&c->table->steps, ((struct abbrev_step){0, (uint8_t)how}));
		c->abbrev.n_steps++;
	}
}

static uint8_t kind_of(const struct compiler *c)
{
	bool has_code = c->seen & (1u << SLOT_LOW_PC | 1u << SLOT_RANGES);

	if (c->abbrev.tag == TAG_INLINED_SUBROUTINE)
		return ABBREV_KIND_INLINED;
	if (c->abbrev.tag == TAG_SUBPROGRAM && has_code)
		return ABBREV_KIND_FUNCTION;
	if (c->abbrev.has_children && c->has_sibling && tag_has_no_code(c->abbrev.tag))
		return ABBREV_KIND_LEAP;
	return ABBREV_KIND_PLAIN;
}

/* The abbreviation whose code has been read. False when the bytes run out. */
static bool compile(struct compiler *c, struct cursor *in)
{
	uint64_t tag = cursor_uleb(in);

	c->abbrev = (struct abbrev){.has_children = cursor_u8(in) != 0,
		.tag = tag && tag <= UINT16_MAX ? (uint16_t)tag : UINT16_MAX,
		.first_step = (uint32_t)c->table->steps.n,
		.first_read = (uint32_t)c->table->reads.n};
	for (;;) {
		uint64_t attr = cursor_uleb(in), form = cursor_uleb(in);
		int64_t implicit = form == FORM_IMPLICIT_CONST ? cursor_sleb(in) : 0;

		if (in->failed)
			return false;
		if (!attr && !form)
			break;
		if (form > UINT16_MAX)
			form = 0;
		add_attribute(c, attr, form, implicit);
	}
	if (c->pending)
		add_read(c, (struct abbrev_read){0, 0, FORM_FLAG_PRESENT, HOW_NOTHING, SLOT_NONE});
	c->abbrev.kind = kind_of(c);
	if (c->abbrev.kind >= ABBREV_KIND_FUNCTION)
		c->table->has_code = true;
	if (c->is_bad) /* no bytes are enough, so that using it fails */
		c->abbrev.fixed = UINT32_MAX;
	return true;
}

struct coded {
	uint64_t code;
	struct abbrev abbrev;
};

static int order_codes(const void *a, const void *b)
{
	uint64_t x = ((const struct coded *)a)->code, y = ((const struct coded *)b)->code;

	return x < y ? -1 : x > y;
}

/* Puts the abbreviations in `all` where abbrev_table_find looks for them. */
static void arrange(struct abbrev_table *t, struct coded *all, size_t n)
{
	uint64_t limit = (uint64_t)n * ABBREV_DIRECT_TIMES + ABBREV_DIRECT_EXTRA;
	uint64_t last = 0;

	for (size_t i = 0; i < n; i++)
		if (all[i].code < limit && all[i].code > last)
			last = all[i].code;
	vec_reserve(&t->direct, (size_t)last + 1);
	t->direct.n = (size_t)last + 1;
	memset(t->direct.v, 0, t->direct.n * sizeof(*t->direct.v));
	if (n)
		qsort(all, n, sizeof(*all), order_codes);
	for (size_t i = 0; i < n; i++) {
		if (all[i].code <= last) {
			t->direct.v[all[i].code] = all[i].abbrev;
			continue;
		}
		vec_push(&t->codes, all[i].code);
		vec_push(&t->sparse, all[i].abbrev);
	}
}

int abbrev_table_init(struct abbrev_table *t, struct span bytes, uint64_t offset,
	struct form_sizes sizes, struct err *err)
{
	struct cursor in = cursor_of(bytes);
	VEC(struct coded) all = {0};
	bool is_whole = false;

	*t = (struct abbrev_table){.offset = offset, .sizes = sizes};
	vec_reserve(&t->steps, 1); /* never NULL, so that readers may add to it */
	vec_reserve(&t->reads, 1);
	while (!is_whole) {
		struct compiler c = {.table = t};
		uint64_t code = cursor_uleb(&in);

		if (!code && !in.failed) {
			is_whole = true;
			break;
		}
		if (in.failed || !compile(&c, &in))
			break;
		vec_push(&all, ((struct coded){code, c.abbrev}));
	}
	arrange(t, all.v, all.n);
	vec_release(&all);
	if (is_whole)
		return 0;
	abbrev_table_release(t);
	return err_set(err, ERR_FORMAT, ".debug_abbrev+0x%llx: the table has no end",
		(unsigned long long)offset);
}

void abbrev_table_release(struct abbrev_table *t)
{
	vec_release(&t->direct);
	vec_release(&t->sparse);
	vec_release(&t->codes);
	vec_release(&t->steps);
	vec_release(&t->reads);
}

const struct abbrev *abbrev_table_find_sparse(const struct abbrev_table *t, uint64_t code)
{
	size_t low = SEARCH(0, t->codes.n, middle, t->codes.v[middle] < code);

	return low < t->codes.n && t->codes.v[low] == code ? &t->sparse.v[low] : NULL;
}

/* A value whose form is in front of it. */
static const uint8_t *read_indirect(const struct abbrev_table *t, const uint8_t *p,
	const uint8_t *end, uint16_t *form, uint64_t *value)
{
	enum form_how how;
	uint64_t real;

	p = form_uleb(p, end, &real);
	how = p && real != FORM_IMPLICIT_CONST ? form_how(real, t->sizes) : HOW_UNKNOWN;
	if (how == HOW_UNKNOWN || how == HOW_INDIRECT)
		return NULL;
	*form = (uint16_t)real;
	return form_read(p, end, how, value);
}

const uint8_t *abbrev_read(const struct abbrev_table *t, const struct abbrev *a, const uint8_t *p,
	const uint8_t *end, struct die_attrs *out)
{
	const struct abbrev_read *read = t->reads.v + a->first_read;

	out->has = 0;
	if ((size_t)(end - p) < a->fixed)
		return NULL;
	for (uint32_t n = a->n_reads; n; n--, read++) {
		uint64_t value = 0;
		uint16_t form = read->form;

		if ((size_t)(end - p) < read->skip)
			return NULL;
		p += read->skip;
		if (read->how == HOW_INDIRECT)
			p = read_indirect(t, p, end, &form, &value);
		else if (!read->slot)
			p = form_skip(p, end, read->how, t->sizes);
		else
			p = form_read(p, end, read->how, &value);
		if (!p)
			return NULL;
		out->value[read->slot] =
			form == FORM_IMPLICIT_CONST ? (uint64_t)read->implicit : value;
		out->form[read->slot] = form;
		out->has |= 1u << read->slot;
	}
	return p;
}
