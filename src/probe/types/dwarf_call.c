/* SPDX-License-Identifier: MIT */
/*
 * All arguments of a call at one address. Debug information leaves some out although the calling
 * convention is known: then that says where they are, as long as nothing speaks against it. A
 * function that other files can call keeps to the convention, unless its author asked for another
 * one (ms_abi, fastcall, regparm), which only the places of its other arguments show.
 */
#include <elf.h>
#include <string.h>

#include "probe/types/dwarf_place.h"

#define CC_NOCALL 0x03 /* DW_CC_nocall: the convention is the compiler's own */

static const char changed[] = "may have been changed by the compiler in this copy of the function";
static const char own_rules[] = "is a structure, and how this language returns those is not known";
static const char other_rules[] =
	"is a structure, and the function does not keep to the usual calling convention";

/* C, C++ and what keeps to their rules. */
static bool has_usual_rules(const struct debug_unit *u)
{
	static const uint16_t others[] = {0x16 /* Go */, 0x18 /* Haskell */, 0x1b /* OCaml */,
		0x1c /* Rust */, 0x1e /* Swift */};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (die_has(&u->root, SLOT_LANGUAGE) && u->root.value[SLOT_LANGUAGE] == others[i])
			return false;
	return true;
}

/* The symbols of a function. */
struct symbols {
	uint64_t addr;
	bool is_global, is_copy;
};

static void note_symbol(void *ctx, const struct elf_symbol *symbol)
{
	struct symbols *s = ctx;

	if (symbol->addr.v != s->addr)
		return;
	s->is_global |= symbol->bind != STB_LOCAL;
	s->is_copy |= strstr(symbol->name, ".isra.") != NULL;
}

static struct symbols symbols_of(const struct place_finder *f)
{
	struct symbols s = {.addr = f->entry};

	elf_file_each_function(f->source->elf, true, note_symbol, &s);
	elf_file_each_function(f->source->elf, false, note_symbol, &s);
	if (f->source->debug)
		elf_file_each_function(f->source->debug, false, note_symbol, &s);
	return s;
}

static bool is_nocall(const struct place_finder *f)
{
	uint64_t convention;

	return die_number(&f->function, DIE_CALLING_CONVENTION, &convention) &&
	       convention == CC_NOCALL;
}

/* Whether any argument is somewhere else than the convention has it. */
static bool contradicts(const struct place_finder *f, const struct call_facts *call)
{
	for (uint32_t i = 0; i < call->function->n_fields; i++) {
		struct value_place usual = call_argument(f->mode, call->function, i);

		if (call->places[i].kind == VALUE_IN_PARTS &&
			call->places[i].parts[0].kind != PART_CONSTANT &&
			!call_is_place_same(&usual, &call->places[i]))
			return true;
	}
	return false;
}

/* Two numbers, each in eight bytes of its own, or what is returned in memory in any case. */
static bool is_same_everywhere(const struct type *type)
{
	return type->size > 16 ||
	       (type->n_fields == 2 && type_is_scalar(type->fields[0].type) &&
		       type_is_scalar(type->fields[1].type) && type->fields[0].offset % 8 == 0 &&
		       type->fields[1].offset % 8 == 0);
}

static const char *result_trouble(
	const struct place_finder *f, const struct call_facts *call, bool is_other, bool is_copy)
{
	const struct type *of = call->function->of;

	if (of->kind == TYPE_VOID)
		return NULL;
	if (is_copy || is_nocall(f))
		return changed;
	if (type_is_scalar(of) || of->kind == TYPE_FLOAT || f->mode == MODE_32)
		return NULL;
	if (!has_usual_rules(f->function.unit) && !is_same_everywhere(of))
		return own_rules;
	return is_other ? other_rules : NULL;
}

static struct value_place place_of(struct place_finder *f, const struct type *function, uint32_t i,
	const struct die *parameter)
{
	const struct type *type = function->fields[i].type;
	struct value_place place = dwarf_place(f, parameter, type);
	struct value_place usual = call_argument(f->mode, function, i);

	if (f->is_guess && place.kind == VALUE_IN_PARTS && !call_is_place_same(&usual, &place))
		return (struct value_place){.kind = VALUE_UNKNOWN,
			.why = "is in the frame of the function, which is not known here"};
	if (place.kind == VALUE_UNKNOWN && f->addr == f->entry &&
		dwarf_place_comes_from(f, parameter, type, &usual))
		return usual;
	return place;
}

void dwarf_call_places(struct place_finder *f, struct call_facts *call)
{
	struct die *parameters = mem_calloc(DWARF_PARAMETERS_MAX, sizeof(*parameters));
	uint32_t n = dwarf_function_parameters(f->builder, &f->function, parameters);
	const struct type *function = call->function;
	struct symbols symbols = symbols_of(f);
	bool is_other, is_usual;

	for (uint32_t i = 0; i < function->n_fields; i++)
		call->places[i] = i < n ? place_of(f, function, i, &parameters[i])
					: (struct value_place){.kind = VALUE_UNKNOWN,
						  .why = "is not in the debug information"};
	free(parameters);
	is_other = contradicts(f, call);
	/* 32-bit compilers have several conventions that look alike. */
	is_usual = f->mode == MODE_64 && f->addr == f->entry && symbols.is_global && !is_other &&
		   !f->is_unreadable && !symbols.is_copy && !is_nocall(f) &&
		   has_usual_rules(f->function.unit);
	for (uint32_t i = 0; is_usual && i < function->n_fields; i++)
		if (call->places[i].kind == VALUE_UNKNOWN && !dwarf_place_is_gone(&call->places[i]))
			call->places[i] = call_argument(f->mode, function, i);
	call->is_unusual = is_other;
	call->result_trouble = result_trouble(f, call, is_other, symbols.is_copy);
}
