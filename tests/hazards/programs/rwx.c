/* SPDX-License-Identifier: MIT */
/* Makes its own code writable, as programs with tables of code do, and writes there; so it must stay. */
#define FUNCTIONS(X) X(h_leaf) X(h_work)
#include "hazard.h"
#include <sys/mman.h>

/* Code that the program changes itself: mov $0, %eax; ret. */
__asm__(".text\n.type changed, @function\nchanged:\n.byte 0xb8, 0, 0, 0, 0, 0xc3\n.size changed, 6\n");
extern char changed[] __attribute__((visibility("hidden")));

HOOKED long h_leaf(long n)
{
	CALLED(h_leaf);
	return n * 3 + hazard_zero;
}
HOOKED long h_work(long n)
{
	CALLED(h_work);
	return h_leaf(n) + h_leaf(n + 1);
}

static unsigned long hazard(int n)
{
	static int is_open;
	unsigned long sum = 0;
	unsigned long page = (unsigned long)changed & ~4095ul;

	/* Two pages before and behind, too: all of this small program's code. */
	for (unsigned long p = page - 8192; !is_open && p <= page + 8192; p += 4096)
		if (p <= (unsigned long)h_leaf + 4095 && p + 8192 > (unsigned long)h_leaf)
			mprotect((void *)p, 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
	is_open = 1;
	for (int i = 0; i < n * 10; i++) {
		changed[1] = (char)(i & 63);
		sum += (unsigned long)(h_work(i) + ((int (*)(void))(void *)changed)());
	}
	changed[1] = 0;
	return sum;
}
