/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "bpf/verifier_log.h"

static struct verifier_complaint read_text(const char *text)
{
	struct verifier_complaint c;

	verifier_log_read((struct span){(const uint8_t *)text, strlen(text)}, &c);
	return c;
}

static void test_usual(void)
{
	struct verifier_complaint c =
		read_text("func#0 @0\n"
			  "0: R1=ctx() R10=fp0\n"
			  "0: (bf) r6 = r1                       ; R1=ctx() R6_w=ctx()\n"
			  "1: (b7) r2 = 5                        ; R2_w=5\n"
			  "2: (79) r0 = *(u64 *)(r2 +0)\n"
			  "R2 invalid mem access 'scalar'\n"
			  "processed 3 insns (limit 1000000) max_states_per_insn 0 "
			  "total_states 0 peak_states 0 mark_read 0\n");

	CHECK_EQ(c.insn_i, 2);
	CHECK_STR(c.message, "R2 invalid mem access 'scalar'");
}

static void test_two_lines(void)
{
	struct verifier_complaint c =
		read_text("7: (79) r0 = *(u64 *)(r7 +90000)\n"
			  "invalid access to map value, value_size=8 off=90000 size=8\n"
			  "R7 min value is outside of the allowed memory range\n"
			  "processed 8 insns\nverification time 90 usec\nstack depth 0\n");

	CHECK_EQ(c.insn_i, 7);
	CHECK_STR(c.message, "invalid access to map value, value_size=8 off=90000 size=8; "
			     "R7 min value is outside of the allowed memory range");
}

static void test_branches(void)
{
	struct verifier_complaint c =
		read_text("4: (55) if r0 != 0x0 goto pc+1        ; R0_w=0\n"
			  "5: (95) exit\n"
			  "\n"
			  "from 4 to 6: R0_w=map_value(off=0,ks=4,vs=8) R10=fp0\n"
			  "6: R0_w=map_value(off=0,ks=4,vs=8) R10=fp0\n"
			  "6: (85) call bpf_map_lookup_elem#1\n"
			  "R1=scalar() R2=fp-8\n"
			  "R1 type=scalar expected=map_ptr\n");

	CHECK_EQ(c.insn_i, 6);
	CHECK_STR(c.message, "R1 type=scalar expected=map_ptr");
}

static void test_shape(void)
{
	CHECK_EQ(read_text("unreachable insn 12\nprocessed 0 insns\n").insn_i, 12);
	CHECK_STR(read_text("unreachable insn 12\nprocessed 0 insns\n").message,
		"unreachable insn 12");
	CHECK_EQ(read_text("jump out of range from insn 3 to 90\n").insn_i, 3);
	CHECK_EQ(read_text("last insn is not an exit or jmp\n").insn_i, -1);
}

static void test_nothing(void)
{
	struct verifier_complaint c = read_text("");

	CHECK_EQ(c.insn_i, -1);
	CHECK_STR(c.message, "");
	c = read_text("99999999999: (00) x\n\x01\x7f\n: (\n1: (\n");
	CHECK_EQ(c.insn_i, -1);
}

static void test_long(void)
{
	static char text[10000];
	struct verifier_complaint c;

	memset(text, 'x', sizeof(text) - 1);
	c = read_text(text);
	CHECK_EQ(strlen(c.message), VERIFIER_MESSAGE_MAX - 1);
}

static const struct test tests[] = {
	{"the complaint stands behind the last instruction", test_usual},
	{"a complaint of two lines is one message", test_two_lines},
	{"states and branches are no complaints", test_branches},
	{"complaints about the whole program have their number", test_shape},
	{"an empty or strange log gives nothing", test_nothing},
	{"a long line is cut", test_long},
};

int main(void)
{
	return RUN_TESTS(tests);
}
