/* SPDX-License-Identifier: MIT */
/* Threads as the threads report and the summary show them. */
#ifndef WEIR_CMD_REPORT_THREADS_VIEW_H
#define WEIR_CMD_REPORT_THREADS_VIEW_H

#include "cmd/report/report.h"

/* What the thread used of the metric. */
uint64_t thread_cum(const struct profile *p, const struct profile_thread *thread);
/* Ids in the order asked for (by what they used), filtered and limited; free(*ids). */
size_t threads_select(const struct report *report, uint32_t **ids);

#endif
