/* SPDX-License-Identifier: MIT */
/* A library of one function, whose calls are counted by those who call it. */
#define FUNCTIONS(X) X(h_plugin)
#define HAZARD_OWN_MAIN
#include "hazard.h"

HOOKED long h_plugin(long n)
{
	CALLED(h_plugin);
	return n * 3 + hazard_zero;
}
