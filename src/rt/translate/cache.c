/* SPDX-License-Identifier: MIT */
/*
 * Numbers and memory. Translated code is in arenas, each near the code that it is of, so that distances relative
 * to rip fit; an arena only grows. Tables only grow, too, and a row is right before it is counted: the handler of
 * signals reads them without the lock. A block that is stale keeps its row and its code; its first bytes become
 * a jump to the translator, so that whatever leads to it (links, tables, return addresses) need not be found.
 */
#include "block_emit.h"

#define N_ARENAS    TRANSLATE_ARENAS_MAX
#define ARENA_BYTES (64u << 20)
#define ARENA_REACH 0x40000000ull
#define HASH_ROWS   (1u << 22)
#define N_ARENA_GROUPS (1u << 20)
#define RESERVE_TRIES 64
#define RESERVE_STEP  (16ull << 30)
#define COPY_BYTES  (GROUP_BYTES_MAX + 64)
#define LOCK_NAMELESS 1u
/* Turns of waiting for the lock: so many at once, then giving way, then naps of a millisecond. */
#define LOCK_SPINS  200
#define LOCK_YIELDS 2000
#define LOCK_NAPS   3000
#define NAP_NS	    1000000

struct arena {
	uint64_t start, at, end;
	uint32_t *groups; /* by address */
	uint32_t n_groups;
};

/* What is not for the recorder. */
struct block_note {
	uint64_t restoring; /* address of the code that restores registers first; 0 = none yet */
	uint8_t variant, why, count_at, flags_dead;
};

struct group *groups;
struct exit *exits;
static struct block_note *notes;
static struct arena arenas[N_ARENAS];
static struct translate_arena arena_rows[N_ARENAS];
static uint32_t n_arenas, n_groups, n_exits;
static uint32_t *hash; /* number of a block + 1; all entries stay */
static uint32_t lock; /* the thread that has it; 0 = nobody, LOCK_NAMELESS = one that may not ask who it is */

static bool can_note(void)
{
	return header.n_mappings < TRANSLATE_MAPPINGS_MAX - 64; /* other threads may be about to */
}

/* For who takes it all away again. */
static void note_mapping(uint64_t start, uint64_t bytes)
{
	static struct translate_mapping all[TRANSLATE_MAPPINGS_MAX];
	uint64_t i = __atomic_fetch_add(&header.n_mappings, 1, __ATOMIC_RELAXED);

	header.mappings = (uint64_t)all;
	all[i] = (struct translate_mapping){start, bytes};
}

/* Where no program has anything: what lies beside code is for arenas, and for the program. */
void *memory_reserve(uint64_t n)
{
	static uint64_t at = 0x200000000000u;

	for (unsigned i = 0; i < RESERVE_TRIES && can_note(); i++) {
		uint64_t here = __atomic_fetch_add(&at, PAGE_UP(n) + PAGE_BYTES, __ATOMIC_RELAXED);
		void *p = raw_memory((void *)here, n, PROT_READ | PROT_WRITE, MAP_NORESERVE | MAP_FIXED_NOREPLACE);

		if (p) {
			note_mapping(here, PAGE_UP(n));
			return p;
		}
		/* Something is there: another translator, that could not be taken away. */
		__atomic_fetch_add(&at, RESERVE_STEP, __ATOMIC_RELAXED);
	}
	return NULL;
}

bool cache_init(void)
{
	header.blocks = (uint64_t)memory_reserve((uint64_t)N_BLOCKS_MAX * sizeof(struct translate_block));
	groups = memory_reserve((uint64_t)N_GROUPS_MAX * sizeof(*groups));
	exits = memory_reserve((uint64_t)N_EXITS_MAX * sizeof(*exits));
	notes = memory_reserve((uint64_t)N_BLOCKS_MAX * sizeof(*notes));
	hash = memory_reserve((uint64_t)HASH_ROWS * sizeof(*hash));
	return header.blocks && groups && exits && notes && hash;
}

/*
 * A child of vfork has its parent's memory, and the kernel may kill the parent's threads where they stand: who has
 * the lock is then gone. That is asked only after a time in which no thread that lives has it, since a child may see
 * other numbers of threads. What was being made then is not in any table yet, or whole.
 */
static bool owner_is_gone(uint32_t owner)
{
	return owner != LOCK_NAMELESS && raw_call(SYS_kill, owner, 0) == -ESRCH;
}

static void wait_for_lock(void)
{
	uint32_t owner, was = 0;

	for (unsigned i = 0; (owner = __atomic_load_n(&lock, __ATOMIC_RELAXED)); i++) {
		if (owner != was) {
			was = owner;
			i = 0;
		}
		if (i < LOCK_SPINS)
			__builtin_ia32_pause();
		else if (i < LOCK_YIELDS || is_confined)
			raw_call(SYS_sched_yield, 0);
		else if (i < LOCK_NAPS || !owner_is_gone(owner))
			wait_ns(NAP_NS);
		else
			__atomic_compare_exchange_n(&lock, &owner, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	}
}

/* Short: only while something is translated. */
void cache_lock(void)
{
	uint32_t me = is_confined ? LOCK_NAMELESS : raw_tid(), nobody = 0;

	while (!__atomic_compare_exchange_n(
		&lock, &nobody, me, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) { /* pairs with cache_unlock */
		nobody = 0;
		wait_for_lock();
	}
}

void cache_unlock(void)
{
	__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

/* ---- look-up ---- */

/* Where nobody asks for calls, they do not matter. */
static enum variant variant_here(enum variant variant)
{
	return header.options & TRANSLATE_OPTION_CALLS ? variant : VARIANT_PLAIN;
}

static uint32_t hash_of(uint64_t pc, enum variant variant)
{
	return (uint32_t)((pc * 0x9e3779b97f4a7c15u + (uint64_t)variant * 0x85ebca6bu * 0x100000001u) >> 42);
}

uint32_t cache_find(uint64_t pc, enum variant variant)
{
	variant = variant_here(variant);
	for (uint32_t i = hash_of(pc, variant);; i++) {
		uint32_t number = hash[i & (HASH_ROWS - 1)] - 1;

		if (number == NO_BLOCK)
			return NO_BLOCK;
		if (block_rows[number].pc == pc && notes[number].variant == variant &&
			!(block_rows[number].flags & TRANSLATE_BLOCK_STALE))
			return number;
	}
}

static void hash_add(uint32_t number)
{
	uint32_t i = hash_of(block_rows[number].pc, notes[number].variant);

	while (hash[i & (HASH_ROWS - 1)])
		i++;
	hash[i & (HASH_ROWS - 1)] = number + 1;
}

uint8_t cache_variant(uint32_t block)
{
	return notes[block].variant;
}

uint8_t cache_why(uint32_t block)
{
	return notes[block].why;
}

void cache_count_place(uint32_t block, uint16_t *at, bool *flags_dead)
{
	*at = notes[block].count_at;
	*flags_dead = notes[block].flags_dead;
}

/* ---- memory ---- */

static struct arena *arena_of(uint64_t address)
{
	for (uint32_t i = 0; i < n_arenas; i++)
		if (address - arenas[i].start < arenas[i].end - arenas[i].start)
			return &arenas[i];
	return NULL;
}

bool cache_is_code(uint64_t address)
{
	return arena_of(address) != NULL;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static struct arena *arena_make(uint64_t pc)
{
	const struct region *r = region_at(pc);
	uint64_t gap = r ? gap_near(r->start, r->end, ARENA_BYTES, ARENA_REACH) : 0;
	struct arena *a = &arenas[n_arenas];
	const int prot = PROT_READ | PROT_WRITE | PROT_EXEC;

	if (n_arenas == N_ARENAS)
		return NULL;
	a->start = (uint64_t)raw_memory((void *)gap, ARENA_BYTES, prot,
		MAP_NORESERVE | (gap ? MAP_FIXED_NOREPLACE : 0));
	a->groups = memory_reserve((uint64_t)N_ARENA_GROUPS * sizeof(*a->groups));
	if (a->start)
		note_mapping(a->start, ARENA_BYTES);
	if (!a->start || !a->groups)
		return NULL;
	a->at = a->start;
	a->end = a->start + ARENA_BYTES;
	a->n_groups = 0;
	if (!header.cache_low || a->start < header.cache_low)
		header.cache_low = a->start;
	if (a->end > header.cache_high)
		header.cache_high = a->end;
	arena_rows[n_arenas] = (struct translate_arena){a->start, a->end};
	__atomic_store_n(&n_arenas, n_arenas + 1, __ATOMIC_RELEASE);
	header.arenas = (uint64_t)arena_rows;
	header.n_arenas = n_arenas;
	return a;
}

/* One near pc with room for n bytes. */
static struct arena *arena_near(uint64_t pc, uint64_t n)
{
	for (uint32_t i = 0; i < n_arenas; i++)
		if (distance(arenas[i].start, pc) < ARENA_REACH + ARENA_BYTES && arenas[i].end - arenas[i].at >= n &&
			arenas[i].n_groups < N_ARENA_GROUPS)
			return &arenas[i];
	return arena_make(pc);
}

/* Room near `address`, at the same place of a cache line. */
uint8_t *cache_room_near(struct thread *t, uint64_t address, size_t n, unsigned line_offset)
{
	struct arena *a = arena_of(address);
	uint8_t *room = NULL;

	for (unsigned i = 0; a && i < COPIES && !room; i++) {
		if (!t->copies[i].arena) {
			t->copies[i].arena = a->start;
			cache_lock();
			if (a->end - a->at >= COPY_BYTES) {
				t->copies[i].room = (uint8_t *)((a->at + 63) & ~63ull);
				a->at = (uint64_t)t->copies[i].room + COPY_BYTES;
			}
			cache_unlock();
		}
		if (t->copies[i].arena == a->start)
			room = t->copies[i].room;
	}
	return room && n + line_offset <= COPY_BYTES ? room + line_offset : NULL;
}

const struct group *cache_group_at(uint64_t address)
{
	const struct arena *a = arena_of(address);
	uint32_t low = 0, high;

	if (!a)
		return NULL;
	high = __atomic_load_n(&a->n_groups, __ATOMIC_ACQUIRE);
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (groups[a->groups[middle]].cache <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || address - groups[a->groups[low - 1]].cache >= groups[a->groups[low - 1]].bytes)
		return NULL;
	return &groups[a->groups[low - 1]];
}

/* ---- groups ---- */

static void add_block(const struct plan *plan, const struct emission *e, uint32_t i)
{
	const struct planned *b = &plan->block[i];
	const struct insn *last = &plan->insns[b->first_insn + b->n_insns - 1];
	struct translate_block *row = &block_rows[b->number];
	uint16_t flags = 0;

	if (b->variant == VARIANT_ENTER)
		flags |= TRANSLATE_BLOCK_ENTRY;
	if (b->variant == VARIANT_LAND)
		flags |= TRANSLATE_BLOCK_LANDING;
	if (b->n_insns && last->kind == INSN_RETURN)
		flags |= TRANSLATE_BLOCK_RETURN;
	if (b->n_insns && last->kind == INSN_SYSCALL)
		flags |= TRANSLATE_BLOCK_SYSCALL;
	if (b->n_insns && (last->kind == INSN_CALL || last->kind == INSN_CALL_INDIRECT))
		flags |= TRANSLATE_BLOCK_CALL;
	if (b->is_implied)
		flags |= TRANSLATE_BLOCK_IMPLIED;
	*row = (struct translate_block){.pc = b->pc,
		.bytes = (uint32_t)(b->next - b->pc),
		.n_insns = b->n_insns,
		.flags = flags,
		.code = (uint64_t)b->code,
		.cache = e->heads[i],
		.cache_bytes = (uint32_t)((i + 1 < plan->n_blocks ? e->heads[i + 1] : e->address + e->stubs_at) -
					  e->heads[i]),
		.group = plan->block[0].number,
		.body = (uint32_t)(e->bodies[i] - e->heads[i]),
		.target = plan_target(plan, b)};
	notes[b->number] = (struct block_note){
		0, b->variant, b->why, (uint8_t)b->count_at, b->flags_dead};
}

static uint32_t add_group(struct arena *a, const struct plan *plan, const struct emission *e)
{
	uint32_t number = n_groups;

	groups[number] = (struct group){.cache = e->address,
		.bytes = e->bytes,
		.stubs_at = e->stubs_at,
		.first_block = plan->block[0].number,
		.n_blocks = plan->n_blocks,
		.first_exit = e->first_exit,
		.n_exits = e->n_exits};
	for (uint32_t i = 0; i < plan->n_blocks; i++)
		add_block(plan, e, i);
	a->at = (e->address + e->bytes + 15) & ~15ull;
	a->groups[a->n_groups] = number;
	__atomic_store_n(&a->n_groups, a->n_groups + 1, __ATOMIC_RELEASE); /* pairs with cache_group_at */
	n_groups++;
	n_exits += e->n_exits;
	__atomic_store_n(&header.n_blocks, header.n_blocks + plan->n_blocks, __ATOMIC_RELEASE);
	for (uint32_t i = 0; i < plan->n_blocks; i++)
		hash_add(plan->block[i].number);
	return plan->block[0].number;
}

static bool is_full(struct thread *t)
{
	if (header.n_blocks + GROUP_BLOCKS < N_BLOCKS_MAX && n_groups + 1 < N_GROUPS_MAX &&
		n_exits + 4 * GROUP_BLOCKS < N_EXITS_MAX)
		return false;
	t->cannot = TRANSLATE_WHY_BLOCKS;
	return true;
}

static uint32_t make(struct thread *t, uint64_t pc, enum variant variant, bool is_alone)
{
	struct plan plan;
	struct arena *a;
	struct emission e = {.plan = &plan, .room = GROUP_BYTES_MAX, .first_exit = n_exits};

	t->cannot = 0;
	if (is_full(t) || !plan_make(t, &plan, pc, variant_here(variant), is_alone))
		return NO_BLOCK;
	a = arena_near(pc, GROUP_BYTES_MAX + 64);
	if (!a) {
		t->cannot = TRANSLATE_WHY_MEMORY;
		return NO_BLOCK;
	}
	e.address = a->at;
	e.to = (uint8_t *)a->at;
	e.n_blocks = plan.n_blocks;
	emit_group(&e);
	if (e.failed) {
		t->cannot = TRANSLATE_WHY_INSTRUCTION;
		return NO_BLOCK;
	}
	return add_group(a, &plan, &e);
}

uint32_t cache_make(struct thread *t, uint64_t pc, enum variant variant)
{
	return make(t, pc, variant, false);
}

uint32_t cache_make_alone(struct thread *t, uint64_t pc)
{
	static uint32_t known[64]; /* number + 1, by address */
	uint32_t *at = &known[pc & 63], block = *at - 1;

	if (*at && block_rows[block].pc == pc && cache_is_fresh(block))
		return block;
	block = make(t, pc, VARIANT_PLAIN, true);
	if (block != NO_BLOCK) {
		block_rows[block].flags |= TRANSLATE_BLOCK_STALE; /* for who looks it up */
		*at = block + 1;
	}
	return block;
}

uint64_t cache_restoring_entry(uint32_t block)
{
	struct arena *a = arena_of(block_rows[block].cache);

	if (notes[block].restoring)
		return notes[block].restoring;
	if (!a || a->end - a->at < RESTORING_BYTES)
		return 0;
	emit_restoring((uint8_t *)a->at, a->at, block_rows[block].cache);
	notes[block].restoring = a->at;
	a->at += RESTORING_BYTES;
	return notes[block].restoring;
}

void cache_link(struct exit *e, uint32_t block)
{
	uint64_t target = block_rows[block].cache;
	int64_t far = (int64_t)(target - (e->site + 4));

	if (e->kind == EXIT_KIND_FAR)
		__atomic_store_n((uint64_t *)e->site, target, __ATOMIC_RELEASE);
	else if (e->kind == EXIT_KIND_DIRECT && far == (int32_t)far)
		__atomic_store_n((uint32_t *)e->site, (uint32_t)far, __ATOMIC_RELEASE);
}

/* ---- what is stale ---- */

/* What is at `from`, 8 bytes of a cache line, leads to the translator. */
static void lead_to_translator(struct arena *a, uint64_t from, uint32_t block, uint32_t left)
{
	uint64_t old, jump = (uint32_t)(a->at - (from + HEAD_BYTES));

	emit_stale((uint8_t *)a->at, block_rows[block].pc, notes[block].variant, left);
	__builtin_memcpy(&old, (void *)from, 8);
	old = (old & 0xffffff0000000000u) | 0xe9u | jump << 8;
	__atomic_store_n((uint64_t *)from, old, __ATOMIC_RELEASE);
	a->at += STALE_BYTES;
}

static void make_stale(uint32_t block)
{
	struct translate_block *row = &block_rows[block];
	struct arena *a = arena_of(row->cache);

	row->flags |= TRANSLATE_BLOCK_STALE;
	if (!a || a->end - a->at < 2 * STALE_BYTES)
		return; /* its page is not executed any more, or the program ends by a fault of its own */
	lead_to_translator(a, row->cache, block, NO_BLOCK);
	if (row->flags & TRANSLATE_BLOCK_IMPLIED)
		lead_to_translator(a, row->cache + row->body, block, block - 1);
}

void cache_forget(uint64_t start, uint64_t end)
{
	for (uint32_t i = 0; i < header.n_blocks; i++)
		if (block_rows[i].pc < end && block_rows[i].pc + (block_rows[i].bytes ? block_rows[i].bytes : 1) > start &&
			!(block_rows[i].flags & TRANSLATE_BLOCK_STALE))
			make_stale(i);
}

bool cache_is_fresh(uint32_t block)
{
	const struct translate_block *row = &block_rows[block];
	const uint8_t *kept = (const uint8_t *)row->code;
	uint8_t now[BLOCK_INSNS * INSN_BYTES_MAX];

	if (row->bytes > sizeof(now) || !translate_copy(now, (const void *)row->pc, row->bytes))
		return false;
	for (uint32_t i = 0; i < row->bytes; i++)
		if (now[i] != kept[i])
			return false;
	return true;
}

void cache_forget_all(void)
{
	cache_forget(0, UINT64_MAX);
}
