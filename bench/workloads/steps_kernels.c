/* SPDX-License-Identifier: MIT */
/*
 * Work for tracers of instructions: no library and no vector instructions, so that every tracer can
 * follow all of it, from the first instruction to the last, and all of them see the same ones.
 *
 *   steps_kernels loop|branchy ROUNDS     rounds of one kernel
 *   steps_kernels outside CALLS           calls of traced_part() with much work in between
 *
 * Prints "spent NS rest NS sum N". Spent is the time of all rounds, or in all calls, by the
 * program's own clock, which it reads by a system call; rest is the shortest time between two
 * calls.
 */
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>

#define OUTSIDE_ROUNDS 3000 /* of work between two calls */

static uint8_t text[512], packed[2 * sizeof(text)];
static uint32_t words[512], heads[256], seed = 1;

static long call_kernel(long number, long a, const void *b, long c)
{
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
	return result;
}

static uint64_t now(void)
{
	struct timespec t = {0};

	call_kernel(SYS_clock_gettime, CLOCK_MONOTONIC, &t, 0);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint32_t next(void)
{
	return (seed = seed * 1664525 + 1013904223) >> 8;
}

/* Few branches, all of the same kind. */
__attribute__((noinline)) static uint32_t loop(void)
{
	uint32_t a = 1, b = 0;

	for (int pass = 0; pass < 4; pass++)
		for (uint32_t i = 0; i < 512; i++) {
			words[i] = words[i] * 2654435761u + i;
			a += words[i] ^ (a >> 3);
			b += a;
		}
	return a ^ b;
}

static void fill(void)
{
	for (uint32_t i = 0; i < sizeof(text); i++)
		text[i] = next() & 7 ? (uint8_t)("the next step "[i % 14]) : (uint8_t)next();
}

static uint32_t match(uint32_t a, uint32_t b)
{
	uint32_t n = 0;

	while (b + n < sizeof(text) && n < 255 && text[a + n] == text[b + n])
		n++;
	return n;
}

static uint32_t pack(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < 256; i++)
		heads[i] = 0;
	for (uint32_t i = 0; i + 4 < sizeof(text);) {
		uint32_t key = (text[i] * 31u + text[i + 1] * 7u + text[i + 2]) & 255;
		uint32_t at = heads[key], length = at ? match(at, i) : 0;

		heads[key] = i;
		if (length > 3) {
			packed[n++] = (uint8_t)length;
			packed[n++] = (uint8_t)(i - at);
			i += length;
		} else {
			packed[n++] = text[i++];
		}
	}
	return n;
}

static void sort(uint32_t *v, int low, int high)
{
	uint32_t middle = v[(low + high) / 2];
	int i = low, j = high;

	while (i <= j) {
		while (v[i] < middle)
			i++;
		while (v[j] > middle)
			j--;
		if (i <= j) {
			uint32_t t = v[i];
			v[i++] = v[j];
			v[j--] = t;
		}
	}
	if (low < j)
		sort(v, low, j);
	if (i < high)
		sort(v, i, high);
}

/* Compression and sorting: calls, and branches that no one can foretell. */
__attribute__((noinline)) static uint32_t branchy(void)
{
	seed = 1; /* each round is the same */
	fill();
	for (int i = 0; i < 128; i++)
		words[i] = next();
	sort(words, 0, 127);
	return pack() + words[5];
}

__attribute__((noinline)) uint32_t traced_part(uint32_t n);
uint32_t traced_part(uint32_t n)
{
	for (int i = 0; i < 10; i++)
		n = n * 31 + (n >> 7);
	return n;
}

static int put_number(char *to, uint64_t n)
{
	char digits[24];
	int count = 0;

	do
		digits[count++] = (char)('0' + n % 10);
	while (n /= 10);
	for (int i = 0; i < count; i++)
		to[i] = digits[count - 1 - i];
	return count;
}

static int put_text(char *to, const char *from)
{
	int n = 0;

	for (; from[n]; n++)
		to[n] = from[n];
	return n;
}

static void print(uint64_t spent, uint64_t rest, uint64_t sum)
{
	char line[128];
	int n = put_text(line, "spent ");

	n += put_number(line + n, spent);
	n += put_text(line + n, " rest ");
	n += put_number(line + n, rest);
	n += put_text(line + n, " sum ");
	n += put_number(line + n, sum);
	line[n++] = '\n';
	call_kernel(SYS_write, 1, line, n);
}

static void run(const char *kernel, uint64_t rounds)
{
	uint64_t start = now(), spent = 0, rest = UINT64_MAX, sum = 0;

	for (uint64_t i = 0; i < rounds; i++) {
		uint64_t before;

		if (kernel[0] != 'o') {
			sum += kernel[0] == 'l' ? loop() : branchy();
			continue;
		}
		for (int j = 0; j < OUTSIDE_ROUNDS; j++)
			sum += loop();
		before = now();
		if (before - start < rest)
			rest = before - start;
		sum += traced_part((uint32_t)i);
		start = now();
		spent += start - before;
	}
	if (kernel[0] != 'o') {
		spent = now() - start;
		rest = 0;
	}
	print(spent, rest, sum);
}

__attribute__((used)) _Noreturn void begin(long *stack);
_Noreturn void begin(long *stack)
{
	char **argv = (char **)(stack + 1);
	uint64_t rounds = 0;

	if (stack[0] != 3)
		call_kernel(SYS_exit_group, 2, 0, 0);
	for (const char *s = argv[2]; *s >= '0' && *s <= '9'; s++)
		rounds = rounds * 10 + (uint64_t)(*s - '0');
	run(argv[1], rounds);
	call_kernel(SYS_exit_group, 0, 0, 0);
	__builtin_unreachable();
}

__asm__(".globl _start\n"
	".type _start, @function\n"
	"_start:\n"
	"	mov %rsp, %rdi\n"
	"	and $-16, %rsp\n"
	"	call begin\n"
	".size _start, . - _start\n");
