/* SPDX-License-Identifier: MIT */
/*
 * Tokens of a script, one at a time from any position, so that looking ahead is copying the lexer.
 * Trace points are no tokens: parse_point.c reads their text itself.
 */
#ifndef WEIR_PROBE_SCRIPT_LEX_H
#define WEIR_PROBE_SCRIPT_LEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/span.h"
#include "probe/script/diag.h"

/* Punctuation of one character has that character as its kind. */
enum token_kind {
	TOKEN_END = 256,
	TOKEN_BAD, /* already reported: a text or character without an end */
	TOKEN_NAME,
	TOKEN_LOCAL,	       /* $x */
	TOKEN_PARAMETER,       /* $1 */
	TOKEN_PARAMETER_COUNT, /* $# */
	TOKEN_MAP,	       /* @, @x */
	TOKEN_NUMBER,	       /* not yet looked at: literal_number */
	TOKEN_STRING,	       /* with its quotes: literal_text */
	TOKEN_CHAR,
	TOKEN_ARROW,
	TOKEN_INCREMENT,
	TOKEN_DECREMENT,
	TOKEN_SHL,
	TOKEN_SHR,
	TOKEN_LE,
	TOKEN_GE,
	TOKEN_EQ,
	TOKEN_NE,
	TOKEN_LOGICAL_AND,
	TOKEN_LOGICAL_OR,
	TOKEN_RANGE,	  /* .. */
	TOKEN_ELLIPSIS,	  /* ... */
	TOKEN_ASSIGN_ADD, /* these in the order of enum op */
	TOKEN_ASSIGN_SUB,
	TOKEN_ASSIGN_MUL,
	TOKEN_ASSIGN_DIV,
	TOKEN_ASSIGN_MOD,
	TOKEN_ASSIGN_AND,
	TOKEN_ASSIGN_OR,
	TOKEN_ASSIGN_XOR,
	TOKEN_ASSIGN_SHL,
	TOKEN_ASSIGN_SHR
};

struct token {
	int kind;
	uint32_t from, to; /* bytes of the source */
};

/* #define NAME[(PARAMETERS)] BODY: where they are in their source. Also a parameter and what is given for it. */
struct lexer_define {
	const char *text;  /* with the name */
	uint32_t from, to; /* of the name */
	const char *body_text;
	uint32_t body_source_i;
	uint32_t body_from, body_to; /* without blanks and comments behind it */
	uint32_t parameters;	     /* where their '(' is; 0 = none */
	bool is_parameter;
	size_t n_visible; /* IS_PARAMETER: defines that what is given may mention */
};
struct lexer_defines {
	VEC(struct lexer_define) v;
};

struct lexer {
	const char *text; /* NUL-terminated; a NUL before n is a wrong character */
	uint32_t n;
	uint32_t source_i;
	uint32_t start; /* behind a byte order mark */
	uint32_t pos;
	uint32_t n_conditions;	       /* #ifdef that hold here, without their #endif */
	struct diags *diags;	       /* NULL: says nothing, for looking ahead */
	struct lexer_defines *defines; /* those up to here, or NULL: borrowed */
	bool is_cut;		       /* something hid the rest, so that it ends too early */
};

void lexer_init(
	struct lexer *l, const struct sources *sources, uint32_t source_i, struct diags *diags);
/* White space, comments and lines of #; what is wrong with them is reported. */
void lexer_skip_space(struct lexer *l);
struct token lexer_next(struct lexer *l);

/* A number as the language writes it: 12, 0x1f, 0b101, 017, 1_000, 1e6, 100ms, 5ull. On failure
 * `*why` ends the sentence "the number N ...". */
bool literal_number(const char *p, size_t n, uint64_t *value, bool *is_unsigned, const char **why);

/* What is between two quotes, with its escapes undone and a NUL behind it, in the arena. A wrong
 * escape is reported at its place. */
char *literal_text(const struct lexer *l, struct token t, struct arena *arena, size_t *n);

#endif
