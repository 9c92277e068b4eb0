/* SPDX-License-Identifier: MIT */
/*
 * Which load reads what which store of the block wrote. Addresses are compared by what is known of
 * registers: a number for the unknown part of a value and a distance from it. The block is gone
 * through twice, the second time with the registers as the first left them, so that what one
 * iteration stores and the next one loads is found too.
 *
 * Invariants: 1. two addresses with the same key are the same address; 2. different keys may still
 * be the same address: such a pair is taken for two.
 */
#include "insert/cost/model.h"

#define STORE_CHUNK 32 /* bytes: stores within go out together, one behind the other */
#define KEYS	    64 /* stores remembered, by a hash of their addresses */

struct value {
	uint32_t id;	 /* of the unknown part */
	uint32_t writes; /* of the register, push and pop apart */
	int64_t delta;
};

struct key {
	uint32_t base_id, index_id;
	int64_t disp;
	uint8_t scale;
};

struct store {
	struct key key;
	int16_t op; /* -1: none */
	uint8_t pass;
	uint8_t bytes;
	uint8_t base, index; /* registers of the address */
	bool is_plain;
	uint32_t writes; /* of these registers before */
};

struct linking {
	struct value regs[16];
	struct store stores[KEYS];
	uint32_t next_id;
	struct key chunk;    /* of the last store */
	bool stack_is_ahead; /* push or pop since the stack pointer was last written */
};

static struct key key_of(const struct linking *link, const struct cost_address *a)
{
	struct key key = {.disp = a->disp, .scale = 0};

	if (a->base < 16) {
		key.base_id = link->regs[a->base].id;
		key.disp = (int64_t)((uint64_t)key.disp + (uint64_t)link->regs[a->base].delta);
	} else {
		key.base_id = a->is_rip ? UINT32_MAX : 0;
	}
	if (a->index < 16) {
		key.index_id = link->regs[a->index].id;
		key.scale = a->scale;
		key.disp = (int64_t)((uint64_t)key.disp +
				     (uint64_t)link->regs[a->index].delta * a->scale);
	}
	return key;
}

static bool keys_equal(const struct key *a, const struct key *b)
{
	return a->base_id == b->base_id && a->index_id == b->index_id && a->disp == b->disp &&
	       a->scale == b->scale;
}

static uint64_t hash_of(const struct key *key)
{
	return ((uint64_t)key->disp + key->base_id * 0x85ebca6bull +
		       key->index_id * 0xc2b2ae35ull) *
	       0x9e3779b97f4a7c15u;
}

static struct store *slot_of(struct linking *link, const struct key *key)
{
	return &link->stores[hash_of(key) >> 58];
}

/* The unknown part of what is loaded from there; those that are counted stay below. */
static uint32_t id_of_key(const struct key *key)
{
	return (uint32_t)(hash_of(key) >> 16) | 0x80000000u;
}

static void forget(struct linking *link, uint8_t reg)
{
	if (reg < 16)
		link->regs[reg] = (struct value){link->next_id++, link->regs[reg].writes + 1, 0};
}

static uint32_t writes_of(const struct linking *link, const struct cost_address *a)
{
	return (a->base < 16 ? link->regs[a->base].writes : 0) +
	       (a->index < 16 ? link->regs[a->index].writes : 0);
}

static bool is_renamed(const struct linking *link, const struct cost_op *op,
	const struct cost_cpu *cpu, const struct store *s)
{
	if (cpu->renames == COST_RENAMES_NONE ||
		(cpu->renames == COST_RENAMES_STACK && !op->is_stack))
		return false;
	if (!op->is_plain || !s->is_plain || s->base != op->address.base || s->base >= 16 ||
		s->index != op->address.index)
		return false;
	return s->base == COST_REG_RSP || s->writes == writes_of(link, &op->address);
}

static void note_chunk(
	struct linking *link, struct op_block *block, const struct key *key, unsigned pass)
{
	struct key chunk = *key;

	chunk.disp = (int64_t)((uint64_t)chunk.disp & ~(uint64_t)(STORE_CHUNK - 1));
	if (pass && !keys_equal(&chunk, &link->chunk))
		block->n_chunk_changes++;
	link->chunk = chunk;
}

static void note_stack_pointer(struct linking *link, struct cost_op *op)
{
	bool reads = false, writes = false;

	if (op->class == COST_CLASS_PUSH || op->class == COST_CLASS_POP) {
		link->stack_is_ahead = true;
		return;
	}
	for (unsigned i = 0; i < op->n_inputs; i++)
		reads |= op->inputs[i] == COST_REG_RSP;
	for (unsigned i = 0; i < op->n_outputs; i++)
		writes |= op->outputs[i] == COST_REG_RSP;
	op->syncs_stack = reads && writes && link->stack_is_ahead;
	if (writes)
		link->stack_is_ahead = false;
}

static void link_load(struct linking *link, struct cost_op *op, const struct cost_cpu *cpu,
	unsigned pass, const struct key *key)
{
	const struct store *s = slot_of(link, key);

	if (s->op < 0 || !keys_equal(&s->key, key))
		return;
	op->forward_from = s->op;
	op->forward_is_older = s->pass != pass;
	op->forward_latency = cpu->forward_latency;
	if (op->address.bytes > s->bytes)
		op->forward_latency = cpu->blocked_latency;
	else if (is_renamed(link, op, cpu, s))
		op->forward_latency = 0;
	else
		op->forward_latency = (uint8_t)(op->forward_latency + op->forward_delay);
	op->is_renamed = !op->forward_latency;
}

static void link_one(struct linking *link, struct op_block *block, const struct cost_cpu *cpu,
	unsigned i, unsigned pass)
{
	struct cost_op *op = &block->ops[i];
	bool loads_value = false;
	uint32_t loaded_id = 0;
	bool is_push_or_pop = op->class == COST_CLASS_PUSH || op->class == COST_CLASS_POP;

	if (op->is_load || op->is_store) {
		struct key key = key_of(link, &op->address);
		const struct store *s = slot_of(link, &key);

		loads_value = op->is_load && !op->is_store && op->is_plain && op->n_outputs == 1 &&
			      op->outputs[0] < 16 && op->track.to == COST_REG_NONE &&
			      !(s->op >= 0 && keys_equal(&s->key, &key));
		loaded_id = id_of_key(&key);

		if (op->is_load && pass)
			link_load(link, op, cpu, pass, &key);
		if (op->is_store)
			*slot_of(link, &key) = (struct store){key, (int16_t)i, (uint8_t)pass,
				op->address.bytes, op->address.base, op->address.index,
				op->is_plain, writes_of(link, &op->address)};
		if (op->is_store)
			note_chunk(link, block, &key, pass);
	}
	note_stack_pointer(link, op);
	if (loads_value) {
		/* The same address holds the same value, as long as nothing is seen to be stored
		 * there. */
		forget(link, op->outputs[0]);
		link->regs[op->outputs[0]].id = loaded_id;
		return;
	}
	if (op->is_call) {
		static const uint8_t lost[] = {0, 1, 2, 6, 7, 8, 9, 10, 11};

		for (unsigned r = 0; r < sizeof(lost); r++)
			forget(link, lost[r]);
	}
	if (op->track.to < 16) {
		struct value v = link->regs[op->track.from];

		v.delta = (int64_t)((uint64_t)v.delta + (uint64_t)(int64_t)op->track.delta);
		for (unsigned o = 0; o < op->n_outputs; o++)
			if (op->outputs[o] != op->track.to)
				forget(link, op->outputs[o]);
		v.writes = link->regs[op->track.to].writes + !is_push_or_pop;
		link->regs[op->track.to] = v;
		return;
	}
	for (unsigned o = 0; o < op->n_outputs; o++)
		forget(link, op->outputs[o]);
}

void block_link(struct op_block *block, const struct cost_cpu *cpu)
{
	struct linking link;
	bool is_needed = false;

	for (unsigned i = 0; i < block->n; i++)
		is_needed |= block->ops[i].is_store || block->ops[i].class == COST_CLASS_POP;
	if (!is_needed)
		return;
	link.chunk = (struct key){0};
	link.stack_is_ahead = false;
	link.next_id = 1;
	for (unsigned r = 0; r < 16; r++)
		link.regs[r] = (struct value){link.next_id++, 0, 0};
	for (unsigned s = 0; s < KEYS; s++)
		link.stores[s].op = -1;
	for (unsigned pass = 0; pass < 2; pass++)
		for (unsigned i = 0; i < block->n; i++)
			link_one(&link, block, cpu, i, pass);
}
