/* SPDX-License-Identifier: MIT */
/* The parts of the summary, and what other reports count for it. */
#ifndef WEIR_CMD_REPORT_SUMMARY_H
#define WEIR_CMD_REPORT_SUMMARY_H

#include "calltree/flat.h"
#include "cmd/report/report.h"

/* A line of its own below an empty one. */
void summary_heading(const struct report *report, const char *text);

/* The heaviest places of the program with their callers. */
void summary_paths(const struct report *report);
void summary_json_paths(struct json *j, const struct report *report);

/* What a program that counts itself counted and what it did not, and why; nothing for others. */
void summary_counts(const struct report *report);
void summary_json_counts(struct json *j, const struct report *report);

/* How much of it was Java, and of what kind; nothing for others. JSON: null. */
void summary_java(const struct report *report, const struct flat *flat);
void summary_json_java(struct json *j, const struct report *report, const struct flat *flat);

/* Two or three commands that are worth trying next, given what the trace shows. */
void summary_advice(const struct report *report, const struct calltree_routine *hottest);

/* weak_names.c: how much is in functions whose names may be those of another version. */
struct weak_names {
	uint64_t base;	/* of the profile's total */
	uint32_t image; /* the one with the heaviest function of them */
};
#define WEAK_NAMES_PERCENT 3 /* less is not told */
void weak_names_count(
	struct weak_names *names, const struct report *report, const struct flat *flat);
bool weak_names_are_told(const struct weak_names *names, const struct report *report);
/* "segments" or "path": the rung of that image. */
const char *weak_names_rung(const struct weak_names *names, const struct report *report);

struct hooks_totals {
	uint64_t by_method[PROFILE_HOOK_N_METHODS];
	uint64_t n_off; /* unhooked to keep the budget */
};
/* As in the report on hooks (hooks_report.c). */
void hooks_count(const struct profile *p, struct hooks_totals *totals);

/* hooks_cost.c: a line that says whether the cost of hooks is in the times; nothing when there are no
 * such times. */
void hooks_print_cost(const struct report *report, const char *indent);
/* The same behind a line for each way to hook. */
void hooks_print_costs(const struct report *report);
void hooks_json_cost(struct json *j, const struct report *report);

#endif
