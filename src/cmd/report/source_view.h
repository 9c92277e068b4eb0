/* SPDX-License-Identifier: MIT */
/*
 * A function line by line: what each line cost and which blocks it has. Exact where blocks were
 * counted, by samples' lines otherwise.
 */
#ifndef WEIR_CMD_REPORT_SOURCE_VIEW_H
#define WEIR_CMD_REPORT_SOURCE_VIEW_H

#include "base/mem.h"
#include "calltree/code_calls.h"
#include "calltree/code_counts.h"
#include "cmd/report/report.h"

/* What one block has of one line. */
struct source_part {
	const char *file;		/* "" when not known */
	uint32_t line;			/* 0 when not known */
	const struct code_block *block; /* NULL: by samples */
	uint64_t value;
};

struct source_row {
	const char *file;
	uint32_t line;
	char mark; /* '|' an executed block, '+' several, '#' not executed, ' ' not known */
	uint64_t value;
	uint64_t count; /* executions: of the block of the line that was executed most often */
	size_t first_part, n_parts;
};

struct source_caller {
	const char *name; /* "" for a thread */
	bool has_calls;
	uint64_t calls;
};

struct source_function {
	const char *name, *file, *image;
	uint32_t line;
	const struct code_function *counted; /* NULL: by samples */
	bool has_calls;
	uint64_t calls;
	uint64_t value;			   /* self */
	VEC(struct source_caller) callers; /* most calls first */
	struct source_row *rows;	   /* the function's own file first; by line */
	size_t n_rows;
	VEC(struct source_part) parts;
};

struct source_view {
	struct code_counts *counts;
	struct code_calls *calls;
	uint32_t *owners; /* code_counts_owners */
	bool is_counted;
	uint64_t scale; /* values are in this part of the metric's unit */
	uint64_t total; /* of the program, in that part */
	VEC(struct source_function) functions;
	struct intern names;
};

/* Fails when there is no such function, or nothing is known of its lines. */
int source_view_init(struct source_view *v, const struct report *report, struct err *err);
void source_view_release(struct source_view *v);
/* In the unit of the metric. */
static inline uint64_t source_value(const struct source_view *v, uint64_t value)
{
	return (value + v->scale / 2) / v->scale;
}

/* The model of a trace with counts; fails with a sentence when the trace has none, or when only
 * some threads are asked for: blocks are counted over all. */
int report_code_counts(struct code_counts **out, const struct report *report, struct err *err);

/* The image of this path; NULL when the trace has none. */
const struct trace_image *report_image(const struct report *report, const char *path);

/* The instructions of a function's blocks, when the program is there; NULL and what is missing in
 * *why when it is not. */
struct code_listing;
struct code_listing *code_listing_open(
	const struct report *report, const char *image, const char **why);
void code_listing_close(struct code_listing *l);
/* Calls `each` for the program's own instructions of the block, in order. */
void code_listing_block(struct code_listing *l, const struct code_counts *counts,
	const struct code_block *block,
	void (*each)(void *ctx, uint64_t addr, const struct code_line *line, const char *text),
	void *ctx);

#endif
