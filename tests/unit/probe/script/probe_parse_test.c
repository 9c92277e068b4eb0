/* SPDX-License-Identifier: MIT */
/* Scripts as trees. A tree is compared in one line: a node, and its parts in parentheses. */
#include <dirent.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/file.h"
#include "check.h"
#include "probe/script/parse.h"
#include "script_print.h"

struct parsed {
	struct sources sources;
	struct diags diags;
	struct script *script;
};

static void parse_words(
	struct parsed *p, const char *text, size_t n, const char *const *words, size_t n_words)
{
	struct script_parameters parameters = {.words = words, .n = n_words};

	*p = (struct parsed){0};
	sources_add(&p->sources, "test.wr", (struct span){(const uint8_t *)text, n});
	diags_init(&p->diags, &p->sources);
	p->script = script_parse(&p->sources, &parameters, &p->diags);
}

static void parsed_release(struct parsed *p)
{
	script_free(p->script);
	diags_release(&p->diags);
	sources_release(&p->sources);
}

/* "a\n  b\n  c\n" -> "a (b, c)" */
static void fold_lines(const char *text, struct buf *out)
{
	size_t depth = 0, first = 0;

	for (bool is_first = true; *text; is_first = false) {
		size_t blanks = strspn(text, " "), n = strcspn(text, "\n");
		size_t level = blanks / 2;

		if (is_first)
			first = depth = level;
		else if (level > depth)
			buf_put_cstr(out, " (");
		for (; level < depth; depth--)
			buf_put_cstr(out, ")");
		if (!is_first && out->p[out->n - 1] != '(')
			buf_put_cstr(out, ", ");
		buf_put(out, text + blanks, n - blanks);
		depth = level;
		text += n + (text[n] == '\n');
	}
	for (; depth > first; depth--)
		buf_put_cstr(out, ")");
}

static char *tree_of(const struct parsed *p)
{
	struct buf lines = {0}, out = {0};
	char *text;

	diags_text(&p->diags, &lines);
	script_print(p->script, &lines);
	fold_lines(buf_text(&lines), &out);
	text = mem_strdup(buf_text(&out));
	buf_release(&lines);
	buf_release(&out);
	return text;
}

static void check_tree(const char *file, int line, const char *text, const char *expected)
{
	static const char *const words[] = {"12", "abc", "-3"};
	struct parsed p;
	char *tree;

	parse_words(&p, text, strlen(text), words, 3);
	tree = tree_of(&p);
	if (p.diags.n_errors || strcmp(tree, expected)) {
		check_failures++;
		printf("%s:%d: '%s' is\n  %s\nexpected\n  %s\n", file, line, text, tree, expected);
	}
	free(tree);
	parsed_release(&p);
}

#define TREE(text, expected) check_tree(__FILE__, __LINE__, text, expected)
/* The first statement of a clause, and all of one. */
#define STATEMENT(text, expected)                                                                  \
	TREE("begin { " text " }", "clause (point \"begin\", body (" expected "))")
#define EXPR(text, expected)   STATEMENT("$r = " text ";", "assign = (local $r, " expected ")")
#define POINTS(text, expected) TREE(text, "clause (" expected ", body)")
#define DECLARATION(text, expected)                                                                \
	TREE(text " begin { }", expected ", clause (point \"begin\", body)")

static void operators(void)
{
	EXPR("1 + 2 * 3", "binary + (int 1, binary * (int 2, int 3))");
	EXPR("1 - 2 - 3", "binary - (binary - (int 1, int 2), int 3)");
	EXPR("(1 - 2) % 3", "binary % (binary - (int 1, int 2), int 3)");
	EXPR("1 || 2 && 3", "binary || (int 1, binary && (int 2, int 3))");
	EXPR("1 | 2 ^ 3 & 4", "binary | (int 1, binary ^ (int 2, binary & (int 3, int 4)))");
	EXPR("1 & 2 == 3", "binary & (int 1, binary == (int 2, int 3))");
	EXPR("1 != 2 < 3", "binary != (int 1, binary < (int 2, int 3))");
	EXPR("1 <= 2 << 3", "binary <= (int 1, binary << (int 2, int 3))");
	EXPR("1 >> 2 + 3", "binary >> (int 1, binary + (int 2, int 3))");
	EXPR("8 / 4 >= 2 > 1", "binary > (binary >= (binary / (int 8, int 4), int 2), int 1)");
	EXPR("-1 * ~2", "binary * (unary - (int 1), unary ~ (int 2))");
	EXPR("!*p", "unary ! (unary * (name p))");
	EXPR("&g + +1", "binary + (unary & (name g), int 1)");
	EXPR("a ? b : c ? d : e", "ternary (name a, name b, ternary (name c, name d, name e))");
	EXPR("- -1", "unary - (unary - (int 1))");
}

static void assignments(void)
{
	STATEMENT("$x = $y = 1;", "assign = (local $x, assign = (local $y, int 1))");
	STATEMENT("$x += 1; $x -= 2; $x *= 3; $x /= 4; $x %= 5",
		"assign += (local $x, int 1), assign -= (local $x, int 2), "
		"assign *= (local $x, int 3), assign /= (local $x, int 4), "
		"assign %= (local $x, int 5)");
	STATEMENT("@a &= 1; @a |= 2; @a ^= 3; @a <<= 4; @a >>= 5;",
		"assign &= (map @a, int 1), assign |= (map @a, int 2), assign ^= (map @a, int 3), "
		"assign <<= (map @a, int 4), assign >>= (map @a, int 5)");
	STATEMENT("$x++; --@m[1]; self->y--; ++$z",
		"step after + (local $x), step before - (map @m (int 1)), "
		"step after - (self y), step before + (local $z)");
	STATEMENT("thread->a = 1; this->b = 2;",
		"assign = (self a, int 1), assign = (local $b, int 2)");
}

static void literals(void)
{
	EXPR("0x1F", "int 31");
	EXPR("0b101", "int 5");
	EXPR("017", "int 15");
	EXPR("0", "int 0");
	EXPR("1_000_000", "int 1000000");
	EXPR("1e6", "int 1000000");
	EXPR("0e99999999999", "int 0");
	EXPR("5u", "int 5u");
	EXPR("5L", "int 5");
	EXPR("0xffULL", "int 255u");
	EXPR("9223372036854775807", "int 9223372036854775807");
	EXPR("9223372036854775808", "int 9223372036854775808u");
	EXPR("18446744073709551615", "int 18446744073709551615u");
	EXPR("10ns", "int 10");
	EXPR("10us", "int 10000");
	EXPR("10ms", "int 10000000");
	EXPR("10s", "int 10000000000");
	EXPR("2m", "int 120000000000");
	EXPR("1h", "int 3600000000000");
	EXPR("1d", "int 86400000000000");
	EXPR("'a'", "int 97");
	EXPR("'\\n'", "int 10");
	EXPR("'\\''", "int 39");
	EXPR("'\\xff'", "int -1");
	EXPR("true", "int 1");
	EXPR("false", "int 0");
	EXPR("\"a\\tb\\\\c\\\"d\\x41\\101\\0e\"", "string \"a\\x09b\\\\c\\\"dAA\\x00e\"");
	EXPR("\"\\x4g\"", "string \"\\x04g\"");
	EXPR("\"\xc3\xa9 // no comment\"", "string \"\\xc3\\xa9 // no comment\"");
	EXPR("\"\"", "string \"\"");
}

static void parameters(void)
{
	EXPR("$1 + 1", "binary + (int 12, int 1)");
	EXPR("str($1)", "string \"12\"");
	EXPR("str($2)", "string \"abc\"");
	EXPR("$2", "string \"abc\"");
	EXPR("comm == $2", "binary == (name comm, string \"abc\")");
	EXPR("$3", "int -3");
	EXPR("$4", "int 0");
	EXPR("str($4)", "string \"\"");
	EXPR("$#", "int 3");
	EXPR("str($2, 2)", "call str (string \"abc\", int 2)");
	EXPR("str($1 + 1)", "string \"2\"");
	POINTS("uprobe:$2:f$1 { }", "point \"uprobe:abc:f12\"");
	POINTS("beg$2in { }", "point \"begabcin\"");
	POINTS("$2 { }", "point \"abc\"");
	POINTS("uprobe:\"$2\":f { }", "point \"uprobe:$2:f\"");
}

static void names_calls_and_maps(void)
{
	EXPR("pid", "name pid");
	EXPR("args.fd", "member .fd (name args)");
	EXPR("f()", "call f");
	EXPR("f(1, g(2), \"x\")", "call f (int 1, call g (int 2), string \"x\")");
	EXPR("@", "map @");
	EXPR("@x", "map @x");
	EXPR("@[1]", "map @ (int 1)");
	EXPR("@x[1, comm]", "map @x (int 1, name comm)");
	EXPR("@x[(1, comm)]", "map @x (int 1, name comm)");
	EXPR("@x[(1, 2), 3]", "map @x (tuple (int 1, int 2), int 3)");
	EXPR("@x[1].a", "member .a (map @x (int 1))");
	EXPR("(1, \"a\", (2, 3))", "tuple (int 1, string \"a\", tuple (int 2, int 3))");
	EXPR("$t.0.1", "member .1 (member .0 (local $t))");
	EXPR("$p->a.b[2]", "index (member .b (member ->a (local $p)), int 2)");
	EXPR("$p->if", "member ->if (local $p)");
	EXPR("self->p->q", "member ->q (self p)");
	EXPR("self", "name self");
	EXPR("*$p->a", "unary * (member ->a (local $p))");
	STATEMENT("delete(@x[1]); delete(@x, (1, 2));",
		"call delete (map @x (int 1)), call delete (map @x, tuple (int 1, int 2))");
}

static void casts_and_sizes(void)
{
	EXPR("(struct foo *)x", "cast (pointer (struct foo), name x)");
	EXPR("(uint8)x", "cast (unsigned fixed 1, name x)");
	EXPR("(uint8)-1", "cast (unsigned fixed 1, unary - (int 1))");
	EXPR("(int32 *)$p", "cast (pointer (fixed 4), local $p)");
	EXPR("(Item *)arg0", "cast (pointer (named Item), name arg0)");
	EXPR("(Item * const *)arg0", "cast (pointer (pointer (named Item)), name arg0)");
	EXPR("(Item)arg0", "cast (named Item, name arg0)");
	EXPR("(Item)(arg0)", "cast (named Item, name arg0)");
	EXPR("(pid) - 1", "binary - (name pid, int 1)");
	EXPR("(pid) * (tid)", "binary * (name pid, name tid)");
	EXPR("(a * b)", "binary * (name a, name b)");
	EXPR("(size_t)*p", "cast (named size_t, unary * (name p))");
	EXPR("(const char *)p", "cast (pointer (char), name p)");
	EXPR("(unsigned long)p->x", "cast (unsigned long, member ->x (name p))");
	EXPR("((struct a *)p)->x", "member ->x (cast (pointer (struct a), name p))");
	EXPR("(int (*)(int))p", "cast (pointer (function (int, field (int))), name p)");
	EXPR("(uint8[4])p", "cast (array (int 4, unsigned fixed 1), name p)");
	EXPR("(int)(char)p", "cast (int, cast (char, name p))");
	EXPR("sizeof(struct a)", "sizeof (struct a)");
	EXPR("sizeof(long *)", "sizeof (pointer (long))");
	EXPR("sizeof(Item *)", "sizeof (pointer (named Item))");
	EXPR("sizeof($x.y)", "sizeof (member .y (local $x))");
	EXPR("sizeof(Item)", "sizeof (name Item)");
	EXPR("sizeof(a * b)", "sizeof (binary * (name a, name b))");
	EXPR("offsetof(struct a, b)", "offsetof b (struct a)");
	EXPR("offsetof(Item, b.c)", "offsetof b.c (named Item)");
	/* A typedef of the script is a type whatever follows it. */
	TREE("typedef int Item; begin { $r = (Item)-1; $s = sizeof(Item); }",
		"typedef Item (int), clause (point \"begin\", body ("
		"assign = (local $r, cast (named Item, unary - (int 1))), "
		"assign = (local $s, sizeof (named Item))))");
}

static void statements(void)
{
	STATEMENT("if (a) { b(); }", "if (name a, body (call b))");
	STATEMENT("if (a) { b(); } else { c(); } d();",
		"if (name a, body (call b), else (call c)), call d");
	STATEMENT("if (a) b(); else if (c) { d() } else e();",
		"if (name a, body (call b), else (if (name c, body (call d), else (call e))))");
	STATEMENT("while ($i < 3) { $i++; continue; }",
		"while (binary < (local $i, int 3), body (step after + (local $i), continue))");
	STATEMENT("for ($i : 0..5) { break; }", "for $i (int 0, int 5, body (break))");
	STATEMENT("for ($i : (0..5)) { break; }", "for $i (int 0, int 5, body (break))");
	STATEMENT("for ($i : (1)..(2)) { break; }", "for $i (int 1, int 2, body (break))");
	STATEMENT("for $i : $a+1..$b { break; }",
		"for $i (binary + (local $a, int 1), local $b, body (break))");
	STATEMENT("for ($kv : @m) { f($kv.0); };",
		"for-map $kv (map @m, body (call f (member .0 (local $kv))))");
	STATEMENT("for ($i : @a..@b) { f(); }", "for $i (map @a, map @b, body (call f))");
	STATEMENT("for ($i : @a[1]..2) { f(); }", "for $i (map @a (int 1), int 2, body (call f))");
	STATEMENT("unroll(3) { f(); }", "unroll (int 3, body (call f))");
	STATEMENT("unroll ($1) { f(); }", "unroll (int 12, body (call f))");
	STATEMENT("return; { f(); } ;;", "return, block (body (call f))");
	STATEMENT("let $x; let $y = 1; let $z: uint8 = 2; let $p: struct a *",
		"let (local $x), let (local $y, int 1), "
		"let (local $z, unsigned fixed 1, int 2), let (local $p, pointer (struct a))");
	STATEMENT("let $s: string[64]; let $t: string = \"x\"; let $b : uint8[16];",
		"let (local $s, string (int 64)), let (local $t, string, string \"x\"), "
		"let (local $b, array (int 16, unsigned fixed 1))");
}

static void trace_points(void)
{
	POINTS("begin{}", "point \"begin\"");
	POINTS("BEGIN { }", "point \"BEGIN\"");
	POINTS("profile:hz:99 { }", "point \"profile:hz:99\"");
	POINTS("uprobe:/a:f,\nuprobe:/b:g{}", "point \"uprobe:/a:f\", point \"uprobe:/b:g\"");
	POINTS("uprobe:/a:f , // one\n uprobe:/b:g /* two */ {}",
		"point \"uprobe:/a:f\", point \"uprobe:/b:g\"");
	POINTS("uprobe:\"/a b/c\":f { }", "point \"uprobe:/a b/c:f\"");
	POINTS("uprobe:/lib/*.so*:\"ns::f<a, b>(int, char) const\" { }",
		"point \"uprobe:/lib/*.so*:ns::f<a, b>(int, char) const\"");
	POINTS("uprobe:./prog:main/x.f { }", "point \"uprobe:./prog:main/x.f\"");
	POINTS("*:f { }", "point \"*:f\"");
	POINTS("begin // comment\n{ }", "point \"begin\"");
	POINTS("uprobe:/lib/x.so:f+0x10 { }", "point \"uprobe:/lib/x.so:f+0x10\"");
	POINTS("long:x { }", "point \"long:x\"");
}

#define PID_IS_1 "predicate (binary == (name pid, int 1))"

static void predicates(void)
{
	POINTS("uprobe:/lib/x.so:f /pid == 1/ { }", "point \"uprobe:/lib/x.so:f\", " PID_IS_1);
	POINTS("uprobe:/lib/x.so:f\n/pid == 1/\n// x\n{ }",
		"point \"uprobe:/lib/x.so:f\", " PID_IS_1);
	POINTS("uprobe:/lib/x.so:f/pid == 1/ { }", "point \"uprobe:/lib/x.so:f\", " PID_IS_1);
	POINTS("uprobe:/lib/x.so:f/pid==1/{}", "point \"uprobe:/lib/x.so:f\", " PID_IS_1);
	POINTS("uprobe:/p:main/x.f /pid==1/{}", "point \"uprobe:/p:main/x.f\", " PID_IS_1);
	POINTS("tracepoint:a:b/pid==1/{}", "point \"tracepoint:a:b\", " PID_IS_1);
	POINTS("kprobe:vfs_*/pid==1/{}", "point \"kprobe:vfs_*\", " PID_IS_1);
	POINTS("begin/pid == 1/ { }", "point \"begin\", " PID_IS_1);
	POINTS("begin /pid / 2 == 1/ { }",
		"point \"begin\", predicate (binary == (binary / (name pid, int 2), int 1))");
	POINTS("begin /(pid / 2)/ { }", "point \"begin\", predicate (binary / (name pid, int 2))");
	POINTS("begin /@x[1]/{}", "point \"begin\", predicate (map @x (int 1))");
}

static void comments_and_first_lines(void)
{
	TREE("#!/usr/bin/weir probe\nbegin { }", "clause (point \"begin\", body)");
	TREE("\xef\xbb\xbf# words\n  # more\nbegin { }", "clause (point \"begin\", body)");
	STATEMENT("/* a */ $x = /* b */ 1; // c\n # d\n", "assign = (local $x, int 1)");
	TREE("begin { } end { }", "clause (point \"begin\", body), clause (point \"end\", body)");
	TREE("config = { a = 1; b = \"x\", c = word; d = true } begin { }",
		"config (assign = (name a, int 1), assign = (name b, string \"x\"), "
		"assign = (name c, string \"word\"), assign = (name d, int 1)), "
		"clause (point \"begin\", body)");
	/* The one condition that scripts of bpftrace have. */
	TREE("#ifndef BPFTRACE_HAVE_BTF\n#include <x>\n#if 1\n#else\n#endif\n#else\nbegin { }\n"
	     "#endif\nend { }",
		"clause (point \"begin\", body), clause (point \"end\", body)");
	TREE("#ifdef BPFTRACE_HAVE_BTF\nbegin { }\n#else\n#include <x>\n#endif\nend { }",
		"clause (point \"begin\", body), clause (point \"end\", body)");
	TREE("config:x { }", "clause (point \"config:x\", body)");
}

static void simple_declarations(void)
{
	DECLARATION("int a;", "declare a (int)");
	DECLARATION("extern long counter;", "declare counter (long)");
	DECLARATION("unsigned x, *y, z[2][3];",
		"declare x (unsigned int), declare y (pointer (unsigned int)), "
		"declare z (array (int 2, array (int 3, unsigned int)))");
	DECLARATION("long unsigned int long a;", "declare a (unsigned long long)");
	DECLARATION("signed char a; short int b; long double c; double d; float e; bool f;",
		"declare a (char), declare b (short), declare c (long double), "
		"declare d (double), declare e (float), declare f (bool)");
	DECLARATION("const volatile char *const restrict p;", "declare p (pointer (char))");
	DECLARATION("int8 a; uint16_t b; s32 c; u64 d; __u8 e; size_t f;",
		"declare a (fixed 1), declare b (unsigned fixed 2), declare c (fixed 4), "
		"declare d (unsigned fixed 8), declare e (unsigned fixed 1), "
		"declare f (named size_t)");
	DECLARATION(
		"Item *find(int);", "declare find (function (pointer (named Item), field (int)))");
	DECLARATION("Item x;", "declare x (named Item)");
	DECLARATION("struct a;", "declare (struct a)");
	DECLARATION("typedef struct a *A, B[];",
		"typedef A (pointer (struct a)), typedef B (array (struct a))");
	DECLARATION("int (x);", "declare x (int)");
}

static void function_declarations(void)
{
	DECLARATION("int target(int a, long b, const char *s, struct item *it);",
		"declare target (function (int, field a (int), field b (long), "
		"field s (pointer (char)), field it (pointer (struct item))))");
	DECLARATION("void f(void);", "declare f (function (void))");
	DECLARATION("static inline int f();", "declare f (function (int))");
	DECLARATION("int printf(const char *, ...);",
		"declare printf (function variadic (int, field (pointer (char))))");
	DECLARATION("void f(int a[3], int g(long));",
		"declare f (function (void, field a (pointer (int)), "
		"field g (pointer (function (int, field (long))))))");
	DECLARATION("int (*f)(int);", "declare f (pointer (function (int, field (int))))");
	DECLARATION("int (*f[3])(void);", "declare f (array (int 3, pointer (function (int))))");
	DECLARATION("int (*(*f)(int))(long);",
		"declare f (pointer (function (pointer (function (int, field (long))), "
		"field (int))))");
	DECLARATION("char (*p)[4];", "declare p (pointer (array (int 4, char)))");
}

static void structure_declarations(void)
{
	DECLARATION("struct a { int x; char *y, z; };",
		"declare (struct a defined (field x (int), field y (pointer (char)), "
		"field z (char)))");
	DECLARATION("union u { int a; long b; };",
		"declare (union u defined (field a (int), field b (long)))");
	DECLARATION("struct a { unsigned x : 3, : 0, y : 1 + 1; };",
		"declare (struct a defined (field x (unsigned int, bits (int 3)), "
		"field (unsigned int, bits (int 0)), "
		"field y (unsigned int, bits (binary + (int 1, int 1)))))");
	DECLARATION(
		"struct a { struct { int x; }; union { int y; } u; struct b { int z; } b, *c; };",
		"declare (struct a defined (field (struct defined (field x (int))), "
		"field u (union defined (field y (int))), "
		"field b (struct b defined (field z (int))), "
		"field c (pointer (struct b))))");
	DECLARATION("struct a { struct a *next; void (*f)(struct a *); char n[]; };",
		"declare (struct a defined (field next (pointer (struct a)), "
		"field f (pointer (function (void, field (pointer (struct a))))), "
		"field n (array (char))))");
	DECLARATION("typedef struct item { int x; } Item, *Pitem;",
		"declare (struct item defined (field x (int))), typedef Item (struct item), "
		"typedef Pitem (pointer (struct item))");
	DECLARATION(
		"typedef struct { int x; } Item;", "typedef Item (struct defined (field x (int)))");
	DECLARATION("struct a { uint8 string; int u8; };",
		"declare (struct a defined (field string (unsigned fixed 1), field u8 (int)))");
	/* No ';' is needed at the end of a line, nor before a clause. */
	DECLARATION("struct a { int x; }", "declare (struct a defined (field x (int)))");
	TREE("enum { A } uprobe:/a:f { }",
		"declare (enum defined (enumerator A)), clause (point \"uprobe:/a:f\", body)");
	DECLARATION("struct a { int x; }\n", "declare (struct a defined (field x (int)))");
	DECLARATION("struct a { int x:9, y:1 };",
		"declare (struct a defined (field x (int, bits (int 9)), "
		"field y (int, bits (int 1))))");
	DECLARATION("enum e { A, B = 3, C = 1 << 2, };",
		"declare (enum e defined (enumerator A, enumerator B (int 3), "
		"enumerator C (binary << (int 1, int 2))))");
	DECLARATION("enum { A };", "declare (enum defined (enumerator A))");
	DECLARATION("enum e x;", "declare x (enum e)");
}

static void attributes(void)
{
	DECLARATION("struct __attribute__((packed)) a { int x; };",
		"declare (struct a packed defined (field x (int)))");
	DECLARATION("struct a { int x; } __attribute__((packed, aligned(4)));",
		"declare (struct a packed aligned 4 defined (field x (int)))");
	DECLARATION("struct a { int x; } __attribute__((__packed__)) v;",
		"declare (struct a packed defined (field x (int))), declare v (struct a)");
	DECLARATION("struct a { int x __attribute__((aligned(8))), y __attribute__((packed)); };",
		"declare (struct a defined (field x (int aligned 8), field y (int packed)))");
	DECLARATION("struct a { _Alignas(16) int x; int y __attribute__((aligned)); };",
		"declare (struct a defined (field x (int aligned 16), field y (int aligned 16)))");
	DECLARATION("typedef int T __attribute__((aligned(2)));", "typedef T (int aligned 2)");
	DECLARATION("int f(int) __attribute__((noreturn, format(printf, 1, 2)));",
		"declare f (function (int, field (int)))");
	DECLARATION("struct a { int x; } __packed;",
		"declare (struct a packed defined (field x (int)))");
}

static void several_sources(void)
{
	struct parsed p = {0};
	char *tree;

	sources_add(&p.sources, "a.wr", (struct span){(const uint8_t *)"typedef int T;", 14});
	sources_add(&p.sources, "b.wr", (struct span){(const uint8_t *)"begin { (T)+1; }", 16});
	diags_init(&p.diags, &p.sources);
	p.script = script_parse(&p.sources, NULL, &p.diags);
	tree = tree_of(&p);
	CHECK_STR(tree, "typedef T (int), clause (point \"begin\", body (cast (named T, int 1)))");
	CHECK_EQ(p.script->n_clauses, 1);
	CHECK_EQ(p.script->clauses->place.source_i, 1);
	CHECK_EQ(p.script->clauses->body->a->place.source_i, 1);
	free(tree);
	parsed_release(&p);
}

/* Checks the bytes of the script that a place covers. */
#define COVERS(p, where, expected)                                                                 \
	do {                                                                                       \
		char *covered_ = mem_strndup(                                                      \
			(p).sources.v.v[0].text + (where).from, (where).to - (where).from);        \
		CHECK_STR(covered_, expected);                                                     \
		free(covered_);                                                                    \
	} while (0)

static void places(void)
{
	static const char text[] = "struct s { int a; } v;\n"
				   "uprobe:/a:f , end /pid == 1/ { $x = f(1, (a + b)) ; }\n";
	struct parsed p;
	const struct clause *c;
	const struct expr *e;

	parse_words(&p, text, strlen(text), NULL, 0);
	CHECK_EQ(p.diags.n_errors, 0);
	COVERS(p, p.script->decls->place, "struct s");
	COVERS(p, p.script->decls->type->fields->place, "a");
	COVERS(p, p.script->decls->type->fields->type->place, "int");
	COVERS(p, p.script->decls->next->place, "v");
	c = p.script->clauses;
	COVERS(p, c->place, "uprobe:/a:f , end /pid == 1/ { $x = f(1, (a + b)) ; }");
	COVERS(p, c->points->place, "uprobe:/a:f");
	COVERS(p, c->points->next->place, "end");
	COVERS(p, c->predicate->place, "pid == 1");
	e = c->body->a;
	COVERS(p, e->place, "$x = f(1, (a + b))");
	COVERS(p, e->a->place, "$x");
	COVERS(p, e->b->place, "f(1, (a + b))");
	COVERS(p, e->b->args->place, "1");
	COVERS(p, e->b->args->next->place, "a + b");
	CHECK_EQ(e->height, 4);
	parsed_release(&p);
}

static void a_word_as_a_number(void)
{
	static const char *const words[] = {"abc"};
	static const char *const scripts[] = {"begin { $x = $1 + 1; }", "begin { $x = 1 << $1; }",
		"begin { $x = -$1; }", "begin { $x = ($1) < 2; }", "begin { unroll ($1) { } }",
		"begin { for ($i : 0..$1) { } }", "begin { $x += $1; }", "begin { $x = $y[$1]; }",
		"begin { $x = (int)$1; }"};

	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
		struct parsed p;

		parse_words(&p, scripts[i], strlen(scripts[i]), words, 1);
		CHECK_EQ(p.diags.n_errors, 1);
		if (p.diags.v.n) {
			CHECK_STR(p.diags.v.v[0].tag, "parameter");
			COVERS(p, p.diags.v.v[0].place, "$1");
			CHECK_STR(p.diags.v.v[0].text,
				"the parameter $1 is 'abc', which is no number");
			CHECK_STR(p.diags.v.v[0].hint, "str($1) is its text");
		}
		parsed_release(&p);
	}
}

static void trees_of_wrong_scripts(void)
{
	static const char text[] = "begin { f(1; $x = 2; if (a { b(); } c(); }\nend { g( }\n";
	struct parsed p;
	struct buf out = {0}, folded = {0};

	parse_words(&p, text, strlen(text), NULL, 0);
	CHECK_EQ(p.diags.n_errors, 3);
	script_print(p.script, &out);
	fold_lines(buf_text(&out), &folded);
	CHECK_STR(buf_text(&folded),
		"clause (point \"begin\", body (call f (int 1), assign = (local $x, int 2), "
		"if (name a), block (body (call b)), call c)), "
		"clause (point \"end\", body (call g (int 0)))");
	buf_release(&out);
	buf_release(&folded);
	parsed_release(&p);
}

static void a_long_script_and_a_limit(void)
{
	struct buf text = {0};
	struct parsed p;

	for (int i = 0; i < 5000; i++)
		buf_put_cstr(&text, "begin { printf(\"%d\\n\", 1); }\n");
	parse_words(&p, buf_text(&text), text.n, NULL, 0);
	CHECK_EQ(p.diags.n_errors, 0);
	CHECK_EQ(p.script->n_clauses, 5000);
	parsed_release(&p);
	buf_reset(&text);
	while (text.n <= 4 << 20)
		buf_put_cstr(
			&text, "                                                               \n");
	parse_words(&p, buf_text(&text), text.n, NULL, 0);
	CHECK_EQ(p.diags.n_errors, 1);
	CHECK_STR(p.diags.v.v[0].tag, "size");
	parsed_release(&p);
	buf_release(&text);
}

/* --- wrong scripts ------------------------------------------------------------------------ */

/* Those that nobody but the parser gives. */
static bool is_parser_tag(const char *name)
{
	static const char *const tags[] = {"character", "unterminated", "expected", "number",
		"escape", "declaration", "nesting", "parameter", "no-clause", "config", NULL};
	size_t n = strcspn(name, ".");

	for (const char *const *t = tags; *t; t++)
		if (strlen(*t) == n && !memcmp(*t, name, n))
			return true;
	return false;
}

/* "TAG LINE:COL" of every message, a line each. */
static void list_messages(const struct parsed *p, struct buf *out)
{
	for (size_t i = 0; i < p->diags.v.n; i++) {
		uint32_t line, column;

		place_line(&p->sources, p->diags.v.v[i].place, &line, &column);
		buf_printf(out, "%s %u:%u\n", p->diags.v.v[i].tag, line, column);
	}
}

/* What the script says of itself: its first lines are "// expect: TAG LINE:COL". */
static void list_expectations(const char *text, struct buf *out)
{
	static const char start[] = "// expect: ";

	while (!strncmp(text, start, strlen(start))) {
		size_t n = strcspn(text, "\n");

		buf_put(out, text + strlen(start), n - strlen(start));
		buf_put_u8(out, '\n');
		text += n + (text[n] == '\n');
	}
}

static void check_wrong_script(const char *path)
{
	struct buf text = {0}, expected = {0}, found = {0};
	struct err err;
	struct parsed p;

	if (file_read(&text, path, 1 << 20, &err)) {
		check_failures++;
		printf("%s\n", err.text);
		return;
	}
	parse_words(&p, buf_text(&text), text.n, NULL, 0);
	list_messages(&p, &found);
	list_expectations(buf_text(&text), &expected);
	if (!expected.n || strcmp(buf_text(&found), buf_text(&expected))) {
		check_failures++;
		printf("%s: found\n%sexpected\n%s", path, buf_text(&found), buf_text(&expected));
	}
	buf_release(&text);
	buf_release(&expected);
	buf_release(&found);
	parsed_release(&p);
}

static void wrong_scripts(void)
{
	const char *root = getenv("ROOT");
	char *folder = mem_printf("%s/tests/probe/err", root ? root : ".");
	DIR *dir = opendir(folder);
	size_t n = 0;

	CHECK(dir != NULL);
	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		char *path = mem_printf("%s/%s", folder, entry->d_name);

		if (strstr(entry->d_name, ".wr") && is_parser_tag(entry->d_name)) {
			check_wrong_script(path);
			n++;
		}
		free(path);
	}
	CHECK(n >= 100);
	if (dir)
		closedir(dir);
	free(folder);
}

static const struct test tests[] = {
	{"operators bind as in C", operators},
	{"assignments and steps", assignments},
	{"numbers, characters and texts", literals},
	{"positional parameters are numbers or texts", parameters},
	{"names, calls, maps, tuples and fields", names_calls_and_maps},
	{"casts, sizeof and offsetof take types", casts_and_sizes},
	{"statements", statements},
	{"trace points end at white space, a comma or a brace", trace_points},
	{"a predicate may stand directly behind its trace point", predicates},
	{"comments, the #! line and settings", comments_and_first_lines},
	{"declarations of variables and typedefs", simple_declarations},
	{"declarations of functions and pointers to them", function_declarations},
	{"declarations of structures, unions and enumerations", structure_declarations},
	{"attributes before and after", attributes},
	{"several sources make one script", several_sources},
	{"every node knows its place", places},
	{"a word as a parameter is no number", a_word_as_a_number},
	{"a wrong script has a whole tree", trees_of_wrong_scripts},
	{"a long script is fine and a huge one refused", a_long_script_and_a_limit},
	{"wrong scripts are reported with their tag and place and nothing else", wrong_scripts},
};

int main(void)
{
	return RUN_TESTS(tests);
}
