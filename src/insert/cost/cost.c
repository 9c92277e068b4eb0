/* SPDX-License-Identifier: MIT */
#include "insert/cost/cost.h"

#include <cpuid.h>
#include <string.h>

#include "insert/cost/model.h"

static const struct cost_cpu *const cpus[] = {
	&cost_cpu_skylake,
	&cost_cpu_icelake,
	&cost_cpu_goldencove,
	&cost_cpu_zen2,
	&cost_cpu_zen3,
	&cost_cpu_zen4,
};

#define N_CPUS	  (sizeof(cpus) / sizeof(cpus[0]))
#define SETS_MAX  12	      /* sets of ports in a block that are compared with each other */
#define HYGON_EBX 0x6f677948u /* "Hygo" */

/* Intel's family 6. Newer cores have the larger numbers, but for those listed. */
static const struct cost_cpu *intel_of(unsigned model)
{
	switch (model) {
	case 0xa5: /* Comet Lake */
	case 0xa6:
		return &cost_cpu_skylake;
	case 0x6a: /* Ice Lake, servers */
	case 0x6c:
	case 0x7d: /* Ice Lake */
	case 0x7e:
	case 0x8c: /* Tiger Lake */
	case 0x8d:
	case 0xa7: /* Rocket Lake */
		return &cost_cpu_icelake;
	case 0x8f: /* Sapphire Rapids */
	case 0x97: /* Alder Lake */
	case 0x9a:
		return &cost_cpu_goldencove;
	default:
		return model > 0x9e ? &cost_cpu_goldencove : &cost_cpu_skylake;
	}
}

static const struct cost_cpu *amd_of(unsigned family, unsigned model)
{
	if (family < 0x19)
		return &cost_cpu_zen2;
	/* Family 19h: 10h-1fh, 60h-7fh and a0h-afh are Zen 4, the others Zen 3. */
	if (family > 0x19 || (model >= 0x10 && model < 0x20) || (model >= 0x60 && model < 0x80) ||
		(model >= 0xa0 && model < 0xb0))
		return &cost_cpu_zen4;
	return &cost_cpu_zen3;
}

/* The model of this very processor, or the nearest. */
static const struct cost_cpu *native(void)
{
	unsigned a, b, c, d, family, model;
	bool is_amd, is_intel;

	if (!__get_cpuid(0, &a, &b, &c, &d))
		return &cost_cpu_skylake;
	is_amd = b == signature_AMD_ebx || b == HYGON_EBX;
	is_intel = b == signature_INTEL_ebx;
	if (!__get_cpuid(1, &a, &b, &c, &d))
		return &cost_cpu_skylake;
	family = a >> 8 & 15;
	model = a >> 4 & 15;
	if (family == 15)
		family += a >> 20 & 255;
	if (family >= 6)
		model += (a >> 16 & 15) << 4;
	if (is_amd)
		return amd_of(family, model);
	return is_intel && family == 6 ? intel_of(model) : &cost_cpu_skylake;
}

const struct cost_cpu *cost_cpu_find(const char *name)
{
	if (!name || !strcmp(name, "native"))
		return native();
	for (size_t i = 0; i < N_CPUS; i++)
		if (!strcmp(cpus[i]->name, name))
			return cpus[i];
	return NULL;
}

const char *cost_cpu_name(const struct cost_cpu *cpu)
{
	return cpu->name;
}

const struct cost_cpu *cost_cpu_at(size_t i)
{
	return i < N_CPUS ? cpus[i] : NULL;
}

/* Sets of ports that the block wants, and for how many cycles each. */
struct port_use {
	uint16_t ports[SETS_MAX];
	uint32_t cycles[SETS_MAX];
	unsigned n;
};

static void add_use(struct port_use *use, uint16_t ports, unsigned cycles)
{
	unsigned i = 0;

	if (!ports)
		return;
	while (i < use->n && use->ports[i] != ports)
		i++;
	if (i == SETS_MAX)
		return;
	if (i == use->n) {
		use->ports[use->n++] = ports;
		use->cycles[i] = 0;
	}
	use->cycles[i] += cycles;
}

/* No schedule is shorter than what a set of ports has to do, divided by its number. */
static uint32_t port_bound(const struct op_block *block)
{
	struct port_use use = {.n = 0};
	uint32_t bound = 0;

	for (unsigned i = 0; i < block->n; i++) {
		const struct cost_op *op = &block->ops[i];

		for (unsigned s = 0; s < op->n_steps; s++)
			add_use(&use, op->steps[s].ports, op->steps[s].hold);
		add_use(&use, op->load_ports, op->load_hold);
		add_use(&use, op->store_ports, 1);
		add_use(&use, op->data_ports, op->data_hold);
	}
	for (unsigned i = 0; i < use.n; i++)
		for (unsigned j = i; j < use.n; j++) {
			uint16_t set = use.ports[i] | use.ports[j];
			uint32_t cycles = 0, needed;

			for (unsigned k = 0; k < use.n; k++)
				if (!(use.ports[k] & ~set))
					cycles += use.cycles[k];
			needed = cycles * COST_UNIT / (unsigned)__builtin_popcount(set);
			bound = cost_max(bound, needed);
		}
	return bound;
}

/* A cycle for each place that stores turn to; none go out together where loads read them. */
static uint32_t chunk_bound(const struct op_block *block)
{
	uint32_t n_stores = 0;
	bool forwards = false;

	for (unsigned i = 0; i < block->n; i++) {
		n_stores += block->ops[i].is_store;
		forwards |= block->ops[i].forward_from >= 0 && !block->ops[i].is_store;
	}
	return (forwards ? n_stores : block->n_chunk_changes) * COST_UNIT;
}

static uint32_t cost_of(struct op_block *block, const struct cost_cpu *cpu)
{
	uint32_t bound, cost;

	block_link(block, cpu);
	bound = cost_max(port_bound(block), block->n_slots * COST_UNIT / cpu->width);
	if (cpu->chunks_take_turns)
		bound = cost_max(bound, chunk_bound(block));
	if (block->jumps)
		bound = cost_max(bound, COST_UNIT);
	/* Fused nops take no slot of their own, but are not free. */
	bound = cost_max(bound, block->n_insns * COST_UNIT / (2u * cpu->width));
	cost = cost_max(bound, pipeline_cycles(block, cpu, bound));
	return cost_max(cost + block->n_stall_cycles * COST_UNIT, 1);
}

uint32_t cost_block(const struct cost_cpu *cpu, struct span code)
{
	struct op_block block;
	uint64_t cost = 0;

	while (code.n) {
		size_t n = block_decode(&block, cpu, code);

		if (!block.n)
			break;
		cost += cost_of(&block, cpu);
		code = (struct span){code.p + n, code.n - n};
		if (block.n < COST_BLOCK_MAX)
			break;
	}
	return cost < UINT32_MAX ? (uint32_t)cost : UINT32_MAX;
}
