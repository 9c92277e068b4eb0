/* SPDX-License-Identifier: MIT */
/* What happens between two steps, in words and as fields of JSON. */
#ifndef WEIR_STEPS_READ_STEP_MARK_WORDS_H
#define WEIR_STEPS_READ_STEP_MARK_WORDS_H

#include "base/buf.h"
#include "base/json.h"
#include "trace/reader.h"
#include "trace/step_records.h"

/* "write = 12", "SIGSEGV (SEGV_MAPERR), address 0x0": appended to `to`. */
void step_mark_put_words(struct buf *to, const struct step_mark *m, const struct trace_reader *r);
/* Fields of the open object: mark (the kind's name), text (the words), and those of its kind. */
void step_mark_json(struct json *j, const struct step_mark *m, const struct trace_reader *r);

#endif
