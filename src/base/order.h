/* SPDX-License-Identifier: MIT */
/*
 * Orders for sorting. ORDER_BY(by_place, struct row, file, line) defines by_place() for qsort, which
 * compares two rows by their file, then by their line. Fields are numbers; up to eight. Where there
 * is more to it, the order of two numbers is -1, 0 or 1, and where the first pair is equal the next
 * one decides: ORDER(x->pid, y->pid) ?: strcmp(x->name, y->name).
 */
#ifndef WEIR_BASE_ORDER_H
#define WEIR_BASE_ORDER_H

#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

#define ORDER_BY(name, type, ...)                                                                  \
	static int name(const void *order_a, const void *order_b)                                  \
	{                                                                                          \
		const type *a = order_a, *b = order_b;                                             \
                                                                                                   \
		ORDER_PICK(__VA_ARGS__, ORDER_8, ORDER_7, ORDER_6, ORDER_5, ORDER_4, ORDER_3,      \
			ORDER_2, ORDER_1, )                                                        \
		(__VA_ARGS__)                                                                      \
		return 0;                                                                          \
	}

#define ORDER_PICK(f1, f2, f3, f4, f5, f6, f7, f8, which, ...) which
#define ORDER_1(f)                                                                                 \
	if (a->f != b->f)                                                                          \
		return a->f < b->f ? -1 : 1;
#define ORDER_2(f, ...) ORDER_1(f) ORDER_1(__VA_ARGS__)
#define ORDER_3(f, ...) ORDER_1(f) ORDER_2(__VA_ARGS__)
#define ORDER_4(f, ...) ORDER_1(f) ORDER_3(__VA_ARGS__)
#define ORDER_5(f, ...) ORDER_1(f) ORDER_4(__VA_ARGS__)
#define ORDER_6(f, ...) ORDER_1(f) ORDER_5(__VA_ARGS__)
#define ORDER_7(f, ...) ORDER_1(f) ORDER_6(__VA_ARGS__)
#define ORDER_8(f, ...) ORDER_1(f) ORDER_7(__VA_ARGS__)

#endif
