/* SPDX-License-Identifier: MIT */
/* What hooks have cost, and whether it is in the times that reports show. */
#include <inttypes.h>
#include <string.h>

#include "cmd/report/summary.h"
#include "cmd/report/table.h"

static bool has_hooked_calls(const struct calltree *t)
{
	for (uint32_t i = 1; i < calltree_n_routines(t); i++) {
		const struct calltree_routine *r = calltree_get_routine(t, i);

		if (r->has_events && !r->is_root && r->kind == FRAME_KIND_NATIVE)
			return true;
	}
	return false;
}

/* Calls of hooked functions were recorded, not imported, and take times. A snapshot and a trace whose
 * recorder was killed have no word on hooks. */
static bool is_recorded(const struct report *report)
{
	const struct profile *p = report->profile;
	const char *mode = trace_reader_meta(report->reader, "mode");

	return p->is_time && (p->n_events || p->n_kept_nodes) && mode && strcmp(mode, "import") &&
	       has_hooked_calls(p->tree);
}

static void print_functions(FILE *out, const char *what, uint64_t n)
{
	if (n)
		fprintf(out, "%s%" PRIu64 " function%s", what, n, n == 1 ? "" : "s");
}

static void print_taken(const struct report *report, const char *indent)
{
	const struct profile *p = report->profile;
	FILE *out = report->out;

	fprintf(out, "%swhat the hooks cost is not in the times: %s", indent,
		value_human(p->cost_sums.taken, "ns").s);
	fprintf(out, " of calls (+- %s)", value_human(p->cost_error, "ns").s);
	if (p->n_hook_samples)
		fprintf(out, ", %" PRIu64 " sample%s", p->n_hook_samples,
			p->n_hook_samples == 1 ? "" : "s");
	if (p->cost_sums.left)
		fprintf(out, "; %s more could not be taken out",
			value_human(p->cost_sums.left, "ns").s);
	print_functions(out, "; not known, and in the times of ", p->n_without_cost);
	fputc('\n', out);
}

void hooks_print_cost(const struct report *report, const char *indent)
{
	const struct profile *p = report->profile;

	if (!is_recorded(report))
		return;
	if (p->keeps_cost)
		fprintf(report->out, "%stimes include the cost of the hooks (--uncorrected)\n",
			indent);
	else if (!p->n_costs)
		fprintf(report->out, "%stimes include the cost of the hooks, which is not known\n",
			indent);
	else
		print_taken(report, indent);
}

void hooks_print_costs(const struct report *report)
{
	const struct profile *p = report->profile;

	for (size_t i = 0; i < p->n_costs; i++) {
		const struct profile_cost *c = &p->costs[i];

		fprintf(report->out,
			"a call costs %.2f ns in the function and %.2f ns in its caller, +- %.2f ns, "
			"when hooked by %s (measured %" PRIu64 " time%s)\n",
			(double)c->inner_ps / PROFILE_PS_A_NS,
			(double)c->outer_ps / PROFILE_PS_A_NS,
			(double)profile_cost_error_ps(c) / PROFILE_PS_A_NS, c->name, c->n,
			c->n == 1 ? "" : "s");
	}
	hooks_print_cost(report, "");
}

void hooks_json_cost(struct json *j, const struct report *report)
{
	const struct profile *p = report->profile;
	bool is_taken = is_recorded(report) && p->n_costs && !p->keeps_cost;

	if (is_recorded(report))
		json_bool(j, "hook_cost_in_times", !is_taken);
	else
		json_null(j, "hook_cost_in_times");
	json_u64_if(j, "hook_cost_taken", is_taken, p->cost_sums.taken);
	json_u64_if(j, "hook_cost_error", is_taken, p->cost_error);
	json_u64_if(j, "hook_cost_left", is_taken, p->cost_sums.left);
	json_u64_if(j, "hooks_without_cost", is_taken, p->n_without_cost);
	json_u64_if(j, "hook_samples", p->n_costs > 0 && !p->keeps_cost, p->n_hook_samples);
}
