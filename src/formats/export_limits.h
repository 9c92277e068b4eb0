/* SPDX-License-Identifier: MIT */
/* What a format has no place for, as far as a trace has it: said once, when it is written. */
#ifndef WEIR_FORMATS_EXPORT_LIMITS_H
#define WEIR_FORMATS_EXPORT_LIMITS_H

#include "base/buf.h"
#include "calltree/build.h"

enum export_lack {
	EXPORT_LACKS_CALLS = 1u << 0,	/* how many there were, and when */
	EXPORT_LACKS_WHEN = 1u << 1,	/* the times of single calls, but not their number */
	EXPORT_LACKS_WAITS = 1u << 2,	/* when threads were off the CPU */
	EXPORT_LACKS_LOSSES = 1u << 3,	/* what was lost */
	EXPORT_LACKS_WEIGHTS = 1u << 4, /* of samples: each counts one */
	EXPORT_LACKS_METRICS = 1u << 5, /* more than one of them */
	EXPORT_LACKS_UNITS = 1u << 6,	/* other ones than time, bytes and samples */
	EXPORT_LACKS_TREES = 1u << 7	/* calls that the program kept as a tree, beside samples */
};

/* Appends words for those of `lacks` (enum export_lack) that the profile has; nothing when it has none. */
void export_limits_say(struct buf *to, const struct profile *profile, unsigned int lacks);

#endif
