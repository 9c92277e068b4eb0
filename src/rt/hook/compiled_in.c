/* SPDX-License-Identifier: MIT */
/*
 * Programs built with -finstrument-functions call these at each entry and exit, in place of libc's
 * empty functions. No return address is replaced: their exits are called, too. Their records are
 * written as those of hooks are, because handlers may come here as well.
 */
#include "ring.h"

static inline void record(enum hook_record_kind kind, void *function, uintptr_t *slot)
{
	const struct patch *p = patch_at((uintptr_t)function);
	struct thread *t = weir_thread;

	if (!p)
		return;
	/* 0 instead of the caller's address says that no slot belongs to the call. */
	if (likely(t) && likely(t->limit)) {
		struct chain *c = t->chain;

		if (likely((uintptr_t)slot - c->start < c->bytes) &&
			likely(record_call(t, c, slot, HOOK_HEAD(kind, p->id, ticks_now()), 0)))
			return;
	}
	record_late(kind, p->id, slot);
}

void weir_cyg_enter(void *function, void *call_site)
{
	(void)call_site;
	record(HOOK_RECORD_ENTER, function, __builtin_frame_address(0));
}

void weir_cyg_exit(void *function, void *call_site)
{
	(void)call_site;
	record(HOOK_RECORD_LEAVE, function, __builtin_frame_address(0));
}
