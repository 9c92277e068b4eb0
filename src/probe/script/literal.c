/* SPDX-License-Identifier: MIT */
/* What numbers and texts of a script stand for. */
#include "probe/script/lex.h"

#include <ctype.h>
#include <string.h>

/* --- numbers ------------------------------------------------------------------------------ */

static const struct suffix {
	const char *text;
	uint64_t factor; /* 0: none, it only says unsigned or long */
	bool is_unsigned;
} suffixes[] = {
	{"ns", 1, false},
	{"us", 1000, false},
	{"ms", 1000000, false},
	{"s", 1000000000, false},
	{"m", 60000000000, false},
	{"h", 3600000000000, false},
	{"d", 86400000000000, false},
	{"u", 0, true},
	{"l", 0, false},
	{"ul", 0, true},
	{"lu", 0, true},
	{"ll", 0, false},
	{"ull", 0, true},
	{"llu", 0, true},
};

static int digit_value(char c)
{
	return isdigit((unsigned char)c) ? c - '0'
	       : c >= 'a' && c <= 'f'	 ? c - 'a' + 10
	       : c >= 'A' && c <= 'F'	 ? c - 'A' + 10
					 : 99;
}

/* Digits of a base with single _ between them; gives how many bytes, 0 and `why` when wrong. */
static size_t read_digits(const char *p, size_t n, unsigned base, uint64_t *value, const char **why)
{
	size_t i = 0;

	*value = 0;
	for (; i < n; i++) {
		if (p[i] == '_') {
			if (!i || p[i - 1] == '_' || i + 1 == n ||
				digit_value(p[i + 1]) >= (int)base) {
				*why = "has a '_' that is not between two digits";
				return 0;
			}
			continue;
		}
		if (digit_value(p[i]) >= (int)base)
			break;
		if (__builtin_mul_overflow(*value, base, value) ||
			__builtin_add_overflow(*value, (uint64_t)digit_value(p[i]), value)) {
			*why = "does not fit into 64 bits";
			return 0;
		}
	}
	if (!i)
		*why = "has no digits";
	return i;
}

/* The e6 of 1e6; gives its bytes, 0 when there is none or it is wrong (then with `why`). */
static size_t read_exponent(const char *p, size_t n, uint64_t *value, const char **why)
{
	uint64_t exponent;
	size_t used;

	if (n < 2 || (*p != 'e' && *p != 'E') || !isdigit((unsigned char)p[1]))
		return 0;
	used = read_digits(p + 1, n - 1, 10, &exponent, why);
	if (!used)
		return 0;
	for (; exponent && *value; exponent--) {
		if (__builtin_mul_overflow(*value, 10u, value)) {
			*why = "does not fit into 64 bits";
			return 0;
		}
	}
	return used + 1;
}

static const struct suffix *find_suffix(const char *p, size_t n, bool with_durations)
{
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		const struct suffix *s = &suffixes[i];

		if (strlen(s->text) != n || (s->factor && !with_durations))
			continue;
		if (s->factor ? !memcmp(p, s->text, n) : !strncasecmp(p, s->text, n))
			return s;
	}
	return NULL;
}

bool literal_number(const char *p, size_t n, uint64_t *value, bool *is_unsigned, const char **why)
{
	unsigned base = 10;
	size_t at = 0, used;
	const struct suffix *suffix;

	*why = NULL;
	if (n > 2 && p[0] == '0' && (p[1] == 'x' || p[1] == 'X'))
		base = 16, at = 2;
	else if (n > 2 && p[0] == '0' && (p[1] == 'b' || p[1] == 'B'))
		base = 2, at = 2;
	else if (n > 1 && p[0] == '0' && isdigit((unsigned char)p[1]))
		base = 8;
	used = read_digits(p + at, n - at, base, value, why);
	if (!used)
		return false;
	at += used;
	if (at < n && isdigit((unsigned char)p[at])) {
		*why = base == 8 ? "begins with 0 and so is octal, which has no 8 and no 9"
				 : "is binary, which has only 0 and 1";
		return false;
	}
	if (base == 10)
		at += read_exponent(p + at, n - at, value, why);
	if (*why)
		return false;
	*is_unsigned = *value > INT64_MAX;
	if (at == n)
		return true;
	suffix = find_suffix(p + at, n - at, base == 10);
	if (!suffix) {
		*why = "ends in letters that mean nothing";
		return false;
	}
	if (suffix->factor && __builtin_mul_overflow(*value, suffix->factor, value)) {
		*why = "does not fit into 64 bits of nanoseconds";
		return false;
	}
	*is_unsigned = *value > INT64_MAX || suffix->is_unsigned;
	return true;
}

/* --- texts -------------------------------------------------------------------------------- */

/* The bytes of an escape behind its backslash, at least 1; `*c` is what it stands for, or -1. */
static size_t read_escape(const char *p, size_t n, int *c)
{
	static const char letters[] = "ntr\\\"'abfve?";
	static const char meanings[] = "\n\t\r\\\"'\a\b\f\v\033?";
	const char *letter = *p ? strchr(letters, *p) : NULL;
	size_t i = 0;

	*c = -1;
	if (letter) {
		*c = (unsigned char)meanings[letter - letters];
		return 1;
	}
	if (*p == 'x') {
		int value = 0;

		for (i = 1; i < 3 && i < n && digit_value(p[i]) < 16; i++)
			value = value * 16 + digit_value(p[i]);
		if (i > 1)
			*c = value;
		return i;
	}
	if (*p >= '0' && *p <= '7') {
		int value = 0;

		for (; i < 3 && i < n && p[i] >= '0' && p[i] <= '7'; i++)
			value = value * 8 + (p[i] - '0');
		if (value <= 255)
			*c = value;
		return i;
	}
	i = utf8_bytes(p, n);
	return i ? i : 1;
}

char *literal_text(const struct lexer *l, struct token t, struct arena *arena, size_t *n)
{
	char *to = arena_zalloc(arena, t.to - t.from);
	uint32_t at = t.from + 1, end = t.to - 1;
	size_t used = 0;

	while (at < end) {
		uint32_t from = at;
		int c = (unsigned char)l->text[at++];

		if (c == '\\' && at < end) {
			at += (uint32_t)read_escape(l->text + at, end - at, &c);
			if (c < 0) {
				diag_error(l->diags, (struct place){l->source_i, from, at, 0},
					"escape", "'%.*s' is no escape that is known",
					(int)(at - from), l->text + from);
				diag_hint(l->diags,
					"a backslash itself is written \\\\; others are \\n \\t "
					"\\r \\\" \\xHH \\OOO");
				c = '?';
			}
		}
		to[used++] = (char)c;
	}
	*n = used;
	return to;
}
