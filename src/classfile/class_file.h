/* SPDX-License-Identifier: MIT */
/*
 * Java class files (The Java Virtual Machine Specification, chapter 4), read without trust: what methods a
 * class has, and how people write their names.
 */
#ifndef WEIR_CLASSFILE_CLASS_FILE_H
#define WEIR_CLASSFILE_CLASS_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/span.h"

#define CLASS_FILE_BYTES_MAX ((size_t)64 << 20)

enum class_flags { CLASS_FLAG_NATIVE = 0x0100, CLASS_FLAG_ABSTRACT = 0x0400 };

struct class_method {
	uint16_t flags;
	char *name;	  /* `run`, `<init>`; owned */
	char *descriptor; /* `(I[Ljava/lang/String;)V`; owned */
	uint32_t at, end; /* of the method_info, in the file */
	uint32_t code_at; /* of its Code attribute, with name and length; 0 = none */
	uint32_t line;	  /* the first; 0 = not known */
};

struct class_file {
	struct span bytes; /* borrowed */
	uint16_t major;
	VEC(uint32_t) constants; /* by index: where its tag is; 0 = no constant has the number */
	uint32_t constants_end;	 /* the first byte behind them */
	uint32_t methods_at;	 /* where their count is */
	uint16_t super;		 /* constant; 0: it is java.lang.Object */
	uint16_t self;		 /* constant */
	char *name;		 /* `com.example.Outer$Inner`; owned */
	char *source;		 /* `Outer.java`; owned; NULL = not known */
	VEC(struct class_method) methods;
};

/* Fails with a sentence when it is no class file, or is damaged. */
int class_file_read(struct class_file *c, struct span bytes, struct err *err);
void class_file_release(struct class_file *c);

/* `com.example.Outer$Inner.run(int, java.lang.String[])`, and `run(int, java.lang.String[])`. Owned by the caller. */
char *class_method_full_name(const struct class_file *c, const struct class_method *m);
char *class_method_short_name(const struct class_method *m);

/* The text of a Utf8 constant, borrowed; empty when there is none of that number. */
struct span class_file_text(const struct class_file *c, uint32_t constant);
bool class_file_text_is(const struct class_file *c, uint32_t constant, const char *text);
/* The constant that a Class constant, or the member constant of a method, has as its first and second number; 0 =
 * none. */
uint16_t class_file_part(const struct class_file *c, uint32_t constant, unsigned i);

/* Numbers of class files have their greatest byte first. */
static inline uint16_t cursor_be16(struct cursor *c)
{
	return __builtin_bswap16(cursor_u16(c));
}

static inline uint32_t cursor_be32(struct cursor *c)
{
	return __builtin_bswap32(cursor_u32(c));
}

#endif
