/* SPDX-License-Identifier: MIT */
/*
 * Programs built with -finstrument-functions call these at each entry and exit, in place of libc's
 * empty functions. No return address is replaced: their exits are called, too.
 */
#include "hook.h"

static void record(enum hook_record_kind kind, void *function, uint64_t data)
{
	const struct patch *p = patch_at((uintptr_t)function);
	struct thread *t = weir_thread;

	if (!p)
		return;
	if (unlikely(!t) || unlikely(!t->limit)) {
		t = thread_ensure((uintptr_t)__builtin_frame_address(0));
		if (!t)
			return;
	}
	hook_record_write(t, kind, p->id, data);
}

/* 0 instead of the caller's address says that no slot belongs to the call. */
void weir_cyg_enter(void *function, void *call_site)
{
	(void)call_site;
	record(HOOK_RECORD_ENTER, function, 0);
}

void weir_cyg_exit(void *function, void *call_site)
{
	(void)call_site;
	record(HOOK_RECORD_LEAVE, function, 0);
}
