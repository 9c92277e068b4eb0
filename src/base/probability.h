/* SPDX-License-Identifier: MIT */
/*
 * Tails and quantiles of the distributions that counts and means follow. Counts need not be whole numbers: a count
 * that stands for n with a greater scatter is a smaller one. Accurate to about 1e-10 of the result; of counts beyond a
 * million the normal distribution is taken.
 */
#ifndef WEIR_BASE_PROBABILITY_H
#define WEIR_BASE_PROBABILITY_H

/* The regularised incomplete beta function I_x(a, b); a, b > 0. */
double probability_beta(double x, double a, double b);
/* The regularised lower incomplete gamma function P(a, x); a > 0. */
double probability_gamma(double a, double x);

/* The standard normal distribution: what is above z, and the z that `tail` (0 < tail <= 0.5) is above. */
double probability_normal_tail(double z);
double probability_normal_quantile(double tail);
/* The same of Student's t with `freedom` > 0 degrees of freedom. */
double probability_t_tail(double t, double freedom);
double probability_t_quantile(double tail, double freedom);

/* Of n trials with probability p: at least k succeed; at most k. 0 <= k <= n. */
double probability_binomial_at_least(double k, double n, double p);
double probability_binomial_at_most(double k, double n, double p);

/* The exact limits of the mean of a Poisson distribution of which n was seen: below `low` and above `high`
 * n is as improbable as `tail`. */
void probability_poisson_limits(double n, double tail, double *low, double *high);

#endif
