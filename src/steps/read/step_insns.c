/* SPDX-License-Identifier: MIT */
/* The table of instructions; see step_insns.h. */
#include "steps/read/step_insns.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/search.h"

/* A gigabyte of them; a large Java program executes a few millions. */
#define INSNS_MAX (1u << 24)

bool step_insns_add(
	struct step_insns *t, const struct step_code_head *head, const struct step_code *code)
{
	struct step_insn insn = {.addr = code->addr,
		.space = head->space,
		.generation = head->generation,
		.frame = code->frame,
		.n_bytes = code->n,
		.is_64 = head->is_64};

	if (!t->insns.n)
		vec_push(&t->insns, (struct step_insn){0});
	if (t->insns.n >= INSNS_MAX)
		return false;
	memcpy(insn.bytes, code->bytes, sizeof(insn.bytes));
	vec_push(&t->insns, insn);
	return true;
}

static void decode(struct step_insn *insn)
{
	struct x86_insn x;

	if (!x86_decode(&x, (struct span){insn->bytes, insn->n_bytes}, insn->addr, insn->is_64))
		return;
	insn->length = x.length;
	insn->flow = x.flow;
	insn->has_target = x.has_target;
	insn->target = x.target;
	insn->is_string = x86_is_repeated_string((struct span){insn->bytes, insn->length});
}

/* What is sorted, for each instruction. */
struct insn_key {
	uint64_t addr;
	uint32_t space, generation;
	uint32_t i; /* as they came */
};

ORDER_BY(compare_keys, struct insn_key, space, addr, generation, i)

static bool is_same_version(const struct insn_key *a, const struct insn_key *b)
{
	return a->space == b->space && a->addr == b->addr && a->generation == b->generation;
}

/* Puts them in order. Of two with the same generation the later one holds. */
static void sort(struct step_insns *t)
{
	struct insn_key *keys = mem_calloc(t->insns.n, sizeof(*keys));
	VEC(struct step_insn) sorted = {0};
	uint32_t n = (uint32_t)t->insns.n - 1;

	for (uint32_t i = 0; i < n; i++) {
		const struct step_insn *insn = &t->insns.v[i + 1];

		keys[i] = (struct insn_key){insn->addr, insn->space, insn->generation, i + 1};
	}
	qsort(keys, n, sizeof(*keys), compare_keys);
	vec_reserve(&sorted, t->insns.n);
	vec_push(&sorted, t->insns.v[0]);
	for (uint32_t i = 0; i < n; i++)
		if (i + 1 == n || !is_same_version(&keys[i], &keys[i + 1]))
			vec_push(&sorted, t->insns.v[keys[i].i]);
	free(keys);
	free(t->insns.v);
	t->insns.v = sorted.v;
	t->insns.n = sorted.n;
	t->insns.cap = sorted.cap;
}

static struct insn_slot *find_slot(struct step_insns *t, uint32_t space, uint64_t addr)
{
	size_t mask = ((size_t)1 << (64 - t->slots_shift)) - 1;
	size_t i = step_insns_hash(t, space, addr);

	while (t->slots[i].newest && (t->slots[i].addr != addr || t->slots[i].space != space))
		i = (i + 1) & mask;
	return &t->slots[i];
}

void step_insns_finish(struct step_insns *t)
{
	if (!t->insns.n)
		vec_push(&t->insns, (struct step_insn){0});
	sort(t);
	t->slots_shift = 63;
	while ((size_t)1 << (64 - t->slots_shift) < 2 * t->insns.n)
		t->slots_shift--;
	t->slots = mem_calloc((size_t)1 << (64 - t->slots_shift), sizeof(*t->slots));
	for (uint32_t i = 1; i < t->insns.n; i++) {
		struct step_insn *insn = &t->insns.v[i];
		struct insn_slot *slot = find_slot(t, insn->space, insn->addr);

		*slot = (struct insn_slot){
			insn->addr, insn->space, i, insn->generation, slot->n_versions + 1};
		decode(insn);
	}
}

void step_insns_release(struct step_insns *t)
{
	vec_release(&t->insns);
	free(t->slots);
	t->slots = NULL;
}

uint32_t step_insns_find_older(
	const struct step_insns *t, const struct insn_slot *slot, uint32_t generation)
{
	uint32_t oldest = slot->newest + 1 - slot->n_versions;
	uint32_t low; /* the first that is too new is in between */

	low = SEARCH(oldest, slot->newest, middle, t->insns.v[middle].generation <= generation);
	return low == oldest ? 0 : low - 1;
}
