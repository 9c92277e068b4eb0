/* SPDX-License-Identifier: MIT */
/* What a report leaves out and why: counted, never silent. */
#ifndef WEIR_CALLTREE_LOSS_H
#define WEIR_CALLTREE_LOSS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loss_reason {
	char *phrase; /* for people */
	uint64_t n;
};

struct loss {
	uint64_t samples_lost, events_lost;
	uint64_t records_lost; /* side band: mappings, names, forks, switches */
	uint64_t records_unknown;
	uint64_t stacks;	  /* samples with a user part */
	uint64_t stacks_complete; /* of those, the ones that reach the thread's start */
	/* Occurrences in samples, markers not counted: a frame in a thousand samples counts a
	 * thousand times, as it does in the report. */
	uint64_t frames, frames_unresolved;
	/* CPU time that there was to sample, what the samples stand for, and the time between two; 0 = not
	 * known. */
	uint64_t cpu_ns, sampled_ns, period_ns;
	bool is_cut;		     /* the end is missing, or a part could not be read */
	struct loss_reason *reasons; /* most frequent first, once loss_sort_reasons has run */
	size_t n_reasons, cap_reasons;
};

/* Zero-initialise. */
void loss_release(struct loss *loss);
void loss_add_reason(struct loss *loss, const char *phrase, uint64_t n);
void loss_sort_reasons(struct loss *loss);
/* False when the samples stand for much less CPU time than was used, or for much more: by a tenth, and
 * by more than chance explains. */
bool loss_is_covered(const struct loss *loss);
/* True when data was lost, so that the exit status must say so. */
bool loss_is_real(const struct loss *loss);

#endif
