/* SPDX-License-Identifier: MIT */
/* Another library of one function, whose calls are counted by those who call it. */
#define FUNCTIONS(X) X(h_second)
#define HAZARD_OWN_MAIN
#include "hazard.h"

HOOKED long h_second(long n)
{
	CALLED(h_second);
	return n * 3 + hazard_zero;
}
