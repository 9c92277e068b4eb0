/* SPDX-License-Identifier: MIT */
/*
 * The argument texts of USDT notes, as gas writes operands:
 *
 *   operands := operand { " " operand }
 *   operand  := [ ["-"] SIZE ["f"] "@" ] place
 *   place    := "$" number | "%" register | [ sum ] "(" [ "%" base ] [ "," "%" index [ "," scale ]
 * ] ")" | sum sum      := ["-" | "+"] number { ("-" | "+") number }
 *
 * SIZE is in bytes and negative for signed values; without it the value is a word of the mode. A
 * sum alone is an absolute address. A symbol is looked up later; segments and vector registers are
 * recognised but unreadable.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "probe/points/usdt.h"
#include "probe/types/call_abi.h"

#define OPERAND_BYTES_MAX 256
#define REGISTER_NONE	  0xffff

/* One operand while it is read. */
struct reading {
	enum mode mode;
	const char *p; /* next character of it */
	struct usdt_operand *to;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool take(struct reading *r, char c)
{
	if (*r->p != c)
		return false;
	r->p++;
	return true;
}

static bool unreadable(struct reading *r, const char *why)
{
	r->to->kind = USDT_UNREADABLE;
	r->to->why = why;
	r->p += strlen(r->p);
	return true;
}

/* Decimal, 0x hexadecimal or 0 octal, as gas. */
static bool read_number(struct reading *r, uint64_t *out)
{
	char *end;

	if (!is_digit(*r->p))
		return false;
	errno = 0;
	*out = strtoull(r->p, &end, 0);
	r->p = end;
	return !errno;
}

static bool read_sum(struct reading *r, int64_t *out)
{
	uint64_t sum = 0, number;
	bool is_first = true;

	while (is_first || *r->p == '-' || *r->p == '+') {
		bool is_minus = take(r, '-');

		if (!is_minus)
			take(r, '+');
		if (!read_number(r, &number))
			return false;
		sum += is_minus ? 0 - number : number;
		is_first = false;
	}
	*out = (int64_t)sum;
	return true;
}

/* Behind "%". */
static bool read_name(struct reading *r, char *name, size_t max)
{
	size_t n = 0;

	while ((*r->p >= 'a' && *r->p <= 'z') || is_digit(*r->p)) {
		if (n + 1 >= max)
			return false;
		name[n++] = *r->p++;
	}
	name[n] = 0;
	return n > 0;
}

/* 32-bit programs have neither r8 to r15 nor 64-bit names, nor sil, dil, bpl and spl. */
static bool mode_has_register(enum mode mode, const char *name)
{
	return mode == MODE_64 || (name[0] != 'r' && !(strlen(name) == 3 && name[2] == 'l'));
}

static bool is_vector(const char *name)
{
	static const char *const prefixes[] = {"xmm", "ymm", "zmm", "mm", "st", "k", NULL};

	for (size_t i = 0; prefixes[i]; i++) {
		size_t n = strlen(prefixes[i]);

		if (!strncmp(name, prefixes[i], n) && (is_digit(name[n]) || !strcmp(name, "st")))
			return true;
	}
	return false;
}

static bool is_segment(const char *name)
{
	return strlen(name) == 2 && name[1] == 's' && strchr("cdefgs", name[0]);
}

static bool read_register_operand(struct reading *r)
{
	struct usdt_operand *to = r->to;
	uint8_t bytes;
	char name[8];

	if (!read_name(r, name, sizeof(name)))
		return false;
	if (is_vector(name))
		return unreadable(r, "it is in a vector register");
	if (is_segment(name) && *r->p == ':')
		return unreadable(r, "it is in a thread's own memory (%fs, %gs)");
	if (!mode_has_register(r->mode, name) ||
		!pt_reg_find(name, &to->reg, &to->first_byte, &bytes) || *r->p)
		return false;
	/* "ax" and its like are two bytes to an assembler. */
	if (strlen(name) == 2 && bytes == 8 && !is_digit(name[1]))
		bytes = 2;
	to->kind = USDT_REGISTER;
	if (to->bytes > bytes)
		to->bytes = bytes;
	return true;
}

/* Base and index: whole registers only. "rip" makes an address that the note cannot tell. */
static bool read_address_register(struct reading *r, uint16_t *out, bool *is_relative)
{
	size_t word = r->mode == MODE_32 ? 4 : 8;
	uint8_t first_byte, bytes;
	char name[8];

	if (!take(r, '%') || !read_name(r, name, sizeof(name)) ||
		!mode_has_register(r->mode, name) || !pt_reg_find(name, out, &first_byte, &bytes) ||
		bytes != word || (strlen(name) == 2 && !is_digit(name[1])))
		return false;
	if (*out == PT_IP)
		*is_relative = true;
	return true;
}

/* Behind "(". */
static bool read_address(struct reading *r)
{
	struct usdt_operand *to = r->to;
	bool is_relative = false;
	uint64_t scale = 1;

	if (*r->p == '%' && !read_address_register(r, &to->reg, &is_relative))
		return false;
	if (take(r, ',')) {
		if (!read_address_register(r, &to->index, &is_relative))
			return false;
		if (take(r, ',') && !read_number(r, &scale))
			return false;
	}
	if (!take(r, ')') || *r->p)
		return false;
	if (to->reg == REGISTER_NONE && to->index == REGISTER_NONE)
		return false;
	if (scale != 1 && scale != 2 && scale != 4 && scale != 8)
		return false;
	to->scale = (uint8_t)scale;
	if (is_relative)
		return unreadable(r, "its address is relative to an instruction (%rip)");
	return true;
}

static bool is_symbol_start(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.';
}

/* "counter(%rip)", "table+8", in 32-bit code also "counter@GOTOFF(%ebx)": all mean the symbol's own
 * memory. */
static bool read_symbol(struct reading *r)
{
	static const char of_names[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.$";
	struct usdt_operand *to = r->to;
	const char *start = r->p;
	bool is_gotoff;

	r->p += strspn(r->p, of_names);
	to->symbol_n = (uint32_t)(r->p - start);
	is_gotoff = r->mode == MODE_32 && !strncmp(r->p, "@GOTOFF", 7);
	if (is_gotoff)
		r->p += 7;
	if ((*r->p == '+' || *r->p == '-') && !read_sum(r, &to->value))
		return false;
	if (is_gotoff ? strlen(r->p) != 6 || strncmp(r->p, "(%e", 3) || r->p[5] != ')'
		      : *r->p && (r->mode == MODE_32 || strcmp(r->p, "(%rip)")))
		return unreadable(r, "it is at the address of a symbol");
	to->kind = USDT_SYMBOL;
	to->symbol = start;
	return true;
}

static bool read_place(struct reading *r)
{
	struct usdt_operand *to = r->to;

	if (take(r, '$')) {
		to->kind = USDT_CONSTANT;
		if (is_symbol_start(*r->p))
			return unreadable(r, "it is the address of a symbol");
		return read_sum(r, &to->value) && !*r->p;
	}
	if (take(r, '%'))
		return read_register_operand(r);
	if (is_symbol_start(*r->p))
		return read_symbol(r);
	to->kind = USDT_MEMORY;
	if (*r->p != '(' && !read_sum(r, &to->value))
		/* "8+table(%rax)" */
		return is_symbol_start(*r->p) && unreadable(r, "it is at the address of a symbol");
	if (take(r, '('))
		return read_address(r);
	return !*r->p;
}

/* "-4f@", when there is an "@" that belongs to it and not to "symbol@GOTOFF". */
static bool read_size(struct reading *r)
{
	struct usdt_operand *to = r->to;
	const char *start = r->p;
	uint64_t bytes;

	to->bytes = r->mode == MODE_32 ? 4 : 8;
	to->is_signed = take(r, '-');
	if (!is_digit(*r->p) || !read_number(r, &bytes)) {
		r->p = start;
		to->is_signed = false;
		return true;
	}
	to->is_float = take(r, 'f');
	if (!take(r, '@')) {
		r->p = start;
		to->is_signed = to->is_float = false;
		return true;
	}
	if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8)
		return false;
	to->bytes = (uint8_t)bytes;
	return !to->is_float || bytes >= 4;
}

static int parse_one(enum mode mode, const char *operand, struct usdt_operand *to, struct err *err)
{
	struct reading r = {mode, operand, to};

	*to = (struct usdt_operand){.reg = REGISTER_NONE, .index = REGISTER_NONE, .scale = 1};
	if (!read_size(&r) || !read_place(&r))
		return err_set(err, ERR_FORMAT, "USDT operand '%s' is not understood", operand);
	return 0;
}

int usdt_operands_parse(enum mode mode, const char *text, struct usdt_operand *out, struct err *err)
{
	int n = 0;

	for (;;) {
		char operand[OPERAND_BYTES_MAX];
		size_t bytes;
		int rc;

		text += strspn(text, " \t");
		if (!*text)
			return n;
		bytes = strcspn(text, " \t");
		if (bytes >= sizeof(operand))
			return err_set(err, ERR_LIMIT, "a USDT operand is longer than %d bytes",
				OPERAND_BYTES_MAX - 1);
		if (n == USDT_OPERANDS_MAX)
			return err_set(err, ERR_LIMIT, "a USDT probe has more than %d operands",
				USDT_OPERANDS_MAX);
		memcpy(operand, text, bytes);
		operand[bytes] = 0;
		rc = parse_one(mode, operand, &out[n], err);
		if (rc < 0)
			return rc;
		if (out[n].kind == USDT_SYMBOL) /* found in the copy */
			out[n].symbol = text + (out[n].symbol - operand);
		text += bytes;
		n++;
	}
}
