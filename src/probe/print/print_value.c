/* SPDX-License-Identifier: MIT */
/*
 * Canonical values (stream/shape.h) as text and as JSON.
 *
 * Texts follow bpftrace's: (1, abc), { .a = 1, .b = abc }, [1,2,3]; pointers in hex; a stack begins
 * with a newline and has a function a line. So does JSON: numbers (pointers too), texts, tuples and
 * arrays as arrays, structs as objects. It is always valid: what is not UTF-8 becomes U+FFFD, what is
 * no number null.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/order.h"
#include "probe/print/print_internal.h"

#define TIME_TEXT_MAX 1024

uint64_t print_word(struct span value, uint64_t at)
{
	struct cursor c = cursor_of(span_sub(value, at, sizeof(uint64_t)));

	return cursor_u64(&c);
}

uint32_t print_half_word(struct span value, uint64_t at)
{
	struct cursor c = cursor_of(span_sub(value, at, sizeof(uint32_t)));

	return cursor_u32(&c);
}

static struct span cut(struct span s, uint64_t n)
{
	return (struct span){s.p, s.n < n ? s.n : (size_t)n};
}

struct span print_chars(const struct shape *s, struct span value)
{
	const uint8_t *nul;
	struct span chars;

	if (s->kind == SHAPE_BYTES) {
		uint32_t n = print_half_word(value, 0);

		chars = value.n > 8 ? cut((struct span){value.p + 8, value.n - 8}, s->n)
				    : (struct span){NULL, 0};
		return cut(chars, n);
	}
	chars = cut(value, s->n);
	nul = chars.n ? memchr(chars.p, 0, chars.n) : NULL;
	return nul ? cut(chars, (uint64_t)(nul - chars.p)) : chars;
}

/* --- numbers ---------------------------------------------------------------------------------- */

static struct print_number average(const struct shape *s, struct span value)
{
	uint64_t n = print_word(value, 0), sum = print_word(value, 8);
	struct print_number of = {sum, s->is_signed};

	return print_number_divided(of, n ? n : 1);
}

bool print_number_of(const struct shape *s, struct span value, struct print_number *out)
{
	*out = (struct print_number){print_word(value, 0), s->is_signed};
	switch (s->kind) {
	case SHAPE_INT:
	case SHAPE_SUM:
		return true;
	case SHAPE_POINTER:
	case SHAPE_COUNT:
		out->is_signed = false;
		return true;
	case SHAPE_MIN:
	case SHAPE_MAX:
	case SHAPE_STATS:
		out->v = print_word(value, 8);
		return true;
	case SHAPE_AVG:
		*out = average(s, value);
		return true;
	case SHAPE_HIST:
	case SHAPE_LHIST:
		*out = (struct print_number){print_hist_total(s, value), false};
		return true;
	default:
		return false;
	}
}

struct print_number print_number_divided(struct print_number n, uint64_t div)
{
	if (div <= 1)
		return n;
	if (!n.is_signed || (int64_t)n.v >= 0)
		return (struct print_number){n.v / div, n.is_signed};
	return (struct print_number){0 - (0 - n.v) / div, true};
}

void print_number(struct print_number n, struct buf *out)
{
	if (n.is_signed)
		buf_printf(out, "%" PRId64, (int64_t)n.v);
	else
		buf_printf(out, "%" PRIu64, n.v);
}

int print_number_compare(struct print_number a, struct print_number b)
{
	if (a.is_signed && b.is_signed)
		return ORDER((int64_t)a.v, (int64_t)b.v);
	return ORDER(a.v, b.v);
}

double print_float_of(const struct shape *s, struct span value)
{
	uint64_t bits = print_word(value, 0);
	uint32_t low = (uint32_t)bits;
	double wide;
	float narrow;

	if (s->n == sizeof(narrow)) {
		memcpy(&narrow, &low, sizeof(narrow));
		return (double)narrow;
	}
	memcpy(&wide, &bits, sizeof(wide));
	return wide;
}

/* --- parts ------------------------------------------------------------------------------------ */

/* The bits of a member as a canonical word. */
static uint64_t member_word(const struct shape_field *f, struct span bytes)
{
	struct span at = span_sub(bytes, f->offset, f->bytes);
	unsigned size = f->bit_size ? f->bit_size : 8u * f->bytes;
	long double extended = 0;
	uint64_t word = 0;

	if (!at.p)
		return 0;
	if (f->shape->kind == SHAPE_FLOAT && f->bytes > 8) { /* x87: 10 bytes of 12 or 16 */
		double wide;

		memcpy(&extended, at.p, f->bytes < sizeof(extended) ? f->bytes : sizeof(extended));
		wide = (double)extended;
		memcpy(&word, &wide, sizeof(wide));
		return word;
	}
	memcpy(&word, at.p, f->bytes < 8 ? f->bytes : 8);
	if (f->bit_size)
		word = f->bit_offset < 64 ? word >> f->bit_offset : 0;
	if (size >= 64)
		return word;
	word &= ((uint64_t)1 << size) - 1;
	if (f->shape->is_signed && f->shape->kind == SHAPE_INT && size && word >> (size - 1))
		word |= ~(uint64_t)0 << size;
	return word;
}

void print_part_of(
	const struct shape *s, uint32_t field_i, struct span value, struct print_part *out)
{
	const struct shape_field *f = &s->fields[field_i];

	*out = (struct print_part){.shape = f->shape, .name = f->name};
	if (f->offset < value.n)
		out->value = cut((struct span){value.p + f->offset, value.n - f->offset},
			f->shape->size ? f->shape->size : UINT64_MAX);
	if (s->kind != SHAPE_STRUCT)
		return;
	switch (f->shape->kind) {
	case SHAPE_INT:
	case SHAPE_POINTER:
	case SHAPE_FLOAT:
		out->word = member_word(f, value);
		out->value = (struct span){(const uint8_t *)&out->word, sizeof(out->word)};
		break;
	case SHAPE_BYTES:
		out->is_raw = true;
		out->value = cut(out->value, f->shape->n);
		break;
	default:
		out->value = cut(out->value, f->shape->n ? f->shape->n : f->shape->size);
	}
}

/* An array is a struct whose members have no names. */
bool print_is_array(const struct shape *s)
{
	if (s->kind != SHAPE_STRUCT || !s->n_fields)
		return false;
	for (uint32_t i = 0; i < s->n_fields; i++)
		if (s->fields[i].name)
			return false;
	return true;
}

void print_bytes(struct span bytes, enum print_bytes_form form, struct buf *out)
{
	for (size_t i = 0; i < bytes.n; i++) {
		uint8_t c = bytes.p[i];

		if (form == PRINT_BYTES_HEX)
			buf_printf(out, i ? " %02x" : "%02x", c);
		else if (form == PRINT_BYTES_MIXED && c >= 0x20 && c < 0x7f)
			buf_put_u8(out, c);
		else
			buf_printf(out, "\\x%02x", c);
	}
}

void print_json_string(struct span text, struct buf *out)
{
	static const char escaped[] = "\"\\\n\r\t", letters[] = "\"\\nrt";

	buf_put_u8(out, '"');
	for (size_t i = 0; i < text.n;) {
		const uint8_t *p = text.p + i;
		size_t n = utf8_bytes((const char *)p, text.n - i);
		uint8_t c = *p;
		const char *letter = c ? strchr(escaped, c) : NULL;

		if (letter)
			buf_printf(out, "\\%c", letters[letter - escaped]);
		else if (c < 0x20 || c == 0x7f)
			buf_printf(out, "\\u%04x", c);
		else if (n)
			buf_put(out, p, n);
		else
			buf_put_cstr(out, "\xef\xbf\xbd");
		i += n ? n : 1;
	}
	buf_put_u8(out, '"');
}

/* --- what values refer to --------------------------------------------------------------------- */

bool print_find_symbol(struct printer *p, const struct shape *s, struct span value,
	uint64_t address, struct printer_symbol *out)
{
	if (s->kind == SHAPE_USTACK || s->kind == SHAPE_USYM)
		return p->names.user_symbol &&
		       p->names.user_symbol(p->names.ctx, print_half_word(value, 8),
			       print_half_word(value, 12), address, out);
	return p->names.kernel_symbol && p->names.kernel_symbol(p->names.ctx, address, out);
}

static void print_name(struct printer *p, const struct shape *s, struct span value, struct buf *out)
{
	uint64_t site = print_word(value, 0);
	const char *name =
		p->names.site ? p->names.site(p->names.ctx, site, s->kind == SHAPE_FUNC) : NULL;

	if (name)
		buf_put_cstr(out, name);
	else
		buf_printf(out, "%" PRIu64, site);
}

static void print_inet(struct span value, struct buf *out)
{
	int family = print_word(value, 0) == 16 ? AF_INET6 : AF_INET;
	struct span bytes = span_sub(value, 8, family == AF_INET6 ? 16 : 4);
	char text[INET6_ADDRSTRLEN];

	if (bytes.p && inet_ntop(family, bytes.p, text, sizeof(text)))
		buf_put_cstr(out, text);
}

/* strftime knows no fractions: %f is replaced first. */
static void put_microseconds(const char *format, unsigned us, struct buf *out)
{
	for (const char *c = format; *c; c++) {
		if (c[0] == '%' && c[1] == 'f') {
			buf_printf(out, "%06u", us);
			c++;
		} else {
			buf_put_u8(out, (uint8_t)*c);
			if (c[0] == '%' && c[1]) /* %%f is no fraction */
				buf_put_u8(out, (uint8_t) * ++c);
		}
	}
}

void print_time(const char *format, clockid_t clock, uint64_t time_ns, struct buf *out)
{
	uint64_t wall = time_ns + (clock_read_ns(CLOCK_REALTIME) - clock_read_ns(clock));
	time_t seconds = (time_t)(wall / 1000000000u);
	struct buf full = {0};
	char text[TIME_TEXT_MAX];
	struct tm tm;

	put_microseconds(format, (unsigned)(wall % 1000000000u / 1000u), &full);
	if (localtime_r(&seconds, &tm))
		buf_put(out, text, strftime(text, sizeof(text), buf_text(&full), &tm));
	buf_release(&full);
}

static void print_strftime(struct printer *p, struct span value, struct buf *out)
{
	uint64_t number = print_word(value, 8);

	if (p->stream && number < p->stream->strings.n && p->stream->strings.v[number])
		print_time(p->stream->strings.v[number], CLOCK_BOOTTIME, print_word(value, 0), out);
	else
		buf_printf(out, "%" PRIu64, print_word(value, 0));
}

/* --- everything ------------------------------------------------------------------------------- */

struct print_state {
	struct printer *p;
	struct buf *out;
	size_t limit; /* of out->n */
	unsigned indent;
	uint64_t div;
	bool is_json, is_key;
	const struct print_manner *manner;
};

static void print_any(
	struct print_state *t, const struct shape *s, struct span value, unsigned depth);

/* Bytes that have no length in front. */
static void print_raw(struct print_state *t, struct span bytes)
{
	struct buf text = {0};

	print_bytes(bytes, PRINT_BYTES_MIXED, &text);
	if (t->is_json)
		print_json_string(buf_span(&text), t->out);
	else
		buf_put(t->out, text.p, text.n);
	buf_release(&text);
}

static void print_part(struct print_state *t, const struct print_part *part, unsigned depth)
{
	if (part->is_raw)
		print_raw(t, part->value);
	else
		print_any(t, part->shape, part->value, depth);
}

static bool is_tight(const struct print_state *t)
{
	return t->is_key && t->manner->has_tight_keys;
}

static void print_member_name(struct print_state *t, const char *name)
{
	if (t->is_json) {
		print_json_string(
			(struct span){(const uint8_t *)name, name ? strlen(name) : 0}, t->out);
		buf_put_cstr(t->out, ": ");
	} else if (name) {
		buf_printf(t->out, is_tight(t) ? ".%s=" : ".%s = ", name);
	}
}

/* Members of a member without a name are those of the outer struct. Gives whether any is there. */
static bool print_members(struct print_state *t, const struct shape *s, struct span value,
	unsigned depth, bool has_some)
{
	for (uint32_t i = 0; i < s->n_fields && t->out->n < t->limit; i++) {
		struct print_part part;

		print_part_of(s, i, value, &part);
		if (!part.name && part.shape->kind == SHAPE_STRUCT && part.shape->n_fields &&
			!print_is_array(part.shape) && depth + 1 < PRINT_DEPTH_MAX) {
			has_some = print_members(t, part.shape, part.value, depth + 1, has_some);
			continue;
		}
		buf_put_cstr(t->out, !has_some ? "" : is_tight(t) ? "," : ", ");
		has_some = true;
		print_member_name(t, part.name);
		print_part(t, &part, depth + 1);
	}
	return has_some;
}

static void print_list(struct print_state *t, const struct shape *s, struct span value,
	const char *separator, unsigned depth)
{
	for (uint32_t i = 0; i < s->n_fields && t->out->n < t->limit; i++) {
		struct print_part part;

		print_part_of(s, i, value, &part);
		buf_put_cstr(t->out, i ? separator : "");
		print_part(t, &part, depth + 1);
	}
}

static void print_compound(
	struct print_state *t, const struct shape *s, struct span value, unsigned depth)
{
	if (depth >= PRINT_DEPTH_MAX || t->out->n >= t->limit) {
		buf_put_cstr(t->out, t->is_json ? "null" : "...");
	} else if (s->kind == SHAPE_TUPLE && !shape_is_record(s) && !t->is_json) {
		buf_put_u8(t->out, '(');
		print_list(t, s, value, ", ", depth);
		buf_put_u8(t->out, ')');
	} else if ((s->kind == SHAPE_TUPLE && !shape_is_record(s)) || print_is_array(s)) {
		buf_put_u8(t->out, '[');
		print_list(t, s, value, ",", depth);
		buf_put_u8(t->out, ']');
	} else if (s->n_fields) {
		bool is_spaced = t->is_json ? t->manner->has_spaced_objects : !is_tight(t);

		buf_put_cstr(t->out, is_spaced ? "{ " : "{");
		print_members(t, s, value, depth, false);
		buf_put_cstr(t->out, is_spaced ? " }" : "}");
	} else {
		print_raw(t, cut(value, s->n));
	}
}

static void print_stats(const struct print_state *t, const struct shape *s, struct span value)
{
	static const char *const forms[][4] = {
		{"{ .count = ", ", .average = ", ", .total = ", " }"},
		{"{\"count\": ", ", \"average\": ", ", \"total\": ", "}"},
		{"count ", ", average ", ", total ", ""}};
	const char *const *form = forms[t->is_json ? 1 : t->manner->has_stats_in_words ? 2 : 0];
	struct print_number total = {print_word(value, 8), s->is_signed};

	buf_printf(t->out, "%s%" PRIu64 "%s", form[0], print_word(value, 0), form[1]);
	print_number(print_number_divided(average(s, value), t->div), t->out);
	buf_put_cstr(t->out, form[2]);
	print_number(print_number_divided(total, t->div), t->out);
	buf_put_cstr(t->out, form[3]);
}

static void print_symbol(
	struct printer *p, const struct shape *s, struct span value, struct buf *out)
{
	uint64_t address = print_word(value, 0);
	struct printer_symbol symbol = {0};
	bool is_known = print_find_symbol(p, s, value, address, &symbol);

	if (is_known && symbol.name)
		buf_put_cstr(out, symbol.name);
	else
		buf_printf(out, "0x%" PRIx64, address);
}

/* What is a text in either form. */
static void print_text(
	const struct print_state *t, const struct shape *s, struct span value, struct buf *out)
{
	struct span chars;

	switch (s->kind) {
	case SHAPE_STRING:
		chars = print_chars(s, value);
		buf_put(out, chars.p, chars.n);
		break;
	case SHAPE_BYTES:
		print_bytes(print_chars(s, value), PRINT_BYTES_MIXED, out);
		break;
	case SHAPE_USTACK:
	case SHAPE_KSTACK:
		print_stack(t->p, s, value, t->indent, out);
		break;
	case SHAPE_USYM:
	case SHAPE_KSYM:
		print_symbol(t->p, s, value, out);
		break;
	case SHAPE_PROBE:
	case SHAPE_FUNC:
		print_name(t->p, s, value, out);
		break;
	case SHAPE_TIME:
		print_strftime(t->p, value, out);
		break;
	case SHAPE_INET:
		print_inet(value, out);
		break;
	case SHAPE_NAME:
		print_name_of(t->p->stream, value, out);
		break;
	default:
		break;
	}
}

static void print_real(const struct print_state *t, double real)
{
	if (!t->is_json)
		buf_printf(t->out, "%g", real);
	else if (isfinite(real))
		buf_printf(t->out, "%.17g", real);
	else
		buf_put_cstr(t->out, "null");
}

static void print_any_series(const struct print_state *t, const struct shape *s, struct span value)
{
	uint64_t last;

	if (t->is_json)
		print_series_json(s, value, t->div, t->out);
	else if (print_series_last(s, value, &last))
		print_series(s, value, last, t->div, t->out);
}

/* The name of a number in "RED=0 GREEN=5"; of two the first. */
static struct span find_enumerator(const char *enumerators, int64_t number)
{
	const char *at = enumerators, *equals;

	while (*at && (equals = strchr(at, '=')) != NULL) {
		if (strtoll(equals + 1, NULL, 10) == number)
			return (struct span){(const uint8_t *)at, (size_t)(equals - at)};
		at = equals + strcspn(equals, " ");
		at += *at == ' ';
	}
	return (struct span){NULL, 0};
}

/* true, false and names of enumerators; in JSON an enumerator is the number that it always was. */
static bool print_word_as_name(struct print_state *t, const struct shape *s, uint64_t word)
{
	struct span name = {NULL, 0};

	if (t->manner->has_plain_numbers)
		return false;
	if (s->is_bool) {
		buf_put_cstr(t->out, word ? "true" : "false");
		return true;
	}
	if (s->enumerators && !t->is_json)
		name = find_enumerator(s->enumerators, (int64_t)word);
	buf_put(t->out, name.p, name.n);
	return name.n;
}

static bool has_hexadecimal(const struct print_state *t)
{
	return !t->is_json && (t->is_key || !t->manner->has_decimal_pointers);
}

/* Whatever its type. */
static bool has_sign(const struct print_state *t, const struct shape *s)
{
	if (s->kind == SHAPE_POINTER)
		return t->manner->has_decimal_pointers;
	return s->kind == SHAPE_INT && t->is_key && t->manner->has_signed_keys;
}

static void print_any(
	struct print_state *t, const struct shape *s, struct span value, unsigned depth)
{
	struct print_number number;
	struct buf text = {0};

	switch (s->kind) {
	case SHAPE_NONE:
		buf_put_cstr(t->out, t->is_json ? "null" : "");
		break;
	case SHAPE_FLOAT:
		print_real(t, print_float_of(s, value));
		break;
	case SHAPE_STRUCT:
	case SHAPE_TUPLE:
		print_compound(t, s, value, depth);
		break;
	case SHAPE_STATS:
		print_stats(t, s, value);
		break;
	case SHAPE_HIST:
	case SHAPE_LHIST:
		(t->is_json ? print_hist_json : print_hist)(s, value, t->div, t->out);
		break;
	case SHAPE_TSERIES:
		print_any_series(t, s, value);
		break;
	default:
		if (s->kind == SHAPE_INT && print_word_as_name(t, s, print_word(value, 0))) {
			break;
		} else if (s->kind == SHAPE_POINTER && has_hexadecimal(t)) {
			buf_printf(t->out, "0x%" PRIx64, print_word(value, 0));
		} else if (print_number_of(s, value, &number)) {
			number.is_signed |= has_sign(t, s);
			print_number(print_number_divided(number, t->div), t->out);
		} else if (t->is_json) {
			print_text(t, s, value, &text);
			print_json_string(buf_span(&text), t->out);
			buf_release(&text);
		} else {
			print_text(t, s, value, t->out);
		}
	}
}

void print_value(struct printer *p, const struct shape *s, struct span value, unsigned indent,
	uint64_t div, struct buf *out)
{
	struct print_state t = {.p = p,
		.out = out,
		.limit = out->n + PRINT_VALUE_BYTES,
		.indent = indent,
		.div = div,
		.is_key = indent == PRINT_INDENT_KEY,
		.manner = p->manner};

	print_any(&t, s, value, 0);
}

void print_value_json(
	struct printer *p, const struct shape *s, struct span value, uint64_t div, struct buf *out)
{
	struct print_state t = {.p = p,
		.out = out,
		.limit = out->n + PRINT_VALUE_BYTES,
		.indent = PRINT_INDENT_VALUE,
		.div = div,
		.is_json = true,
		.manner = p->manner};

	print_any(&t, s, value, 0);
}
