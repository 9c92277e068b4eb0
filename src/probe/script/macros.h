/* SPDX-License-Identifier: MIT */
/*
 * Macros and functions of a script: their bodies are put where they are used, before anything is checked.
 *
 *   macro add(x, $to) { let $y = x; $to += $y; $y }    add(pid, $n)  ->  { let $y#1 = pid; $n += $y#1; $y#1 }
 *   fn twice($x : int64) : int64 { return $x * 2; }    twice(pid)    ->  { let $x#2 : int64 = pid;
 *                                                                          let $return#2 : int64; ...; $return#2 }
 *
 * 1. A macro sees its parameters and variables of its own, which get other names at each use; no map that is not
 *    handed over, and no variable of who uses it.
 * 2. What is handed over belongs to the one who hands it over: its macros are put in first, its variables are his.
 * 3. A function has copies of its arguments; `return` leaves it and gives its value.
 * 4. Nothing uses itself, so this ends; how much it may become is limited.
 */
#ifndef WEIR_PROBE_SCRIPT_MACROS_H
#define WEIR_PROBE_SCRIPT_MACROS_H

#include "probe/script/ast.h"

/* Whether the language has a name, or a function of that name, of its own. */
typedef bool language_has_fn(const char *name, bool is_function);

void macros_expand(struct script *s, language_has_fn *has, struct diags *diags);

#endif
