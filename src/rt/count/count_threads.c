/* SPDX-License-Identifier: MIT */
/*
 * A thread's copy of state and counters: the pages from the one section to the other are reserved
 * somewhere else, and gs base is the distance. Slots are rows of the count file. The memory of a thread that
 * has ended is used again, by a row of its own; when there is no room for more rows, its row is.
 */
#include <asm/prctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "runtime.h"

#define AREAS_OF_SLOT	   3
#define AREAS_TO_GROW	   2048u	/* kept for trees that grow */
#define ROWS_BYTES	   (512ull << 20) /* of the file, before rows are shared */
#define TRIES		   8		/* slots that are looked at for memory to use again */
#define COPY_STEP_BYTES	   (16ull << 20)
#define COPY_STEPS	   64
#define PATH_STEPS	   64 /* nodes from one open call to the next, by tail calls */

uint64_t count_gs_get(void)
{
	uint64_t base = 0;

	if (count_library.has_fsgsbase)
		__asm__ volatile("rdgsbase %0" : "=r"(base));
	else
		raw_call(SYS_arch_prctl, ARCH_GET_GS, &base);
	return base;
}

uint64_t count_fs_get(void)
{
	uint64_t base = 0;

	if (count_library.has_fsgsbase)
		__asm__ volatile("rdfsbase %0" : "=r"(base));
	else
		raw_call(SYS_arch_prctl, ARCH_GET_FS, &base);
	return base;
}

/* The system call refuses distances to lower addresses. */
bool count_gs_set(uint64_t base)
{
	if (!count_library.has_fsgsbase)
		return raw_call(SYS_arch_prctl, ARCH_SET_GS, base) == 0;
	__asm__ volatile("wrgsbase %0" : : "r"(base) : "memory");
	return true;
}

struct state *count_gs_state(void)
{
	return (struct state *)((uint64_t)&weir_count_state + count_gs_get());
}

static struct state *copy_state(uint8_t *copy)
{
	return (struct state *)(copy + ((uint64_t)&weir_count_state - count_library.copy_start));
}

static uint8_t *copy_counters(uint8_t *copy)
{
	return copy + (count_library.counters - count_library.copy_start);
}

static uint64_t copy_distance(const uint8_t *copy)
{
	return (uint64_t)copy - count_library.copy_start;
}

struct state *count_slot_state(const struct slot *slot)
{
	return copy_state(slot->copy);
}

static uint8_t *reserve_at(uint64_t hint)
{
	return raw_memory((void *)hint, count_library.copy_bytes, PROT_NONE, MAP_NORESERVE);
}

/* Address space for a copy; above the program itself, where the system call that sets gs base takes
 * no other. (A static-pie lies where other mappings go.) */
static uint8_t *reserve_space(void)
{
	uint64_t start = count_library.copy_start, hint = start + COPY_STEP_BYTES;
	uint8_t *copy = reserve_at(0);

	for (int i = 0; i < COPY_STEPS && copy; i++) {
		if (count_library.has_fsgsbase || (uint64_t)copy > start)
			return copy;
		raw_call(SYS_munmap, copy, count_library.copy_bytes);
		copy = reserve_at(hint);
		hint += COPY_STEP_BYTES + PAGE_UP(count_library.copy_bytes);
	}
	return copy;
}

/* With its state pages. */
static uint8_t *reserve_copy(void)
{
	uint8_t *copy = reserve_space();
	struct state *s;

	if (!copy)
		return NULL;
	s = copy_state(copy);
	if (!raw_memory(s, sizeof(*s), PROT_READ | PROT_WRITE, MAP_FIXED)) {
		raw_call(SYS_munmap, copy, count_library.copy_bytes);
		return NULL;
	}
	raw_call(SYS_madvise, s, sizeof(*s), MADV_WIPEONFORK);
	return copy;
}

static bool map_counters(uint8_t *copy, uint32_t number)
{
	uint64_t bytes = count_library.counters_bytes, offset;

	return !bytes || (count_file_extend(copy_counters(copy), bytes, &offset) &&
				 count_file_add_area(COUNT_AREA_COUNTERS, number, offset, bytes,
					 count_library.counters));
}

/* The state of a thread that begins, on a copy that may have been another's. */
static bool begin(struct slot *slot, uint64_t sp)
{
	struct state *s = count_slot_state(slot);
	struct count_thread *t;

	if (s->self && s->top)
		count_left_open(s);
	s->size = 0;
	s->top = NULL;
	s->tail_sp = 0;
	s->nest.owner = 0;
	s->stack = 0;
	for (uint32_t i = 0; i < N_CACHE && count_library.is_timeless; i++)
		s->cache[i].key = 0; /* the fast ways would look at the clock */
	for (uint32_t i = 0; i < N_STACKS; i++)
		s->stacks[i].lo = s->stacks[i].hi = 0;
	s->slot = (uint32_t)(slot - count_library.slots);
	s->tid = slot->tid;
	s->fs = count_fs_get();
	s->site_mask = count_library.site_mask;
	if (!count_nodes_open(slot, s))
		return false;
	t = state_thread(s);
	t->slot = s->slot;
	t->nodes = t->current_node = (uint64_t)s->nodes;
	t->tid = slot->tid;
	raw_call(SYS_prctl, PR_GET_NAME, t->name);
	s->self = s;
	s->busy = 0;
	return count_stack_find(s, sp);
}

static bool open_slot(struct slot *slot, uint64_t sp)
{
	uint32_t number = (uint32_t)(slot - count_library.slots);

	slot->tid = raw_tid();
	if (!slot->copy) {
		uint8_t *copy = reserve_copy();

		if (!copy)
			return false;
		if (!map_counters(copy, number)) {
			raw_call(SYS_munmap, copy, count_library.copy_bytes);
			return false;
		}
		slot->copy = copy;
	}
	return begin(slot, sp);
}

bool count_thread_has_ended(uint32_t tid)
{
	return raw_call(SYS_tkill, tid, 0) == -ESRCH;
}

/* One of a thread that has ended, among the next so many. */
static struct slot *find_ended(uint32_t tries)
{
	uint32_t n = count_library.n_slots;
	static uint32_t next;

	for (uint32_t i = 0; i < n && i < tries; i++, next++) {
		struct slot *slot = &count_library.slots[next % n];

		if (slot->copy && slot->nodes && count_thread_has_ended(slot->tid)) {
			next++;
			return slot;
		}
	}
	return NULL;
}

static bool has_room_for_row(void)
{
	const struct library *l = &count_library;

	return l->n_areas + AREAS_OF_SLOT + AREAS_TO_GROW <= COUNT_FILE_AREAS &&
	       l->n_slots * (l->counters_bytes + COUNT_FIRST_NODES_BYTES) <= ROWS_BYTES;
}

/* The thread has ended; its row stays as it is. */
static void take_memory(struct slot *to, struct slot *from)
{
	struct state *s = count_slot_state(from);

	count_left_open(s);
	for (uint32_t i = 0; i < N_STACKS && s->stacks[i].frames_bytes; i++)
		raw_call(SYS_munmap, (uint8_t *)s->stacks[i].frames - FRAMES_SKIP,
			s->stacks[i].frames_bytes);
	raw_call(SYS_madvise, s, sizeof(*s), MADV_DONTNEED);
	*to = *from;
	*from = (struct slot){.tid = from->tid};
	to->n_places = 0;
	/* Its counters are this row's from here on, or it has none. */
	if (!raw_memory((uint8_t *)to->nodes - COUNT_PAGE, to->nodes_bytes, PROT_NONE,
		    MAP_FIXED | MAP_NORESERVE) ||
		!map_counters(to->copy, (uint32_t)(to - count_library.slots)))
		*to = (struct slot){0};
}

/* For threads that find no room: always busy, counters those of the first thread. */
static uint8_t *make_lost_copy(void)
{
	const struct count_area *counters = count_file_find_area(COUNT_AREA_COUNTERS, 0);
	uint8_t *copy = reserve_copy();
	struct state *s;

	if (!copy)
		return NULL;
	if (counters && !count_file_map(copy_counters(copy), counters->bytes, counters->offset))
		return NULL;
	s = copy_state(copy);
	s->self = s;
	s->top = s->nest.frames; /* the fast ways look at it before they see that it is busy */
	s->size = s->busy = UINT64_MAX;
	return copy;
}

void count_thread_make_lost(void)
{
	if (!count_library.lost_copy)
		count_library.lost_copy = make_lost_copy();
}

/* A thread that is counted together with the first one, and has no tree. Where even that fails it
 * stays with the thread that created it. */
void count_thread_join_lost(void)
{
	count_library.header->n_threads_lost++;
	if (!count_library.is_confined)
		count_thread_make_lost();
	if (count_library.lost_copy)
		count_gs_set(copy_distance(count_library.lost_copy));
}

/* A new one, or where there is no room that of a thread that has ended. */
static struct slot *find_slot(void)
{
	struct slot *slot = &count_library.slots[count_library.n_slots], *ended;

	if (has_room_for_row()) {
		ended = slot->copy ? NULL : find_ended(TRIES);
		if (ended)
			take_memory(slot, ended);
		return slot;
	}
	slot = find_ended(UINT32_MAX);
	if (slot)
		((struct count_thread *)((uint8_t *)slot->nodes - COUNT_PAGE))->n_shared++;
	return slot;
}

struct slot *count_thread_open(uint64_t sp)
{
	struct slot *slot = find_slot();

	/* A slot that could not be opened in full is tried by the next thread. */
	if (!slot || !open_slot(slot, sp) || !count_gs_set(copy_distance(slot->copy))) {
		count_thread_join_lost();
		return NULL;
	}
	if (slot == &count_library.slots[count_library.n_slots])
		count_library.n_slots++;
	return slot;
}

/* What was counted before there was a copy comes along. */
static void take_early_counts(const struct slot *slot)
{
	struct state *s = count_slot_state(slot);
	uint64_t *from = __start_weir_counters;
	uint64_t *to = (uint64_t *)((uint8_t *)from + copy_distance(slot->copy));
	uint64_t n = (uint64_t)(__stop_weir_counters - from);

	for (uint64_t i = 0; i < n; i++)
		to[i] = from[i];
	for (int i = 0; i < COUNT_STRIPES; i++) {
		s->cost[i] = weir_count_state.cost[i];
		s->cycles[i] = weir_count_state.cycles[i];
	}
}

long count_thread_first(uint64_t sp)
{
	struct slot *slot = &count_library.slots[0];

	count_library.n_slots = 1;
	if (!open_slot(slot, sp))
		return -ENOSPC;
	take_early_counts(slot);
	return count_gs_set(copy_distance(slot->copy)) ? 0 : -ENOSYS;
}

/* --- a child of fork ----------------------------------------------------------------------- */

void count_thread_note_top(bool is_open)
{
	struct state *s = count_gs_state();

	if (s->self && s->fs == count_fs_get() && count_library.n_slots > s->slot)
		count_library.slots[s->slot].top = is_open ? s->top : NULL;
}

/* The nodes from the one, exclusive, to a descendant, looked for below `to` in the new tree. */
static struct count_node *follow(struct state *s, const struct slot *old,
	const struct count_node *from, const struct count_node *node, struct count_node *to)
{
	const struct count_node *path[PATH_STEPS];
	int n = 0;

	for (; node != from && node != old->nodes && n < PATH_STEPS; n++) {
		path[n] = node;
		node = old->nodes + node->parent;
	}
	/* Recursion that was folded: it is not below. */
	if (node != from && n > 1)
		n = 1;
	while (n-- && to) {
		count_nodes_grow(s);
		to = count_node_enter(s, to, path[n]->key, path[n]->site);
	}
	return to;
}

/* Opens the calls again that were open at fork, in the child's own tree: not counted there. */
static void reopen(struct state *s, const struct slot *old)
{
	const struct frame *first = old->top, *f;
	struct count_node *node = s->nodes;

	if (!first)
		return;
	while (first->sp != UINT64_MAX)
		first--;
	s->retry = UINT64_MAX; /* the lock is ours already */
	for (f = first + 1; f <= old->top && s->top < s->limit; f++) {
		node = follow(s, old, f[-1].node, f->node, node);
		if (!node)
			break;
		s->top++;
		/* Their least and greatest cost are not known here. */
		*s->top = *f;
		s->top->node = node;
		s->top->self = 0;
		if (frame_is_foreign(f))
			s->top->ticks = f->ticks ? count_ticks() : 0;
		count_nodes_grow(s);
		count_left_not(s, s->top); /* the calls come back here, too */
		if (!(-f->sp & FRAME_LOST))
			s->top->sp -= FRAME_LOST;
	}
	s->retry = 0;
	state_thread(s)->current_node = (uint64_t)s->top->node;
}

long count_thread_forked(uint64_t sp)
{
	struct library *l = &count_library;
	uint64_t copy = l->copy_start + count_gs_get();
	struct slot *slot = l->slots, old = {0};
	struct state *s;

	for (uint32_t i = 0; i < l->n_slots; i++)
		if ((uint64_t)l->slots[i].copy == copy)
			old = l->slots[i];
	for (uint32_t i = 0; i < l->n_slots; i++)
		l->slots[i] = (struct slot){0};
	l->lost_copy = NULL;
	l->n_slots = 1;
	slot->copy = old.copy;
	if (slot->copy && !map_counters(slot->copy, 0))
		return -ENOSPC;
	if (!open_slot(slot, sp))
		return -ENOSPC;
	s = count_slot_state(slot);
	reopen(s, &old);
	if (old.nodes)
		raw_call(SYS_munmap, (uint8_t *)old.nodes - COUNT_PAGE, old.nodes_bytes);
	if (old.hash)
		raw_call(SYS_munmap, old.hash, old.hash_bytes);
	return count_gs_set(copy_distance(slot->copy)) ? 0 : -ENOSYS;
}
