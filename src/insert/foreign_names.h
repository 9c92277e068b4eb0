/* SPDX-License-Identifier: MIT */
/* What is known of functions by their names alone. */
#ifndef WEIR_INSERT_FOREIGN_NAMES_H
#define WEIR_INSERT_FOREIGN_NAMES_H

#include <stdbool.h>

/* setjmp and relatives: control may come back behind the call a second time. */
bool foreign_name_returns_twice(const char *name);
/* What stands behind the call is not executed as often as what stands before it: those that return twice, in
 * a child of fork too, and those whose signal a handler may leave by a jump. */
bool foreign_name_cuts(const char *name);
/* Does not return to the instruction behind the call (__morestack): its callers cannot be changed.
 */
bool foreign_name_skips_return(const char *name);
/* What compilers jump to or call instead of `jmp *%reg`, `call *%reg`, and instead of `ret`. */
bool foreign_name_is_jump_thunk(const char *name);
bool foreign_name_is_return_thunk(const char *name);
/* Must never be timed: functions that do not come back in the usual way, unwinding, TLS look-up. */
bool foreign_name_is_untimed(const char *name);
/* So short that timing would cost more than the function: string functions, malloc, mathematics. */
bool foreign_name_is_short(const char *name);
/* Enters the operating system and may wait there: read, poll, nanosleep, ... */
bool foreign_name_waits(const char *name);

/* Functions by which a program may give up system calls, or the clock, for good: the run-time
 * library has a gate of this name in front of such calls. NULL: it is none of them. */
const char *foreign_name_gate(const char *name);

#endif
