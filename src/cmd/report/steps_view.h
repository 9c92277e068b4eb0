/* SPDX-License-Identifier: MIT */
/*
 * What a listing of steps shows, in its order: the threads that are wanted, one after the other or
 * interleaved by time, each from where and up to where it is wanted. Nothing is held but one item
 * of each thread that is open.
 */
#ifndef WEIR_CMD_REPORT_STEPS_VIEW_H
#define WEIR_CMD_REPORT_STEPS_VIEW_H

#include "cmd/report/report.h"
#include "steps/read/steps.h"
#include "steps/tables/branch_table.h"

/* What the steps of one thread read and wrote: records come behind the run that they belong to, so
 * a cursor of its own goes ahead. */
struct step_data_feed {
	struct step_cursor *cursor; /* NULL: the trace has no data */
	struct step_data_walk walk;
	struct step_datum datum;
	bool has_walk, has_datum, is_ended;
	uint64_t seen;	/* steps of the thread below this have passed by */
	uint32_t space; /* of these */
	uint64_t time;	/* of the record that `walk` is in */
};

struct steps_source {
	const struct step_thread *thread;
	uint32_t thread_i;
	struct step_cursor *cursor; /* NULL: not opened yet, or done */
	struct step_data_feed data;
	struct step_item item;
};

struct steps_view {
	const struct report *report;
	uint64_t start;	   /* time of the trace's first record */
	uint64_t from, to; /* in the trace's clock */
	bool has_data;
	struct steps_source *sources; /* the threads that are wanted */
	size_t n_sources, source_i;
	uint32_t *source_of;	  /* by number of thread */
	struct step_merge *merge; /* of all of them; NULL: one after the other */
};

/* What was found damaged when the trace was opened, into the report's losses. */
void steps_view_note_opening(const struct report *report);
/* What an item says is missing, likewise. */
void steps_view_note_item(struct loss *loss, const struct step_item *item);
/* Fails when no thread is wanted, or none has the step to begin with. */
int steps_view_open(struct steps_view *v, const struct report *report, struct err *err);
void steps_view_close(struct steps_view *v);
/* 1: *item, of the thread of *source, valid until the next call; 0: the end; else it failed. */
int steps_view_next(struct steps_view *v, struct steps_source **source, struct step_item *item,
	struct err *err);

/* The next datum of step number `step`, whose item is being looked at; steps are asked for in their
 * order. */
bool steps_view_datum(struct steps_source *source, uint64_t step, struct step_datum *datum);
/* Where in memory the datum that was given last is; false when that is not known. */
bool steps_view_where(const struct steps_view *v, const struct steps_source *source,
	const struct step_datum *datum, struct step_where *where);

/* For the reports on branches and on the instruction mix: walks the steps of the threads and times
 * that are asked for. What is missing is added to the report's loss. On failure there is nothing to
 * release. */
int branches_read(struct branch_table *t, const struct report *report, struct err *err);
/* A line of text for each thing that is missing. */
void branches_print_loss(const struct report *report);

#endif
