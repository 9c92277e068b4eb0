/* SPDX-License-Identifier: MIT */
#include "steps/tables/fold.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "check.h"

#define LETTERS_MAX 64 /* beyond, a loop's text is not written out */

struct unfolded {
	struct fold *fold;
	VEC(uint64_t) tokens;
	struct buf text;
	size_t n_emitted;
	int depth, deepest;
};

static void unfold(struct unfolded *u, uint64_t token)
{
	struct fold_loop loop;

	if (!(token & FOLD_LOOP)) {
		vec_push(&u->tokens, token);
		return;
	}
	loop = fold_loop(u->fold, token);
	CHECK(loop.n > 0 && loop.n <= FOLD_PERIOD_MAX && loop.times >= 2);
	u->deepest = ++u->depth > u->deepest ? u->depth : u->deepest;
	for (uint64_t i = 0; i < loop.times; i++)
		for (uint32_t j = 0; j < loop.n; j++)
			unfold(u, loop.body[j]);
	u->depth--;
}

/* "ab(cd)3" */
static void spell(struct unfolded *u, uint64_t token)
{
	struct fold_loop loop;

	if (!(token & FOLD_LOOP)) {
		buf_put_u8(&u->text, (uint8_t)token);
		return;
	}
	loop = fold_loop(u->fold, token);
	buf_put_u8(&u->text, '(');
	for (uint32_t i = 0; i < loop.n && i < LETTERS_MAX; i++)
		spell(u, loop.body[i]);
	buf_printf(&u->text, ")%" PRIu64, loop.times);
}

static void emit(void *ctx, uint64_t token)
{
	struct unfolded *u = ctx;

	u->n_emitted++;
	unfold(u, token);
	if (u->n_emitted < LETTERS_MAX)
		spell(u, token);
}

static void begin(struct unfolded *u)
{
	memset(u, 0, sizeof(*u));
	u->fold = fold_new(emit, u);
}

static void end(struct unfolded *u)
{
	fold_free(u->fold);
	vec_release(&u->tokens);
	buf_release(&u->text);
}

/* The text of what comes out for the letters that go in. */
static const char *folded(const char *letters)
{
	static char text[1000];
	struct unfolded u;

	begin(&u);
	for (const char *c = letters; *c; c++)
		fold_push(u.fold, (uint64_t)(unsigned char)*c);
	fold_flush(u.fold);
	CHECK_EQ(u.tokens.n, strlen(letters));
	snprintf(text, sizeof(text), "%s", buf_text(&u.text));
	end(&u);
	return text;
}

static void test_plain(void)
{
	CHECK_STR(folded(""), "");
	CHECK_STR(folded("abcdef"), "abcdef");
	CHECK_STR(folded("abcacb"), "abcacb");
}

static void test_loops(void)
{
	CHECK_STR(folded("aaaa"), "(a)4");
	CHECK_STR(folded("xababaz"), "x(ab)2az");
	CHECK_STR(folded("xabcabcabcaby"), "x(abc)3aby");
	CHECK_STR(folded("abab-cdcdcd"), "(ab)2-(cd)3");
}

static void test_nested(void)
{
	CHECK_STR(folded("aaabaaabaaab"), "((a)3b)3");
	CHECK_STR(folded("xbcbcdbcbcdy"), "x((bc)2d)2y");
	CHECK_STR(folded("aabaabcaabaabcd"), "(((a)2b)2c)2d");
	/* Rounds that differ inside are not one loop. */
	CHECK_STR(folded("baaabaaaaabaaaa."), "b(a)3b(a)5b(a)4.");
}

static void test_flush(void)
{
	struct unfolded u;

	begin(&u);
	for (int i = 0; i < 6; i++) {
		fold_push(u.fold, 'a');
		if (i == 3)
			fold_flush(u.fold);
	}
	fold_flush(u.fold);
	CHECK_STR(buf_text(&u.text), "(a)4(a)2");
	end(&u);
}

static uint64_t random_state = 88172645463325252u;

static uint64_t random_below(uint64_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % n;
}

typedef VEC(uint64_t) sequence;

/* Loops in loops, of random lengths, whose tokens are few so that repetitions overlap. */
static void add_random(sequence *to, unsigned alphabet, int depth)
{
	uint64_t n = 1 + random_below(6), times = 1 + random_below(5);
	size_t start = to->n, length;

	for (uint64_t i = 0; i < n; i++)
		if (depth && !random_below(3))
			add_random(to, alphabet, depth - 1);
		else
			vec_push(to, random_below(alphabet));
	length = to->n - start;
	for (uint64_t i = 1; i < times; i++)
		for (size_t j = 0; j < length; j++)
			vec_push(to, to->v[start + j]);
}

static void check_same(const sequence *s, size_t flush_every)
{
	struct unfolded u;

	begin(&u);
	for (size_t i = 0; i < s->n; i++) {
		fold_push(u.fold, s->v[i]);
		if (flush_every && i % flush_every == 0)
			fold_flush(u.fold);
	}
	fold_flush(u.fold);
	CHECK_EQ(u.tokens.n, s->n);
	CHECK(u.tokens.n == s->n && !memcmp(u.tokens.v, s->v, s->n * sizeof(*s->v)));
	CHECK(u.deepest <= FOLD_LEVELS);
	end(&u);
}

static void test_random(void)
{
	for (int i = 0; i < 100 && !check_failures; i++) {
		sequence s = {0};

		for (int j = 0; j < 20; j++)
			add_random(&s, 2 + (unsigned)i % 7, 4);
		check_same(&s, i % 5 ? 0 : 97);
		vec_release(&s);
	}
}

/* Longer than every window, with bodies around the longest that are found. */
static void test_long(void)
{
	static const size_t periods[] = {1, 2, 1000, FOLD_PERIOD_MAX, FOLD_PERIOD_MAX + 1};
	sequence s = {0};

	for (size_t i = 0; i < sizeof(periods) / sizeof(periods[0]); i++) {
		for (size_t j = 0; j < 5 * FOLD_PERIOD_MAX; j++)
			vec_push(&s, 1000 * i + j % periods[i]);
		for (size_t j = 0; j < 30000; j++)
			vec_push(&s, random_below(3));
	}
	check_same(&s, 0);
	vec_release(&s);
}

static size_t n_of_period(size_t period)
{
	struct unfolded u;
	size_t n;

	begin(&u);
	for (size_t i = 0; i < 20 * FOLD_PERIOD_MAX; i++)
		fold_push(u.fold, i % period);
	fold_flush(u.fold);
	CHECK_EQ(u.tokens.n, 20 * FOLD_PERIOD_MAX);
	n = u.n_emitted;
	end(&u);
	return n;
}

static void test_longest(void)
{
	CHECK_EQ(n_of_period(1), 1);
	CHECK_EQ(n_of_period(FOLD_PERIOD_MAX), 1);
	CHECK_EQ(n_of_period(FOLD_PERIOD_MAX + 1), 20 * FOLD_PERIOD_MAX);
}

/* A token that a body has more often than its earlier places are tried. */
static void test_frequent(void)
{
	CHECK_STR(folded("1a2a3a4a5a6a7a8a9a0aAaBaCaDa1a2a3a4a5a6a7a8a9a0aAaBaCaDa"),
		"(1a2a3a4a5a6a7a8a9a0aAaBaCaDa)2");
	CHECK_STR(folded("-1a2a3a4a5a6a7a8a9a0aAaBaCaDa1a2a3a4a5a6a7a8a9a0aAaBaCaDa1a."),
		"-(1a2a3a4a5a6a7a8a9a0aAaBaCaDa)21a.");
}

int main(void)
{
	static const struct test tests[] = {
		{"what does not repeat comes out as it is", test_plain},
		{"a repetition comes out once with its number, the unfinished round behind it",
			test_loops},
		{"repetitions inside of repetitions are folded first", test_nested},
		{"a flush gives out everything and ends repetitions", test_flush},
		{"random sequences are the same when they are unfolded", test_random},
		{"sequences longer than the window are the same when they are unfolded", test_long},
		{"bodies up to the longest allowed are found", test_longest},
		{"a token that a body has often does not hide the body", test_frequent},
	};

	return RUN_TESTS(tests);
}
