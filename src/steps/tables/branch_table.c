/* SPDX-License-Identifier: MIT */
/*
 * The pass over the steps. Its inner loop touches 16 bytes for an instruction, and more only for
 * branches.
 */
#include "steps/tables/branch_table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"

/* Targets are searched one by one up to here, by a map beyond. */
#define TARGETS_LISTED_MAX 8
/* Of all branches together: a bound on memory, whatever a trace says. */
#define TARGETS_MAX (1u << 20)

void branch_table_init(struct branch_table *t, uint32_t n_insns, bool wants_returns)
{
	*t = (struct branch_table){.n_insns = n_insns ? n_insns : 1};
	t->wants_returns = wants_returns;
	t->counts = mem_calloc(t->n_insns, sizeof(*t->counts));
	t->again = mem_calloc(t->n_insns, sizeof(*t->again));
	vec_push(&t->branches, (struct branch){0});
}

void branch_table_release(struct branch_table *t)
{
	for (size_t i = 0; i < t->branches.n; i++) {
		vec_release(&t->branches.v[i].targets);
		map_release(&t->branches.v[i].index);
	}
	vec_release(&t->branches);
	free(t->counts);
	free(t->again);
}

void branch_table_describe(struct branch_table *t, uint32_t number, const struct step_insn *insn)
{
	struct branch b = {.insn = number};

	assert(number < t->n_insns);
	switch ((enum x86_flow)insn->flow) {
	case X86_FLOW_BRANCH:
		b.kind = BRANCH_KIND_CONDITIONAL;
		b.next = insn->addr + insn->length;
		b.target = insn->target;
		break;
	case X86_FLOW_JUMP_FAR:
		b.kind = BRANCH_KIND_INDIRECT_JUMP;
		break;
	case X86_FLOW_CALL_FAR:
		b.kind = BRANCH_KIND_INDIRECT_CALL;
		break;
	case X86_FLOW_RETURN:
		if (!t->wants_returns)
			return;
		b.kind = BRANCH_KIND_RETURN;
		break;
	default:
		return;
	}
	if (!insn->length)
		return;
	t->counts[number].branch = (uint32_t)t->branches.n;
	vec_push(&t->branches, b);
}

/* --- one outcome ---------------------------------------------------------------------------- */

/* False when the address is on neither side. */
static bool decide(struct branch *b, uint64_t addr)
{
	if (addr == b->next)
		b->not_taken++;
	else if (addr == b->target)
		b->taken++;
	else
		return false;
	return true;
}

static void index_targets(struct branch *b)
{
	for (size_t i = 0; i < b->targets.n; i++)
		*map_ensure(&b->index, b->targets.v[i].addr, NULL) = i;
	b->has_index = true;
}

/* Its place in the list; UINT32_MAX when it is not there. */
static uint32_t find_target(const struct branch *b, uint64_t addr)
{
	const uint64_t *found;

	if (b->has_index) {
		found = map_find(&b->index, addr);
		return found ? (uint32_t)*found : UINT32_MAX;
	}
	for (size_t i = 0; i < b->targets.n; i++)
		if (b->targets.v[i].addr == addr)
			return (uint32_t)i;
	return UINT32_MAX;
}

static void count_target(
	struct branch_table *t, struct branch *b, const struct branch_target *target)
{
	uint32_t i = find_target(b, target->addr);

	if (i == UINT32_MAX && t->n_targets >= TARGETS_MAX) {
		b->other += target->count;
		return;
	}
	if (i == UINT32_MAX) {
		i = (uint32_t)b->targets.n;
		vec_push(&b->targets, *target);
		t->n_targets++;
		if (b->has_index)
			*map_ensure(&b->index, target->addr, NULL) = i;
		else if (b->targets.n > TARGETS_LISTED_MAX)
			index_targets(b);
	} else {
		b->targets.v[i].count += target->count;
	}
	b->last_target = i;
}

/* The step behind the branch, with nothing between them, is at `s`. */
static inline void resolve(struct branch_table *t, struct branch *b, const struct step *s)
{
	struct branch_target *last;

	if (b->kind == BRANCH_KIND_CONDITIONAL) {
		decide(b, s->addr);
		return;
	}
	last = b->targets.n ? &b->targets.v[b->last_target] : NULL;
	if (last && last->addr == s->addr)
		last->count++;
	else
		count_target(t, b,
			&(struct branch_target){.addr = s->addr, .count = 1, .insn = s->insn});
}

/* --- what stands between two steps ----------------------------------------------------------- */

static void forget(struct branch_table *t)
{
	t->pending = 0;
	t->is_interrupted = t->is_returning = false;
	t->n_waiting = 0;
}

static void wait_for_handler(struct branch_table *t, uint32_t branch)
{
	if (t->n_waiting == BRANCH_WAITING_MAX) {
		t->n_waiting--;
		memmove(t->waiting, t->waiting + 1, t->n_waiting * sizeof(*t->waiting));
	}
	t->waiting[t->n_waiting++] = branch;
}

/* A handler has returned to `addr`: if that is where a waiting branch can have led, that is where
 * it led. Those that began to wait later will not be returned to any more. */
static void resolve_waiting(struct branch_table *t, uint64_t addr)
{
	for (size_t i = t->n_waiting; i--;)
		if (decide(&t->branches.v[t->waiting[i]], addr)) {
			t->n_waiting = i;
			return;
		}
}

/* The outcome of the branch that ended the row before, at the first step of the next one. */
static void resolve_pending(struct branch_table *t, const struct step *s)
{
	struct branch *b = &t->branches.v[t->pending];

	if (!t->is_interrupted)
		resolve(t, b, s);
	else if (b->kind == BRANCH_KIND_CONDITIONAL && !decide(b, s->addr))
		wait_for_handler(t, t->pending);
	t->pending = 0;
}

static void begin_row(struct branch_table *t, const struct step_item *item)
{
	if (item->first != t->next_step)
		forget(t);
	if (t->is_returning)
		resolve_waiting(t, item->steps->addr);
	if (t->pending)
		resolve_pending(t, item->steps);
	t->is_interrupted = t->is_returning = false;
}

static void add_steps(struct branch_table *t, const struct step_item *item)
{
	const struct step *s = item->steps, *last = s + item->n - 1;

	begin_row(t, item);
	for (;; s++) {
		struct branch_count *c = &t->counts[s->insn];

		c->executed++;
		if (s->times > 1)
			t->again[s->insn] += s->times - 1;
		if (s == last)
			break;
		if (c->branch)
			resolve(t, &t->branches.v[c->branch], s + 1);
	}
	t->pending = t->counts[last->insn].branch;
	t->next_step = item->first + item->n;
	t->total += item->n;
}

static bool is_sigreturn(const struct step_mark *m)
{
	return m->c & STEP_CALL_I386 ? m->a == 119 || m->a == 173
				     : m->a == 15 || m->a == (0x40000000 | 513);
}

static void add_mark(struct branch_table *t, const struct step_mark *m)
{
	switch (m->kind) {
	case STEP_MARK_SIGNAL:
		t->is_interrupted = true;
		break;
	case STEP_MARK_SYSCALL:
		t->is_returning = is_sigreturn(m);
		break;
	case STEP_MARK_MAP:
	case STEP_MARK_FORK:
		break;
	case STEP_MARK_LOST:
		t->lost += m->a > 0 ? (uint64_t)m->a : 0;
		forget(t);
		break;
	default:
		forget(t);
	}
}

void branch_table_begin_thread(struct branch_table *t)
{
	forget(t);
	t->next_step = 0;
}

void branch_table_add(struct branch_table *t, const struct step_item *item)
{
	switch (item->kind) {
	case STEP_ITEM_STEPS:
		if (item->n)
			add_steps(t, item);
		break;
	case STEP_ITEM_MARK:
		add_mark(t, &item->mark);
		break;
	case STEP_ITEM_DATA:
		break;
	case STEP_ITEM_DAMAGE:
		t->n_damaged++;
		forget(t);
		break;
	}
}

/* --- what can be asked ------------------------------------------------------------------------ */

uint64_t branch_executed(const struct branch_table *t, const struct branch *b)
{
	return t->counts[b->insn].executed;
}

uint64_t branch_unknown(const struct branch_table *t, const struct branch *b)
{
	uint64_t known = b->taken + b->not_taken + b->other;

	for (size_t i = 0; i < b->targets.n; i++)
		known += b->targets.v[i].count;
	return branch_executed(t, b) - known;
}

uint64_t branch_mainline(const struct branch *b)
{
	return b->taken > b->not_taken ? b->taken : b->not_taken;
}

uint64_t branch_exceptions(const struct branch *b)
{
	return b->taken < b->not_taken ? b->taken : b->not_taken;
}

/* --- one row for the code of several processes ----------------------------------------------- */

static void move_targets(struct branch_table *t, struct branch *from, struct branch *to)
{
	t->n_targets -= from->targets.n;
	for (size_t i = 0; i < from->targets.n; i++)
		count_target(t, to, &from->targets.v[i]);
	to->other += from->other;
	vec_release(&from->targets);
	map_release(&from->index);
	from->has_index = false;
	from->last_target = 0;
	from->other = 0;
}

/* Targets that are the same instruction become one, at the address of the one that stays. */
static void rename_targets(
	struct branch_table *t, struct branch *b, const uint64_t *addrs, const uint32_t *same_as)
{
	struct branch old = *b;

	memset(&b->targets, 0, sizeof(b->targets));
	memset(&b->index, 0, sizeof(b->index));
	b->has_index = false;
	b->last_target = 0;
	for (size_t i = 0; i < old.targets.n; i++) {
		struct branch_target *target = &old.targets.v[i];

		if (target->insn) {
			target->insn = same_as[target->insn];
			target->addr = addrs[target->insn];
		}
	}
	old.other = 0;
	move_targets(t, &old, b);
}

void branch_table_fold(struct branch_table *t, const uint32_t *same_as, const uint64_t *addrs)
{
	for (size_t i = 1; i < t->branches.n; i++)
		if (t->branches.v[i].targets.n)
			rename_targets(t, &t->branches.v[i], addrs, same_as);
	for (uint32_t i = 1; i < t->n_insns; i++) {
		struct branch_count *from = &t->counts[i], *to = &t->counts[same_as[i]];
		struct branch *b = &t->branches.v[from->branch];

		if (from == to)
			continue;
		to->executed += from->executed;
		from->executed = 0;
		t->again[same_as[i]] += t->again[i];
		t->again[i] = 0;
		if (!from->branch || !to->branch)
			continue;
		t->branches.v[to->branch].taken += b->taken;
		t->branches.v[to->branch].not_taken += b->not_taken;
		b->taken = b->not_taken = 0;
		move_targets(t, b, &t->branches.v[to->branch]);
	}
}

static int compare_targets(const void *a, const void *b)
{
	const struct branch_target *x = a, *y = b;

	return ORDER(y->count, x->count) ?: ORDER(x->addr, y->addr);
}

void branch_table_finish(struct branch_table *t)
{
	for (size_t i = 1; i < t->branches.n; i++) {
		struct branch *b = &t->branches.v[i];

		vec_sort(&b->targets, compare_targets);
		map_release(&b->index);
		b->has_index = false;
		b->last_target = 0;
	}
}

/* --- of a trace ------------------------------------------------------------------------------- */

/* What makes two instructions the same one; all bytes count, so there is no padding. */
struct insn_identity {
	uint32_t frame;
	uint8_t n_bytes;
	uint8_t bytes[STEP_CODE_BYTES_MAX];
};

static void fold_processes(struct branch_table *t, const struct steps *s)
{
	uint64_t *addrs = mem_calloc(t->n_insns, sizeof(*addrs));
	uint32_t *same_as = mem_calloc(t->n_insns, sizeof(*same_as));
	uint32_t *first = mem_calloc(t->n_insns, sizeof(*first)); /* by identity */
	struct intern identities = {0};

	for (uint32_t i = 1; i < steps_n_insns(s); i++) {
		const struct step_insn *insn = steps_insn(s, i);
		struct insn_identity key = {.frame = insn->frame, .n_bytes = insn->n_bytes};
		uint32_t id;

		addrs[i] = insn->addr;
		same_as[i] = i;
		/* Without an image the same address in two processes is not the same place. */
		if (!trace_reader_frame(steps_reader(s), insn->frame)->image)
			continue;
		memcpy(key.bytes, insn->bytes, insn->n_bytes);
		id = intern_bytes(&identities, &key, sizeof(key));
		if (!first[id])
			first[id] = i;
		same_as[i] = first[id];
	}
	branch_table_fold(t, same_as, addrs);
	intern_release(&identities);
	free(first);
	free(same_as);
	free(addrs);
}

void branch_table_init_steps(struct branch_table *t, const struct steps *s, bool wants_returns)
{
	branch_table_init(t, steps_n_insns(s), wants_returns);
	for (uint32_t i = 1; i < steps_n_insns(s); i++)
		branch_table_describe(t, i, steps_insn(s, i));
}

void branch_table_finish_steps(struct branch_table *t, const struct steps *s)
{
	fold_processes(t, s);
	branch_table_finish(t);
}
