/* SPDX-License-Identifier: MIT */
/*
 * The end snapshot: what the processes have mapped, by /proc, when recording stops, taken at
 * that moment and compared later, when the last records have been processed.
 */
#ifndef WEIR_PROCESS_MODULE_CHECK_H
#define WEIR_PROCESS_MODULE_CHECK_H

#include "process/module_history.h"

/* Zero-initialise it. */
struct module_check {
	VEC(struct checked_process) processes;
};
void module_check_release(struct module_check *c);

/* Reads /proc for the process. One whose mappings may not be read is not compared. */
void module_check_take(struct module_check *c, struct process *p);
/*
 * Mappings that are not there have ended (MODULE_END_SNAPSHOT), those that are there and were not
 * known are added, for all processes that were taken and have not ended since.
 */
void module_check_apply(struct module_check *c, struct module_history *h, uint64_t time);

#endif
