/* SPDX-License-Identifier: MIT */
#include "arch/x86_format.h"

#include "arch/x86_zydis.h"

static bool format_init(ZydisFormatter *f, enum x86_syntax syntax)
{
	ZydisFormatterStyle style = syntax == X86_SYNTAX_INTEL ? ZYDIS_FORMATTER_STYLE_INTEL
							       : ZYDIS_FORMATTER_STYLE_ATT;

	return ZYAN_SUCCESS(ZydisFormatterInit(f, style)) &&
	       ZYAN_SUCCESS(ZydisFormatterSetProperty(f, ZYDIS_FORMATTER_PROP_ADDR_PADDING_ABSOLUTE,
		       (ZyanUPointer)ZYDIS_PADDING_DISABLED)) &&
	       ZYAN_SUCCESS(ZydisFormatterSetProperty(
		       f, ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE));
}

bool x86_format_as(enum x86_syntax syntax, char text[X86_TEXT_BYTES], struct span code,
	uint64_t addr, bool is_64)
{
	ZydisFormatter formatter;
	struct x86_decoded x;

	text[0] = 0;
	return x86_decode_all(&x, code, is_64) && format_init(&formatter, syntax) &&
	       ZYAN_SUCCESS(ZydisFormatterFormatInstruction(&formatter, &x.d, x.operands,
		       x.d.operand_count_visible, text, X86_TEXT_BYTES, addr, NULL));
}

bool x86_format(char text[X86_TEXT_BYTES], struct span code, uint64_t addr, bool is_64)
{
	return x86_format_as(X86_SYNTAX_ATT, text, code, addr, is_64);
}
