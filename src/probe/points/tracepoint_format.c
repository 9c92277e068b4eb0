/* SPDX-License-Identifier: MIT */
/*
 * A format file has a line for each field:
 *
 *	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
 *
 * Its C declaration names types of the kernel, but offset, size and sign say all that is needed to
 * read it; of the declaration count the name, "*", "[N]" and whether it is char.
 */
#include "probe/points/tracepoint_format.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/mem.h"
#include "probe/types/source_types.h"
#include "process/tracepoint.h"

#define FORMAT_BYTES_MAX (64 * 1024)
#define FIELDS_MAX	 512
#define RECORD_BYTES_MAX (64 * 1024)

/* A format file while it is read. */
struct format {
	struct types *types;
	struct arena *arena; /* of all texts */
	const char *name;    /* of the tracepoint, or NULL */
	bool has_id;
	uint32_t id;
	bool is_syscall; /* its pointers are those of the program */
	VEC(struct type_field) fields;
	uint64_t size;
};

/* "field:" behind which stands the declaration, and what follows it. */
struct field_line {
	char *type, *name; /* "const char *", "comm"; "__data_loc char[]", "filename" */
	bool is_array;
	uint64_t n; /* elements; 0 = [] */
	unsigned offset, size, is_signed;
};

static char *trim(char *s)
{
	size_t n;

	s += strspn(s, " \t");
	n = strlen(s);
	while (n && strchr(" \t\r", s[n - 1]))
		s[--n] = 0;
	return s;
}

/* Cuts "[16]" off the end; "[TASK_COMM_LEN]" of old kernels has a length only by the size. */
static void cut_length(struct field_line *f, char *declaration)
{
	char *bracket = strchr(declaration, '[');
	char *end;

	/* "__data_loc char[] name": the brackets belong to the type. */
	if (!bracket || strchr(bracket, ' '))
		return;
	f->is_array = true;
	f->n = strtoul(bracket + 1, &end, 10);
	if (*end != ']' || f->n > RECORD_BYTES_MAX)
		f->n = 0;
	*bracket = 0;
}

/* Cuts the line up in place. */
static bool cut_field(struct arena *arena, char *line, struct field_line *f)
{
	char *declaration = strstr(line, "field:");
	char *end = declaration ? strchr(declaration, ';') : NULL;
	size_t n;

	if (!end || sscanf(end, "; offset:%u; size:%u; signed:%u;", &f->offset, &f->size,
			    &f->is_signed) < 2)
		return false;
	*end = 0;
	declaration = trim(declaration + strlen("field:"));
	cut_length(f, declaration);
	declaration = trim(declaration);
	n = strlen(declaration);
	while (n && (isalnum((unsigned char)declaration[n - 1]) || declaration[n - 1] == '_'))
		n--;
	f->name = declaration + n;
	/* A type and a name are there, and something between them. */
	if (!n || !*f->name)
		return false;
	f->type = arena_strndup(arena, declaration, n);
	return true;
}

static bool is_char_type(const char *type)
{
	return !strcmp(type, "char") || !strcmp(type, "unsigned char") ||
	       !strcmp(type, "const char") || !strcmp(type, "signed char");
}

static const struct type *array_type(struct types *t, const struct field_line *f, const char *type)
{
	uint64_t n = f->n, each;

	/* The kernel says "signed:0" of char[16]; what counts is that it is text. */
	if (is_char_type(type)) {
		bool is_unsigned = !strcmp(type, "unsigned char");
		const struct type *of =
			is_unsigned ? types_named_int(t, "unsigned char", 1, false) : types_char(t);

		return types_array(t, of, f->size);
	}
	each = n ? f->size / n : 0;
	if (!n || each * n != f->size || !type_is_int_size(each))
		return source_bytes(t, f->size);
	if (strchr(type, '*') && each == 8)
		return types_array(t, types_pointer(t, types_void(t), SPACE_KERNEL), n);
	return types_array(t, types_int(t, (uint32_t)each, f->is_signed), n);
}

/* The structure that "struct name", "const struct name *" and the like name; NULL when it is none that
 * the kernel tells of. */
static const struct type *struct_of(const struct format *format, const char *type)
{
	const char *name = strstr(type, "struct ");
	const struct type *found;
	char *text;
	size_t n;

	if (!name || (name != type && name[-1] != ' ') || format->is_syscall)
		return NULL;
	name += strlen("struct ");
	n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
	if (strspn(name + n, " *") != strlen(name + n))
		return NULL;
	text = mem_strndup(name, n);
	found = types_kernel_struct(format->types, text, SPACE_KERNEL);
	free(text);
	return found;
}

static const struct type *pointer_type(const struct format *format, const char *type)
{
	enum space space = format->is_syscall ? SPACE_USER : SPACE_KERNEL;
	struct types *t = format->types;
	bool is_text = !strncmp(type, "const char *", 12) || !strncmp(type, "char *", 6);
	const struct type *s = struct_of(format, type);

	if (strchr(strchr(type, '*') + 1, '*'))
		return types_pointer(t, types_pointer(t, types_void(t), space), space);
	return types_pointer(t, s ? s : is_text ? types_char(t) : types_void(t), space);
}

static const struct type *type_of_field(const struct format *format, const struct field_line *f)
{
	struct types *t = format->types;
	const struct type *s;
	char *type = trim(f->type);

	if (!strncmp(type, "__data_loc ", 11) || !strncmp(type, "__rel_loc ", 10)) {
		if (f->size == 4)
			return types_named_int(t, type, 4, false);
		return source_bytes(t, f->size);
	}
	if (f->is_array)
		return array_type(t, f, type);
	if (strchr(type, '*') && f->size == 8)
		return pointer_type(format, type);
	s = struct_of(format, type);
	if (s && s->size == f->size)
		return s;
	if (!strncmp(type, "struct ", 7) || !type_is_int_size(f->size))
		return source_bytes(t, f->size);
	s = strncmp(type, "enum ", 5) ? NULL : types_kernel_enum(t, type + 5);
	if (s && s->size == f->size)
		return s;
	if (!strcmp(type, "bool") && f->size == 1)
		return types_named_int(t, "bool", 1, false);
	if (!strcmp(type, "char") && f->size == 1)
		return types_char(t);
	/* System calls store every argument in 8 bytes: "int fd; size:8" is still an int. */
	if (format->is_syscall && f->size == 8 &&
		(!strcmp(type, "int") || !strcmp(type, "unsigned int") ||
			!strcmp(type, "const int")))
		return types_int(t, 4, *type != 'u');
	return types_int(t, f->size, f->is_signed);
}

static int add_field(struct format *format, char *line, struct err *err)
{
	struct field_line f = {0};
	struct type_field to = {0};

	if (!cut_field(format->arena, line, &f))
		return err_set(
			err, ERR_FORMAT, "a tracepoint's format has the field line '%.100s'", line);
	if (f.size > RECORD_BYTES_MAX || f.offset > RECORD_BYTES_MAX ||
		format->fields.n >= FIELDS_MAX)
		return err_set(err, ERR_LIMIT,
			"a tracepoint's format has more than %d fields or %d bytes", FIELDS_MAX,
			RECORD_BYTES_MAX);
	to.name = f.name;
	to.type = type_of_field(format, &f);
	to.offset = f.offset;
	vec_push(&format->fields, to);
	if (format->size < (uint64_t)f.offset + f.size)
		format->size = (uint64_t)f.offset + f.size;
	return 0;
}

static int read_line(struct format *format, char *line, struct err *err)
{
	if (!strncmp(line, "name:", 5) && !format->name) {
		char *name = trim(line + 5);

		format->name = name;
		format->is_syscall =
			!strncmp(name, "sys_enter_", 10) || !strncmp(name, "sys_exit_", 9);
		return 0;
	}
	if (sscanf(line, "ID: %u", &format->id) == 1) {
		format->has_id = true;
		return 0;
	}
	/* What the kernel prints may have anything in it. */
	if (!strncmp(line, "print fmt:", 10) || !strstr(line, "field:"))
		return 0;
	return add_field(format, line, err);
}

static const struct type *format_type(struct format *format)
{
	const char *name = arena_printf(
		format->arena, "tracepoint %s", format->name ? format->name : "record");
	struct type *s = types_new_struct(format->types, name, false);

	types_fill_struct(
		format->types, s, format->fields.v, (uint32_t)format->fields.n, format->size, 8);
	return s;
}

int tracepoint_format_parse(struct types *types, struct span text, const struct type **out,
	uint32_t *id, struct err *err)
{
	struct format format = {.types = types};
	char *copy, *save = NULL;
	int rc = 0;

	if (text.n > FORMAT_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "a tracepoint's format has more than %d bytes",
			FORMAT_BYTES_MAX);
	format.arena = arena_new();
	copy = arena_strndup(format.arena, text.n ? (const char *)text.p : "", text.n);
	for (char *line = strtok_r(copy, "\n", &save); line && rc == 0;
		line = strtok_r(NULL, "\n", &save))
		rc = read_line(&format, line, err);
	if (rc == 0 && !format.has_id)
		rc = err_set(err, ERR_FORMAT, "a tracepoint's format does not tell its number");
	if (rc == 0 && !format.fields.n)
		rc = err_set(err, ERR_FORMAT, "a tracepoint's format has no fields");
	if (rc == 0) {
		*out = format_type(&format);
		*id = format.id;
	}
	vec_release(&format.fields);
	arena_free(format.arena);
	return rc;
}

int tracepoint_format_read(struct types *types, const char *category, const char *name,
	const struct type **out, uint32_t *id, struct err *err)
{
	FD_AUTO tracefs = tracefs_open(err);
	struct buf text = {0};
	char *path;
	int rc;

	if (tracefs < 0)
		return tracefs;
	/* Names come from scripts: nothing of tracefs but the formats of events is meant. */
	if (strchr(category, '/') || strchr(name, '/') || category[0] == '.' || name[0] == '.')
		return err_set(err, ERR_NOT_FOUND, "this kernel has no tracepoint '%s:%s'",
			category, name);
	path = mem_printf("events/%s/%s/format", category, name);
	rc = tracefs_read(&text, tracefs, path, FORMAT_BYTES_MAX, NULL);
	free(path);
	if (rc < 0)
		rc = err_set(err, ERR_NOT_FOUND, "this kernel has no tracepoint '%s:%s'", category,
			name);
	else
		rc = tracepoint_format_parse(types, buf_span(&text), out, id, err);
	buf_release(&text);
	return rc < 0 && rc != ERR_NOT_FOUND ? err_prefix(err, "%s:%s", category, name) : rc;
}
