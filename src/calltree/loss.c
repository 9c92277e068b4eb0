/* SPDX-License-Identifier: MIT */
#include "calltree/loss.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/order.h"

#define CHANCE_SIGMAS 4

void loss_release(struct loss *loss)
{
	for (size_t i = 0; i < loss->n_reasons; i++)
		free(loss->reasons[i].phrase);
	free(loss->reasons);
	memset(loss, 0, sizeof(*loss));
}

/* More distinct reasons than these are counted together: a damaged trace may hold anything. */
#define LOSS_REASONS_MAX 200

/* There are a handful of reasons, so a list is enough. */
void loss_add_reason(struct loss *loss, const char *phrase, uint64_t n)
{
	if (!n)
		return;
	if (loss->n_reasons >= LOSS_REASONS_MAX)
		phrase = loss->reasons[LOSS_REASONS_MAX - 1].phrase;
	else if (loss->n_reasons == LOSS_REASONS_MAX - 1)
		phrase = "other reasons";
	for (size_t i = 0; i < loss->n_reasons; i++) {
		if (!strcmp(loss->reasons[i].phrase, phrase)) {
			loss->reasons[i].n += n;
			return;
		}
	}
	if (loss->n_reasons == loss->cap_reasons)
		mem_grow((void **)&loss->reasons, &loss->cap_reasons, loss->n_reasons + 1,
			sizeof(*loss->reasons));
	loss->reasons[loss->n_reasons++] = (struct loss_reason){mem_strdup(phrase), n};
}

static int compare_reasons(const void *a, const void *b)
{
	const struct loss_reason *x = a, *y = b;

	return ORDER(y->n, x->n) ?: strcmp(x->phrase, y->phrase);
}

void loss_sort_reasons(struct loss *loss)
{
	if (loss->n_reasons)
		qsort(loss->reasons, loss->n_reasons, sizeof(*loss->reasons), compare_reasons);
}

bool loss_is_real(const struct loss *loss)
{
	return loss->samples_lost || loss->events_lost || loss->records_lost || loss->is_cut;
}

/* The number of samples scatters by its root at most: less where one program runs all the time. */
bool loss_is_covered(const struct loss *loss)
{
	double cpu = (double)loss->cpu_ns, off = cpu - (double)loss->sampled_ns;
	double by_chance = CHANCE_SIGMAS * sqrt(cpu * (double)loss->period_ns);

	return fabs(off) <= cpu / 10 || fabs(off) <= by_chance || !loss->cpu_ns;
}
