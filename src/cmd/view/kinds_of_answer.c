/* SPDX-License-Identifier: MIT */
/* What a page may ask for: the one visible list. */
#include "cmd/view/engine.h"

const struct view_kind view_kinds[] = {
	{"meta", "", view_answer_meta},
	{"report", "sort limit filter", view_answer_report},
	{"names", "", view_answer_names},
	{"tree", "order", view_answer_tree},
	{"callers", "routine", view_answer_callers},
	{"graph", "filter folded open root places names max", view_answer_graph},
	{"diff", "order", view_answer_diff},
	{"diff-functions", "", view_answer_diff_functions},
	{"diff-graph", "filter folded open root places names max", view_answer_diff_graph},
	{"matches", "search", view_answer_matches},
	{"timeline", "columns look-from look-to", view_answer_timeline},
	{0},
};
