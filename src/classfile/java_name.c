/* SPDX-License-Identifier: MIT */
#include "classfile/java_name.h"

#define DIMENSIONS_MAX 255

/* Bytes of a well-formed character of modified UTF-8; 0 when it is none. */
static size_t character_bytes(struct span text, size_t i)
{
	uint8_t first = text.p[i];
	size_t n = first < 0x80 ? 1 : (first & 0xe0) == 0xc0 ? 2 : (first & 0xf0) == 0xe0 ? 3 : 0;

	if (!first || n > text.n - i)
		return 0;
	for (size_t k = 1; k < n; k++)
		if ((text.p[i + k] & 0xc0) != 0x80)
			return 0;
	/* The shortest form only, but for zero. */
	if ((n == 2 && first < 0xc2 && (first != 0xc0 || text.p[i + 1] != 0x80)) ||
		(n == 3 && first == 0xe0 && text.p[i + 1] < 0xa0))
		return 0;
	return n;
}

static bool is_special(struct span name, const char *special)
{
	return name.n == strlen(special) && !memcmp(name.p, special, name.n);
}

bool java_name_is_legal(struct span name, enum java_name_kind kind)
{
	/* A class's name has / between packages, and . in that of a hidden class of old. */
	static const char *const forbidden[] = {[JAVA_CLASS] = ";[",
		[JAVA_METHOD] = ".;[/<>",
		[JAVA_SIGNATURE] = ".",
		[JAVA_FILE] = ""};

	if (!name.n)
		return false;
	if (kind == JAVA_METHOD && (is_special(name, "<init>") || is_special(name, "<clinit>")))
		return true;
	for (size_t i = 0, n; i < name.n; i += n) {
		n = character_bytes(name, i);
		if (!n || name.p[i] < 0x20 || name.p[i] == 0x7f ||
			strchr(forbidden[kind], name.p[i]))
			return false;
	}
	return true;
}

/* A surrogate of modified UTF-8: three bytes; -1 when there is none. */
static int surrogate_at(struct span text, size_t i)
{
	if (i + 3 > text.n || text.p[i] != 0xed || (text.p[i + 1] & 0xe0) != 0xa0 ||
		(text.p[i + 2] & 0xc0) != 0x80)
		return -1;
	return 0xd000 | (text.p[i + 1] & 0x3f) << 6 | (text.p[i + 2] & 0x3f);
}

static void put_beyond(struct buf *to, uint32_t c)
{
	buf_put_u8(to, (uint8_t)(0xf0 | c >> 18));
	buf_put_u8(to, (uint8_t)(0x80 | (c >> 12 & 0x3f)));
	buf_put_u8(to, (uint8_t)(0x80 | (c >> 6 & 0x3f)));
	buf_put_u8(to, (uint8_t)(0x80 | (c & 0x3f)));
}

void java_text_put(struct buf *to, struct span text)
{
	for (size_t i = 0; i < text.n;) {
		int high = surrogate_at(text, i), low = surrogate_at(text, i + 3);

		if (high >= 0xd800 && high < 0xdc00 && low >= 0xdc00) {
			put_beyond(to, 0x10000u + ((uint32_t)(high & 0x3ff) << 10) +
					       (uint32_t)(low & 0x3ff));
			i += 6;
		} else if (high >= 0 || !text.p[i]) { /* half a character, or none */
			buf_put_u8(to, '?');
			i += high >= 0 ? 3 : 1;
		} else if (text.p[i] == 0xc0) {
			buf_put_u8(to, '?');
			i += 2;
		} else {
			buf_put_u8(to, text.p[i++]);
		}
	}
}

void java_class_put(struct buf *to, struct span name)
{
	size_t from = to->n;

	java_text_put(to, name);
	for (size_t i = from; i < to->n; i++) {
		if (to->p[i] == '/')
			to->p[i] = '.';
		else if (to->p[i] == '+' && i + 2 < to->n && to->p[i + 1] == '0' &&
			 to->p[i + 2] == 'x')
			to->p[i] = '/';
	}
}

static const char *primitive(uint8_t c)
{
	switch (c) {
	case 'B':
		return "byte";
	case 'C':
		return "char";
	case 'D':
		return "double";
	case 'F':
		return "float";
	case 'I':
		return "int";
	case 'J':
		return "long";
	case 'S':
		return "short";
	case 'Z':
		return "boolean";
	default:
		return NULL;
	}
}

static bool type_put(struct buf *to, struct cursor *c)
{
	unsigned dimensions = 0;
	uint8_t first = cursor_u8(c);

	while (first == '[' && dimensions < DIMENSIONS_MAX) {
		dimensions++;
		first = cursor_u8(c);
	}
	if (first == 'L') {
		const uint8_t *end = memchr(c->p, ';', cursor_left(c));

		if (!end)
			return false;
		java_class_put(to, cursor_bytes(c, (uint64_t)(end - c->p)));
		cursor_skip(c, 1);
	} else if (primitive(first)) {
		buf_put_cstr(to, primitive(first));
	} else {
		return false;
	}
	while (dimensions--)
		buf_put_cstr(to, "[]");
	return true;
}

bool java_parameters_put(struct buf *to, struct span signature)
{
	struct cursor c = cursor_of(signature);
	size_t before = to->n;

	if (cursor_u8(&c) != '(')
		return false;
	buf_put_u8(to, '(');
	while (cursor_left(&c) && *c.p != ')') {
		if (to->n > before + 1)
			buf_put_cstr(to, ", ");
		if (!type_put(to, &c)) {
			to->n = before;
			return false;
		}
	}
	buf_put_u8(to, ')');
	if (cursor_u8(&c) != ')')
		to->n = before;
	return to->n > before;
}
