/* SPDX-License-Identifier: MIT */
/* The pool of distinct rules: an image has a hundred times fewer of them than rows. */
#include "dwarf/cfi_rule.h"

#include <stdlib.h>

#define CFI_RULE_WORDS_MAX (16u << 20) /* 128 MiB of rules in one image */
#define CFI_SLOTS_FIRST	   256

_Static_assert(sizeof(struct cfi_place) == 8, "a place is one word");
_Static_assert(sizeof(struct cfi_rule) == 8, "a rule's head is one word");

#define RULE_WORDS_MAX (1 + CPU_N_REGS)

/* A rule being made: the head in words[0], then its places. */
union rule_words {
	uint64_t words[RULE_WORDS_MAX];
	struct cfi_place places[RULE_WORDS_MAX];
};

void cfi_rules_release(struct cfi_rules *rules)
{
	vec_release(&rules->words);
	free(rules->slots);
	intern_release(&rules->expressions);
	*rules = (struct cfi_rules){0};
}

/* Writes the rule into `to` and returns its length in words. */
static size_t encode(const struct cfi_state *state, union rule_words *to)
{
	struct cfi_rule head = {.cfa_value = state->cfa_value,
		.cfa_reg = state->cfa_reg,
		.flags = CFI_RULE_PLAIN | (state->is_signal ? CFI_RULE_SIGNAL : 0) |
			 (state->is_elsewhere ? CFI_RULE_ELSEWHERE : 0)};

	for (uint32_t left = state->set; left; left &= left - 1) {
		unsigned reg = (unsigned)__builtin_ctz(left);
		int32_t value = state->regs[reg].value;
		uint8_t how = state->regs[reg].how;

		if (how == CFI_HOW_UNSET || (how == CFI_HOW_SAME && reg != CPU_REG_RSP))
			continue;
		if (how == CFI_HOW_SAME) {
			how = CFI_HOW_REGISTER;
			value = CPU_REG_RSP;
		}
		if (reg == CPU_REG_RSP)
			head.flags |= CFI_RULE_NEW_STACK;
		if (reg == CPU_REG_RIP && how == CFI_HOW_UNDEFINED)
			head.flags |= CFI_RULE_OUTERMOST;
		if (how != CFI_HOW_AT_OFFSET || reg == CPU_REG_RSP)
			head.flags &= (uint8_t)~CFI_RULE_PLAIN;
		to->places[++head.n_places] = (struct cfi_place){value, (uint8_t)reg, how, 0};
	}
	memcpy(&to->words[0], &head, sizeof(head));
	return 1u + head.n_places;
}

static uint64_t hash_of(const uint64_t *words, size_t n)
{
	return map_hash_bytes(words, n * sizeof(*words));
}

static size_t words_at(const struct cfi_rules *rules, uint32_t position)
{
	return 1u + cfi_rules_get(rules, position)->n_places;
}

static void grow_slots(struct cfi_rules *rules)
{
	size_t cap = rules->cap_slots ? rules->cap_slots * 2 : CFI_SLOTS_FIRST;

	while (cap < rules->n * 2)
		cap *= 2;
	free(rules->slots);
	rules->slots = mem_calloc(cap, sizeof(*rules->slots));
	rules->cap_slots = cap;
	for (uint32_t at = 0; at < rules->words.n; at += (uint32_t)words_at(rules, at)) {
		size_t i = hash_of(&rules->words.v[at], words_at(rules, at)) & (cap - 1);

		while (rules->slots[i])
			i = (i + 1) & (cap - 1);
		rules->slots[i] = at + 1;
	}
}

bool cfi_rules_add(struct cfi_rules *rules, const struct cfi_state *state, uint32_t *position)
{
	union rule_words rule;
	size_t n = encode(state, &rule), i;

	if (rules->n * 2 >= rules->cap_slots)
		grow_slots(rules);
	for (i = hash_of(rule.words, n) & (rules->cap_slots - 1); rules->slots[i];
		i = (i + 1) & (rules->cap_slots - 1)) {
		uint32_t at = rules->slots[i] - 1;

		if (words_at(rules, at) == n &&
			!memcmp(&rules->words.v[at], rule.words, n * sizeof(uint64_t))) {
			*position = at;
			return true;
		}
	}
	if (rules->words.n + n > CFI_RULE_WORDS_MAX)
		return false;
	vec_reserve(&rules->words, rules->words.n + n);
	memcpy(&rules->words.v[rules->words.n], rule.words, n * sizeof(uint64_t));
	*position = (uint32_t)rules->words.n;
	rules->slots[i] = *position + 1;
	rules->words.n += n;
	rules->n++;
	return true;
}

void cfi_rules_shrink(struct cfi_rules *rules)
{
	free(rules->slots);
	rules->slots = NULL;
	rules->cap_slots = 0;
	if (rules->words.n) {
		rules->words.v = mem_realloc(rules->words.v, rules->words.n * sizeof(uint64_t));
		rules->words.cap = rules->words.n;
	}
}
