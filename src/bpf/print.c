/* SPDX-License-Identifier: MIT */
#include "bpf/print.h"

#include <inttypes.h>
#include <stddef.h>

#ifndef BPF_MEMSX
#define BPF_MEMSX 0x80 /* loads that extend the sign: Linux 6.6 */
#endif

const char *bpf_helper_name(int32_t number)
{
#define HELPER_NAME(name) [BPF_FUNC_##name] = #name
	static const char *const names[] = {__BPF_FUNC_MAPPER(HELPER_NAME)};
#undef HELPER_NAME
	size_t n = sizeof(names) / sizeof(names[0]);

	return number > 0 && (size_t)number < n ? names[number] : NULL;
}

/* "+ 112", "- 8", or nothing. */
static void print_offset(int offset, struct buf *out)
{
	if (offset)
		buf_printf(out, " %c %d", offset < 0 ? '-' : '+', offset < 0 ? -offset : offset);
}

static void print_place(uint8_t code, int reg, int offset, bool is_signed, struct buf *out)
{
	static const uint8_t bits[] = {
		[BPF_W >> 3] = 32, [BPF_H >> 3] = 16, [BPF_B >> 3] = 8, [BPF_DW >> 3] = 64};

	buf_printf(out, "*(%c%d *)(r%d", is_signed ? 's' : 'u', bits[BPF_SIZE(code) >> 3], reg);
	print_offset(offset, out);
	buf_put_cstr(out, ")");
}

static void print_source(const struct bpf_insn *insn, char prefix, struct buf *out)
{
	if (BPF_SRC(insn->code) == BPF_X)
		buf_printf(out, "%c%d", prefix, insn->src_reg);
	else
		buf_printf(out, "%d", insn->imm);
}

static void print_byte_order(const struct bpf_insn *insn, struct buf *out)
{
	const char *name = BPF_CLASS(insn->code) == BPF_ALU64 ? "bswap"
			   : BPF_SRC(insn->code) == BPF_TO_BE ? "be"
							      : "le";

	buf_printf(out, "r%d = %s%d r%d", insn->dst_reg, name, insn->imm, insn->dst_reg);
}

/* Division and remainder are signed with offset 1; a move extends the sign of `offset` bits. */
static bool print_alu(const struct bpf_insn *insn, struct buf *out)
{
	static const char *const signs[16] = {[BPF_ADD >> 4] = "+=",
		[BPF_SUB >> 4] = "-=",
		[BPF_MUL >> 4] = "*=",
		[BPF_DIV >> 4] = "/=",
		[BPF_OR >> 4] = "|=",
		[BPF_AND >> 4] = "&=",
		[BPF_LSH >> 4] = "<<=",
		[BPF_RSH >> 4] = ">>=",
		[BPF_MOD >> 4] = "%=",
		[BPF_XOR >> 4] = "^=",
		[BPF_MOV >> 4] = "=",
		[BPF_ARSH >> 4] = "s>>="};
	char prefix = BPF_CLASS(insn->code) == BPF_ALU64 ? 'r' : 'w';
	int op = BPF_OP(insn->code);
	const char *sign = signs[op >> 4];

	if (op == BPF_NEG) {
		buf_printf(out, "%c%d = -%c%d", prefix, insn->dst_reg, prefix, insn->dst_reg);
		return true;
	}
	if (op == BPF_END) {
		print_byte_order(insn, out);
		return true;
	}
	if (!sign)
		return false;
	buf_printf(out, "%c%d %s%s ", prefix, insn->dst_reg,
		(op == BPF_DIV || op == BPF_MOD) && insn->off == 1 ? "s" : "", sign);
	if (op == BPF_MOV && insn->off)
		buf_printf(out, "(s%d)", insn->off);
	print_source(insn, prefix, out);
	return true;
}

static void print_call(const struct bpf_insn *insn, struct buf *out)
{
	const char *name = insn->src_reg ? NULL : bpf_helper_name(insn->imm);

	if (name)
		buf_printf(out, "call %s", name);
	else if (insn->src_reg == BPF_PSEUDO_CALL)
		buf_printf(out, "call %+d", insn->imm);
	else
		buf_printf(out, "call #%d", insn->imm);
}

static bool print_jump(const struct bpf_insn *insn, struct buf *out)
{
	static const char *const signs[16] = {[BPF_JEQ >> 4] = "==",
		[BPF_JGT >> 4] = ">",
		[BPF_JGE >> 4] = ">=",
		[BPF_JSET >> 4] = "&",
		[BPF_JNE >> 4] = "!=",
		[BPF_JSGT >> 4] = "s>",
		[BPF_JSGE >> 4] = "s>=",
		[BPF_JLT >> 4] = "<",
		[BPF_JLE >> 4] = "<=",
		[BPF_JSLT >> 4] = "s<",
		[BPF_JSLE >> 4] = "s<="};
	bool is_64 = BPF_CLASS(insn->code) == BPF_JMP;
	int op = BPF_OP(insn->code);

	if (op == BPF_JA) {
		buf_printf(out, "goto %+d", is_64 ? insn->off : insn->imm);
	} else if (op == BPF_CALL && is_64) {
		print_call(insn, out);
	} else if (op == BPF_EXIT && is_64) {
		buf_put_cstr(out, "exit");
	} else if (signs[op >> 4]) {
		buf_printf(out, "if %c%d %s ", is_64 ? 'r' : 'w', insn->dst_reg, signs[op >> 4]);
		print_source(insn, is_64 ? 'r' : 'w', out);
		buf_printf(out, " goto %+d", insn->off);
	} else {
		return false;
	}
	return true;
}

static bool print_atomic(const struct bpf_insn *insn, struct buf *out)
{
	static const char *const signs[16] = {[BPF_ADD >> 4] = "+=",
		[BPF_OR >> 4] = "|=",
		[BPF_AND >> 4] = "&=",
		[BPF_XOR >> 4] = "^="};
	int op = insn->imm & ~BPF_FETCH;

	if (insn->imm == BPF_XCHG || insn->imm == BPF_CMPXCHG) {
		buf_printf(out, "%s = atomic_%s(", insn->imm == BPF_XCHG ? "src" : "r0",
			insn->imm == BPF_XCHG ? "xchg" : "cmpxchg");
		print_place(insn->code, insn->dst_reg, insn->off, false, out);
		buf_printf(out, ", r%d)", insn->src_reg);
		return true;
	}
	if (op < 0 || op > 0xff || op & 15 || !signs[op >> 4])
		return false;
	if (insn->imm & BPF_FETCH)
		buf_printf(out, "r%d = fetch ", insn->src_reg);
	buf_put_cstr(out, "lock ");
	print_place(insn->code, insn->dst_reg, insn->off, false, out);
	buf_printf(out, " %s r%d", signs[op >> 4], insn->src_reg);
	return true;
}

static bool print_store(const struct bpf_insn *insn, struct buf *out)
{
	bool has_register = BPF_CLASS(insn->code) == BPF_STX;

	if (has_register && BPF_MODE(insn->code) == BPF_ATOMIC)
		return print_atomic(insn, out);
	if (BPF_MODE(insn->code) != BPF_MEM)
		return false;
	print_place(insn->code, insn->dst_reg, insn->off, false, out);
	if (has_register)
		buf_printf(out, " = r%d", insn->src_reg);
	else
		buf_printf(out, " = %d", insn->imm);
	return true;
}

static bool print_load(const struct bpf_insn *insn, struct buf *out)
{
	if (BPF_MODE(insn->code) != BPF_MEM && BPF_MODE(insn->code) != BPF_MEMSX)
		return false;
	buf_printf(out, "r%d = ", insn->dst_reg);
	print_place(insn->code, insn->src_reg, insn->off, BPF_MODE(insn->code) == BPF_MEMSX, out);
	return true;
}

static void print_wide(const struct bpf_insn *insn, const struct bpf_insn *next, struct buf *out)
{
	uint64_t high = next ? (uint32_t)next->imm : 0;

	if (insn->src_reg == BPF_PSEUDO_MAP_FD)
		buf_printf(out, "r%d = map %d", insn->dst_reg, insn->imm);
	else
		buf_printf(
			out, "r%d = 0x%" PRIx64, insn->dst_reg, high << 32 | (uint32_t)insn->imm);
}

void bpf_insn_print(const struct bpf_insn *insn, const struct bpf_insn *next, struct buf *out)
{
	static bool (*const printers[8])(const struct bpf_insn *, struct buf *) = {
		[BPF_ALU] = print_alu,
		[BPF_ALU64] = print_alu,
		[BPF_JMP] = print_jump,
		[BPF_JMP32] = print_jump,
		[BPF_ST] = print_store,
		[BPF_STX] = print_store,
		[BPF_LDX] = print_load,
	};
	int class = BPF_CLASS(insn->code);

	if (class == BPF_LD && bpf_insn_is_wide(insn))
		print_wide(insn, next, out);
	else if (!printers[class] || !printers[class](insn, out))
		buf_printf(out, ".insn 0x%02x r%d r%d %d %d", insn->code, insn->dst_reg,
			insn->src_reg, insn->off, insn->imm);
}
