/* SPDX-License-Identifier: MIT */
/*
 * Entries and exits of one thread, as files of other tools have them, into records: they come in any order, and may
 * overlap, which a stack of calls cannot.
 */
#ifndef WEIR_FORMATS_FOREIGN_FOREIGN_CALLS_H
#define WEIR_FORMATS_FOREIGN_FOREIGN_CALLS_H

#include "base/mem.h"
#include "formats/foreign/foreign_trace.h"

/* Of all threads together: what is beyond is counted as lost. */
#define FOREIGN_CALLS_MAX ((size_t)1 << 23)

enum foreign_call_kind {
	FOREIGN_CALL_END, /* before others of the same time; frame 0: the innermost */
	FOREIGN_CALL_BEGIN,
	FOREIGN_CALL_WHOLE /* begins, and lasts for `length` */
};

struct foreign_call {
	uint64_t time_ns, length_ns;
	uint64_t order; /* as the file has it */
	uint32_t thread, frame;
	enum foreign_call_kind kind;
};

struct foreign_calls {
	VEC(struct foreign_call) v;
	uint64_t n_more, n_overlaps, n_unmatched;
};

void foreign_calls_add(struct foreign_calls *c, const struct foreign_call *call);
/* Writes all of them, thread by thread, and tells what did not fit. */
void foreign_calls_write(struct foreign_calls *c, struct foreign_trace *t);
void foreign_calls_release(struct foreign_calls *c);

#endif
