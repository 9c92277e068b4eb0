/* SPDX-License-Identifier: MIT */
/*
 * What rewritten methods call, at their start and before they end. No return address is replaced: each exit is
 * called, too. Their records are written as those of hooks are, because handlers may come here as well; so
 * calls of Java methods and of native functions are in one order.
 */
#ifdef __x86_64__
#include "../hook/ring.h"
#include "java.h"

/* 0 instead of the caller's address says that no slot belongs to the call. */
static inline void record(enum hook_record_kind kind, uint32_t id, uintptr_t *slot)
{
	struct thread *t = weir_thread;

	if (likely(t) && likely(t->limit) && likely(id != JAVA_NO_METHOD)) {
		struct chain *c = t->chain;

		if (likely((uintptr_t)slot - c->start < c->bytes) &&
			likely(record_call(t, c, slot, HOOK_HEAD(kind, id, ticks_now()), 0)))
			return;
	}
	if (java_is_wanted() && id != JAVA_NO_METHOD)
		record_late(kind, id, slot, NULL);
}

void java_enter(void *env, void *class, int32_t id)
{
	(void)env;
	(void)class;
	record(HOOK_RECORD_ENTER, (uint32_t)id, __builtin_frame_address(0));
}

void java_leave(void *env, void *class, int32_t id)
{
	(void)env;
	(void)class;
	record(HOOK_RECORD_LEAVE, (uint32_t)id, __builtin_frame_address(0));
}
#endif
