/* SPDX-License-Identifier: MIT */
/* What the reports on branches and on the instruction mix share: the pass over the steps that are
 * wanted, and where an instruction is. */
#ifndef WEIR_CMD_REPORT_BRANCHES_VIEW_H
#define WEIR_CMD_REPORT_BRANCHES_VIEW_H

#include "arch/x86_format.h"
#include "base/buf.h"
#include "calltree/frame_names.h"
#include "cmd/report/report.h"
#include "steps/tables/branch_table.h"

/* Walks the steps of the threads and times that are asked for. What is missing is added to the
 * report's loss. On failure there is nothing to release. */
int branches_read(struct branch_table *t, const struct report *report, struct err *err);

/* A line of text for each thing that is missing. */
void branches_print_loss(const struct report *report);

struct insn_place {
	const struct step_insn *insn;
	struct frame_levels names;
	const struct frame_level *function; /* that has the code; NULL = not known */
	const char *file;		    /* of the innermost level; NULL = not known */
	uint32_t line;			    /* 0 = not known */
};
void insn_place_get(struct insn_place *place, const struct report *report, uint32_t number);
/* Whether a name at the place matches --filter. */
bool insn_place_matches(const struct insn_place *place, const struct report *report);
/* "libc.so.6(memcpy+0x1c)" */
void insn_place_put(struct buf *to, const struct insn_place *place);
/* The instruction, and behind it the name of a direct target that was executed. */
void insn_text_put(struct buf *to, const struct report *report, const struct step_insn *insn);
/* address, image, symbol, offset, inlined, file, line, text */
void insn_place_json(struct json *j, const struct report *report, const struct insn_place *place);

#endif
