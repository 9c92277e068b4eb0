/* SPDX-License-Identifier: MIT */
/*
 * The part of a listing's row that is the same each time an instruction is executed: made when it
 * is first shown and kept, so that a row of a long listing costs little more than copying.
 */
#ifndef WEIR_CMD_REPORT_STEPS_LINES_H
#define WEIR_CMD_REPORT_STEPS_LINES_H

#include "base/arena.h"
#include "base/map.h"
#include "base/mem.h"
#include "cmd/report/insn_place.h"
#include "cmd/report/source_text.h"

/* An instruction for those who make its text. */
struct listed_insn {
	uint64_t addr;
	const struct insn_place *place;
	const char *text; /* the instruction; or a remark why there is none: */
	bool is_remark;
};

struct step_line {
	const char *text; /* NULL: not made yet */
	uint32_t n;
	uint32_t file, line; /* file: string of the trace; 0 = not known */
	bool matches;	     /* the filter */
};

struct step_lines {
	const struct report *report;
	void (*put)(struct buf *to, const struct listed_insn *listed, struct span source);
	struct step_line *lines; /* by number of instruction */
	struct arena *arena;
	struct buf text, row;
	struct insn_place place;
	struct map files; /* string -> source_text + 1 */
	VEC(struct source_text *) sources;
	struct step_line passing; /* of an address without code: until the next one */
};

void step_lines_init(struct step_lines *l, const struct report *report,
	void (*put)(struct buf *to, const struct listed_insn *listed, struct span source));
void step_lines_release(struct step_lines *l);
/* Of a step; valid until the next call, that of an instruction until the end. */
const struct step_line *step_lines_get(struct step_lines *l, const struct step *step);
/* A line of a source file (its path is a string of the trace); empty when it is not at hand. */
struct span step_lines_source(struct step_lines *l, uint32_t file, uint32_t line);

#endif
