/* SPDX-License-Identifier: MIT */
/*
 * Types of one mode. A struct types is made for each mode: the same declaration gives a 12-byte
 * structure in one and a 24-byte structure in the other. Types are compared by type_is_same, owned
 * by their struct types, and never change once they are complete.
 */
#ifndef WEIR_PROBE_TYPES_TYPE_H
#define WEIR_PROBE_TYPES_TYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "probe/script/ast.h"
#include "probe/script/diag.h"

enum type_kind {
	TYPE_BAD, /* something wrong was already reported; silences what follows from it */
	TYPE_VOID,
	TYPE_INT,   /* bool, char, enum (name is its tag), all integers: size, is_signed */
	TYPE_FLOAT, /* size 4, 8; long double: 12 in 32-bit programs, 16 in 64-bit ones */
	TYPE_POINTER,
	TYPE_ARRAY,
	TYPE_STRUCT, /* and union */
	TYPE_FUNCTION,
	/* Values of the script language alone; the same in both modes. */
	TYPE_STRING, /* n bytes, padded with NULs; a text that fills them has no NUL */
	TYPE_BYTES,  /* buf(): 4 bytes of length, then up to n */
	TYPE_USTACK,
	TYPE_KSTACK,
	TYPE_USYM,
	TYPE_KSYM,
	TYPE_PROBE, /* the builtin probe: a number that is printed as the trace point */
	TYPE_FUNC,  /* the builtin func: likewise as the function */
	TYPE_TIME,  /* strftime(): nanoseconds and a format */
	TYPE_INET,  /* ntop(): 4 or 16 bytes */
	TYPE_NAME,  /* strerror(), comm(PID), ...: a number that is printed as its name */
	TYPE_TUPLE, /* its fields have names in a record */
	TYPE_AGGREGATION
};

/* Where what a pointer points to lies. */
enum space { SPACE_USER, SPACE_KERNEL };

enum aggregation {
	AGGREGATION_NONE,
	AGGREGATION_COUNT,
	AGGREGATION_SUM,
	AGGREGATION_MIN,
	AGGREGATION_MAX,
	AGGREGATION_AVG,
	AGGREGATION_STATS,
	AGGREGATION_HIST,   /* powers of two */
	AGGREGATION_LHIST,  /* equal steps */
	AGGREGATION_TSERIES /* intervals of time */
};

struct type_field {
	const char *name; /* NULL: unnamed; its fields are found through it */
	const struct type *type;
	uint64_t offset;    /* bytes; of a bit-field: of the byte with its first bit */
	uint8_t bit_offset; /* 0..7, within that byte */
	uint8_t bit_size;   /* 0 = no bit-field; at most 64 */
};

struct type {
	enum type_kind kind;
	bool is_signed; /* INT; SUM, MIN, ... */
	bool is_bool;
	bool is_char; /* char, signed char, unsigned char: arrays of them print as text */
	bool is_enum;
	bool is_union;
	bool is_complete; /* false: a struct of which only the name is known */
	bool is_variadic;
	bool is_by_reference; /* STRUCT: arguments and results of it are addresses of copies */
	enum space space;     /* POINTER: of what it points to; STRUCT: whose it is */
	enum aggregation aggregation; /* AGGREGATION */
	uint64_t size;		      /* bytes in memory, as sizeof says */
	uint32_t align;
	const char *name;	 /* "struct item", "size_t", or NULL */
	const char *enumerators; /* of an enum: "RED=0 GREEN=5", or NULL when they are not known */
	const struct type *of;	 /* POINTER, ARRAY, FUNCTION (returns) */
	uint64_t n;		 /* ARRAY elements, STRING and BYTES capacity */
	const struct type_field *fields; /* STRUCT, TUPLE; FUNCTION: parameters */
	uint32_t n_fields;
	uint8_t depth; /* how deep it is nested by value and by pointers: at most TYPE_DEPTH_MAX */
};

/* Deeper ones are TYPE_BAD, so that walking a type needs little stack. */
#define TYPE_DEPTH_MAX 64
#define TYPE_BYTES_MAX (UINT64_C(1) << 30) /* of a type that a script declares */

/* How a stack is printed. */
enum stack_form {
	STACK_FORM_NAMES,    /* "main+25" */
	STACK_FORM_PERF,     /* "55d0c02f11c9 main+25 (/bin/x)" */
	STACK_FORM_RAW,	     /* "55d0c02f11c9" */
	STACK_FORM_BUILD_ID, /* "4cbd... 0x11c9": build-id and offset in the file */
	STACK_FORM_MASK = 7,
	STACK_FORM_NO_LINES = 8 /* without places in the source, and what was inlined */
};

/* A file whose debug information is asked for names that the script does not declare, or the
 * kernel's BTF. See types/dwarf_types.h and types/btf_types.h. */
#define TYPE_WORD_KERNEL "kernel " /* in front of a word: of the kernel's types only */
#define TYPE_WORD_HANDED "handed " /* of the kernel's types, in memory of programs */

struct type_source {
	void *ctx;
	/* A struct, union or enum by tag, or a typedef by name; NULL when there is none.
	 * `word` is "struct", "union", "enum" or "" for a typedef. */
	const struct type *(*named)(void *ctx, const char *word, const char *name);
	/* The type of a function as TYPE_FUNCTION, or NULL. */
	const struct type *(*function)(void *ctx, const char *name);
	/* A global variable: its type and linker address; false when there is none. NULL: it has
	 * none. */
	bool (*variable)(void *ctx, const char *name, const struct type **type, uint64_t *iaddr);
	/* The value of an enumerator, and its enum or NULL; false when there is none. NULL: it has none. */
	bool (*enumerator)(void *ctx, const char *name, int64_t *value, const struct type **of);
};

struct types;
struct types *types_new(enum mode mode);
void types_free(struct types *t);
enum mode types_mode(const struct types *t);

/* All declarations of the script. Reports duplicate tags, unknown names, zero or huge sizes. */
void types_declare(struct types *t, const struct decl *decls, struct diags *diags);
/* What is asked after the script's own declarations, in order; replaces what was set before.
 * The array is borrowed until the next call. */
void types_set_sources(struct types *t, const struct type_source *sources, size_t n);

/* The type that a cast, sizeof, let or parameter names. Reports and gives TYPE_BAD when it is not
 * known, or is a structure without fields and not behind a pointer. A pointer written in a script
 * points to `space`; so do those inside its structures. With SPACE_KERNEL everything is as the
 * kernel has it: LP64 in both modes. `string` without a length has n = 0. */
const struct type *types_of_decl(
	struct types *t, const struct decl_type *decl, enum space space, struct diags *diags);
/* Of a structure that is not complete: what the sources have under its name, when they do; any
 * other type as it is. To be asked before a pointer is followed. */
const struct type *types_completed(struct types *t, const struct type *type);
/* Constants of the script's declarations: an enumerator's value and its enum; false when there is
 * none. */
bool types_enumerator(
	const struct types *t, const char *name, int64_t *value, const struct type **type);
/* Likewise, of the sources. */
bool types_source_enumerator(
	const struct types *t, const char *name, int64_t *value, const struct type **type);
/* A function or an extern variable's type as the script declares it, then as the sources know it;
 * NULL when nobody does. The address of a variable is always that of the sources: 0 when none of
 * them has it. */
const struct type *types_function(struct types *t, const char *name);
const struct type *types_declared_function(struct types *t, const char *name); /* by the script */
bool types_variable(struct types *t, const char *name, const struct type **type, uint64_t *iaddr);

/* A structure of the kernel by name; with SPACE_USER as programs hand it over, so that its pointers are
 * theirs. NULL when it is not known. */
const struct type *types_kernel_struct(struct types *t, const char *name, enum space space);
const struct type *types_kernel_enum(struct types *t, const char *name);

/* Whether the script declares the fields of a structure or union of this tag. */
bool types_has_tag(const struct types *t, const char *tag);

/* Made, or found when made before. */
const struct type *types_bad(struct types *t);
const struct type *types_void(struct types *t);
const struct type *types_int(struct types *t, uint32_t bytes, bool is_signed);
const struct type *types_char(struct types *t);
const struct type *types_bool(struct types *t);
const struct type *types_long(struct types *t, bool is_signed);	 /* 4 or 8 bytes by mode */
const struct type *types_float(struct types *t, uint32_t bytes); /* over 8: long double */
/* To SPACE_USER 4 or 8 bytes by mode, else 8. */
const struct type *types_pointer(struct types *t, const struct type *to, enum space space);
const struct type *types_array(struct types *t, const struct type *of, uint64_t n);
const struct type *types_string(struct types *t, uint64_t n);
const struct type *types_bytes(struct types *t, uint64_t n);
const struct type *types_special(struct types *t, enum type_kind kind); /* USTACK .. NAME */
/* USTACK, KSTACK that are printed in a form: a sum of enum stack_form, its n. */
const struct type *types_stack(struct types *t, enum type_kind kind, uint32_t form);
const struct type *types_tuple(struct types *t, const struct type *const *of, size_t n);
/* Of the names and types of the fields; a record when they have names. */
const struct type *types_record(struct types *t, const struct type_field *fields, size_t n);
/* The field of that name, or where it is NULL the one at i; n_fields: there is none. */
uint32_t type_tuple_find(const struct type *tuple, const char *name, uint32_t i);
const struct type *types_aggregation(struct types *t, enum aggregation a, bool is_signed);
/* For sources: a structure still to be filled (so that it may point to itself), and its filling.
 * The fields are copied. A function: `fields` are its parameters. */
struct type *types_new_struct(struct types *t, const char *name, bool is_union);
void types_fill_struct(struct types *t, struct type *s, const struct type_field *fields,
	uint32_t n_fields, uint64_t size, uint32_t align);
/* "bool", "_Bool", "char", "signed char" and "unsigned char" of one byte are known by name. */
const struct type *types_named_int(
	struct types *t, const char *name, uint32_t bytes, bool is_signed);
/* `enumerators`: "RED=0 GREEN=5", or NULL. */
const struct type *types_enum(
	struct types *t, const char *name, uint32_t bytes, bool is_signed, const char *enumerators);
/* Adds an enumerator to such a text; no more than TYPE_ENUMERATORS_MAX bytes. */
void type_add_enumerator(struct buf *text, const char *name, size_t n, int64_t value);
#define TYPE_ENUMERATORS_MAX 16384
const struct type *types_new_function(struct types *t, const struct type *returns,
	const struct type_field *parameters, uint32_t n, bool is_variadic);

/* Arithmetic on constants, as the code would do it: in 64 bits. */
/* Cuts or extends a value as a conversion to an integer or pointer type does. */
uint64_t fold_convert(const struct type *type, uint64_t value);
/* a op b for operators from OP_ADD to OP_GE; by 0 is 0. */
uint64_t fold_binary(enum op op, uint64_t a, uint64_t b, bool is_unsigned);

/* A field by name, also inside unnamed structures; the offset is from the start of `s`. */
bool type_find_field(const struct type *s, const char *name, struct type_field *out);
bool type_is_same(const struct type *a, const struct type *b);
/* Whether the two, of one declaration in both modes, have one layout. If not, and `path` is not
 * NULL, the first field that differs is named there ("inner.next", "b (padding behind it)"). */
bool type_is_same_layout(const struct type *a, const struct type *b, struct buf *path);
const char *aggregation_name(enum aggregation a); /* "count()" */
/* "struct item *", "unsigned long", "string[64]". */
void type_print(const struct type *type, struct buf *out);
/* As it is declared with a name: "char comm[16]". */
void type_print_named(const struct type *type, const char *name, struct buf *out);

static inline bool type_is_scalar(const struct type *t)
{
	return t->kind == TYPE_INT || t->kind == TYPE_POINTER;
}
/* Bytes that an integer may have. */
static inline bool type_is_int_size(uint64_t bytes)
{
	return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
}
/* Stacks, symbols, times, ...: what the language alone has, and prints as a text. */
static inline bool type_is_special(const struct type *t)
{
	return t->kind >= TYPE_USTACK && t->kind <= TYPE_NAME;
}
/* A string or an array of char. */
static inline bool type_is_text(const struct type *t)
{
	return t->kind == TYPE_STRING || (t->kind == TYPE_ARRAY && t->of->is_char);
}
/* What makes arithmetic unsigned. */
static inline bool type_is_unsigned64(const struct type *t)
{
	return t->kind == TYPE_POINTER || (t->kind == TYPE_INT && !t->is_signed && t->size == 8);
}

#endif
