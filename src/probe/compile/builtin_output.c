/* SPDX-License-Identifier: MIT */
/*
 * Functions that print, or ask weir to do something: each call puts a record into a ring, whose
 * format says what is done with it. Formats of printf are checked in check_format.c.
 */
#include <stddef.h>

#include "probe/compile/builtin.h"
#include "probe/script/tree_search.h"

#define RING_FLAGS 0

/* --- checking --------------------------------------------------------------------------------- */

static enum format_kind format_of(struct check_clause *c, const struct expr *e)
{
	return (enum format_kind)check_row(c, e)->detail;
}

static const struct type *check_printf_call(struct check_clause *c, struct expr *e)
{
	check_printf(c, e, format_of(c, e));
	return check_void(c);
}

static const struct type *check_system(struct check_clause *c, struct expr *e)
{
	return check_is_allowed(c, e) ? check_printf_call(c, e) : check_void(c);
}

/* A map as a whole: no key after it. NULL when it is something else. */
static struct map_use *whole_map(struct check_clause *c, struct expr *e, struct expr *a)
{
	struct map_use *m;

	if (a->kind != EXPR_MAP || a->args) {
		check_error(c, a->place, "arguments", "%s() takes a map without a key", e->name);
		return NULL;
	}
	m = check_map_of(c, a);
	if (m)
		m->is_read = true;
	a->type[c->mode] = check_void(c);
	return m;
}

static const struct type *map_action(struct check_clause *c, struct expr *e, enum format_kind kind)
{
	struct map_use *m = whole_map(c, e, e->args);
	struct stream_format f = {.kind = kind, .n_args = e->n_args - 1};
	uint32_t n_errors = c->n_errors;

	for (struct expr *a = e->args->next; a; a = a->next) {
		int64_t v;

		if (check_constant(c, a, "a number of print()", &v) && v < 0)
			check_error(c, a->place, "range", "a number of print() cannot be negative");
	}
	if (!m || c->n_errors != n_errors)
		return check_bad(c);
	f.map_i = m->number;
	f.args = check_argument_shapes(c, e->args->next, f.n_args);
	if (f.args)
		check_add_format(c, e, &f);
	return check_void(c);
}

static const struct type *check_map_action(struct check_clause *c, struct expr *e)
{
	return map_action(c, e, format_of(c, e));
}

/* print(@h[key]) of what is no single value: weir reads the map. */
static const struct type *check_print_entry(struct check_clause *c, struct expr *e)
{
	struct stream_format f = {.kind = FORMAT_PRINT_ENTRY, .n_args = 1};
	struct expr *a = e->args;
	struct map_use *m = check_map_of(c, a);
	uint32_t n_errors = c->n_errors;

	m->is_read = true;
	a->type[c->mode] = check_void(c);
	check_map_keys(c, m, a->args, a->n_args, a->place);
	if (c->n_errors != n_errors)
		return check_bad(c);
	f.map_i = m->number;
	f.args = arena_zalloc(c->session->stream->arena, sizeof(*f.args));
	f.args[0] = m->key;
	check_add_format(c, e, &f);
	return check_void(c);
}

static bool is_entry_to_read(struct check_clause *c, struct expr *a)
{
	const struct map_use *m = a->kind == EXPR_MAP && a->args ? check_map_of(c, a) : NULL;

	return m && m->value && shape_is_aggregation(m->value) && !shape_is_readable(m->value);
}

static const struct type *check_print(struct check_clause *c, struct expr *e)
{
	struct stream_format f = {.kind = FORMAT_PRINT, .n_args = 1};

	if (e->args->kind == EXPR_MAP && !e->args->args)
		return map_action(c, e, FORMAT_PRINT_MAP);
	if (e->n_args == 1 && is_entry_to_read(c, e->args))
		return check_print_entry(c, e);
	if (e->n_args > 1)
		return check_refuse(c, e->args->next->place, "arguments",
			"only a map without a key can be printed in part");
	if (check_value(c, e->args)->kind == TYPE_BAD)
		return check_bad(c);
	f.args = check_argument_shapes(c, e->args, 1);
	if (!f.args)
		return check_bad(c);
	check_add_format(c, e, &f);
	return check_void(c);
}

/* One integer goes with the record. exit() means exit(0). */
static const struct type *number_action(struct check_clause *c, struct expr *e, const char *what)
{
	struct stream_format f = {.kind = format_of(c, e), .n_args = 1};

	if (!e->args) {
		e->args = arena_zalloc(c->session->script->arena, sizeof(*e->args));
		e->args->kind = EXPR_INT;
		e->args->place = e->place;
		e->n_args = 1;
	}
	if (!check_integer(c, e->args, what))
		return check_bad(c);
	f.args = check_argument_shapes(c, e->args, 1);
	check_add_format(c, e, &f);
	return check_void(c);
}

static const struct type *check_exit(struct check_clause *c, struct expr *e)
{
	return number_action(c, e, "the status of exit()");
}

/* Clauses are counted from 1 in their order. */
static const struct type *check_switch(struct check_clause *c, struct expr *e)
{
	uint32_t n = c->session->script->n_clauses;
	int64_t v;

	if (!check_constant(c, e->args, "a clause's number", &v))
		return check_bad(c);
	if (v < 1 || v > n)
		return check_refuse(
			c, e->args->place, "range", "clauses have the numbers 1 to %u", n);
	return number_action(c, e, "a clause's number");
}

static const struct type *check_time(struct check_clause *c, struct expr *e)
{
	struct stream_format f = {.kind = FORMAT_TIME, .text = "%H:%M:%S\n"};

	if (e->args) {
		if (!check_literal(c, e, e->args))
			return check_bad(c);
		f.text = e->args->text;
	}
	check_add_format(c, e, &f);
	return check_void(c);
}

static const struct type *check_join_call(struct check_clause *c, struct expr *e)
{
	struct stream_format f = {.kind = FORMAT_JOIN, .text = " ", .n_args = 1};
	struct arena *arena = c->session->stream->arena;
	struct shape *words[CHECK_JOIN_WORDS];
	bool ok = check_scalar(c, e->args, "the argument of join()");

	if (e->args->next && !check_literal(c, e, e->args->next))
		return check_bad(c);
	if (!ok)
		return check_bad(c);
	if (e->args->next)
		f.text = e->args->next->text;
	for (int i = 0; i < CHECK_JOIN_WORDS; i++)
		words[i] = shape_new(arena, SHAPE_STRING, false, CHECK_JOIN_BYTES);
	f.args = arena_zalloc(arena, sizeof(*f.args));
	f.args[0] = shape_new_tuple(arena, words, CHECK_JOIN_WORDS);
	check_add_format(c, e, &f);
	return check_void(c);
}

/* --- records ---------------------------------------------------------------------------------- */

/* Two fields at a time: see lower_index. */
static void put_head(struct lower *l, uint32_t format, ir_mem mem)
{
	uint64_t clause = l->clause->clause_i | (l->mode == MODE_64 ? 1u << 31 : 0);
	ir_value both, low, high;

	ir_store(&l->ir, mem, 0, 8, ir_call(&l->ir, BPF_FUNC_ktime_get_ns, NULL, 0));
	ir_store_imm(&l->ir, mem, offsetof(struct stream_record, format), 8,
		(int64_t)(format | clause << 32));
	both = ir_call(&l->ir, BPF_FUNC_get_current_pid_tgid, NULL, 0);
	low = ir_alu_imm(&l->ir, BPF_RSH, both, 32);
	high = ir_alu_imm(&l->ir, BPF_LSH, both, 32);
	ir_store(&l->ir, mem, offsetof(struct stream_record, pid), 8,
		ir_alu(&l->ir, BPF_OR, low, high));
}

/* join: the texts that the words of an array point to, up to a NULL or as many as there is room. What is
 * left out is counted. */
static void put_words(
	struct lower *l, const struct expr *e, const struct shape *room, ir_mem mem, uint32_t at)
{
	const struct type *t = type_of(l, e);
	enum space space = t->kind == TYPE_POINTER ? t->space : SPACE_USER;
	uint32_t word = space == SPACE_USER && l->mode == MODE_32 ? 4 : 8;
	struct object o = {.kind = OBJECT_ADDRESS, .space = space, .address = lower_value(l, e)};
	ir_label end = ir_new_label(&l->ir);

	ir_zero(&l->ir, mem, (int32_t)at, room->size);
	for (uint32_t i = 0; i < room->n_fields; i++) {
		const struct shape_field *f = &room->fields[i];
		ir_value p;

		o.offset = (int64_t)i * word;
		p = lower_read(l, &o, word, false);
		ir_branch_imm(&l->ir, BPF_JEQ, p, 0, end);
		lower_read_text_to_limit(l, space, p, f->shape->n, mem, at + f->offset);
	}
	o.offset = (int64_t)room->n_fields * word;
	ir_branch_imm(&l->ir, BPF_JEQ, lower_peek(l, space, lower_address(l, &o), word), 0, end);
	lower_count_loss(l, offsetof(struct clause_loss, texts_cut));
	ir_place_label(&l->ir, end);
}

static const struct type *kept_type(const struct lower *l, const struct expr *e)
{
	return check_kept_type(l->clause->session->types[l->mode], type_of(l, e));
}

static bool has_blocks(const struct expr *args)
{
	for (; args; args = args->next)
		if (expr_has_block(args))
			return true;
	return false;
}

static void put_key(struct lower *l, const struct expr *e, ir_mem mem, uint32_t at)
{
	const struct map_use *map = meaning_of(l, e)->map;

	lower_copy_memory(l, lower_map_key(l, map, e->args), 0, mem, at, map->key->size);
}

/* Where it stands that exit() was called: 0 when there is no such place. */
static ir_value over_fact(struct lower *l)
{
	ir_mem key = lower_index(l, FACT_IS_OVER);

	return IR_CALL_(&l->ir, BPF_FUNC_map_lookup_elem, IR_MAP(STREAM_MAP_FACTS), IR_M(key, 0));
}

static void set_over(struct lower *l, ir_value fact, int64_t is_over)
{
	ir_label none = ir_new_label(&l->ir);

	ir_branch_imm(&l->ir, BPF_JEQ, fact, 0, none);
	ir_store_at(&l->ir, fact, 0, 8, ir_const(&l->ir, is_over));
	ir_place_label(&l->ir, none);
}

/* struct stream_record, then the arguments; one call puts it into the ring. What comes after exit()
 * is nobody's loss, so the record is announced before it is there. */
void lower_record(struct lower *l, const struct expr *e, uint32_t format, const struct expr *args)
{
	const struct stream_format *f = &l->stream->formats.v[format];
	uint32_t size = sizeof(struct stream_record), at = size;
	ir_label ok = ir_new_label(&l->ir);
	/* Statements in the arguments may make records, which are earlier than this one. */
	bool is_late = has_blocks(args);
	ir_value rc, over = 0;
	ir_mem mem;

	for (uint32_t i = 0; i < f->n_args; i++)
		size += f->args[i]->size;
	mem = ir_new_memory(&l->ir, size);
	if (!is_late)
		put_head(l, format, mem);
	for (uint32_t i = 0; args && i < f->n_args; i++, args = args->next) {
		if (f->kind == FORMAT_JOIN)
			put_words(l, args, f->args[i], mem, at);
		else if (f->kind == FORMAT_PRINT_ENTRY)
			put_key(l, args, mem, at);
		else
			lower_store(l, args, (struct destination){kept_type(l, args), mem, at});
		at += f->args[i]->size;
	}
	if (is_late)
		put_head(l, format, mem);
	l->ir.place = e->place;
	if (f->kind == FORMAT_EXIT) {
		over = over_fact(l);
		set_over(l, over, 1);
	}
	rc = IR_CALL_(&l->ir, BPF_FUNC_ringbuf_output,
		IR_MAP(f->kind >= FORMAT_EXIT ? STREAM_MAP_CONTROL : STREAM_MAP_RECORDS),
		IR_M(mem, 0), IR_I(size), IR_I(RING_FLAGS));
	ir_branch_imm(&l->ir, BPF_JEQ, rc, 0, ok);
	if (over)
		set_over(l, over, 0);
	lower_count_loss(l, offsetof(struct clause_loss, lost_records));
	ir_place_label(&l->ir, ok);
}

static ir_value lower_output(struct lower *l, const struct expr *e)
{
	uint32_t format = meaning_of(l, e)->format;
	enum format_kind kind = l->stream->formats.v[format].kind;
	const struct expr *args = e->args;

	/* print(VALUE) and join are records of all they are given; time() of nothing. */
	for (int i = 0; args && i < format_traits[kind].first_arg; i++)
		args = args->next;
	lower_record(l, e, format, args);
	if (kind == FORMAT_EXIT)
		ir_jump(&l->ir, l->end);
	return 0;
}

const struct builtin output_builtins[] = {
#define OUTPUT(checked, format) .check = checked, .lower = lower_output, .detail = format
	{"printf", "printf(FORMAT, VALUE, ...)", 1, 64, OUTPUT(check_printf_call, FORMAT_PRINTF)},
	{"print", "print(@MAP [, TOP [, DIV]]) or print(VALUE)", 1, 3,
		OUTPUT(check_print, FORMAT_PRINT)},
	{"clear", "clear(@MAP)", 1, 1, OUTPUT(check_map_action, FORMAT_CLEAR_MAP)},
	{"zero", "zero(@MAP)", 1, 1, OUTPUT(check_map_action, FORMAT_ZERO_MAP)},
	{"exit", "exit([STATUS])", 0, 1, OUTPUT(check_exit, FORMAT_EXIT)},
	{"time", "time([FORMAT])", 0, 1, OUTPUT(check_time, FORMAT_TIME)},
	{"cat", "cat(FORMAT, VALUE, ...)", 1, 64, OUTPUT(check_printf_call, FORMAT_CAT)},
	{"system", "system(FORMAT, VALUE, ...)", 1, 64, OUTPUT(check_system, FORMAT_SYSTEM)},
	{"join", "join(POINTER [, TEXT])", 1, 2, OUTPUT(check_join_call, FORMAT_JOIN)},
	{"enable", "enable(CLAUSE)", 1, 1, OUTPUT(check_switch, FORMAT_ENABLE)},
	{"disable", "disable(CLAUSE)", 1, 1, OUTPUT(check_switch, FORMAT_DISABLE)},
	{.name = NULL},
};
