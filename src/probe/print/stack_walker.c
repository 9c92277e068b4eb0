/* SPDX-License-Identifier: MIT */
/*
 * 1. A copy is walked in the state that its process had when it was made: what the kernel has told of
 *    mappings by then has been taken, and no more, as far as nobody else has asked for it.
 * 2. A rule is taught for an address of one address space, and taken back when the process maps
 *    something else there, begins another program or ends.
 * 3. What is kept of a stack is its addresses, once; ids of copies point to them. There are at most
 *    IDS_MAX of those, and stacks behind them are unknown.
 */
#include "probe/print/stack_walker.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "dwarf/cfi_table.h"
#include "probe/print/stack_rules.h"

#define IDS_MAX	   ((size_t)1 << 20)
#define STACKS_MAX ((size_t)1 << 18)
#define TAUGHT_MAX ((size_t)1 << 18) /* keys; what is behind is copied each time */

/* Where the kernel's struct pt_regs has the registers, in words. */
static const uint8_t word_of_reg[CPU_N_REGS] = {
	[CPU_REG_RAX] = 10,
	[CPU_REG_RDX] = 12,
	[CPU_REG_RCX] = 11,
	[CPU_REG_RBX] = 5,
	[CPU_REG_RSI] = 13,
	[CPU_REG_RDI] = 14,
	[CPU_REG_RBP] = 4,
	[CPU_REG_RSP] = 19,
	[CPU_REG_R8] = 9,
	[CPU_REG_R9] = 8,
	[CPU_REG_R10] = 7,
	[CPU_REG_R11] = 6,
	[CPU_REG_R12] = 3,
	[CPU_REG_R13] = 2,
	[CPU_REG_R14] = 1,
	[CPU_REG_R15] = 0,
	[CPU_REG_RIP] = 16,
};

typedef VEC(struct stack_rule_key) taught_list;

struct stack_walker {
	struct user_names *names;
	struct unwinder *unwinder;
	struct probe_session *session; /* of the last copy */
	struct intern stacks;	       /* words: enum unwind_end, then addresses */
	VEC(uint64_t) ids;	       /* of them in the code */
	struct map stack_of_id;	       /* id, of a copy or in the code -> number of the stack + 1 */
	struct map taught_of_pid;      /* -> number of the list + 1 */
	VEC(taught_list) taught;
	struct map is_taught; /* hash of a key -> 1, or 0 when it was taken back */
	struct unwind_frame frames[STACK_FRAMES_ROOM];
};

/* --- what is taught --------------------------------------------------------------------------- */

static uint64_t hash_of(const struct stack_rule_key *key)
{
	return map_hash_mix(map_hash_mix(map_hash(key->space), key->pid), key->address);
}

static void take_back(struct stack_walker *w, const struct stack_rule_key *key)
{
	*map_ensure(&w->is_taught, hash_of(key), NULL) = 0;
	if (w->session)
		probe_session_learn(w->session, key, NULL);
}

static void forget(void *ctx, uint32_t pid, uint64_t start, uint64_t end)
{
	struct stack_walker *w = ctx;
	const uint64_t *number = map_find(&w->taught_of_pid, pid);
	taught_list *list = number ? &w->taught.v[*number - 1] : NULL;
	size_t kept = 0;

	for (size_t i = 0; list && i < list->n; i++) {
		struct stack_rule_key key = list->v[i];

		if (end && (key.address < start || key.address >= end))
			list->v[kept++] = key;
		else
			take_back(w, &key);
	}
	if (list)
		list->n = kept;
}

static void teach(
	struct stack_walker *w, const struct stack_rule_key *key, const struct stack_rule *rule)
{
	bool is_new;
	uint64_t *number, *is_taught;

	if (w->is_taught.n >= TAUGHT_MAX)
		return;
	is_taught = map_ensure(&w->is_taught, hash_of(key), NULL);
	if (*is_taught)
		return;
	*is_taught = 1;
	number = map_ensure(&w->taught_of_pid, key->pid, &is_new);

	if (is_new) {
		vec_push(&w->taught, (taught_list){0});
		*number = w->taught.n;
	}
	vec_push(&w->taught.v[*number - 1], *key);
	if (w->session)
		probe_session_learn(w->session, key, rule);
}

struct stack_walker *stack_walker_new(struct user_names *names)
{
	struct stack_walker *w = mem_zalloc(sizeof(*w));

	w->names = names;
	w->unwinder = unwinder_new();
	user_names_listen(names, (struct user_names_listener){forget, w});
	return w;
}

void stack_walker_free(struct stack_walker *w)
{
	if (!w)
		return;
	user_names_listen(w->names, (struct user_names_listener){NULL, NULL});
	for (size_t i = 0; i < w->taught.n; i++)
		vec_release(&w->taught.v[i]);
	vec_release(&w->taught);
	vec_release(&w->ids);
	map_release(&w->stack_of_id);
	map_release(&w->taught_of_pid);
	map_release(&w->is_taught);
	intern_release(&w->stacks);
	unwinder_free(w->unwinder);
	free(w);
}

/* --- walking ---------------------------------------------------------------------------------- */

struct copy_walk {
	struct stack_walker *w;
	const struct stack_copy *copy;
	uint32_t pid;
	size_t n_bytes;	  /* of the copy's pages */
	size_t n_returns; /* of the copy's, that the walk has come by */
};

static bool find_module(void *ctx, struct vaddr pc, struct unwind_module *module)
{
	const struct copy_walk *walk = ctx;

	return user_names_module(walk->w->names, walk->pid, pc, module);
}

static bool follows_call(void *ctx, struct vaddr pc)
{
	const struct copy_walk *walk = ctx;

	return user_names_follows_call(walk->w->names, walk->pid, pc);
}

static bool ends_thread(void *ctx, struct vaddr pc)
{
	const struct copy_walk *walk = ctx;

	return user_names_ends_thread(walk->w->names, walk->pid, pc);
}

/* Where a return probe of the kernel's lies in wait. */
static bool is_replaced(void *ctx, uint64_t pc)
{
	const struct copy_walk *walk = ctx;

	return pc && pc == walk->copy->trampoline;
}

static uint64_t true_pc(void *ctx, uint64_t pc, bool *is_caller)
{
	struct copy_walk *walk = ctx;

	(void)pc;
	(void)is_caller;
	return walk->n_returns < STACK_RETURNS ? walk->copy->returns[walk->n_returns++] : 0;
}

static bool has_page(const struct copy_walk *walk, uint64_t offset)
{
	return offset < walk->n_bytes && walk->copy->present >> offset / STACK_PAGE_BYTES & 1;
}

/* Behind a page that could not be read. */
static bool read_behind(void *ctx, uint64_t addr, void *to, size_t n)
{
	const struct copy_walk *walk = ctx;
	uint64_t offset = addr - walk->copy->start;

	if (!has_page(walk, offset) || !has_page(walk, offset + n - 1))
		return false;
	memcpy(to, walk->copy->bytes + offset, n);
	return true;
}

/* What is there without a gap from the stack pointer on, and what is known below it. */
static void take_memory(const struct copy_walk *walk, struct unwind_memory *m)
{
	const struct stack_copy *copy = walk->copy;
	uint64_t at = copy->sp - copy->start, end = at, from = at;

	*m = (struct unwind_memory){
		.start = {copy->sp}, .read = read_behind, .from_caller = copy->n_frames > 1};
	if (at >= walk->n_bytes)
		return;
	while (has_page(walk, end))
		end = (end / STACK_PAGE_BYTES + 1) * STACK_PAGE_BYTES;
	while (from && has_page(walk, from - 1))
		from = (from - 1) / STACK_PAGE_BYTES * STACK_PAGE_BYTES;
	m->bytes = (struct span){copy->bytes + at, end - at};
	if (copy->n_frames == 1)
		m->below = (struct span){copy->bytes + from, at - from};
}

static void take_registers(const struct stack_copy *copy, struct cpu_regs *regs)
{
	*regs = (struct cpu_regs){.is_64 = copy->bits == 64};
	if (copy->n_frames == 1) {
		for (int i = 0; i < CPU_N_REGS; i++)
			regs->r[i] = copy->regs[word_of_reg[i]];
		regs->known = (1u << CPU_N_REGS) - 1;
	}
	regs->r[CPU_REG_RIP] = copy->ip;
	regs->r[CPU_REG_RSP] = copy->sp;
	regs->r[CPU_REG_RBP] = copy->bp;
	regs->known |= 1u << CPU_REG_RIP | 1u << CPU_REG_RSP | 1u << CPU_REG_RBP;
}

/* How the walk got from frames[i] to the next one, when the code can do it, too. */
static bool find_rule(const struct copy_walk *walk, size_t i, size_t n, enum unwind_end end,
	struct stack_rule *out)
{
	const struct unwind_frame *f = &walk->w->frames[i];
	bool is_64 = walk->copy->bits == 64;
	uint64_t pc = f->pc.v - f->is_caller, word = is_64 ? 8 : 4;
	const struct cfi_rule *rule = NULL;
	struct unwind_module module;

	if (!find_module((void *)(uintptr_t)walk, (struct vaddr){pc}, &module))
		return false;
	if (module.cfi)
		rule = cfi_table_find(module.cfi, (struct iaddr){pc - module.bias});
	if (rule)
		return stack_rule_of_cfi(module.cfi, rule, f->pc.v, is_64, out);
	*out = (struct stack_rule){.flags = STACK_RULE_OUTERMOST};
	if (i + 1 == n)
		return end == UNWIND_END_COMPLETE && ends_thread((void *)(uintptr_t)walk, f->pc);
	*out = stack_rule_of_guess(
		f->fp.v && f[1].sp.v == f->fp.v + 2 * word, f[1].sp.v - f->sp.v, is_64);
	return true;
}

static void teach_frames(const struct copy_walk *walk, size_t n, enum unwind_end end)
{
	struct stack_rule_key key = walk->copy->stuck;
	struct stack_rule rule;

	for (size_t i = 0; i < n; i++) {
		const struct unwind_frame *f = &walk->w->frames[i];

		key.address = f->pc.v - f->is_caller;
		/* A step that failed says nothing, but for its being the outermost. */
		if (find_rule(walk, i, n, end, &rule) &&
			(i + 1 < n || end == UNWIND_END_COMPLETE || end == UNWIND_END_TOO_DEEP))
			teach(walk->w, &key, &rule);
	}
}

/* --- what has been walked --------------------------------------------------------------------- */

static uint64_t id_of(const uint64_t *addresses, size_t n, enum unwind_end end)
{
	uint64_t id = 1;

	for (size_t i = 0; i < n; i++)
		id = stack_hash_add(id, addresses[i]);
	/* The code knows complete ones only. */
	return (end == UNWIND_END_COMPLETE ? id : stack_hash_add(id, (uint64_t)end)) | 1;
}

static void keep(struct stack_walker *w, uint64_t copy_id, const uint64_t *addresses, size_t n,
	enum unwind_end end)
{
	uint64_t stack[1 + STACK_FRAMES_ROOM] = {(uint64_t)end};
	uint32_t number;

	if (w->stack_of_id.n >= IDS_MAX || w->stacks.n_items >= STACKS_MAX)
		return;
	memcpy(stack + 1, addresses, n * sizeof(*addresses));
	number = intern_bytes(&w->stacks, stack, (1 + n) * sizeof(*stack));
	if (number == w->ids.n) {
		vec_push(&w->ids, id_of(addresses, n, end));
		*map_ensure(&w->stack_of_id, w->ids.v[number], NULL) = number + 1;
	}
	*map_ensure(&w->stack_of_id, copy_id, NULL) = number + 1;
}

void stack_walker_take(struct stack_walker *w, struct probe_session *session,
	const struct stack_copy *copy, size_t n_bytes)
{
	struct copy_walk walk = {.w = w,
		.copy = copy,
		.pid = (uint32_t)copy->stuck.pid,
		.n_bytes = n_bytes - sizeof(*copy)};
	struct unwind_callbacks callbacks = {.find_module = find_module,
		.ctx = &walk,
		.follows_call = follows_call,
		.ends_thread = ends_thread,
		.is_replaced = is_replaced,
		.true_pc = true_pc};
	uint64_t addresses[STACK_FRAMES_ROOM];
	size_t n_known = copy->n_frames - 1, n = 0;
	struct unwind_memory memory;
	struct cpu_regs regs;
	enum unwind_end end;

	if (n_known >= STREAM_STACK_FRAMES || copy->n_pages * STACK_PAGE_BYTES > walk.n_bytes)
		return;
	w->session = session;
	user_names_work_until(w->names, copy->time_ns);
	take_memory(&walk, &memory);
	take_registers(copy, &regs);
	end = unwinder_walk(w->unwinder, &regs, &memory, &callbacks,
		map_hash_mix(user_names_space(w->names, walk.pid), walk.pid), w->frames,
		STREAM_STACK_FRAMES - n_known, &n);
	teach_frames(&walk, n, end);
	memcpy(addresses, copy->frames, n_known * sizeof(*addresses));
	for (size_t i = 0; i < n; i++)
		addresses[n_known + i] = w->frames[i].pc.v;
	n += n_known;
	if (n >= copy->n_wanted) { /* no more was asked for */
		n = copy->n_wanted;
		end = UNWIND_END_COMPLETE;
	}
	keep(w, copy->id, addresses, n, end);
}

static const uint64_t *number_of(const struct stack_walker *w, uint64_t id)
{
	return map_find(&w->stack_of_id, id);
}

uint64_t stack_walker_id(const struct stack_walker *w, uint64_t id)
{
	const uint64_t *number = number_of(w, id);

	return number ? w->ids.v[*number - 1] : id;
}

bool stack_walker_stack(const struct stack_walker *w, uint64_t id, uint64_t *addresses, size_t max,
	size_t *n, enum unwind_end *end)
{
	const uint64_t *number = number_of(w, id);
	const struct intern_item *item;
	uint64_t first;

	if (!number)
		return false;
	item = &w->stacks.items[*number - 1];
	*n = item->n / sizeof(uint64_t) - 1;
	*n = *n < max ? *n : max;
	memcpy(&first, item->p, sizeof(first)); /* what is interned is not aligned */
	memcpy(addresses, item->p + sizeof(first), *n * sizeof(*addresses));
	*end = (enum unwind_end)first;
	return true;
}
