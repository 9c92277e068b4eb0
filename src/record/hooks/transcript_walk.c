/* SPDX-License-Identifier: MIT */
/* Stacks of hooked threads: what stands behind the places that hooks have put there. */
#include <string.h>

#include "base/file.h"
#include "record/hooks/transcript_internal.h"

/* The clocks differ by some ns: an entry that the stack shows may come as the next event. */
static void look_ahead(const struct hooked_thread *thread, struct replay_walk *walk)
{
	const struct hook_chunk *c = thread->source_i < thread->sources.n
					     ? thread->sources.v[thread->source_i]->mine
					     : NULL;
	uint32_t chain = replay_chain_number(&thread->replay);

	for (uint32_t i = thread->at; c && i < c->n && i < thread->at + 2; i++) {
		const struct hook_record *next = &c->records[i];

		if (HOOK_HEAD_KIND(next->head) == HOOK_RECORD_ENTER) {
			walk->has_pending = next->data != 0;
			walk->pending_ret = next->data;
			walk->pending_chain = chain;
			return;
		}
		if (HOOK_HEAD_KIND(next->head) != HOOK_RECORD_MORE ||
			HOOK_HEAD_ID(next->head) != HOOK_MORE_CHAIN)
			return;
		chain = (uint32_t)next->data;
	}
}

bool transcript_begin_walk(
	struct transcript *t, uint32_t pid, uint32_t tid, uint64_t time, struct hook_walk *walk)
{
	struct process_view *v = transcript_find_view(t, pid, time);
	struct hooked_thread *thread = transcript_find_thread(t, pid, tid);

	if (!v)
		return false;
	*walk = (struct hook_walk){.layout = v->layout};
	if (!thread)
		return true;
	walk->has_replay = true;
	walk->replay = (struct replay_walk){.replay = &thread->replay,
		.region_start = v->layout->region_start,
		.region_bytes = v->layout->region_bytes};
	look_ahead(thread, &walk->replay);
	return true;
}

bool hook_walk_is_ours(const struct hook_walk *walk, uint64_t pc)
{
	uint64_t ignored;

	return hook_layout_is_slot(walk->layout, pc) ||
	       hook_layout_original_pc(walk->layout, pc, &ignored);
}

bool hook_walk_is_entry(const struct hook_walk *walk, uint64_t pc)
{
	uint64_t ignored;

	return hook_layout_original_pc(walk->layout, pc, &ignored) &&
	       hook_layout_is_entry(walk->layout, pc);
}

bool hook_walk_is_hook(const struct hook_walk *walk, uint64_t pc, bool in_kernel)
{
	return hook_layout_is_slot(walk->layout, pc) ||
	       hook_layout_is_trampoline(walk->layout, pc) ||
	       (in_kernel && hook_layout_is_trap(walk->layout, pc));
}

uint64_t hook_walk_true_pc(struct hook_walk *walk, uint64_t pc, bool *is_caller)
{
	uint64_t original;

	if (hook_layout_is_slot(walk->layout, pc)) {
		pc = walk->has_replay ? replay_walk_return(&walk->replay, pc, *is_caller) : 0;
		*is_caller = true;
	}
	if (hook_layout_original_pc(walk->layout, pc, &original)) {
		/* The call of the hook is none of the program's. */
		if (hook_layout_is_entry(walk->layout, pc))
			*is_caller = false;
		return original;
	}
	return pc;
}

bool transcript_is_library(struct transcript *t, uint32_t image)
{
	vec_ensure_zero(&t->library_images, (size_t)image + 1);
	if (!t->library_images.v[image])
		t->library_images.v[image] =
			1 + !strcmp(path_base_name(images_get(t->world.images, image)->path),
				    "libweir.so");
	return t->library_images.v[image] == 2;
}
