/* SPDX-License-Identifier: MIT */
#include "classfile/class_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

#define CLASS_MAGIC	0xcafebabeu
#define ARRAY_DEPTH_MAX 255

enum constant_tag { CONSTANT_UTF8 = 1, CONSTANT_LONG = 5, CONSTANT_DOUBLE = 6 };

static int damaged(struct err *err, const char *what)
{
	return err_set(err, ERR_FORMAT, "class file: %s", what);
}

/* JVMS 4.4: bytes behind the tag; 0 = not known. Utf8 says its own. */
static unsigned constant_bytes(uint8_t tag)
{
	static const uint8_t bytes[] = {[3] = 4,
		[4] = 4,
		[5] = 8,
		[6] = 8,
		[7] = 2,
		[8] = 2,
		[9] = 4,
		[10] = 4,
		[11] = 4,
		[12] = 4,
		[15] = 3,
		[16] = 2,
		[17] = 4,
		[18] = 4,
		[19] = 2,
		[20] = 2};

	return tag < sizeof(bytes) ? bytes[tag] : 0;
}

static uint32_t place_of(const struct class_file *c, const struct cursor *at)
{
	return (uint32_t)(at->p - c->bytes.p);
}

static int read_constants(struct class_file *c, struct cursor *in, struct err *err)
{
	uint16_t n = cursor_be16(in);

	vec_ensure_zero(&c->constants, (size_t)n + 1);
	c->constants.n = n;
	for (uint32_t i = 1; i < n; i++) {
		uint32_t at = place_of(c, in);
		uint8_t tag = cursor_u8(in);
		unsigned bytes = tag == CONSTANT_UTF8 ? cursor_be16(in) : constant_bytes(tag);

		if (tag != CONSTANT_UTF8 && !bytes)
			return damaged(err, "a kind of constant that is not known");
		cursor_skip(in, bytes);
		if (in->failed)
			return damaged(err, "it ends within its constants");
		c->constants.v[i] = at;
		if ((tag == CONSTANT_LONG || tag == CONSTANT_DOUBLE) && ++i >= n) /* two numbers */
			return damaged(err, "its last constant needs one more number");
	}
	c->constants_end = place_of(c, in);
	return 0;
}

struct span class_file_text(const struct class_file *c, uint32_t constant)
{
	struct cursor in;

	if (constant >= c->constants.n || !c->constants.v[constant])
		return (struct span){NULL, 0};
	in = cursor_of(span_sub(
		c->bytes, c->constants.v[constant], c->bytes.n - c->constants.v[constant]));
	if (cursor_u8(&in) != CONSTANT_UTF8)
		return (struct span){NULL, 0};
	return cursor_bytes(&in, cursor_be16(&in));
}

bool class_file_text_is(const struct class_file *c, uint32_t constant, const char *text)
{
	return span_equal(
		class_file_text(c, constant), (struct span){(const uint8_t *)text, strlen(text)});
}

uint16_t class_file_part(const struct class_file *c, uint32_t constant, unsigned i)
{
	struct cursor in;
	uint8_t tag;

	if (constant >= c->constants.n || !c->constants.v[constant])
		return 0;
	in = cursor_of(span_sub(
		c->bytes, c->constants.v[constant], c->bytes.n - c->constants.v[constant]));
	tag = cursor_u8(&in);
	if (tag == CONSTANT_UTF8 || (i + 1) * 2 > constant_bytes(tag))
		return 0;
	cursor_skip(&in, i * 2);
	return cursor_be16(&in);
}

static char *text_copy(const struct class_file *c, uint32_t constant)
{
	struct span text = class_file_text(c, constant);

	return text.p ? mem_strndup((const char *)text.p, text.n) : NULL;
}

static char *class_name(const struct class_file *c, uint32_t constant)
{
	char *name = text_copy(c, class_file_part(c, constant, 0));

	for (char *p = name; p && *p; p++)
		if (*p == '/')
			*p = '.';
	return name;
}

/* The line with the lowest address. */
static uint32_t first_line(struct cursor *in)
{
	uint32_t n = cursor_be16(in), best = 0, best_pc = UINT32_MAX;

	for (uint32_t i = 0; i < n && !in->failed; i++) {
		uint32_t pc = cursor_be16(in), line = cursor_be16(in);

		if (pc < best_pc && !in->failed) {
			best_pc = pc;
			best = line;
		}
	}
	return best;
}

/* `in` is behind the attribute's length. */
static void read_code(const struct class_file *c, struct class_method *m, struct cursor in)
{
	cursor_skip(&in, 4);
	cursor_skip(&in, cursor_be32(&in));
	cursor_skip(&in, 8 * (uint64_t)cursor_be16(&in));
	for (uint32_t n = cursor_be16(&in); n && !in.failed; n--) {
		uint16_t name = cursor_be16(&in);
		struct cursor content = cursor_of(cursor_bytes(&in, cursor_be32(&in)));

		if (!m->line && class_file_text_is(c, name, "LineNumberTable"))
			m->line = first_line(&content);
	}
}

static int read_method(struct class_file *c, struct cursor *in, struct err *err)
{
	struct class_method m = {.at = place_of(c, in)};

	m.flags = cursor_be16(in);
	m.name = text_copy(c, cursor_be16(in));
	m.descriptor = text_copy(c, cursor_be16(in));
	for (uint32_t n = cursor_be16(in); n && !in->failed; n--) {
		uint32_t at = place_of(c, in);
		uint16_t name = cursor_be16(in);
		struct span content = cursor_bytes(in, cursor_be32(in));

		if (!in->failed && class_file_text_is(c, name, "Code")) {
			m.code_at = at;
			read_code(c, &m, cursor_of(content));
		}
	}
	m.end = place_of(c, in);
	vec_push(&c->methods, m);
	if (in->failed || !m.name || !m.descriptor || m.descriptor[0] != '(')
		return damaged(err, "a method is damaged");
	return 0;
}

static void skip_fields(struct cursor *in)
{
	for (uint32_t n = cursor_be16(in); n && !in->failed; n--) {
		cursor_skip(in, 6);
		for (uint32_t k = cursor_be16(in); k && !in->failed; k--) {
			cursor_skip(in, 2);
			cursor_skip(in, cursor_be32(in));
		}
	}
}

static void read_attributes(struct class_file *c, struct cursor *in)
{
	for (uint32_t n = cursor_be16(in); n && !in->failed; n--) {
		uint16_t name = cursor_be16(in);
		struct cursor content = cursor_of(cursor_bytes(in, cursor_be32(in)));

		if (!c->source && class_file_text_is(c, name, "SourceFile"))
			c->source = text_copy(c, cursor_be16(&content));
	}
}

static int read_class(struct class_file *c, struct err *err)
{
	struct cursor in = cursor_of(c->bytes);
	int rc;

	if (cursor_be32(&in) != CLASS_MAGIC)
		return damaged(err, "it does not begin as class files do");
	cursor_skip(&in, 2);
	c->major = cursor_be16(&in);
	rc = read_constants(c, &in, err);
	if (rc < 0)
		return rc;
	cursor_skip(&in, 2);
	c->self = cursor_be16(&in);
	c->name = class_name(c, c->self);
	c->super = cursor_be16(&in);
	cursor_skip(&in, 2 * (uint64_t)cursor_be16(&in)); /* interfaces */
	skip_fields(&in);
	c->methods_at = place_of(c, &in);
	for (uint32_t n = cursor_be16(&in); rc == 0 && n; n--)
		rc = read_method(c, &in, err);
	if (rc < 0)
		return rc;
	read_attributes(c, &in);
	if (in.failed || !c->name || cursor_left(&in))
		return damaged(err, "it is damaged");
	return 0;
}

int class_file_read(struct class_file *c, struct span bytes, struct err *err)
{
	int rc;

	*c = (struct class_file){.bytes = bytes};
	rc = bytes.n <= CLASS_FILE_BYTES_MAX ? read_class(c, err) : damaged(err, "it is too long");
	if (rc < 0)
		class_file_release(c);
	return rc;
}

void class_file_release(struct class_file *c)
{
	for (size_t i = 0; i < c->methods.n; i++) {
		free(c->methods.v[i].name);
		free(c->methods.v[i].descriptor);
	}
	vec_release(&c->methods);
	vec_release(&c->constants);
	free(c->name);
	free(c->source);
	*c = (struct class_file){0};
}

/* --- names ------------------------------------------------------------------------------- */

static const char *primitive_name(char letter)
{
	switch (letter) {
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

/* One type of a descriptor, as Java writes it; where the next one begins, or NULL. */
static const char *put_type(struct buf *to, const char *s)
{
	const char *simple, *end;
	int depth = 0;

	for (; *s == '[' && depth < ARRAY_DEPTH_MAX; s++)
		depth++;
	simple = primitive_name(*s);
	end = simple ? s + 1 : *s == 'L' ? strchr(s, ';') : NULL;
	if (!end)
		return NULL;
	if (simple) {
		buf_put_cstr(to, simple);
	} else {
		for (s++; s < end; s++)
			buf_put_u8(to, *s == '/' ? '.' : (uint8_t)*s);
		end++;
	}
	while (depth--)
		buf_put_cstr(to, "[]");
	return end;
}

static char *method_name(const char *class_name, const struct class_method *m)
{
	struct buf to = {0};
	const char *s = m->descriptor + 1;
	char *name;

	if (class_name)
		buf_printf(&to, "%s.", class_name);
	buf_printf(&to, "%s(", m->name);
	for (bool is_first = true; s && *s && *s != ')'; is_first = false) {
		if (!is_first)
			buf_put_cstr(&to, ", ");
		s = put_type(&to, s);
	}
	buf_put_u8(&to, ')');
	name = mem_strndup((const char *)to.p, to.n);
	buf_release(&to);
	return name;
}

char *class_method_full_name(const struct class_file *c, const struct class_method *m)
{
	return method_name(c->name, m);
}

char *class_method_short_name(const struct class_method *m)
{
	return method_name(NULL, m);
}
