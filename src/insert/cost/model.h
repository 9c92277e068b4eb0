/* SPDX-License-Identifier: MIT */
/*
 * Inside the cycle model: instruction classes, what a class costs on a processor, and a block as
 * the pipeline sees it.
 *
 *   bytes -> block_decode (operations: registers, memory, class) -> block_link (which load reads
 * what which store wrote) -> pipeline_cycles (simulation) -> cost.c (never below the closed bounds)
 */
#ifndef WEIR_INSERT_COST_MODEL_H
#define WEIR_INSERT_COST_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "insert/cost/cost.h"

enum cost_class {
#define CLASS(name, meaning) COST_CLASS_##name,
#include "insert/cost/classes.def"
#undef CLASS
	COST_CLASS_COUNT
};

/* An execution step: one of these ports is taken for `hold` cycles. */
struct cost_step {
	uint16_t ports;
	uint8_t hold;
};

#define COST_STEPS_MAX 4

/* What an instruction of a class costs, apart from its loads and stores. A row without slots is not
 * given: that of the processor's relative holds. */
struct cost_row {
	uint8_t slots;	       /* places in the front end */
	uint8_t latency;       /* cycles from the last operand to the result */
	uint8_t general_delay; /* more from a general register; of lea: from its base */
	struct cost_step steps[COST_STEPS_MAX];
};

/* Rows of tables: of a class, with its steps. */
#define ROW(class, latency, slots, ...) [COST_CLASS_##class] = {slots, latency, 0, {__VA_ARGS__}}
#define ROW_GENERAL(class, delay, latency, slots, ...)                                             \
	[COST_CLASS_##class] = {slots, latency, delay, {__VA_ARGS__}}
#define ON(ports, hold)                                                                            \
	{                                                                                          \
		(ports), (hold)                                                                    \
	}

/* Loads that get the stored register by renaming, without going through memory. */
enum cost_renames {
	COST_RENAMES_NONE,
	COST_RENAMES_STACK, /* with sp or bp and a displacement as the address */
	COST_RENAMES_ALL,   /* with any address, if its registers were not written in between */
};

enum cost_wide {
	COST_WIDE_FULL,	 /* 512 bits (256 on old ones) take one step like the narrower ones */
	COST_WIDE_TWICE, /* a port is held for two cycles */
	COST_WIDE_SPLIT, /* two slots, two steps */
};

struct cost_cpu {
	const char *name;
	const struct cost_row *rows;  /* by class */
	const struct cost_cpu *other; /* whose rows hold where `rows` has none; may be NULL */
	uint8_t width;		      /* slots a cycle */
	uint16_t rob;		      /* slots in flight */
	uint16_t load_ports, vector_load_ports;
	uint16_t store_ports; /* addresses of stores */
	uint16_t data_ports;  /* data of stores from general registers */
	uint16_t vector_data_ports;
	uint16_t wide_ports;	 /* ports that execute 512 bits; 0: all */
	uint8_t load_latency;	 /* base + displacement, to a general register */
	uint8_t index_latency;	 /* more for an address with an index */
	uint8_t vector_latency;	 /* more for a load to a vector register */
	uint8_t forward_latency; /* from the data of a store to the load that reads it */
	uint8_t blocked_latency; /* the load wants more than the store wrote */
	enum cost_wide wide;
	bool moves_are_free; /* copies of general registers are done by renaming */
	enum cost_renames renames;
	bool fuses_nops;	/* a nop shares the slot of what stands before it */
	bool chunks_take_turns; /* a cycle for each change of the 32 bytes that are stored to */
	bool fuses_all; /* also add, sub, and, inc, dec with a branch, not only cmp and test */
	bool long_immediates_take_two; /* slots of a mov of 64 bits */
	bool long_prefix_stalls;       /* an immediate of 16 bits stalls the decoder */
};

/* Registers as the model numbers them: general, vector, mask, x87, MMX, carry, the other flags. */
enum cost_reg {
	COST_REG_RSP = 4,
	COST_REG_RBP = 5,
	COST_REG_VECTOR = 16,
	COST_REG_MASK = 48,
	COST_REG_X87 = 56,
	COST_REG_MMX = 64,
	COST_REG_CARRY = 72,
	COST_REG_FLAGS,
	COST_REG_COUNT,
	COST_REG_NONE = 255,
};

#define COST_BLOCK_MAX	 512 /* operations; a longer block is costed in parts */
#define COST_INPUTS_MAX	 8
#define COST_OUTPUTS_MAX 6

/* How the value of a general register is known after the operation, for comparing addresses. */
struct cost_track {
	uint8_t to, from; /* to = from + delta; COST_REG_NONE: nothing is known */
	int32_t delta;
};

struct cost_address {
	uint8_t base, index, scale, bytes;
	bool is_rip; /* disp is the whole address, within the block */
	int64_t disp;
};

struct cost_op {
	uint8_t class;
	uint8_t slots, latency;
	uint8_t n_inputs, n_outputs, n_steps;
	bool is_load, is_store, is_call;
	bool is_vector;	  /* touches a vector, mask or x87 register */
	bool is_plain;	  /* nothing but a load, a store or both around 32 or 64 bits in general
			     registers */
	bool syncs_stack; /* waits until the stack pointer is no longer kept by the front end */
	uint8_t delay;	  /* cycles that these inputs count for later: */
	uint8_t delayed;  /* a bit for each of the first 8 inputs */
	bool is_stack;	  /* the address is sp or bp and a displacement */
	uint8_t load_latency;
	uint8_t inputs[COST_INPUTS_MAX];
	uint8_t outputs[COST_OUTPUTS_MAX];
	struct cost_step steps[COST_STEPS_MAX];
	uint16_t load_ports, store_ports, data_ports;
	uint8_t load_hold, data_hold;
	uint8_t forward_latency;
	uint8_t forward_delay; /* of this kind of load, when it is not renamed */
	bool forward_is_older; /* the store is of the iteration before */
	bool is_renamed;       /* the load gets the stored register itself */
	int16_t forward_from;  /* the store that is read, -1: none */
	struct cost_address address;
	struct cost_track track;
};

struct op_block {
	struct cost_op ops[COST_BLOCK_MAX];
	uint32_t n;
	uint32_t n_slots;
	uint32_t n_stall_cycles; /* the decoder's */
	uint32_t n_insns;
	uint32_t n_chunk_changes; /* stores to other 32 bytes than the one before */
	bool jumps;		  /* ends with a jump that is always taken */
};

static inline const struct cost_row *cost_row_of(const struct cost_cpu *cpu, enum cost_class class)
{
	while (!cpu->rows[class].slots && cpu->other)
		cpu = cpu->other;
	return &cpu->rows[class];
}

static inline uint32_t cost_max(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* Decodes at most COST_BLOCK_MAX operations; returns the bytes taken, 0 when there is none. */
size_t block_decode(struct op_block *block, const struct cost_cpu *cpu, struct span code);
void block_link(struct op_block *block, const struct cost_cpu *cpu);
/* Cycles of one iteration in the steady state, in 1/COST_UNIT; `bound`: it cannot take less. */
uint32_t pipeline_cycles(struct op_block *block, const struct cost_cpu *cpu, uint32_t bound);

/* cpu_intel.c, cpu_amd.c */
extern const struct cost_cpu cost_cpu_skylake, cost_cpu_icelake, cost_cpu_goldencove;
extern const struct cost_cpu cost_cpu_zen2, cost_cpu_zen3, cost_cpu_zen4;

#endif
