/* SPDX-License-Identifier: MIT */
/*
 * printf of a script: C's conversions on canonical values.
 *
 *   conversion = '%' {'-' | '+' | ' ' | '#' | '0'} [width] ['.' [precision]] {length} letter
 *   letter     = d i u x X o c p s f F e E g G a A r | rx | rh | gr | '%'
 *
 * Values have 64 bits whatever the length says; only h and hh, which somebody wrote to cut, cut. What has
 * at most 32 bits by its type is shown with these, as in C: %x of an int that is -1 is ffffffff.
 * A conversion that does not suit its value shows the value as print() would; one without a value
 * or with an unknown letter stays in the text.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "probe/print/print_internal.h"

#define FORMAT_WIDTH_MAX 4096 /* and precision */

struct conversion {
	char flags[8];
	int width;     /* -1: none */
	int precision; /* -1: none */
	unsigned half; /* h, hh: 1, 2 */
	bool is_long;  /* l, ll, j, z, t, q, L */
	char letter;
	enum print_bytes_form bytes; /* %r, %rx, %rh */
	bool is_gfp;		     /* %gr */
};

static const char *parse_number(const char *c, int *out)
{
	int n = 0;

	for (; *c >= '0' && *c <= '9'; c++)
		if (n < FORMAT_WIDTH_MAX)
			n = n * 10 + (*c - '0');
	*out = n < FORMAT_WIDTH_MAX ? n : FORMAT_WIDTH_MAX;
	return c;
}

/* `c` is behind the '%'. Gives what follows the conversion, or NULL when it is none. */
static const char *parse_conversion(const char *c, struct conversion *v)
{
	size_t n_flags = 0;

	*v = (struct conversion){.width = -1, .precision = -1};
	for (; *c && strchr("-+ #0", *c); c++)
		if (!strchr(v->flags, *c) && n_flags < sizeof(v->flags) - 1)
			v->flags[n_flags++] = *c;
	if (*c >= '1' && *c <= '9')
		c = parse_number(c, &v->width);
	if (*c == '.')
		c = parse_number(c + 1, &v->precision);
	for (; *c && strchr("hljztqL", *c); c++) {
		v->half += *c == 'h';
		v->is_long |= *c != 'h';
	}
	if (!*c || !strchr("diuxXocpsfFeEgGaAr", *c))
		return NULL;
	v->letter = *c++;
	if (v->letter == 'g' && *c == 'r')
		v->is_gfp = *c++ == 'r';
	if (v->letter == 'r' && (*c == 'x' || *c == 'h'))
		v->bytes = *c++ == 'x' ? PRINT_BYTES_ESCAPED : PRINT_BYTES_HEX;
	return c;
}

/* "%-08.3" and what follows: the conversion for snprintf. */
static void make_spec(char *to, size_t bytes, const struct conversion *v, const char *tail)
{
	int n = snprintf(to, bytes, "%%%s", v->flags);

	if (v->width >= 0)
		n += snprintf(to + n, bytes - (size_t)n, "%d", v->width);
	if (v->precision >= 0)
		n += snprintf(to + n, bytes - (size_t)n, ".%d", v->precision);
	snprintf(to + n, bytes - (size_t)n, "%s", tail);
}

static uint64_t cut_to_length(uint64_t v, unsigned half, bool is_signed)
{
	if (!half)
		return v;
	if (half == 1)
		return is_signed ? (uint64_t)(int64_t)(int16_t)v : (uint16_t)v;
	return is_signed ? (uint64_t)(int64_t)(int8_t)v : (uint8_t)v;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static void put_integer(const struct conversion *v, uint64_t number, struct buf *out)
{
	bool is_signed = v->letter == 'd' || v->letter == 'i';
	char spec[64], tail[4] = {'l', 'l', v->letter};

	make_spec(spec, sizeof(spec), v, tail);
	number = cut_to_length(number, v->half, is_signed);
	if (is_signed)
		buf_printf(out, spec, (long long)number);
	else
		buf_printf(out, spec, (unsigned long long)number);
}

static void put_real(const struct conversion *v, double real, struct buf *out)
{
	char spec[64], tail[2] = {v->letter};

	make_spec(spec, sizeof(spec), v, tail);
	buf_printf(out, spec, real);
}
#pragma GCC diagnostic pop

/* By hand: the text may hold NULs. */
static void put_padded(const struct conversion *v, struct span text, bool is_cut, struct buf *out)
{
	size_t n = is_cut && v->precision >= 0 && (size_t)v->precision < text.n
			   ? (size_t)v->precision
			   : text.n;
	size_t pad = v->width > 0 && (size_t)v->width > n ? (size_t)v->width - n : 0;
	bool is_left = strchr(v->flags, '-') != NULL;

	for (size_t i = 0; i < pad && !is_left; i++)
		buf_put_u8(out, ' ');
	buf_put(out, text.p, n);
	for (size_t i = 0; i < pad && is_left; i++)
		buf_put_u8(out, ' ');
}

static void put_pointer(const struct conversion *v, uint64_t number, struct buf *out)
{
	struct buf text = {0};

	buf_printf(&text, "0x%" PRIx64, number);
	put_padded(v, buf_span(&text), false, out);
	buf_release(&text);
}

static void put_text(struct printer *p, const struct conversion *v, const struct shape *s,
	struct span value, struct buf *out)
{
	struct buf text = {0};

	if (v->letter != 'r')
		print_value(p, s, value, PRINT_INDENT_VALUE, 1, &text);
	else if (s->kind == SHAPE_BYTES || s->kind == SHAPE_STRING)
		print_bytes(print_chars(s, value), v->bytes, &text);
	else
		print_bytes(value, v->bytes, &text);
	put_padded(v, buf_span(&text), v->letter == 's', out);
	buf_release(&text);
}

/* The value as an integer, where one can be seen in it. */
static bool integer_of(const struct shape *s, struct span value, uint64_t *out)
{
	struct print_number number;
	double real;

	switch (s->kind) {
	case SHAPE_FLOAT:
		real = print_float_of(s, value);
		*out = 0;
		if (real >= -9223372036854775808.0 && real < 9223372036854775808.0)
			*out = (uint64_t)(int64_t)real;
		return true;
	case SHAPE_KSYM:
	case SHAPE_USYM:
	case SHAPE_PROBE:
	case SHAPE_FUNC:
		*out = print_word(value, 0);
		return true;
	case SHAPE_HIST:
	case SHAPE_LHIST:
	case SHAPE_TSERIES:
	case SHAPE_STATS:
		return false;
	default:
		if (!print_number_of(s, value, &number))
			return false;
		*out = number.v;
		return true;
	}
}

static double real_of(const struct shape *s, struct span value, uint64_t integer)
{
	if (s->kind == SHAPE_FLOAT)
		return print_float_of(s, value);
	return s->is_signed ? (double)(int64_t)integer : (double)integer;
}

static void put_flags(const struct conversion *v, uint64_t flags, struct buf *out)
{
	struct buf text = {0};

	print_gfp_flags(flags, &text);
	put_padded(v, buf_span(&text), false, out);
	buf_release(&text);
}

static void put_conversion(struct printer *p, const struct conversion *v, const struct shape *s,
	struct span value, struct buf *out)
{
	uint64_t integer;
	uint8_t byte;

	if (v->is_gfp && s->kind != SHAPE_FLOAT && integer_of(s, value, &integer)) {
		put_flags(v, integer, out);
	} else if (strchr("sr", v->letter) || !integer_of(s, value, &integer)) {
		put_text(p, v, s, value, out);
	} else if (v->letter == 'c') {
		byte = (uint8_t)integer;
		put_padded(v, (struct span){&byte, 1}, false, out);
	} else if (v->letter == 'p') {
		put_pointer(v, integer, out);
	} else if (strchr("diuxXo", v->letter)) {
		if (s->kind == SHAPE_INT && s->n == sizeof(uint32_t) && !v->is_long) {
			if (!strchr("di", v->letter))
				integer = (uint32_t)integer;
			else if (p->manner->has_int_sign)
				integer = (uint64_t)(int64_t)(int32_t)integer;
		}
		put_integer(v, integer, out);
	} else {
		put_real(v, real_of(s, value, integer), out);
		if (v->is_gfp) /* a floating-point number, and a letter behind it */
			buf_put_u8(out, 'r');
	}
}

void print_format(struct printer *p, const char *text, struct shape *const *args, size_t n_args,
	struct span values, struct buf *out)
{
	size_t arg_i = 0, at = 0, limit = out->n + PRINT_VALUE_BYTES;
	const char *c = text;

	while (*c && out->n < limit) {
		size_t plain = strcspn(c, "%");
		struct conversion v;
		const char *end;
		struct span value;

		buf_put(out, c, plain);
		c += plain;
		if (!*c)
			break;
		end = c[1] == '%' ? NULL : parse_conversion(c + 1, &v);
		if (!end || arg_i >= n_args) {
			buf_put_u8(out, '%');
			c += c[1] == '%' ? 2 : 1;
			continue;
		}
		value = at < values.n ? (struct span){values.p + at, values.n - at}
				      : (struct span){NULL, 0};
		if (value.n > args[arg_i]->size)
			value.n = args[arg_i]->size;
		put_conversion(p, &v, args[arg_i], value, out);
		at += args[arg_i++]->size;
		c = end;
	}
}
