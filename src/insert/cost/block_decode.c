/* SPDX-License-Identifier: MIT */
/*
 * From bytes to operations: which registers an instruction reads and writes, its memory operand,
 * and its class. Here are also the things that renaming does without executing anything: zero
 * idioms, copies, the stack pointer of push and pop, and a compare that becomes one with its
 * branch.
 */
#include "insert/cost/classify.h"

#define WIDE_BITS 256 /* vectors with more are wide */

#define ACTION_READS  (ZYDIS_OPERAND_ACTION_READ | ZYDIS_OPERAND_ACTION_CONDREAD)
#define ACTION_WRITES (ZYDIS_OPERAND_ACTION_WRITE | ZYDIS_OPERAND_ACTION_CONDWRITE)

/* One instruction while it is taken apart. */
struct decoding {
	const struct cost_cpu *cpu;
	struct cost_op *op;
	const ZydisDecodedInstruction *d;
	const ZydisDecodedOperand *operands;
	uint16_t bits; /* of the widest vector */
};

static void add_input(struct cost_op *op, uint8_t reg)
{
	if (reg != COST_REG_NONE && op->n_inputs < COST_INPUTS_MAX)
		op->inputs[op->n_inputs++] = reg;
}

static void add_output(struct cost_op *op, uint8_t reg)
{
	if (reg != COST_REG_NONE && op->n_outputs < COST_OUTPUTS_MAX)
		op->outputs[op->n_outputs++] = reg;
}

static void note_flags(struct cost_op *op, const ZydisAccessedFlags *flags)
{
	ZydisAccessedFlagsMask written, others = ~(ZydisAccessedFlagsMask)ZYDIS_CPUFLAG_CF;

	if (!flags)
		return;
	written = flags->modified | flags->set_0 | flags->set_1 | flags->undefined;
	if (flags->tested & ZYDIS_CPUFLAG_CF)
		add_input(op, COST_REG_CARRY);
	if (flags->tested & others)
		add_input(op, COST_REG_FLAGS);
	if (written & ZYDIS_CPUFLAG_CF)
		add_output(op, COST_REG_CARRY);
	if (written & others)
		add_output(op, COST_REG_FLAGS);
}

static void note_register(struct decoding *in, const ZydisDecodedOperand *o)
{
	uint8_t reg = cost_reg_of(o->reg.value);
	bool writes = o->actions & ACTION_WRITES;

	/* k0 as the mask of a vector instruction means that there is none. */
	if (reg == COST_REG_NONE ||
		(reg == COST_REG_MASK && o->encoding == ZYDIS_OPERAND_ENCODING_MASK))
		return;
	if (reg >= COST_REG_VECTOR && reg < COST_REG_MASK && o->size > in->bits)
		in->bits = o->size;
	if (reg >= COST_REG_VECTOR)
		in->op->is_vector = true;
	if (in->d->mnemonic == ZYDIS_MNEMONIC_VZEROUPPER)
		return;
	/* A write of 8 or 16 bits keeps the rest of the register, so it waits for it. */
	if ((o->actions & ACTION_READS) || (writes && reg < 16 && o->size < 32) ||
		(o->actions & ZYDIS_OPERAND_ACTION_CONDWRITE))
		add_input(in->op, reg);
	if (writes)
		add_output(in->op, reg);
}

static void note_memory(struct decoding *in, const ZydisDecodedOperand *o)
{
	struct cost_op *op = in->op;
	struct cost_address *a = &op->address;

	if (o->mem.type == ZYDIS_MEMOP_TYPE_AGEN) {
		add_input(op, cost_reg_of(o->mem.base));
		add_input(op, cost_reg_of(o->mem.index));
		return;
	}
	if (o->actions & ACTION_READS)
		op->is_load = true;
	if (o->actions & ACTION_WRITES)
		op->is_store = true;
	a->base = cost_reg_of(o->mem.base);
	a->index = cost_reg_of(o->mem.index);
	a->scale = o->mem.scale;
	a->bytes = (uint8_t)(o->size / 8 < 255 ? o->size / 8 : 255);
	a->disp = o->mem.disp.has_displacement ? o->mem.disp.value : 0;
	a->is_rip = o->mem.base == ZYDIS_REGISTER_RIP;
	if (a->index >= 16)
		a->index = COST_REG_NONE;
	op->is_stack =
		(a->base == COST_REG_RSP || a->base == COST_REG_RBP) && a->index == COST_REG_NONE;
}

static bool same_registers(const struct decoding *in, unsigned i, unsigned j)
{
	const ZydisDecodedOperand *o = in->operands;

	return in->d->operand_count_visible > j && o[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       o[j].type == ZYDIS_OPERAND_TYPE_REGISTER && o[i].reg.value == o[j].reg.value;
}

/* Both sources the same register: the result hangs on nothing. */
static bool breaks_dependence(const struct decoding *in, bool *is_zero)
{
	unsigned n = in->d->operand_count_visible;
	bool is_same = n == 3 ? same_registers(in, 1, 2) : n == 2 && same_registers(in, 0, 1);

	*is_zero = true;
	if (!is_same)
		return false;
	switch (in->d->mnemonic) {
	case ZYDIS_MNEMONIC_XOR:
	case ZYDIS_MNEMONIC_SUB:
		return in->operands[0].size >= 32;
	case ZYDIS_MNEMONIC_PXOR:
	case ZYDIS_MNEMONIC_VPXOR:
	case ZYDIS_MNEMONIC_VPXORD:
	case ZYDIS_MNEMONIC_VPXORQ:
	case ZYDIS_MNEMONIC_XORPS:
	case ZYDIS_MNEMONIC_VXORPS:
	case ZYDIS_MNEMONIC_XORPD:
	case ZYDIS_MNEMONIC_VXORPD:
	case ZYDIS_MNEMONIC_PSUBB:
	case ZYDIS_MNEMONIC_PSUBW:
	case ZYDIS_MNEMONIC_PSUBD:
	case ZYDIS_MNEMONIC_PSUBQ:
	case ZYDIS_MNEMONIC_PCMPGTB:
	case ZYDIS_MNEMONIC_PCMPGTW:
	case ZYDIS_MNEMONIC_PCMPGTD:
		return true;
	case ZYDIS_MNEMONIC_PCMPEQB:
	case ZYDIS_MNEMONIC_PCMPEQW:
	case ZYDIS_MNEMONIC_PCMPEQD:
	case ZYDIS_MNEMONIC_PCMPEQQ:
	case ZYDIS_MNEMONIC_VPCMPEQB:
	case ZYDIS_MNEMONIC_VPCMPEQW:
	case ZYDIS_MNEMONIC_VPCMPEQD:
	case ZYDIS_MNEMONIC_VPCMPEQQ:
		*is_zero = false;
		return true;
	default:
		return false;
	}
}

/* Old encodings of these keep the upper part of the destination: they wait for it. */
static bool merges_destination(const ZydisDecodedInstruction *d, bool is_register)
{
	if (d->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY)
		return false;
	switch (d->mnemonic) {
	case ZYDIS_MNEMONIC_CVTSI2SD:
	case ZYDIS_MNEMONIC_CVTSI2SS:
	case ZYDIS_MNEMONIC_CVTSS2SD:
	case ZYDIS_MNEMONIC_CVTSD2SS:
	case ZYDIS_MNEMONIC_SQRTSD:
	case ZYDIS_MNEMONIC_SQRTSS:
	case ZYDIS_MNEMONIC_ROUNDSD:
	case ZYDIS_MNEMONIC_ROUNDSS:
	case ZYDIS_MNEMONIC_RCPSS:
	case ZYDIS_MNEMONIC_RSQRTSS:
	case ZYDIS_MNEMONIC_MOVHPS:
	case ZYDIS_MNEMONIC_MOVHPD:
	case ZYDIS_MNEMONIC_MOVLPS:
	case ZYDIS_MNEMONIC_MOVLPD:
	case ZYDIS_MNEMONIC_MOVHLPS:
	case ZYDIS_MNEMONIC_MOVLHPS:
	case ZYDIS_MNEMONIC_BSF: /* keeps it when there is no bit */
	case ZYDIS_MNEMONIC_BSR:
		return true;
	case ZYDIS_MNEMONIC_MOVSS:
	case ZYDIS_MNEMONIC_MOVSD:
		return is_register;
	default:
		return false;
	}
}

/* Loads and stores that need no execution step besides: mov, movzx, push, vector moves. */
static bool is_pure_move(const struct cost_op *op)
{
	switch (op->class) {
	case COST_CLASS_MOVE:
	case COST_CLASS_ALU: /* mov of a constant: only when nothing is loaded */
	case COST_CLASS_PUSH:
	case COST_CLASS_V_MOVE:
	case COST_CLASS_V_MERGE:
	case COST_CLASS_V_FROM_GENERAL:
	case COST_CLASS_V_TO_GENERAL:
	case COST_CLASS_X_STORE:
		return true;
	case COST_CLASS_EXTEND:
		return op->is_store || (op->is_load && !op->n_inputs);
	case COST_CLASS_SWAP_64:
	case COST_CLASS_POP:
	case COST_CLASS_V_BROADCAST:
	case COST_CLASS_X_LOAD:
		return op->is_load;
	case COST_CLASS_V_FP_SHUFFLE: /* movlps, movhps to memory */
		return op->is_store;
	default:
		return false;
	}
}

static void take_row(struct decoding *in)
{
	struct cost_op *op = in->op;
	const struct cost_row *row = cost_row_of(in->cpu, op->class);
	bool is_wide = in->bits > WIDE_BITS;

	op->slots = row->slots;
	op->latency = row->latency;
	op->delay = row->general_delay;
	if (op->delay)
		for (unsigned i = 0; i < op->n_inputs; i++)
			if (op->inputs[i] < 16 && (op->class != COST_CLASS_LEA_LONG || !i))
				op->delayed |= (uint8_t)(1u << i);
	for (unsigned i = 0; i < COST_STEPS_MAX && row->steps[i].ports; i++) {
		op->steps[i] = row->steps[i];
		if (is_wide && in->cpu->wide == COST_WIDE_TWICE)
			op->steps[i].hold = (uint8_t)(row->steps[i].hold * 2);
		if (is_wide && in->cpu->wide_ports & row->steps[i].ports)
			op->steps[i].ports &= in->cpu->wide_ports;
		op->n_steps++;
	}
	if (is_wide && in->cpu->wide == COST_WIDE_SPLIT) {
		op->slots = (uint8_t)(op->slots * 2);
		for (unsigned i = 0; i < op->n_steps; i++)
			op->steps[i].hold = (uint8_t)(op->steps[i].hold * 2);
	}
}

static void place_memory(struct decoding *in, bool is_mov)
{
	const struct cost_cpu *cpu = in->cpu;
	struct cost_op *op = in->op;
	bool is_wide = in->bits > WIDE_BITS;

	if (op->is_load) {
		op->load_hold = is_wide && cpu->wide != COST_WIDE_FULL ? 2 : 1;
		op->load_ports = in->op->is_vector ? cpu->vector_load_ports : cpu->load_ports;
		op->load_latency = cpu->load_latency;
		if (op->address.index != COST_REG_NONE)
			op->load_latency = (uint8_t)(op->load_latency + cpu->index_latency);
		op->forward_delay =
			in->op->is_vector ? in->cpu->vector_latency : op->n_steps && !op->is_store;
		if (in->op->is_vector)
			op->load_latency = (uint8_t)(op->load_latency + cpu->vector_latency);
	}
	if (op->is_store) {
		op->store_ports = cpu->store_ports;
		op->data_ports = in->op->is_vector ? cpu->vector_data_ports : cpu->data_ports;
		op->data_hold = is_wide ? 2 : 1;
	}
	if (is_mov && is_pure_move(op)) {
		op->n_steps = 0;
		op->latency = 0;
		op->slots = 1;
	} else if (op->is_load && op->is_store && op->class != COST_CLASS_LOCKED) {
		op->slots++; /* it loads, computes and stores */
	}
}

/* push and pop move the stack pointer in the front end: nothing waits for it. */
static void note_stack(struct cost_op *op)
{
	bool is_push = op->class == COST_CLASS_PUSH || op->class == COST_CLASS_CALL;
	uint8_t n = 0;

	for (unsigned i = 0; i < op->n_outputs; i++)
		if (op->outputs[i] != COST_REG_RSP)
			op->outputs[n++] = op->outputs[i];
	op->n_outputs = n;
	n = 0;
	for (unsigned i = 0; i < op->n_inputs; i++)
		if (op->inputs[i] != COST_REG_RSP || op->class == COST_CLASS_PUSH)
			op->inputs[n++] = op->inputs[i];
	op->n_inputs = n;
	op->is_stack = true;
	if (is_push && op->address.base == COST_REG_RSP && !op->is_load)
		op->address.disp = -8;
	if (op->class == COST_CLASS_PUSH)
		op->track = (struct cost_track){COST_REG_RSP, COST_REG_RSP, -8};
	else if (op->class != COST_CLASS_CALL)
		op->track = (struct cost_track){COST_REG_RSP, COST_REG_RSP, 8};
}

static void note_track(struct decoding *in)
{
	const ZydisDecodedOperand *o = in->operands;
	struct cost_track *t = &in->op->track;
	uint8_t to;

	*t = (struct cost_track){COST_REG_NONE, COST_REG_NONE, 0};
	if (in->d->operand_count_visible < 1 || o[0].type != ZYDIS_OPERAND_TYPE_REGISTER ||
		o[0].size != 64 || (to = cost_reg_of(o[0].reg.value)) >= 16)
		return;
	switch (in->d->mnemonic) {
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
		if (o[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
			*t = (struct cost_track){to, to,
				(int32_t)(in->d->mnemonic == ZYDIS_MNEMONIC_ADD
						  ? o[1].imm.value.s
						  : -o[1].imm.value.s)};
		return;
	case ZYDIS_MNEMONIC_INC:
		*t = (struct cost_track){to, to, 1};
		return;
	case ZYDIS_MNEMONIC_DEC:
		*t = (struct cost_track){to, to, -1};
		return;
	case ZYDIS_MNEMONIC_MOV:
		if (o[1].type == ZYDIS_OPERAND_TYPE_REGISTER && cost_reg_of(o[1].reg.value) < 16)
			*t = (struct cost_track){to, cost_reg_of(o[1].reg.value), 0};
		return;
	case ZYDIS_MNEMONIC_LEA:
		if (cost_reg_of(o[1].mem.base) < 16 && o[1].mem.index == ZYDIS_REGISTER_NONE)
			*t = (struct cost_track){
				to, cost_reg_of(o[1].mem.base), (int32_t)o[1].mem.disp.value};
		return;
	default:
		return;
	}
}

/* Work of the front end only: zeros and copies. */
static void note_free(struct decoding *in)
{
	struct cost_op *op = in->op;
	bool is_zero;

	if (breaks_dependence(in, &is_zero)) {
		op->n_inputs = 0;
		if (is_zero) {
			op->n_steps = 0;
			op->latency = 0;
		}
		return;
	}
	/* sbb of a register with itself is made of the carry alone. */
	if (in->d->mnemonic == ZYDIS_MNEMONIC_SBB && same_registers(in, 0, 1)) {
		op->n_inputs = 1;
		op->inputs[0] = COST_REG_CARRY;
	}
	if (op->is_load || op->is_store)
		return;
	if ((op->class == COST_CLASS_MOVE && in->cpu->moves_are_free) ||
		op->class == COST_CLASS_V_MOVE) {
		op->n_steps = 0;
		op->latency = 0;
	}
}

static bool is_prefetch(ZydisMnemonic mnemonic)
{
	return mnemonic >= ZYDIS_MNEMONIC_PREFETCH && mnemonic <= ZYDIS_MNEMONIC_PREFETCHWT1;
}

static void decode_one(struct decoding *in)
{
	const ZydisDecodedInstruction *d = in->d;
	struct cost_op *op = in->op;
	bool is_mov;

	*op = (struct cost_op){.forward_from = -1};
	op->address.base = op->address.index = COST_REG_NONE;
	for (unsigned i = 0; i < d->operand_count; i++) {
		const ZydisDecodedOperand *o = &in->operands[i];

		if (o->type == ZYDIS_OPERAND_TYPE_REGISTER)
			note_register(in, o);
		else if (o->type == ZYDIS_OPERAND_TYPE_MEMORY)
			note_memory(in, o);
	}
	note_flags(op, d->cpu_flags);
	op->class = (uint8_t)cost_classify(in->d, in->operands, op);
	if (d->mnemonic == ZYDIS_MNEMONIC_MOVBE)
		op->latency = 0;
	if (op->class == COST_CLASS_NOP && !is_prefetch(d->mnemonic))
		op->is_load = op->is_store = false;
	if (op->n_outputs && merges_destination(d, !op->is_load))
		add_input(op, op->outputs[0]);
	take_row(in);
	is_mov = op->is_load || op->is_store;
	if (d->raw.imm[0].size == 64 && in->cpu->long_immediates_take_two)
		op->slots = 2;
	op->is_plain = !in->op->is_vector && op->address.bytes >= 4 &&
		       (d->mnemonic == ZYDIS_MNEMONIC_MOV || op->class == COST_CLASS_PUSH ||
			       op->class == COST_CLASS_POP ||
			       (op->is_load && op->is_store && op->class == COST_CLASS_ALU));
	if (op->class == COST_CLASS_ALU && d->mnemonic != ZYDIS_MNEMONIC_MOV)
		is_mov = false;
	if (op->class == COST_CLASS_V_MERGE && d->operand_count_visible > 2)
		is_mov = false;
	place_memory(in, is_mov);
	note_track(in);
	note_free(in);
	if (op->class == COST_CLASS_PUSH || op->class == COST_CLASS_POP ||
		op->class == COST_CLASS_CALL || op->class == COST_CLASS_RETURN)
		note_stack(op);
	op->is_call = op->class == COST_CLASS_CALL || op->class == COST_CLASS_SYSTEM;
}

/* Whether `first` becomes one with the branch behind it. */
static bool fuses(const struct cost_cpu *cpu, ZydisMnemonic first, const struct cost_op *op,
	const struct decoding *branch)
{
	bool by_carry = false;

	if (op->is_store || op->class != COST_CLASS_ALU || branch->op->class != COST_CLASS_BRANCH)
		return false;
	for (unsigned i = 0; i < branch->op->n_inputs; i++)
		by_carry |= branch->op->inputs[i] == COST_REG_CARRY;
	switch (first) {
	case ZYDIS_MNEMONIC_CMP:
	case ZYDIS_MNEMONIC_TEST:
		return true;
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
	case ZYDIS_MNEMONIC_AND:
		return cpu->fuses_all;
	case ZYDIS_MNEMONIC_INC:
	case ZYDIS_MNEMONIC_DEC:
		return cpu->fuses_all && !by_carry;
	default:
		return false;
	}
}

/* An immediate of 16 bits: the length of the instruction changes with the prefix. */
static bool stalls_decoder(const struct cost_cpu *cpu, const ZydisDecodedInstruction *d)
{
	return cpu->long_prefix_stalls && d->raw.imm[0].size == 16 && d->operand_width == 16 &&
	       d->attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE;
}

static void fuse(struct cost_op *op, const struct cost_op *branch)
{
	op->n_steps = branch->n_steps;
	for (unsigned i = 0; i < branch->n_steps; i++)
		op->steps[i] = branch->steps[i];
}

size_t block_decode(struct op_block *block, const struct cost_cpu *cpu, struct span code)
{
	struct x86_decoded x;
	ZydisMnemonic last = ZYDIS_MNEMONIC_INVALID;
	bool takes_nop = true;
	size_t at = 0;

	block->n_insns = block->n_chunk_changes = 0;
	block->n = block->n_slots = block->n_stall_cycles = 0;
	block->jumps = false;
	while (at < code.n && block->n < COST_BLOCK_MAX) {
		struct cost_op *op = &block->ops[block->n];
		struct decoding in = {cpu, op, &x.d, x.operands, 0};

		if (!x86_decode_all(&x, span_sub(code, at, code.n - at), true))
			break;
		at += x.d.length;
		block->n_insns++;
		decode_one(&in);
		if (op->address.is_rip)
			op->address.disp += (int64_t)at;
		if (stalls_decoder(cpu, &x.d))
			block->n_stall_cycles += 3;
		block->jumps = op->class == COST_CLASS_JUMP || op->class == COST_CLASS_JUMP_FAR ||
			       op->class == COST_CLASS_RETURN;
		if (block->n && fuses(cpu, last, op - 1, &in)) {
			fuse(op - 1, op);
			last = ZYDIS_MNEMONIC_INVALID;
			continue;
		}
		last = x.d.mnemonic;
		if (op->class == COST_CLASS_NOP && cpu->fuses_nops) {
			op->slots = takes_nop ? 0 : 1;
			takes_nop = !takes_nop;
		} else {
			takes_nop = true;
		}
		block->n_slots += op->slots;
		block->n++;
	}
	return at;
}
