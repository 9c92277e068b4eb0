/* SPDX-License-Identifier: MIT */
/* For comparison functions: the order of two numbers is -1, 0 or 1. Where the first pair is equal
 * the next one decides: ORDER(x->pid, y->pid) ?: ORDER(x->tid, y->tid). */
#ifndef WEIR_BASE_ORDER_H
#define WEIR_BASE_ORDER_H

#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

#endif
