/* SPDX-License-Identifier: MIT */
/* Opens and closes a library again and again, or, with LINKED, has it from the start. */
#define FUNCTIONS(X) X(h_leaf) X(h_plugin)
#include "hazard.h"
#include <dlfcn.h>

HOOKED long h_leaf(long n)
{
	CALLED(h_leaf);
	return n * 3 + hazard_zero;
}
#ifdef LINKED
extern long h_plugin(long n);
#endif

static unsigned long hazard(int n)
{
	unsigned long sum = 0;

	for (int i = 0; i < n; i++) {
		long (*plugin)(long);
#ifdef LINKED
		plugin = h_plugin;
#else
		void *library = dlopen("./plugin.so", RTLD_NOW);

		if (!library)
			return 1;
		plugin = (long (*)(long))dlsym(library, "h_plugin");
#endif
		for (int k = 0; k < 20; k++) {
			calls_n[CALLS_h_plugin]++;
			sum += (unsigned long)(plugin(k) + h_leaf(k));
		}
#ifndef LINKED
		dlclose(library);
#endif
	}
	return sum;
}
