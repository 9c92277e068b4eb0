/* SPDX-License-Identifier: MIT */
/* The part of the summary about programs that count themselves (weir count). */
#include <inttypes.h>
#include <string.h>

#include "cmd/report/summary.h"
#include "cmd/report/table.h"

#define TOP_REASONS 3
/* The share of the time that the model puts into the wrong function: bench/cost/functions.py measures it. */
#define CYCLES_ERROR "2 to 42 %"

static void print_left_alone(const struct report *report)
{
	const struct profile_counts *counts = &report->profile->counts;
	const struct loss *reasons = &counts->left_alone;

	if (!counts->n_left_alone)
		return;
	fprintf(report->out, "  %" PRIu64 " function%s not counted:", counts->n_left_alone,
		counts->n_left_alone == 1 ? " was" : "s were");
	for (size_t i = 0; i < reasons->n_reasons && i < TOP_REASONS; i++)
		fprintf(report->out, "%s %" PRIu64 " %s", i ? "," : "", reasons->reasons[i].n,
			reasons->reasons[i].phrase);
	if (reasons->n_reasons > TOP_REASONS)
		fprintf(report->out, ", and %zu more reasons", reasons->n_reasons - TOP_REASONS);
	fputc('\n', report->out);
}

void summary_counts(const struct report *report)
{
	const struct profile *p = report->profile;
	const struct profile_counts *counts = &p->counts;
	const char *model = trace_reader_meta(report->reader, "cost_model");
	FILE *out = report->out;

	if (!counts->n_nodes)
		return;
	if (!strcmp(p->metric, "instructions"))
		fprintf(out, "  counted exactly: %" PRIu64 " instructions", p->total);
	else
		fprintf(out, "  counted by the program itself (metric: %s)", p->metric);
	if (counts->has_calls)
		fprintf(out, ", %" PRIu64 " nodes of call trees", counts->n_nodes);
	fprintf(out,
		"\n  %" PRIu64 " of %" PRIu64 " functions were executed, %" PRIu64 " of %" PRIu64
		" blocks\n",
		counts->n_executed, counts->n_functions, counts->n_blocks_executed,
		counts->n_blocks);
	print_left_alone(report);
	if (counts->has_foreign)
		fprintf(out,
			"  timed, not counted: %s in functions of other libraries "
			"('weir report --metric foreign')\n",
			value_human(counts->foreign_ns, "ns").s);
	if (model && !strcmp(p->metric, "cycles"))
		fprintf(out,
			"  cycles are those of a model of %s ('--cpu' takes another), without cache misses "
			"and\n    mispredicted branches: of the time of measured programs, %s was in other "
			"functions\n    than they say; 'weir record' measures it\n",
			model, CYCLES_ERROR);
}

void summary_json_counts(struct json *j, const struct report *report)
{
	const struct profile_counts *counts = &report->profile->counts;
	bool is_counted = counts->n_nodes;

	json_u64_if(j, "functions", is_counted, counts->n_functions);
	json_u64_if(j, "functions_executed", is_counted, counts->n_executed);
	json_u64_if(j, "functions_left_alone", is_counted, counts->n_left_alone);
	json_u64_if(j, "blocks", is_counted, counts->n_blocks);
	json_u64_if(j, "blocks_executed", is_counted, counts->n_blocks_executed);
	json_u64_if(j, "foreign_ns", counts->has_foreign, counts->foreign_ns);
	report_json_text(j, "cost_model", trace_reader_meta(report->reader, "cost_model"));
	if (trace_reader_meta(report->reader, "cost_model"))
		report_json_text(j, "cost_model_error", CYCLES_ERROR);
}
