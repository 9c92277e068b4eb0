/* SPDX-License-Identifier: MIT */
/* From a place to the methods that it stands for. */
#include <stdio.h>
#include <string.h>

#include "jvm/jvm_internal.h"

#define STUB_NAME_BYTES 256

/* Pieces of blobs that have names of their own. */
static const char *piece_name(struct jvm *jvm, const struct code *c, uint64_t pc)
{
	const struct codelet *codelet = c->kind == CODE_INTERPRETER ? codelet_find(jvm, pc) : NULL;

	if (codelet)
		return codelet->name;
	if (pc == jvm->call_stub_return)
		return "call_stub";
	return pc == jvm->return_barrier ? "callers of a virtual thread in the heap" : NULL;
}

static size_t stub_level(
	struct jvm *jvm, const struct code *c, uint32_t at, struct jvm_level *level)
{
	const char *piece = piece_name(jvm, c, c->start + at);
	char name[STUB_NAME_BYTES];

	*level = (struct jvm_level){.name = c->name};
	if (piece) {
		snprintf(name, sizeof(name), "%s: %s", c->name, piece);
		level->name = jvm_text(jvm, name);
	}
	return 1;
}

/* The method as a whole: nothing is known of the line, nor of what may be inlined there. */
static size_t whole_method(
	struct jvm *jvm, const struct code *c, int32_t bci, struct jvm_level *level)
{
	const struct method *m = method_find(jvm, c->method);

	if (!m)
		return 0;
	method_describe(m, bci, level);
	return 1;
}

static size_t describe_scopes(
	struct jvm *jvm, const struct scope *scopes, size_t n, struct jvm_level *levels)
{
	for (size_t i = 0; i < n; i++) {
		const struct method *m = method_find(jvm, scopes[i].method);

		if (!m)
			return 0;
		/* What belongs to no bytecode (locks, safepoints at the entry) is at the begin. */
		method_describe(m, scopes[i].bci < 0 ? 0 : scopes[i].bci, &levels[i]);
		levels[i].is_inlined = i + 1 < n;
	}
	return n;
}

static size_t find_levels(
	struct jvm *jvm, struct code *c, uint32_t at, struct jvm_level levels[JVM_LEVELS_MAX])
{
	uint64_t pc = c->start + at;
	uint32_t offset = (uint32_t)(pc - c->code_begin);
	struct scope found[JVM_LEVELS_MAX];
	struct scopes scopes;
	size_t n = 0;

	if (c->kind == CODE_NATIVE || pc < c->code_begin || pc >= c->stubs_begin)
		return whole_method(jvm, c, -1, levels);
	if (c->frame_complete > 0 && offset < (uint32_t)c->frame_complete)
		return whole_method(jvm, c, 0, levels);
	if (code_scopes(jvm, c, &scopes))
		n = scopes_find(&scopes, &jvm->layout, offset, found, JVM_LEVELS_MAX);
	if (n && found[n - 1].method == c->method)
		n = describe_scopes(jvm, found, n, levels);
	else
		n = 0;
	return n ? n : whole_method(jvm, c, -1, levels);
}

/* Found once for each place, and kept for when the code is gone. */
static size_t compiled_levels(struct jvm *jvm, struct code *c, const struct jvm_place *place,
	struct jvm_level levels[JVM_LEVELS_MAX], const char **why)
{
	struct place_levels *known = &jvm->place_levels;
	uint64_t key = (uint64_t)place->code << 32 | place->at;
	uint64_t *slot = map_find(&known->by_place, key);
	size_t n;

	if (slot) {
		n = *slot & 0xff;
		memcpy(levels, known->v + (*slot >> 8), n * sizeof(*levels));
		return n;
	}
	n = c && !c->is_dead ? find_levels(jvm, c, place->at, levels) : 0;
	if (!n) {
		*why = jvm->is_gone ? "the JVM ended before its names were read"
				    : "the code is not there any more";
		return 0;
	}
	if (known->n + n > PLACE_LEVELS_MAX) {
		map_reset(&known->by_place);
		known->n = 0;
	}
	*map_ensure(&known->by_place, key, NULL) = (uint64_t)known->n << 8 | n;
	for (size_t i = 0; i < n; i++)
		vec_push(known, levels[i]);
	return n;
}

size_t jvm_levels(struct jvm *jvm, const struct jvm_place *place,
	struct jvm_level levels[JVM_LEVELS_MAX], const char **why)
{
	const struct method *m = method_by_number(jvm, place->code);
	struct code *c;

	*why = NULL;
	if (m) {
		method_describe(
			m, place->at == JVM_BYTECODE_UNKNOWN ? -1 : (int32_t)place->at, levels);
		return 1;
	}
	c = code_by_number(jvm, place->code);
	if (c && c->kind != CODE_COMPILED && c->kind != CODE_NATIVE)
		return stub_level(jvm, c, place->at, levels);
	return compiled_levels(jvm, c, place, levels, why);
}
