/* SPDX-License-Identifier: MIT */
/* Costs of sites; tests/oracle/probe_sites.sh compares acceptance with the kernel's own. */
#include "check.h"
#include "probe/points/site_cost.h"

#define CODE(...)                                                                                  \
	((struct span){(const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})})

static enum site_cost cost_of(struct span code, enum mode mode)
{
	const char *why;

	return site_cost(code, (struct foff){0x1000}, mode, &why);
}

static const char *why_of(struct span code, enum mode mode)
{
	const char *why;

	CHECK_EQ(site_cost(code, (struct foff){0x1000}, mode, &why), SITE_UNKNOWN);
	return why ? why : "";
}

static void test_emulated(void)
{
	for (int mode = 0; mode < N_MODES; mode++) {
		CHECK_EQ(cost_of(CODE(0x55), mode), SITE_EMULATED);
		CHECK_EQ(cost_of(CODE(0x90), mode), SITE_EMULATED);
		CHECK_EQ(cost_of(CODE(0xeb, 0x10), mode), SITE_EMULATED);
		CHECK_EQ(cost_of(CODE(0xe8, 1, 0, 0, 0), mode), SITE_EMULATED);
		CHECK_EQ(cost_of(CODE(0x0f, 0x84, 1, 0, 0, 0), mode), SITE_EMULATED);
		CHECK_EQ(cost_of(CODE(0x74, 0x10), mode), SITE_EMULATED);
		CHECK_EQ(cost_of(CODE(0x0f, 0x1f, 0x40, 0x00), mode), SITE_EMULATED);
		CHECK_EQ(cost_of(CODE(0x66, 0x90), mode), SITE_EMULATED);
	}
	CHECK_EQ(cost_of(CODE(0x41, 0x54), MODE_64), SITE_EMULATED);	   /* push %r12 */
	CHECK_EQ(cost_of(CODE(0x41, 0x54), MODE_32), SITE_SINGLE_STEPPED); /* inc %ecx */
}

static void test_nop5(void)
{
	static const uint8_t nop5[] = {0x0f, 0x1f, 0x44, 0x00, 0x00};
	struct span code = {nop5, sizeof(nop5)};
	const char *why;

	CHECK_EQ(site_cost(code, (struct foff){0x1000}, MODE_64, &why), SITE_NOP5);
	CHECK_EQ(site_cost(code, (struct foff){0x1ffb}, MODE_64, &why), SITE_NOP5);
	CHECK_EQ(site_cost(code, (struct foff){0x1ffc}, MODE_64, &why), SITE_EMULATED);
	CHECK_EQ(site_cost(code, (struct foff){0x1000}, MODE_32, &why), SITE_EMULATED);
}

static void test_stepped(void)
{
	CHECK_EQ(cost_of(CODE(0xf3, 0x0f, 0x1e, 0xfa), MODE_64), SITE_SINGLE_STEPPED);
	CHECK_EQ(cost_of(CODE(0x48, 0x83, 0xec, 0x08), MODE_64), SITE_SINGLE_STEPPED);
	CHECK_EQ(cost_of(CODE(0x89, 0xe5), MODE_32), SITE_SINGLE_STEPPED);
	CHECK_EQ(cost_of(CODE(0xc3), MODE_64), SITE_SINGLE_STEPPED);
	CHECK_EQ(cost_of(CODE(0x0f, 0x05), MODE_64), SITE_SINGLE_STEPPED); /* syscall */
	CHECK_EQ(cost_of(CODE(0x8b, 0x05, 1, 0, 0, 0), MODE_64), SITE_SINGLE_STEPPED);
	/* A nop that the kernel would spell otherwise. */
	CHECK_EQ(cost_of(CODE(0x0f, 0x1f, 0x80, 1, 0, 0, 0), MODE_64), SITE_SINGLE_STEPPED);
	CHECK_EQ(cost_of(CODE(0xc5, 0xf8, 0x28, 0xc1), MODE_64), SITE_SINGLE_STEPPED); /* vmovaps */
}

static void test_refused(void)
{
	CHECK(strstr(why_of(CODE(0xf0, 0xff, 0x00), MODE_64), "lock"));
	CHECK(strstr(why_of(CODE(0x3e, 0xff, 0xe0), MODE_64), "notrack"));
	CHECK(strstr(why_of(CODE(0xcc), MODE_64), "int3"));
	CHECK(strstr(why_of(CODE(0xf4), MODE_32), "system"));
	CHECK(strstr(why_of(CODE(0xcd, 0x80), MODE_32), "system"));
	CHECK(strstr(why_of(CODE(0x66, 0xe9, 1, 2, 3, 4), MODE_32), "16-bit"));
	CHECK(strstr(why_of(CODE(0xc5, 0xf9, 0xef, 0xc0), MODE_64), "vector")); /* vpxor */
	/* vzeroupper would be emulated as ja, vpbroadcastb as jp, vcmpps be stepped as ret. */
	CHECK(strstr(why_of(CODE(0xc5, 0xf8, 0x77), MODE_64), "break"));
	CHECK(strstr(why_of(CODE(0xc5, 0xf8, 0x77), MODE_32), "break"));
	CHECK(strstr(why_of(CODE(0x62, 0xe2, 0x7d, 0x28, 0x7a, 0xc6), MODE_64), "break"));
	CHECK(strstr(why_of(CODE(0xc5, 0xf8, 0xc2, 0xc1, 0), MODE_64), "break"));
	CHECK(strstr(why_of(CODE(0x06), MODE_64), "no instruction"));
	CHECK_EQ(cost_of(CODE(0x06), MODE_32), SITE_SINGLE_STEPPED);  /* push %es */
	CHECK(strstr(why_of(CODE(0x48), MODE_64), "no instruction")); /* cut short */
	CHECK(strstr(why_of((struct span){NULL, 0}, MODE_64), "no instruction"));
}

static uint32_t cheaper(struct span code, enum mode mode)
{
	return site_cheaper(code, (struct foff){0x1000}, mode);
}

static void test_cheaper(void)
{
	/* endbr64; push %rbp */
	CHECK_EQ(cheaper(CODE(0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0xc3), MODE_64), 4);
	/* mov %rdi,%rax; test %rdi,%rdi; je */
	CHECK_EQ(cheaper(CODE(0x48, 0x89, 0xf8, 0x48, 0x85, 0xff, 0x74, 0, 0xc3), MODE_64), 6);
	/* the same, but an argument is changed in between */
	CHECK_EQ(cheaper(CODE(0x48, 0x89, 0xc7, 0x74, 0, 0xc3), MODE_64), 0);
	/* sub $8,%rsp; push: the stack has moved */
	CHECK_EQ(cheaper(CODE(0x48, 0x83, 0xec, 8, 0x55, 0xc3), MODE_64), 0);
	/* a store might change what an argument points to */
	CHECK_EQ(cheaper(CODE(0x48, 0x89, 0x07, 0x55, 0xc3), MODE_64), 0);
	/* endbr64; push %rbp; jmp back to it: it would fire twice in a call */
	CHECK_EQ(cheaper(CODE(0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0xeb, 0xfd), MODE_64), 0);
	/* endbr32; push %ebp: the first push has not run when its probe fires */
	CHECK_EQ(cheaper(CODE(0xf3, 0x0f, 0x1e, 0xfb, 0x55, 0xc3), MODE_32), 4);
	/* mov %edi,%eax changes no argument of a 32-bit function; sub of %esp does */
	CHECK_EQ(cheaper(CODE(0x8b, 0x7c, 0x24, 0x04, 0x57, 0xc3), MODE_32), 4);
	CHECK_EQ(cheaper(CODE(0x83, 0xec, 0x0c, 0x57, 0xc3), MODE_32), 0);
	CHECK_EQ(cheaper(CODE(0x31, 0xc0, 0xc3), MODE_64), 0);
	CHECK_EQ(cheaper((struct span){NULL, 0}, MODE_64), 0);
}

static void test_boundary(void)
{
	struct span code = CODE(0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0xc3);

	CHECK(site_is_boundary(code, 0, MODE_64) && site_is_boundary(code, 4, MODE_64));
	CHECK(site_is_boundary(code, 5, MODE_64) && site_is_boundary(code, 8, MODE_64));
	CHECK(!site_is_boundary(code, 2, MODE_64) && !site_is_boundary(code, 6, MODE_64));
	CHECK(!site_is_boundary(code, 100, MODE_64));
}

int main(void)
{
	static const struct test tests[] = {
		{"pushes, nops and relative jumps are emulated", test_emulated},
		{"a five byte nop in one page of a 64-bit file is replaced by a call", test_nop5},
		{"everything else is single-stepped, endbr64 and ret too", test_stepped},
		{"what the kernel refuses is refused with the reason", test_refused},
		{"a cheaper site has the arguments as they were and is never jumped to",
			test_cheaper},
		{"an offset is the start of an instruction or not", test_boundary},
	};

	return RUN_TESTS(tests);
}
