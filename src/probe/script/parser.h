/* SPDX-License-Identifier: MIT */
/*
 * What the files of the parser share; private to them. grammar.md has the whole grammar, each rule
 * stands again above its function.
 *
 * Errors: the first one of a statement is reported and sets `panic`. From then on nothing is
 * reported and no token is taken, every function comes back with a node that can be used, and
 * whoever loops over statements, clauses or fields skips to a place where it can go on.
 */
#ifndef WEIR_PROBE_SCRIPT_PARSER_H
#define WEIR_PROBE_SCRIPT_PARSER_H

#include <sys/types.h>

#include "base/arena.h"
#include "base/map.h"
#include "probe/script/ast.h"
#include "probe/script/lex.h"
#include "probe/script/parse.h"

/* A file that was read. */
struct imported {
	dev_t device;
	ino_t inode;
};

#define SOURCE_BYTES_MAX (4u << 20)

struct parser {
	struct lexer lexer;
	struct token token; /* the next one that nobody has taken */
	uint32_t last_to;   /* end of the one that was taken last */
	const struct script_parameters *parameters;
	struct script *script;
	struct arena *arena;
	struct diags *diags;
	struct sources *sources; /* imported ones are added */
	VEC(struct imported) imports;
	uint32_t import_depth;	      /* files that import this one */
	struct lexer_defines defines; /* of this source and those that it imports */
	struct map typedefs;	      /* hash of each name that the script has declared so far */
	uint32_t n_expanded; /* names of #define that were replaced, up to EXPANSIONS_MAX */
	uint32_t depth;	     /* of what is being parsed, up to SCRIPT_NESTING_MAX */
	bool panic;
	bool is_in_predicate; /* a '/' before '{' ends it */
	/* Where the next one is linked. */
	struct decl **next_decl;
	struct macro **next_macro;
	struct clause **next_clause;
	struct expr **next_config;
};

/* --- parse.c: tokens and errors ------------------------------------------------------------- */

static inline struct place parser_place(const struct parser *p, uint32_t from, uint32_t to)
{
	return (struct place){p->lexer.source_i, from, to, 0};
}
/* Of the next token; of the end of the script: behind the last token. */
struct place parser_here(const struct parser *p);
/* From there to the last token taken. */
struct place parser_since(const struct parser *p, uint32_t from);

void parser_take(struct parser *p); /* nothing in panic */
struct token parser_peek(const struct parser *p);
bool parser_at(const struct parser *p, int kind); /* false in panic */
bool parser_accept(struct parser *p, int kind);
bool parser_at_word(const struct parser *p, const char *word);
bool parser_accept_word(struct parser *p, const char *word);
bool parser_starts_line(const struct parser *p);
/* "uprobe:" or "end {": in a block, a brace was forgotten before it. */
bool parser_at_clause(const struct parser *p);

/* Reports unless in panic, and panics. `parser_expected` says what was expected and what is there.
 */
void parser_error(struct parser *p, struct place place, const char *tag, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void parser_expected(struct parser *p, const char *what);
void parser_expect(struct parser *p, int kind, const char *what);
/* The closing one of a pair; when the script ends before it, the opening one is the place. */
void parser_expect_closing(struct parser *p, int kind, struct token open);

/* Ends a panic: up to the next one of these at this level of braces, which stays, or the end. */
void parser_skip_to(struct parser *p, int a, int b);

/* False, and an error, when it is too deep; else parser_leave must follow. */
bool parser_enter(struct parser *p);
static inline void parser_leave(struct parser *p)
{
	p->depth--;
}

char *parser_text(struct parser *p, struct token t, uint32_t skip); /* a copy without its start */
bool token_is(const struct parser *p, struct token t, const char *word);
bool word_in(const struct parser *p, struct token t, const char *const *words); /* up to a NULL */

/* All of a source, in the middle of another one. */
void parse_another_source(struct parser *p, uint32_t source_i);

/* --- parse_point.c, parse_stmt.c -------------------------------------------------------------- */

bool parser_begins_point(const struct parser *p);
/* At the first token of a clause; behind it is the one that follows all points. */
struct point_text *parse_points(struct parser *p);
/* '{' ... '}' */
struct stmt *parse_block(struct parser *p);
/* "(" expr ")", or without parentheses before a "{" */
struct expr *parse_condition(struct parser *p);
/* "if (a) { ... } else { ... }" where a value is wanted, and { ... } likewise. */
struct expr *parse_if_value(struct parser *p);
struct expr *parse_block_value(struct parser *p);

/* --- parse_parameter.c ------------------------------------------------------------------------ */

struct expr *parse_parameter(struct parser *p); /* $1, $# */
/* At the parameter of "str($1)", "str($1 + 2)", also with a "," behind it: the text; else NULL. */
struct expr *parse_parameter_text(struct parser *p);

/* --- parse_option.c --------------------------------------------------------------------------- */

/* What getopt(...) is worth: a constant. */
struct expr *option_value(struct parser *p, struct expr *call);
/* After all sources: named parameters that no getopt() has; the text that --help asks for. */
void options_check(struct parser *p);

/* --- parse_define.c --------------------------------------------------------------------------- */

/* The #define that a name means before a token of kind `next`; NULL when it means none. */
const struct lexer_define *define_find(const struct parser *p, struct token name, int next);
/* At the name: the expression that stands for it. */
struct expr *parse_defined(struct parser *p, struct lexer_define d);

/* --- parse_import.c --------------------------------------------------------------------------- */

void parse_import(struct parser *p); /* at "import" and a text */
/* The file of a script that was given: importing it brings nothing more. */
void import_remember_script(struct parser *p, const char *path);

/* --- parse_macro.c ---------------------------------------------------------------------------- */

void parse_macro(struct parser *p); /* at "macro" or "fn" and a name */

/* --- parse_expr.c, parse_primary.c ------------------------------------------------------------ */

struct expr *parse_expr(struct parser *p);	  /* with assignments */
struct expr *parse_conditional(struct parser *p); /* without */
struct expr *parse_primary(struct parser *p);
struct expr *parse_number(struct parser *p);
struct expr *parse_string(struct parser *p);
struct expr *expr_new(struct parser *p, enum expr_kind kind, uint32_t from);
/* Sets its height and the end of its place; reports one that is too high. */
struct expr *expr_finish(struct parser *p, struct expr *e);
struct expr *expr_nothing(struct parser *p); /* where there is none */
/* A word given as $N where a number is needed. */
void expr_need_number(struct parser *p, const struct expr *e);

/* --- decl_words.c, parse_decl.c -------------------------------------------------------------- */

/* Whether the word is one of C's types, or one that the script has declared. */
bool word_is_type(const struct parser *p, struct token t);
/* Likewise, and words such as const and extern that begin a declaration. */
bool word_begins_decl(const struct parser *p, struct token t);
/* struct foo *, uint8[4], int (*)(void) */
struct decl_type *parse_type_name(struct parser *p);
void parse_decl(struct parser *p); /* one up to its ';' */
void parse_map_decl(struct parser *p); /* parse_map_decl.c: at its "let", likewise */

#endif
