/* SPDX-License-Identifier: MIT */
/* What the files that parse C's declarations share: decl_words.c, parse_specifiers.c, parse_decl.c.
 */
#ifndef WEIR_PROBE_SCRIPT_DECL_PARSER_H
#define WEIR_PROBE_SCRIPT_DECL_PARSER_H

#include "probe/script/parser.h"

/* --- decl_words.c ----------------------------------------------------------------------------- */

/* Types that are one word. */
struct type_word {
	const char *name;
	enum decl_kind kind;
	uint8_t bytes; /* FIXED */
	bool is_unsigned;
};
const struct type_word *type_word_find(const struct parser *p, struct token t); /* or NULL */
/* Words by what they are; each list ends with NULL. */
extern const char *const qualifier_words[], /* const, volatile, ... */
	*const storage_words[],		    /* extern, static, ... */
		*const number_words[],	    /* unsigned, long, ...: they combine */
			*const tag_words[]; /* struct, union, enum */
void word_add_typedef(struct parser *p, struct token t);

/* --- parse_specifiers.c ----------------------------------------------------------------------- */

struct attributes {
	bool is_packed;
	uint32_t align;
	struct place place; /* of the first word that means something */
};

/* What stands before the declarators. */
struct specifiers {
	struct decl_type *type; /* while parsing: NULL when it may still become a number */
	struct attributes attributes;
	bool is_typedef;
	bool is_signed, is_unsigned;
	unsigned n_long, n_short, n_int, n_char, n_double;
	bool has_number; /* one of the above */
	uint32_t from;
};

struct decl_type *type_new(struct parser *p, enum decl_kind kind, struct token at);
/* Too high a type is reported and gives an int, so that nobody recurses into it. */
struct decl_type *type_limit_height(struct parser *p, struct decl_type *t);
/* One more field or parameter: at *next, which moves on. */
void type_add_field(struct decl_type *to, struct decl_field ***next, struct decl_field *f);
/* A tag that was defined before this use: the use only names it. */
struct decl_type *type_without_definition(struct parser *p, struct decl_type *t);
/* Attributes of one name: its type is copied, since others may share it. */
struct decl_type *type_with_attributes(
	struct parser *p, struct decl_type *t, const struct attributes *a, bool is_field);

/* False when there is no type; it then is an int. */
bool parse_specifiers(struct parser *p, struct specifiers *s);
void parse_attributes(struct parser *p, struct attributes *to);
/* To the end of a wrong field: behind its ';' or before the '}'. */
void parser_skip_field(struct parser *p);

/* --- parse_decl.c ----------------------------------------------------------------------------- */

/* The type that a declarator makes of `base`; `name` stays as it is when there is none. */
struct decl_type *parse_declarator(struct parser *p, struct decl_type *base, struct token *name);

#endif
