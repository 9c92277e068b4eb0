/* SPDX-License-Identifier: MIT */
/*
 * Times blocks on this machine without a performance counter.
 *
 *   timing ROUNDS PAUSE_MS <blocks >cycles
 *
 * Blocks are lines of hexadecimal bytes, without branches. A block is repeated n times and 2n times
 * in a row; the difference of the two times is that of n blocks. Both stand in a loop that sets all
 * registers and waits for everything before and behind (lfence), so that one pass does not run into
 * the next. Wherever a block touches memory a page is put: each gets one of its own, and a block
 * that walks over more than PAGES is left out, so that all of it stays in the first cache. The unit
 * is an add that waits for the one before it: a cycle on every processor. Of each figure the least
 * of all rounds counts, because what others do on the machine only adds; the rounds are made in two
 * halves, and a block whose halves differ is left out (line "-"), as is one that faults for another
 * reason than a missing page.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include "arch/x86_code.h"
#include "base/mem.h"

#define CODE_AT	    0x2b5c0000u /* places that blocks hardly come upon by themselves */
#define STATE_AT    0x2b9d0000u
#define RIP_AT	    0x2c000000u /* what is relative to rip is here */
#define POINTER_AT  0x60000000u /* what memory holds: pointers to here */
#define CODE_BYTES  (512u << 10)
#define PAGES	    8
#define FAULTS_MAX  256
#define COPIES_OPS  260 /* instructions in a row, at least */
#define LOOPS	    48
#define RUNS	    4
#define BLOCK_BYTES 256
#define FAR_HALVES  0.04 /* halves of the rounds that differ by more: not repeatable */

struct result {
	uint64_t once[2], twice[2]; /* least ticks, by half of the rounds */
	bool is_bad;
};

struct block {
	uint8_t bytes[BLOCK_BYTES];
	size_t n;
	unsigned n_insns;
};

struct shared {
	volatile size_t current;
	struct result unit;
	struct result results[];
};

static struct shared *shared;
static sigjmp_buf failed;
static int pool;
static uint8_t *pool_view;
static unsigned n_pages;
static void *page_at[FAULTS_MAX];

static void on_fault(int sig, siginfo_t *info, void *context)
{
	uintptr_t at = (uintptr_t)info->si_addr & ~(uintptr_t)4095;

	(void)context;
	if (sig != SIGSEGV || info->si_code != SEGV_MAPERR || at < 4096 || n_pages == FAULTS_MAX)
		siglongjmp(failed, 1);
	if (mmap((void *)at, 4096, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_FIXED_NOREPLACE | MAP_POPULATE, pool,
		    (off_t)(n_pages % PAGES) * 4096) == MAP_FAILED)
		siglongjmp(failed, 1);
	page_at[n_pages++] = (void *)at;
}

static void fill_pages(void)
{
	uint64_t *words = (uint64_t *)pool_view;

	for (size_t i = 0; i < PAGES * 4096 / 8; i++)
		words[i] = POINTER_AT + (i * 64 & 0xfc0);
}

static uint8_t *put(uint8_t *to, const void *bytes, size_t n)
{
	memcpy(to, bytes, n);
	return to + n;
}

/* An instruction with an absolute address of 32 bits at its end. */
static uint8_t *put_absolute(uint8_t *to, const char *opcode, size_t n, uint32_t at)
{
	to = put(to, opcode, n);
	return put(to, &at, 4);
}

static uint8_t *put_registers(uint8_t *to)
{
	to = put(to, "\xc5\xf8\x77", 3); /* vzeroupper */
	for (unsigned r = 0; r < 16; r++) {
		/* movups at,%xmmN */
		uint8_t code[] = {0x44, 0x0f, 0x10, (uint8_t)(0x04 | (r & 7) << 3), 0x25};

		to = put_absolute(to, (const char *)code + (r < 8), r < 8 ? 4 : 5, STATE_AT + 256);
	}
	for (unsigned r = 0; r < 16; r++) { /* mov at,%reg */
		uint8_t code[] = {
			(uint8_t)(r < 8 ? 0x48 : 0x4c), 0x8b, (uint8_t)(0x04 | (r & 7) << 3), 0x25};

		to = put_absolute(to, (const char *)code, 4, STATE_AT + 8 * r);
	}
	return put(to, "\x0f\xae\xe8", 3); /* lfence */
}

static uint8_t *put_block(uint8_t *to, const struct block *b)
{
	struct x86_insn insn;

	for (size_t at = 0; at < b->n; at += insn.length) {
		uint8_t *start = to;

		if (!x86_decode(&insn, (struct span){b->bytes + at, b->n - at}, 0, true))
			return NULL;
		to = put(to, b->bytes + at, insn.length);
		if (insn.disp_at) { /* the same place for every copy */
			uint32_t place = RIP_AT + ((uint32_t)insn.disp_target & 0xfff);
			int32_t disp = (int32_t)(place - (uint32_t)(uintptr_t)to);

			memcpy(start + insn.disp_at, &disp, 4);
		}
	}
	return to;
}

typedef void (*code_fn)(void);

static code_fn build(uint8_t **next, const struct block *b, unsigned copies)
{
	uint8_t *to = (uint8_t *)(((uintptr_t)*next + 63) & ~(uintptr_t)63), *entry = to, *loop;
	int32_t back;

	to = put(to, "\x53\x55\x41\x54\x41\x55\x41\x56\x41\x57", 10);
	to = put_absolute(to, "\x48\x89\x24\x25", 4, STATE_AT + 512); /* mov %rsp,at */
	loop = to;
	to = put_registers(to);
	for (unsigned i = 0; i < copies; i++) {
		to = put_block(to, b);
		if (!to || to > (uint8_t *)(uintptr_t)(CODE_AT + CODE_BYTES - 1024))
			return NULL;
	}
	to = put(to, "\x0f\xae\xe8", 3);
	to = put_absolute(to, "\x48\xff\x0c\x25", 4, STATE_AT + 520); /* decq at */
	to = put(to, "\x0f\x85", 2);
	back = (int32_t)(loop - (to + 4));
	to = put(to, &back, 4);
	to = put_absolute(to, "\x48\x8b\x24\x25", 4, STATE_AT + 512);
	to = put(to, "\x41\x5f\x41\x5e\x41\x5d\x41\x5c\x5d\x5b\xfc\xc3", 12);
	*next = to;
	return (code_fn)(uintptr_t)entry;
}

static void set_state(void)
{
	uint64_t *state = (uint64_t *)(uintptr_t)STATE_AT;
	double *vector = (double *)(uintptr_t)(STATE_AT + 256);

	for (uint64_t r = 0; r < 16; r++)
		state[r] = 0x40000000 + r * 0x100000 + r * 0x140 % 0x1000;
	state[4] = 0x50000800;
	vector[0] = vector[1] = 1.5;
	state[520 / 8] = LOOPS;
}

static uint64_t run(code_fn code)
{
	unsigned aux;
	uint64_t start;

	set_state();
	fill_pages();
	_mm_lfence();
	start = __rdtscp(&aux);
	_mm_lfence();
	code();
	_mm_lfence();
	return __rdtscp(&aux) - start;
}

static void least(uint64_t *of, uint64_t ticks)
{
	if (!*of || ticks < *of)
		*of = ticks;
}

static bool time_block(const struct block *b, struct result *r, unsigned half)
{
	unsigned copies = COPIES_OPS / b->n_insns + 1, n_seen;
	uint8_t *next = (uint8_t *)(uintptr_t)CODE_AT;
	code_fn once = build(&next, b, copies), twice = once ? build(&next, b, 2 * copies) : NULL;

	if (!twice)
		return false;
	n_pages = 0;
	if (sigsetjmp(failed, 1)) {
		for (unsigned i = 0; i < n_pages; i++)
			munmap(page_at[i], 4096);
		return false;
	}
	do { /* until it runs through without a fault */
		n_seen = n_pages;
		run(twice);
		run(once);
	} while (n_pages != n_seen);
	if (n_pages > PAGES)
		siglongjmp(failed, 1);
	for (unsigned i = 0; i < RUNS; i++) {
		least(&r->once[half], run(once));
		least(&r->twice[half], run(twice));
	}
	for (unsigned i = 0; i < n_pages; i++)
		munmap(page_at[i], 4096);
	return true;
}

static void round_of(const struct block *blocks, size_t n, unsigned half)
{
	static const struct block unit = {{0x48, 0x01, 0xd8}, 3, 1}; /* add %rbx,%rax */

	for (size_t i = shared->current; i < n; i++) {
		shared->current = i;
		if (i % 32 == 0)
			time_block(&unit, &shared->unit, half);
		if (!shared->results[i].is_bad &&
			!time_block(&blocks[i], &shared->results[i], half))
			shared->results[i].is_bad = true;
	}
	shared->current = n;
}

/* A round in a process of its own; a block that ends it is bad, and the round goes on behind it. */
static void run_round(const struct block *blocks, size_t n, unsigned half)
{
	shared->current = 0;
	while (shared->current < n) {
		pid_t pid = fork();
		int status;

		if (!pid) {
			alarm(60);
			round_of(blocks, n, half);
			_exit(0);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid)
			exit(1);
		if (!WIFEXITED(status) || WEXITSTATUS(status)) {
			shared->results[shared->current].is_bad = true;
			shared->current++;
		}
	}
}

static void set_up(size_t n)
{
	static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	stack_t stack = {.ss_sp = mem_alloc(1 << 16), .ss_size = 1 << 16};

	sigaltstack(&stack, NULL);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &action, NULL);
	pool = memfd_create("pages", 0);
	if (pool < 0 || ftruncate(pool, PAGES * 4096))
		exit(1);
	pool_view = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, pool, 0);
	shared = mmap(NULL, sizeof(*shared) + n * sizeof(struct result), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (mmap((void *)(uintptr_t)CODE_AT, CODE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED ||
		mmap((void *)(uintptr_t)STATE_AT, 4096, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED ||
		pool_view == MAP_FAILED || shared == MAP_FAILED)
		exit(1);
	_mm_setcsr(_mm_getcsr() | 0x8040); /* denormal numbers are zero */
}

static double ticks_of(const struct result *r, unsigned n_insns, unsigned half)
{
	return ((double)r->twice[half] - (double)r->once[half]) /
	       (double)((COPIES_OPS / n_insns + 1) * LOOPS);
}

static void print(const struct block *blocks, size_t n)
{
	double unit[2] = {ticks_of(&shared->unit, 1, 0), ticks_of(&shared->unit, 1, 1)};
	double tick = unit[0] < unit[1] ? unit[0] : unit[1];

	fprintf(stderr, "timing: %.4f and %.4f ticks a cycle\n", unit[0], unit[1]);
	for (size_t i = 0; i < n; i++) {
		const struct result *r = &shared->results[i];
		struct result all = *r;
		double a = ticks_of(r, blocks[i].n_insns, 0), b = ticks_of(r, blocks[i].n_insns, 1);

		least(&all.once[0], r->once[1]);
		least(&all.twice[0], r->twice[1]);
		if (r->is_bad || a <= 0 || b <= 0 ||
			(a > b ? a - b : b - a) > FAR_HALVES * a + 0.03)
			puts("-");
		else
			printf("%.3f\n", ticks_of(&all, blocks[i].n_insns, 0) / tick);
	}
}

static bool parse(struct block *b, const char *hex)
{
	struct x86_insn insn;
	unsigned byte;

	*b = (struct block){.n = 0};
	for (; b->n < BLOCK_BYTES && sscanf(hex, "%2x", &byte) == 1; hex += 2)
		b->bytes[b->n++] = (uint8_t)byte;
	for (size_t at = 0; at < b->n; at += insn.length, b->n_insns++)
		if (!x86_decode(&insn, (struct span){b->bytes + at, b->n - at}, 0, true))
			return false;
	return b->n_insns > 0;
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 40;
	unsigned pause_ms = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 1000;
	VEC(struct block) blocks = {0};
	size_t cap = 0;
	char *line = NULL;

	while (getline(&line, &cap, stdin) > 0) {
		struct block b;

		if (!parse(&b, line)) {
			fprintf(stderr, "timing: not a block: %s", line);
			return 1;
		}
		vec_push(&blocks, b);
	}
	set_up(blocks.n);
	for (unsigned i = 0; i < rounds; i++) {
		run_round(blocks.v, blocks.n, i & 1);
		usleep(pause_ms * 1000);
	}
	print(blocks.v, blocks.n);
	vec_release(&blocks);
	free(line);
	return 0;
}
