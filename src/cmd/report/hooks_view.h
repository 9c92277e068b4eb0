/* SPDX-License-Identifier: MIT */
/* Hooks as the hooks report and the summary count them. */
#ifndef WEIR_CMD_REPORT_HOOKS_VIEW_H
#define WEIR_CMD_REPORT_HOOKS_VIEW_H

#include "cmd/report/report.h"

struct hooks_totals {
	uint64_t by_method[PROFILE_HOOK_N_METHODS];
	uint64_t n_off; /* unhooked to keep the budget */
	uint64_t hits;
};

void hooks_count(const struct profile *p, struct hooks_totals *totals);

#endif
