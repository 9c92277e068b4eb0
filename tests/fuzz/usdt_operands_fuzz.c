/* SPDX-License-Identifier: MIT */
/* Any bytes as the operands of a USDT note; the first one picks the mode. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "probe/points/usdt.h"
#include "probe/types/call_abi.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static bool is_register(uint16_t reg)
{
	return reg % 8 == 0 && reg <= PT_SS;
}

static bool is_good(const struct usdt_operand *o)
{
	if (o->bytes != 1 && o->bytes != 2 && o->bytes != 4 && o->bytes != 8)
		return false;
	switch (o->kind) {
	case USDT_CONSTANT:
		return true;
	case USDT_REGISTER:
		return is_register(o->reg) && o->first_byte + o->bytes <= 8;
	case USDT_MEMORY:
		return (o->reg == 0xffff || is_register(o->reg)) &&
		       (o->index == 0xffff || is_register(o->index)) && o->scale && o->scale <= 8;
	case USDT_SYMBOL:
		return o->symbol_n && memchr(o->symbol, 0, o->symbol_n) == NULL;
	default:
		return o->why && *o->why;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct usdt_operand operands[USDT_OPERANDS_MAX];
	enum mode mode = n && data[0] & 1 ? MODE_64 : MODE_32;
	char *text = n ? mem_strndup((const char *)data + 1, n - 1) : mem_strdup("");
	struct err err = {0};
	int n_operands = usdt_operands_parse(mode, text, operands, &err);

	if (n_operands > USDT_OPERANDS_MAX || (n_operands < 0 && !err.text[0]))
		abort();
	for (int i = 0; i < n_operands; i++)
		if (!is_good(&operands[i]))
			abort();
	free(text);
	return 0;
}
