/* SPDX-License-Identifier: MIT */
#include "dwarf/line_program.h"

#include <stdlib.h>

#include "base/order.h"
#include "base/search.h"
#include "base/sort.h"
#include "dwarf/interval_paint.h"

enum {
	LNS_COPY = 1,
	LNS_ADVANCE_PC = 2,
	LNS_ADVANCE_LINE = 3,
	LNS_SET_FILE = 4,
	LNS_SET_COLUMN = 5,
	LNS_NEGATE_STMT = 6,
	LNS_SET_BASIC_BLOCK = 7,
	LNS_CONST_ADD_PC = 8,
	LNS_FIXED_ADVANCE_PC = 9,
	LNS_SET_PROLOGUE_END = 10,
	LNS_SET_EPILOGUE_BEGIN = 11,
	LNS_SET_ISA = 12
};
enum { LNE_END_SEQUENCE = 1, LNE_SET_ADDRESS = 2, LNE_DEFINE_FILE = 3 };

/* Registers that are followed, and the sequence being built. */
struct machine {
	struct line_rows *out;
	struct line_table *table;
	const struct code_extents *extents;
	uint64_t addr;
	uint32_t op_index;
	uint32_t file, line, column;
	size_t first; /* of the sequence's rows */
	bool is_unsorted;
};

void line_rows_release(struct line_rows *rows)
{
	vec_release(&rows->rows);
	vec_release(&rows->sequences);
}

static void prepare_special(struct line_rows *out, const struct line_params *p)
{
	if (out->has_special && !memcmp(&out->special_for, p, sizeof(*p)))
		return;
	for (unsigned i = p->opcode_base; i < 256; i++) {
		unsigned adjusted = i - p->opcode_base;

		out->special[i].ops = adjusted / p->line_range;
		out->special[i].lines = p->line_base + (int)(adjusted % p->line_range);
	}
	out->special_for = *p;
	out->has_special = true;
}

static void reset(struct machine *m)
{
	m->addr = 0;
	m->op_index = 0;
	m->file = m->line = 1;
	m->column = 0;
	m->first = m->out->rows.n;
	m->is_unsorted = false;
}

static inline void advance(struct machine *m, uint64_t ops)
{
	const struct line_params *p = &m->table->params;

	if (p->max_ops == 1) {
		m->addr += ops * p->min_instruction;
		return;
	}
	ops += m->op_index;
	m->addr += ops / p->max_ops * p->min_instruction;
	m->op_index = (uint32_t)(ops % p->max_ops);
}

static inline void add_row(struct machine *m)
{
	struct line_rows *out = m->out;
	struct line_row row = {m->addr, m->file, m->line, m->column};

	if (out->rows.n > m->first) {
		struct line_row *last = &out->rows.v[out->rows.n - 1];

		if (last->addr == row.addr) {
			*last = row;
			return;
		}
		if (last->file == row.file && last->line == row.line &&
			last->column == row.column && !m->is_unsorted && last->addr < row.addr)
			return;
		m->is_unsorted |= last->addr > row.addr;
	}
	vec_push(&out->rows, row);
}

/* Sorts a sequence whose addresses went back, which no compiler makes; of equal addresses the last
 * row counts here too. */
static void sort_sequence(struct line_rows *out, size_t first)
{
	size_t n = out->rows.n - first, kept = first;
	struct line_row *rows = mem_dup(out->rows.v + first, n * sizeof(*rows));
	struct sort_pair *order = mem_calloc(n, sizeof(*order));

	for (size_t i = 0; i < n; i++)
		order[i] = (struct sort_pair){rows[i].addr, (uint32_t)i};
	sort_pairs(order, n);
	for (size_t i = 0; i < n; i++)
		if (i + 1 == n || order[i + 1].key != order[i].key)
			out->rows.v[kept++] = rows[order[i].i];
	out->rows.n = kept;
	free(order);
	free(rows);
}

static void end_sequence(struct machine *m)
{
	struct line_rows *out = m->out;
	struct addr_range range;

	if (out->rows.n > m->first) {
		if (m->is_unsorted)
			sort_sequence(out, m->first);
		range = (struct addr_range){out->rows.v[m->first].addr, m->addr};
		if (code_extents_clip(m->extents, &range)) {
			while (out->rows.v[out->rows.n - 1].addr >= range.end)
				out->rows.n--;
			vec_push(&out->sequences, ((struct line_sequence){range.start, range.end,
							  m->first, out->rows.n - m->first}));
		} else {
			out->rows.n = m->first;
		}
	}
	reset(m);
}

static void define_file(struct line_table *t, const uint8_t *p, const uint8_t *end)
{
	struct cursor c = {p, end, false};
	const char *name = cursor_cstr(&c);
	struct line_file file = {.dir = cursor_uleb(&c)};

	if (c.failed)
		return;
	file.name = (struct dwarf_text){name, (uint32_t)strnlen(name, DWARF_TEXT_MAX)};
	vec_push(&t->files, file);
}

static const uint8_t *run_extended(struct machine *m, const uint8_t *p, const uint8_t *end)
{
	const uint8_t *next;
	uint64_t n;

	p = form_uleb(p, end, &n);
	if (!p || !n || n > (uint64_t)(end - p))
		return NULL;
	next = p + n;
	switch (*p++) {
	case LNE_END_SEQUENCE:
		end_sequence(m);
		break;
	case LNE_SET_ADDRESS:
		/* The length of the opcode counts: some writers mix sizes up. */
		if (n == 9)
			m->addr = bytes_u64(p);
		else if (n == 5)
			m->addr = bytes_u32(p);
		else
			return NULL;
		m->op_index = 0;
		break;
	case LNE_DEFINE_FILE:
		define_file(m->table, p, next);
		break;
	}
	return next;
}

static const uint8_t *skip_operands(
	const struct machine *m, uint8_t opcode, const uint8_t *p, const uint8_t *end)
{
	for (int n = m->table->opcode_lengths[opcode - 1]; n && p; n--)
		p = form_skip(p, end, HOW_ULEB, m->table->sizes);
	return p;
}

static const uint8_t *run_standard(
	struct machine *m, uint8_t opcode, const uint8_t *p, const uint8_t *end)
{
	uint64_t v = 0;
	int64_t s = 0;

	switch (opcode) {
	case LNS_COPY:
		add_row(m);
		return p;
	case LNS_ADVANCE_PC:
		p = form_uleb(p, end, &v);
		advance(m, v);
		return p;
	case LNS_ADVANCE_LINE:
		p = form_sleb(p, end, &s);
		m->line += (uint32_t)s;
		return p;
	case LNS_SET_FILE:
		p = form_uleb(p, end, &v);
		m->file = v < UINT32_MAX ? (uint32_t)v : UINT32_MAX;
		return p;
	case LNS_SET_COLUMN:
		p = form_uleb(p, end, &v);
		m->column = v <= DWARF_COLUMN_MAX ? (uint32_t)v : 0;
		return p;
	case LNS_SET_ISA:
		return form_uleb(p, end, &v);
	case LNS_NEGATE_STMT:
	case LNS_SET_BASIC_BLOCK:
	case LNS_SET_PROLOGUE_END:
	case LNS_SET_EPILOGUE_BEGIN:
		return p;
	case LNS_CONST_ADD_PC:
		advance(m, m->out->special[255].ops);
		return p;
	case LNS_FIXED_ADVANCE_PC:
		if (end - p < 2)
			return NULL;
		m->addr += bytes_u16(p);
		m->op_index = 0;
		return p + 2;
	default:
		return skip_operands(m, opcode, p, end);
	}
}

ORDER_BY(order_sequences, struct line_sequence, start, first)

/* The row of a sequence that holds at an address. */
static size_t row_at(const struct line_rows *rows, const struct line_sequence *q, uint64_t addr)
{
	return SEARCH(q->first + 1, q->first + q->n, i, rows->rows.v[i].addr <= addr) - 1;
}

/* Cuts overlapping sequences into pieces that lie apart. Linear in rows and sequences. */
static void flatten(struct line_rows *rows)
{
	struct line_rows flat = {0};
	struct painter p = {0};

	for (size_t i = 0; i < rows->sequences.n; i++)
		painter_add(&p, rows->sequences.v[i].start, rows->sequences.v[i].end, (uint32_t)i);
	painter_run(&p);
	for (size_t i = 0; i + 1 < p.changes.n; i++) {
		uint64_t start = p.changes.v[i].addr, end = p.changes.v[i + 1].addr;
		const struct line_sequence *q = &rows->sequences.v[p.changes.v[i].value];
		size_t first = flat.rows.n;

		if (p.changes.v[i].value == PAINT_NONE)
			continue;
		for (size_t k = row_at(rows, q, start); k < q->first + q->n; k++) {
			struct line_row row = rows->rows.v[k];

			if (row.addr >= end)
				break;
			if (row.addr < start)
				row.addr = start;
			vec_push(&flat.rows, row);
		}
		vec_push(&flat.sequences,
			((struct line_sequence){start, end, first, flat.rows.n - first}));
	}
	painter_release(&p);
	line_rows_release(rows);
	memcpy(&rows->rows, &flat.rows, sizeof(flat.rows));
	memcpy(&rows->sequences, &flat.sequences, sizeof(flat.sequences));
}

static void finish(struct line_rows *out)
{
	bool is_sorted = true, overlaps = false;

	for (size_t i = 1; i < out->sequences.n && is_sorted; i++)
		is_sorted = out->sequences.v[i - 1].start <= out->sequences.v[i].start;
	if (!is_sorted)
		vec_sort(&out->sequences, order_sequences);
	for (size_t i = 1; i < out->sequences.n && !overlaps; i++)
		overlaps = out->sequences.v[i - 1].end > out->sequences.v[i].start;
	if (overlaps)
		flatten(out);
}

int line_program_run(struct line_rows *out, struct line_table *t,
	const struct code_extents *extents, struct err *err)
{
	struct machine m = {.out = out, .table = t, .extents = extents};
	const uint8_t *p = t->program.p, *end = p + t->program.n, *at = p;
	uint8_t opcode_base = t->params.opcode_base;

	out->rows.n = out->sequences.n = 0;
	prepare_special(out, &t->params);
	reset(&m);
	while (p && p < end) {
		uint8_t opcode = *p;

		at = p++;
		if (opcode >= opcode_base) {
			const struct line_special *special = &out->special[opcode];

			advance(&m, special->ops);
			m.line += (uint32_t)special->lines;
			add_row(&m);
		} else if (!opcode) {
			p = run_extended(&m, p, end);
		} else {
			p = run_standard(&m, opcode, p, end);
		}
	}
	out->rows.n = m.first; /* a sequence without end is of unknown extent */
	finish(out);
	if (!p)
		return err_set(err, ERR_FORMAT, ".debug_line+0x%llx: the program is damaged",
			(unsigned long long)(t->program_offset + (uint64_t)(at - t->program.p)));
	return 0;
}
