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

void lower_statements(struct lower *l, const struct stmt *s)
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

static void clear_local(struct lower *l, const struct variable *v)
{
	const struct type *t = v->type[l->mode];

	if (!t)
		return;
	if (lower_is_value(t) && !v->is_addressed)
		ir_set_const(&l->ir, v->storage, 0);
	else
		ir_zero(&l->ir, v->storage, 0, lower_padded_size(t));
}

static void lower_loop(struct lower *l, const struct stmt *s)
{
	bool is_outermost = !l->loop;

	if (is_outermost)
		lower_stacks_of(l, s);
	switch (s->kind) {
	case STMT_WHILE:
		lower_while(l, s);
		break;
	case STMT_FOR:
		lower_for(l, s);
		break;
	case STMT_FOR_MAP:
		lower_for_map(l, s);
		break;
	default:
		lower_unroll(l, s);
	}
	if (is_outermost)
		memset(l->stacks, 0, sizeof(l->stacks));
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
	case STMT_FOR:
	case STMT_FOR_MAP:
	case STMT_UNROLL:
		lower_loop(l, s);
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
	}
}

/* --- clauses ---------------------------------------------------------------------------------- */

/* Locals are 0 or empty at first: the verifier wants everything to be set before it is read. */
static void make_locals(struct lower *l, struct variable *locals)
{
	for (struct variable *v = locals; v; v = v->next) {
		const struct type *t = v->type[l->mode];

		v->storage = !t			 ? 0
			     : v->is_addressed	 ? ir_new_scratch(&l->ir, lower_padded_size(t))
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
	ir_jump(&l->ir, handle);
	ir_place_label(&l->ir, l->failed[FAILURE_UNWALKED]);
	lower_count_loss(l, offsetof(struct clause_loss, stack_unwalked));
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
