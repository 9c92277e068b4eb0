/* SPDX-License-Identifier: MIT */
/*
 * V8 (node, Chromium) walks its stacks itself, to collect garbage and to throw, and looks up each return
 * address it finds. It has an interface for those who replace them: a function that is given the
 * place of a return address and says where the true one is.
 */
#include "hook.h"

#define TAIL_CALLS_MAX 4096 /* each leads to the one before */

static uintptr_t true_location(uintptr_t at)
{
	for (int i = 0; i < TAIL_CALLS_MAX; i++) {
		uintptr_t address = *(const volatile uintptr_t *)at;

		if (!is_in_region(address))
			break;
		at = (uintptr_t)&entry_of_slot(address)->ret;
	}
	return at;
}

/* It stays told when the recording ends: calls that are open then return later. */
enum hook_refusal own_tell(enum hook_own own, uintptr_t function)
{
	if (own == HOOK_OWN_RETURN_LOCATION)
		((void (*)(uintptr_t(*)(uintptr_t)))function)(true_location);
#ifdef __x86_64__
	else if (own == HOOK_OWN_FIND_JVMS)
		java_tell_jvms(function);
	else if (own >= HOOK_OWN_VM_STRUCTS && own <= HOOK_OWN_VM_OFFSET)
		java_tell_table(own, function);
#endif
	return HOOK_REFUSAL_NONE;
}
