/* SPDX-License-Identifier: MIT */
/*
 * Programs built with -finstrument-functions call these at each entry and exit, in place of libc's
 * empty functions. No return address is replaced: their exits are called, too. Their records are
 * written as those of hooks are, because handlers may come here as well.
 */
#include "ring.h"

uintptr_t weir_cost_site;

/* `own_id`: instead of the function's; 0 = none. */
static inline void record(
	enum hook_record_kind kind, void *function, uintptr_t *slot, uint32_t own_id)
{
	const struct patch *p = patch_at((uintptr_t)function);
	struct thread *t = weir_thread;
	uint32_t id;

	if (!p)
		return;
	id = own_id ? own_id : p->id;
	/* 0 instead of the caller's address says that no slot belongs to the call. */
	if (likely(t) && likely(t->limit)) {
		struct chain *c = t->chain;

		if (likely((uintptr_t)slot - c->start < c->bytes) &&
			likely(record_call(t, c, slot, HOOK_HEAD(kind, id, ticks_now()), 0)))
			return;
	}
	record_late(kind, id, slot, 0, p);
}

void weir_cyg_enter(void *function, void *call_site)
{
	(void)call_site;
	record(HOOK_RECORD_ENTER, function, __builtin_frame_address(0), 0);
}

void weir_cyg_exit(void *function, void *call_site)
{
	(void)call_site;
	record(HOOK_RECORD_LEAVE, function, __builtin_frame_address(0), 0);
}

/* --- what this costs (self_cost.c) --------------------------------------------------------------- */

static __attribute__((noinline)) void enter_for_cost(void *function, void *call_site)
{
	(void)call_site;
	record(HOOK_RECORD_ENTER, function, __builtin_frame_address(0), HOOK_COST_ID);
}

static __attribute__((noinline)) void exit_for_cost(void *function, void *call_site)
{
	(void)call_site;
	record(HOOK_RECORD_LEAVE, function, __builtin_frame_address(0), HOOK_COST_ID);
}

void weir_cost_instrument(void)
{
	enter_for_cost((void *)weir_cost_site, NULL);
	exit_for_cost((void *)weir_cost_site, NULL);
}

/* As libc's are. */
static __attribute__((noinline)) void do_nothing(void *function, void *call_site)
{
	__asm__ volatile("" : : "r"(function), "r"(call_site));
}

void weir_cost_instrument_none(void)
{
	do_nothing((void *)weir_cost_site, NULL);
	do_nothing((void *)weir_cost_site, NULL);
}
