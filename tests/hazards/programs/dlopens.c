/* SPDX-License-Identifier: MIT */
/* Opens and closes a library again and again, or, with LINKED, has two of them from the start. */
#ifdef LINKED
#define FUNCTIONS(X) X(h_leaf) X(h_plugin) X(h_second)
#else
#define FUNCTIONS(X) X(h_leaf) X(h_plugin)
#endif
#include "hazard.h"
#include <dlfcn.h>

HOOKED long h_leaf(long n)
{
	CALLED(h_leaf);
	return n * 3 + hazard_zero;
}
#ifdef LINKED
extern long h_plugin(long n);
extern long h_second(long n);
#endif

static unsigned long hazard(int n)
{
	unsigned long sum = 0;

	for (int i = 0; i < n; i++) {
		long (*plugin)(long);
#ifdef LINKED
		plugin = h_plugin;
		calls_n[CALLS_h_second]++;
		sum += (unsigned long)h_second(i);
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
