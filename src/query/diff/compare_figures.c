/* SPDX-License-Identifier: MIT */
#include "query/diff/compare_figures.h"

#include <float.h>
#include <math.h>

#include "base/probability.h"

#define EXACT_ENOUGH                                                                               \
	1e-3 /* of a figure that is compared with an estimate: so sure it is, at most */

/* The mean of a side's runs, and how sure it is. */
struct estimate {
	double mean, variance;
	double grain;	/* of the counts of one run each */
	double freedom; /* of a variance between runs; 0: it is not from runs */
	double sampled; /* the part of the variance that more samples make smaller */
};

static double squared(double x)
{
	return x * x;
}

static bool is_constant(const struct compare_side *side)
{
	for (size_t i = 1; i < side->n; i++)
		if (side->runs[i].value != side->runs[0].value)
			return false;
	return true;
}

static double mean_of(const struct compare_side *side)
{
	double sum = 0;

	for (size_t i = 0; i < side->n; i++)
		sum += side->runs[i].value;
	return sum / (double)side->n;
}

/* Of the mean, by sampling. One sample may always have fallen elsewhere. */
static double sampling_variance(const struct compare_side *side)
{
	double sum = 0, one = squared(side->grain) / (double)side->n;

	for (size_t i = 0; i < side->n; i++)
		sum += side->runs[i].squares;
	sum /= squared((double)side->n);
	return sum > one ? sum : one;
}

static double deviations_squared(const struct compare_side *side, double mean)
{
	double sum = 0;

	for (size_t i = 0; i < side->n; i++)
		sum += squared(side->runs[i].value - mean);
	return sum;
}

/* ---- several runs ---- */

/* The side has several runs itself, or takes the scatter of the other, in proportion. */
static struct estimate between_runs(
	const struct compare_side *side, const struct compare_side *other, bool is_exact)
{
	const struct compare_side *from = side->n > 1 ? side : other;
	double mean = mean_of(side), from_mean = mean_of(from);
	double scale = side->n > 1 || from_mean == 0 ? 1 : mean / from_mean;
	double between = deviations_squared(from, from_mean) / (double)(from->n - 1) *
			 squared(scale) / (double)side->n;
	double sampled = is_exact ? 0 : sampling_variance(side);

	return (struct estimate){.mean = mean,
		.variance = between > sampled ? between : sampled,
		.freedom = (double)(from->n - 1)};
}

/* Welch and Satterthwaite; what one side has taken from the other has no freedom of its own. */
static double freedom_of(
	const struct estimate *a, const struct estimate *b, const struct compare_question *q)
{
	double both = squared(a->variance + b->variance);
	double parts = squared(a->variance) / a->freedom + squared(b->variance) / b->freedom;

	if (q->before.n == 1 || q->after.n == 1)
		return a->freedom < b->freedom ? a->freedom : b->freedom;
	return parts > 0 ? both / parts : a->freedom + b->freedom;
}

/* ---- one run a side ---- */

static struct estimate of_one_run(const struct compare_side *side, double noise)
{
	struct estimate e = {.mean = side->runs[0].value, .grain = side->grain};

	if (e.mean == 0)
		return e;
	e.sampled = side->runs[0].squares;
	e.variance = e.sampled + squared(noise * e.mean);
	if (e.variance < squared(e.mean * EXACT_ENOUGH))
		e.variance = squared(e.mean * EXACT_ENOUGH);
	e.grain = e.variance / e.mean;
	return e;
}

static double count_of(const struct estimate *e)
{
	return e->grain > 0 ? e->mean / e->grain : 0;
}

/* What scatters where it was seen may be missing for the same reason: what the kernel did for others, in one run alone. */
static void suit_absence(struct estimate *absent, const struct estimate *other)
{
	if (absent->mean == 0 && absent->grain > 0 && other->grain > absent->grain)
		absent->grain = other->grain;
}

/* What is improbable if a unit of both is as probable: the smaller tail of the count after, given the sum. */
static double binomial_tail(const struct estimate *a, const struct estimate *b, double factor)
{
	double n_a = count_of(a), n_b = count_of(b);
	double chance = factor * a->grain / (factor * a->grain + b->grain);
	double more = probability_binomial_at_least(n_b, n_a + n_b, chance);
	double less = probability_binomial_at_most(n_b, n_a + n_b, chance);

	return more < less ? more : less;
}

static void interval_of_one(
	const struct estimate *a, const struct estimate *b, double tail, double *low, double *high)
{
	double a_low, a_high, b_low, b_high;

	probability_poisson_limits(count_of(a), tail, &a_low, &a_high);
	probability_poisson_limits(count_of(b), tail, &b_low, &b_high);
	*low = b->mean - a->mean - hypot(b->mean - b_low * b->grain, a_high * a->grain - a->mean);
	*high = b->mean - a->mean + hypot(b_high * b->grain - b->mean, a->mean - a_low * a->grain);
}

/* ---- verdicts ---- */

struct comparison {
	struct estimate before, after;
	double error, freedom; /* of several runs */
	bool is_of_runs;
};

static struct comparison compare(const struct compare_question *q)
{
	struct comparison c = {.is_of_runs = q->before.n > 1 || q->after.n > 1};

	if (!c.is_of_runs) {
		c.before = of_one_run(&q->before, q->noise);
		c.after = of_one_run(&q->after, q->noise);
		suit_absence(&c.before, &c.after);
		suit_absence(&c.after, &c.before);
		return c;
	}
	c.before = between_runs(&q->before, &q->after, q->is_exact);
	c.after = between_runs(&q->after, &q->before, q->is_exact);
	c.error = sqrt(c.before.variance + c.after.variance);
	c.freedom = freedom_of(&c.before, &c.after, q);
	return c;
}

/* How improbable the difference to `factor` times before is, in one direction. */
static double tail_of(const struct comparison *c, double factor)
{
	double difference = c->after.mean - factor * c->before.mean, error;

	if (!c->is_of_runs)
		return binomial_tail(&c->before, &c->after, factor);
	error = hypot(factor * sqrt(c->before.variance), sqrt(c->after.variance));
	return error > 0 ? probability_t_tail(fabs(difference) / error, c->freedom) : 1;
}

static double margin_of(const struct compare_question *q, double before)
{
	double relative = COMPARE_MARGIN * before, absolute = COMPARE_RESOLUTION * q->before.whole;

	return relative > absolute ? relative : absolute;
}

/* So much must errors shrink, until the test tells a difference or the interval shows that there is none. */
static double shrinking(double error, double distance, double quantile)
{
	return distance > 0 ? squared(quantile * error / distance) : INFINITY;
}

/* Errors of one run have a part that more samples do not make smaller. */
static double samples_needed(const struct comparison *c, double distance, double quantile)
{
	double sampled = c->before.sampled + c->after.sampled;
	double rest = c->before.variance + c->after.variance - sampled;
	double left = squared(distance / quantile) - rest;

	return distance > 0 && left > 0 ? sampled / left : INFINITY;
}

static double needed_of(const struct compare_question *q, const struct comparison *c)
{
	double distance = fabs(c->after.mean - c->before.mean);
	double within = margin_of(q, c->before.mean) - distance;
	double to_differ, to_be_same, least;

	if (c->is_of_runs) {
		to_differ = shrinking(
			c->error, distance, probability_t_quantile(COMPARE_LEVEL / 2, c->freedom));
		to_be_same = shrinking(
			c->error, within, probability_t_quantile(COMPARE_INTERVAL / 2, c->freedom));
	} else {
		to_differ =
			samples_needed(c, distance, probability_normal_quantile(COMPARE_LEVEL / 2));
		to_be_same = samples_needed(
			c, within, probability_normal_quantile(COMPARE_INTERVAL / 2));
	}
	least = to_differ < to_be_same ? to_differ : to_be_same;
	return least > 1 ? least : 1 + DBL_EPSILON;
}

static void put_interval(struct compare_answer *answer, const struct comparison *c)
{
	double half;

	answer->has_interval = true;
	if (!c->is_of_runs) {
		interval_of_one(
			&c->before, &c->after, COMPARE_INTERVAL / 2, &answer->low, &answer->high);
		return;
	}
	half = c->error * probability_t_quantile(COMPARE_INTERVAL / 2, c->freedom);
	answer->low = answer->difference - half;
	answer->high = answer->difference + half;
}

static bool is_counted(const struct compare_question *q)
{
	return q->is_exact && is_constant(&q->before) && is_constant(&q->after);
}

static enum compare_verdict direction(double difference)
{
	return difference > 0 ? COMPARE_MORE : difference < 0 ? COMPARE_LESS : COMPARE_SAME;
}

struct compare_answer compare_figures(const struct compare_question *q)
{
	struct compare_answer answer = {.before = mean_of(&q->before), .after = mean_of(&q->after)};
	struct comparison c;
	double margin;

	answer.difference = answer.after - answer.before;
	if (is_counted(q)) {
		answer.verdict = direction(answer.difference);
		return answer;
	}
	c = compare(q);
	put_interval(&answer, &c);
	margin = margin_of(q, answer.before);
	if (answer.difference != 0 && tail_of(&c, 1) < COMPARE_LEVEL / 2) {
		answer.verdict = direction(answer.difference);
	} else if (answer.low >= -margin && answer.high <= margin) {
		answer.verdict = COMPARE_SAME;
	} else {
		answer.verdict = COMPARE_UNKNOWN;
		answer.needed = needed_of(q, &c);
	}
	return answer;
}

bool compare_is_surely_more(const struct compare_question *q, double factor)
{
	double before = mean_of(&q->before), after = mean_of(&q->after);
	struct comparison c;

	if (after <= factor * before)
		return false;
	if (is_counted(q))
		return true;
	c = compare(q);
	return tail_of(&c, factor) < COMPARE_LEVEL / 2;
}
