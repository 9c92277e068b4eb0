/* SPDX-License-Identifier: MIT */
#include "base/buf.h"
#include "check.h"
#include "probe/points/usdt.h"
#include "probe/types/call_abi.h"

static struct usdt_operand operands[USDT_OPERANDS_MAX];

static const char *reg_name(uint16_t reg)
{
	static const char *const names[] = {"r15", "r14", "r13", "r12", "bp", "bx", "r11", "r10",
		"r9", "r8", "ax", "cx", "dx", "si", "di", "orig_ax", "ip", "cs", "flags", "sp"};

	return reg == 0xffff ? "-" : names[reg / 8];
}

/* "s4 const -5", "u8 reg di+0", "s4 mem -20 bp - 1", "f8 mem ...", "u4 none"; joined by "; " */
static const char *text_of(enum mode mode, const char *text)
{
	static struct buf b;
	struct err err;
	int n = usdt_operands_parse(mode, text, operands, &err);

	buf_reset(&b);
	if (n < 0)
		return "refused";
	for (int i = 0; i < n; i++) {
		const struct usdt_operand *o = &operands[i];

		buf_printf(&b, "%s%c%u ", i ? "; " : "",
			o->is_float    ? 'f'
			: o->is_signed ? 's'
				       : 'u',
			o->bytes);
		if (o->kind == USDT_CONSTANT)
			buf_printf(&b, "const %lld", (long long)o->value);
		else if (o->kind == USDT_REGISTER)
			buf_printf(&b, "reg %s+%u", reg_name(o->reg), o->first_byte);
		else if (o->kind == USDT_MEMORY)
			buf_printf(&b, "mem %lld %s %s %u", (long long)o->value, reg_name(o->reg),
				reg_name(o->index), o->scale);
		else if (o->kind == USDT_SYMBOL)
			buf_printf(&b, "at %.*s %+lld", (int)o->symbol_n, o->symbol,
				(long long)o->value);
		else
			buf_printf(&b, "none");
	}
	return buf_text(&b);
}

static void test_64(void)
{
	CHECK_STR(text_of(MODE_64, "-4@-20(%rbp) 8@%rdi 4@$5 1@%al"),
		"s4 mem -20 bp - 1; u8 reg di+0; u4 const 5; u1 reg ax+0");
	CHECK_STR(text_of(MODE_64, "-4@(%rax,%rbx,4) 8@16(,%r12,8) 2@%r9w"),
		"s4 mem 0 ax bx 4; u8 mem 16 - r12 8; u2 reg r9+0");
	CHECK_STR(text_of(MODE_64, "1@%ah -1@%sil 4@%r10d 2@%ax"),
		"u1 reg ax+1; s1 reg si+0; u4 reg r10+0; u2 reg ax+0");
	CHECK_STR(text_of(MODE_64, "-8@$-1 4@$0x10 8@$0xffffffffffffffff"),
		"s8 const -1; u4 const 16; u8 const -1");
	CHECK_STR(text_of(MODE_64, "8@8+16(%rsp) 8@-8-8(%rsp) 4@0x601040"),
		"u8 mem 24 sp - 1; u8 mem -16 sp - 1; u4 mem 6295616 - - 1");
	CHECK_STR(text_of(MODE_64, "8@(%rax,%rbx)"), "u8 mem 0 ax bx 1");
	CHECK_STR(text_of(MODE_64, "%rdi $7"), "u8 reg di+0; u8 const 7");
	CHECK_STR(text_of(MODE_64, ""), "");
	CHECK_STR(text_of(MODE_64, "  8@%rdi   "), "u8 reg di+0");
}

static void test_32(void)
{
	CHECK_STR(text_of(MODE_32, "-4@%eax 4@8(%ebp) -4@(%esi,%edi,2) 1@%bl 2@%cx"),
		"s4 reg ax+0; u4 mem 8 bp - 1; s4 mem 0 si di 2; u1 reg bx+0; u2 reg cx+0");
	CHECK_STR(text_of(MODE_32, "%esp"), "u4 reg sp+0");
	CHECK_STR(text_of(MODE_32, "8@-16(%ebp)"), "u8 mem -16 bp - 1");
	CHECK_STR(text_of(MODE_32, "8@%rdi"), "refused");
	CHECK_STR(text_of(MODE_32, "4@%r8d"), "refused");
	CHECK_STR(text_of(MODE_32, "1@%sil"), "refused");
	CHECK_STR(text_of(MODE_32, "4@(%rax)"), "refused");
}

static void test_sizes(void)
{
	/* A register has no more bytes than its name. */
	CHECK_STR(text_of(MODE_64, "8@%eax 4@%al"), "u4 reg ax+0; u1 reg ax+0");
	CHECK_STR(text_of(MODE_64, "3@%eax"), "refused");
	CHECK_STR(text_of(MODE_64, "16@%rax"), "refused");
	CHECK_STR(text_of(MODE_64, "0@%rax"), "refused");
}

static void test_floats(void)
{
	CHECK_STR(text_of(MODE_64, "8f@-8(%rbp) 4f@%xmm0 -8f@(%rsp)"),
		"f8 mem -8 bp - 1; f4 none; f8 mem 0 sp - 1");
	CHECK_STR(operands[1].why, "it is in a vector register");
	CHECK_STR(text_of(MODE_32, "8f@%st 8@%mm3"), "f8 none; u8 none");
	CHECK_STR(text_of(MODE_64, "2f@%rax"), "refused");
}

/* The others of the probe can still be read. */
static void test_unreadable(void)
{
	CHECK_STR(text_of(MODE_64, "8@8+glob(%rip) 8@%rdi"), "u8 none; u8 reg di+0");
	CHECK_STR(text_of(MODE_64, "8@-4(%rip)"), "u8 none");
	CHECK_STR(text_of(MODE_64, "8@$glob"), "u8 none");
	CHECK_STR(text_of(MODE_64, "8@%fs:-8"), "u8 none");
	CHECK_STR(text_of(MODE_64, "8@glob@GOTPCREL(%rip)"), "u8 none");
	CHECK_STR(text_of(MODE_64, "4@table(,%rax,4) 4@glob(%rax)"), "u4 none; u4 none");
	CHECK_STR(text_of(MODE_32, "4@glob(%rip) 4@table@GOTOFF(%ebx,%eax,4)"), "u4 none; u4 none");
}

static void test_symbols(void)
{
	CHECK_STR(text_of(MODE_64, "8@glob(%rip) 8@%rdi"), "u8 at glob +0; u8 reg di+0");
	CHECK_STR(text_of(MODE_64, "-4@table+12(%rip)"), "s4 at table +12");
	CHECK_STR(text_of(MODE_64, "4@glob 1@n.3-1(%rip)"), "u4 at glob +0; u1 at n.3 -1");
	CHECK_STR(text_of(MODE_32, "4@counter@GOTOFF(%ebx)"), "u4 at counter +0");
	CHECK_STR(text_of(MODE_32, "-2@counter@GOTOFF+6(%ebx)"), "s2 at counter +6");
	CHECK_STR(text_of(MODE_32, "8@counter"), "u8 at counter +0");
}

static void test_refused(void)
{
	static const char *const texts[] = {"8@", "@%rdi", "8@%", "8@%nosuch", "8@(%rax", "8@()",
		"8@(%rax,%rbx,3)", "8@(%rax,%rbx,4", "8@%rdi)", "8@$", "8@$5x", "8@$-", "8@4(",
		"8@(%eax)", "8@(%ax)", "8@(,)", "x", "8@(%al)", "8@$99999999999999999999",
		"8@-(%rax)", "8@%rdi8"};
	struct err err = {0};
	struct buf b = {0};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		/* A lone name is a symbol's. */
		const char *want = !strcmp(texts[i], "x") ? "u8 at x +0" : "refused";

		CHECK_STR(text_of(MODE_64, texts[i]), want);
	}
	CHECK_EQ(usdt_operands_parse(MODE_64, "8@%rdi 8@%nosuch", operands, &err), ERR_FORMAT);
	CHECK_STR(err.text, "USDT operand '8@%nosuch' is not understood");
	for (int i = 0; i < USDT_OPERANDS_MAX; i++)
		buf_put_cstr(&b, "8@%rdi ");
	CHECK_EQ(usdt_operands_parse(MODE_64, buf_text(&b), operands, &err), USDT_OPERANDS_MAX);
	buf_put_cstr(&b, "8@%rdi");
	CHECK_EQ(usdt_operands_parse(MODE_64, buf_text(&b), operands, &err), ERR_LIMIT);
	buf_reset(&b);
	for (int i = 0; i < 1000; i++)
		buf_put_cstr(&b, "8");
	CHECK_EQ(usdt_operands_parse(MODE_64, buf_text(&b), operands, &err), ERR_LIMIT);
	buf_release(&b);
}

int main(void)
{
	static const struct test tests[] = {
		{"reads operands of 64-bit programs", test_64},
		{"reads operands of 32-bit programs, which have fewer registers", test_32},
		{"sizes are those of values, at most of the register", test_sizes},
		{"floating-point operands are read from memory only", test_floats},
		{"what only the linker knew is unreadable, and the rest is not", test_unreadable},
		{"symbols are found with their distances", test_symbols},
		{"anything else is refused with the operand", test_refused},
	};

	return RUN_TESTS(tests);
}
