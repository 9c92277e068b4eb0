/* SPDX-License-Identifier: MIT */
/*
 * Whether two figures differ: one or several runs of each side, the interval of their difference, and what can be said.
 *
 * What a run says is a sum of weights. It is exact (a count), or an estimate whose variance follows from the weights: the
 * sum of their squares, as samples that fall independently have it (Poisson). Sampling by a timer scatters less than that,
 * but runs of one program differ by more than by sampling: memory lies elsewhere, hashes have other seeds, other programs
 * have the caches. Hence:
 *
 * - One run a side: `noise` is the standard deviation of a figure from run to run, as a part of it; it has to be
 *   assumed, since one run does not show it. The interval is by the exact limits of Poisson means, joined as independent
 *   (the method of variance estimates recovery), the decision by the exact binomial test of one count given the
 *   sum of both. Counts are those of equal weights that would have the variance: (sum)^2 / variance.
 * - Several runs: variances between runs (Welch's test, Student's t), of a side with one run that of the other,
 *   but never less than that by sampling, since few runs may be alike by chance. `noise` has no meaning.
 * - Exact figures that are the same in all runs of their side have no interval: more is more. Those that are not are
 *   compared as several runs.
 */
#ifndef WEIR_QUERY_DIFF_COMPARE_FIGURES_H
#define WEIR_QUERY_DIFF_COMPARE_FIGURES_H

#include <stdbool.h>
#include <stddef.h>

/* Of tests; both sides of the distribution together. Of rows that did not change at most one in a thousand may be called
 * different: a half of that, since the model is one. */
#define COMPARE_LEVEL	      0.0005
#define COMPARE_INTERVAL      0.05  /* what is outside of an interval of 95 % */
#define COMPARE_MARGIN	      0.05  /* the same: not more than so much of before away, or */
#define COMPARE_RESOLUTION    0.001 /* of the whole before */
#define COMPARE_NOISE	      0.20  /* between single runs, of a program's own code, */
#define COMPARE_NOISE_OUTSIDE 0.50  /* and of the kernel, which works for others, too */

enum compare_verdict { COMPARE_SAME, COMPARE_MORE, COMPARE_LESS, COMPARE_UNKNOWN };

struct figure {
	double value;
	double squares; /* of its weights; 0: nothing of it is an estimate */
};

struct compare_side {
	const struct figure *runs;
	size_t n;     /* at least 1 */
	double grain; /* the usual weight of a sample: that of one that did not fall here */
	double whole; /* what all rows together have in a run, the mean */
};

struct compare_question {
	struct compare_side before, after;
	bool is_exact; /* counted */
	double noise;
};

struct compare_answer {
	double before, after, difference; /* of means */
	bool has_interval;
	double low, high; /* of the difference, 95 % */
	enum compare_verdict verdict;
	/* Of COMPARE_UNKNOWN: with so many times the samples, or the runs, it could be told if the difference stays as it
	 * is; infinite: not by that, since it is within what runs are assumed to differ by. */
	double needed;
};

struct compare_answer compare_figures(const struct compare_question *q);
/* Surely after > factor * before. */
bool compare_is_surely_more(const struct compare_question *q, double factor);

#endif
