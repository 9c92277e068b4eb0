/* SPDX-License-Identifier: MIT */
/* The new bytes of each section: its own instructions in their new places, with what code_plan.c
 * put around them. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "insert/object_code.h"
#include "insert/cost/cost.h"
#include "insert/foreign_names.h"
#include "rt/count/count_abi.h"

struct emit {
	struct code *code;
	struct code_section *section;
	struct buf bytes;
	VEC(struct object_reloc) relocs;
	uint32_t counters; /* symbols */
	uint32_t cost, cycles;
	uint32_t enter, enter_flags, leave, leave_flags, tail, resync, foreign, foreign_done;
	const struct cost_cpu *cpu;
	struct buf block;     /* scratch */
	uint32_t edges_block; /* the block that a CODE_INSN_EDGES branch counts */
};

static void put_reloc(struct emit *e, uint32_t type, uint32_t symbol, int64_t addend)
{
	vec_push(&e->relocs, ((struct object_reloc){e->bytes.n, type, symbol, addend}));
	buf_put_u32(&e->bytes, 0);
}

/* call symbol */
static void put_call(struct emit *e, uint32_t symbol)
{
	buf_put_u8(&e->bytes, 0xe8);
	put_reloc(e, R_X86_64_PLT32, symbol, -4);
}

/* %gs:symbol+offset(%rip) as the operand of an opcode; `immediate` bytes follow the distance. */
static void put_gs(
	struct emit *e, uint8_t opcode, uint8_t reg, uint32_t symbol, int64_t offset, int immediate)
{
	uint8_t bytes[] = {
		0x65, (uint8_t)(0x48 | (reg >> 3 << 2)), opcode, (uint8_t)(0x05 | (reg & 7) << 3)};

	buf_put(&e->bytes, bytes, sizeof(bytes));
	put_reloc(e, R_X86_64_PC32, symbol, offset - 4 - immediate);
}

/* lahf; seto %al: the flags are in ax; the carry alone is in al by setc. The adds stay single instructions: a handler
 * of a signal in between counts, too. */
static void put_save_flags(struct emit *e, const struct code_insn *head)
{
	if (head->bits & CODE_INSN_CARRY)
		buf_put(&e->bytes, "\x0f\x92\xc0", 3);
	else
		buf_put(&e->bytes, "\x9f\x0f\x90\xc0", 4);
}

/* add $0x7f,%al; sahf; or add $-1,%al for the carry */
static void put_restore_flags(struct emit *e, const struct code_insn *head)
{
	if (head->bits & CODE_INSN_CARRY)
		buf_put(&e->bytes, "\x04\xff", 2);
	else
		buf_put(&e->bytes, "\x04\x7f\x9e", 3);
}

/* mov %rax,%r, which is free; nothing when that is rax */
static void put_save_rax(struct emit *e, uint8_t reg)
{
	if (reg == X86_REG_RAX)
		return;
	buf_put_u8(&e->bytes, (uint8_t)(0x48 | reg >> 3));
	buf_put_u8(&e->bytes, 0x89);
	buf_put_u8(&e->bytes, (uint8_t)(0xc0 | (reg & 7)));
}

/* mov %r,%rax */
static void put_restore_rax(struct emit *e, uint8_t reg)
{
	if (reg == X86_REG_RAX)
		return;
	buf_put_u8(&e->bytes, (uint8_t)(0x48 | reg >> 3 << 2));
	buf_put_u8(&e->bytes, 0x89);
	buf_put_u8(&e->bytes, (uint8_t)(0xc0 | (reg & 7) << 3));
}

/* lea n(%rsp),%rsp: the only way to move it that leaves the flags alone. */
static void put_lea_stack(struct emit *e, int32_t n)
{
	buf_put(&e->bytes, "\x48\x8d\xa4\x24", 4);
	buf_put_u32(&e->bytes, (uint32_t)n);
}

/* No register is free: mov %rax,(%rsp) below the red zone, with the stack pointer there, since handlers of signals use
 * what is below it. The flags themselves stay in ax: pushf and popf cost ten times as much, and a carry that goes through
 * memory makes each round of a loop wait for the one before it. */
static void put_save_on_stack(struct emit *e)
{
	put_lea_stack(e, -CODE_STACK_SHIFT);
	buf_put(&e->bytes, "\x48\x89\x04\x24", CODE_SLOT_BYTES);
}

static void put_restore_from_stack(struct emit *e)
{
	buf_put(&e->bytes, "\x48\x8b\x04\x24", CODE_SLOT_BYTES);
	put_lea_stack(e, CODE_STACK_SHIFT);
}

static void put_save(struct emit *e, const struct code_insn *head)
{
	if (head->detour == CODE_DETOUR_REGISTER)
		put_save_rax(e, head->detail);
	else if (head->detour == CODE_DETOUR_STACK)
		put_save_on_stack(e);
	else
		return;
	put_save_flags(e, head);
}

static void put_restore(struct emit *e, const struct code_insn *head)
{
	if (head->detour != CODE_DETOUR_REGISTER && head->detour != CODE_DETOUR_STACK)
		return;
	put_restore_flags(e, head);
	if (head->detour == CODE_DETOUR_REGISTER)
		put_restore_rax(e, head->detail);
	else
		put_restore_from_stack(e);
}

static void put_add(struct emit *e, uint32_t symbol, int64_t offset, int32_t n, bool is_long)
{
	put_gs(e, is_long ? 0x81 : 0x83, 0, symbol, offset, is_long ? 4 : 1);
	if (is_long)
		buf_put_u32(&e->bytes, (uint32_t)n);
	else
		buf_put_u8(&e->bytes, (uint8_t)n);
}

static void put_u32_at(struct buf *b, size_t at, uint32_t v)
{
	memcpy(b->p + at, &v, sizeof(v));
}

/* An address for what a relocation means, the same for the same thing: the model must see when a
 * load reads what a store wrote. */
#define PRETENDED_ADDRESS(symbol) (0x1000000u + (uint32_t)(symbol)*0x10000u)

static uint32_t block_cycles(struct emit *e, const struct code_block *b)
{
	const struct code_section *s = e->section;
	const struct object_section *os = &e->code->object->sections.v[s->number];
	const struct code_insn *first = &s->insns.v[b->first_insn];
	const struct code_insn *last = &s->insns.v[b->first_insn + b->n_insns - 1];
	uint32_t end = last->offset + last->length;

	buf_reset(&e->block);
	buf_put(&e->block, s->bytes.p + first->offset, end - first->offset);
	for (size_t k = object_section_reloc_at(os, first->offset);
		k < os->relocs.n && os->relocs.v[k].offset + 4 <= end; k++) {
		const struct object_reloc *r = &os->relocs.v[k];
		uint32_t at = (uint32_t)r->offset - first->offset;

		if (r->type == R_X86_64_PC32)
			put_u32_at(&e->block, at,
				PRETENDED_ADDRESS(r->symbol) + (uint32_t)r->addend - at);
	}
	return cost_block(e->cpu, buf_span(&e->block));
}

static void put_head(struct emit *e, uint32_t block_i)
{
	const struct insert_options *o = e->code->options;
	const struct code_block *b = &e->section->blocks.v[block_i];
	const struct code_insn *head = &e->section->insns.v[b->first_insn];
	int64_t stripe = 8 * (int64_t)b->stripe;
	uint32_t n_sums = code_head_sums(e->code, head);
	size_t start = e->bytes.n;

	if (o->mode == INSERT_MODE_NOPS) {
		buf_put_u8(&e->bytes, 0x90);
		return;
	}
	put_save(e, head);
	put_gs(e, 0xff, 0, e->counters, 8 * (int64_t)block_i, 0);
	if (n_sums && b->added)
		put_add(e, e->cost, stripe, b->added, code_add_is_long(b->added));
	if (n_sums == 2)
		put_add(e, e->cycles, stripe, (int32_t)block_cycles(e, b), true);
	put_restore(e, head);
	if (head->detour == CODE_DETOUR_COMPARE) {
		const struct code_insn *compare = head - head->detail;

		buf_put(&e->bytes, e->section->bytes.p + compare->offset, compare->length);
	}
	assert(e->bytes.n - start == code_head_bytes(e->code, e->section, b));
	(void)start;
}

/* An instruction as it was: most are, and are copied by moves of a fixed size where there is room. */
static void put_old(struct emit *e, const struct code_insn *insn)
{
	struct buf *b = &e->bytes;
	const uint8_t *old = e->section->bytes.p + insn->offset;

	if (e->section->bytes.n - insn->offset < X86_INSN_BYTES_MAX ||
		b->cap - b->n < X86_INSN_BYTES_MAX) {
		buf_put(b, old, insn->length);
		return;
	}
	memcpy(b->p + b->n, old, X86_INSN_BYTES_MAX);
	b->n += insn->length;
}

/* A branch that has no relocation, in the form that code_layout.c chose. */
static void put_branch(struct emit *e, const struct code_insn *insn)
{
	uint32_t target = code_branch_target(e->code, e->section, insn);
	size_t at = e->bytes.n;
	uint32_t end = insn->place + code_insn_bytes(insn);

	if (!(insn->bits & CODE_INSN_WIDE)) {
		put_old(e, insn);
		if (insn->rel_bytes == 1)
			e->bytes.p[at + insn->rel_at] = (uint8_t)(target - end);
		else
			put_u32_at(&e->bytes, at + insn->rel_at, target - end);
		return;
	}
	if (insn->opcode == 0xeb) {
		buf_put_u8(&e->bytes, 0xe9);
	} else if (insn->opcode >= 0xe0) {
		buf_put_u8(&e->bytes, insn->opcode);
		buf_put_u8(&e->bytes, 2);
		buf_put(&e->bytes, "\xeb\x05\xe9", 3);
	} else {
		buf_put_u8(&e->bytes, 0x0f);
		buf_put_u8(&e->bytes, (uint8_t)(insn->opcode + 0x10));
	}
	buf_put_u32(&e->bytes, target - end);
}

/* jncc 1f, over so many bytes and a long jump */
static void put_opposite(struct emit *e, const struct code_insn *insn, uint32_t bytes)
{
	const uint8_t *old = e->section->bytes.p + insn->offset;
	uint8_t condition = old[insn->rel_at - 1] & 0x0f;

	buf_put_u8(&e->bytes, (uint8_t)(0x70 | (condition ^ 1)));
	buf_put_u8(&e->bytes, (uint8_t)(bytes + 5));
}

/* jmp target; 1: the target is that of a conditional branch, with its relocation if it has one. */
static void put_long_jump(struct emit *e, const struct code_insn *insn)
{
	const struct object_section *os = &e->code->object->sections.v[e->section->number];

	buf_put_u8(&e->bytes, 0xe9);
	if (insn->reloc != CODE_NONE) {
		struct object_reloc r = os->relocs.v[insn->reloc];

		code_move_addend(e->code, e->section, insn, &r);
		put_reloc(e, r.type, r.symbol, r.addend);
		return;
	}
	buf_put_u32(&e->bytes, code_branch_target(e->code, e->section, insn) -
				       (insn->place + code_insn_bytes(insn)));
}

/* jncc 1f; call tail; jmp target; 1: */
static void put_conditional_tail(struct emit *e, const struct code_insn *insn)
{
	put_opposite(e, insn, CODE_CALL_BYTES);
	put_call(e, insn->bits & CODE_INSN_TAIL_OUT ? e->leave_flags : e->tail);
	put_long_jump(e, insn);
}

/* Relocations keep their order and their place within the instruction. */
static void put_relocated(struct emit *e, const struct code_insn *insn)
{
	const struct object_section *os = &e->code->object->sections.v[e->section->number];

	for (size_t k = insn->reloc; code_insn_has_reloc(insn, os, k); k++) {
		struct object_reloc r = os->relocs.v[k];

		code_move_addend(e->code, e->section, insn, &r);
		r.offset = e->bytes.n + (r.offset - insn->offset);
		vec_push(&e->relocs, r);
	}
	put_old(e, insn);
}

static void put_insn(struct emit *e, const struct code_insn *insn)
{
	size_t at = e->bytes.n;

	if (insn->bits & CODE_INSN_EDGES) {
		/* jncc 1f; count; jmp target; 1: and what follows counts too */
		put_opposite(e, insn, insn->after);
		put_head(e, e->edges_block);
		put_long_jump(e, insn);
	} else if (insn->between) {
		/* jncc 1f; count; jmp past the prefix; 1: and the prefix is counted as any head is
		 */
		put_opposite(e, insn, insn->between);
		put_head(e,
			code_locked_block(e->section,
				code_function_at(e->code, e->section->number, insn->offset), insn));
		put_long_jump(e, insn);
	} else if (insn->bits & CODE_INSN_FALLS)
		put_conditional_tail(e, insn);
	else if (insn->reloc != CODE_NONE)
		put_relocated(e, insn);
	else if (insn->rel_bytes && insn->to_section)
		put_branch(e, insn);
	else {
		put_old(e, insn);
		if (insn->disp_at && insn->to_section)
			put_u32_at(&e->bytes, at + insn->disp_at,
				code_branch_target(e->code, e->section, insn) -
					(insn->place + insn->length));
	}
	assert(e->bytes.n - at == code_insn_bytes(insn));
}

/* The next block that has a counter. */
static void next_block(const struct code_section *s, const struct code_function *f, uint32_t *block)
{
	do
		(*block)++;
	while (*block < f->first_block + f->n_blocks && s->blocks.v[*block].is_unreachable);
}

static void put_leave(struct emit *e, const struct code_function *f, const struct code_insn *insn)
{
	if (insn->flow == X86_FLOW_RETURN || (insn->bits & CODE_INSN_TAIL_OUT))
		if (!(insn->bits & CODE_INSN_FALLS))
			put_call(e, f->returns_flags || (insn->bits & CODE_INSN_TAIL_OUT)
					    ? e->leave_flags
					    : e->leave);
	if ((insn->bits & CODE_INSN_TAIL) && !(insn->bits & (CODE_INSN_TAIL_OUT | CODE_INSN_FALLS)))
		put_call(e, e->tail);
}

static void put_gate(struct emit *e, const struct code_insn *insn)
{
	const struct object_symbol *symbol;
	const char *name = code_insn_callee(e->code, e->section, insn, &symbol);

	put_call(e, elf_object_undefined(e->code->object, foreign_name_gate(name), STV_HIDDEN));
}

static void put_before(
	struct emit *e, const struct code_function *f, uint32_t insn_i, uint32_t *block)
{
	const struct code_insn *insn = &e->section->insns.v[insn_i];
	bool is_tree = e->code->options->mode == INSERT_MODE_TREE && !f->is_thunk;

	if (code_function_enters_at(e->code, f, insn_i))
		put_call(e, f->takes_flags ? e->enter_flags : e->enter);
	if (is_tree && (insn->bits & CODE_INSN_LANDING))
		put_call(e, e->resync);
	/* code_layout.c says to frame information where the counters are. */
	assert(e->bytes.n == insn->label + code_bytes_before_heads(e->code, e->section, f, insn_i));
	/* The first block's counter stands behind the entry code, wherever that is. */
	while (*block < f->first_block + f->n_blocks &&
		insn_i == code_head_insn(e->section, f, *block)) {
		const struct code_block *b = &e->section->blocks.v[*block];

		if (e->section->insns.v[b->first_insn].detour == CODE_DETOUR_EDGES)
			e->edges_block = *block;
		else
			put_head(e, *block);
		next_block(e->section, f, block);
	}
	if (is_tree)
		put_leave(e, f, insn);
	if ((insn->bits & CODE_INSN_GATE) && e->code->options->mode != INSERT_MODE_NOPS)
		put_gate(e, insn);
	/* The library knows the site by the address behind this call. */
	if (is_tree && (insn->bits & CODE_INSN_FOREIGN))
		put_call(e, e->foreign);
}

static void put_function(struct emit *e, const struct code_function *f)
{
	uint32_t block = f->first_block;

	for (uint32_t i = f->first_insn; i < f->first_insn + f->n_insns; i++) {
		const struct code_insn *insn = &e->section->insns.v[i];

		assert(e->bytes.n == insn->label);
		if (f->reason == INSERT_REASON_DONE)
			put_before(e, f, i, &block);
		assert(e->bytes.n == insn->place);
		put_insn(e, insn);
		if (insn->bits & CODE_INSN_EDGES)
			put_head(e, e->edges_block);
		if (insn->after && (insn->bits & CODE_INSN_FOREIGN))
			put_call(e, e->foreign_done);
		if (insn->after && (insn->bits & CODE_INSN_TWICE))
			put_call(e, e->resync);
	}
}

static void put_nops(struct buf *b, uint32_t n)
{
	static const uint8_t nop9[] = {0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0};

	for (; n >= sizeof(nop9); n -= sizeof(nop9))
		buf_put(b, nop9, sizeof(nop9));
	while (n--)
		buf_put_u8(b, 0x90);
}

/* Data, and padding at the end, as they were; relocations of data move along. */
static void put_gap(struct emit *e, const struct code_gap *g, bool is_last)
{
	const struct object_section *os = &e->code->object->sections.v[e->section->number];

	put_nops(&e->bytes, g->pad);
	if (g->is_padding && !is_last)
		return;
	for (size_t k = object_section_reloc_at(os, g->start);
		k < os->relocs.n && os->relocs.v[k].offset < g->end; k++) {
		struct object_reloc r = os->relocs.v[k];

		code_move_addend(e->code, e->section, NULL, &r);
		r.offset = e->bytes.n + (r.offset - g->start);
		vec_push(&e->relocs, r);
	}
	buf_put(&e->bytes, e->section->bytes.p + g->start, g->end - g->start);
}

static void put_section(struct emit *e)
{
	struct code_section *s = e->section;
	size_t g = 0;

	for (size_t i = 0; i <= s->functions.n; i++) {
		uint32_t start = i < s->functions.n ? s->functions.v[i].start : UINT32_MAX;

		for (; g < s->gaps.n && s->gaps.v[g].start < start; g++)
			put_gap(e, &s->gaps.v[g], i == s->functions.n);
		if (i < s->functions.n) {
			put_nops(&e->bytes, s->functions.v[i].pad);
			put_function(e, &s->functions.v[i]);
		}
	}
	assert(e->bytes.n == s->new_bytes);
}

static uint32_t routine(struct emit *e, const char *name)
{
	char full[64] = "weir_count_";

	strcat(full, name);
	if (e->code->options->with_cycles)
		strcat(full, "_cycles");
	return elf_object_undefined(e->code->object, full, STV_HIDDEN);
}

static void find_symbols(struct emit *e)
{
	struct elf_object *o = e->code->object;

	if (e->code->options->mode != INSERT_MODE_TREE)
		return;
	e->cost = elf_object_undefined(o, COUNT_SYMBOL_COST, STV_HIDDEN);
	if (e->code->options->with_cycles) {
		/* Asking which processor this is takes long in a virtual machine. */
		e->cpu = cost_cpu_find(e->code->options->cpu);
		e->cycles = elf_object_undefined(o, COUNT_SYMBOL_CYCLES, STV_HIDDEN);
	}
	e->enter = routine(e, "enter");
	e->enter_flags = routine(e, "enter_flags");
	e->leave = routine(e, "leave");
	e->leave_flags = routine(e, "leave_flags");
	e->tail = routine(e, "tail");
	e->resync = routine(e, "resync");
	e->foreign = routine(e, "foreign");
	e->foreign_done = routine(e, "foreign_done");
}

static void emit_section(struct emit *e, struct code_section *s)
{
	struct code *c = e->code;
	struct object_section *os;

	if (s->counters)
		e->counters = elf_object_section_symbol(c->object, s->counters);
	e->section = s;
	buf_reset(&e->bytes);
	e->relocs.n = 0;
	put_section(e);
	object_section_set(c->object, s->number, buf_span(&e->bytes));
	os = &c->object->sections.v[s->number];
	os->relocs.n = 0;
	vec_reserve(&os->relocs, e->relocs.n);
	for (size_t i = 0; i < e->relocs.n; i++)
		vec_push(&os->relocs, e->relocs.v[i]);
}

void code_emit(struct code *c)
{
	struct emit e = {.code = c};
	bool has_symbols = false;

	for (struct code_section *s = code_next(c, NULL); s; s = code_next(c, s)) {
		if (!code_section_is_inserted(s))
			continue;
		if (!has_symbols)
			find_symbols(&e);
		has_symbols = true;
		emit_section(&e, s);
	}
	buf_release(&e.bytes);
	buf_release(&e.block);
	vec_release(&e.relocs);
}
