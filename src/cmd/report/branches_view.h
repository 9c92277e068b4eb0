/* SPDX-License-Identifier: MIT */
/* What the reports on branches and on the instruction mix share: the pass over the steps that are
 * wanted. */
#ifndef WEIR_CMD_REPORT_BRANCHES_VIEW_H
#define WEIR_CMD_REPORT_BRANCHES_VIEW_H

#include "cmd/report/report.h"
#include "steps/tables/branch_table.h"

/* Walks the steps of the threads and times that are asked for. What is missing is added to the
 * report's loss. On failure there is nothing to release. */
int branches_read(struct branch_table *t, const struct report *report, struct err *err);

/* A line of text for each thing that is missing. */
void branches_print_loss(const struct report *report);

#endif
