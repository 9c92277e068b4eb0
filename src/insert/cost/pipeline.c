/* SPDX-License-Identifier: MIT */
/*
 * The block again and again through an out-of-order pipeline. Operations enter in order, `width`
 * slots a cycle; each step waits for its inputs and then takes the first cycle in which one of its
 * ports is free; they leave in order, and at most `rob` slots are inside. When as many cycles pass
 * for some iterations as for those before them, that is the steady state.
 *
 * Invariants: 1. time and memory are bounded: STEPS_MAX operations, or four iterations; 2. a step
 * that starts further ahead than the window of port use takes no port (only chains get that far;
 * the bound by ports in cost.c holds for the rest).
 */
#include "insert/cost/model.h"

#include <string.h>

#define WINDOW	  512u /* cycles of port use that are known */
#define HOLD_MAX  160u /* a step holds a port for less */
#define ROB_RING  1024u
#define STEPS_MAX 1600u /* operations simulated, for blocks short enough */

struct pipeline {
	uint32_t regs[COST_REG_COUNT];	    /* cycle in which the value is there */
	uint32_t stored[2][COST_BLOCK_MAX]; /* the same of what an operation stored; by iteration */
	uint16_t busy[WINDOW];		    /* ports taken, by cycle */
	uint32_t left[ROB_RING];	    /* cycle in which a slot left, by slot */
	uint32_t n_slots;		    /* entered so far */
	uint32_t cycle;			    /* of entering */
	uint32_t in_cycle;		    /* slots entered in it */
	uint32_t cleared;		    /* port use is known from here on */
	uint32_t retired;		    /* cycle in which the last one left */
	unsigned iteration;
};

/* The cycle in which a step starts that is ready in `at`. */
static inline uint32_t take_port(struct pipeline *p, uint32_t at, uint16_t ports, unsigned hold)
{
	uint32_t end = p->cleared + WINDOW - HOLD_MAX;
	uint16_t port;

	for (; at < end; at++) {
		uint16_t free_ports = ports & (uint16_t)~p->busy[at % WINDOW];

		if (!free_ports)
			continue;
		port = free_ports & (uint16_t)-free_ports;
		for (unsigned i = 0; i < hold; i++)
			p->busy[(at + i) % WINDOW] |= port;
		break;
	}
	return at;
}

static void advance(struct pipeline *p, uint32_t cycle)
{
	if (cycle <= p->cycle)
		return;
	p->cycle = cycle;
	p->in_cycle = 0;
}

/* Places in the front end; the cycle in which the operation enters. */
static uint32_t enter(struct pipeline *p, const struct cost_cpu *cpu, unsigned slots)
{
	if (p->n_slots >= cpu->rob)
		advance(p, p->left[(p->n_slots - cpu->rob) % ROB_RING]);
	while (p->in_cycle >= cpu->width) {
		p->in_cycle -= cpu->width;
		p->cycle++;
	}
	p->in_cycle += slots;
	if (p->cycle - p->cleared >= WINDOW) {
		memset(p->busy, 0, sizeof(p->busy));
		p->cleared = p->cycle;
	}
	for (; p->cleared < p->cycle; p->cleared++)
		p->busy[p->cleared % WINDOW] = 0;
	return p->cycle + 1;
}

static void leave(struct pipeline *p, unsigned slots, uint32_t done)
{
	p->retired = cost_max(p->retired, done);
	for (unsigned i = 0; i < slots; i++)
		p->left[p->n_slots++ % ROB_RING] = p->retired;
}

/* When the address is there of an operation that enters in `at`. */
static uint32_t address_ready(const struct pipeline *p, const struct cost_op *op, uint32_t at)
{
	uint32_t ready = at;

	if (op->address.base < COST_REG_COUNT)
		ready = cost_max(ready, p->regs[op->address.base]);
	if (op->address.index < COST_REG_COUNT)
		ready = cost_max(ready, p->regs[op->address.index]);
	return ready;
}

static uint32_t load(struct pipeline *p, const struct cost_op *op, uint32_t at, unsigned parity)
{
	uint32_t start = take_port(p, address_ready(p, op, at), op->load_ports, op->load_hold);

	if (op->forward_from >= 0) {
		uint32_t there =
			p->stored[op->forward_is_older ? !parity : parity][op->forward_from];

		return cost_max(op->is_renamed ? at : start + 1, there + op->forward_latency);
	}
	return start + op->load_latency;
}

static uint32_t store(struct pipeline *p, const struct cost_op *op, uint32_t at, uint32_t data)
{
	uint32_t ready = take_port(p, address_ready(p, op, at), op->store_ports, 1);

	return cost_max(ready, take_port(p, data, op->data_ports, op->data_hold));
}

/* What the callee leaves was made long before. */
static void return_from_call(struct pipeline *p, uint32_t at)
{
	static const uint8_t lost[] = {0, 1, 2, 6, 7, 8, 9, 10, 11, COST_REG_CARRY, COST_REG_FLAGS};

	for (unsigned i = 0; i < sizeof(lost); i++)
		p->regs[lost[i]] = at;
	for (unsigned i = COST_REG_VECTOR; i < COST_REG_CARRY; i++)
		p->regs[i] = at;
}

static void run_op(struct pipeline *p, const struct cost_cpu *cpu, const struct cost_op *op,
	unsigned i, unsigned parity)
{
	uint32_t at = enter(p, cpu, op->slots), ready = at, start, done;

	for (unsigned r = 0; r < op->n_inputs; r++)
		ready = cost_max(
			ready, p->regs[op->inputs[r]] + (op->delayed >> r & 1 ? op->delay : 0));
	if (op->syncs_stack)
		ready = cost_max(ready, p->regs[COST_REG_RSP] + 1);
	if (op->is_load)
		ready = cost_max(ready, load(p, op, at, parity));
	done = ready;
	for (unsigned s = 0; s < op->n_steps; s++) {
		start = take_port(p, ready, op->steps[s].ports, op->steps[s].hold);
		done = cost_max(done, start + op->latency);
	}
	if (op->is_store) {
		start = store(p, op, at, done);
		p->stored[parity][i] = start;
		leave(p, op->slots, start + 1);
	} else {
		leave(p, op->slots, done);
	}
	for (unsigned r = 0; r < op->n_outputs; r++)
		p->regs[op->outputs[r]] = done;
	if (op->is_call)
		return_from_call(p, at);
}

static uint16_t rename_ports(uint16_t ports, const uint8_t place[16])
{
	uint16_t renamed = 0;

	for (; ports; ports &= (uint16_t)(ports - 1))
		renamed |= (uint16_t)(1u << place[__builtin_ctz(ports)]);
	return renamed;
}

/* Ports that are wanted least come first, so that the step which has a choice leaves the others. */
static void order_ports(struct op_block *block)
{
	uint32_t wanted[16] = {0};
	uint8_t order[16], place[16];
	unsigned n = 0;

	for (unsigned i = 0; i < block->n; i++) {
		const struct cost_op *op = &block->ops[i];

		for (unsigned s = 0; s < op->n_steps; s++) {
			uint16_t ports = op->steps[s].ports;
			uint32_t share =
				12u * op->steps[s].hold / (unsigned)__builtin_popcount(ports);

			for (; ports; ports &= (uint16_t)(ports - 1))
				wanted[__builtin_ctz(ports)] += share;
		}
	}
	for (unsigned i = 0; i < 16; i++) {
		unsigned at;

		if (!wanted[i])
			continue;
		for (at = n++; at && wanted[order[at - 1]] > wanted[i]; at--)
			order[at] = order[at - 1];
		order[at] = (uint8_t)i;
	}
	for (unsigned i = 0; i < n; i++)
		place[order[i]] = (uint8_t)i;
	for (unsigned i = 0; i < 16; i++)
		if (!wanted[i])
			place[i] = (uint8_t)n++;
	for (unsigned i = 0; i < block->n; i++) {
		struct cost_op *op = &block->ops[i];

		for (unsigned s = 0; s < op->n_steps; s++)
			op->steps[s].ports = rename_ports(op->steps[s].ports, place);
		op->load_ports = rename_ports(op->load_ports, place);
		op->store_ports = rename_ports(op->store_ports, place);
		op->data_ports = rename_ports(op->data_ports, place);
	}
}

/* Iterations that are compared with as many before them. */
static unsigned group_of(const struct op_block *block)
{
	return block->n <= 3 ? 12 : block->n <= 6 ? 6 : block->n <= 12 ? 3 : block->n <= 64 ? 2 : 1;
}

static void run_iterations(
	struct pipeline *p, const struct op_block *block, const struct cost_cpu *cpu, unsigned n)
{
	for (; n; n--, p->iteration++)
		for (unsigned i = 0; i < block->n; i++)
			run_op(p, cpu, &block->ops[i], i, p->iteration & 1);
}

/* Whether so many slots are inside that the next ones will have to wait for those before them. */
static bool is_filling(const struct pipeline *p, const struct op_block *block,
	const struct cost_cpu *cpu, unsigned group, uint32_t growth)
{
	uint32_t cycles_inside = p->retired - p->cycle;

	return p->n_slots <= 2u * cpu->rob &&
	       cycles_inside * block->n_slots * group >= cpu->rob * (growth ? growth : 1);
}

/* Registers that a block writes. */
struct written {
	uint8_t regs[COST_REG_COUNT];
	unsigned n;
};

static void note_written(struct written *written, const struct op_block *block)
{
	bool is_noted[COST_REG_COUNT] = {false};

	written->n = 0;
	for (unsigned i = 0; i < block->n; i++)
		for (unsigned r = 0; r < block->ops[i].n_outputs; r++) {
			uint8_t reg = block->ops[i].outputs[r];

			if (!is_noted[reg])
				written->regs[written->n++] = reg;
			is_noted[reg] = true;
		}
}

/* Cycles that passed since `before`: of those that left, or of the slowest chain of registers,
 * which shows sooner. */
static uint32_t growth_since(const struct pipeline *p, const struct written *written,
	const uint32_t before[COST_REG_COUNT], uint32_t retired_before)
{
	uint32_t growth = p->retired - retired_before;

	for (unsigned i = 0; i < written->n; i++)
		growth = cost_max(growth, p->regs[written->regs[i]] - before[i]);
	return growth;
}

uint32_t pipeline_cycles(struct op_block *block, const struct cost_cpu *cpu, uint32_t bound)
{
	struct pipeline p;
	struct written written;
	unsigned group = group_of(block), n_groups_max = STEPS_MAX / (group * block->n);
	uint32_t growth = 0;

	if (n_groups_max < 3)
		n_groups_max = 3;
	memset(p.regs, 0, sizeof(p.regs));
	memset(p.busy, 0, sizeof(p.busy));
	for (unsigned i = 0; i < block->n; i++)
		p.stored[0][i] = p.stored[1][i] = 0;
	p.n_slots = p.cycle = p.in_cycle = p.cleared = p.retired = p.iteration = 0;
	order_ports(block);
	note_written(&written, block);
	run_iterations(&p, block, cpu, 2);
	for (unsigned g = 0; g < n_groups_max; g++) {
		uint32_t regs[COST_REG_COUNT], retired = p.retired, last_growth = growth;

		for (unsigned i = 0; i < written.n; i++)
			regs[i] = p.regs[written.regs[i]];
		run_iterations(&p, block, cpu, group);
		growth = growth_since(&p, &written, regs, retired);
		if (is_filling(&p, block, cpu, group, growth))
			continue;
		/* It cannot be faster than the bound, and is not slower by a whole cycle. */
		if (growth * COST_UNIT < bound * group + COST_UNIT)
			return bound;
		if (g && growth == last_growth)
			break;
	}
	return growth * COST_UNIT / group;
}
