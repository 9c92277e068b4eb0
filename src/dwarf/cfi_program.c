/* SPDX-License-Identifier: MIT */
/*
 * The machine of DWARF 5 section 6.4.2. A row is made when the location moves on, so that several
 * instructions at one address make one row, and only if something changed since the row before.
 */
#include "dwarf/cfi_program.h"

#define CFI_ROWS_MAX	   (32u << 20) /* 256 MiB in one image */
#define CFI_REMEMBER_MAX   32	       /* DW_CFA_remember_state; compilers nest one or two */
#define CFI_EXPR_BYTES_MAX 1024
#define CFI_EXPRS_MAX	   (1u << 20) /* distinct ones in one image */

enum dw_cfa {
	DW_CFA_ADVANCE_LOC = 1, /* the three with an operand in the low six bits */
	DW_CFA_OFFSET = 2,
	DW_CFA_RESTORE = 3,

	DW_CFA_NOP = 0x00,
	DW_CFA_SET_LOC = 0x01,
	DW_CFA_ADVANCE_LOC1 = 0x02,
	DW_CFA_ADVANCE_LOC2 = 0x03,
	DW_CFA_ADVANCE_LOC4 = 0x04,
	DW_CFA_OFFSET_EXTENDED = 0x05,
	DW_CFA_RESTORE_EXTENDED = 0x06,
	DW_CFA_UNDEFINED = 0x07,
	DW_CFA_SAME_VALUE = 0x08,
	DW_CFA_REGISTER = 0x09,
	DW_CFA_REMEMBER_STATE = 0x0a,
	DW_CFA_RESTORE_STATE = 0x0b,
	DW_CFA_DEF_CFA = 0x0c,
	DW_CFA_DEF_CFA_REGISTER = 0x0d,
	DW_CFA_DEF_CFA_OFFSET = 0x0e,
	DW_CFA_DEF_CFA_EXPRESSION = 0x0f,
	DW_CFA_EXPRESSION = 0x10,
	DW_CFA_OFFSET_EXTENDED_SF = 0x11,
	DW_CFA_DEF_CFA_SF = 0x12,
	DW_CFA_DEF_CFA_OFFSET_SF = 0x13,
	DW_CFA_VAL_OFFSET = 0x14,
	DW_CFA_VAL_OFFSET_SF = 0x15,
	DW_CFA_VAL_EXPRESSION = 0x16,
	DW_CFA_MIPS_ADVANCE_LOC8 = 0x1d,
	DW_CFA_GNU_ARGS_SIZE = 0x2e,
	DW_CFA_GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f
};

struct machine {
	struct cursor c;
	const struct cfi_cie *cie;
	struct cfi_rules *rules;
	const struct cfi_output *output; /* NULL while the CIE's own program runs */
	uint64_t location;
	struct cfi_state state;
	bool is_dirty; /* the state differs from the last row's */
	size_t n_remembered;
	struct cfi_state remembered[CFI_REMEMBER_MAX];
};

void cfi_rows_add(struct cfi_rows *rows, uint32_t offset, uint32_t rule)
{
	while (rows->rows.n && rows->rows.v[rows->rows.n - 1].offset >= offset)
		rows->rows.n--;
	if (rows->rows.n && rows->rows.v[rows->rows.n - 1].rule == rule)
		return;
	vec_push(&rows->rows, ((struct cfi_row){offset, rule}));
}

int cfi_register(bool is_386, uint64_t dwarf_number)
{
	static const int8_t of_386[] = {CPU_REG_RAX, CPU_REG_RCX, CPU_REG_RDX, CPU_REG_RBX,
		CPU_REG_RSP, CPU_REG_RBP, CPU_REG_RSI, CPU_REG_RDI, CPU_REG_RIP};

	if (is_386)
		return dwarf_number < sizeof(of_386) ? of_386[dwarf_number] : -1;
	return dwarf_number < CPU_N_REGS ? (int)dwarf_number : -1;
}

static bool fits(int64_t value)
{
	return value >= INT32_MIN && value <= INT32_MAX;
}

static void set_reg(struct machine *m, uint64_t dwarf_number, enum cfi_how how, int32_t value)
{
	int reg = cfi_register(m->cie->is_386, dwarf_number);

	if (reg < 0)
		return; /* vector registers and the like are not followed */
	m->state.regs[reg].how = (uint8_t)how;
	m->state.regs[reg].value = value;
	m->state.set |= 1u << reg;
	m->is_dirty = true;
}

static bool set_factored(struct machine *m, uint64_t reg, enum cfi_how how, int64_t factored)
{
	int64_t value;

	if (__builtin_mul_overflow(factored, m->cie->data_align, &value) || !fits(value))
		return false;
	set_reg(m, reg, how, (int32_t)value);
	return true;
}

static bool set_cfa(struct machine *m, uint64_t dwarf_number, int64_t offset)
{
	int reg = cfi_register(m->cie->is_386, dwarf_number);

	if (reg < 0 || !fits(offset))
		return false;
	m->state.cfa_reg = (uint8_t)reg;
	m->state.cfa_value = (int32_t)offset;
	m->is_dirty = true;
	return true;
}

/* DW_CFA_def_cfa_offset and its signed twin: only behind a CFA that is register + offset. */
static bool set_cfa_offset(struct machine *m, int64_t offset)
{
	if (m->state.cfa_reg >= CPU_N_REGS || !fits(offset))
		return false;
	m->state.cfa_value = (int32_t)offset;
	m->is_dirty = true;
	return true;
}

static bool factor(const struct machine *m, int64_t factored, int64_t *value)
{
	return !__builtin_mul_overflow(factored, m->cie->data_align, value);
}

/* An expression operand: interned, so that it outlives the file. */
static bool take_expression(struct machine *m, int32_t *id)
{
	struct span bytes = cursor_bytes(&m->c, cursor_uleb(&m->c));

	if (m->c.failed || !bytes.n || bytes.n > CFI_EXPR_BYTES_MAX ||
		m->rules->expressions.n_items >= CFI_EXPRS_MAX)
		return false;
	*id = (int32_t)intern_bytes(&m->rules->expressions, bytes.p, bytes.n);
	return true;
}

static void restore_reg(struct machine *m, uint64_t dwarf_number)
{
	int reg = cfi_register(m->cie->is_386, dwarf_number);

	if (reg < 0)
		return;
	m->state.regs[reg] = m->cie->initial.regs[reg];
	m->state.set |= 1u << reg;
	m->is_dirty = true;
}

/* Makes the row of the location that is being left. */
static bool emit_row(struct machine *m)
{
	const struct cfi_output *o = m->output;
	uint64_t offset = m->location - o->base;
	uint32_t rule;

	if (!m->is_dirty || offset >= o->high)
		return true;
	if (offset < o->low)
		offset = o->low;
	if (o->rows->rows.n >= CFI_ROWS_MAX || !cfi_rules_add(m->rules, &m->state, &rule))
		return false;
	cfi_rows_add(o->rows, (uint32_t)offset, rule);
	m->is_dirty = false;
	return true;
}

static bool advance(struct machine *m, uint64_t factored)
{
	uint64_t delta;

	if (!m->output || __builtin_mul_overflow(factored, m->cie->code_align, &delta))
		return false;
	if (!delta)
		return true;
	if (!emit_row(m))
		return false;
	/* Past the end of the FDE nothing counts any more; do not wrap round to the start. */
	if (__builtin_add_overflow(m->location, delta, &m->location))
		m->location = UINT64_MAX;
	return true;
}

static bool set_location(struct machine *m)
{
	const struct cfi_cie *cie = m->cie;
	struct cfi_pointer_base base = {
		cie->addr_bias + (uintptr_t)m->c.p, cie->data_addr, cie->pointer_bytes};
	uint64_t location;

	if (!m->output || !cfi_pointer_read(&m->c, cie->pointer_encoding, &base, &location) ||
		location < m->location || !emit_row(m))
		return false;
	m->location = location;
	return true;
}

static bool remember(struct machine *m)
{
	if (m->n_remembered == CFI_REMEMBER_MAX)
		return false;
	m->remembered[m->n_remembered++] = m->state;
	return true;
}

static bool recall(struct machine *m)
{
	if (!m->n_remembered)
		return false;
	m->state = m->remembered[--m->n_remembered];
	m->is_dirty = true;
	return true;
}

static bool run_cfa(struct machine *m, uint8_t op)
{
	uint64_t reg;
	int64_t value;
	int32_t id;

	switch (op) {
	case DW_CFA_DEF_CFA:
		reg = cursor_uleb(&m->c);
		return set_cfa(m, reg, (int64_t)cursor_uleb(&m->c));
	case DW_CFA_DEF_CFA_SF:
		reg = cursor_uleb(&m->c);
		return factor(m, cursor_sleb(&m->c), &value) && set_cfa(m, reg, value);
	case DW_CFA_DEF_CFA_REGISTER:
		return m->state.cfa_reg < CPU_N_REGS &&
		       set_cfa(m, cursor_uleb(&m->c), m->state.cfa_value);
	case DW_CFA_DEF_CFA_OFFSET:
		return set_cfa_offset(m, (int64_t)cursor_uleb(&m->c));
	case DW_CFA_DEF_CFA_OFFSET_SF:
		return factor(m, cursor_sleb(&m->c), &value) && set_cfa_offset(m, value);
	case DW_CFA_DEF_CFA_EXPRESSION:
		if (!take_expression(m, &id))
			return false;
		m->state.cfa_reg = CFI_CFA_EXPR;
		m->state.cfa_value = id;
		m->is_dirty = true;
		return true;
	default:
		return false;
	}
}

static bool run_register(struct machine *m, uint8_t op)
{
	uint64_t reg = cursor_uleb(&m->c), factored;
	int other;
	int32_t id;

	switch (op) {
	case DW_CFA_OFFSET_EXTENDED:
		return set_factored(m, reg, CFI_HOW_AT_OFFSET, (int64_t)cursor_uleb(&m->c));
	case DW_CFA_OFFSET_EXTENDED_SF:
		return set_factored(m, reg, CFI_HOW_AT_OFFSET, cursor_sleb(&m->c));
	case DW_CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
		factored = cursor_uleb(&m->c);
		return factored <= INT32_MAX &&
		       set_factored(m, reg, CFI_HOW_AT_OFFSET, -(int64_t)factored);
	case DW_CFA_VAL_OFFSET:
		return set_factored(m, reg, CFI_HOW_IS_OFFSET, (int64_t)cursor_uleb(&m->c));
	case DW_CFA_VAL_OFFSET_SF:
		return set_factored(m, reg, CFI_HOW_IS_OFFSET, cursor_sleb(&m->c));
	case DW_CFA_RESTORE_EXTENDED:
		restore_reg(m, reg);
		return true;
	case DW_CFA_UNDEFINED:
		set_reg(m, reg, CFI_HOW_UNDEFINED, 0);
		return true;
	case DW_CFA_SAME_VALUE:
		set_reg(m, reg, CFI_HOW_SAME, 0);
		return true;
	case DW_CFA_REGISTER:
		other = cfi_register(m->cie->is_386, cursor_uleb(&m->c));
		set_reg(m, reg, other < 0 ? CFI_HOW_UNDEFINED : CFI_HOW_REGISTER,
			other < 0 ? 0 : other);
		return true;
	case DW_CFA_EXPRESSION:
	case DW_CFA_VAL_EXPRESSION:
		if (!take_expression(m, &id))
			return false;
		set_reg(m, reg, op == DW_CFA_EXPRESSION ? CFI_HOW_AT_EXPR : CFI_HOW_IS_EXPR, id);
		return true;
	default:
		return false;
	}
}

static bool run_instruction(struct machine *m)
{
	uint8_t op = cursor_u8(&m->c), low = op & 0x3f;

	switch (op >> 6) {
	case DW_CFA_ADVANCE_LOC:
		return advance(m, low);
	case DW_CFA_OFFSET:
		return set_factored(m, low, CFI_HOW_AT_OFFSET, (int64_t)cursor_uleb(&m->c));
	case DW_CFA_RESTORE:
		restore_reg(m, low);
		return true;
	default:
		break;
	}
	switch (op) {
	case DW_CFA_NOP:
		return true;
	case DW_CFA_SET_LOC:
		return set_location(m);
	case DW_CFA_ADVANCE_LOC1:
		return advance(m, cursor_u8(&m->c));
	case DW_CFA_ADVANCE_LOC2:
		return advance(m, cursor_u16(&m->c));
	case DW_CFA_ADVANCE_LOC4:
		return advance(m, cursor_u32(&m->c));
	case DW_CFA_MIPS_ADVANCE_LOC8:
		return advance(m, cursor_u64(&m->c));
	case DW_CFA_REMEMBER_STATE:
		return remember(m);
	case DW_CFA_RESTORE_STATE:
		return recall(m);
	case DW_CFA_GNU_ARGS_SIZE: /* for exception handling only */
		cursor_uleb(&m->c);
		return true;
	case DW_CFA_DEF_CFA:
	case DW_CFA_DEF_CFA_SF:
	case DW_CFA_DEF_CFA_REGISTER:
	case DW_CFA_DEF_CFA_OFFSET:
	case DW_CFA_DEF_CFA_OFFSET_SF:
	case DW_CFA_DEF_CFA_EXPRESSION:
		return run_cfa(m, op);
	default:
		return run_register(m, op);
	}
}

static bool run_all(struct machine *m)
{
	while (m->c.p < m->c.end)
		if (!run_instruction(m) || m->c.failed)
			return false;
	return true;
}

/* The state that FDEs of this CIE begin with. */
static bool run_cie(struct machine *m, struct cfi_cie *cie)
{
	if (cie->has_run)
		return cie->is_good;
	m->c = cursor_of(cie->program);
	m->output = NULL;
	m->n_remembered = 0;
	m->state = (struct cfi_state){.cfa_reg = CFI_CFA_NONE, .is_signal = cie->is_signal};
	cie->is_good = run_all(m);
	cie->initial = m->state;
	cie->has_run = true;
	return cie->is_good;
}

bool cfi_program_run(
	struct cfi_cie *cie, const struct cfi_fde *fde, const struct cfi_output *output)
{
	struct machine m; /* kept uninitialised: the remembered states are large */

	m.cie = cie;
	m.rules = output->rules;
	if (!run_cie(&m, cie))
		return false;
	m.c = cursor_of(fde->program);
	m.output = output;
	m.location = fde->start;
	m.state = cie->initial;
	m.is_dirty = true;
	m.n_remembered = 0;
	return run_all(&m) && emit_row(&m);
}
