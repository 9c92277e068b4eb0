/* SPDX-License-Identifier: MIT */
/*
 * Compiles CFI into rows. The FDEs of a section are sorted by address and run in that order, so
 * that rows come out sorted; holes between them get a row of their own that says "none".
 *
 * 1. rows are strictly ascending, neighbours have different rules, the last is CFI_RULE_NONE;
 * 2. what was described first stays: a later FDE or section fills only what is free;
 * 3. nothing refers to the bytes of the file once the table is made.
 */
#include "dwarf/cfi_table.h"

#include <elf.h>
#include <stdlib.h>

#include "arch/x86_code.h"
#include "base/order.h"
#include "dwarf/cfi_entries.h"
#include "dwarf/cfi_program.h"
#include "dwarf/cfi_rule.h"
#include "dwarf/go_table.h"

#define CFI_SECTION_BYTES_MAX (1u << 30) /* of an uncompressed .debug_frame */

struct fde_range {
	uint32_t start, size; /* from base */
};

struct cfi_table {
	uint64_t base;		     /* linker address that offsets count from */
	uint64_t code_low, code_end; /* of the executable segments; FDEs elsewhere are stale */
	bool is_64, is_386;
	struct cfi_rows rows;
	struct cfi_rules rules;
	VEC(struct fde_range) fdes; /* by start */
	struct cfi_stats stats;
};

static void note_code_segments(struct cfi_table *t, const struct elf_file *elf)
{
	t->code_low = UINT64_MAX;
	for (size_t i = 0; i < elf->n_segments; i++) {
		const struct elf_segment *s = &elf->segments[i];
		uint64_t end;

		if (s->type != PT_LOAD || !(s->flags & PF_X) ||
			__builtin_add_overflow(s->addr.v, s->mem_size, &end))
			continue;
		if (s->addr.v < t->code_low)
			t->code_low = s->addr.v;
		if (end > t->code_end)
			t->code_end = end;
	}
	if (!t->code_end) { /* no segments: sections alone must do */
		t->code_low = 0;
		t->code_end = UINT64_MAX;
	}
	t->base = t->code_low;
}

static int compare_fdes(const void *a, const void *b)
{
	const struct cfi_fde *x = a, *y = b;

	return ORDER(x->start, y->start) ?: ORDER(y->size, x->size);
}

static void sort_fdes(struct cfi_entries *e)
{
	for (size_t i = 1; i < e->fdes.n; i++) {
		if (compare_fdes(&e->fdes.v[i - 1], &e->fdes.v[i]) > 0) {
			vec_sort(&e->fdes, compare_fdes);
			return;
		}
	}
}

/* Whether an FDE lies in the image's code and within reach of 32-bit offsets. */
static bool fde_is_usable(struct cfi_table *t, const struct cfi_fde *fde)
{
	uint64_t end;

	if (__builtin_add_overflow(fde->start, fde->size, &end)) {
		t->stats.n_fdes_skipped++;
		return false;
	}
	if (!fde->size || fde->start < t->code_low || end > t->code_end) {
		t->stats.n_fdes_stale++;
		return false;
	}
	if (end - t->base >= UINT32_MAX) {
		t->stats.n_fdes_too_far++;
		return false;
	}
	return true;
}

static uint32_t rule_at(const struct cfi_rows *rows, uint32_t offset)
{
	const struct cfi_row *row = rows->rows.v;
	size_t n = rows->rows.n;

	if (!n || offset < row->offset)
		return CFI_RULE_NONE;
	/* The last row at or below the offset; the comparison becomes a conditional move. */
	while (n > 1) {
		size_t half = n / 2;

		row = row[half].offset <= offset ? row + half : row;
		n -= half;
	}
	return row->rule;
}

/* Runs the FDEs in address order into `rows`. */
static void run_fdes(struct cfi_table *t, struct cfi_entries *e, struct cfi_rows *rows)
{
	struct cfi_output output = {&t->rules, rows, t->base, 0, 0};
	uint32_t covered = 0; /* everything below is decided */

	for (size_t i = 0; i < e->fdes.n; i++) {
		const struct cfi_fde *fde = &e->fdes.v[i];
		uint32_t start, n_rows_before = (uint32_t)rows->rows.n;

		if (!fde_is_usable(t, fde))
			continue;
		start = (uint32_t)(fde->start - t->base);
		if (rule_at(&t->rows, start) != CFI_RULE_NONE)
			continue;
		output.low = start > covered ? start : covered;
		output.high = start + (uint32_t)fde->size;
		if (output.high <= output.low)
			continue;
		if (output.low > covered)
			cfi_rows_add(rows, covered, CFI_RULE_NONE);
		if (!cfi_program_run(&e->cies.v[fde->cie_i], fde, &output)) {
			t->stats.n_fdes_skipped++;
			rows->rows.n = n_rows_before;
			continue;
		}
		covered = output.high;
		vec_push(&t->fdes, ((struct fde_range){start, (uint32_t)fde->size}));
	}
	if (rows->rows.n)
		cfi_rows_add(rows, covered, CFI_RULE_NONE);
}

/* Lays `more` under the table's rows: it shows only where they say none. */
static void merge_rows(struct cfi_table *t, const struct cfi_rows *more)
{
	const struct cfi_row *a = t->rows.rows.v, *b = more->rows.v;
	size_t n_a = t->rows.rows.n, n_b = more->rows.n, i = 0, j = 0;
	uint32_t rule_a = CFI_RULE_NONE, rule_b = CFI_RULE_NONE;
	struct cfi_rows merged = {0};

	while (i < n_a || j < n_b) {
		uint32_t at = UINT32_MAX;

		if (i < n_a)
			at = a[i].offset;
		if (j < n_b && b[j].offset < at)
			at = b[j].offset;
		if (i < n_a && a[i].offset == at)
			rule_a = a[i++].rule;
		if (j < n_b && b[j].offset == at)
			rule_b = b[j++].rule;
		cfi_rows_add(&merged, at, rule_a != CFI_RULE_NONE ? rule_a : rule_b);
	}
	vec_release(&t->rows.rows);
	t->rows = merged;
}

ORDER_BY(compare_ranges, struct fde_range, start)

/* Takes the rows of a further source over. */
static void take_rows(struct cfi_table *t, struct cfi_rows *rows)
{
	if (!t->rows.rows.n) {
		vec_release(&t->rows.rows);
		t->rows = *rows;
	} else {
		merge_rows(t, rows);
		vec_release(&rows->rows);
		vec_sort(&t->fdes, compare_ranges);
	}
	if (t->rows.rows.n) {
		t->rows.rows.v =
			mem_realloc(t->rows.rows.v, t->rows.rows.n * sizeof(struct cfi_row));
		t->rows.rows.cap = t->rows.rows.n;
	}
	cfi_rules_shrink(&t->rules);
}

static void add_source(struct cfi_table *t, const struct cfi_source *source)
{
	struct cfi_entries entries = {0};
	struct cfi_rows rows = {0};

	cfi_entries_read(&entries, source);
	t->stats.n_fdes_skipped += entries.n_skipped;
	sort_fdes(&entries);
	run_fdes(t, &entries, &rows);
	take_rows(t, &rows);
	cfi_entries_release(&entries);
}

static struct cfi_source source_for(const struct cfi_table *t, const struct elf_file *elf)
{
	const struct elf_section *got = elf_file_find_section(elf, ".got.plt");
	struct cfi_source source = {.is_64 = t->is_64, .is_386 = t->is_386};

	if (!got)
		got = elf_file_find_section(elf, ".got");
	source.data_addr = got ? got->addr.v : 0;
	return source;
}

/* Where PT_GNU_EH_FRAME's header says that .eh_frame begins (LSB Core, ".eh_frame_hdr"). */
static bool eh_frame_by_header(const struct elf_file *elf, struct iaddr *addr)
{
	for (size_t i = 0; i < elf->n_segments; i++) {
		const struct elf_segment *s = &elf->segments[i];
		struct span bytes;
		struct cursor c;
		uint8_t version, encoding;

		if (s->type != PT_GNU_EH_FRAME)
			continue;
		bytes = elf_file_bytes_at(elf, s->addr);
		if (bytes.n < 4)
			return false;
		c = cursor_of(bytes);
		version = cursor_u8(&c);
		encoding = cursor_u8(&c);
		cursor_skip(&c, 2); /* the encodings of the count and of the table */
		return version == 1 && cfi_pointer_read(&c, encoding,
					       &(struct cfi_pointer_base){s->addr.v + 4, s->addr.v,
						       elf->is_64 ? 8 : 4},
					       &addr->v);
	}
	return false;
}

static void add_eh_frame(struct cfi_table *t, const struct elf_file *elf)
{
	const struct elf_section *section = elf_file_find_section(elf, ".eh_frame");
	struct cfi_source source = source_for(t, elf);
	struct iaddr addr;

	source.is_eh = true;
	if (section) {
		source.bytes = elf_file_section_bytes(elf, section);
		source.addr = section->addr.v;
	} else if (eh_frame_by_header(elf, &addr)) {
		source.bytes = elf_file_bytes_at(elf, addr);
		source.addr = addr.v;
		source.ends_at_zero = true;
	}
	if (source.bytes.n)
		add_source(t, &source);
}

void cfi_table_add_debug_frame(struct cfi_table *t, const struct elf_file *debug)
{
	const struct elf_section *section = elf_file_find_section(debug, ".debug_frame");
	struct cfi_source source = source_for(t, debug);
	uint8_t *inflated = NULL;

	if (!section)
		return;
	source.addr = section->addr.v;
	if (section->flags & SHF_COMPRESSED) {
		size_t n = 0;

		if (elf_section_inflate(
			    debug, section, CFI_SECTION_BYTES_MAX, &inflated, &n, NULL) < 0) {
			t->stats.n_sections_unreadable++;
			return;
		}
		source.bytes = (struct span){inflated, n};
	} else {
		source.bytes = elf_file_section_bytes(debug, section);
	}
	if (source.bytes.n)
		add_source(t, &source);
	free(inflated);
}

static struct cfi_state go_state(const struct cfi_table *t, int32_t frame)
{
	int32_t word = t->is_64 ? 8 : 4;
	struct cfi_state state = {
		.cfa_reg = CPU_REG_RSP, .cfa_value = frame + word, .set = 1u << CPU_REG_RIP};

	state.regs[CPU_REG_RIP].value = -word;
	state.regs[CPU_REG_RIP].how = CFI_HOW_AT_OFFSET;
	return state;
}

static uint32_t go_rule(struct cfi_table *t, const struct cfi_state *state)
{
	uint32_t rule;

	return cfi_rules_add(&t->rules, state, &rule) ? rule : CFI_RULE_NONE;
}

/* The rule where the caller is not on this stack. */
static uint32_t go_end_rule(struct cfi_table *t, enum go_role role)
{
	struct cfi_state state = go_state(t, 0);

	if (role == GO_ROLE_OUTERMOST || role == GO_ROLE_BASE)
		state.regs[CPU_REG_RIP].how = CFI_HOW_UNDEFINED;
	else
		state.is_elsewhere = true;
	return go_rule(t, &state);
}

/* Where the rules of a function's frame do not hold any more. */
static uint64_t go_frame_end(const struct elf_file *elf, const struct go_function *f, uint64_t end)
{
	struct span code;

	if (f->role == GO_ROLE_OUTERMOST || f->role == GO_ROLE_SIGNAL)
		return f->start;
	if (f->role != GO_ROLE_BASE && f->role != GO_ROLE_SWITCH)
		return end;
	code = elf_file_bytes_at(elf, (struct iaddr){f->start});
	if (code.n > f->size)
		code.n = (size_t)f->size;
	return f->start + x86_past_stack_write(code, elf->is_64);
}

static void run_go_function(struct cfi_table *t, const struct elf_file *elf,
	const struct go_function *f, struct cfi_rows *rows)
{
	uint64_t start, end, frame_end = go_frame_end(elf, f, f->start + f->size);
	struct go_values frames;
	int32_t frame;

	go_values_init(&frames, f->frames, f);
	while (go_values_next(&frames, &start, &end, &frame) && start < frame_end) {
		struct cfi_state state = go_state(t, frame < INT32_MAX - 8 ? frame : 0);

		state.is_signal = f->role == GO_ROLE_EXACT;
		cfi_rows_add(rows, (uint32_t)(start - t->base),
			frame < 0 ? CFI_RULE_NONE : go_rule(t, &state));
	}
	if (frame_end < f->start + f->size)
		cfi_rows_add(rows, (uint32_t)(frame_end - t->base), go_end_rule(t, f->role));
	cfi_rows_add(rows, (uint32_t)(f->start + f->size - t->base), CFI_RULE_NONE);
}

/* Before .debug_frame, which Go makes from the same numbers, but without the roles. */
static void add_go_functions(struct cfi_table *t, const struct elf_file *elf)
{
	struct cfi_rows rows = {0};
	struct go_table go;
	uint64_t covered = t->base;

	if (!go_table_init(&go, elf))
		return;
	for (uint64_t i = 0; i < go.n; i++) {
		struct go_function f;

		/* Real ones have less than a row a byte; in bad ones all functions share one table. */
		if (!go_table_function(&go, i, &f) || f.start < covered ||
			!fde_is_usable(t, &(struct cfi_fde){.start = f.start, .size = f.size}) ||
			rows.rows.n > go.bytes.n)
			continue;
		covered = f.start + f.size;
		if (!rows.rows.n && f.start > t->base)
			cfi_rows_add(&rows, 0, CFI_RULE_NONE);
		run_go_function(t, elf, &f, &rows);
		vec_push(&t->fdes,
			((struct fde_range){(uint32_t)(f.start - t->base), (uint32_t)f.size}));
	}
	take_rows(t, &rows);
	go_table_release(&go);
}

struct cfi_table *cfi_table_new(const struct elf_file *elf)
{
	struct cfi_table *t = mem_zalloc(sizeof(*t));

	t->is_64 = elf->is_64;
	t->is_386 = elf->machine == EM_386;
	if (elf->machine != EM_386 && elf->machine != EM_X86_64)
		return t;
	note_code_segments(t, elf);
	add_eh_frame(t, elf);
	add_go_functions(t, elf);
	cfi_table_add_debug_frame(t, elf);
	return t;
}

void cfi_table_free(struct cfi_table *t)
{
	if (!t)
		return;
	vec_release(&t->rows.rows);
	cfi_rules_release(&t->rules);
	vec_release(&t->fdes);
	free(t);
}

static bool offset_of(const struct cfi_table *t, struct iaddr addr, uint32_t *offset)
{
	if (addr.v < t->base || addr.v - t->base >= UINT32_MAX)
		return false;
	*offset = (uint32_t)(addr.v - t->base);
	return true;
}

const struct cfi_rule *cfi_table_find(const struct cfi_table *t, struct iaddr addr)
{
	uint32_t offset, rule;

	if (!offset_of(t, addr, &offset))
		return NULL;
	rule = rule_at(&t->rows, offset);
	return rule == CFI_RULE_NONE ? NULL : cfi_rules_get(&t->rules, rule);
}

bool cfi_table_function_at(
	const struct cfi_table *t, struct iaddr addr, struct iaddr *start, uint64_t *size)
{
	const struct fde_range *fde = t->fdes.v;
	size_t n = t->fdes.n;
	uint32_t offset;

	if (!n || !offset_of(t, addr, &offset))
		return false;
	while (n > 1) {
		size_t half = n / 2;

		fde = fde[half].start <= offset ? fde + half : fde;
		n -= half;
	}
	if (offset < fde->start || offset - fde->start >= fde->size)
		return false;
	start->v = t->base + fde->start;
	*size = fde->size;
	return true;
}

size_t cfi_table_n_functions(const struct cfi_table *t)
{
	return t->fdes.n;
}

struct iaddr cfi_table_function(const struct cfi_table *t, size_t i, uint64_t *size)
{
	*size = t->fdes.v[i].size;
	return (struct iaddr){t->base + t->fdes.v[i].start};
}

struct span cfi_table_expression(const struct cfi_table *t, int32_t id)
{
	const struct intern *expressions = &t->rules.expressions;

	if (id < 0 || (size_t)id >= expressions->n_items)
		return (struct span){NULL, 0};
	return (struct span){(const uint8_t *)expressions->items[id].p, expressions->items[id].n};
}

struct cfi_stats cfi_table_stats(const struct cfi_table *t)
{
	struct cfi_stats stats = t->stats;

	stats.n_rows = t->rows.rows.n;
	stats.n_rules = t->rules.n;
	stats.n_fdes = t->fdes.n;
	stats.n_bytes = t->rows.rows.n * sizeof(struct cfi_row) +
			t->rules.words.n * sizeof(uint64_t) + t->fdes.n * sizeof(struct fde_range);
	return stats;
}
