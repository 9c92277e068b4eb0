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
	{s, DECL_FIXED, n, false}, {u, DECL_FIXED, n, true}
#define ALL_FIXED(n, bits)                                                                         \
	FIXED(n, "int" bits, "uint" bits), FIXED(n, "int" bits "_t", "uint" bits "_t"),            \
		FIXED(n, "s" bits, "u" bits), FIXED(n, "__s" bits, "__u" bits)
	ALL_FIXED(1, "8"),
	ALL_FIXED(2, "16"),
	ALL_FIXED(4, "32"),
	ALL_FIXED(8, "64"),
	{"size_t", DECL_NAMED, 0, false},
	{"ssize_t", DECL_NAMED, 0, false},
	{"intptr_t", DECL_NAMED, 0, false},
	{"uintptr_t", DECL_NAMED, 0, false},
	{"ptrdiff_t", DECL_NAMED, 0, false},
	{"off_t", DECL_NAMED, 0, false},
	{"time_t", DECL_NAMED, 0, false},
	{"pid_t", DECL_NAMED, 0, false},
	{"uid_t", DECL_NAMED, 0, false},
	{"gid_t", DECL_NAMED, 0, false},
	{"mode_t", DECL_NAMED, 0, false},
	{"dev_t", DECL_NAMED, 0, false},
	{"ino_t", DECL_NAMED, 0, false},
	{"socklen_t", DECL_NAMED, 0, false},
	{"wchar_t", DECL_NAMED, 0, false},
};

/* Words that combine with each other: unsigned long int. */
static const char *const number_words[] = {"char", "short", "int", "long", "double", "signed",
	"__signed__", "__signed", "unsigned", NULL};
static const char *const tag_words[] = {"struct", "union", "enum", NULL};
static const char *const qualifiers[] = {"const", "volatile", "restrict", "__const", "__volatile__",
	"__restrict", "__restrict__", "_Atomic", NULL};
static const char *const storage_words[] = {
	"extern", "static", "inline", "__inline", "register", "_Noreturn", "__extension__", NULL};

bool word_in(const struct parser *p, struct token t, const char *const *words)
{
	for (; *words; words++)
		if (token_is(p, t, *words))
			return true;
	return false;
}

const struct type_word *type_word_find(const struct parser *p, struct token t)
{
	for (size_t i = 0; i < sizeof(type_words) / sizeof(type_words[0]); i++)
		if (token_is(p, t, type_words[i].name))
			return &type_words[i];
	return NULL;
}

bool word_is_qualifier(const struct parser *p, struct token t)
{
	return word_in(p, t, qualifiers);
}

bool word_is_storage(const struct parser *p, struct token t)
{
	return word_in(p, t, storage_words);
}

bool word_is_number(const struct parser *p, struct token t)
{
	return word_in(p, t, number_words);
}

bool word_is_tag(const struct parser *p, struct token t)
{
	return word_in(p, t, tag_words);
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
	return t.kind == TOKEN_NAME && (word_in(p, t, number_words) || word_in(p, t, tag_words) ||
					       word_in(p, t, qualifiers) || type_word_find(p, t) ||
					       map_find(&p->typedefs, word_hash(p, t)));
}

bool word_begins_decl(const struct parser *p, struct token t)
{
	return word_is_type(p, t) || word_in(p, t, storage_words) || token_is(p, t, "typedef") ||
	       token_is(p, t, "__attribute__") || token_is(p, t, "_Alignas");
}
