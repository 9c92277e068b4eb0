/* SPDX-License-Identifier: MIT */
/* Where an executed instruction is, and its text: for the reports that walk steps. */
#ifndef WEIR_CMD_REPORT_INSN_PLACE_H
#define WEIR_CMD_REPORT_INSN_PLACE_H

#include "arch/x86_format.h"
#include "base/buf.h"
#include "calltree/frame_names.h"
#include "cmd/report/report.h"
#include "steps/read/steps.h"

struct insn_place {
	const struct step_insn *insn;	    /* NULL: its code was not captured */
	struct frame_levels names;	    /* n = 0: nothing is known about the place */
	const struct frame_level *function; /* that has the code; NULL = not known */
	uint64_t addr_in_image;		    /* where there is an image */
	const char *file;		    /* of the innermost level; NULL = not known */
	uint32_t line;			    /* 0 = not known, also of a known file */
};

/* Of the instruction of this number. A function whose name was made from its address counts as
 * known unless `only_true`. */
void insn_place_get(
	struct insn_place *place, const struct report *report, uint32_t number, bool only_true);
/* Whether a name at the place matches --filter. */
bool insn_place_matches(const struct insn_place *place, const struct report *report);
/* "libc.so.6(memcpy+0x1c)", "prog+0x1139" when there is no name. */
void insn_place_put(struct buf *to, const struct insn_place *place);
/* image, symbol, offset, inlined, file, line */
void insn_place_json(struct json *j, const struct insn_place *place);

/* The instruction alone; false when it is not known. */
bool insn_text_format(
	const struct report *report, char text[X86_TEXT_BYTES], const struct step_insn *insn);
/* The instruction, and behind it the name of a direct target that was executed; false when it is
 * not known, and a remark why stands there. */
bool insn_text_put(
	struct buf *to, const struct report *report, const struct step_insn *insn, bool only_true);

#endif
