/* SPDX-License-Identifier: MIT */
/* The words of C's declarations, and of the script's own typedefs. */
#include "probe/script/decl_parser.h"

static const struct type_word type_words[] = {
	{"void", DECL_VOID, 0, false},
	{"bool", DECL_BOOL, 0, true},
	{"_Bool", DECL_BOOL, 0, true},
	{"float", DECL_FLOAT, 0, false},
	{"string", DECL_STRING, 0, false},
#define FIXED(n, s, u)                                                                             \
	{s, DECL_FIXED, n, false},                                                                 \
	{                                                                                          \
		u, DECL_FIXED, n, true                                                             \
	}
#define ALL_FIXED(n, bits)                                                                         \
	FIXED(n, "int" bits, "uint" bits), FIXED(n, "int" bits "_t", "uint" bits "_t"),            \
		FIXED(n, "s" bits, "u" bits), FIXED(n, "__s" bits, "__u" bits)
	ALL_FIXED(1, "8"),
	ALL_FIXED(2, "16"),
	ALL_FIXED(4, "32"),
	ALL_FIXED(8, "64"),
};

/* Names that every C program has. */
static const char *const named_words[] = {"size_t", "ssize_t", "intptr_t", "uintptr_t", "ptrdiff_t",
	"off_t", "time_t", "pid_t", "uid_t", "gid_t", "mode_t", "dev_t", "ino_t", "socklen_t",
	"wchar_t", NULL};
const char *const number_words[] = {"char", "short", "int", "long", "double", "signed",
	"__signed__", "__signed", "unsigned", NULL};
const char *const tag_words[] = {"struct", "union", "enum", NULL};
const char *const qualifier_words[] = {"const", "volatile", "restrict", "__const", "__volatile__",
	"__restrict", "__restrict__", "_Atomic", NULL};
const char *const storage_words[] = {
	"extern", "static", "inline", "__inline", "register", "_Noreturn", "__extension__", NULL};

const struct type_word *type_word_find(const struct parser *p, struct token t)
{
	for (size_t i = 0; i < sizeof(type_words) / sizeof(type_words[0]); i++)
		if (token_is(p, t, type_words[i].name))
			return &type_words[i];
	return NULL;
}

static uint64_t word_hash(const struct parser *p, struct token t)
{
	return map_hash_bytes(p->lexer.text + t.from, t.to - t.from);
}

void word_add_typedef(struct parser *p, struct token t)
{
	map_ensure(&p->typedefs, word_hash(p, t), NULL);
}

bool word_is_type(const struct parser *p, struct token t)
{
	return t.kind == TOKEN_NAME &&
	       (word_in(p, t, number_words) || word_in(p, t, tag_words) ||
		       word_in(p, t, qualifier_words) || word_in(p, t, named_words) ||
		       token_is(p, t, "typeof") || type_word_find(p, t) ||
		       map_find(&p->typedefs, word_hash(p, t)));
}

bool word_begins_decl(const struct parser *p, struct token t)
{
	return word_is_type(p, t) || word_in(p, t, storage_words) || token_is(p, t, "typedef") ||
	       token_is(p, t, "__attribute__") || token_is(p, t, "_Alignas");
}
