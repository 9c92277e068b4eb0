/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CMD_REPORT_SUMMARY_H
#define WEIR_CMD_REPORT_SUMMARY_H

#include "cmd/report/report.h"

/* What a program that counts itself counted and what it did not, and why; nothing for others. */
void summary_counts(const struct report *report);
void summary_json_counts(struct json *j, const struct report *report);

/* Two or three commands that are worth trying next, given what the trace shows. */
void summary_advice(const struct report *report, const struct flat_row *hottest);

#endif
