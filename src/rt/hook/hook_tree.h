/* SPDX-License-Identifier: MIT */
/*
 * The call tree that a thread keeps of itself (`weir record --tree`): a node for each path of
 * hooked calls, in the fixed memory where its ring would be. Every node is reached by its index, so
 * the recorder reads the tree while the program runs, and after it was killed.
 *
 *   0                  struct hook_tree
 *   sizeof(header)     struct hook_node [capacity], one cache line each
 *   buckets_offset     u32 [n_buckets]: first node of a hash chain over (parent, id)
 *
 * Node 0 is none, node 1 the thread's root, node 2 the branch of folded calls: calls whose own node
 * was pruned, or for which there was no memory, are counted there, by function, so that no call is
 * missing in the totals. Their time is where it always was, in the calls around them.
 *
 * Writer: the thread itself. A signal handler on it may interrupt any instruction here and use the
 * tree, too. What holds then: every node stays in its place; every count is added by one
 * instruction, so none is lost; a node is opened before anything else, and then looked at again, so
 * it is never pruned under a call. A minimum or maximum may miss the handler's own call.
 *
 * Such a handler may also jump away, and what it interrupted never goes on. So each entry and exit is
 * noted in the call's entry (struct hook_entry) before it changes anything, and half way through:
 * whoever finds the entry to be over completes it, or takes it back (hook_tree_repair).
 *
 * Reader: a node is at rest when (uint32_t)calls == n_open + n_left; in the midst of an entry or an
 * exit n_open + n_left is greater by one. prune_seq is odd while nodes are being taken away.
 */
#ifndef WEIR_RT_HOOK_HOOK_TREE_H
#define WEIR_RT_HOOK_HOOK_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hook_abi.h"

#define HOOK_TREE_MAGIC	    0x65727477u /* "wtre" */
#define HOOK_TREE_ROOT	    1u
#define HOOK_TREE_FOLDED    2u
#define HOOK_TREE_NODES_MIN 64u
#define HOOK_TREE_NODES_MAX (1u << 24)

/*
 * Added to each time that goes into `ticks` of a node: as long as a call is open its start is
 * subtracted there, at its end the time is added. Half of a pair is then off by so much that a
 * reader cannot take it for a duration.
 */
#define HOOK_TREE_BIAS ((uint64_t)1 << 62)

struct hook_node {
	uint64_t key; /* parent << 32 | id of the function; 0 = free (or the root) */
	uint32_t first_child, next_sibling; /* of a free node: next_sibling is the next free one */
	uint32_t next_in_bucket;
	uint32_t recent; /* the child that was entered last; a guess, to be compared by key */
	uint32_t n_open; /* calls that have not returned */
	uint32_t n_left; /* calls that have, modulo 2^32 */
	uint64_t calls;
	uint64_t ticks;	   /* sum of ends - sum of starts, each plus HOOK_TREE_BIAS */
	uint64_t min, max; /* in ticks, of those that returned; min > max: of none */
};

/* What calls cost while the tree was kept: sums over the times that it was measured (HOOK_COST). */
struct hook_tree_cost {
	uint64_t n, inner, outer;
	uint64_t squares; /* of inner + outer */
};

struct hook_tree {
	uint32_t magic; /* written last */
	uint32_t capacity;
	uint32_t n_buckets; /* a power of two */
	uint32_t bucket_shift;
	uint32_t buckets_offset;
	uint32_t n_used; /* nodes from here on have never been used */
	uint32_t first_free;
	uint32_t n_free;     /* in the list; those that were never used come on top */
	uint32_t n_reserved; /* kept for the folded branch */
	uint32_t prune_permille;
	uint32_t sweep_at;  /* the node at which the next sweep begins */
	uint32_t n_to_fold; /* calls to fold before memory is looked for again */
	uint32_t prune_seq;
	uint32_t n_sweeps;
	uint64_t start_ticks, last_ticks; /* the first and the last entry or exit */
	uint64_t n_pruned;     /* nodes taken away, their time being part of their parents' */
	uint64_t pruned_calls; /* their calls; counted in the folded branch as well */
	uint64_t folded_calls; /* calls for which there was no memory; likewise */
	struct hook_tree_cost costs[HOOK_COST_N];
};

_Static_assert(sizeof(struct hook_node) == 64, "the same in 32- and 64-bit programs");
_Static_assert(sizeof(struct hook_tree) == 256, "the same in 32- and 64-bit programs");
_Static_assert(offsetof(struct hook_node, calls) == 32, "the same in 32- and 64-bit programs");
_Static_assert(offsetof(struct hook_tree, start_ticks) == 56, "likewise");

#define HOOK_TREE_KEY(parent, id) ((uint64_t)(parent) << 32 | (id))
#define HOOK_TREE_KEY_PARENT(key) ((uint32_t)((key) >> 32))
#define HOOK_TREE_KEY_ID(key)	  ((uint32_t)(key))

/* --- where things are, as writer and reader compute it ------------------------------------ */

struct hook_tree_layout {
	uint32_t capacity, n_buckets, bucket_shift, buckets_offset;
};

/* false when the memory is too small. What is beyond HOOK_TREE_NODES_MAX nodes is not used. */
static inline bool hook_tree_layout(uint64_t bytes, struct hook_tree_layout *l)
{
	uint64_t used = bytes;
	uint32_t bits = 0;

	if (used / sizeof(struct hook_node) > HOOK_TREE_NODES_MAX)
		used = (uint64_t)HOOK_TREE_NODES_MAX * sizeof(struct hook_node);
	while (used / sizeof(struct hook_node) >> (bits + 1))
		bits++;
	if (used < (HOOK_TREE_NODES_MIN + 8) * sizeof(struct hook_node))
		return false;
	l->n_buckets = 1u << bits;
	l->bucket_shift = 32 - bits;
	l->capacity =
		(uint32_t)((used - sizeof(struct hook_tree) - l->n_buckets * sizeof(uint32_t)) /
			   sizeof(struct hook_node));
	l->buckets_offset = (uint32_t)(sizeof(struct hook_tree) +
				       (uint64_t)l->capacity * sizeof(struct hook_node));
	return true;
}

static inline struct hook_node *hook_tree_nodes(const struct hook_tree *t)
{
	return (struct hook_node *)(uintptr_t)(t + 1);
}

static inline uint32_t *hook_tree_bucket(const struct hook_tree *t, uint64_t key)
{
	uint32_t h = HOOK_TREE_KEY_PARENT(key) * 0x9e3779b1u ^ HOOK_TREE_KEY_ID(key) * 0x85ebca77u;

	h = (h ^ h >> 15) * 0xc2b2ae3du;
	return (uint32_t *)((uintptr_t)t + t->buckets_offset) + (h >> t->bucket_shift);
}

/* --- the thread's own, fast part ----------------------------------------------------------- */

/* One instruction for each half, on the memory itself: a handler in between takes nothing away. */
static inline void hook_tree_add(uint64_t *to, uint64_t n)
{
#ifdef __x86_64__
	__asm__ volatile("addq %1, %0" : "+m"(*to) : "er"(n) : "cc");
#else
	uint32_t *half = (uint32_t *)(void *)to;

	__asm__ volatile("addl %2, %0; adcl %3, %1"
			 : "+m"(half[0]), "+m"(half[1])
			 : "ri"((uint32_t)n), "ri"((uint32_t)(n >> 32))
			 : "cc");
#endif
}

/* In 32-bit programs n is not negated first: one instruction of each entry. */
static inline void hook_tree_subtract(uint64_t *from, uint64_t n)
{
#ifdef __x86_64__
	hook_tree_add(from, -n);
#else
	uint32_t *half = (uint32_t *)(void *)from;

	__asm__ volatile("subl %2, %0; sbbl %3, %1"
			 : "+m"(half[0]), "+m"(half[1])
			 : "ri"((uint32_t)n), "ri"((uint32_t)(n >> 32))
			 : "cc");
#endif
}

static inline void hook_tree_add32(uint32_t *to, uint32_t n)
{
	__asm__ volatile("addl %1, %0" : "+m"(*to) : "ri"(n) : "cc");
}

/* Fields that the recorder reads meanwhile. 32-bit programs have no store of 64 bits without vector
 * registers: there a half may be read. */
static inline void hook_tree_set(uint64_t *to, uint64_t n)
{
#ifdef __x86_64__
	__atomic_store_n(to, n, __ATOMIC_RELAXED);
#else
	*(volatile uint64_t *)to = n;
#endif
}

/* --- notes -------------------------------------------------------------------------------- */
/*
 * A note is in the upper half of an entry's `ret`, where no true return address has anything: it
 * is there before the slot's address replaces the true one on the stack, and after it was put back.
 *
 *   entering, node 0      nothing was done yet
 *   entering, node i      n_open of the node may have been added to; surely, when the entry has
 *                         the node; then `ticks` and at last `calls` follow
 *   leaving               n_left of the node may have been added to
 *   left                  it has been; `ticks` and at last n_open follow
 *
 * What may have been done is known by calls == n_open + n_left. (When the handler of a handler jumps
 * to the handler, and that has interrupted a hook of the same node, too, one call may be missing.)
 */
enum hook_tree_note {
	HOOK_TREE_ENTERING = 1,
	HOOK_TREE_LEAVING = 2,
	HOOK_TREE_LEFT = 3,
};
#define HOOK_TREE_NOTE_SHIFT 30
typedef uint32_t __attribute__((may_alias)) hook_tree_half;

static inline void hook_tree_note(struct hook_entry *e, enum hook_tree_note note, uint32_t node)
{
	((volatile hook_tree_half *)&e->ret)[1] = (uint32_t)note << HOOK_TREE_NOTE_SHIFT | node;
}

/* 32-bit programs add to `ticks` in two instructions; behind the first of them only this tells: the
 * lower half before, in the lower half of the note. */
static inline void hook_tree_note_ticks(struct hook_entry *e, const struct hook_node *n)
{
#ifdef __x86_64__
	(void)e;
	(void)n;
#else
	((volatile hook_tree_half *)&e->ret)[0] = (uint32_t)n->ticks;
#endif
}

/* 0: the call is neither being entered nor being left. */
static inline uint32_t hook_tree_note_of(const struct hook_entry *e)
{
	return (uint32_t)(e->ret >> 32) >> HOOK_TREE_NOTE_SHIFT;
}

static inline uint32_t hook_tree_note_node(const struct hook_entry *e)
{
	return (uint32_t)(e->ret >> 32) & ((1u << HOOK_TREE_NOTE_SHIFT) - 1);
}

static inline uint64_t hook_tree_key_now(const struct hook_node *n)
{
	return *(const volatile uint64_t *)&n->key;
}

/* 0 when there is none. */
static inline uint32_t hook_tree_find(const struct hook_tree *t, uint64_t key)
{
	const struct hook_node *nodes = hook_tree_nodes(t);
	uint32_t i = *hook_tree_bucket(t, key);

	while (i && nodes[i].key != key)
		i = nodes[i].next_in_bucket;
	return i;
}

static inline bool hook_tree_is_folded(const struct hook_tree *t, uint32_t node)
{
	return node == HOOK_TREE_FOLDED ||
	       HOOK_TREE_KEY_PARENT(hook_tree_nodes(t)[node].key) == HOOK_TREE_FOLDED;
}

/* The node has been opened (n_open); the rest of an entry. */
static inline void hook_tree_count_entry(struct hook_tree *t, struct hook_node *n, uint64_t now)
{
	hook_tree_subtract(&n->ticks, now + HOOK_TREE_BIAS);
	hook_tree_add(&n->calls, 1);
	hook_tree_set(&t->last_ticks, now);
}

/* What is needed less often stays out of the hooks, because they have to save every register that
 * they use. Without vector registers this is the hook library. */
#ifdef __SSE__
#define HOOK_TREE_APART static inline
#else
#define HOOK_TREE_APART static __attribute__((noinline, unused, no_caller_saved_registers))
#endif

/* Opens the node, and counts the call when it is still the one that was looked for: a handler may
 * have come in between and pruned it. */
static inline uint32_t hook_tree_open(
	struct hook_tree *t, struct hook_entry *e, uint32_t i, uint64_t key, uint64_t now)
{
	struct hook_node *n = &hook_tree_nodes(t)[i];

	hook_tree_note(e, HOOK_TREE_ENTERING, i);
	hook_tree_add32(&n->n_open, 1);
	if (__builtin_expect(hook_tree_key_now(n) != key, 0)) {
		hook_tree_add32(&n->n_open, -1u);
		return 0;
	}
	hook_tree_note_ticks(e, n);
	*(volatile uint32_t *)&e->node = i;
	hook_tree_count_entry(t, n, now);
	return i;
}

/* The branch of folded calls takes a call when memory was short just now, or when what calls is
 * folded itself. */
HOOK_TREE_APART uint32_t hook_tree_enter_folded(
	struct hook_tree *t, struct hook_entry *e, uint32_t id, uint64_t now)
{
	uint64_t key = HOOK_TREE_KEY(HOOK_TREE_FOLDED, id);
	uint32_t i;

	if (!t->n_to_fold && !hook_tree_is_folded(t, e[-1].node))
		return 0;
	i = hook_tree_find(t, key);
	if (i)
		i = hook_tree_open(t, e, i, key, now);
	if (!i)
		return 0;
	if (t->n_to_fold)
		t->n_to_fold--;
	hook_tree_add(&t->folded_calls, 1);
	return i;
}

/* Not the child that was entered last. */
HOOK_TREE_APART uint32_t hook_tree_enter_other(
	struct hook_tree *t, struct hook_entry *e, uint32_t id, uint64_t now)
{
	uint32_t current = e[-1].node;
	uint64_t key = HOOK_TREE_KEY(current, id);
	uint32_t i = hook_tree_find(t, key);

	if (!i)
		return hook_tree_enter_folded(t, e, id, now);
	*(volatile uint32_t *)&hook_tree_nodes(t)[current].recent = i;
	return hook_tree_open(t, e, i, key, now);
}

/*
 * A call of function `id` (not 0). The entry below `e` has the node of the call that makes it, and is
 * still open (HOOK_TREE_ROOT: none that is hooked); `e` has a note that it is entering. Returns the
 * call's node, which `e` has then, too, and the note is to be taken out; 0 when there is none yet,
 * nothing has changed then: hook_tree_enter_late() makes it. Who called is known by the caller's own
 * entry; a node does not always tell (folded calls).
 */
static inline uint32_t hook_tree_enter(
	struct hook_tree *t, struct hook_entry *e, uint32_t id, uint64_t now)
{
	struct hook_node *nodes = hook_tree_nodes(t);
	uint32_t current = e[-1].node;
	uint64_t key = HOOK_TREE_KEY(current, id);
	uint32_t i = nodes[current].recent;

	if (__builtin_expect(nodes[i].key != key, 0))
		return hook_tree_enter_other(t, e, id, now);
	return hook_tree_open(t, e, i, key, now);
}

/* n_left has been added to; the rest of an exit. */
static inline void hook_tree_count_exit(
	struct hook_tree *t, struct hook_node *n, uint64_t entered, uint64_t now)
{
	uint64_t elapsed;

	if (__builtin_expect(now < entered, 0)) /* clocks of two processors */
		now = entered;
	elapsed = now - entered;
	hook_tree_add(&n->ticks, now + HOOK_TREE_BIAS);
	if (elapsed < n->min)
		hook_tree_set(&n->min, elapsed);
	if (elapsed > n->max)
		hook_tree_set(&n->max, elapsed);
	hook_tree_set(&t->last_ticks, now);
	hook_tree_add32(&n->n_open, -1u);
}

/* The call of the entry returns, its true return address is no longer needed, and the entry has a
 * note that it is leaving. A note stays until the entry is given back. */
static inline void hook_tree_leave(struct hook_tree *t, struct hook_entry *e, uint64_t now)
{
	struct hook_node *n = &hook_tree_nodes(t)[e->node];

	hook_tree_add32(&n->n_left, 1);
	hook_tree_note_ticks(e, n);
	hook_tree_note(e, HOOK_TREE_LEFT, 0);
	hook_tree_count_exit(t, n, e->ticks, now);
}

/* --- the slow part, tree.c: signals must be blocked ----------------------------------------- */

/* A new tree in `bytes` of memory: all zero, or that of an older tree. false when it is too small.
 * Children that have less than prune_permille thousandths of their parent's time may be taken away
 * when memory runs short; 0 = none. */
bool hook_tree_init(void *at, uint64_t bytes, uint32_t prune_permille, uint64_t now);

/* As hook_tree_enter, but always gives a node: a new one, perhaps after pruning, or else a folded
 * one. */
uint32_t hook_tree_enter_late(struct hook_tree *t, uint32_t current, uint32_t id, uint64_t now);

/*
 * The call that got `node` at `entered` is over. Also for calls that end without returning
 * (longjmp, exceptions), innermost first: what is not left stays open.
 */
void hook_tree_leave_late(struct hook_tree *t, uint32_t node, uint64_t entered, uint64_t now);

/* The entry has a note, and whoever made it was left by a jump. A call that was being entered was
 * never made; one that was being left has ended. Innermost first, as above. */
void hook_tree_repair(struct hook_tree *t, const struct hook_entry *e, uint64_t now);

/* The same for a call that another tree has counted already and that goes on in this one: the open
 * calls of a forked child. Its time begins now. */
uint32_t hook_tree_adopt(struct hook_tree *t, uint32_t current, uint32_t id, uint64_t now);

/* Takes away what is under the threshold and not open, until `wanted` nodes are free or everything
 * was looked at once. Returns how many were freed. Children of the root stay: nothing above them
 * would keep their time. */
uint32_t hook_tree_prune(struct hook_tree *t, uint64_t now, uint32_t wanted);

#endif
