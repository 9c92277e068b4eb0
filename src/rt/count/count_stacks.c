/* SPDX-License-Identifier: MIT */
/*
 * Which stack is this? The program's first one, a thread's (a mapping with a guard below it, or
 * what glibc's control block says) and a signal stack have bounds that can be known. Any other (a
 * coroutine's, in the heap or in a mapping that holds many) is guessed: what lies little below, or
 * between, the stack pointers seen so far belongs to it. A wrong guess shows calls below the thread
 * instead of their caller; no count is wrong.
 */
#include <sys/mman.h>
#include <sys/resource.h>

#include "runtime.h"

#define MAIN_STACK_BYTES (1ull << 30) /* where no limit is set */
#define SLACK_BYTES	 (8u << 10)
#define ABOVE_BYTES	 1024u /* above the first stack pointer that is seen */
/* glibc's struct pthread has less, and as much may lie above it. */
#define CONTROL_BLOCK_BYTES 2560u
#define BLOCK_ABOVE_BYTES   16384u
#define FRAMES_MAX_BYTES    (2ull << 30)
#define FRAMES_MIN_BYTES    (1ull << 20)
#define STACKS_RESERVED	    4 /* for a confined program */

struct bounds {
	uint64_t lo, hi;
	uint32_t flags;
};

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

static bool is_signal_stack(uint64_t sp, struct bounds *b)
{
	struct {
		uint64_t sp;
		int flags;
		uint64_t bytes;
	} s = {0};

	if (raw_call(SYS_sigaltstack, 0, &s) < 0 || sp - s.sp >= s.bytes)
		return false;
	*b = (struct bounds){s.sp, s.sp + s.bytes, STACK_SIGNAL};
	return true;
}

/*
 * glibc has a thread's control block at the upper end of its stack, wherever that came from, and in
 * it the start and the size of the whole; where in it differs by version.
 */
static bool by_control_block(uint64_t sp, const struct maps_line *line, struct bounds *b)
{
	uint64_t block = count_fs_get(), end = block + CONTROL_BLOCK_BYTES;

	if (block < sp || block < line->start || block >= line->end)
		return false;
	end = end < line->end ? end : line->end;
	for (const uint64_t *word = (const uint64_t *)block; (uint64_t)(word + 2) <= end; word++) {
		uint64_t start = word[0], bytes = word[1];

		if (start >= line->start && start <= sp && bytes <= line->end - start &&
			block - start < bytes && start + bytes - block <= BLOCK_ABOVE_BYTES) {
			*b = (struct bounds){start, start + bytes, 0};
			return true;
		}
	}
	return false;
}

static void guess(uint64_t sp, const struct maps_line *line, struct bounds *b)
{
	*b = (struct bounds){sp - SLACK_BYTES, sp + ABOVE_BYTES, STACK_GUESSED};
	if (line && b->lo < line->start)
		b->lo = line->start;
	if (line && b->hi > line->end)
		b->hi = line->end;
}

/* It grows down to its limit; nothing else is mapped so far. */
static void bounds_of_main(const struct maps_line *line, uint64_t below, struct bounds *b)
{
	uint64_t limit[2] = {MAIN_STACK_BYTES, 0};

	raw_call(SYS_prlimit64, 0, RLIMIT_STACK, 0, limit);
	if (limit[0] > MAIN_STACK_BYTES)
		limit[0] = MAIN_STACK_BYTES;
	b->hi = line->end;
	b->lo = line->end - limit[0];
	b->lo = b->lo < below ? below : b->lo;
	b->lo = b->lo < line->start ? b->lo : line->start;
	b->flags = 0;
}

static void bounds_of(uint64_t sp, bool is_first, const struct maps_line *line, uint64_t below,
	bool has_guard, struct bounds *b)
{
	if (line->is_main_stack)
		bounds_of_main(line, below, b);
	else if (has_guard && !line->inode)
		*b = (struct bounds){line->start, line->end, 0};
	else if (!is_first || !by_control_block(sp, line, b))
		guess(sp, line, b);
}

static bool is_guard(const struct maps_line *line)
{
	return !line->is_readable && !line->is_writable;
}

static void read_bounds(struct maps_reader *r, uint64_t sp, bool is_first, struct bounds *b)
{
	struct maps_line line;
	uint64_t below = 0;
	bool has_guard = false;

	while (count_maps_next(r, &line) && sp >= line.start) {
		if (sp < line.end) {
			bounds_of(sp, is_first, &line, below, has_guard && below == line.start, b);
			return;
		}
		has_guard = is_guard(&line);
		below = line.end;
	}
}

static void find_bounds(uint64_t sp, bool is_first, struct bounds *b)
{
	struct maps_reader r;
	struct maps_line line, guard;

	guess(sp, NULL, b);
	if (count_library.is_confined || is_signal_stack(sp, b))
		return;
	if (!count_maps_open(&r, "/proc/self/maps"))
		return;
	/* What is mapped below the program's first stack has to be known, too. */
	if (!count_maps_query(&r, sp, &line) || line.is_main_stack)
		read_bounds(&r, sp, is_first, b);
	else
		bounds_of(sp, is_first, &line, 0,
			count_maps_query(&r, line.start - 1, &guard) && is_guard(&guard), b);
	count_maps_close(&r);
}

/* One that is free, or lies (in part) where this one is, or was left longest ago. */
static uint32_t choose_place(struct state *s, const struct bounds *b)
{
	uint32_t oldest = s->stack == 0 ? 1 : 0;

	for (uint32_t i = 0; i < N_STACKS; i++) {
		const struct stack *k = &s->stacks[i];

		if (!k->frames_bytes && count_library.is_confined)
			break;
		if (!k->frames_bytes || (k->lo < b->hi && b->lo < k->hi))
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
	for (; bytes >= FRAMES_MIN_BYTES / 16 && !frames; bytes /= 2) {
		frames = count_mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
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
static bool extend(struct state *s, uint32_t i, const struct bounds *b)
{
	struct stack *k = &s->stacks[i];

	if (!k->frames_bytes || k->hi != b->hi || b->flags || k->flags)
		return false;
	k->lo = b->lo;
	use(s, i);
	return true;
}

bool count_stack_find(struct state *s, uint64_t sp)
{
	bool is_first = !s->stacks[0].frames_bytes || !s->top;
	struct bounds b;
	struct stack *k;
	uint64_t bytes;
	uint32_t i;

	find_bounds(sp, is_first, &b);
	i = is_first ? 0 : choose_place(s, &b);
	if (!is_first && extend(s, i, &b))
		return true;
	k = &s->stacks[i];
	/* A call takes 16 bytes of a stack, as good as always, and a frame of 32. */
	bytes = b.flags & STACK_GUESSED ? FRAMES_MIN_BYTES
					: PAGE_UP(2 * (b.hi - b.lo)) + COUNT_PAGE;
	if (i == s->stack && s->top)
		s->size = 0;
	if (!ensure_frames(k, bytes))
		return false;
	k->lo = b.lo;
	k->hi = b.hi;
	k->flags = b.flags;
	k->frames[0] = (struct frame){.node = s->nodes, .sp = UINT64_MAX};
	k->limit = k->frames + (k->frames_bytes - FRAMES_SKIP) / sizeof(struct frame) - 1;
	if (i == s->stack)
		s->top = k->frames; /* what was open there is gone */
	k->top = k->frames;
	use(s, i);
	return true;
}
