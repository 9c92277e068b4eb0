/* SPDX-License-Identifier: MIT */
/*
 * A program of letters: function 'a' has instructions a0, a1, ... each one byte long. Steps are
 * written as words; a word behind which '!' stands is left by an indirect jump, and so on:
 *
 *	a1>	calls		a1<	returns		a1^	jumps	a1!	jumps indirectly
 *	a1$	makes a system call	a1	goes on
 *
 * The tree is written as "a:CALLS/BASE(children)".
 */
#include "steps/calls/step_calls.h"

#include <stdlib.h>

#include "base/buf.h"
#include "check.h"

#define N_LETTERS   26
#define N_PLACES    10
#define N_FLOWS	    6
#define SETJMP	    ('s' - 'a' + 1)
#define N_FUNCTIONS (N_LETTERS + 1)

static const char flows[N_FLOWS + 1] = " ><^!$";
static const uint8_t flow_of[N_FLOWS] = {X86_FLOW_NEXT, X86_FLOW_CALL_FAR, X86_FLOW_RETURN,
	X86_FLOW_JUMP, X86_FLOW_JUMP_FAR, X86_FLOW_SYSCALL};

struct walk {
	struct step_calls c;
	struct step_call_insn insns[1 + N_LETTERS * N_PLACES * N_FLOWS];
	uint64_t executed[1 + N_LETTERS * N_PLACES * N_FLOWS];
	bool is_setjmp[N_FUNCTIONS];
	struct buf text;
};

static uint32_t number_of(char letter, char place, char flow)
{
	const char *at = strchr(flows, flow);

	return 1 + ((uint32_t)(letter - 'a') * N_PLACES + (uint32_t)(place - '0')) * N_FLOWS +
	       (uint32_t)(at - flows);
}

static uint64_t addr_of(char letter, char place)
{
	return (uint64_t)(letter - 'a' + 1) * 0x1000 + (uint64_t)(place - '0');
}

static struct walk *walk_new(void)
{
	struct walk *w = mem_zalloc(sizeof(*w));

	for (char letter = 'a'; letter <= 'z'; letter++)
		for (char place = '0'; place <= '9'; place++)
			for (int i = 0; i < N_FLOWS; i++)
				w->insns[number_of(letter, place, flows[i])] =
					(struct step_call_insn){.addr = addr_of(letter, place),
						.function = (uint32_t)(letter - 'a' + 1),
						.length = 1,
						.flow = flow_of[i],
						.is_start = place == '0',
						.is_transfer = flows[i] == '>' || flows[i] == '<'};
	w->is_setjmp[SETJMP] = true;
	w->c.insns = w->insns;
	w->c.executed = w->executed;
	w->c.is_setjmp = w->is_setjmp;
	step_calls_init(&w->c, N_FUNCTIONS);
	step_calls_begin(&w->c, 1, 1);
	return w;
}

static void walk_free(struct walk *w)
{
	step_calls_release(&w->c);
	buf_release(&w->text);
	free(w);
}

/* "a0 a1> b0 b1< a2"; one row. */
static void go(struct walk *w, const char *words)
{
	struct step steps[200];
	uint32_t n = 0;

	for (const char *p = words; *p; p++) {
		char flow = p[2] && p[2] != ' ' ? p[2] : ' ';

		steps[n++] = (struct step){addr_of(p[0], p[1]), number_of(p[0], p[1], flow), 1};
		p += flow == ' ' ? 1 : 2;
		if (p[1] == ' ')
			p++;
	}
	step_calls_steps(&w->c, steps, n);
}

static void mark(struct walk *w, enum step_mark_kind kind, int64_t a)
{
	step_calls_mark(&w->c, &(struct step_mark){.kind = kind, .a = a});
}

static void put_children(struct walk *w, uint32_t parent)
{
	bool any = false;

	for (uint32_t i = 1; i < w->c.nodes.n; i++) {
		const struct step_node *n = &w->c.nodes.v[i];

		if (n->parent != parent)
			continue;
		if (any || parent)
			buf_put_cstr(&w->text, any ? " " : "(");
		any = true;
		buf_printf(&w->text, "%c:%" PRIu64 "/%" PRIu64, (char)('a' + n->function - 1),
			n->calls, n->base);
		put_children(w, i);
	}
	if (any && parent)
		buf_put_cstr(&w->text, ")");
}

static const char *tree(struct walk *w)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < w->c.nodes.n; i++)
		sum += w->c.nodes.v[i].base;
	CHECK_EQ(sum, w->c.n_steps);
	buf_reset(&w->text);
	put_children(w, 0);
	return buf_text(&w->text);
}

#define CHECK_TREE(words, expected)                                                                \
	do {                                                                                       \
		struct walk *w_ = walk_new();                                                      \
		go(w_, words);                                                                     \
		CHECK_STR(tree(w_), expected);                                                     \
		walk_free(w_);                                                                     \
	} while (0)

static void test_calls(void)
{
	CHECK_TREE(
		"a0 a1> b0 b1< a2> b0 b1< a3> c0 c1> b0 b1< c2< a4", "a:1/5(b:2/4 c:1/3(b:1/2))");
}

static void test_recursion(void)
{
	CHECK_TREE("a0> a0> a0 a1< a1< a1 a2", "a:1/3(a:1/2(a:1/2))");
	CHECK_TREE("a0> b0> a0> b0 b1< a1< b1< a1", "a:1/2(b:1/2(a:1/2(b:1/2)))");
}

static void test_call_next(void)
{
	CHECK_TREE("a0> a1 a2> b0< a3", "a:1/4(b:1/1)");
}

static void test_min_max(void)
{
	struct walk *w = walk_new();
	const struct step_node *b;

	go(w, "a0> b0< a1> b0 b1 b2< a2> b0 b1< a3");
	b = &w->c.nodes.v[2];
	CHECK_EQ(b->min, 1);
	CHECK_EQ(b->max, 3);
	CHECK_EQ(b->calls, 3);
	CHECK_EQ(w->executed[number_of('b', '0', ' ')], 2);
	CHECK_EQ(w->executed[number_of('b', '0', '<')], 1);
	CHECK(w->c.nodes.v[1].min > w->c.nodes.v[1].max);
	walk_free(w);
}

static void test_tail_calls(void)
{
	CHECK_TREE("a0> b0^ c0 c1< a1", "a:1/2(b:1/1(c:1/2))");
	/* b jumps to c and c to b: no tree without end */
	CHECK_TREE("a0> b0^ c0^ b0^ c0^ b0^ c0< a1", "a:1/2(b:3/3(c:3/3))");
	CHECK_TREE("a0> b0! c0< a1", "a:1/2(b:1/1(c:1/1))");
}

static void test_jumps_into_functions(void)
{
	/* without a call, and back again */
	CHECK_TREE("a0> b0^ c3 c4^ b4< a1", "a:1/2(b:1/2(c:0/2))");
	/* falling into another function */
	CHECK_TREE("a0> b0 b1 c0 c1< a1", "a:1/2(b:1/2(c:1/2))");
}

static void test_longjmp(void)
{
	/* l jumps into the midst of a */
	CHECK_TREE("a0> b0> c0> l0! a5 a6> b0< a7", "a:1/4(b:2/2(c:1/1(l:1/1)))");
	/* the outer a had called setjmp, the inner one not */
	CHECK_TREE(
		"a0> s0< a1> a4> b0> l0! a1 a2> c0< a3", "a:1/5(s:1/1 a:1/1(b:1/1(l:1/1)) c:1/1)");
	/* the inner one had called it as well */
	CHECK_TREE("a0> s0< a1> a0> s0< a1> l0! a1 a2< a2", "a:1/3(s:1/1 a:1/4(s:1/1 l:1/1))");
}

static void test_exceptions(void)
{
	/* u "returns" to a landing pad of a, above which b is cleaned up first */
	CHECK_TREE("a0> b0> c0> u0< b7> v0< a8 a9", "a:1/3(b:1/2(c:1/1(u:1/1) v:1/1))");
}

static void test_returns_elsewhere(void)
{
	/* a return used as a jump to a function, which returns to the caller */
	CHECK_TREE("a0> b0< c0< a1", "a:1/2(b:1/1(c:1/1))");
	/* a return that skips a frame */
	CHECK_TREE("a0> b0> c0< a1", "a:1/2(b:1/1(c:1/1))");
	/* the caller was not seen: it is not a callee */
	CHECK_TREE("c5< b5< a5 a6> b0< a7", "c:0/1 b:0/1 a:0/3(b:1/1)");
}

static void test_signals(void)
{
	struct walk *w = walk_new();

	go(w, "a0> b0 b1");
	mark(w, STEP_MARK_SIGNAL, 10);
	go(w, "h0> c0< h1< r0 r1$");
	mark(w, STEP_MARK_SYSCALL, 15);
	go(w, "b2< a1");
	CHECK_STR(tree(w), "a:1/2(b:1/3(h:1/2(c:1/1) r:1/2))");
	walk_free(w);
}

static void test_signal_behind_transfers(void)
{
	struct walk *w = walk_new();

	/* behind a return: the handler is called by the function that is returned to */
	go(w, "a0> b0<");
	mark(w, STEP_MARK_SIGNAL, 10);
	go(w, "h0< r0$");
	mark(w, STEP_MARK_SYSCALL, 15);
	go(w, "a1 a2");
	CHECK_STR(tree(w), "a:1/3(b:1/1 h:1/1 r:1/1)");
	walk_free(w);
	/* it is ignored */
	w = walk_new();
	go(w, "a0> b0 b1");
	mark(w, STEP_MARK_SIGNAL, 10);
	go(w, "b2< a1");
	CHECK_STR(tree(w), "a:1/2(b:1/3)");
	walk_free(w);
}

static void test_two_signals(void)
{
	struct walk *w = walk_new();

	go(w, "a0 a1");
	mark(w, STEP_MARK_SIGNAL, 10);
	mark(w, STEP_MARK_SIGNAL, 12);
	go(w, "h0< r0$");
	mark(w, STEP_MARK_SYSCALL, 15);
	go(w, "i0< r0$");
	mark(w, STEP_MARK_SYSCALL, 15);
	go(w, "a2");
	CHECK_STR(tree(w), "a:1/3(h:1/1 r:2/2 i:1/1)");
	walk_free(w);
	/* one comes as the other's handler ends */
	w = walk_new();
	go(w, "a0 a1");
	mark(w, STEP_MARK_SIGNAL, 10);
	go(w, "h0< r0$");
	mark(w, STEP_MARK_SYSCALL, 15);
	mark(w, STEP_MARK_SIGNAL, 12);
	go(w, "i0< r0$");
	mark(w, STEP_MARK_SYSCALL, 15);
	go(w, "a2");
	CHECK_STR(tree(w), "a:1/3(h:1/1 r:2/2 i:1/1)");
	walk_free(w);
}

static void test_siglongjmp(void)
{
	struct walk *w = walk_new();

	go(w, "a0> s0< a1> b0");
	mark(w, STEP_MARK_SIGNAL, 11);
	go(w, "h0> l0! a1 a2");
	CHECK_STR(tree(w), "a:1/4(s:1/1 b:1/1(h:1/1(l:1/1)))");
	walk_free(w);
}

static void test_exec(void)
{
	struct walk *w = walk_new();

	go(w, "a0> b0$");
	mark(w, STEP_MARK_EXEC, 0);
	go(w, "c0> b0< c1");
	CHECK_STR(tree(w), "a:1/1(b:1/1) c:1/2(b:1/1)");
	walk_free(w);
}

static void test_gaps(void)
{
	struct walk *w = walk_new();

	go(w, "a0> b0");
	mark(w, STEP_MARK_LOST, 100);
	go(w, "b5"); /* where it was */
	mark(w, STEP_MARK_LOST, 100);
	go(w, "a5> c0"); /* further out */
	mark(w, STEP_MARK_LOST, 100);
	go(w, "d5> e0< d6"); /* nowhere */
	CHECK_STR(tree(w), "a:1/2(b:1/2 c:1/1) d:0/2(e:1/1)");
	walk_free(w);
}

static void test_regions(void)
{
	struct walk *w = walk_new();

	for (int i = 0; i < 2; i++) {
		mark(w, STEP_MARK_RESUME, STEP_WHY_REGION);
		go(w, "b0> c0< b1<");
		mark(w, STEP_MARK_PAUSE, STEP_WHY_REGION);
	}
	CHECK_STR(tree(w), "b:2/4(c:2/2)");
	walk_free(w);
}

/* Code that is not traced calls back. */
static void test_user_code(void)
{
	struct walk *w = walk_new();

	go(w, "a0> q0!");
	for (int i = 0; i < 2; i++) {
		mark(w, STEP_MARK_PAUSE, STEP_WHY_USER);
		mark(w, STEP_MARK_RESUME, STEP_WHY_USER);
		go(w, "c0> d0< c1<");
	}
	mark(w, STEP_MARK_PAUSE, STEP_WHY_USER);
	mark(w, STEP_MARK_RESUME, STEP_WHY_USER);
	go(w, "a1 a2");
	CHECK_STR(tree(w), "a:1/3(q:1/1(c:2/4(d:2/2)))");
	walk_free(w);
}

static void test_forks(void)
{
	struct walk *w = walk_new();
	struct step_mark fork = {.kind = STEP_MARK_FORK, .a = 7, .b = 7};

	go(w, "a0> b0^ c0> f0$");
	step_calls_mark(&w->c, &fork);
	go(w, "f1< c1< a1");
	CHECK_STR(tree(w), "a:1/2(b:1/1(c:1/2(f:1/2)))");
	step_calls_begin(&w->c, 7, 7);
	mark(w, STEP_MARK_RESUME, STEP_WHY_START);
	go(w, "f1< c1> d0< c2< a1");
	CHECK_STR(tree(w), "a:0/1(b:0/0(c:0/2(f:0/1 d:1/1)))");
	step_calls_begin(&w->c, 7, 7); /* the tid once more, of nobody's child */
	go(w, "a0");
	CHECK_STR(tree(w), "a:1/1");
	walk_free(w);
}

static void test_rows(void)
{
	struct walk *w = walk_new();

	/* rows are cut anywhere */
	go(w, "a0>");
	go(w, "b0");
	go(w, "b1<");
	go(w, "");
	go(w, "a1> c0^");
	go(w, "d0<");
	go(w, "a2");
	CHECK_STR(tree(w), "a:1/3(b:1/2 c:1/1(d:1/1))");
	walk_free(w);
}

static void test_code_that_is_not_known(void)
{
	struct walk *w = walk_new();
	struct step unknown[2] = {{.addr = 5, .times = 1}, {.addr = 6, .times = 1}};

	go(w, "a0>");
	step_calls_steps(&w->c, unknown, 2);
	go(w, "a1");
	CHECK_EQ(w->c.n_steps, 4);
	CHECK_EQ(w->executed[0], 2);
	tree(w);
	walk_free(w);
}

static void test_deep(void)
{
	struct walk *w = walk_new();

	/* deeper than any stack: the rest is counted, not followed */
	for (int i = 0; i < (1 << 20) + 10; i++)
		go(w, "a0>");
	CHECK_EQ(w->c.frames.n, 1 << 20);
	CHECK_EQ(w->c.n_without_frame, 10);
	CHECK_EQ(w->c.n_steps, (1 << 20) + 10);
	walk_free(w);
}

static int lands_anywhere(void *ctx, uint32_t insn, uint64_t ret)
{
	(void)ctx;
	return (int)((insn + ret) % 3) - 1;
}

/* No program does this; whatever comes, every step is counted once. */
static void test_noise(void)
{
	struct walk *w = walk_new();
	uint64_t seed = 1, n_steps = 0;

	w->c.lands = lands_anywhere;
	for (int i = 0; i < 20000; i++) {
		uint32_t r =
			(uint32_t)((seed = seed * 6364136223846793005u + 1442695040888963407u) >>
				   33);
		char word[4] = {
			(char)('a' + r % 5), (char)('0' + r / 5 % 4), flows[r / 20 % N_FLOWS]};
		struct step_mark m = {
			.kind = (enum step_mark_kind)(1 + r / 200 % (STEP_N_MARKS - 1)),
			.a = r / 2000 % 16,
			.b = 3};

		word[0] = r % 37 ? word[0] : 's';
		if (r / 7 % 11 == 0)
			step_calls_mark(&w->c, &m);
		if (r / 7 % 1999 == 0) {
			CHECK_EQ(w->c.n_steps, n_steps);
			tree(w);
			step_calls_begin(&w->c, r / 2000 % 16, 3);
			n_steps = 0;
		}
		go(w, word);
		n_steps++;
	}
	CHECK_EQ(w->c.n_steps, n_steps);
	tree(w);
	walk_free(w);
}

int main(void)
{
	static const struct test tests[] = {
		{"calls and returns make the tree", test_calls},
		{"recursion opens a function again", test_recursion},
		{"a call of the next instruction is none", test_call_next},
		{"the cheapest and the dearest call are known", test_min_max},
		{"a jump to a function's start is a call by the one that jumped", test_tail_calls},
		{"a jump into the midst of a function is no call", test_jumps_into_functions},
		{"longjmp ends the calls above the one that it comes to", test_longjmp},
		{"an exception ends calls down to the landing pad", test_exceptions},
		{"returns that go elsewhere find their way", test_returns_elsewhere},
		{"a signal handler is called by what it interrupts", test_signals},
		{"a signal behind a return, and one that is ignored", test_signal_behind_transfers},
		{"two signals at once, and one behind the other", test_two_signals},
		{"siglongjmp leaves a handler", test_siglongjmp},
		{"exec begins anew", test_exec},
		{"a gap keeps what can still be open", test_gaps},
		{"regions begin at the thread", test_regions},
		{"code that is not traced calls back", test_user_code},
		{"a forked process is inside its parent's calls", test_forks},
		{"rows may be cut anywhere", test_rows},
		{"code that is not known counts", test_code_that_is_not_known},
		{"calls that are too deep are counted", test_deep},
		{"noise is counted, too", test_noise},
	};

	return RUN_TESTS(tests);
}
