/* SPDX-License-Identifier: MIT */
/* Whole scripts through the compiler: limits, and that the code does not depend on the order in
 * which a C compiler evaluates arguments. */
#include <stdlib.h>

#include "check.h"
#include "probe/compile/compile.h"
#include "probe/stream/stream_file.h"

struct compiled {
	struct sources sources;
	struct diags diags;
	struct stream *stream;
	struct buf text; /* diagnostics */
};

static void compile(struct compiled *c, const char *text)
{
	struct compile_options options = {0};

	*c = (struct compiled){0};
	sources_add(&c->sources, "t.wr", (struct span){(const uint8_t *)text, strlen(text)});
	diags_init(&c->diags, &c->sources);
	c->stream = compile_scripts(&c->sources, &options, &c->diags);
	diags_text(&c->diags, &c->text);
}

static void release(struct compiled *c)
{
	stream_free(c->stream);
	diags_release(&c->diags);
	sources_release(&c->sources);
	buf_release(&c->text);
}

/* The helpers that the 64-bit code calls, in order: "1 5 14 ". */
static const char *calls(const struct stream *s, struct buf *out)
{
	for (size_t i = 0; s && i < s->code[MODE_64].n; i++)
		if (s->code[MODE_64].v[i].code == (BPF_JMP | BPF_CALL))
			buf_printf(out, "%d ", s->code[MODE_64].v[i].imm);
	return buf_text(out);
}

/* Where two arguments of one C call emitted code, compilers took them in different orders. */
static void test_order(void)
{
	static const struct {
		const char *script, *calls;
	} cases[] = {
		/* the record's clock and process; the map of facts, the clock; the ring; losses */
		{"begin { print(elapsed); }", "5 14 1 5 130 1 1 "},
		{"begin { print(pid - tid); }", "5 14 14 14 130 1 "},
		{"begin { print(nsecs / (int64)rand); }", "5 14 125 7 130 1 1 "},
		{"begin { @x[pid, tid] = cpu; }", "8 14 14 2 1 "},
		{"begin { @x[pid] = sum(cpu); }", "8 14 1 1 2 1 1 "},
		{"begin { self->x = pid; print(self->x); }", "14 158 156 1 5 14 158 156 130 1 "},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct buf text = {0};
		struct compiled c;

		compile(&c, cases[i].script);
		CHECK_STR(calls(c.stream, &text), cases[i].calls);
		buf_release(&text);
		release(&c);
	}
}

/* Also the loads and moves: the first instructions of |a| / |b| and of a comparison of texts. */
static void test_operand_order(void)
{
	struct buf dump = {0};
	const char *first, *second;
	struct compiled c;

	compile(&c, "begin { $a = comm; $b = \"x\"; $b = comm; @x = $a == $b; }");
	CHECK(c.stream);
	if (c.stream)
		for (size_t i = 1; i < c.stream->code[MODE_64].n; i++) {
			const struct bpf_insn *p = &c.stream->code[MODE_64].v[i - 1], *q = p + 1;

			/* r8 = *(u64 *)(a); r0 = *(u64 *)(b): a was made first and lies higher */
			if (p->code == (BPF_LDX | BPF_MEM | BPF_DW) && q->code == p->code &&
				p->src_reg == BPF_REG_10 && q->src_reg == BPF_REG_10)
				CHECK(p->off > q->off);
		}
	release(&c);
	compile(&c, "begin { print((int64)rand / 3); }");
	CHECK(c.stream);
	if (c.stream)
		stream_dump(c.stream, &dump);
	/* the sign of the left side is taken off first: a jump over a multiplication by -1 */
	first = strstr(buf_text(&dump), "*= -1");
	second = first ? strstr(first + 1, "*= -1") : NULL;
	CHECK(first && second);
	buf_release(&dump);
	release(&c);
}

static void must_say(const char *script, const char *words)
{
	struct compiled c;

	compile(&c, script);
	if (!strstr(buf_text(&c.text), words)) {
		check_failures++;
		printf("'%.60s...' does not say '%s' but '%.200s'\n", script, words,
			buf_text(&c.text));
	}
	release(&c);
}

static void test_limits(void)
{
	struct buf script = {0};

	must_say("begin { unroll(16) { unroll(16) { unroll(16) { unroll(16) { @x++; } } } } }",
		"it needs more than 30000 instructions");
	/* Nothing comes of it, but it must not take for ever. */
	must_say(
		"begin { return; unroll(16) { unroll(16) { unroll(16) { unroll(16) { unroll(100)"
		"{ @x++; } } } } } }",
		"");
	buf_put_cstr(&script, "begin { printf(\"");
	for (int i = 0; i < 20; i++)
		buf_put_cstr(&script, "%s");
	buf_put_cstr(&script, "\"");
	for (int i = 0; i < 20; i++)
		buf_put_cstr(&script, ", str(0, 2000)");
	buf_put_cstr(&script, "); }");
	must_say(buf_text(&script), "texts and records need more than 32752 bytes");
	buf_reset(&script);
	buf_put_cstr(&script, "begin { ");
	for (int i = 0; i < 80; i++)
		buf_printf(&script, "$v%d = nsecs; ", i);
	for (int i = 0; i < 80; i++)
		buf_printf(&script, "print($v%d); ", i);
	buf_put_cstr(&script, "}");
	must_say(buf_text(&script), "456 bytes of stack");
	buf_release(&script);
}

static void test_deep_loops(void)
{
	struct buf script = {0};
	struct compiled c;

	buf_put_cstr(&script, "begin { ");
	for (int i = 0; i < 90; i++)
		buf_put_cstr(&script, "while (rand) { ");
	for (int i = 0; i < 91; i++)
		buf_put_cstr(&script, "} ");
	compile(&c, buf_text(&script)); /* an answer, whatever it is */
	CHECK(c.stream || c.diags.n_errors);
	release(&c);
	buf_release(&script);
}

static void test_same_twice(void)
{
	static const char script[] =
		"struct s { int a; char n[6]; unsigned b:5; long l; };\n"
		"syscall:read:entry /comm != \"x\"/ { $p = (struct s *)arg1; $s = *$p; "
		"@t[$s.n, $p->b] = ($p->l / $p->a, elapsed); print(($s.n, usym(arg0), kstack)); }";
	struct buf a = {0}, b = {0};
	struct compiled c;

	compile(&c, script);
	CHECK(c.stream);
	if (c.stream)
		stream_file_write(c.stream, &a);
	release(&c);
	compile(&c, script);
	if (c.stream)
		stream_file_write(c.stream, &b);
	release(&c);
	CHECK(a.n && a.n == b.n && !memcmp(a.p, b.p, a.n));
	buf_release(&a);
	buf_release(&b);
}

static const struct test tests[] = {
	{"helpers are called in the order of the script", test_order},
	{"operands are loaded from left to right", test_operand_order},
	{"what is too large is refused in a sentence, and soon", test_limits},
	{"ninety loops in each other get an answer", test_deep_loops},
	{"a script gives the same stream each time", test_same_twice},
};

int main(void)
{
	return RUN_TESTS(tests);
}
