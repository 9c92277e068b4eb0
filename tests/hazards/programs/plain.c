/* SPDX-License-Identifier: MIT */
/* No hazard but the layout that its flags give it: calls, recursion, floating point. */
#define FUNCTIONS(X) X(h_leaf) X(h_middle) X(h_recursive) X(h_sixfold) X(h_top)
#include "hazard.h"

HOOKED long h_leaf(long n)
{
	CALLED(h_leaf);
	return n * 3 + hazard_zero;
}
HOOKED long h_middle(long n)
{
	CALLED(h_middle);
	return h_leaf(n) * 2 + h_leaf(n + 1);
}
HOOKED double h_sixfold(double a, double b, int c, int d, int e, int f)
{
	CALLED(h_sixfold);
	return a * b + c * d + e * f;
}
HOOKED long h_recursive(long depth)
{
	CALLED(h_recursive);
	depth = depth ? h_recursive(depth - 1) + 1 : h_leaf(0);
	AFTER_CALL();
	return depth;
}
HOOKED long h_top(int n)
{
	long sum = 0;

	CALLED(h_top);
	for (int i = 0; i < n; i++)
		sum += h_middle(i) + (long)h_sixfold(i, 2.5, 1, 2, 3, i) + h_recursive(i % 10);
	return sum;
}
static unsigned long hazard(int n)
{
	return (unsigned long)h_top(n * 10);
}
