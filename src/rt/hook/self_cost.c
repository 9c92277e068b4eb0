/* SPDX-License-Identifier: MIT */
/*
 * What hooks cost. Now and then, where a thread takes the slow way anyway, it calls an empty function
 * of this library that is hooked like those of the program: through the same stubs, into the same ring,
 * with the same caches and neighbours that the program's calls have just now. The same number of calls
 * of a function without a hook is taken off.
 *
 *   inner   between the two readings of the clock; an empty function's time is that of its hook
 *   outer   the rest: jump, trampoline, what is done before the first reading and after the second
 *
 * The recorder knows the records of these calls by their id and leaves them out; with --tree they are
 * counted in a tree of their own.
 */
#include "hook.h"

#define N_ROUNDS  4 /* after one to warm up */
#define N_CALLS	  8
#define N_RECORDS (3 * N_CALLS * (N_ROUNDS + 1) + 8) /* at most so many are written */
/* Between two measurements lie so many records, or calls with --tree: a hundredth of what they cost. */
#define DISTANCE	32768u
#define DISTANCE_TRAP	(DISTANCE * 4)
#define N_CALLS_TRAP	1
#define ROUND_MAX	(1u << 22) /* in ticks; more is not the hook's doing */
#define COST_TREE_SIZE	8192u
#define BLOCK_TICKS_MAX (1u << 14)
#define SCALE		16u

_Static_assert(HOOK_COST_ID == 0x3fffff && HOOK_ACTION_CALL == 1 && HOOK_ACTION_AMOUNT == 3,
	"as in entry.S");

static uint64_t cost_memory[COST_TREE_SIZE / sizeof(uint64_t)]; /* a struct hook_tree */
static uint32_t owner; /* of it, and of weir_cost_site: one thread measures at a time */

/* A way to call a hooked function, under way. */
struct trial {
	struct thread *t;
	enum hook_cost_kind kind;
	void (*hooked)(void), (*plain)(void);
	unsigned n_calls;
	struct hook_tree *tree; /* the thread's own; NULL: none is kept */
	uint32_t node;		/* of the calls in ours */
	uint32_t node_below;	/* of the innermost open call in the thread's own */
};

static __attribute__((noinline)) void nothing(void)
{
	__asm__ volatile("");
}

static __attribute__((noinline)) uint32_t time_calls(void (*function)(void), unsigned n)
{
	uint64_t began = ticks_now(), took;

	while (n--)
		function();
	took = ticks_now() - began;
	return took < ROUND_MAX ? (uint32_t)took : ROUND_MAX;
}

static struct hook_tree *cost_tree(void)
{
	return (struct hook_tree *)(void *)cost_memory;
}

/* --- one round ------------------------------------------------------------------------------ */

/* The recorder may have taken some of the records already: then nothing is known. */
static bool sum_records(const struct hook_record *from, const struct hook_record *end,
	unsigned n_calls, uint32_t *inner)
{
	uint32_t sum = 0;
	unsigned n = 0;

	for (; from < end; from++) {
		uint64_t head = *(const volatile uint64_t *)&from->head;

		if (!head || HOOK_HEAD_ID(head) != HOOK_COST_ID)
			return false;
		n += HOOK_HEAD_KIND(head) != HOOK_RECORD_AMOUNT;
		if (HOOK_HEAD_KIND(head) == HOOK_RECORD_ENTER)
			sum -= (uint32_t)head;
		else if (HOOK_HEAD_KIND(head) == HOOK_RECORD_LEAVE)
			sum += (uint32_t)head;
	}
	*inner = sum;
	return n == 2 * n_calls;
}

static bool play_round(const struct trial *x, uint32_t *took, uint32_t *inner)
{
	const struct hook_node *node = &hook_tree_nodes(cost_tree())[x->node];
	const struct hook_record *from = x->t->pos;
	uint64_t before = node->ticks, calls = node->calls;

	*took = time_calls(x->hooked, x->n_calls);
	if (*took >= ROUND_MAX)
		return false;
	if (x->tree) {
		*inner = (uint32_t)(node->ticks - before);
		if (node->calls - calls != x->n_calls || node->n_open)
			return false;
	} else if (!sum_records(from, x->t->pos, x->n_calls, inner)) {
		return false;
	}
	return *inner <= *took;
}

/* --- a trial -------------------------------------------------------------------------------- */

/* Rounds that took more than twice as long as the best were interrupted. False: nothing came of it. */
static bool play_rounds(const struct trial *x, uint32_t *inner, uint32_t *outer)
{
	uint32_t took[N_ROUNDS], inside[N_ROUNDS], plain = UINT32_MAX, least = UINT32_MAX;
	uint32_t sum = 0, sum_inside = 0, n = 0;

	for (unsigned i = 0; i <= N_ROUNDS; i++) {
		uint32_t without = time_calls(x->plain, x->n_calls), with, within;

		if (!play_round(x, &with, &within) || !i)
			continue;
		took[n] = with;
		inside[n++] = within;
		plain = without < plain ? without : plain;
		least = with < least ? with : least;
	}
	for (uint32_t i = 0, n_rounds = n; i < n_rounds; i++) {
		if (took[i] / 2 > least) {
			n--;
			continue;
		}
		sum += took[i] > plain ? took[i] - plain : 0;
		sum_inside += inside[i];
	}
	if (!n)
		return false;
	sum_inside = sum_inside < sum ? sum_inside : sum;
	*inner = sum_inside * SCALE / (n * x->n_calls);
	*outer = (sum - sum_inside) * SCALE / (n * x->n_calls);
	return *inner <= HOOK_COST_MAX && *outer <= HOOK_COST_MAX;
}

static bool swap_tree(struct thread *t, struct hook_tree *from, struct hook_tree *to)
{
	/* Another thread may end the recording, and take it away. */
	return __atomic_compare_exchange_n(
		&t->tree, &from, to, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

static bool begin_tree(struct trial *x)
{
	struct chain *c = x->t->chain;
	uint64_t now = ticks_now();

	x->tree = x->t->tree;
	if (!x->tree || c->tree != x->tree ||
		!hook_tree_init(cost_memory, sizeof(cost_memory), 0, now))
		return false;
	x->node = hook_tree_enter_late(cost_tree(), HOOK_TREE_ROOT, HOOK_COST_ID, now);
	hook_tree_leave_late(cost_tree(), x->node, now, now);
	if (!swap_tree(x->t, x->tree, cost_tree()))
		return false;
	c->tree = cost_tree();
	x->node_below = c->top[-1].node;
	c->top[-1].node = HOOK_TREE_ROOT;
	return true;
}

static void end_tree(struct trial *x)
{
	struct chain *c = x->t->chain;

	c->top[-1].node = x->node_below;
	c->tree = x->tree;
	swap_tree(x->t, cost_tree(), x->tree);
}

static void tell(const struct trial *x, uint32_t inner, uint32_t outer)
{
	struct hook_tree_cost *cost;

	if (!x->tree) {
		hook_record_write(x->t, HOOK_RECORD_MORE, HOOK_MORE_COST,
			HOOK_COST((uint32_t)x->kind, inner, outer));
		return;
	}
	cost = &x->tree->costs[x->kind];
	cost->inner += inner;
	cost->outer += outer;
	cost->squares += (uint64_t)(inner + outer) * (inner + outer);
	cost->n++;
}

static struct trial trial_of(struct thread *t, enum hook_cost_kind kind, bool is_tree)
{
	struct trial x = {.t = t, .kind = kind, .plain = nothing, .n_calls = N_CALLS};

	switch (kind) {
	case HOOK_COST_CALL:
		x.hooked = is_tree ? weir_cost_call_tree : weir_cost_call;
		break;
	case HOOK_COST_TRAP:
		x.hooked = weir_cost_trap;
		x.n_calls = N_CALLS_TRAP;
		break;
	case HOOK_COST_AMOUNT:
		x.hooked = weir_cost_amount;
		break;
	case HOOK_COST_SLOW:
		break;
	case HOOK_COST_INSTRUMENT:
		x.hooked = weir_cost_instrument;
		x.plain = weir_cost_instrument_none;
		break;
	}
	return x;
}

/* Calls with an amount block signals before their record, and unblock them after it. The kernel is fast
 * where nothing changes, as in a trial: the rest is that of the call that was made for the program. */
static uint32_t blocking_ticks(const struct thread *t)
{
	uint32_t true_ticks = t->block_ticks[0], here = t->block_ticks[1];

	return true_ticks > here && true_ticks < BLOCK_TICKS_MAX ? true_ticks - here : 0;
}

static void try_out(struct thread *t, enum hook_cost_kind kind)
{
	bool is_tree = library.control->mode == HOOK_MODE_TREE;
	struct trial x = trial_of(t, kind, is_tree);
	uint32_t inner, outer;
	bool is_known;

	if (is_tree && !begin_tree(&x))
		return;
	is_known = play_rounds(&x, &inner, &outer);
	if (is_tree)
		end_tree(&x);
	if (!is_known)
		return;
	if (kind == HOOK_COST_AMOUNT) {
		inner += blocking_ticks(t) * SCALE;
		outer += blocking_ticks(t) * SCALE;
	}
	tell(&x, inner, outer);
}

/* --- when ----------------------------------------------------------------------------------- */

static uint32_t position(const struct thread *t)
{
	return library.control->mode == HOOK_MODE_TREE ? (uint32_t)t->n_entries
						       : (uint32_t)t->shared->written;
}

static bool is_due(struct thread *t, enum hook_cost_kind kind)
{
	uint32_t distance = kind == HOOK_COST_TRAP ? DISTANCE_TRAP : DISTANCE, at = position(t);

	if ((t->costs_known & 1u << kind) && at - t->cost_at[kind] < distance)
		return false;
	t->cost_at[kind] = at;
	t->costs_known |= (uint8_t)(1u << kind);
	return true;
}

/* On the thread's own stack, where the calls take the fast way. */
static bool is_possible(const struct thread *t)
{
	const struct chain *c = t->chain;
	uintptr_t sp = (uintptr_t)__builtin_frame_address(0);

	if (!c || c->kind != CHAIN_OWN || c->writers[0].slot || !is_in_block(c->top) ||
		sp - c->start >= c->bytes || sp >= entry_sp(c->top - 1))
		return false;
	return library.control->mode == HOOK_MODE_TREE
		       ? t->tree != NULL
		       : t->pos < t->limit && (uintptr_t)(t->limit - t->pos) >= N_RECORDS;
}

/* What was done since the last time for all records of that time; two of them are a call. */
static void tell_slow_way(struct thread *t)
{
	uint32_t at = position(t), n_calls = (at - t->cost_at[HOOK_COST_SLOW]) / 2;
	uint32_t inner, outer;

	if ((t->costs_known & 1u << HOOK_COST_SLOW) && n_calls) {
		inner = t->slow_inner / n_calls * SCALE + t->slow_inner % n_calls * SCALE / n_calls;
		outer = t->slow_outer / n_calls * SCALE + t->slow_outer % n_calls * SCALE / n_calls;
		hook_record_write(t, HOOK_RECORD_MORE, HOOK_MORE_COST,
			HOOK_COST((uint32_t)HOOK_COST_SLOW, inner, outer));
	}
	t->cost_at[HOOK_COST_SLOW] = at;
	t->costs_known |= 1u << HOOK_COST_SLOW;
	t->slow_inner = t->slow_outer = 0;
}

static void look_at_trap(struct thread *t)
{
	if (!is_possible(t) || !is_due(t, HOOK_COST_TRAP))
		return;
	if (!trap_let_through()) {
		t->costs_known &= (uint8_t) ~(1u << HOOK_COST_TRAP); /* perhaps the next time */
		return;
	}
	try_out(t, HOOK_COST_TRAP);
	trap_block();
}

void cost_look(struct thread *t, enum hook_cost_kind kind, uintptr_t site)
{
	uint32_t none = 0;

	if (!is_possible(t) || !is_due(t, kind) ||
		!__atomic_compare_exchange_n(
			&owner, &none, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return;
	t->is_measuring = true;
	weir_cost_site = site;
	try_out(t, kind);
	if (kind == HOOK_COST_CALL)
		look_at_trap(t);
	if (library.control->mode != HOOK_MODE_TREE)
		tell_slow_way(t);
	t->is_measuring = false;
	__atomic_store_n(&owner, 0, __ATOMIC_RELEASE);
}
