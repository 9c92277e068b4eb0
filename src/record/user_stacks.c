/* SPDX-License-Identifier: MIT */
#include "record/user_stacks.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "process/proc.h"
#include "record/deep_stacks.h"
#include "record/java_process.h"
#include "unwind/unwind.h"

#define STACK_TOP_SLACK 1024
#define STACK_FAR	((uint64_t)64 << 20)
#define TOP_ASKED_MAX	4 /* times that the mapping's end is asked for */

struct user_stacks {
	struct user_stacks_world world;
	struct transcript *transcript; /* NULL = no functions are hooked */
	struct unwinder *unwinder;
	uint32_t marker_frames[UNWIND_N_ENDS];
	uint32_t short_chain_frame;
	uint32_t hook_frame; /* likewise: ids, 0 = not defined yet */
	struct user_stacks_counts counts;
	struct unwind_frame frames[UNWIND_FRAMES_MAX];
};

struct user_stacks *user_stacks_new(const struct user_stacks_world *world)
{
	struct user_stacks *u = mem_zalloc(sizeof(*u));

	u->world = *world;
	u->unwinder = unwinder_new();
	return u;
}

void user_stacks_free(struct user_stacks *u)
{
	if (!u)
		return;
	unwinder_free(u->unwinder);
	free(u);
}

void user_stacks_set_transcript(struct user_stacks *u, struct transcript *transcript)
{
	u->transcript = transcript;
}

struct user_stacks_counts user_stacks_counts(const struct user_stacks *u)
{
	return u->counts;
}

struct walk {
	struct user_stacks *u;
	struct process *process;
	const struct collected_sample *sample;
	uint64_t time;
	struct hook_walk hooks;	   /* when the process is hooked */
	struct java_process *java; /* NULL = it is no JVM */
	const char *why;	   /* UNWIND_END_GENERATED; NULL = nobody says */
};

static bool find_module(void *ctx, struct vaddr pc, struct unwind_module *module)
{
	struct walk *walk = ctx;
	const struct mapping *m =
		images_find_module(walk->u->world.images, walk->process->space, pc, module);

	if (m && walk->process->n_live) /* else its modules have had their end */
		module_history_use(walk->u->world.modules, walk->process, m, walk->time);
	return m;
}

static bool follows_call(void *ctx, struct vaddr pc)
{
	struct walk *walk = ctx;

	return images_follows_call(walk->u->world.images, walk->process->space, pc);
}

static bool ends_thread(void *ctx, struct vaddr pc)
{
	struct walk *walk = ctx;

	return images_ends_thread(walk->u->world.images, walk->process->space, pc);
}

static bool read_piece(struct span piece, uint64_t start, uint64_t addr, void *to, size_t n)
{
	uint64_t at = addr - start;

	if (addr < start || at > piece.n || n > piece.n - at)
		return false;
	memcpy(to, piece.p + at, n);
	return true;
}

/* The outermost part of a very deep stack. */
static bool read_tail(void *ctx, uint64_t addr, void *to, size_t n)
{
	const struct deep_stack *deep = ((struct walk *)ctx)->sample->deep;

	return read_piece(deep->tail, deep->tail_start, addr, to, n);
}

static bool is_replaced(void *ctx, uint64_t pc)
{
	return hook_walk_is_ours(&((struct walk *)ctx)->hooks, pc);
}

static uint64_t true_pc(void *ctx, uint64_t pc, bool *is_caller)
{
	return hook_walk_true_pc(&((struct walk *)ctx)->hooks, pc, is_caller);
}

static enum unwind_generated step_generated(void *ctx, struct cpu_regs *regs, bool is_caller,
	const struct unwind_stack *stack, struct unwind_place *place)
{
	struct walk *walk = ctx;

	return java_process_step(walk->java, regs, is_caller, stack, place, &walk->why);
}

/* The rules of the library's stubs pass over the function whose hook they call: the word below its
 * return address leads there. `sp` is that of its caller. */
static bool hooked_frame(
	struct walk *walk, const struct unwind_memory *memory, uint64_t sp, struct unwind_frame *f)
{
	size_t word_bytes = walk->sample->regs.is_64 ? 8 : 4;
	uint64_t at = sp - 2 * word_bytes, pc = 0;
	struct unwind_module module;

	if (!read_piece(memory->bytes, memory->start.v, at, &pc, word_bytes) &&
		!(memory->read && memory->read(walk, at, &pc, word_bytes)))
		return false;
	if (!hook_walk_is_entry(&walk->hooks, pc))
		return false;
	*f = (struct unwind_frame){.sp = {sp - word_bytes}};
	f->pc.v = true_pc(walk, pc, &f->is_caller);
	f->has_module = find_module(walk, f->pc, &module);
	f->cookie = f->has_module ? module.cookie : 0;
	f->bias = f->has_module ? module.bias : 0;
	return true;
}

/* Frames of the hook library are left out; *in_hook: the innermost one was there, or in a trampoline.
 * Returns how many frames are left. */
static size_t hide_library(
	struct walk *walk, const struct unwind_memory *memory, size_t n, bool *in_hook)
{
	struct user_stacks *u = walk->u;
	size_t kept = 0;
	bool was_library = false;

	*in_hook = hook_walk_is_hook(
		&walk->hooks, walk->sample->regs.r[CPU_REG_RIP], walk->sample->in_kernel);

	for (size_t i = 0; i < n; i++) {
		bool is_library = u->frames[i].has_module &&
				  transcript_is_library(u->transcript, u->frames[i].cookie);

		if (was_library && !is_library &&
			hooked_frame(walk, memory, u->frames[i].sp.v, &u->frames[kept]))
			kept++;
		if (!is_library)
			u->frames[kept++] = u->frames[i];
		was_library = is_library;
		*in_hook |= is_library && !i;
	}
	u->counts.n_in_hooks += *in_hook;
	return kept;
}

/* The frame of hooks: what they do is their own time, not that of a function. */
static uint32_t hook_frame(struct user_stacks *u, uint64_t time)
{
	if (!u->hook_frame) {
		u->hook_frame = trace_writer_frame(
			u->world.w, &(struct trace_frame){.kind = FRAME_KIND_NATIVE,
					    .name = trace_writer_string(u->world.w, "[hook]")});
		trace_writer_numbers(u->world.w, u->world.life_stream, time, RECORD_MAJOR_HOOK,
			RECORD_HOOK_FRAME, (uint64_t[]){u->hook_frame}, 1);
	}
	return u->hook_frame;
}

static uint32_t marker_frame(struct user_stacks *u, enum unwind_end end, const char *why)
{
	if (end == UNWIND_END_GENERATED && why)
		return trace_writer_frame(
			u->world.w, &(struct trace_frame){.kind = FRAME_KIND_MARKER,
					    .name = trace_writer_string(u->world.w, why)});
	if (!u->marker_frames[end])
		u->marker_frames[end] = trace_writer_frame(u->world.w,
			&(struct trace_frame){.kind = FRAME_KIND_MARKER,
				.name = trace_writer_string(u->world.w, unwind_end_reason(end))});
	return u->marker_frames[end];
}

static uint32_t user_frame(
	struct user_stacks *u, struct java_process *java, const struct unwind_frame *f)
{
	struct trace_frame t = {
		.kind = FRAME_KIND_NATIVE, .is_caller = f->is_caller, .addr = f->pc.v};

	if (f->place.kind)
		return java_process_frame(java, &f->place, f->is_caller);
	if (f->has_module) {
		const struct image *image = images_get(u->world.images, f->cookie);

		t.image = images_trace_id(u->world.images, f->cookie, u->world.w);
		t.addr -= f->bias;
		if (image->kind == IMAGE_KIND_JIT)
			t.kind = FRAME_KIND_JITTED;
	}
	return trace_writer_frame(u->world.w, &t);
}

/* The outermost frame is a little below the stack's end. A stack that is found elsewhere (another
 * stack of the same thread) moves the top only upwards or far away. */
static void note_stack_top(struct user_stacks *u, struct thread *thread, uint64_t outermost_sp)
{
	uint64_t top = outermost_sp + STACK_TOP_SLACK;

	if (!u->world.set->deep ||
		(top <= thread->stack_top && thread->stack_top - top < STACK_FAR))
		return;
	thread->stack_top = top;
	deep_stacks_set_top(u->world.set->deep, thread->tid, top);
}

/* No walk has reached the end yet, or one that seemed to did not: the mapping's end will do. */
static void look_up_stack_top(struct user_stacks *u, struct thread *thread, uint64_t sp)
{
	uint64_t end;

	if (!u->world.set->deep || thread->n_top_asked == TOP_ASKED_MAX)
		return;
	thread->n_top_asked++;
	end = proc_mapping_end((pid_t)thread->process->pid, sp);
	if (!end)
		return;
	thread->stack_top = end;
	deep_stacks_set_top(u->world.set->deep, thread->tid, end);
}

static struct java_process *java_of(struct user_stacks *u, struct process *p)
{
	return u->world.java ? java_process_of(u->world.java, p) : NULL;
}

/* The process is part of the generation, so that each process's first hit of a module
 * reaches find_module although a forked child shares its parent's mappings. */
static uint64_t generation_of(const struct process *p, uint32_t pid)
{
	uint64_t generation = map_hash_mix(addrspace_generation(p->space), pid);

	return map_hash_mix(generation, p->start_ns);
}

/* The `n` frames of u->frames on top of `stack`. */
static uint32_t intern_frames(struct user_stacks *u, struct thread *thread,
	struct java_process *java, uint64_t generation, uint32_t stack, size_t n)
{
	n -= stack_memo_match(&thread->memo, generation, stack, u->frames, n, &stack);
	while (n--) {
		stack = trace_writer_stack(u->world.w, stack, user_frame(u, java, &u->frames[n]));
		stack_memo_add(&thread->memo, &u->frames[n], stack);
	}
	return stack;
}

/* An instruction with a uprobe, somebody's, is stepped in a copy of it, in a page of the kernel's. */
static bool is_probed_copy(const struct user_stacks *u, const struct unwind_frame *f)
{
	return f->has_module && !strcmp(images_get(u->world.images, f->cookie)->path, "[uprobes]");
}

uint32_t user_stacks_intern(
	struct user_stacks *u, const struct collected *r, struct thread *thread, uint32_t stack)
{
	const struct collected_sample *c = &r->sample;
	struct walk walk = {.u = u,
		.process = thread->process,
		.sample = c,
		.time = r->time,
		.java = java_of(u, thread->process)};
	struct unwind_memory memory = {.start = {c->regs.r[CPU_REG_RSP]},
		.bytes = c->stack,
		.read = c->deep && c->deep->tail.n ? read_tail : NULL};
	struct unwind_callbacks callbacks = {.find_module = find_module,
		.ctx = &walk,
		.follows_call = follows_call,
		.ends_thread = ends_thread,
		.step_generated = walk.java ? step_generated : NULL};
	bool is_hooked = u->transcript && transcript_begin_walk(u->transcript, r->pid, thread->tid,
						  r->time, &walk.hooks);
	bool in_hook = false;
	enum unwind_end end;
	uint64_t generation;
	size_t n = 0;

	if (walk.java)
		java_process_meet(walk.java, thread, r->time);
	if (c->n_below)
		memory.below = (struct span){c->below + DEEP_BELOW_BYTES - c->n_below, c->n_below};
	if (is_hooked) {
		callbacks.is_replaced = is_replaced;
		callbacks.true_pc = true_pc;
	}
	generation = generation_of(thread->process, r->pid);
	end = unwinder_walk(u->unwinder, &c->regs, &memory, &callbacks, generation, u->frames,
		UNWIND_FRAMES_MAX, &n);
	if (end == UNWIND_END_COMPLETE && is_probed_copy(u, &u->frames[0]))
		end = UNWIND_END_UPROBE;
	u->counts.n++;
	if (end == UNWIND_END_COMPLETE) {
		u->counts.n_complete++;
		note_stack_top(u, thread, u->frames[n - 1].sp.v);
	} else {
		stack = trace_writer_stack(u->world.w, stack, marker_frame(u, end, walk.why));
		if (!thread->stack_top || end == UNWIND_END_STACK_SHORT)
			look_up_stack_top(u, thread, c->regs.r[CPU_REG_RSP]);
	}
	if (is_hooked)
		n = hide_library(&walk, &memory, n, &in_hook);
	stack = intern_frames(u, thread, walk.java, generation, stack, n);
	return in_hook ? trace_writer_stack(u->world.w, stack, hook_frame(u, r->time)) : stack;
}

static void chain_frame(struct walk *walk, uint64_t pc, bool is_caller, struct unwind_frame *f)
{
	struct unwind_module module;

	*f = (struct unwind_frame){.pc = {pc}, .is_caller = is_caller};
	f->has_module = find_module(walk, f->pc, &module);
	if (f->has_module) {
		f->cookie = module.cookie;
		f->bias = module.bias;
	}
}

/* Nobody says so: frame pointers lead out of the first function that keeps none. */
static uint32_t short_chain(struct user_stacks *u)
{
	if (!u->short_chain_frame)
		u->short_chain_frame = trace_writer_frame(u->world.w,
			&(struct trace_frame){.kind = FRAME_KIND_MARKER,
				.name = trace_writer_string(u->world.w,
					"the recorded call chain ends before the thread's start")});
	return trace_writer_stack(u->world.w, 0, u->short_chain_frame);
}

uint32_t user_stacks_intern_chain(
	struct user_stacks *u, const struct collected *r, struct thread *thread)
{
	const struct collected_sample *c = &r->sample;
	struct walk walk = {.u = u, .process = thread->process, .sample = c, .time = r->time};
	size_t n = c->n_user < UNWIND_FRAMES_MAX ? c->n_user : UNWIND_FRAMES_MAX;
	uint32_t stack = 0;

	for (size_t i = 0; i < n; i++)
		chain_frame(&walk, c->user[i], i > 0, &u->frames[i]);
	if (!n)
		chain_frame(&walk, c->ip, false, &u->frames[n++]);
	else if (n > 1 && ends_thread(&walk, u->frames[n - 1].pc))
		u->counts.n_complete++;
	else
		stack = short_chain(u);
	u->counts.n += c->n_user > 0;
	return intern_frames(u, thread, NULL, generation_of(thread->process, r->pid), stack, n);
}

static bool read_nothing(void *ctx, uint64_t addr, void *to, size_t n)
{
	(void)ctx;
	(void)addr;
	(void)to;
	(void)n;
	return false;
}

/* What is known of an address in a JVM's code without its frame: the compiled method. */
static void find_place(struct java_process *java, struct unwind_frame *f)
{
	struct cpu_regs regs = {.is_64 = true, .known = 1u << CPU_REG_RIP};
	const struct unwind_stack nothing = {read_nothing, NULL};
	const char *why;

	regs.r[CPU_REG_RIP] = f->pc.v;
	java_process_step(java, &regs, false, &nothing, &f->place, &why);
}

uint32_t user_stacks_tick(struct user_stacks *u, struct thread *thread, uint64_t pc, uint64_t time)
{
	const struct mapping *m = addrspace_find(thread->process->space, (struct vaddr){pc});
	struct java_process *java = java_of(u, thread->process);
	struct unwind_frame f = {.pc = {pc}};

	if (java)
		find_place(java, &f);
	if (m) {
		f.has_module = true;
		f.cookie = m->image;
		f.bias = m->bias;
		module_history_use(u->world.modules, thread->process, m, time);
	}
	return user_frame(u, java, &f);
}
