/* SPDX-License-Identifier: MIT */
/*
 * A program whose stacks have every shape that an unwinder meets: deep recursion, callbacks through
 * the C library, frames realigned for vectors, alloca, calls that do not return, signal handlers on
 * the same and on another stack, coroutines, threads, and (compiled as C++) exceptions.
 *
 * Compiles as C++ and, with -x c, as C. Runs until it is killed.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>

#ifdef __cplusplus
#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>
#endif

#define NOINLINE __attribute__((noinline))
#define STACK_BYTES (256 * 1024)

typedef float vector __attribute__((vector_size(32)));

static volatile unsigned sink;

static NOINLINE unsigned spin(unsigned n)
{
	unsigned x = n;

	for (unsigned i = 0; i < n; i++)
		x = x * 1664525u + 1013904223u + (x >> 7);
	sink += x;
	return x;
}

static NOINLINE unsigned recurse(unsigned depth, unsigned seed)
{
	unsigned local[4] = {seed, depth, seed ^ depth, 1};

	if (!depth)
		return spin(200 + seed % 50);
	return recurse(depth - 1, local[seed % 4] + 3) + local[depth % 4] + spin(3);
}

/* A frame that is aligned to more than the ABI does: the CFA becomes an expression. */
static NOINLINE unsigned realigned(unsigned n, const char *format, ...)
{
	vector v[8] __attribute__((aligned(64)));
	char *room = (char *)__builtin_alloca(n % 100 + 16);

	memset(room, (int)n, n % 100 + 16);
	for (unsigned i = 0; i < 8; i++)
		for (unsigned j = 0; j < 8; j++)
			v[i][j] = (float)(n + i * j + (unsigned char)room[i]);
	sink += spin(n % 300) + strlen(format);
	return (unsigned)v[n % 8][n % 8];
}

static int compare(const void *a, const void *b)
{
	const unsigned *x = (const unsigned *)a, *y = (const unsigned *)b;

	sink += spin(20);
	return (*x > *y) - (*x < *y);
}

static NOINLINE unsigned callbacks(void)
{
	unsigned v[64];

	for (unsigned i = 0; i < 64; i++)
		v[i] = spin(i);
	qsort(v, 64, sizeof(v[0]), compare);
	return v[7];
}

static __thread jmp_buf back;

static NOINLINE __attribute__((noreturn)) void leave(unsigned n)
{
	sink += spin(n);
	longjmp(back, 1);
}

/* Its last instruction is a call that never returns. */
static NOINLINE __attribute__((noreturn)) void leave_deeper(unsigned n)
{
	sink += recurse(n % 7, n);
	leave(n % 200);
}

static void on_signal(int signal, siginfo_t *info, void *context)
{
	(void)info;
	(void)context;
	sink += recurse(5, (unsigned)signal) + spin(3000);
}

static __thread ucontext_t main_context, coroutine_context;
static __thread char coroutine_stack[64 * 1024];

static void coroutine(void)
{
	for (unsigned i = 0;; i++) {
		sink += recurse(i % 9, i);
		swapcontext(&coroutine_context, &main_context);
	}
}

static void coroutine_start(void)
{
	getcontext(&coroutine_context);
	coroutine_context.uc_stack.ss_sp = coroutine_stack;
	coroutine_context.uc_stack.ss_size = sizeof(coroutine_stack);
	coroutine_context.uc_link = &main_context;
	makecontext(&coroutine_context, coroutine, 0);
}

#ifdef __cplusplus
struct Guard {
	unsigned n;
	explicit Guard(unsigned v) : n(v) {}
	~Guard() { sink += spin(n % 100); }
};

static NOINLINE unsigned throw_deep(unsigned depth)
{
	Guard guard(depth);

	if (!depth)
		throw std::runtime_error("bottom");
	return throw_deep(depth - 1) + spin(depth);
}

static NOINLINE unsigned exceptions(unsigned n)
{
	std::map<std::string, unsigned> seen;
	std::vector<unsigned> v;

	for (unsigned i = 0; i < 50; i++) {
		seen[std::to_string(spin(i) % 100)]++;
		v.push_back(spin(i + n));
	}
	std::sort(v.begin(), v.end(), [](unsigned a, unsigned b) { return spin(5) ? a < b : b < a; });
	try {
		return throw_deep(n % 12);
	} catch (const std::exception &e) {
		return (unsigned)(strlen(e.what()) + seen.size()) + v[3];
	}
}
#else
static NOINLINE unsigned exceptions(unsigned n)
{
	return spin(n % 1000);
}
#endif

static void *work(void *arg)
{
	unsigned n = (unsigned)(size_t)arg;

	coroutine_start();
	for (;; n++) {
		sink += recurse(n % 60, n) + realigned(n, "%d", 1) + callbacks() + exceptions(n);
		if (!setjmp(back))
			leave_deeper(n);
		swapcontext(&main_context, &coroutine_context);
		if (n % 16 == 0)
			raise(SIGUSR1);
	}
	return NULL;
}

int main(void)
{
	stack_t other;
	struct sigaction action;
	struct itimerval every = {{0, 3000}, {0, 3000}};
	pthread_t thread;

	pthread_create(&thread, NULL, work, (void *)1);
	memset(&other, 0, sizeof(other));
	other.ss_sp = malloc(STACK_BYTES);
	other.ss_size = STACK_BYTES;
	sigaltstack(&other, NULL);
	memset(&action, 0, sizeof(action));
	action.sa_sigaction = on_signal;
	action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
	sigaction(SIGPROF, &action, NULL);
	action.sa_flags = SA_RESTART; /* the old kind of frame on i386 */
	sigaction(SIGUSR1, &action, NULL);
	setitimer(ITIMER_PROF, &every, NULL);
	work((void *)2);
	return 0;
}
