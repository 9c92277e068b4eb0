/* SPDX-License-Identifier: MIT */
/*
 * All instructions of a trace, found by space, address and generation. First each is added, then
 * the table is finished: sorted, numbered and decoded. After that it does not change.
 *
 *   slots:  (space, address) --> number of the newest version, how many versions there are
 *   insns:  ... | v1 v2 v3 | ...   versions of one address stand side by side, oldest first
 */
#ifndef WEIR_STEPS_READ_STEP_INSNS_H
#define WEIR_STEPS_READ_STEP_INSNS_H

#include "base/mem.h"
#include "steps/read/steps.h"

struct insn_slot {
	uint64_t addr;
	uint32_t space;
	uint32_t newest;     /* number of the instruction; 0: the slot is free */
	uint32_t generation; /* of the newest */
	uint32_t n_versions;
};

struct step_insns {
	VEC(struct step_insn) insns; /* entry 0 is the one for "not captured" */
	struct insn_slot *slots;
	unsigned slots_shift; /* 64 - log2 of how many slots there are */
};

/* Zero-initialise it. False when there are too many. */
bool step_insns_add(
	struct step_insns *t, const struct step_code_head *head, const struct step_code *code);
void step_insns_finish(struct step_insns *t);
void step_insns_release(struct step_insns *t);

/* A version that is not the newest. */
uint32_t step_insns_find_older(
	const struct step_insns *t, const struct insn_slot *slot, uint32_t generation);

static inline size_t step_insns_hash(const struct step_insns *t, uint32_t space, uint64_t addr)
{
	return (size_t)((addr ^ (uint64_t)space << 48) * 0x9e3779b97f4a7c15u >> t->slots_shift);
}

/* 0 when there is none. Walking calls this for each step. */
static inline uint32_t step_insns_find(
	const struct step_insns *t, uint32_t space, uint64_t addr, uint32_t generation)
{
	size_t mask = ((size_t)1 << (64 - t->slots_shift)) - 1;

	for (size_t i = step_insns_hash(t, space, addr);; i = (i + 1) & mask) {
		const struct insn_slot *slot = &t->slots[i];

		if (slot->addr == addr && slot->space == space && slot->newest)
			return __builtin_expect(slot->generation <= generation, 1)
				       ? slot->newest
				       : step_insns_find_older(t, slot, generation);
		if (!slot->newest)
			return 0;
	}
}

#endif
