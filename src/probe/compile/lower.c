/* SPDX-License-Identifier: MIT */
/*
 * A clause becomes
 *
 *   if (!predicate) goto end
 *   statements
 *   goto end
 *   failed to read: count it; error {} statements; goto end
 *   other failures: likewise
 *   end:
 *
 * A statement either has its effect or the clause ends at it: nothing is printed from a half-read
 * structure.
 */
#include "probe/compile/lower.h"

#include <stddef.h>
#include <string.h>

#include "probe/script/tree_search.h"

static void lower_stmt(struct lower *l, const struct stmt *s);

static void lower_statements(struct lower *l, const struct stmt *s)
{
	/* What nothing leads to is not looked at: unroll() in unroll() would take for ever. */
	for (; s && !l->ir.is_dead && !l->ir.is_too_long; s = s->next) {
		struct ir_memory_mark mark = ir_memory_mark(&l->ir);

		l->ir.place = s->place;
		lower_stmt(l, s);
		ir_memory_release(&l->ir, mark);
	}
}

void lower_block(struct lower *l, const struct expr *e)
{
	struct place place = l->ir.place;
	ir_label outer = l->function_end;

	if (e->is_function)
		l->function_end = ir_new_label(&l->ir);
	lower_statements(l, e->body);
	if (e->is_function)
		ir_place_label(&l->ir, l->function_end);
	l->function_end = outer;
	l->ir.place = place;
}

static void lower_if(struct lower *l, const struct stmt *s)
{
	ir_label no = ir_new_label(&l->ir), done = ir_new_label(&l->ir);

	if (s->a->is_constant[l->mode]) {
		lower_statements(l, s->a->constant[l->mode] ? s->body : s->other);
		return;
	}
	lower_condition(l, s->a, no);
	lower_statements(l, s->body);
	ir_jump(&l->ir, done);
	ir_place_label(&l->ir, no);
	lower_statements(l, s->other);
	ir_place_label(&l->ir, done);
}

/* --- loops ------------------------------------------------------------------------------------ */

/* Counts turns and leaves, counted as a loss, when there are too many. */
static void limit_turns(struct lower *l, ir_value turns, ir_label too_many)
{
	ir_limit_turns(&l->ir, turns, too_many);
	ir_copy(&l->ir, turns, ir_alu_imm(&l->ir, BPF_ADD, turns, 1));
}

static void too_many_turns(struct lower *l, ir_label too_many, ir_label end)
{
	ir_jump(&l->ir, end);
	ir_place_label(&l->ir, too_many);
	lower_count_loss(l, offsetof(struct clause_loss, loop_limit));
}

static void lower_while(struct lower *l, const struct stmt *s)
{
	struct loop_labels loop = {ir_new_label(&l->ir), ir_new_label(&l->ir), l->loop};
	ir_label too_many = ir_new_label(&l->ir);
	ir_value turns = ir_new_value(&l->ir);

	l->loop = &loop;
	ir_set_const(&l->ir, turns, 0);
	ir_loop(&l->ir, 0);
	ir_place_label(&l->ir, loop.next);
	lower_condition(l, s->a, loop.end);
	limit_turns(l, turns, too_many);
	lower_statements(l, s->body);
	ir_jump(&l->ir, loop.next);
	ir_loop_end(&l->ir);
	too_many_turns(l, too_many, loop.end);
	ir_place_label(&l->ir, loop.end);
	l->loop = loop.outer;
}

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

/* The variable that the loop declares: the first of its name from where the loop begins. */
static const struct variable *loop_variable(const struct lower *l, const struct stmt *s)
{
	const struct variable *best = NULL;
	const struct check_clause *c = l->is_in_error ? l->error_clause : l->clause;

	for (const struct variable *v = c->locals; v; v = v->next)
		if (v->is_loop && !strcmp(v->name, s->name) && v->place.from >= s->place.from &&
			(!best || v->place.from < best->place.from))
			best = v;
	return best;
}

/* for ($i : a..b): b is not part of it, and is looked at once. */
static void lower_for(struct lower *l, const struct stmt *s)
{
	struct loop_labels loop = {ir_new_label(&l->ir), ir_new_label(&l->ir), l->loop};
	ir_label top = ir_new_label(&l->ir), too_many = ir_new_label(&l->ir);
	ir_value i = loop_variable(l, s)->storage, end = ir_new_value(&l->ir),
		 turns = ir_new_value(&l->ir);
	int64_t n_known = known_turns(l, s);

	l->loop = &loop;
	ir_copy(&l->ir, end, lower_value(l, s->b));
	ir_copy(&l->ir, i, lower_value(l, s->a));
	ir_set_const(&l->ir, turns, 0);
	ir_loop(&l->ir, n_known);
	ir_place_label(&l->ir, top);
	ir_branch(&l->ir, BPF_JSGE, i, end, loop.end);
	if (!n_known)
		limit_turns(l, turns, too_many);
	lower_statements(l, s->body);
	ir_place_label(&l->ir, loop.next);
	ir_copy(&l->ir, i, ir_alu_imm(&l->ir, BPF_ADD, i, 1));
	ir_jump(&l->ir, top);
	ir_loop_end(&l->ir);
	if (!n_known)
		too_many_turns(l, too_many, loop.end);
	ir_place_label(&l->ir, loop.end);
	l->loop = loop.outer;
}

static void lower_unroll(struct lower *l, const struct stmt *s)
{
	struct loop_labels loop = {0, ir_new_label(&l->ir), l->loop};

	l->loop = &loop;
	for (uint64_t i = 0; i < s->a->constant[l->mode] && !l->ir.is_dead; i++) {
		loop.next = ir_new_label(&l->ir);
		lower_statements(l, s->body);
		ir_place_label(&l->ir, loop.next);
	}
	ir_place_label(&l->ir, loop.end);
	l->loop = loop.outer;
}

static void clear_local(struct lower *l, const struct variable *v)
{
	const struct type *t = v->type[l->mode];

	if (!t)
		return;
	if (lower_is_value(t))
		ir_set_const(&l->ir, v->storage, 0);
	else
		ir_zero(&l->ir, v->storage, 0, lower_padded_size(t));
}

static void lower_stmt(struct lower *l, const struct stmt *s)
{
	switch (s->kind) {
	case STMT_EXPR:
		lower_effect(l, s->a);
		break;
	case STMT_IF:
		lower_if(l, s);
		break;
	case STMT_WHILE:
		lower_while(l, s);
		break;
	case STMT_FOR:
		lower_for(l, s);
		break;
	case STMT_UNROLL:
		lower_unroll(l, s);
		break;
	case STMT_BREAK:
		ir_jump(&l->ir, l->loop ? l->loop->end : l->end);
		break;
	case STMT_CONTINUE:
		ir_jump(&l->ir, l->loop ? l->loop->next : l->end);
		break;
	case STMT_RETURN:
		if (s->a)
			lower_effect(l, s->a);
		ir_jump(&l->ir, l->function_end ? l->function_end : l->end);
		break;
	case STMT_BLOCK:
		lower_statements(l, s->body);
		break;
	case STMT_LET:
		if (s->b)
			lower_assign(l, s->a, s->b);
		else
			clear_local(l, meaning_of(l, s->a)->variable);
		break;
	case STMT_FOR_MAP:
		/* The kernel calls a function for each entry, which code without functions of its
		 * own cannot offer. */
		diag_error(l->diags, s->place, "loop", "a loop over a map is not there yet");
		diag_hint(l->diags, "print(@%s) prints all of it", s->a->name);
		break;
	}
}

/* --- clauses ---------------------------------------------------------------------------------- */

/* Locals are 0 or empty at first: the verifier wants everything to be set before it is read. */
static void make_locals(struct lower *l, struct variable *locals)
{
	for (struct variable *v = locals; v; v = v->next) {
		const struct type *t = v->type[l->mode];

		v->storage = !t			 ? 0
			     : lower_is_value(t) ? ir_new_value(&l->ir)
						 : ir_new_memory(&l->ir, lower_padded_size(t));
		clear_local(l, v);
	}
}

static void make_error_values(struct lower *l)
{
	for (int i = 0; i < N_ERROR_FACTS; i++) {
		l->error[i] = l->error_clause ? ir_new_value(&l->ir) : 0;
		if (l->error[i])
			ir_set_const(&l->ir, l->error[i], 0);
	}
}

static void lower_failures(struct lower *l)
{
	ir_label handle = ir_new_label(&l->ir);

	ir_place_label(&l->ir, l->failed[FAILURE_READ]);
	lower_count_loss(l, offsetof(struct clause_loss, failed_reads));
	ir_jump(&l->ir, handle);
	ir_place_label(&l->ir, l->failed[FAILURE_OTHER]);
	lower_count_loss(l, offsetof(struct clause_loss, other));
	ir_place_label(&l->ir, handle);
	if (!l->error_clause)
		return;
	l->is_in_error = true;
	make_locals(l, l->error_clause->locals);
	if (l->error_clause->clause->predicate)
		lower_condition(l, l->error_clause->clause->predicate, l->end);
	lower_statements(l, l->error_clause->clause->body);
	l->is_in_error = false;
}

void lower_clause(struct lower *l, size_t *predicate_n)
{
	struct clause *c = l->clause->clause;
	bool has_early_locals; /* the predicate has statements */

	ir_reset(&l->ir);
	l->ir.place = c->place;
	l->end = ir_new_label(&l->ir);
	for (int i = 0; i < N_FAILURES; i++)
		l->failed[i] = ir_new_label(&l->ir);
	make_error_values(l);
	has_early_locals = expr_has_block(c->predicate);
	if (has_early_locals)
		make_locals(l, l->clause->locals);
	*predicate_n = 0;
	if (c->predicate) {
		l->ir.place = c->predicate->place;
		lower_condition(l, c->predicate, l->end);
		*predicate_n = l->ir.insns.n;
	}
	if (!has_early_locals)
		make_locals(l, l->clause->locals);
	lower_statements(l, c->body);
	l->ir.place = c->place;
	ir_jump(&l->ir, l->end);
	lower_failures(l);
	ir_place_label(&l->ir, l->end);
	loop_turns_set(&l->ir, l->n_looping);
}
