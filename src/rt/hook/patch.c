/* SPDX-License-Identifier: MIT */
/*
 * Patches functions by the recorder's plan, and takes the patches out again.
 *
 * Patching happens when nobody can be in the code: before main, in a module that is just being
 * loaded, or with every other thread stopped by the recorder. Unpatching happens while the program
 * runs: the jump is replaced in one atomic write where it does not cross a cache line, and no
 * thread can be inside a jump. Where it crosses one, a thread might execute half of each. The way
 * by a breakpoint is none: its signal may be blocked, or be the program's. So that jump stays, and
 * the call of the hook in its trampoline becomes a nop, also in one write. The bytes come back
 * when nobody else can be in the way.
 *
 * A trampoline:  u32 id, u8 action, u8 detail, u16 0 | call *hook | moved code ... jmp back
 * Trampolines are never freed: a thread may be in one. Those of a module that is gone are used again, since
 * nobody can be in them who is not in the module: there may be little room, and plugins come and go.
 */
#include "hook.h"

#include <linux/membarrier.h>
#include <sys/mman.h>

#define REACH	     0x70000000u
#define PATCHES_BITS 20 /* log2 of how many there may be */
#define FEW_BITS     12 /* of how many there is memory at first */
#define N_STUBS	     4
#define N_NEAR	     4096 /* of modules; what comes then is not used again */
#define N_GROUPS     65536
#define JUMP_BYTES   5u

/* What was patched together: in one stretch of pages. */
struct group {
	uintptr_t low, high;
	uint32_t first, n;  /* patches */
	uint32_t n_in_code; /* of which some bytes are not the original ones */
	bool is_gone;
};
static struct group groups[N_GROUPS];
static uint32_t n_groups;

static bool has_unused_group; /* opened for nothing: all in it was refused */

/* They become larger by being made anew. Those before stay: handlers and other threads may look at them, for
 * what never changes of a patch. */
struct tables {
	unsigned bits;
	struct patch *patches; /* 1 << bits, the first n_patches are used */
	uint32_t *index;       /* twice as many, by site; 0 = none, else number + 1 */
};
static struct tables *tables; /* NULL = none yet; set by whoever changes code */
static uint32_t n_patches;

/* Memory for trampolines near one module. */
struct near_memory {
	uintptr_t pointers; /* N_STUBS addresses, at its start */
	uintptr_t next, end;
	uintptr_t start;
};

enum { STUB_ENTER, STUB_ENTER_ARGS, STUB_NOTE };

/* Such memory, and the module that it is for; both 0: that module is gone. */
static struct near_owned {
	uintptr_t start, end;
	uintptr_t low, high;
} near_owned[N_NEAR];
static uint32_t n_near;

#define LOCK_WAIT_NS 1000000

static uint32_t lock_owner; /* the process whose thread changes code just now; 0 = none */

/* In a forked child the owner may be a thread that is not there any more. */
bool patch_lock(unsigned n_tries)
{
	uint32_t own = raw_pid();

	while (n_tries--) {
		uint32_t owner = __atomic_load_n(&lock_owner, __ATOMIC_ACQUIRE);

		if (owner != own && __atomic_compare_exchange_n(&lock_owner, &owner, own, false,
					    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return true;
		if (n_tries)
			wait_ns(LOCK_WAIT_NS);
	}
	return false;
}

void patch_unlock(void)
{
	__atomic_store_n(&lock_owner, 0, __ATOMIC_RELEASE);
}

/* Where the site is in the index, or would be. */
static uint32_t *index_find(const struct tables *t, uintptr_t site)
{
	uint32_t mask = (2u << t->bits) - 1;
	uint32_t i = (uint32_t)(((uint64_t)site * 0x9e3779b97f4a7c15ull) >> (63 - t->bits));

	while (t->index[i] && t->patches[t->index[i] - 1].site != site)
		i = (i + 1) & mask;
	return &t->index[i];
}

/* False when there is no memory. */
static bool tables_open(unsigned bits)
{
	size_t patch_bytes = sizeof(struct patch) << bits, index_bytes = sizeof(uint32_t)
									 << (bits + 1);
	uint8_t *p = raw_memory(NULL, sizeof(struct tables) + patch_bytes + index_bytes,
		PROT_READ | PROT_WRITE, MAP_NORESERVE);
	struct tables *t = (struct tables *)p;

	if (!p)
		return false;
	t->bits = bits;
	t->patches = (struct patch *)(t + 1);
	t->index = (uint32_t *)((uint8_t *)t->patches + patch_bytes);
	for (uint32_t i = 0; i < n_patches; i++) {
		t->patches[i] = tables->patches[i];
		*index_find(t, t->patches[i].site) = i + 1; /* the last of a site is the one */
	}
	__atomic_store_n(&tables, t, __ATOMIC_RELEASE);
	return true;
}

static struct patch *patch_numbered(uint32_t i)
{
	return &tables->patches[i];
}

const struct patch *patch_at(uintptr_t site)
{
	const struct tables *t = __atomic_load_n(&tables, __ATOMIC_ACQUIRE);
	uint32_t i = t ? *index_find(t, site) : 0;

	return i ? &t->patches[i - 1] : NULL;
}

static struct patch *patch_new(uintptr_t site)
{
	unsigned bits = tables ? tables->bits : 0;
	struct patch *p;

	if (!tables && !tables_open(FEW_BITS))
		return NULL;
	if (n_patches == 1u << tables->bits && (bits == PATCHES_BITS || !tables_open(bits + 1)))
		return NULL;
	p = patch_numbered(n_patches++);
	p->site = site;
	/* One that was there before (unhooked, or of a module that is gone) is found no more. */
	*index_find(tables, site) = n_patches;
	return p;
}

/* --- trampolines ------------------------------------------------------------------------- */

static bool is_near(const struct near_owned *n, uintptr_t start, uintptr_t end)
{
	return (n->start >= end || end - n->start <= REACH) &&
	       (n->end <= start || n->end - start <= REACH);
}

/* That of a module that is gone, large enough and near enough; 0 = there is none. */
static uintptr_t near_again(uintptr_t start, uintptr_t end, uintptr_t bytes)
{
	for (uint32_t i = 0; i < n_near; i++) {
		struct near_owned *n = &near_owned[i];

		if (n->high || n->end - n->start < bytes || !is_near(n, start, end) ||
			raw_call(SYS_mprotect, n->start, n->end - n->start,
				PROT_READ | PROT_WRITE) < 0)
			continue;
		n->low = start;
		n->high = end;
		return n->start;
	}
	return 0;
}

static uintptr_t near_new(uintptr_t start, uintptr_t end, uintptr_t bytes)
{
	uintptr_t at = maps_find_gap(start, end, bytes, REACH);

	if (!at || raw_memory((void *)at, bytes, PROT_READ | PROT_WRITE, MAP_FIXED_NOREPLACE) !=
			   (void *)at)
		return 0;
	if (n_near < N_NEAR)
		near_owned[n_near++] = (struct near_owned){at, at + bytes, start, end};
	return at;
}

static bool near_open(struct near_memory *m, uintptr_t start, uintptr_t end, uintptr_t bytes)
{
	bool is_tree = library.control && library.control->mode == HOOK_MODE_TREE;
	void (*const stubs[N_STUBS])(void) = {
		[STUB_ENTER] = is_tree ? weir_enter_tree_stub : weir_enter_stub,
		[STUB_ENTER_ARGS] = weir_enter_args_stub,
		[STUB_NOTE] = weir_note_stub,
	};
	uintptr_t at;

	bytes = PAGE_UP(bytes + N_STUBS * sizeof(uintptr_t));
	at = near_again(start, end, bytes);
	if (!at)
		at = near_new(start, end, bytes);
	if (!at)
		return false;
	m->start = m->pointers = at;
	for (unsigned i = 0; i < N_STUBS; i++)
		((uintptr_t *)at)[i] = (uintptr_t)stubs[i];
	m->next = at + N_STUBS * sizeof(uintptr_t);
	m->end = at + bytes;
	return true;
}

static void near_close(struct near_memory *m)
{
	if (m->start)
		raw_call(SYS_mprotect, m->start, m->end - m->start, PROT_READ | PROT_EXEC);
}

static uintptr_t trampoline_bytes(const struct hook_plan *plan)
{
	return (8 + HOOK_CALL_BYTES + plan->n_code + 15u) & ~15u;
}

static void put_jump(uint8_t *at, uintptr_t target)
{
	int32_t offset = (int32_t)(target - ((uintptr_t)at + 5));

	at[0] = 0xe9;
	bytes_copy(at + 1, &offset, 4);
}

/* Where the jump from the function leads. */
static uintptr_t put_trampoline(
	struct near_memory *m, const struct hook_plan *plan, uintptr_t bias, uintptr_t *moved_code)
{
	const uint8_t *code = (const uint8_t *)(plan + 1);
	const struct hook_fixup *fixups = (const void *)(code + ((plan->n_code + 7u) & ~7u));
	uint8_t *at = (uint8_t *)m->next, *call = at + 8, *moved = call + HOOK_CALL_BYTES;
	unsigned stub = plan->action == HOOK_ACTION_CALL   ? STUB_ENTER
			: plan->action == HOOK_ACTION_NOTE ? STUB_NOTE
							   : STUB_ENTER_ARGS;
	uintptr_t pointer = m->pointers + stub * sizeof(uintptr_t);

	bytes_copy(at, &plan->id, 4);
	at[4] = plan->action;
	at[5] = plan->detail;
	if (plan->action == HOOK_ACTION_REPLACE) {
		/* jmp *pointer: the library's own function takes the place of the program's. */
		uintptr_t own = own_function((enum hook_own)plan->detail);

		bytes_copy(at, &own, sizeof(own));
		pointer = (uintptr_t)at;
	}
	call[0] = 0xff;
	call[1] = plan->action == HOOK_ACTION_REPLACE ? 0x25 : 0x15;
#ifdef __x86_64__
	pointer -= (uintptr_t)moved;
#endif
	bytes_copy(call + 2, &pointer, 4);
	bytes_copy(moved, code, plan->n_code);
	for (unsigned i = 0; i < plan->n_fixups; i++) {
		int32_t value = (int32_t)((uintptr_t)fixups[i].target + bias -
					  ((uintptr_t)moved + fixups[i].next));

		bytes_copy(moved + fixups[i].at, &value, 4);
	}
	m->next += trampoline_bytes(plan);
	*moved_code = (uintptr_t)moved;
	return (uintptr_t)call;
}

/* --- the plan ---------------------------------------------------------------------------- */

static void put_patch(struct patch *p)
{
	uint8_t *site = (uint8_t *)p->site;

	bytes_copy(p->original, site, p->n);
	if (p->n == 1) {
		p->patched[0] = 0xcc;
	} else if (p->n == 2) {
		p->patched[0] = 0xeb;
		p->patched[1] = (uint8_t)(p->pad_site - (p->site + 2));
		bytes_copy(p->pad_original, (void *)p->pad_site, 5);
		put_jump((uint8_t *)p->pad_site, p->call);
	} else {
		int32_t offset = (int32_t)(p->call - (p->site + 5));

		p->n = 5; /* what follows is never reached any more, and may stay */
		p->patched[0] = 0xe9;
		bytes_copy(p->patched + 1, &offset, 4);
	}
	bytes_copy(site, p->patched, p->n);
	p->state = PATCH_ON;
}

/* A module may have parts far away from the one that the trampolines lie near to. */
static bool is_in_reach(const struct patch *p)
{
	intptr_t distance = (intptr_t)(p->call - (p->pad_site ? p->pad_site : p->site));

	return sizeof(distance) == 4 || (distance > INT32_MIN + 16 && distance < INT32_MAX - 16);
}

static enum hook_refusal apply_one(struct near_memory *m, const struct hook_plan *plan,
	uintptr_t bias, struct hook_result *result)
{
	uintptr_t site =
		(uintptr_t)(plan->method == HOOK_METHOD_CYGPROF ? plan->function : plan->site) +
		bias;
	uintptr_t moved_code = 0;
	struct patch *p;

	if (!bytes_equal((const void *)site, plan->original, plan->n_original))
		return HOOK_REFUSAL_CHANGED;
	if (plan->action == HOOK_ACTION_TELL)
		return own_tell((enum hook_own)plan->detail, site);
	if (plan->pad_site && !bytes_equal((const void *)((uintptr_t)plan->pad_site + bias),
				      plan->pad_original, 5))
		return HOOK_REFUSAL_CHANGED;
	if (m->next + trampoline_bytes(plan) > m->end)
		return HOOK_REFUSAL_NO_ROOM;
	p = patch_new(site);
	if (!p)
		return HOOK_REFUSAL_NO_ROOM;
	p->id = plan->id;
	p->n = plan->n_patched;
	p->action = plan->action;
	p->detail = plan->detail;
	p->state = PATCH_OUT;
	p->pad_site = plan->pad_site ? (uintptr_t)plan->pad_site + bias : 0;
	if (plan->method == HOOK_METHOD_CYGPROF) /* the function calls us; only its id is needed */
		return HOOK_REFUSAL_NONE;
	p->call = put_trampoline(m, plan, bias, &moved_code);
	if (plan->n_patched != 1 && !is_in_reach(p))
		return HOOK_REFUSAL_NO_ROOM;
	if (plan->n_patched == 1 && !trap_install())
		return HOOK_REFUSAL_SIGTRAP;
	result->moved_code = moved_code;
	put_patch(p);
	return HOOK_REFUSAL_NONE;
}

static const struct hook_plan *plan_next(const struct hook_plan *plan)
{
	return (const struct hook_plan *)((const uint8_t *)plan + plan->bytes);
}

/* The pages that an entry changes. */
struct page_range {
	uintptr_t low, high;
};

static struct page_range pages_of(const struct hook_plan *plan, uintptr_t bias)
{
	uintptr_t site = (uintptr_t)plan->site + bias, pad = (uintptr_t)plan->pad_site + bias;
	struct page_range r = {site, site + (plan->n_patched ? plan->n_patched : 1)};

	if (plan->pad_site) {
		r.low = pad < r.low ? pad : r.low;
		r.high = pad + JUMP_BYTES > r.high ? pad + JUMP_BYTES : r.high;
	}
	r.low = PAGE_DOWN(r.low);
	r.high = PAGE_UP(r.high);
	return r;
}

/*
 * As many entries as lie on pages without a gap: what is between them may be data, of which nothing
 * must change. Returns their number; at least one.
 */
static uint32_t take_run(
	const struct hook_plan *plan, uint32_t n, uintptr_t bias, struct page_range *run)
{
	uint32_t i = 0;

	*run = pages_of(plan, bias);
	for (i = 1, plan = plan_next(plan); i < n; i++, plan = plan_next(plan)) {
		struct page_range r = pages_of(plan, bias);

		if (r.low > run->high || r.high < run->low || plan->action == HOOK_ACTION_VARIABLE)
			break;
		run->low = r.low < run->low ? r.low : run->low;
		run->high = r.high > run->high ? r.high : run->high;
	}
	return i;
}

static const struct hook_plan *apply_run(struct near_memory *m, const struct hook_plan *plan,
	uint32_t n, uintptr_t bias, const struct page_range *run, struct hook_result *results)
{
	struct group g = {.low = run->low, .high = run->high, .first = n_patches};
	enum hook_refusal refusal =
		!m->start || n_groups == N_GROUPS ? HOOK_REFUSAL_NO_ROOM : HOOK_REFUSAL_NONE;

	if (!refusal)
		refusal = code_open(run->low, run->high);
	for (uint32_t i = 0; i < n; i++, plan = plan_next(plan)) {
		results[i].id = plan->id;
		results[i].bias = bias;
		results[i].refusal = refusal ? refusal : apply_one(m, plan, bias, &results[i]);
	}
	g.n = n_patches - g.first;
	for (uint32_t i = g.first; i < n_patches; i++)
		g.n_in_code += patch_numbered(i)->state == PATCH_ON;
	if (!refusal)
		groups[n_groups++] = g;
	has_unused_group |= !refusal && !g.n_in_code;
	return plan;
}

/* The entries of one module lie together, in order of address. */
static void apply_module(const struct hook_plan *plan, uint32_t n, const struct module_seen *module,
	struct hook_result *results)
{
	struct near_memory m = {0};
	const struct hook_plan *p = plan;
	uintptr_t bytes = 0;

	for (uint32_t i = 0; i < n; i++, p = plan_next(p))
		bytes += trampoline_bytes(p);
	near_open(&m, module->start, module->end, bytes);
	for (uint32_t i = 0; i < n;) {
		struct page_range run;
		uint32_t k;

		if (plan->action == HOOK_ACTION_VARIABLE) {
			results[i++] = (struct hook_result){plan->id,
				own_tell((enum hook_own)plan->detail,
					(uintptr_t)plan->site + module->bias),
				0, module->bias};
			plan = plan_next(plan);
			continue;
		}
		k = take_run(plan, n - i, module->bias, &run);
		plan = apply_run(&m, plan, k, module->bias, &run, results + i);
		i += k;
	}
	near_close(&m);
}

static void apply_modules(const struct hook_plan *plan, uint32_t n,
	const struct module_seen *modules, struct hook_result *results)
{
	for (uint32_t i = 0; i < n;) {
		const struct hook_plan *end = plan;
		uint32_t k = 0;

		while (i + k < n && end->module_i == plan->module_i) {
			end = plan_next(end);
			k++;
		}
		apply_module(plan, k, &modules[plan->module_i], results + i);
		plan = end;
		i += k;
	}
}

static void refuse_all(const struct hook_plan *plan, uint32_t n, struct hook_result *results)
{
	for (uint32_t i = 0; i < n; i++, plan = plan_next(plan))
		results[i] = (struct hook_result){plan->id, HOOK_REFUSAL_NO_ROOM, 0, 0};
}

void patch_apply(const uint8_t *plans, uint32_t n, const struct module_seen *modules,
	struct hook_result *results)
{
	raw_call(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0);
	if (!patch_lock(LOCK_TRIES)) {
		refuse_all((const void *)plans, n, results);
		return;
	}
	code_look_again();
	apply_modules((const void *)plans, n, modules, results);
	if (has_unused_group)
		patch_give_back();
	has_unused_group = false;
	code_serialise();
	patch_unlock();
}

/* --- taking patches out ------------------------------------------------------------------ */

/* The trampoline's call becomes a nop of the same length: it lies within one aligned word. */
static bool silence(const struct patch *p)
{
	static const uint8_t nop[HOOK_CALL_BYTES] = {0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00};
	uintptr_t page = PAGE_DOWN(p->call);

	if (!code_reopen(page, page + PAGE_BYTES))
		return false;
	code_write(p->call, nop, sizeof(nop));
	raw_call(SYS_mprotect, page, PAGE_BYTES, PROT_READ | PROT_EXEC);
	return true;
}

/* The site's bytes, or what comes next to it. The library's own functions that stand in for the
 * program's go on working: there is nothing else behind such a jump. */
static void remove_site(struct patch *p, enum patch_others others)
{
	if (!bytes_equal((const void *)p->site, p->patched, p->n))
		return;
	if (!code_crosses_line(p->site, p->n)) {
		code_write(p->site, p->original, p->n);
	} else if (others != PATCH_OTHERS_RUN) {
		bytes_copy((void *)p->site, p->original, p->n);
	} else {
		if (p->state == PATCH_ON && p->action != HOOK_ACTION_REPLACE && silence(p))
			p->state = PATCH_SILENT;
		return;
	}
	p->state = p->pad_site ? PATCH_PAD : PATCH_OUT;
}

/* The code is writable. A thread that runs may stand between the two jumps, at the padding; so may
 * one that a handler has interrupted, even where there is no other thread. */
static void remove_one(struct patch *p, enum patch_others others)
{
	if (p->state != PATCH_PAD)
		remove_site(p, others);
	if (p->state != PATCH_PAD || others != PATCH_OTHERS_STOPPED)
		return;
	bytes_copy((void *)p->pad_site, p->pad_original, JUMP_BYTES);
	p->state = PATCH_OUT;
}

/* id 0: all of them. */
static void remove_from_group(struct group *g, uint32_t id, enum patch_others others)
{
	bool is_writable = false;

	for (uint32_t i = g->first; g->n_in_code && i < g->first + g->n; i++) {
		struct patch *p = patch_numbered(i);

		if (p->state == PATCH_OUT || (id && p->id != id))
			continue;
		if (!is_writable && !code_reopen(g->low, g->high))
			return;
		is_writable = true;
		remove_one(p, others);
		g->n_in_code -= p->state == PATCH_OUT;
	}
}

static void remove_patches(uint32_t id, enum patch_others others)
{
	for (uint32_t i = 0; i < n_groups; i++)
		if (!groups[i].is_gone)
			remove_from_group(&groups[i], id, others);
	code_serialise();
}

/* Another process may have this very memory: vfork, or clone without CLONE_THREAD. */
static bool is_alone(void)
{
	bool is_shared = library.pid != raw_pid() && !library_is_copy();

	return !is_shared && tasks_count() == 1;
}

/* Its pages stay writable until all is taken out: others are likely to be in them. */
void patch_remove(uint32_t id)
{
	if (!patch_lock(LOCK_TRIES))
		return;
	remove_patches(id, is_alone() ? PATCH_OTHERS_NONE : PATCH_OTHERS_RUN);
	patch_unlock();
}

void patch_remove_all(enum patch_others others)
{
	remove_patches(0, others == PATCH_OTHERS_RUN && is_alone() ? PATCH_OTHERS_NONE : others);
}

/* Its trampolines are for others: a trap at what comes to lie there is not ours. */
static void group_forget(struct group *g)
{
	g->is_gone = true;
	for (uint32_t i = g->first; i < g->first + g->n; i++)
		patch_numbered(i)->call = 0;
}

void patch_forget(uintptr_t start, uintptr_t end)
{
	if (!patch_lock(LOCK_TRIES))
		return;
	for (uint32_t i = 0; i < n_groups; i++)
		if (groups[i].low < end && groups[i].high > start)
			group_forget(&groups[i]);
	for (uint32_t i = 0; i < n_near; i++)
		if (near_owned[i].low == start && near_owned[i].high == end)
			near_owned[i].low = near_owned[i].high = 0;
	code_forget(start, end);
	patch_unlock();
}

/* Nobody is kept waiting but who changes the protection of code that is patched. */
void patch_note_protection(uintptr_t low, uintptr_t high, int prot)
{
	uint64_t old;

	if (!code_is_open(low, high))
		return;
	signals_block(&old);
	if (patch_lock(LOCK_TRIES)) {
		code_note_protection(low, high, prot);
		patch_unlock();
	}
	signals_unblock(&old);
}

/* --- one jump by itself ------------------------------------------------------------------ */

static uintptr_t jump_site; /* 0 = none */

bool patch_jump(uintptr_t site, uintptr_t target, uint8_t *original)
{
	uintptr_t page = PAGE_DOWN(site);

	if (jump_site || code_crosses_line(site, JUMP_BYTES))
		return false; /* it could not be taken out again at once */
	bytes_copy(original, (const void *)site, JUMP_BYTES);
	code_look_again();
	if (code_open(page, page + PAGE_BYTES))
		return false;
	put_jump((uint8_t *)site, target);
	jump_site = site;
	return true;
}

void patch_unjump(uintptr_t site, const uint8_t *original)
{
	uintptr_t page = PAGE_DOWN(site);

	if (!code_reopen(page, page + PAGE_BYTES))
		return;
	code_write(site, original, JUMP_BYTES);
	jump_site = 0;
}

static bool is_in_use(uintptr_t low, uintptr_t high)
{
	if (jump_site - low < high - low)
		return true;
	for (uint32_t i = 0; i < n_groups; i++)
		if (groups[i].n_in_code && !groups[i].is_gone && groups[i].low < high &&
			groups[i].high > low)
			return true;
	return false;
}

void patch_give_back(void)
{
	code_give_back(is_in_use);
}

uintptr_t patch_near(uintptr_t site, uintptr_t bytes)
{
	struct near_memory m;

	return near_open(&m, site, site + PAGE_BYTES, bytes) ? m.next : 0;
}
