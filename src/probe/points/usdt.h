/* SPDX-License-Identifier: MIT */
/* USDT operands: "-4@-20(%rbp) 8@%rdi 4@$5 8@glob(%rip) 1@%al -4@(%rax,%rbx,4)", both modes. */
#ifndef WEIR_PROBE_POINTS_USDT_H
#define WEIR_PROBE_POINTS_USDT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "probe/script/ast.h"

#define USDT_OPERANDS_MAX 12

enum usdt_operand_kind {
	USDT_CONSTANT,
	USDT_REGISTER,
	USDT_MEMORY,
	USDT_SYMBOL,	/* in memory at a symbol of the file + value */
	USDT_LINKED,	/* the same, once it was looked up: at the linker's address `value` */
	USDT_UNREADABLE /* a vector register, or an address that only the linker knew: `why` */
};

struct usdt_operand {
	enum usdt_operand_kind kind;
	uint8_t bytes; /* 1, 2, 4, 8; of a REGISTER at most as many as it has */
	bool is_signed, is_float;
	int64_t value;	     /* CONSTANT; MEMORY: displacement */
	uint16_t reg, index; /* enum pt_reg; MEMORY: 0xffff = none */
	uint8_t first_byte;  /* REGISTER: 1 for ah */
	uint8_t scale;	     /* of index */
	const char *symbol;  /* SYMBOL: symbol_n bytes of the text that was parsed */
	uint32_t symbol_n;
	const char *why;     /* UNREADABLE: "it is in a vector register"; a literal */
};

/* Number of operands, at most USDT_OPERANDS_MAX, or a negative code with a sentence that has the
 * operand. Symbols with an index, through the GOT or of threads, segments and vector registers are
 * USDT_UNREADABLE: the other operands of the probe are still of use. */
int usdt_operands_parse(
	enum mode mode, const char *text, struct usdt_operand *out, struct err *err);

#endif
