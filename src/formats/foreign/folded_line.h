/* SPDX-License-Identifier: MIT */
/* One line of folded stacks, taken apart. */
#ifndef WEIR_FORMATS_FOREIGN_FOLDED_LINE_H
#define WEIR_FORMATS_FOREIGN_FOLDED_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"
#include "trace/defs.h"

#define FOLDED_FRACTION_DIGITS 9 /* more of a number are not looked at */

struct folded_number {
	uint64_t whole;
	uint64_t billionths; /* of the fraction */
};

/* The number behind the last blank; what is before it is left in *line. False: there is none. */
bool folded_take_number(struct span *line, struct folded_number *number);
/* The name up to the next semicolon, which is taken away with it. */
struct span folded_take_name(struct span *line);
/* What the ending of a name says, which is taken away: "_[j]" (jitted), "_[k]" or "[k]" (kernel), "_[i]" (inlined
 * into the name before), "_[0]" (interpreted), "_[1]" (compiled by the first compiler). */
enum frame_kind folded_take_kind(struct span *name);

/* Who a first name is, when it is a thread for certain: "PID_TID" as weir has it, "NAME-PID", "NAME-PID/TID",
 * "[NAME tid=N]". */
struct folded_thread {
	struct span name;
	uint32_t pid, tid; /* 0: not known */
};
bool folded_is_thread(struct span name, struct folded_thread *thread);
/* Whether it may be the name of one: short, and not one of a function. */
bool folded_may_be_thread(struct span name);

#endif
