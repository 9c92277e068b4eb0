/* SPDX-License-Identifier: MIT */
/*
 * The two incomplete functions are sums or continued fractions, whichever converges at that place; everything
 * else follows from them. Quantiles are looked for, since they are asked for some
 * thousand times, not millions.
 */
#include "base/probability.h"

#include <math.h>

#define ROUNDS_MAX  5000 /* of a sum or fraction; far fewer are needed below a million */
#define EXACT_MAX   1e6	 /* larger counts are distributed normally, near enough */
#define STEPS_MAX   200
#define NEAR_ENOUGH 1e-12
#define SMALL	    1e-300
#define NEAR	    1e-15

/* Abramowitz and Stegun 26.5.8, by Lentz's method. */
static double beta_fraction(double x, double a, double b)
{
	double c = 1, d = 1 - (a + b) * x / (a + 1), f;

	d = 1 / (fabs(d) < SMALL ? SMALL : d);
	f = d;
	for (int m = 1; m < ROUNDS_MAX; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		double step;

		d = 1 + even * d;
		c = 1 + even / c;
		d = 1 / (fabs(d) < SMALL ? SMALL : d);
		f *= d * (fabs(c) < SMALL ? SMALL : c);
		d = 1 + odd * d;
		c = 1 + odd / c;
		d = 1 / (fabs(d) < SMALL ? SMALL : d);
		step = d * (fabs(c) < SMALL ? SMALL : c);
		f *= step;
		if (fabs(step - 1) < NEAR)
			break;
	}
	return f;
}

double probability_beta(double x, double a, double b)
{
	double front;

	if (x <= 0)
		return 0;
	if (x >= 1)
		return 1;
	front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
	return x < (a + 1) / (a + b + 2) ? front * beta_fraction(x, a, b) / a
					 : 1 - front * beta_fraction(1 - x, b, a) / b;
}

static double gamma_sum(double a, double x)
{
	double term = 1 / a, sum = term;

	for (int i = 1; i < ROUNDS_MAX && fabs(term) > fabs(sum) * NEAR; i++) {
		term *= x / (a + i);
		sum += term;
	}
	return sum;
}

/* Of what is above x. */
static double gamma_fraction(double a, double x)
{
	double b = x + 1 - a, c = 1 / SMALL, d = 1 / b, f = d;

	for (int i = 1; i < ROUNDS_MAX; i++) {
		double n = -i * (i - a), step;

		b += 2;
		d = n * d + b;
		c = b + n / c;
		d = 1 / (fabs(d) < SMALL ? SMALL : d);
		step = d * (fabs(c) < SMALL ? SMALL : c);
		f *= step;
		if (fabs(step - 1) < NEAR)
			break;
	}
	return f;
}

double probability_gamma(double a, double x)
{
	double front;

	if (x <= 0)
		return 0;
	front = exp(a * log(x) - x - lgamma(a));
	return x < a + 1 ? front * gamma_sum(a, x) : 1 - front * gamma_fraction(a, x);
}

/*
 * The place where a function that falls along x is `value`; at `low` it is above. A chord says where to look next; of an end
 * that stays, half as much is taken from then on (the Illinois rule), so that both ends come near.
 */
static double where(
	double (*falling)(double x, double a), double a, double value, double low, double high)
{
	double above = falling(low, a) - value, below = falling(high, a) - value, at = low;
	int moved = 0; /* 1: low was the last one that moved, -1: high */

	while (below > 0) {
		low = high, above = below;
		high *= 2, below = falling(high, a) - value;
	}
	for (int i = 0; i < STEPS_MAX && high - low > NEAR_ENOUGH * high; i++) {
		double last = at, off;

		at = low + (high - low) * above / (above - below);
		off = falling(at, a) - value;
		if (off == 0 || fabs(at - last) <= NEAR_ENOUGH * high)
			break;
		if (off > 0) {
			low = at, above = off;
			below /= moved == 1 ? 2 : 1;
			moved = 1;
		} else {
			high = at, below = off;
			above /= moved == -1 ? 2 : 1;
			moved = -1;
		}
	}
	return at;
}

double probability_normal_tail(double z)
{
	return erfc(z / sqrt(2)) / 2;
}

static double normal_tail_of(double z, double unused)
{
	(void)unused;
	return probability_normal_tail(z);
}

double probability_normal_quantile(double tail)
{
	return tail >= 0.5 ? 0 : where(normal_tail_of, 0, tail, 0, 1);
}

double probability_t_tail(double t, double freedom)
{
	double both = probability_beta(freedom / (freedom + t * t), freedom / 2, 0.5);

	return t < 0 ? 1 - both / 2 : both / 2;
}

double probability_t_quantile(double tail, double freedom)
{
	return tail >= 0.5 ? 0 : where(probability_t_tail, freedom, tail, 0, 1);
}

/* Standard deviations from the mean, of a count so large that it is distributed normally. */
static double deviations(double k, double n, double p)
{
	double error = sqrt(n * p * (1 - p));

	return error > 0 ? (k - n * p) / error : k > n * p ? INFINITY : k < n * p ? -INFINITY : 0;
}

double probability_binomial_at_least(double k, double n, double p)
{
	if (k <= 0)
		return 1;
	return n > EXACT_MAX ? probability_normal_tail(deviations(k, n, p))
			     : probability_beta(p, k, n - k + 1);
}

double probability_binomial_at_most(double k, double n, double p)
{
	if (k >= n)
		return 1;
	return n > EXACT_MAX ? probability_normal_tail(-deviations(k, n, p))
			     : probability_beta(1 - p, n - k, k + 1);
}

/* n or fewer, when x is the mean. */
static double at_most(double x, double n)
{
	return x <= 0 ? 1 : 1 - probability_gamma(n + 1, x);
}

/* Fewer than n. */
static double fewer(double x, double n)
{
	return x <= 0 ? 1 : 1 - probability_gamma(n, x);
}

void probability_poisson_limits(double n, double tail, double *low, double *high)
{
	if (n > EXACT_MAX) {
		double half = probability_normal_quantile(tail) * sqrt(n);

		*low = n - half;
		*high = n + half;
		return;
	}
	*high = where(at_most, n, tail, 0, n + 1);
	*low = n > 0 ? where(fewer, n, 1 - tail, 0, n + 1) : 0;
}
