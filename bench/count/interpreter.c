/* SPDX-License-Identifier: MIT */
/* A little language: lexer, recursive descent to byte code, and a machine that runs it. */
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char program[] =
	"n = 60000; i = 2; primes = 0;"
	"while i < n { j = 2; is = 1;"
	"  while j * j < i + 1 { if i % j == 0 { is = 0; j = i; } j = j + 1; }"
	"  primes = primes + is; i = i + 1; }"
	"print primes;"
	"a = 1; b = 1; k = 0;"
	"while k < 4000000 { c = (a + b) % 1000007; a = b; b = c; k = k + 1; }"
	"print a;";

enum op { PUSH, LOAD, STORE, ADD, SUB, MUL, DIV, MOD, LESS, EQUAL, JUMP, JUMP_IF_NOT, PRINT, STOP };

enum kind { END, NUMBER, NAME, PUNCTUATION, WHILE, IF, PRINT_WORD };

struct token {
	enum kind kind;
	int64_t value;
	char text[16];
};

struct insn {
	enum op op;
	int64_t value;
};

static const char *at;
static struct token now;
static struct insn code[1024];
static int n_code;
static char names[32][16];
static int n_names;

static void fail(const char *what)
{
	fprintf(stderr, "interpreter: %s near '%.20s'\n", what, at);
	exit(1);
}

/* ---- words ---- */

static void take_name(void)
{
	size_t n = 0;

	while (isalpha((unsigned char)*at) && n < sizeof(now.text) - 1)
		now.text[n++] = *at++;
	now.text[n] = 0;
	now.kind = NAME;
	if (!strcmp(now.text, "while"))
		now.kind = WHILE;
	else if (!strcmp(now.text, "if"))
		now.kind = IF;
	else if (!strcmp(now.text, "print"))
		now.kind = PRINT_WORD;
}

static void take_number(void)
{
	now.kind = NUMBER;
	now.value = 0;
	while (isdigit((unsigned char)*at))
		now.value = now.value * 10 + (*at++ - '0');
}

static void next(void)
{
	while (isspace((unsigned char)*at))
		at++;
	if (!*at) {
		now.kind = END;
		return;
	}
	if (isalpha((unsigned char)*at)) {
		take_name();
		return;
	}
	if (isdigit((unsigned char)*at)) {
		take_number();
		return;
	}
	now.kind = PUNCTUATION;
	now.text[0] = *at++;
	now.text[1] = 0;
	if (now.text[0] == '=' && *at == '=')
		memcpy(now.text, "==", 3), at++;
}

static int is(const char *text)
{
	return now.kind == PUNCTUATION && !strcmp(now.text, text);
}

static void expect(const char *text)
{
	if (!is(text))
		fail(text);
	next();
}

/* ---- code ---- */

static int put(enum op op, int64_t value)
{
	if (n_code == sizeof(code) / sizeof(code[0]))
		fail("too long");
	code[n_code] = (struct insn){op, value};
	return n_code++;
}

static int variable(const char *name)
{
	for (int i = 0; i < n_names; i++)
		if (!strcmp(names[i], name))
			return i;
	if (n_names == 32)
		fail("too many names");
	strcpy(names[n_names], name);
	return n_names++;
}

static void comparison(void);

/* factor = number | name | "(" comparison ")" */
static void factor(void)
{
	if (now.kind == NUMBER) {
		put(PUSH, now.value);
		next();
	} else if (now.kind == NAME) {
		put(LOAD, variable(now.text));
		next();
	} else {
		expect("(");
		comparison();
		expect(")");
	}
}

/* term = factor { ("*" | "/" | "%") factor } */
static void term(void)
{
	factor();
	for (;;) {
		enum op op = is("*") ? MUL : is("/") ? DIV : MOD;

		if (op == MOD && !is("%"))
			return;
		next();
		factor();
		put(op, 0);
	}
}

/* sum = term { ("+" | "-") term } */
static void sum(void)
{
	term();
	for (;;) {
		enum op op = is("+") ? ADD : SUB;

		if (op == SUB && !is("-"))
			return;
		next();
		term();
		put(op, 0);
	}
}

/* comparison = sum [ ("<" | "==") sum ] */
static void comparison(void)
{
	sum();
	if (is("<")) {
		next();
		sum();
		put(LESS, 0);
	} else if (is("==")) {
		next();
		sum();
		put(EQUAL, 0);
	}
}

static void statement(void);

static void block(void)
{
	expect("{");
	while (!is("}"))
		statement();
	next();
}

/* statement = "while" comparison block | "if" comparison block | "print" comparison ";"
 *	     | name "=" comparison ";" */
static void statement(void)
{
	int start = n_code, out, name;

	switch (now.kind) {
	case WHILE:
		next();
		comparison();
		out = put(JUMP_IF_NOT, 0);
		block();
		put(JUMP, start);
		code[out].value = n_code;
		break;
	case IF:
		next();
		comparison();
		out = put(JUMP_IF_NOT, 0);
		block();
		code[out].value = n_code;
		break;
	case PRINT_WORD:
		next();
		comparison();
		put(PRINT, 0);
		expect(";");
		break;
	case NAME:
		name = variable(now.text);
		next();
		expect("=");
		comparison();
		put(STORE, name);
		expect(";");
		break;
	default:
		fail("no statement");
	}
}

/* ---- the machine ---- */

static uint64_t run(void)
{
	int64_t stack[64], variables[32] = {0};
	int64_t *top = stack;
	uint64_t n_steps = 0;

	for (const struct insn *i = code;; i++) {
		n_steps++;
		switch (i->op) {
		case PUSH:
			*top++ = i->value;
			break;
		case LOAD:
			*top++ = variables[i->value];
			break;
		case STORE:
			variables[i->value] = *--top;
			break;
		case ADD:
			top--;
			top[-1] += top[0];
			break;
		case SUB:
			top--;
			top[-1] -= top[0];
			break;
		case MUL:
			top--;
			top[-1] *= top[0];
			break;
		case DIV:
			top--;
			top[-1] /= top[0] ? top[0] : 1;
			break;
		case MOD:
			top--;
			top[-1] %= top[0] ? top[0] : 1;
			break;
		case LESS:
			top--;
			top[-1] = top[-1] < top[0];
			break;
		case EQUAL:
			top--;
			top[-1] = top[-1] == top[0];
			break;
		case JUMP:
			i = code + i->value - 1;
			break;
		case JUMP_IF_NOT:
			if (!*--top)
				i = code + i->value - 1;
			break;
		case PRINT:
			printf("%ld\n", (long)*--top);
			break;
		case STOP:
			return n_steps;
		}
	}
}

int main(void)
{
	at = program;
	next();
	while (now.kind != END)
		statement();
	put(STOP, 0);
	printf("%lu steps\n", (unsigned long)run());
	return 0;
}
