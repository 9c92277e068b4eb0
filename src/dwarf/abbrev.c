/* SPDX-License-Identifier: MIT */
#include "dwarf/abbrev.h"

#include <stdlib.h>

#include "base/search.h"
#include "base/sort.h"

#define ABBREV_FIXED_MAX    (1u << 30) /* bytes of an entry's values */
#define ABBREV_DIRECT_EXTRA 16	       /* a table by code may have this many holes, */
#define ABBREV_DIRECT_TIMES 4	       /* and this many times the codes in use */
#define ABBREV_USUAL	    64	       /* a table has as many, and as many reads, or fewer */

static enum die_slot slot_of(uint64_t attr)
{
	static const uint8_t slots[] = {
		[0x03] = SLOT_NAME,
		[0x10] = SLOT_STMT_LIST,
		[0x11] = SLOT_LOW_PC,
		[0x12] = SLOT_HIGH_PC,
		[0x13] = SLOT_LANGUAGE,
		[0x1b] = SLOT_COMP_DIR,
		[0x31] = SLOT_ABSTRACT_ORIGIN,
		[0x47] = SLOT_SPECIFICATION,
		[0x52] = SLOT_ENTRY_PC,
		[0x55] = SLOT_RANGES,
		[0x58] = SLOT_CALL_FILE,
		[0x59] = SLOT_CALL_LINE,
		[0x6e] = SLOT_LINKAGE_NAME,
		[0x72] = SLOT_STR_OFFSETS_BASE,
		[0x73] = SLOT_ADDR_BASE,
		[0x74] = SLOT_RNGLISTS_BASE,
		[0x76] = SLOT_DWO_NAME,
		[0x8c] = SLOT_LOCLISTS_BASE,
	};
	static const uint8_t gnu_slots[] = {
		SLOT_DWO_NAME, SLOT_DWO_ID, SLOT_GNU_RANGES_BASE, SLOT_ADDR_BASE};

	if (attr == 0x2007) /* DW_AT_MIPS_linkage_name, before DWARF 4 */
		return SLOT_LINKAGE_NAME;
	if (attr >= 0x2130 && attr < 0x2130 + sizeof(gnu_slots)) /* DW_AT_GNU_* */
		return (enum die_slot)gnu_slots[attr - 0x2130];
	return attr < sizeof(slots) ? (enum die_slot)slots[attr] : SLOT_NONE;
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
	struct abbrev_attr a;

	c->abbrev = (struct abbrev){.has_children = cursor_u8(in) != 0,
		.tag = tag && tag <= UINT16_MAX ? (uint16_t)tag : UINT16_MAX,
		.first_step = (uint32_t)c->table->steps.n,
		.first_read = (uint32_t)c->table->reads.n};
	while (abbrev_next_attr(in, &a))
		add_attribute(c, a.name, a.form, a.implicit);
	if (in->failed)
		return false;
	if (c->pending)
		add_read(c, (struct abbrev_read){0, 0, FORM_FLAG_PRESENT, HOW_NOTHING, SLOT_NONE});
	c->abbrev.kind = kind_of(c);
	if (c->abbrev.kind >= ABBREV_KIND_FUNCTION)
		c->table->has_code = true;
	if (c->is_bad) /* no bytes are enough, so that using it fails */
		c->abbrev.fixed = UINT32_MAX;
	return true;
}

/* Puts the abbreviations in `all` where abbrev_table_find looks for them. */
static void arrange(
	struct abbrev_table *t, const struct abbrev *all, struct sort_pair *by_code, size_t n)
{
	uint64_t limit = (uint64_t)n * ABBREV_DIRECT_TIMES + ABBREV_DIRECT_EXTRA;
	uint64_t last = 0;
	size_t n_sparse = 0;

	for (size_t i = 0; i < n; i++)
		if (by_code[i].key < limit && by_code[i].key > last)
			last = by_code[i].key;
	vec_ensure_zero(&t->direct, (size_t)last + 1);
	for (size_t i = 0; i < n; i++)
		if (by_code[i].key <= last)
			t->direct.v[by_code[i].key] = all[by_code[i].i];
		else
			n_sparse++;
	if (!n_sparse)
		return;
	sort_pairs(by_code, n);
	for (size_t i = n - n_sparse; i < n; i++) {
		vec_push(&t->codes, by_code[i].key);
		vec_push(&t->sparse, all[by_code[i].i]);
	}
}

int abbrev_table_init(struct abbrev_table *t, struct span bytes, uint64_t offset,
	struct form_sizes sizes, struct err *err)
{
	struct cursor in = cursor_of(bytes);
	VEC(struct sort_pair) codes = {0};
	VEC(struct abbrev) all = {0};
	bool is_whole = false;

	*t = (struct abbrev_table){.offset = offset, .sizes = sizes};
	vec_reserve(&t->steps, 1); /* never NULL, so that readers may add to it */
	vec_reserve(&t->reads, ABBREV_USUAL);
	vec_reserve(&codes, ABBREV_USUAL);
	vec_reserve(&all, ABBREV_USUAL);
	while (!is_whole) {
		struct compiler c = {.table = t};
		uint64_t code = cursor_uleb(&in);

		if (!code && !in.failed) {
			is_whole = true;
			break;
		}
		if (in.failed || !compile(&c, &in))
			break;
		vec_push(&codes, ((struct sort_pair){code, (uint32_t)all.n}));
		vec_push(&all, c.abbrev);
	}
	arrange(t, all.v, codes.v, codes.n);
	vec_release(&codes);
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

bool abbrev_next_attr(struct cursor *in, struct abbrev_attr *a)
{
	a->name = cursor_uleb(in);
	a->form = cursor_uleb(in);
	a->implicit = a->form == FORM_IMPLICIT_CONST ? cursor_sleb(in) : 0;
	if (in->failed || (!a->name && !a->form))
		return false;
	if (a->form > UINT16_MAX)
		a->form = 0;
	return true;
}

const uint8_t *abbrev_read_indirect(const uint8_t *p, const uint8_t *end, struct form_sizes sizes,
	uint16_t *form, uint64_t *value)
{
	enum form_how how;
	uint64_t real;

	p = form_uleb(p, end, &real);
	how = p && real != FORM_IMPLICIT_CONST ? form_how(real, sizes) : HOW_UNKNOWN;
	if (how == HOW_UNKNOWN || how == HOW_INDIRECT)
		return NULL;
	*form = (uint16_t)real;
	return form_read(p, end, how, value);
}

const uint8_t *abbrev_read(const struct abbrev_table *t, const struct abbrev *a, const uint8_t *p,
	const uint8_t *end, struct die_attrs *out)
{
	out->has = 0;
	if ((size_t)(end - p) < a->fixed)
		return NULL;
	return abbrev_run_reads(t->reads.v + a->first_read, a->n_reads, t->sizes, p, end,
		&(struct abbrev_values){&out->has, out->form, out->value});
}
