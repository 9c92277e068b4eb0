/* SPDX-License-Identifier: MIT */
/*
 * Coroutines that leave in the middle of hooked functions. HAND_MADE: a switch of the stack
 * pointer, else ucontext. ON_LOCAL: their stacks are local arrays of a thread, else on the heap;
 * STACK_BYTES of each.
 */
#define FUNCTIONS(X) X(h_leaf) X(h_yields) X(h_body) X(h_top)
#define HAZARD_THREADS
#include "hazard.h"
#include <pthread.h>
#include <ucontext.h>

enum { N_COROUTINES = 8 };

struct coroutine {
#ifdef HAND_MADE
	void *sp;
#else
	ucontext_t context;
#endif
	long value;
};

static struct coroutine all[N_COROUTINES], scheduler;
static int current;

#ifdef HAND_MADE
void stack_switch(void **save, void *to);
#ifdef __x86_64__
__asm__(".text\n.type stack_switch, @function\nstack_switch:\n"
	"push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
	"mov %rsp, (%rdi)\nmov %rsi, %rsp\n"
	"pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n"
	".size stack_switch, . - stack_switch\n");
enum { N_SAVED = 6 };
#else
__asm__(".text\n.type stack_switch, @function\nstack_switch:\n"
	"mov 4(%esp), %eax\nmov 8(%esp), %edx\n"
	"push %ebp\npush %ebx\npush %esi\npush %edi\n"
	"mov %esp, (%eax)\nmov %edx, %esp\n"
	"pop %edi\npop %esi\npop %ebx\npop %ebp\nret\n"
	".size stack_switch, . - stack_switch\n");
enum { N_SAVED = 4 };
#endif
#endif

static void go(struct coroutine *from, struct coroutine *to)
{
#ifdef HAND_MADE
	stack_switch(&from->sp, to->sp);
#else
	swapcontext(&from->context, &to->context);
#endif
}

HOOKED long h_leaf(long n)
{
	CALLED(h_leaf);
	return n * 3 + hazard_zero;
}
HOOKED void h_yields(long value)
{
	CALLED(h_yields);
	all[current].value += h_leaf(value);
	go(&all[current], &scheduler);
	AFTER_CALL();
}
HOOKED void h_body(void)
{
	CALLED(h_body);
	for (long i = 0;; i++)
		h_yields(i);
}

static void coroutine_init(struct coroutine *c, char *stack)
{
	c->value = 0;
#ifdef HAND_MADE
	void **sp = (void **)(((unsigned long)stack + STACK_BYTES) & ~15ul);

	*--sp = NULL;
	*--sp = NULL; /* where it would return to: never */
	*--sp = (void *)h_body;
	sp -= N_SAVED;
	memset(sp, 0, N_SAVED * sizeof(*sp));
	c->sp = sp;
#else
	getcontext(&c->context);
	c->context.uc_stack.ss_sp = stack;
	c->context.uc_stack.ss_size = STACK_BYTES;
	c->context.uc_link = NULL;
	makecontext(&c->context, h_body, 0);
#endif
}

HOOKED long h_top(int n)
{
	long sum = 0;
	char *heap = NULL;
#ifdef ON_LOCAL
	char stacks[N_COROUTINES * STACK_BYTES] __attribute__((aligned(16)));
#else
	char *stacks = heap = (char *)aligned_alloc(16, N_COROUTINES * STACK_BYTES);
#endif

	CALLED(h_top);
	for (int i = 0; i < N_COROUTINES; i++)
		coroutine_init(&all[i], stacks + i * STACK_BYTES);
	for (int i = 0; i < n * 20; i++) {
		current = i % N_COROUTINES;
		go(&scheduler, &all[current]);
	}
	for (int i = 0; i < N_COROUTINES; i++)
		sum += all[i].value;
	free(heap);
	return sum;
}

static void *thread(void *arg)
{
	TICKS_HERE();
	*(long *)arg = h_top((int)*(long *)arg);
	return NULL;
}

static unsigned long hazard(int n)
{
	long value = n;
	pthread_t t;

	if (pthread_create(&t, NULL, thread, &value))
		return 1;
	pthread_join(t, NULL);
	return (unsigned long)value;
}
