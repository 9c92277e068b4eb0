/* SPDX-License-Identifier: MIT */
#include "unwind/step.h"

#include <stdlib.h>

#include "base/buf.h"
#include "check.h"

#define STACK_ADDR 0x7000u

struct bytes {
	uint8_t n, b[24];
};
#define E(...)                                                                                     \
	{                                                                                          \
		sizeof((uint8_t[]){__VA_ARGS__}),                                                  \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}

static bool run_bytes(
	struct span expr, bool is_64, const uint64_t *cfa, uint64_t *result, bool *short_of_memory)
{
	static const uint64_t stack[] = {0x1122334455667788u, 0x8000, 3};
	struct unwind_memory memory = {
		.start = {STACK_ADDR}, .bytes = {(const uint8_t *)stack, sizeof(stack)}};
	struct stack_reader reader = {.memory = &memory,
		.mask = is_64 ? UINT64_MAX : UINT32_MAX,
		.word_bytes = is_64 ? 8 : 4};
	struct cpu_regs regs = {.is_64 = is_64};
	uint8_t *copy = malloc(expr.n ? expr.n : 1);
	bool done;

	memcpy(copy, expr.p, expr.n);
	regs.r[CPU_REG_RSP] = STACK_ADDR;
	regs.r[CPU_REG_RIP] = 0x401007;
	regs.r[CPU_REG_RDX] = 0xd0;
	regs.r[CPU_REG_RCX] = 0xc0;
	regs.known = 1u << CPU_REG_RSP | 1u << CPU_REG_RIP | 1u << CPU_REG_RDX | 1u << CPU_REG_RCX;
	done = cfi_expr_run((struct span){copy, expr.n}, &regs, &reader, cfa, result);
	if (short_of_memory)
		*short_of_memory = reader.failed;
	free(copy);
	return done;
}

static void results(void)
{
	static const struct {
		struct bytes expr;
		uint64_t result;
	} cases[] = {
		{E(0x35), 5},				       /* lit5 */
		{E(0x08, 0xfe), 0xfe},			       /* const1u */
		{E(0x09, 0xfe), -2ull},			       /* const1s */
		{E(0x0a, 0xfe, 0xff), 0xfffe},		       /* const2u */
		{E(0x0b, 0xfe, 0xff), -2ull},		       /* const2s */
		{E(0x0c, 0xfe, 0xff, 0xff, 0xff), 0xfffffffe}, /* const4u */
		{E(0x0d, 0xfe, 0xff, 0xff, 0xff), -2ull},      /* const4s */
		{E(0x0e, 1, 2, 3, 4, 5, 6, 7, 8), 0x0807060504030201u},
		{E(0x10, 0x81, 0x02), 257}, /* constu */
		{E(0x11, 0x7e), -2ull},	    /* consts */
		{E(0x77, 0x10), STACK_ADDR + 16},
		{E(0x77, 0x78), STACK_ADDR - 8},
		{E(0x71, 0), 0xd0},		 /* breg1 is rdx */
		{E(0x92, 7, 8), STACK_ADDR + 8}, /* bregx */
		{E(0x77, 0, 0x06), 0x1122334455667788u},
		{E(0x77, 0, 0x94, 1), 0x88},
		{E(0x77, 0, 0x94, 2), 0x7788},
		{E(0x77, 0, 0x94, 4), 0x55667788},
		{E(0x77, 0, 0x94, 8), 0x1122334455667788u},
		{E(0x33, 0x34, 0x22), 7},	    /* plus */
		{E(0x33, 0x34, 0x1c), -1ull},	    /* minus */
		{E(0x33, 0x34, 0x1e), 12},	    /* mul */
		{E(0x37, 0x09, 0xfe, 0x1b), -3ull}, /* 7 / -2 */
		{E(0x37, 0x09, 0xff, 0x1b), -7ull}, /* 7 / -1 */
		{E(0x37, 0x33, 0x1d), 1},	    /* mod */
		{E(0x3c, 0x36, 0x1a), 4},	    /* 12 & 6 */
		{E(0x3c, 0x36, 0x21), 14},
		{E(0x3c, 0x36, 0x27), 10},
		{E(0x33, 0x34, 0x24), 48},	    /* 3 << 4 */
		{E(0x33, 0x08, 64, 0x24), 0},	    /* 3 << 64 */
		{E(0x4f, 0x32, 0x25), 7},	    /* 31 >> 2 */
		{E(0x09, 0xf8, 0x31, 0x26), -4ull}, /* -8 >>a 1 */
		{E(0x09, 0xf8, 0x08, 200, 0x26), -1ull},
		{E(0x35, 0x1f), -5ull},			  /* neg */
		{E(0x09, 0xfb, 0x19), 5},		  /* abs */
		{E(0x30, 0x20), UINT64_MAX},		  /* not */
		{E(0x35, 0x23, 0x80, 0x01), 133},	  /* plus_uconst 128 */
		{E(0x33, 0x33, 0x29), 1},		  /* eq */
		{E(0x33, 0x34, 0x2e), 1},		  /* ne */
		{E(0x09, 0xff, 0x30, 0x2d), 1},		  /* -1 < 0: signed */
		{E(0x09, 0xff, 0x30, 0x2c), 1},		  /* le */
		{E(0x30, 0x09, 0xff, 0x2b), 1},		  /* gt */
		{E(0x30, 0x30, 0x2a), 1},		  /* ge */
		{E(0x33, 0x12, 0x22), 6},		  /* dup */
		{E(0x33, 0x34, 0x13), 3},		  /* drop */
		{E(0x33, 0x34, 0x14), 3},		  /* over */
		{E(0x33, 0x34, 0x35, 0x15, 2), 3},	  /* pick */
		{E(0x33, 0x34, 0x16, 0x1c), 1},		  /* swap: 4 - 3 */
		{E(0x31, 0x32, 0x33, 0x17, 0x1c), -1ull}, /* rot: 3 1 2 */
		{E(0x31, 0x32, 0x33, 0x17, 0x13, 0x13), 3},
		{E(0x31, 0x2f, 1, 0, 0x3f, 0x96), 1},  /* skip over lit15, nop */
		{E(0x31, 0x31, 0x28, 1, 0, 0x3f), 1},  /* bra taken */
		{E(0x31, 0x30, 0x28, 1, 0, 0x3f), 15}, /* bra not taken */
		/* 10 9 8 ... 0: a loop that ends. */
		{E(0x3a, 0x31, 0x1c, 0x12, 0x28, 0xfa, 0xff), 0},
		/* A procedure linkage table's: CFA = rsp + 8 + ((rip & 15) >= 11) << 3. */
		{E(0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22), STACK_ADDR + 8},
		{E(0x77, 8, 0x80, 4, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22), STACK_ADDR + 16},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t r = 0xdead;

		CHECK(run_bytes(
			(struct span){cases[i].expr.b, cases[i].expr.n}, true, NULL, &r, NULL));
		CHECK_EQ(r, cases[i].result);
		if (check_failures) {
			printf("case %zu\n", i);
			return;
		}
	}
}

static void refusals(void)
{
	static const struct bytes cases[] = {
		E(0x91, 0),			 /* fbreg */
		E(0x9c),			 /* call_frame_cfa */
		E(0x03, 0, 0, 0, 0, 0, 0, 0, 0), /* addr */
		E(0x57),			 /* reg7 */
		E(0x73, 0),			 /* breg3: rbx is not known */
		E(0x92, 99, 0),			 /* no such register */
		E(0x22),			 /* plus on an empty stack */
		E(0x33, 0x22),
		E(0x06),
		E(0x13),
		E(0x33, 0x16),
		E(0x33, 0x34, 0x17),
		E(0x33, 0x15, 1),
		E(0x33, 0x30, 0x1b), /* by zero */
		E(0x33, 0x30, 0x1d),
		E(0x0e, 1, 2), /* cut */
		E(0x77),
		E(0x2f, 1),
		E(0x31, 0x2f, 0xf0, 0xff), /* out of the expression */
		E(0x31, 0x2f, 0x7f, 0),
		E(0x31, 0x2f, 0xfd, 0xff),	 /* for ever */
		E(0x31, 0x12, 0x2f, 0xfc, 0xff), /* until the stack is full */
		E(0x77, 0, 0x94, 3),
		E(0x77, 0, 0x94, 16),
		E(0x96), /* no result */
		E(0xff),
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t r = 0xdead;

		CHECK(!run_bytes((struct span){cases[i].b, cases[i].n}, true, NULL, &r, NULL));
		CHECK_EQ(r, 0xdead);
		if (check_failures) {
			printf("case %zu\n", i);
			return;
		}
	}
	CHECK(!run_bytes((struct span){(const uint8_t *)"", 0}, true, NULL, &(uint64_t){0}, NULL));
}

static void width_32(void)
{
	static const uint8_t esp[] = {0x74, 0, 0x06}, ecx[] = {0x71, 0},
			     minus[] = {0x30, 0x31, 0x1c},
			     less[] = {0x0c, 0xff, 0xff, 0xff, 0xff, 0x30, 0x2d},
			     wide[] = {0x74, 0, 0x94, 8};
	uint64_t r = 0;

	CHECK(run_bytes((struct span){esp, sizeof(esp)}, false, NULL, &r, NULL));
	CHECK_EQ(r, 0x55667788);
	CHECK(run_bytes((struct span){ecx, sizeof(ecx)}, false, NULL, &r, NULL));
	CHECK_EQ(r, 0xc0);
	CHECK(run_bytes((struct span){minus, sizeof(minus)}, false, NULL, &r, NULL));
	CHECK_EQ(r, 0xffffffff);
	CHECK(run_bytes((struct span){less, sizeof(less)}, false, NULL, &r, NULL));
	CHECK_EQ(r, 1);
	CHECK(!run_bytes((struct span){wide, sizeof(wide)}, false, NULL, &r, NULL));
}

static void initial_cfa(void)
{
	static const uint8_t plus[] = {0x23, 8}, drop[] = {0x13, 0x80, 0};
	uint64_t r = 0, cfa = 0x1000;

	CHECK(run_bytes((struct span){plus, sizeof(plus)}, true, &cfa, &r, NULL));
	CHECK_EQ(r, 0x1008);
	CHECK(run_bytes((struct span){drop, sizeof(drop)}, true, &cfa, &r, NULL));
	CHECK_EQ(r, 0x401007);
	CHECK(!run_bytes((struct span){plus, sizeof(plus)}, true, NULL, &r, NULL));
}

static void memory_outside(void)
{
	static const uint8_t far[] = {0x77, 0xf0, 0x00, 0x06}, odd[] = {0x22};
	uint64_t r = 0;
	bool short_of_memory = false;

	CHECK(!run_bytes((struct span){far, sizeof(far)}, true, NULL, &r, &short_of_memory));
	CHECK(short_of_memory);
	CHECK(!run_bytes((struct span){odd, sizeof(odd)}, true, NULL, &r, &short_of_memory));
	CHECK(!short_of_memory);
}

static const struct test tests[] = {
	{"every operation computes what DWARF says", results},
	{"what cannot be computed is refused and leaves the result alone", refusals},
	{"values of 32-bit images are 32 bits wide", width_32},
	{"register expressions begin with the CFA on the stack", initial_cfa},
	{"a failed memory read is told apart from a bad expression", memory_outside},
};

int main(void)
{
	return RUN_TESTS(tests);
}
