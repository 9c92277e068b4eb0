/* SPDX-License-Identifier: MIT */
/*
 * Questions that need files of the machine, where there are some: "source?function=NAME", the JSON of
 * `weir report source NAME --json` with the text of lines. It reads what debug information of the trace's own
 * images names, and nothing else.
 */
#ifndef WEIR_CMD_VIEW_ANSWER_SOURCE_H
#define WEIR_CMD_VIEW_ANSWER_SOURCE_H

#include "cmd/view/engine.h"

struct view_sources {
	struct view_engine *engine;
	const char *exe; /* as of reports */
};

/* A view_more; ctx is a struct view_sources. */
int view_answer_source(void *ctx, const struct question *q, struct buf *out, struct err *err);

#endif
