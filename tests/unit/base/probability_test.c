/* SPDX-License-Identifier: MIT */
/* Against values that follow by hand (binomials of fair coins, exponentials) and those of printed tables. */
#include "check.h"

#include <math.h>

#include "base/probability.h"

#define CHECK_NEAR(actual, expected)                                                               \
	CHECK(fabs((double)(actual) - (double)(expected)) <= 1e-7 * (1 + fabs((double)(expected))))

/* Of four coins at least two are heads: 11 of 16. */
static void incomplete_beta_is_a_sum_of_binomials(void)
{
	CHECK_NEAR(probability_beta(0.5, 2, 3), 11.0 / 16);
	CHECK_NEAR(probability_beta(0.25, 1, 1), 0.25);
	CHECK_NEAR(probability_beta(0.9, 3, 1), 0.9 * 0.9 * 0.9);
	CHECK_NEAR(probability_beta(0, 3, 4), 0);
	CHECK_NEAR(probability_beta(1, 3, 4), 1);
	CHECK_NEAR(probability_beta(0.3, 5.5, 2.5) + probability_beta(0.7, 2.5, 5.5), 1);
}

static void incomplete_gamma_is_a_sum_of_poisson_terms(void)
{
	CHECK_NEAR(probability_gamma(1, 1), 1 - exp(-1));
	CHECK_NEAR(probability_gamma(3, 2), 1 - exp(-2) * (1 + 2 + 2));
	CHECK_NEAR(probability_gamma(2, 50), 1 - exp(-50) * 51);
	CHECK_NEAR(probability_gamma(4, 0), 0);
}

static void quantiles_are_those_of_tables(void)
{
	CHECK_NEAR(probability_normal_tail(0), 0.5);
	CHECK_NEAR(probability_normal_quantile(0.025), 1.959963985);
	CHECK_NEAR(probability_normal_quantile(0.00025), 3.480756404);
	CHECK_NEAR(probability_t_tail(1, 1), 0.25);
	CHECK_NEAR(probability_t_tail(-1, 1), 0.75);
	CHECK_NEAR(probability_t_quantile(0.025, 4), 2.776445105);
	CHECK_NEAR(probability_t_quantile(0.005, 10), 3.169272673);
	CHECK_NEAR(probability_t_quantile(0.025, 1e6), 1.959966356);
}

/* Eight or more of ten coins: (45 + 10 + 1) / 1024. */
static void binomial_tails(void)
{
	CHECK_NEAR(probability_binomial_at_least(8, 10, 0.5), 56.0 / 1024);
	CHECK_NEAR(probability_binomial_at_most(2, 10, 0.5), 56.0 / 1024);
	CHECK_NEAR(probability_binomial_at_least(0, 10, 0.5), 1);
	CHECK_NEAR(probability_binomial_at_most(10, 10, 0.5), 1);
	CHECK_NEAR(probability_binomial_at_most(0, 3, 0.1), 0.9 * 0.9 * 0.9);
	CHECK(fabs(probability_binomial_at_least(1001000, 2e6, 0.5) -
		      probability_normal_tail(2 * 1000 / sqrt(2e6))) < 1e-3);
}

static void poisson_limits_are_exact(void)
{
	double low, high;

	probability_poisson_limits(0, 0.025, &low, &high);
	CHECK(low == 0);
	CHECK_NEAR(high, -log(0.025)); /* e^-x is 2.5 % */
	probability_poisson_limits(3, 0.025, &low, &high);
	CHECK(fabs(low - 0.6186721) < 1e-6 && fabs(high - 8.767273) < 1e-6);
	probability_poisson_limits(10, 0.025, &low, &high);
	CHECK(fabs(low - 4.795389) < 1e-6 && fabs(high - 18.390356) < 1e-6);
	probability_poisson_limits(4e6, 0.025, &low, &high);
	CHECK(fabs(high - 4e6 - 1.959964 * 2000) < 1);
}

int main(void)
{
	static const struct test tests[] = {
		{"the incomplete beta function is a sum of binomials",
			incomplete_beta_is_a_sum_of_binomials},
		{"the incomplete gamma function is a sum of Poisson terms",
			incomplete_gamma_is_a_sum_of_poisson_terms},
		{"quantiles of normal and t distributions are those of tables",
			quantiles_are_those_of_tables},
		{"binomial tails are those of coins", binomial_tails},
		{"limits of Poisson means are exact", poisson_limits_are_exact},
	};

	return RUN_TESTS(tests);
}
