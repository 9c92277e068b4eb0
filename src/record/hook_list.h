/* SPDX-License-Identifier: MIT */
/*
 * The list of `--kinds`: which kinds of record are made, by name or by the records' codes
 * (docs/format/records.md).
 */
#ifndef WEIR_RECORD_HOOK_LIST_H
#define WEIR_RECORD_HOOK_LIST_H

#include <stdint.h>

#include "base/err.h"

enum hook {
	HOOK_METHOD = 1 << 0,	 /* entry and exit of chosen functions */
	HOOK_STACK = 1 << 1,	 /* samples */
	HOOK_STACK_AT = 1 << 2,	 /* the stack at chosen functions */
	HOOK_SWITCH = 1 << 3,	 /* threads leave and enter CPUs */
	HOOK_SYSCALL = 1 << 4,	 /* system calls */
	HOOK_FAULT = 1 << 5,	 /* page faults */
	HOOK_ALLOC = 1 << 6,	 /* allocated bytes */
	HOOK_INTERRUPT = 1 << 7, /* interrupts */
	HOOK_MODULE = 1 << 8,	 /* modules loaded and unloaded */
	HOOK_BYTECODE = 1 << 9,	 /* executed by Java methods */
	HOOK_HEAP = 1 << 10	 /* allocated by Java methods */
};

/* What a list of changes begins with, and what there is without any list: switches cost a program that
 * waits often more than all the rest, and samples of its running do not need them. */
#define HOOKS_DEFAULT  (HOOK_STACK | HOOK_SWITCH | HOOK_MODULE)
#define HOOKS_SAMPLING (HOOK_STACK | HOOK_MODULE)

/*
 * A comma list of items. "NAME" or "MAJOR[/MINOR]" switches one on, and the list then stands for
 * itself; "+NAME" switches one on in addition to the defaults, "-NAME" or "no-NAME" one off. Items
 * apply from left to right. *hooks is a sum of enum hook; `option` is the name that messages have.
 */
int hook_list_parse(const char *option, const char *list, uint32_t *hooks, struct err *err);

#endif
