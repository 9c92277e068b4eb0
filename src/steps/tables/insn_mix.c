/* SPDX-License-Identifier: MIT */
#include "steps/tables/insn_mix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct mix_group_info mix_groups[MIX_N_GROUPS] = {
	[MIX_GROUP_CLASS] = {.name = "class", .title = "what they do", .is_whole = true},
	[MIX_GROUP_MEMORY] = {.name = "memory", .title = "what they access", .is_whole = true},
	[MIX_GROUP_VECTOR] = {.name = "vector", .title = "what vector instructions compute with"},
	[MIX_GROUP_ATTRIBUTE] = {.name = "attribute", .title = "what else is true of them"},
	[MIX_GROUP_EXTENSION] = {.name = "extension",
		.title = "extensions of the instruction set",
		.is_whole = true,
		.is_listed = true},
	[MIX_GROUP_WIDTH] = {.name = "width",
		.title = "bits of the widest operand",
		.is_whole = true},
	[MIX_GROUP_LENGTH] = {.name = "length",
		.title = "bytes of the instruction",
		.is_whole = true},
	[MIX_GROUP_MNEMONIC] = {.name = "mnemonic",
		.title = "names",
		.is_whole = true,
		.is_listed = true},
	[MIX_GROUP_ITERATIONS] = {.name = "iterations",
		.title = "iterations of string instructions",
		.is_listed = true},
};

static const char *const class_names[INSN_N_CLASSES] = {
	[INSN_CLASS_UNKNOWN] = "not captured",
	[INSN_CLASS_MOVE] = "move",
	[INSN_CLASS_STACK] = "push and pop",
	[INSN_CLASS_ADDRESS] = "address (lea)",
	[INSN_CLASS_INTEGER] = "integer",
	[INSN_CLASS_BITS] = "shift and bit",
	[INSN_CLASS_MULTIPLY] = "multiply",
	[INSN_CLASS_DIVIDE] = "divide",
	[INSN_CLASS_BRANCH] = "branch",
	[INSN_CLASS_JUMP] = "jump",
	[INSN_CLASS_CALL] = "call",
	[INSN_CLASS_INDIRECT_JUMP] = "indirect jump",
	[INSN_CLASS_INDIRECT_CALL] = "indirect call",
	[INSN_CLASS_RETURN] = "return",
	[INSN_CLASS_STRING] = "string",
	[INSN_CLASS_X87] = "x87",
	[INSN_CLASS_MMX] = "MMX",
	[INSN_CLASS_SSE] = "SSE",
	[INSN_CLASS_AVX] = "AVX",
	[INSN_CLASS_AVX512] = "AVX-512",
	[INSN_CLASS_NOP] = "nop",
	[INSN_CLASS_CACHE] = "cache and order",
	[INSN_CLASS_SYSCALL] = "system call",
	[INSN_CLASS_SYSTEM] = "system",
	[INSN_CLASS_OTHER] = "other",
};
#define NOT_CAPTURED "not captured"

static const char *const memory_names[INSN_N_MEMORIES] = {
	[INSN_MEMORY_NONE] = "no memory",
	[INSN_MEMORY_LOAD] = "load",
	[INSN_MEMORY_STORE] = "store",
	[INSN_MEMORY_BOTH] = "load and store",
};

static const char *const vector_names[INSN_N_VECTORS] = {
	[INSN_VECTOR_SCALAR_FLOAT] = "scalar float",
	[INSN_VECTOR_PACKED_FLOAT] = "packed float",
	[INSN_VECTOR_INTEGER] = "integer",
};

static void add(struct insn_mix *mix, enum mix_group group, const char *name, uint32_t place,
	uint64_t count)
{
	uint64_t id = intern_text(&mix->names, name);
	uint64_t *row;
	bool is_new;

	if (!count)
		return;
	row = map_ensure(&mix->row_of, id << 8 | group, &is_new);
	if (is_new) {
		*row = mix->rows.n;
		vec_push(&mix->rows, ((struct mix_row){.group = group,
					     .name = intern_get(&mix->names, (uint32_t)id),
					     .place = place}));
	}
	mix->rows.v[*row].count += count;
}

/* Branches are a class for each side. */
static void add_class(struct insn_mix *mix, const struct insn_traits *traits, uint64_t executed,
	const struct branch *branch)
{
	uint64_t unknown = executed;

	if (traits->class != INSN_CLASS_BRANCH) {
		add(mix, MIX_GROUP_CLASS, class_names[traits->class], 0, executed);
		return;
	}
	if (branch) {
		add(mix, MIX_GROUP_CLASS, "branch taken", 0, branch->taken);
		add(mix, MIX_GROUP_CLASS, "branch not taken", 0, branch->not_taken);
		unknown -= branch->taken + branch->not_taken;
	}
	add(mix, MIX_GROUP_CLASS, "branch, side unknown", 0, unknown);
}

static void add_width(struct insn_mix *mix, uint16_t width, uint64_t executed)
{
	char name[16];

	if (!width)
		add(mix, MIX_GROUP_WIDTH, "none", 0, executed);
	else if (width > 512)
		add(mix, MIX_GROUP_WIDTH, "over 512", UINT16_MAX, executed);
	else {
		snprintf(name, sizeof(name), "%u", width);
		add(mix, MIX_GROUP_WIDTH, name, width, executed);
	}
}

static void add_iterations(struct insn_mix *mix, const struct insn_traits *traits, uint64_t n)
{
	char name[64];

	snprintf(name, sizeof(name), "%s%s", traits->prefix, traits->mnemonic);
	add(mix, MIX_GROUP_ITERATIONS, name, 0, n);
}

void insn_mix_add_unknown(struct insn_mix *mix, uint64_t executed)
{
	mix->total += executed;
	for (int group = 0; group < MIX_N_GROUPS; group++)
		if (mix_groups[group].is_whole)
			add(mix, (enum mix_group)group, NOT_CAPTURED, UINT32_MAX, executed);
}

void insn_mix_add(struct insn_mix *mix, const struct step_insn *insn, uint64_t executed,
	uint64_t again, const struct branch *branch)
{
	struct insn_traits traits;
	char length[16];

	insn_traits_get(&traits, insn);
	if (traits.class == INSN_CLASS_UNKNOWN) {
		insn_mix_add_unknown(mix, executed);
		return;
	}
	mix->total += executed;
	add_class(mix, &traits, executed, branch);
	add(mix, MIX_GROUP_MEMORY, memory_names[traits.memory], 0, executed);
	if (traits.vector != INSN_VECTOR_NONE)
		add(mix, MIX_GROUP_VECTOR, vector_names[traits.vector], 0, executed);
	if (traits.is_locked)
		add(mix, MIX_GROUP_ATTRIBUTE, "locked", 0, executed);
	if (traits.is_repeated)
		add(mix, MIX_GROUP_ATTRIBUTE, "repeated", 0, executed);
	add(mix, MIX_GROUP_EXTENSION, traits.extension, 0, executed);
	add_width(mix, traits.width, executed);
	snprintf(length, sizeof(length), "%u", insn->length);
	add(mix, MIX_GROUP_LENGTH, length, insn->length, executed);
	add(mix, MIX_GROUP_MNEMONIC, traits.mnemonic, 0, executed);
	if (traits.is_repeated)
		add_iterations(mix, &traits, executed + again);
}

static int compare_rows(const void *a, const void *b)
{
	const struct mix_row *x = a, *y = b;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	if (x->place != y->place)
		return x->place < y->place ? -1 : 1;
	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return strcmp(x->name, y->name);
}

void insn_mix_finish(struct insn_mix *mix)
{
	if (mix->rows.n)
		qsort(mix->rows.v, mix->rows.n, sizeof(*mix->rows.v), compare_rows);
	map_release(&mix->row_of);
}

void insn_mix_release(struct insn_mix *mix)
{
	vec_release(&mix->rows);
	map_release(&mix->row_of);
	intern_release(&mix->names);
}
