/* SPDX-License-Identifier: MIT */
/*
 * The lexer never fails: what is no token is reported and skipped, a text without an end becomes
 * TOKEN_BAD, and a comment without an end is the end. Numbers and texts are only measured here
 * (literal.c reads them), so that looking ahead costs nothing and reports nothing twice.
 */
#include "probe/script/lex.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

static const struct punctuation {
	const char text[4];
	uint8_t n;
	uint16_t kind;
} punctuation[] = {
	/* The longer ones first. */
	{"<<=", 3, TOKEN_ASSIGN_SHL},
	{">>=", 3, TOKEN_ASSIGN_SHR},
	{"...", 3, TOKEN_ELLIPSIS},
	{"->", 2, TOKEN_ARROW},
	{"++", 2, TOKEN_INCREMENT},
	{"--", 2, TOKEN_DECREMENT},
	{"<<", 2, TOKEN_SHL},
	{">>", 2, TOKEN_SHR},
	{"<=", 2, TOKEN_LE},
	{">=", 2, TOKEN_GE},
	{"==", 2, TOKEN_EQ},
	{"!=", 2, TOKEN_NE},
	{"&&", 2, TOKEN_LOGICAL_AND},
	{"||", 2, TOKEN_LOGICAL_OR},
	{"..", 2, TOKEN_RANGE},
	{"+=", 2, TOKEN_ASSIGN_ADD},
	{"-=", 2, TOKEN_ASSIGN_SUB},
	{"*=", 2, TOKEN_ASSIGN_MUL},
	{"/=", 2, TOKEN_ASSIGN_DIV},
	{"%=", 2, TOKEN_ASSIGN_MOD},
	{"&=", 2, TOKEN_ASSIGN_AND},
	{"|=", 2, TOKEN_ASSIGN_OR},
	{"^=", 2, TOKEN_ASSIGN_XOR},
};

static const char single_characters[] = "(){}[];:,.+-*/%&|^~!<>=?";

#define DEFINES_MAX 1000

static const char *const directives[] = {"include", "define", "undef", "ifdef", "ifndef", "if",
	"elif", "else", "endif", "pragma", "error", "line", NULL};

static bool is_name_start(char c)
{
	return isalpha((unsigned char)c) || c == '_';
}

static bool is_name_part(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

void lexer_init(
	struct lexer *l, const struct sources *sources, uint32_t source_i, struct diags *diags)
{
	const struct source *s = &sources->v.v[source_i];

	assert(s->n < UINT32_MAX);
	*l = (struct lexer){
		.text = s->text, .n = (uint32_t)s->n, .source_i = source_i, .diags = diags};
	if (l->n >= 3 && !memcmp(l->text, "\xef\xbb\xbf", 3)) /* byte order mark */
		l->pos = l->start = 3;
	if (l->n >= l->pos + 2 && !memcmp(l->text + l->pos, "#!", 2))
		while (l->pos < l->n && l->text[l->pos] != '\n')
			l->pos++;
}

static struct place place_of(const struct lexer *l, uint32_t from, uint32_t to)
{
	return (struct place){l->source_i, from, to, 0};
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static void skip_line(struct lexer *l)
{
	const char *end = memchr(l->text + l->pos, '\n', l->n - l->pos);

	l->pos = end ? (uint32_t)(end - l->text) : l->n;
}

static void skip_block_comment(struct lexer *l)
{
	const char *end = memmem(l->text + l->pos + 2, l->n - l->pos - 2, "*/", 2);

	if (end) {
		l->pos = (uint32_t)(end - l->text) + 2;
		return;
	}
	if (l->diags)
		diag_error(l->diags, place_of(l, l->pos, l->pos + 2), "unterminated",
			"the comment has no end");
	l->pos = l->n;
	l->is_cut = true;
}

static bool is_line_start(const struct lexer *l)
{
	uint32_t i = l->pos;

	while (i > l->start && is_blank(l->text[i - 1]))
		i--;
	return i == l->start || l->text[i - 1] == '\n';
}

/* Whether the directive at `from` is this word; the words of "#if" and "#ifdef" are two. */
static bool directive_is(const struct lexer *l, uint32_t from, const char *word)
{
	size_t n = strlen(word);

	return l->n - from > n && !memcmp(l->text + from + 1, word, n) &&
	       !is_name_part(l->text[from + 1 + n]);
}

/* From a condition that does not hold to behind its #else or #endif; false when it has none. */
static bool skip_condition(struct lexer *l, bool to_else)
{
	unsigned depth = 0;

	for (skip_line(l); l->pos < l->n; skip_line(l)) {
		l->pos++;
		while (is_blank(l->text[l->pos]))
			l->pos++;
		if (l->text[l->pos] != '#')
			continue;
		if (directive_is(l, l->pos, "if") || directive_is(l, l->pos, "ifdef") ||
			directive_is(l, l->pos, "ifndef")) {
			depth++;
		} else if (directive_is(l, l->pos, "endif") && !depth--) {
			skip_line(l);
			return true;
		} else if (to_else && !depth && directive_is(l, l->pos, "else")) {
			l->n_conditions++;
			skip_line(l);
			return true;
		}
	}
	return false;
}

/*
 * Many scripts of bpftrace say which headers they need where the kernel does not describe its
 * types: #ifndef BPFTRACE_HAVE_BTF #include <linux/sched.h> #endif Here it always does. This is the
 * only condition that is known. False for any other line.
 */
static bool skip_known_condition(struct lexer *l)
{
	static const char name[] = "BPFTRACE_HAVE_BTF";
	bool is_not = directive_is(l, l->pos, "ifndef");
	uint32_t from = l->pos, at = from + (is_not ? 7 : 6);
	bool has_end = true;

	if (l->n_conditions && directive_is(l, from, "else")) {
		l->n_conditions--;
		has_end = skip_condition(l, false);
	} else if (l->n_conditions && directive_is(l, from, "endif")) {
		l->n_conditions--;
		skip_line(l);
	} else if (is_not || directive_is(l, from, "ifdef")) {
		while (is_blank(l->text[at]))
			at++;
		if (strncmp(l->text + at, name, strlen(name)) ||
			is_name_part(l->text[at + strlen(name)]))
			return false;
		if (is_not) {
			has_end = skip_condition(l, true);
		} else {
			l->n_conditions++;
			skip_line(l);
		}
	} else {
		return false;
	}
	if (!has_end && l->diags)
		diag_error(l->diags, place_of(l, from, from + (is_not ? 7 : 5)), "unterminated",
			"the condition has no #endif");
	l->is_cut |= !has_end;
	return true;
}

static bool is_joined_line(const struct lexer *l, uint32_t at)
{
	return l->text[at] == '\\' && l->text[at + 1] == '\n';
}

/* The end of what a #define stands for: of the line, or where a comment begins. */
static uint32_t body_end(const struct lexer *l, uint32_t from)
{
	uint32_t to = from;

	while (to < l->n && l->text[to] != '\n' &&
		!(l->text[to] == '/' && (l->text[to + 1] == '/' || l->text[to + 1] == '*'))) {
		if (l->text[to] == '"')
			while (to + 1 < l->n && l->text[to + 1] != '"' && l->text[to + 1] != '\n')
				to++;
		to += is_joined_line(l, to) ? 2 : 1;
	}
	while (to > from && isspace((unsigned char)l->text[to - 1]))
		to--;
	return to;
}

/* Behind the ')' of a #define with parameters; 0 when the line has none. */
static uint32_t parameters_end(const struct lexer *l, uint32_t from)
{
	while (from < l->n && l->text[from] != '\n' && l->text[from] != ')')
		from++;
	return from < l->n && l->text[from] == ')' ? from + 1 : 0;
}

/* "#define NAME EXPRESSION" is kept, for the parser puts it where the name stands; false for what
 * is no such line. */
static bool take_define(struct lexer *l)
{
	struct lexer_define d = {.text = l->text,
		.body_text = l->text,
		.body_source_i = l->source_i,
		.from = l->pos + 7};

	if (!directive_is(l, l->pos, "define"))
		return false;
	while (is_blank(l->text[d.from]))
		d.from++;
	for (d.to = d.from; is_name_part(l->text[d.to]);)
		d.to++;
	d.body_from = d.to;
	if (l->text[d.to] == '(') {
		d.parameters = d.to;
		d.body_from = parameters_end(l, d.to);
	}
	if (d.to == d.from || !is_name_start(l->text[d.from]) || !d.body_from)
		return false;
	while (is_blank(l->text[d.body_from]) || is_joined_line(l, d.body_from))
		d.body_from++;
	d.body_to = body_end(l, d.body_from);
	if (l->diags && l->defines && l->defines->v.n < DEFINES_MAX)
		vec_push(&l->defines->v, d);
	l->pos = d.body_to;
	skip_line(l);
	return true;
}

/* Scripts of bpftrace name the kernel's headers; what is in them is known without. */
static bool skip_include(struct lexer *l)
{
	uint32_t from = l->pos;

	if (!directive_is(l, from, "include"))
		return false;
	skip_line(l);
	if (!l->diags)
		return true;
	diag_warning(l->diags, place_of(l, from, l->pos), "declaration",
		"#include is not done: types are those of the traced programs and of the kernel");
	diag_hint(l->diags, "declare in the script what is not known without it");
	return true;
}

/* "# words" is a comment, "#pragma" something that is not done here. */
static void skip_hash_line(struct lexer *l)
{
	uint32_t from = l->pos;

	if (skip_known_condition(l) || take_define(l) || skip_include(l))
		return;
	for (const char *const *d = directives; *d && l->diags; d++) {
		if (!directive_is(l, from, *d))
			continue;
		diag_error(l->diags, place_of(l, from, from + 1 + (uint32_t)strlen(*d)),
			"declaration", "'#%s' is not done: there is no preprocessor", *d);
		diag_hint(l->diags, "of its lines only #define is known, for expressions, and "
				    "#ifdef BPFTRACE_HAVE_BTF");
	}
	skip_line(l);
}

void lexer_skip_space(struct lexer *l)
{
	while (l->pos < l->n) {
		const char *p = l->text + l->pos;

		if (*p == ' ' || (*p >= '\t' && *p <= '\r') || is_joined_line(l, l->pos))
			l->pos++;
		else if (p[0] == '/' && p[1] == '/')
			skip_line(l);
		else if (p[0] == '/' && p[1] == '*')
			skip_block_comment(l);
		else if (*p == '#' && is_line_start(l))
			skip_hash_line(l);
		else
			return;
	}
}

static bool is_token_start(const struct lexer *l, uint32_t at)
{
	char c = l->text[at];

	return is_name_part(c) || isspace((unsigned char)c) || c == '"' || c == '\'' || c == '@' ||
	       c == '$' || (c && strchr(single_characters, c));
}

/* One message for all that stand together. */
static void skip_wrong_characters(struct lexer *l)
{
	uint32_t from = l->pos, to;
	size_t n = utf8_bytes(l->text + from, l->n - from);

	do
		l->pos++;
	while (l->pos < l->n && !is_token_start(l, l->pos));
	to = l->pos;
	if (l->text[from] == '#')
		skip_line(l); /* meant as a comment */
	if (!l->diags)
		return;
	if (n && (unsigned char)l->text[from] > ' ' && l->text[from] != 0x7f)
		diag_error(l->diags, place_of(l, from, to), "character",
			"'%.*s' is no part of the language", (int)n, l->text + from);
	else
		diag_error(l->diags, place_of(l, from, to), "character",
			"the byte 0x%02x is no part of the language", (unsigned char)l->text[from]);
}

/* From one quote to the next on the same line. */
static struct token quoted(struct lexer *l, char quote)
{
	struct token t = {quote == '"' ? TOKEN_STRING : TOKEN_CHAR, l->pos, 0};
	uint32_t i = l->pos + 1;

	while (i < l->n && l->text[i] != quote && l->text[i] != '\n')
		i += l->text[i] == '\\' && i + 1 < l->n && l->text[i + 1] != '\n' ? 2 : 1;
	if (i < l->n && l->text[i] == quote) {
		i++;
	} else {
		if (l->diags)
			diag_error(l->diags, place_of(l, l->pos, i), "unterminated",
				"the %s has no closing %c", quote == '"' ? "text" : "character",
				quote);
		t.kind = TOKEN_BAD;
		l->is_cut = true; /* it may have hidden a closing brace */
	}
	l->pos = t.to = i;
	return t;
}

static struct token word(struct lexer *l, int kind, uint32_t n_before)
{
	struct token t = {kind, l->pos, l->pos + n_before};

	while (t.to < l->n && is_name_part(l->text[t.to]))
		t.to++;
	l->pos = t.to;
	return t;
}

static int dollar_kind(const struct lexer *l)
{
	char next = l->text[l->pos + 1];

	return is_name_start(next)	      ? TOKEN_LOCAL
	       : isdigit((unsigned char)next) ? TOKEN_PARAMETER
	       : next == '#'		      ? TOKEN_PARAMETER_COUNT
					      : 0;
}

static bool punctuation_next(struct lexer *l, struct token *t)
{
	const char *p = l->text + l->pos;

	*t = (struct token){*p, l->pos, l->pos + 1};
	for (size_t i = 0; i < sizeof(punctuation) / sizeof(punctuation[0]); i++) {
		if (strncmp(p, punctuation[i].text, punctuation[i].n))
			continue;
		t->kind = punctuation[i].kind;
		t->to = l->pos + punctuation[i].n;
		l->pos = t->to;
		return true;
	}
	if (!*p || !strchr(single_characters, *p))
		return false;
	l->pos = t->to;
	return true;
}

struct token lexer_next(struct lexer *l)
{
	struct token t;

	for (;;) {
		char c;

		lexer_skip_space(l);
		if (l->pos >= l->n)
			return (struct token){TOKEN_END, l->n, l->n};
		c = l->text[l->pos];
		if (is_name_start(c))
			return word(l, TOKEN_NAME, 1);
		if (isdigit((unsigned char)c))
			return word(l, TOKEN_NUMBER, 1);
		if (c == '@')
			return word(l, TOKEN_MAP, 1);
		if (c == '"' || c == '\'')
			return quoted(l, c);
		if (c == '$' && dollar_kind(l) == TOKEN_PARAMETER_COUNT) {
			l->pos += 2;
			return (struct token){TOKEN_PARAMETER_COUNT, l->pos - 2, l->pos};
		}
		if (c == '$' && dollar_kind(l))
			return word(l, dollar_kind(l), 1);
		if (punctuation_next(l, &t))
			return t;
		skip_wrong_characters(l);
		if (c == '$') /* a variable without a name */
			return (struct token){TOKEN_BAD, l->pos - 1, l->pos};
	}
}
