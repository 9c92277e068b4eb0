/* SPDX-License-Identifier: MIT */
/* From a place to the methods that it stands for. */
#include <stdio.h>

#include "jvm/jvm_internal.h"

static size_t method_levels(struct jvm *jvm, const struct method *m, int32_t bci,
	struct jvm_level *level, const char **why)
{
	(void)jvm;
	if (!m) {
		*why = "the method is not there any more";
		return 0;
	}
	method_describe(m, bci, level);
	return 1;
}

/* The interpreter's pieces have names of their own. */
static const char *stub_name(struct jvm *jvm, const struct code *c, uint32_t at)
{
	const struct codelet *codelet =
		c->kind == CODE_INTERPRETER ? codelet_find(jvm, c->start + at) : NULL;
	char name[256];

	if (!codelet)
		return c->name;
	snprintf(name, sizeof(name), "%s: %s", c->name, codelet->name);
	return jvm_text(jvm, name);
}

static size_t code_levels(
	struct jvm *jvm, const struct jvm_place *place, struct jvm_level *levels, const char **why)
{
	struct code *c = code_by_number(jvm, place->code);

	if (!c) {
		*why = "the code is not there any more";
		return 0;
	}
	if (c->kind == CODE_COMPILED || c->kind == CODE_NATIVE)
		return method_levels(jvm, method_find(jvm, c->method), -1, levels, why);
	*levels = (struct jvm_level){.name = stub_name(jvm, c, place->at)};
	return 1;
}

size_t jvm_levels(struct jvm *jvm, const struct jvm_place *place,
	struct jvm_level levels[JVM_LEVELS_MAX], const char **why)
{
	const struct method *m;

	*why = NULL;
	if (place->kind == JVM_PLACE_INTERPRETED || place->kind == JVM_PLACE_NATIVE) {
		m = method_by_number(jvm, place->code);
		if (m)
			return method_levels(jvm, m, (int32_t)place->at, levels, why);
	}
	return code_levels(jvm, place, levels, why);
}
