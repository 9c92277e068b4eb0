/* SPDX-License-Identifier: MIT */
/*
 * Loops. A short one of a known number of turns is followed by the kernel's verifier turn for turn.
 * Any other asks at each turn whether it may go on (ir_may_turn), and is verified by going round
 * until nothing new turns up; for that the verifier must not know what the variables of the clause
 * are when a turn begins, or it would follow each of their values (forget_locals). When the loop is
 * cut short that is a loss.
 *
 * A loop over a map is a function that the kernel calls for each entry, and that shares the values
 * of the clause:
 *
 *   way = 0
 *   for_each_map_elem(map, function, ..)    function(map, key, value, ..):
 *   if (way == 1) goto end of the clause            $kv = (*key, *value)
 *   if (way == 2) goto failed to read               body
 *   ...                                             continue: return 0
 *                                                   break:    return 1
 *                                                   return:   way = 1; return 1
 *
 * Loops that ask are in a function, too, which the clause calls once: Linux 6.15 to at least 6.18
 * lose the time of may_goto in programs that have their stack elsewhere (private stacks), which are
 * those with 64 bytes of stack and more. A function here has none of its own.
 */
#include <stddef.h>
#include <string.h>

#include "probe/compile/lower.h"
#include "probe/script/tree_search.h"

#define FOLLOWED_TURNS_MAX 100
#define UNROLLED_MAX	   16 /* copies of a body */

enum entry_argument { ENTRY_KEY = 2, ENTRY_VALUE = 3 }; /* of a function for entries */

static const struct check_clause *clause_now(const struct lower *l)
{
	return l->is_in_error ? l->error_clause : l->clause;
}

/* Words of a tuple may be counters, too. */
static void forget_words(struct lower *l, const struct variable *v, ir_value unknown)
{
	uint32_t n = lower_padded_size(v->type[l->mode]);

	for (uint32_t at = 0; at < n; at += 8) {
		ir_value word = ir_new_value(&l->ir);

		ir_copy(&l->ir, word, ir_load(&l->ir, v->storage, (int32_t)at, 8, false));
		ir_forget(&l->ir, word, unknown);
		ir_store(&l->ir, v->storage, (int32_t)at, 8, word);
	}
}

/* Addresses in the kernel may be more than numbers to the verifier. Variables of loops do not change
 * but by their own. */
static void forget_locals(struct lower *l, ir_value unknown)
{
	for (const struct variable *v = clause_now(l)->locals; v; v = v->next) {
		const struct type *t = v->type[l->mode];

		/* Of the scratch area, where addressed ones lie, the verifier knows nothing. */
		if (!t || !v->storage || v->is_loop || v->is_addressed)
			continue;
		if (t->kind == TYPE_TUPLE)
			forget_words(l, v, unknown);
		else if (t->kind == TYPE_INT || (t->kind == TYPE_POINTER && t->space == SPACE_USER))
			ir_forget(&l->ir, v->storage, unknown);
	}
}

/* The variable that the loop declares: the first of its name from where the loop begins. */
static const struct variable *loop_variable(const struct lower *l, const struct stmt *s)
{
	const struct variable *best = NULL;

	for (const struct variable *v = clause_now(l)->locals; v; v = v->next)
		if (v->is_loop && !strcmp(v->name, s->name) && v->place.from >= s->place.from &&
			(!best || v->place.from < best->place.from))
			best = v;
	return best;
}

/* --- functions -------------------------------------------------------------------------------- */

/* Where the code of a function may leave to: the end of the clause, that of a function of the script,
 * and failures. */
enum { N_WAYS = 2 + N_FAILURES };

struct function {
	uint32_t number;
	ir_value unknown; /* for ir_forget */
	ir_value way;	  /* 0: it came to its end */
	ir_label around[N_WAYS];
	bool was_in_function;
};

static ir_label *way_of(struct lower *l, int i)
{
	return i == 0 ? &l->end : i == 1 ? &l->function_end : &l->failed[i - 2];
}

/* Before the call. */
static struct function new_function(struct lower *l)
{
	struct function f = {.number = ir_new_function(&l->ir),
		.unknown = ir_unknown(&l->ir),
		.way = ir_new_value(&l->ir),
		.was_in_function = l->is_in_function};

	ir_set_const(&l->ir, f.way, 0);
	ir_forget(&l->ir, f.way, f.unknown);
	return f;
}

static void begin_function(struct lower *l, struct function *f)
{
	ir_function(&l->ir, f->number);
	for (int i = 0; i < N_WAYS; i++) {
		f->around[i] = *way_of(l, i);
		if (f->around[i]) /* there is such a way */
			*way_of(l, i) = ir_new_label(&l->ir);
	}
	l->is_in_function = true;
}

/* Behind the last statement; `result` is that of a function which leaves the clause. */
static void end_function(struct lower *l, const struct function *f, int64_t result)
{
	for (int i = 0; i < N_WAYS; i++) {
		if (!f->around[i])
			continue;
		ir_place_label(&l->ir, *way_of(l, i));
		ir_set_const(&l->ir, f->way, i + 1);
		ir_return(&l->ir, result);
		*way_of(l, i) = f->around[i];
	}
	l->is_in_function = f->was_in_function;
	ir_function_end(&l->ir);
}

/* Behind the call. */
static void go_its_way(struct lower *l, const struct function *f)
{
	for (int i = 0; i < N_WAYS; i++)
		if (f->around[i])
			ir_branch_imm(&l->ir, BPF_JEQ, f->way, i + 1, *way_of(l, i));
}

/* --- loops that ask --------------------------------------------------------------------------- */

struct turns {
	bool asks;
	ir_value n;	   /* turns until now */
	ir_value unknown;  /* for ir_forget */
	int64_t most;	   /* 0 = not known */
	ir_label too_many; /* where it goes then */
	bool has_function;
	struct function function;
};

static struct turns begin_turns(struct lower *l, int64_t most)
{
	struct turns t = {.asks = true,
		.n = ir_new_value(&l->ir),
		.unknown = ir_unknown(&l->ir),
		.most = most,
		.too_many = ir_new_label(&l->ir)};

	ir_set_const(&l->ir, t.n, 0);
	forget_locals(l, t.unknown);
	ir_forget(&l->ir, t.n, t.unknown);
	t.has_function = !l->is_in_function;
	if (t.has_function)
		t.function = new_function(l);
	ir_loop(&l->ir, most);
	if (t.has_function) {
		ir_call_function(&l->ir, t.function.number);
		begin_function(l, &t.function);
	}
	return t;
}

/* Behind the condition. */
static void begin_turn(struct lower *l, const struct turns *t)
{
	ir_may_turn(&l->ir, t->n, t->most, t->too_many);
	forget_locals(l, t->unknown);
}

/* Behind the jump back; `end` is where the loop ends. */
static void end_turns(struct lower *l, const struct turns *t, ir_label end)
{
	ir_place_label(&l->ir, t->too_many);
	lower_count_loss(l, offsetof(struct clause_loss, loop_limit));
	ir_place_label(&l->ir, end);
	if (t->has_function) {
		ir_return(&l->ir, 0);
		end_function(l, &t->function, 0);
	}
	ir_loop_end(&l->ir);
	if (t->has_function)
		go_its_way(l, &t->function);
}

void lower_while(struct lower *l, const struct stmt *s)
{
	struct loop_labels loop = {ir_new_label(&l->ir), ir_new_label(&l->ir), l->loop};
	struct turns turns = begin_turns(l, 0);

	l->loop = &loop;
	ir_place_label(&l->ir, loop.next);
	lower_condition(l, s->a, loop.end);
	begin_turn(l, &turns);
	lower_statements(l, s->body);
	ir_jump(&l->ir, loop.next);
	end_turns(l, &turns, loop.end);
	l->loop = loop.outer;
}

/* --- ranges ----------------------------------------------------------------------------------- */

/* 0 when they are not, or are too many. */
static int64_t known_turns(const struct lower *l, const struct stmt *s)
{
	uint64_t from = s->a->constant[l->mode], to = s->b->constant[l->mode];

	if (!s->a->is_constant[l->mode] || !s->b->is_constant[l->mode])
		return 0;
	if ((int64_t)to <= (int64_t)from)
		return 1; /* the condition is looked at once */
	return to - from <= LOOP_TURNS_MAX ? (int64_t)(to - from) : 0;
}

/* What is in such a loop is gone through once for each turn: no loops. */
static bool is_followed(const struct stmt *s, int64_t n_known)
{
	return n_known && n_known <= FOLLOWED_TURNS_MAX && !stmts_have_loop(s->body);
}

/* for ($i : a..b): b is not part of it, and is looked at once. */
void lower_for(struct lower *l, const struct stmt *s)
{
	struct loop_labels loop = {ir_new_label(&l->ir), ir_new_label(&l->ir), l->loop};
	ir_value i = loop_variable(l, s)->storage, end = ir_new_value(&l->ir);
	int64_t n_known = known_turns(l, s);
	struct turns turns = {0};
	ir_label top = ir_new_label(&l->ir);

	l->loop = &loop;
	ir_copy(&l->ir, end, lower_value(l, s->b));
	ir_copy(&l->ir, i, lower_value(l, s->a));
	if (!is_followed(s, n_known)) {
		turns = begin_turns(l, n_known);
		ir_forget(&l->ir, i, turns.unknown);
	} else {
		ir_loop(&l->ir, n_known);
	}
	ir_place_label(&l->ir, top);
	ir_branch(&l->ir, BPF_JSGE, i, end, loop.end);
	if (turns.asks) {
		begin_turn(l, &turns);
		ir_forget(&l->ir, i, turns.unknown);
	}
	lower_statements(l, s->body);
	ir_place_label(&l->ir, loop.next);
	ir_copy(&l->ir, i, ir_alu_imm(&l->ir, BPF_ADD, i, 1));
	ir_jump(&l->ir, top);
	if (turns.asks) {
		end_turns(l, &turns, loop.end);
	} else {
		ir_loop_end(&l->ir);
		ir_place_label(&l->ir, loop.end);
	}
	l->loop = loop.outer;
}

/* The body again and again. */
static void lower_copies(struct lower *l, const struct stmt *s, uint64_t n)
{
	struct loop_labels loop = {0, ir_new_label(&l->ir), l->loop};

	l->loop = &loop;
	for (uint64_t i = 0; i < n && !l->ir.is_dead; i++) {
		loop.next = ir_new_label(&l->ir);
		lower_statements(l, s->body);
		ir_place_label(&l->ir, loop.next);
	}
	ir_place_label(&l->ir, loop.end);
	l->loop = loop.outer;
}

/* So many copies that jumps over them may be too far are a loop. */
void lower_unroll(struct lower *l, const struct stmt *s)
{
	int64_t n = (int64_t)s->a->constant[l->mode];
	struct loop_labels loop = {0};
	struct turns turns;
	ir_label top;
	ir_value i;

	if (n <= UNROLLED_MAX) {
		lower_copies(l, s, (uint64_t)n);
		return;
	}
	loop = (struct loop_labels){ir_new_label(&l->ir), ir_new_label(&l->ir), l->loop};
	l->loop = &loop;
	i = ir_new_value(&l->ir);
	ir_set_const(&l->ir, i, 0);
	turns = begin_turns(l, n);
	ir_forget(&l->ir, i, turns.unknown);
	top = ir_new_label(&l->ir);
	ir_place_label(&l->ir, top);
	ir_branch_imm(&l->ir, BPF_JSGE, i, n, loop.end);
	begin_turn(l, &turns);
	ir_forget(&l->ir, i, turns.unknown);
	lower_statements(l, s->body);
	ir_place_label(&l->ir, loop.next);
	ir_copy(&l->ir, i, ir_alu_imm(&l->ir, BPF_ADD, i, 1));
	ir_jump(&l->ir, top);
	end_turns(l, &turns, loop.end);
	l->loop = loop.outer;
}

/* --- maps ------------------------------------------------------------------------------------- */

/* Copies n bytes behind a pointer of the kernel. */
static void copy_from(struct lower *l, ir_value p, uint32_t n, ir_mem mem, uint32_t at)
{
	for (uint32_t i = 0; i < n; i += 8)
		ir_store(&l->ir, mem, (int32_t)(at + i), 8,
			ir_load_at(&l->ir, p, (int32_t)i, 8, false));
}

/* $kv = (key, value) */
static void take_entry(struct lower *l, const struct stmt *s)
{
	const struct variable *kv = loop_variable(l, s);
	const struct map_use *map = meaning_of(l, s->a)->map;
	ir_value key = ir_parameter(&l->ir, ENTRY_KEY);
	ir_value value = ir_parameter(&l->ir, ENTRY_VALUE);
	uint32_t value_at = lower_padded_size(kv->type[l->mode]->fields[0].type);

	copy_from(l, key, map->key->size, kv->storage, 0);
	if (shape_is_aggregation(map->value)) /* `value` is that of this processor */
		ir_store(&l->ir, kv->storage, (int32_t)value_at, 8,
			lower_aggregated(l, map, kv->storage));
	else
		copy_from(l, value, map->value->size, kv->storage, value_at);
}

/* What the function does: it goes on with 0 and stops with 1. */
static void lower_entry(struct lower *l, const struct stmt *s, ir_value unknown)
{
	struct loop_labels loop = {ir_new_label(&l->ir), ir_new_label(&l->ir), l->loop};

	l->loop = &loop;
	take_entry(l, s); /* first, while its registers are what the kernel has put there */
	forget_locals(l, unknown);
	lower_statements(l, s->body);
	ir_place_label(&l->ir, loop.next);
	ir_return(&l->ir, 0);
	ir_place_label(&l->ir, loop.end);
	ir_return(&l->ir, 1);
	l->loop = loop.outer;
}

void lower_for_map(struct lower *l, const struct stmt *s)
{
	const struct map_use *map = meaning_of(l, s->a)->map;
	struct function f = new_function(l);

	forget_locals(l, f.unknown);
	ir_loop(&l->ir, 1);
	IR_CALL_(&l->ir, BPF_FUNC_for_each_map_elem,
		IR_MAP(STREAM_MAP_FIRST_OF_SCRIPT + (int64_t)map->number), IR_FUNC(f.number),
		IR_FRAME, IR_I(0));
	begin_function(l, &f);
	lower_entry(l, s, f.unknown);
	end_function(l, &f, 1);
	ir_loop_end(&l->ir);
	go_its_way(l, &f);
}
