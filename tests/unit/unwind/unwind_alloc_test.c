/* SPDX-License-Identifier: MIT */
/* A walk happens for every sample: it must not allocate. Counts calls of the C library's malloc. */
#include "check.h"
#include "unwind_world.h"

#ifndef __SANITIZE_ADDRESS__
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t each);
void *__libc_realloc(void *p, size_t n);

static size_t n_allocations;
#define N_COUNTED(n) (n)

void *malloc(size_t n)
{
	n_allocations++;
	return __libc_malloc(n);
}

void *calloc(size_t n, size_t each)
{
	n_allocations++;
	return __libc_calloc(n, each);
}

void *realloc(void *p, size_t n)
{
	n_allocations++;
	return __libc_realloc(p, n);
}
#else
static size_t n_allocations; /* the sanitizer has its own malloc; the other build counts */
#define N_COUNTED(n) 0
#endif

static void walk_does_not_allocate(void)
{
	static struct world w;
	size_t before;

	world_init(&w, true);
	for (int i = 0; i < 40; i++)
		world_push(&w, F_LEAF + 1 + (unsigned)i);
	world_push(&w, F_BARE + 1);
	before = n_allocations;
	/* The world itself makes one copy of the stack a walk. */
	for (uint64_t i = 0; i < 10; i++) {
		w.generation = i;
		world_walk(&w, F_LEAF + 1);
	}
	CHECK_EQ(w.n_frames, 42);
	CHECK_EQ(n_allocations - before, N_COUNTED(10));
	world_release(&w);
}

static const struct test tests[] = {
	{"a walk allocates nothing", walk_does_not_allocate},
};

int main(void)
{
	return RUN_TESTS(tests);
}
