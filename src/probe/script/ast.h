/* SPDX-License-Identifier: MIT */
/*
 * A script as a tree. The parser makes it, the checker adds types (one for each mode), the lowering
 * reads it. All of it lives in the script's arena and is freed with it; names are NUL-terminated.
 */
#ifndef WEIR_PROBE_SCRIPT_AST_H
#define WEIR_PROBE_SCRIPT_AST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "probe/script/diag.h"

struct type; /* probe/types/type.h */

/* Either may be NULL. */
static inline bool name_is_same(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* Everything exists twice: as 32-bit programs have it (ILP32, i386) and as 64-bit ones (LP64). */
enum mode { MODE_32, MODE_64, N_MODES };

/* Statements in statements, and expressions in expressions, at most; so whoever walks the tree may
 * recurse. Types of pointers to arrays of functions likewise. */
#define SCRIPT_NESTING_MAX 200

/* --- C declarations ----------------------------------------------------------------------- */

enum decl_kind {
	DECL_VOID,
	DECL_BOOL,
	DECL_CHAR, /* plain char is signed on x86 */
	DECL_SHORT,
	DECL_INT,
	DECL_LONG,	/* 4 or 8 bytes by mode */
	DECL_LONG_LONG, /* 8 bytes; aligned to 4 in 32-bit programs */
	DECL_FIXED,	/* int8 .. int64, uint8_t, __u32, ...: `bytes` */
	DECL_FLOAT,
	DECL_DOUBLE,
	DECL_LONG_DOUBLE,
	DECL_NAMED,  /* a typedef's name, of the script or of the probed file */
	DECL_STRUCT, /* and union, by is_union */
	DECL_ENUM,
	DECL_POINTER,
	DECL_ARRAY,
	DECL_FUNCTION,
	DECL_STRING, /* "string", "string[64]": a text held by value; n, 0 = the default */
	DECL_TYPEOF  /* typeof(of_value): the type that the checker has given it */
};

struct expr;
struct stmt;

struct decl_field {
	const char *name; /* NULL: unnamed struct, union or bit-field */
	const struct decl_type *type;
	const struct expr *bits; /* of a bit-field, or NULL */
	struct place place;
	struct decl_field *next;
};

struct decl_enumerator {
	const char *name;
	const struct expr *value; /* or NULL: one more than the one before */
	struct place place;
	struct decl_enumerator *next;
};

struct decl_type {
	enum decl_kind kind;
	bool is_unsigned;
	bool is_union;
	bool is_packed;		   /* __attribute__((packed)) */
	bool is_variadic;	   /* FUNCTION: ends in ... */
	bool is_defined;	   /* STRUCT, ENUM: has a body */
	uint8_t bytes;		   /* FIXED */
	uint16_t height;	   /* STRUCT, FUNCTION: 1 and that of the highest field */
	uint32_t align;		   /* __attribute__((aligned(N))), 0 = none */
	const char *name;	   /* tag of STRUCT and ENUM (or NULL), NAMED */
	struct decl_type *of;	   /* POINTER, ARRAY; FUNCTION: what it returns */
	const struct expr *n;	   /* ARRAY: length; NULL = [] */
	struct expr *of_value;	   /* TYPEOF */
	struct decl_field *fields; /* STRUCT; FUNCTION: parameters */
	struct decl_enumerator *enumerators;
	struct place place;
};

/* One declaration of the section before the clauses:
 *   struct, union or enum alone (name NULL) / typedef / function prototype / extern variable. */
struct decl {
	bool is_typedef;
	const char *name;
	struct decl_type *type;
	struct place place;
	struct decl *next;
};

/* let @name = hash(N); and the others: the kind of a map, and its entries. */
struct map_decl {
	const char *name; /* without the @ */
	bool is_lru;	  /* a full one forgets what was not used for longest */
	bool is_per_cpu;
	uint32_t max_entries;
	struct place place;
	struct map_decl *next;
};

/* --- expressions -------------------------------------------------------------------------- */

enum expr_kind {
	EXPR_INT,      /* 12, 0x1f, 'c', 1e6, 100ms; also $1 that is a number */
	EXPR_STRING,   /* "..." with escapes undone; also str($1), and $1 that is no number */
	EXPR_NAME,     /* pid, arg0, retval, an enumerator, a global of the program */
	EXPR_LOCAL,    /* $x */
	EXPR_SELF,     /* self->x, thread->x */
	EXPR_MAP,      /* @, @x, @x[k1, k2] */
	EXPR_UNARY,    /* a: op '-' '~' '!' '*' '&' */
	EXPR_BINARY,   /* a op b */
	EXPR_TERNARY,  /* a ? b : c */
	EXPR_CAST,     /* (decl) a */
	EXPR_SIZEOF,   /* of decl, or of a when decl is NULL */
	EXPR_OFFSETOF, /* offsetof(decl, path) */
	EXPR_CALL,     /* name(args) */
	EXPR_INDEX,    /* a[b] */
	EXPR_MEMBER,   /* a.name, a->name (is_arrow), a.0 of a tuple (name "0") */
	EXPR_ASSIGN,   /* a = b, a += b, ...: op is OP_NONE for = */
	EXPR_STEP,     /* ++a, a--: is_post, op OP_ADD or OP_SUB */
	EXPR_TUPLE,    /* (a, b): args; a record, (x = a, y = b), when they have labels */
	EXPR_BLOCK,    /* { body; a }: its value is a, or none when that is NULL; the body of a
			  function is_function: return leaves it, not the clause */
	N_EXPR_KINDS
};

enum op {
	OP_NONE,
	OP_ADD,
	OP_SUB,
	OP_MUL,
	OP_DIV,
	OP_MOD,
	OP_AND,
	OP_OR,
	OP_XOR,
	OP_SHL,
	OP_SHR,
	OP_EQ,
	OP_NE,
	OP_LT,
	OP_LE,
	OP_GT,
	OP_GE,
	OP_LOGICAL_AND,
	OP_LOGICAL_OR,
	OP_NEGATE,
	OP_COMPLEMENT,
	OP_NOT,
	OP_DEREF,
	OP_ADDRESS
};

static inline bool op_is_comparison(enum op op)
{
	return op >= OP_EQ && op <= OP_GE;
}

struct expr {
	enum expr_kind kind;
	enum op op;
	bool is_arrow, is_post;
	bool is_function; /* BLOCK */
	bool is_unsigned; /* INT: does not fit into int64 or has a u */
	bool is_bool;	  /* INT: true, false */
	uint16_t height;  /* 1 and that of the highest part; at most SCRIPT_NESTING_MAX */
	struct place place;
	const char *name; /* NAME, LOCAL, SELF, MAP ("" = @), CALL, MEMBER, OFFSETOF (path a.b) */
	uint64_t value;	  /* INT */
	const char *text; /* STRING: bytes, NUL-terminated */
	size_t text_n;	  /* STRING: without the NUL */
	struct expr *a, *b, *c;
	struct stmt *body; /* BLOCK */
	struct expr *args; /* CALL, TUPLE, MAP keys: linked by next */
	uint32_t n_args;
	const char *label;	/* as a part of a record: its name */
	struct decl_type *decl; /* CAST, SIZEOF, OFFSETOF */
	struct expr *next;	/* in args */

	/* By the checker, for each mode that it checked. */
	const struct type *type[N_MODES];
	const void *meaning[N_MODES]; /* what a name or call stands for; see compile/check.h */
	uint64_t constant[N_MODES];   /* when is_constant: the value, extended to 64 bits */
	bool is_constant[N_MODES];
};

/* --- statements, clauses -------------------------------------------------------------------- */

enum stmt_kind {
	STMT_EXPR,    /* a */
	STMT_IF,      /* if (a) body else other */
	STMT_WHILE,   /* while (a) body */
	STMT_FOR,     /* for ($name : a..b) body */
	STMT_FOR_MAP, /* for ($name : @map) body */
	STMT_UNROLL,  /* unroll (a) body */
	STMT_BREAK,
	STMT_CONTINUE,
	STMT_RETURN, /* ends the clause; a is worked out, or NULL */
	STMT_BLOCK,  /* body */
	STMT_LET     /* let $name [: type] [= b]; a is the EXPR_LOCAL, decl or NULL */
};

struct stmt {
	enum stmt_kind kind;
	struct expr *a, *b;
	const char *name; /* FOR: the variable, without $ */
	struct decl_type *decl;
	struct stmt *body, *other; /* linked by next */
	bool is_open;	   /* EXPR: no ';' behind it: the value of its block if it is last */
	bool is_discarded; /* EXPR: _ = a: nobody wants the value */
	struct place place;
	struct stmt *next;
};

/* --- macros and functions ------------------------------------------------------------------- */

enum parameter_kind {
	PARAMETER_LOCAL, /* $x: a variable of the caller; of a function: one of its own */
	PARAMETER_MAP,	 /* @x: a map */
	PARAMETER_VALUE	 /* x: an expression, once for each time that it is mentioned */
};

struct macro_parameter {
	enum parameter_kind kind;
	const char *name;	/* without $ and @ */
	struct decl_type *decl; /* of a function: its type */
	struct place place;
	struct macro_parameter *next;
};

/* macro NAME(PARAMETERS) BODY, fn NAME(PARAMETERS) : RESULT BODY. They are gone after
 * macros_expand(). */
struct macro {
	const char *name;
	bool is_function;
	struct macro_parameter *parameters;
	uint32_t n_parameters;
	struct decl_type *result; /* FUNCTION: what return gives; NULL = nothing */
	struct expr *body;	  /* a BLOCK, or the one value that a macro stands for */
	struct place place;	  /* up to the body */
	struct macro *next;
};

/* A trace point as written: "uprobe:libc:mall*". */
struct point_text {
	const char *text; /* quotes and white space removed as the grammar says */
	struct place place;
	struct point_text *next;
};

struct clause {
	struct point_text *points;
	struct expr *predicate; /* or NULL */
	struct stmt *body;
	struct place place; /* from the first point to the closing brace */
	struct clause *next;
};

/* getopt("NAME" [, DEFAULT [, "HELP"]]) */
struct script_option {
	const char *name;
	enum option_of_script { OPTION_IS_BOOL, OPTION_IS_NUMBER, OPTION_IS_TEXT } kind;
	const char *unset; /* the default as it is written */
	const char *help;  /* or NULL */
	struct script_option *next;
};

struct script {
	struct script_option *options;
	const char *usage; /* of the options, when --help asks for it; else NULL */
	struct decl *decls;
	struct macro *macros;
	struct map_decl *map_decls;
	struct clause *clauses;
	uint32_t n_clauses;
	/* config = { name = value; ... } as linked EXPR_ASSIGNs of EXPR_NAME and a constant. */
	struct expr *config;
	struct arena *arena; /* owns all of the above */
};

#endif
