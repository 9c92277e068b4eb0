/* SPDX-License-Identifier: MIT */
/*
 * What only weir itself answers, and not the engine in a page: "export/folded" and "export/pprof", the files
 * of `weir export` for the selection, and source lines (answer_source.h).
 */
#ifndef WEIR_CMD_VIEW_ANSWER_EXPORT_H
#define WEIR_CMD_VIEW_ANSWER_EXPORT_H

#include "cmd/view/answer_source.h"

/* A view_more; ctx is a struct view_sources. */
int view_answer_here(void *ctx, const struct question *q, struct buf *out, struct err *err);

#endif
