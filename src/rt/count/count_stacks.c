/* SPDX-License-Identifier: MIT */
/*
 * Which stack is this? The program's first one, a thread's (a mapping with a guard below it, or
 * what glibc's control block says) and a signal stack have bounds that can be known. Any other (a
 * coroutine's, in the heap or in a mapping that holds many) is guessed: what lies little below, or
 * between, the stack pointers seen so far belongs to it. A wrong guess shows calls below the thread
 * instead of their caller; no count is wrong.
 */
#include <sys/mman.h>

#include "../base/stack_bounds.h"
#include "runtime.h"

#define SLACK_BYTES	 (8u << 10)
#define ABOVE_BYTES	 1024u /* above the first stack pointer that is seen */
#define FRAMES_MAX_BYTES (2ull << 30)
#define FRAMES_MIN_BYTES (1ull << 20)
#define STACKS_RESERVED	 4 /* for a confined program */

static bool contains(const struct stack *k, uint64_t sp)
{
	return sp >= k->lo && sp < k->hi;
}

/* A guessed one whose end the stack pointer is just below. */
static bool reaches(const struct stack *k, uint64_t sp)
{
	return (k->flags & STACK_GUESSED) && sp < k->lo && k->lo - sp <= SLACK_BYTES;
}

static void use(struct state *s, uint32_t i)
{
	struct stack *old = &s->stacks[s->stack], *k = &s->stacks[i];

	if (old->frames_bytes && s->top)
		old->top = s->top;
	k->used = ++s->n_switches;
	s->size = 0; /* no fast way until all is in place */
	s->stack = i;
	s->top = k->top;
	s->limit = k->limit;
	s->lo = k->lo;
	*(volatile uint64_t *)&s->size = k->hi - k->lo;
}

bool count_stack_switch(struct state *s, uint64_t sp)
{
	uint32_t near = N_STACKS;

	for (uint32_t i = 0; i < N_STACKS && s->stacks[i].frames_bytes; i++) {
		if (contains(&s->stacks[i], sp)) {
			use(s, i);
			return true;
		}
		if (reaches(&s->stacks[i], sp))
			near = i;
	}
	if (near == N_STACKS)
		return false;
	s->stacks[near].lo = sp - SLACK_BYTES;
	use(s, near);
	return true;
}

/* The functions that find bounds return their STACK_* flags. */
static uint32_t guess(uint64_t sp, const struct maps_line *line, struct stack_bounds *b)
{
	*b = (struct stack_bounds){sp - SLACK_BYTES, sp + ABOVE_BYTES};
	if (line && b->low < line->start)
		b->low = line->start;
	if (line && b->high > line->end)
		b->high = line->end;
	return STACK_GUESSED;
}

/* A stack that the program has given the thread, in the midst of other memory. */
static bool by_control_block(uint64_t sp, const struct maps_line *line, struct stack_bounds *b)
{
	uint64_t block = count_fs_get();

	return block >= sp && block >= line->start && block < line->end &&
	       stack_find_by_control_block(block, sp, line, b) && b->low >= line->start &&
	       b->low <= sp;
}

static uint32_t bounds_of(uint64_t sp, bool is_first, const struct maps_line *line, bool has_guard,
	struct stack_bounds *b)
{
	if (has_guard && !line->inode) {
		*b = (struct stack_bounds){line->start, line->end};
		return 0;
	}
	return is_first && by_control_block(sp, line, b) ? 0 : guess(sp, line, b);
}

static bool is_guard(const struct maps_line *line)
{
	return !(line->prot & (PROT_READ | PROT_WRITE));
}

static uint32_t read_bounds(
	struct proc_text *maps, uint64_t sp, bool is_first, struct stack_bounds *b)
{
	struct maps_line line = {0};
	uint64_t below = 0;
	bool has_guard = false;

	while (maps_next(maps, &line) && sp >= line.start) {
		if (sp < line.end && line.is_main_stack) {
			stack_bounds_of_main(&line, below, b);
			return 0;
		}
		if (sp < line.end)
			return bounds_of(sp, is_first, &line, has_guard && below == line.start, b);
		has_guard = is_guard(&line);
		below = line.end;
	}
	return guess(sp, NULL, b);
}

static uint32_t find_bounds(uint64_t sp, bool is_first, struct stack_bounds *b)
{
	struct maps_line line, guard;
	struct proc_text maps;
	uint32_t flags;

	if (count_library.is_confined)
		return guess(sp, NULL, b);
	if (stack_find_signal(sp, b))
		return STACK_SIGNAL;
	if (!maps_open(&maps))
		return guess(sp, NULL, b);
	/* What is mapped below the program's first stack has to be known, too. */
	if (!maps_query(&maps, sp, &line) ||
		count_library.main_stack - line.start < line.end - line.start)
		flags = read_bounds(&maps, sp, is_first, b);
	else
		flags = bounds_of(sp, is_first, &line,
			maps_query(&maps, line.start - 1, &guard) && is_guard(&guard), b);
	proc_text_close(&maps);
	return flags;
}

/* One that is free, or lies (in part) where this one is, or was left longest ago. */
static uint32_t choose_place(struct state *s, const struct stack_bounds *b)
{
	uint32_t oldest = s->stack == 0 ? 1 : 0;

	for (uint32_t i = 0; i < N_STACKS; i++) {
		const struct stack *k = &s->stacks[i];

		if (!k->frames_bytes && count_library.is_confined)
			break;
		if (!k->frames_bytes || (k->lo < b->high && b->low < k->hi))
			return i;
		if (i != s->stack && (int32_t)(k->used - s->stacks[oldest].used) < 0)
			oldest = i;
	}
	return oldest;
}

static bool ensure_frames(struct stack *k, uint64_t bytes)
{
	uint8_t *frames = NULL;

	if (bytes > FRAMES_MAX_BYTES)
		bytes = FRAMES_MAX_BYTES;
	while (bytes > count_library.reserve_max && bytes > FRAMES_MIN_BYTES)
		bytes = PAGE_UP(bytes / 2);
	if (k->frames_bytes >= bytes)
		return true;
	if (count_library.is_confined)
		return k->frames_bytes != 0;
	for (; bytes >= FRAMES_MIN_BYTES / 16; bytes /= 2) {
		frames = raw_memory(NULL, bytes, PROT_READ | PROT_WRITE, MAP_NORESERVE);
		if (frames)
			break;
	}
	if (!frames)
		return k->frames_bytes != 0;
	if (k->frames_bytes)
		raw_call(SYS_munmap, (uint8_t *)k->frames - FRAMES_SKIP, k->frames_bytes);
	k->frames = (struct frame *)(frames + FRAMES_SKIP);
	k->frames_bytes = bytes;
	return true;
}

void count_stacks_reserve(struct state *s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < N_STACKS && n < STACKS_RESERVED; i++) {
		struct stack *k = &s->stacks[i];

		if (k->frames_bytes)
			continue;
		if (!ensure_frames(k, FRAMES_MIN_BYTES))
			return;
		k->lo = k->hi = 0;
		k->used = s->n_switches - N_STACKS; /* left longest ago */
		n++;
	}
}

/* A stack whose frames grow with its limit (ulimit -s) keeps those that are open. */
static bool extend(struct state *s, uint32_t i, const struct stack_bounds *b)
{
	struct stack *k = &s->stacks[i];

	if (!k->frames_bytes || k->hi != b->high || k->flags)
		return false;
	k->lo = b->low;
	use(s, i);
	return true;
}

bool count_stack_find(struct state *s, uint64_t sp)
{
	bool is_first = !s->stacks[0].frames_bytes || !s->top;
	struct stack_bounds b;
	uint32_t flags = find_bounds(sp, is_first, &b), i = is_first ? 0 : choose_place(s, &b);
	struct stack *k;
	uint64_t bytes;

	if (!is_first && !flags && extend(s, i, &b))
		return true;
	k = &s->stacks[i];
	/* A call takes 16 bytes of a stack, as good as always, and a frame of 32. */
	bytes = flags & STACK_GUESSED ? FRAMES_MIN_BYTES
				      : PAGE_UP(2 * (b.high - b.low)) + COUNT_PAGE;
	if (i == s->stack && s->top)
		s->size = 0;
	if (!ensure_frames(k, bytes))
		return false;
	k->lo = b.low;
	k->hi = b.high;
	k->flags = flags;
	k->frames[0] = (struct frame){.node = s->nodes, .sp = UINT64_MAX};
	k->limit = k->frames + (k->frames_bytes - FRAMES_SKIP) / sizeof(struct frame) - 1;
	if (i == s->stack)
		s->top = k->frames; /* what was open there is gone */
	k->top = k->frames;
	use(s, i);
	return true;
}
