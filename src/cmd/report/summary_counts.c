/* SPDX-License-Identifier: MIT */
/* The part of the summary about programs that count themselves (weir count). */
#include <inttypes.h>
#include <string.h>

#include "cmd/report/summary.h"
#include "cmd/report/table.h"

#define TOP_REASONS 3
/* The share of the time that the model puts into the wrong function: bench/cost/functions.py measures it. */
#define CYCLES_ERROR "2 to 42 %"

/* Their instructions are in no figure, and only calls of them by name are timed. */
static void print_missed(const struct report *report)
{
	const struct profile_counts *counts = &report->profile->counts;
	const struct loss *reasons = &counts->missed;
	uint64_t n_functions = counts->n_missed - counts->n_missed_objects;

	if (!counts->n_missed)
		return;
	fputs("  ", report->out);
	if (n_functions)
		fprintf(report->out, "%" PRIu64 " function%s", n_functions,
			n_functions == 1 ? "" : "s");
	if (counts->n_missed_objects)
		fprintf(report->out, "%s%" PRIu64 " object%s with all %s functions",
			n_functions ? " and " : "", counts->n_missed_objects,
			counts->n_missed_objects == 1 ? "" : "s",
			counts->n_missed_objects == 1 ? "its" : "their");
	fprintf(report->out, " %s not counted", counts->n_missed == 1 ? "was" : "were");
	if (counts->has_missed_time)
		fprintf(report->out, ", at least %s in %s", value_human(counts->missed_ns, "ns").s,
			counts->n_missed == 1 ? "it" : "them");
	fputc(':', report->out);
	for (size_t i = 0; i < reasons->n_reasons && i < TOP_REASONS; i++)
		fprintf(report->out, "%s %" PRIu64 " %s", i ? "," : "", reasons->reasons[i].n,
			reasons->reasons[i].phrase);
	if (reasons->n_reasons > TOP_REASONS)
		fprintf(report->out, ", and %zu more reasons", reasons->n_reasons - TOP_REASONS);
	if (counts->missed_object)
		fprintf(report->out, "; the first object: %s", counts->missed_object);
	fputs(" ('weir report coverage' lists them)\n", report->out);
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
		fprintf(out, "  counted%s: %" PRIu64 " instructions",
			counts->n_missed || !counts->n_functions ? "" : " exactly", p->total);
	else
		fprintf(out, "  counted by the program itself (metric: %s)", p->metric);
	if (counts->has_calls)
		fprintf(out, ", %" PRIu64 " nodes of call trees", counts->n_nodes);
	fputc('\n', out);
	print_missed(report);
	if (counts->n_left_alone > counts->n_missed)
		fprintf(out, "  %" PRIu64 " function%s left out on purpose (--only, --skip)\n",
			counts->n_left_alone - counts->n_missed,
			counts->n_left_alone - counts->n_missed == 1 ? " was" : "s were");
	if (counts->n_functions)
		fprintf(out,
			"  %" PRIu64 " of %" PRIu64 " functions were executed, %" PRIu64
			" of %" PRIu64 " blocks\n",
			counts->n_executed, counts->n_functions, counts->n_blocks_executed,
			counts->n_blocks);
	else
		fputs("  the program describes no functions (a linker dropped that): what did "
		      "not run,\n    and what was not counted, is not known\n",
			out);
	if (counts->has_foreign)
		fprintf(out,
			"  timed, not counted: %s in functions of other libraries "
			"('weir report --metric foreign')\n",
			value_human(counts->foreign_ns - counts->missed_ns, "ns").s);
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
	json_u64_if(j, "functions_left_alone", is_counted,
		counts->n_left_alone - counts->n_missed_objects);
	json_u64_if(j, "functions_not_counted", is_counted,
		counts->n_missed - counts->n_missed_objects);
	json_u64_if(j, "objects_not_counted", is_counted, counts->n_missed_objects);
	json_u64_if(j, "not_counted_ns", counts->has_missed_time, counts->missed_ns);
	json_u64_if(j, "blocks", is_counted, counts->n_blocks);
	json_u64_if(j, "blocks_executed", is_counted, counts->n_blocks_executed);
	json_u64_if(j, "foreign_ns", counts->has_foreign, counts->foreign_ns);
	report_json_text(j, "cost_model", trace_reader_meta(report->reader, "cost_model"));
	if (trace_reader_meta(report->reader, "cost_model"))
		report_json_text(j, "cost_model_error", CYCLES_ERROR);
}
