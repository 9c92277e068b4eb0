/* SPDX-License-Identifier: MIT */
/* What reports share: what was measured and what not, and the nulls of JSON. */
#include "cmd/report/report.h"

void report_json_text(struct json *j, const char *key, const char *text)
{
	json_string(j, key, text && *text ? text : NULL);
}

const char *report_routine_kind(const struct calltree_routine *routine)
{
	static const char *const names[] = {
		[FRAME_KIND_NATIVE] = "native",
		[FRAME_KIND_KERNEL] = "kernel",
		[FRAME_KIND_INTERPRETED] = "interpreted",
		[FRAME_KIND_JITTED] = "jitted",
		[FRAME_KIND_INLINE] = "inline",
		[FRAME_KIND_MARKER] = "marker",
	};

	return routine->is_root ? "thread" : names[routine->kind];
}

const char *report_mark(const struct report *report, uint32_t id)
{
	const struct calltree *tree = report->profile->tree;
	const struct calltree_routine *routine = calltree_get_routine(tree, id);

	return routine->has_events || routine->is_root || !calltree_has_events(tree) ? "" : "+";
}

bool report_is_measured(const struct report *report, bool is_exact)
{
	const struct calltree *tree = report->profile->tree;

	return is_exact || !calltree_has_events(tree) || calltree_has_estimates(tree);
}

bool report_has_calls(const struct report *report)
{
	const struct profile_counts *counts = &report->profile->counts;

	return !counts->n_nodes || counts->has_calls;
}

bool report_has_cum(const struct report *report, uint32_t routine)
{
	return !report->profile->counts.is_flat ||
	       calltree_get_routine(report->profile->tree, routine)->is_root;
}

int report_no_tree(const struct report *report, struct err *err)
{
	const struct profile *p = report->profile;

	if (p->counts.has_calls)
		return err_set(err, ERR_NOT_FOUND,
			"'%s': has %s by function, not by call (the program was linked without "
			"--metrics %s); --metric instructions has both",
			trace_reader_name(report->reader), p->metric, p->metric);
	return err_set(err, ERR_NOT_FOUND, "'%s': has no call tree (%s)",
		trace_reader_name(report->reader),
		p->n_samples ? "who called whom is not known"
			     : "the program was linked with --counts");
}
