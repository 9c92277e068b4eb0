/* SPDX-License-Identifier: MIT */
/*
 * Values as JSON, one line a record as bpftrace has it: numbers (pointers too), texts, tuples and
 * arrays as arrays, structs as objects. Always valid: what is not UTF-8 becomes U+FFFD, what is no
 * number null.
 */
#include <math.h>
#include <string.h>

#include "probe/print/print_internal.h"

/* Bytes of the character at the begin of `s`, 0 when it is none (RFC 3629 section 4). */
static size_t utf8_length(struct span s)
{
	uint8_t c = s.p[0];
	size_t n = c < 0x80 ? 1 : c >= 0xc2 && c <= 0xdf ? 2 : (c & 0xf0) == 0xe0 ? 3 : 4;

	if (n == 1)
		return 1;
	if (c < 0xc2 || c > 0xf4 || n > s.n)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((s.p[i] & 0xc0) != 0x80)
			return 0;
	/* Too long a form, surrogates, beyond U+10FFFF. */
	if ((c == 0xe0 && s.p[1] < 0xa0) || (c == 0xed && s.p[1] > 0x9f) ||
		(c == 0xf0 && s.p[1] < 0x90) || (c == 0xf4 && s.p[1] > 0x8f))
		return 0;
	return n;
}

static const char *short_escape(uint8_t c)
{
	switch (c) {
	case '"':
		return "\\\"";
	case '\\':
		return "\\\\";
	case '\n':
		return "\\n";
	case '\r':
		return "\\r";
	case '\t':
		return "\\t";
	default:
		return NULL;
	}
}

void print_json_string(struct span text, struct buf *out)
{
	buf_put_u8(out, '"');
	for (size_t i = 0; i < text.n;) {
		struct span rest = {text.p + i, text.n - i};
		size_t n = utf8_length(rest);
		uint8_t c = rest.p[0];

		if (short_escape(c))
			buf_put_cstr(out, short_escape(c));
		else if (c < 0x20 || c == 0x7f)
			buf_printf(out, "\\u%04x", c);
		else if (n)
			buf_put(out, rest.p, n);
		else
			buf_put_cstr(out, "\xef\xbf\xbd");
		i += n ? n : 1;
	}
	buf_put_u8(out, '"');
}

struct json_state {
	struct printer *p;
	struct buf *out;
	size_t limit; /* of out->n */
	uint64_t div;
};

static void put_any(struct json_state *j, const struct shape *s, struct span value, unsigned depth);

static void put_part(struct json_state *j, const struct print_part *part, unsigned depth)
{
	struct buf text = {0};

	if (!part->is_raw) {
		put_any(j, part->shape, part->value, depth);
		return;
	}
	print_bytes(part->value, PRINT_BYTES_MIXED, &text);
	print_json_string(buf_span(&text), j->out);
	buf_release(&text);
}

static void put_list(struct json_state *j, const struct shape *s, struct span value, unsigned depth)
{
	buf_put_u8(j->out, '[');
	for (uint32_t i = 0; i < s->n_fields && j->out->n < j->limit; i++) {
		struct print_part part;

		print_part_of(s, i, value, &part);
		if (i)
			buf_put_u8(j->out, ',');
		put_part(j, &part, depth + 1);
	}
	buf_put_u8(j->out, ']');
}

/* Members of a member without a name are those of the outer struct. Gives whether any is there. */
static bool put_members(struct json_state *j, const struct shape *s, struct span value,
	unsigned depth, bool has_some)
{
	for (uint32_t i = 0; i < s->n_fields && j->out->n < j->limit; i++) {
		struct print_part part;

		print_part_of(s, i, value, &part);
		if (!part.name && part.shape->kind == SHAPE_STRUCT && part.shape->n_fields &&
			!print_is_array(part.shape) && depth + 1 < PRINT_DEPTH_MAX) {
			has_some = put_members(j, part.shape, part.value, depth + 1, has_some);
			continue;
		}
		if (has_some)
			buf_put_cstr(j->out, ", ");
		has_some = true;
		print_json_string((struct span){(const uint8_t *)part.name,
					  part.name ? strlen(part.name) : 0},
			j->out);
		buf_put_cstr(j->out, ": ");
		put_part(j, &part, depth + 1);
	}
	return has_some;
}

static void put_stats(struct json_state *j, const struct shape *s, struct span value)
{
	struct shape as = *s;
	struct print_number average, total = {print_word(value, 8), s->is_signed};

	as.kind = SHAPE_AVG;
	print_number_of(&as, value, &average);
	buf_printf(j->out, "{\"count\": %lu, \"average\": ", print_word(value, 0));
	print_number(print_number_divided(average, j->div), j->out);
	buf_put_cstr(j->out, ", \"total\": ");
	print_number(print_number_divided(total, j->div), j->out);
	buf_put_u8(j->out, '}');
}

static void put_text(struct json_state *j, const struct shape *s, struct span value)
{
	struct buf text = {0};

	print_value(j->p, s, value, PRINT_INDENT_VALUE, j->div, &text);
	print_json_string(buf_span(&text), j->out);
	buf_release(&text);
}

static void put_any(struct json_state *j, const struct shape *s, struct span value, unsigned depth)
{
	struct print_number number;
	double real;

	switch (s->kind) {
	case SHAPE_NONE:
		buf_put_cstr(j->out, "null");
		break;
	case SHAPE_FLOAT:
		real = print_float_of(s, value);
		if (isfinite(real))
			buf_printf(j->out, "%.17g", real);
		else
			buf_put_cstr(j->out, "null");
		break;
	case SHAPE_STRUCT:
	case SHAPE_TUPLE:
		if (depth >= PRINT_DEPTH_MAX || j->out->n >= j->limit) {
			buf_put_cstr(j->out, "null");
		} else if (s->kind == SHAPE_TUPLE || print_is_array(s)) {
			put_list(j, s, value, depth);
		} else if (s->n_fields) {
			buf_put_u8(j->out, '{');
			put_members(j, s, value, depth, false);
			buf_put_u8(j->out, '}');
		} else {
			put_text(j, s, value);
		}
		break;
	case SHAPE_STATS:
		put_stats(j, s, value);
		break;
	case SHAPE_HIST:
	case SHAPE_LHIST:
		print_hist_json(s, value, j->div, j->out);
		break;
	default:
		if (print_number_of(s, value, &number))
			print_number(print_number_divided(number, j->div), j->out);
		else
			put_text(j, s, value);
	}
}

void print_value_json(
	struct printer *p, const struct shape *s, struct span value, uint64_t div, struct buf *out)
{
	struct json_state j = {.p = p, .out = out, .limit = out->n + PRINT_VALUE_BYTES, .div = div};

	put_any(&j, s, value, 0);
}
