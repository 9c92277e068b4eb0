/* SPDX-License-Identifier: MIT */
/* Makes its own code writable, as programs with tables of code do, and writes there; so it must
 * stay. */
#define FUNCTIONS(X) X(h_leaf) X(h_work)
#include "hazard.h"
#include <sys/mman.h>

/* Code that the program changes itself: mov $0, %eax; ret. */
__asm__(".section .text.changed, \"ax\"\n.type changed, @function\nchanged:\n.byte 0xb8, 0, 0, 0, 0, 0xc3\n"
	".size changed, 6\n.previous\n");
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

static void open_pages(const void *code)
{
	mprotect((void *)((unsigned long)code & ~4095ul), 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
}

static unsigned long hazard(int n)
{
	static int is_open;
	unsigned long sum = 0;

	if (!is_open++) {
		open_pages(changed);
		open_pages((const void *)h_leaf);
		open_pages((const void *)h_work);
	}
	for (int i = 0; i < n * 10; i++) {
		changed[1] = (char)(i & 63);
		sum += (unsigned long)(h_work(i) + ((int (*)(void))(void *)changed)());
	}
	changed[1] = 0;
	return sum;
}
