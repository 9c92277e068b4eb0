/* SPDX-License-Identifier: MIT */
/*
 * Comparisons against figures by hand; then simulated runs whose truth is known: rows that did not change are called
 * different at most once in a thousand, intervals hold the true difference, and changes are found as often as the
 * error promises. All is seeded.
 */
#include "check.h"

#include <math.h>

#include "base/probability.h"
#include "query/diff/compare_figures.h"

#define NEAR(actual, expected) (fabs((actual) - (expected)) <= 1e-3 * (1 + fabs(expected)))

/* n samples of this weight. */
static struct figure samples(double n, double weight)
{
	return (struct figure){n * weight, n * weight * weight};
}

static struct compare_question ask(const struct figure *before, size_t n_before,
	const struct figure *after, size_t n_after, double noise)
{
	return (struct compare_question){.before = {before, n_before, 1, before[0].value},
		.after = {after, n_after, 1, before[0].value},
		.noise = noise};
}

static struct compare_answer two(struct figure before, struct figure after, double noise)
{
	struct compare_question q = ask(&before, 1, &after, 1, noise);

	return compare_figures(&q);
}

static void counts_have_no_interval(void)
{
	struct figure before[] = {{10, 0}, {10, 0}}, after[] = {{12, 0}, {12, 0}},
		      odd[] = {{12, 0}, {14, 0}};
	struct compare_question q = ask(before, 1, after, 1, 0.2);
	struct compare_answer a;

	q.is_exact = true;
	a = compare_figures(&q);
	CHECK(a.verdict == COMPARE_MORE && !a.has_interval && a.difference == 2);
	q.after.runs = before;
	CHECK(compare_figures(&q).verdict == COMPARE_SAME);
	q = ask(after, 2, before, 2, 0.15);
	q.is_exact = true;
	CHECK(compare_figures(&q).verdict == COMPARE_LESS);
	q.after.runs = odd; /* runs differ: then one is as good as another */
	a = compare_figures(&q);
	CHECK(a.has_interval && a.verdict == COMPARE_UNKNOWN);
}

/* Exact limits of 100 are 81.364 and 121.627, so the interval is +- hypot(18.636, 21.627). */
static void intervals_of_samples(void)
{
	struct compare_answer a = two(samples(100, 1), samples(100, 1), 0);

	CHECK(a.verdict == COMPARE_UNKNOWN && a.has_interval);
	CHECK(NEAR(a.low, -28.549) && NEAR(a.high, 28.549));
	/* +-5 % is 5: (5 / 1.96)^2 is 6.508, of which errors of 200 are 30.73 times as much */
	CHECK(NEAR(a.needed, 30.73));
	a = two(samples(100000, 1), samples(100000, 1), 0);
	CHECK(a.verdict == COMPARE_SAME);
	a = two(samples(100, 1), samples(200, 1), 0);
	CHECK(a.verdict == COMPARE_MORE && a.low > 0);
	a = two(samples(200, 7), samples(100, 7), 0);
	CHECK(a.verdict == COMPARE_LESS && a.high < 0);
}

/* P(11 of 11 coins) is 1 / 2048, P(13 of 13) 1 / 8192: below 0.00025 from 12 on. */
static void few_samples_are_judged_exactly(void)
{
	CHECK(two(samples(0, 1), samples(11, 1), 0).verdict == COMPARE_UNKNOWN);
	CHECK(two(samples(0, 1), samples(12, 1), 0).verdict == COMPARE_MORE);
	CHECK(two(samples(12, 1), samples(0, 1), 0).verdict == COMPARE_LESS);
	CHECK(two(samples(0, 1), samples(1, 1), 0).verdict == COMPARE_UNKNOWN);
}

/* A quarter of the frequency: a quarter of the samples, of four times the weight. */
static void samples_count_by_weight(void)
{
	struct figure before = samples(400, 1), after = samples(100, 4);
	struct compare_question q = ask(&before, 1, &after, 1, 0);
	struct compare_answer a = compare_figures(&q);

	CHECK(a.difference == 0 && a.verdict != COMPARE_MORE && a.verdict != COMPARE_LESS);
	after = samples(100, 1);
	CHECK(compare_figures(&q).verdict == COMPARE_LESS);
	/* 12 of before, none after: but there one sample would be four of before, so that 3 are missing */
	before = samples(12, 1);
	after = samples(0, 4);
	q = ask(&before, 1, &after, 1, 0);
	q.after.grain = 4;
	CHECK(compare_figures(&q).verdict == COMPARE_UNKNOWN);
}

static void noise_between_single_runs_is_not_a_difference(void)
{
	struct compare_answer a = two(samples(100000, 1), samples(140000, 1), 0.15);

	CHECK(a.verdict == COMPARE_UNKNOWN && isinf(a.needed));
	CHECK(two(samples(100000, 1), samples(140000, 1), 0).verdict == COMPARE_MORE);
	CHECK(two(samples(100000, 1), samples(300000, 1), 0.15).verdict == COMPARE_MORE);
	/* What scatters by half of itself may be missing in one run, what is steady may not. */
	CHECK(two(samples(0, 1), samples(1000, 1), COMPARE_NOISE_OUTSIDE).verdict ==
		COMPARE_UNKNOWN);
	CHECK(two(samples(0, 1), samples(1000, 1), COMPARE_NOISE).verdict == COMPARE_MORE);
}

/* Means 12 and 22, both variances 2: the error is sqrt(2/5 + 2/5), t of 8 degrees 2.306. */
static void several_runs_show_how_they_differ(void)
{
	struct figure before[] = {{10, 1}, {12, 1}, {14, 1}, {12, 1}, {12, 1}};
	struct figure after[] = {{20, 1}, {22, 1}, {24, 1}, {22, 1}, {22, 1}};
	struct compare_question q = ask(before, 5, after, 5, 0.15);
	struct compare_answer a;

	q.before.grain = q.after.grain = 0.01;
	a = compare_figures(&q);
	CHECK(a.verdict == COMPARE_MORE && a.difference == 10);
	CHECK(NEAR(a.low, 10 - 2.0626) && NEAR(a.high, 10 + 2.0626));
	CHECK(compare_is_surely_more(&q, 1) && compare_is_surely_more(&q, 1.3));
	CHECK(!compare_is_surely_more(&q, 1.7));
	q.before.n = q.after.n = 2; /* one degree of freedom each */
	CHECK(compare_figures(&q).verdict == COMPARE_UNKNOWN);
	q.before.n = 5;
	q.after.n = 1; /* takes the scatter of the other */
	a = compare_figures(&q);
	CHECK(a.verdict == COMPARE_UNKNOWN && a.has_interval && a.before == 12);
}

static void runs_that_are_alike_by_chance_scatter_as_samples_do(void)
{
	struct figure before[] = {{100, 100}, {100, 100}}, after[] = {{110, 110}, {110, 110}};
	struct compare_question q = ask(before, 2, after, 2, 0);

	CHECK(compare_figures(&q).verdict == COMPARE_UNKNOWN);
}

/* ---- simulations ---- */

static uint64_t state;

static double uniform(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return ((double)((z ^ z >> 31) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(2 * acos(-1) * uniform());
}

static double poisson(double mean)
{
	double product = 1, limit = exp(-mean), n = -1;

	if (mean > 100)
		return fmax(0, floor(mean + sqrt(mean) * normal() + 0.5));
	do {
		product *= uniform();
		n++;
	} while (product > limit);
	return n;
}

#define FUNCTIONS 150
#define PAIRS	  200
#define RUNS_MAX  20

/* A program whose functions take less and less: the first some 6 % each, half of them less than a sample. */
static double share_of(int function)
{
	return function < 8 ? 0.06 : 0.9 / (function + 5) / 4;
}

/* What differs between runs: all functions together, and each on its own. */
struct scatter {
	double of_all, of_each;
};

static void simulate_run(struct figure *rows, double n_samples, struct scatter scatter)
{
	double all = exp(scatter.of_all * normal());

	for (int f = 0; f < FUNCTIONS; f++)
		rows[f] = samples(
			poisson(n_samples * share_of(f) * all * exp(scatter.of_each * normal())),
			1);
}

/* In a thousand rows that had a sample, so many are called different. */
static double false_alarms(double n_samples, int n_runs, struct scatter scatter, double noise)
{
	static struct figure runs[2 * RUNS_MAX][FUNCTIONS];
	uint64_t n_rows = 0, n_different = 0;

	for (int pair = 0; pair < PAIRS; pair++) {
		for (int i = 0; i < 2 * n_runs; i++)
			simulate_run(runs[i], n_samples, scatter);
		for (int f = 0; f < FUNCTIONS; f++) {
			struct figure sides[2][RUNS_MAX];
			struct compare_question q;
			enum compare_verdict verdict;
			double sum = 0;

			for (int i = 0; i < 2 * n_runs; i++) {
				sides[i % 2][i / 2] = runs[i][f];
				sum += runs[i][f].value;
			}
			if (!sum)
				continue;
			q = ask(sides[0], (size_t)n_runs, sides[1], (size_t)n_runs, noise);
			verdict = compare_figures(&q).verdict;
			n_rows++;
			n_different += verdict == COMPARE_MORE || verdict == COMPARE_LESS;
		}
	}
	CHECK(n_rows > PAIRS * FUNCTIONS / 2);
	return 1000.0 * (double)n_different / (double)n_rows;
}

static void equal_runs_cry_wolf_less_than_once_in_a_thousand_rows(void)
{
	state = 1;
	CHECK(false_alarms(300, 1, (struct scatter){0, 0}, 0) <= 1);
	CHECK(false_alarms(20000, 1, (struct scatter){0, 0}, 0) <= 1);
	CHECK(false_alarms(300, 1, (struct scatter){0.15, 0.1}, COMPARE_NOISE) <= 1);
	CHECK(false_alarms(20000, 1, (struct scatter){0.1, 0.1}, COMPARE_NOISE) <= 1);
	CHECK(false_alarms(1000, 3, (struct scatter){0.15, 0.1}, 0) <= 1);
	CHECK(false_alarms(20000, 5, (struct scatter){0.05, 0.1}, 0) <= 1);
	/* and the test is one: noise that is not expected is found */
	CHECK(false_alarms(20000, 1, (struct scatter){0.1, 0.1}, 0) > 10);
}

#define TRIALS 500

/* Of as many pairs: how many verdicts are `more`, and how many intervals hold the true difference. */
struct found {
	double more, covered;
};

static struct found try_change(double n, double change)
{
	struct found found = {0};

	for (int i = 0; i < TRIALS; i++) {
		struct figure before = samples(poisson(n), 1),
			      after = samples(poisson(n * (1 + change)), 1);
		struct compare_answer a = two(before, after, 0);

		found.more += a.verdict == COMPARE_MORE;
		found.covered += a.low <= n * change && n * change <= a.high;
	}
	found.more /= TRIALS;
	found.covered /= TRIALS;
	return found;
}

static void check_power(double n, double change)
{
	double distance = n * change / sqrt(n * (2 + change));
	double promised = 1 - probability_normal_tail(
				      distance - probability_normal_quantile(COMPARE_LEVEL / 2));
	struct found found = try_change(n, change);

	CHECK(fabs(found.more - promised) < 0.06);
	CHECK(found.covered > 0.93 && found.covered < 0.98);
}

static void changes_are_found_as_often_as_the_interval_promises(void)
{
	state = 2;
	check_power(500, 0.2); /* some 36 of 100 */
	check_power(1000, 0.2);
	check_power(2000, 0.2); /* nearly all */
	check_power(20000, 0.05);
	check_power(100000, 0.02);
}

/* Welch's test finds a change of `distance` errors as often as a shifted t distribution says, near enough. */
static void check_power_of_runs(int n_runs, double scatter, double change)
{
	double freedom = 2.0 * n_runs - 2;
	double distance = change / (scatter * sqrt((1 + (1 + change) * (1 + change)) / n_runs));
	double quantile = probability_t_quantile(COMPARE_LEVEL / 2, freedom);
	double promised =
		1 - probability_normal_tail(
			    (distance - quantile) / sqrt(1 + quantile * quantile / (2 * freedom)));
	double more = 0;

	for (int i = 0; i < TRIALS; i++) {
		struct figure sides[2][RUNS_MAX];
		struct compare_question q;

		for (int run = 0; run < n_runs; run++) {
			sides[0][run] = (struct figure){1e6 * (1 + scatter * normal()), 1e6};
			sides[1][run] =
				(struct figure){1e6 * (1 + change) * (1 + scatter * normal()), 1e6};
		}
		q = ask(sides[0], (size_t)n_runs, sides[1], (size_t)n_runs, 0);
		more += compare_figures(&q).verdict == COMPARE_MORE;
	}
	CHECK(fabs(more / TRIALS - promised) < 0.08);
}

static void several_runs_find_changes_within_their_scatter(void)
{
	state = 3;
	check_power_of_runs(8, 0.08, 0.2);
	check_power_of_runs(10, 0.02, 0.05);
	check_power_of_runs(20, 0.015, 0.02);
}

int main(void)
{
	static const struct test tests[] = {
		{"counts have no interval, and more is more", counts_have_no_interval},
		{"intervals of samples are those of exact Poisson limits", intervals_of_samples},
		{"few samples are judged by the exact binomial test",
			few_samples_are_judged_exactly},
		{"samples of another frequency count by their weights", samples_count_by_weight},
		{"what single runs differ by is not called a difference",
			noise_between_single_runs_is_not_a_difference},
		{"several runs are compared by how they differ among themselves",
			several_runs_show_how_they_differ},
		{"runs that are alike by chance scatter as samples do",
			runs_that_are_alike_by_chance_scatter_as_samples_do},
		{"200 pairs of equal runs: at most 1 row in 1000 is called different",
			equal_runs_cry_wolf_less_than_once_in_a_thousand_rows},
		{"changes of 2, 5 and 20 % are found as often as the interval promises",
			changes_are_found_as_often_as_the_interval_promises},
		{"several runs find changes of 2, 5 and 20 % as often as Welch's test promises",
			several_runs_find_changes_within_their_scatter},
	};

	return RUN_TESTS(tests);
}
