/* SPDX-License-Identifier: MIT */
/*
 * The instruction mix: what was executed, sorted in several ways. Each group is one way; groups
 * that are said to be whole put each step into exactly one row, so that their rows add up to the
 * steps.
 */
#ifndef WEIR_STEPS_TABLES_INSN_MIX_H
#define WEIR_STEPS_TABLES_INSN_MIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/mem.h"
#include "steps/tables/branch_table.h"
#include "steps/tables/insn_class.h"

enum mix_group {
	MIX_GROUP_CLASS,      /* enum insn_class; branches by their side */
	MIX_GROUP_MEMORY,     /* loads, stores, both, neither */
	MIX_GROUP_VECTOR,     /* SSE and AVX alone: scalar, packed, integer */
	MIX_GROUP_ATTRIBUTE,  /* locked, repeated; a step may have both or none */
	MIX_GROUP_EXTENSION,  /* of the instruction set */
	MIX_GROUP_WIDTH,      /* bits of the widest operand */
	MIX_GROUP_LENGTH,     /* bytes of the instruction */
	MIX_GROUP_MNEMONIC,   /* names */
	MIX_GROUP_ITERATIONS, /* of string instructions; not steps */
};
#define MIX_N_GROUPS 9

struct mix_group_info {
	const char *name;  /* "class" */
	const char *title; /* a phrase */
	bool is_whole;	   /* its rows add up to the steps */
	bool is_listed;	   /* there may be many rows: they stand by count, and a few are enough */
};
extern const struct mix_group_info mix_groups[MIX_N_GROUPS];

struct mix_row {
	enum mix_group group;
	const char *name; /* lives as long as the mix */
	uint64_t count;
	uint32_t place; /* in its group, where the order is not that of counts */
};

struct insn_mix {
	uint64_t total; /* steps */
	VEC(struct mix_row) rows;
	struct map row_of;   /* group and name -> row */
	struct intern names; /* of rows */
};

/* Zero-initialise. Adds an instruction that was executed so often, with `again` iterations behind
 * the first of each; `branch` is NULL for all but conditional branches. */
void insn_mix_add(struct insn_mix *mix, const struct step_insn *insn, uint64_t executed,
	uint64_t again, const struct branch *branch);
/* Steps whose instruction was not captured. */
void insn_mix_add_unknown(struct insn_mix *mix, uint64_t executed);
/* Sorts the rows by group, and in each as its reader wants them. Nothing can be added any more. */
void insn_mix_finish(struct insn_mix *mix);
void insn_mix_release(struct insn_mix *mix);

#endif
