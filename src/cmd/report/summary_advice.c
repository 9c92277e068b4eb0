/* SPDX-License-Identifier: MIT */
/* "Next": commands chosen by what the trace shows, ready to be pasted into a shell. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "cmd/report/summary.h"
#include "cmd/report/table.h"

#define ADVICE_MAX 3
/* Above these shares the report says how to find out more. */
#define UNRESOLVED_PERCENT 2
#define INCOMPLETE_PERCENT 1
#define WAITING_PERCENT	   50
#define FEW_SAMPLES	   100
#define COMMAND_BYTES_MAX  100

struct advice {
	const struct report *report;
	struct table table; /* command, why */
	struct buf command; /* being made */
};

/* A name as a regular expression that matches it and nothing else. */
static void put_exact(struct buf *b, const char *name)
{
	buf_put_cstr(b, "^");
	for (; *name; name++) {
		if (strchr("\\^$.|?*+()[]{}", *name))
			buf_put_cstr(b, "\\");
		buf_put(b, name, 1);
	}
	buf_put_cstr(b, "$");
}

/* `operand` may be NULL. */
static void put_report(struct advice *a, const char *kind, const char *operand)
{
	const char *trace = trace_reader_name(a->report->reader);

	buf_printf(&a->command, "  weir report %s", kind);
	if (operand) {
		buf_put_cstr(&a->command, " ");
		buf_put_shell_word(&a->command, operand);
	}
	if (strcmp(trace, "trace.weir")) {
		buf_put_cstr(&a->command, " ");
		buf_put_shell_word(&a->command, trace);
	}
}

static void advise(struct advice *a, const char *why)
{
	if (a->table.n_rows < ADVICE_MAX) {
		table_row(&a->table, TABLE_STYLE_PLAIN);
		table_cell(&a->table, buf_text(&a->command));
		table_cell(&a->table, why);
	}
	buf_reset(&a->command);
}

static void advise_callers(struct advice *a, const struct calltree_routine *hottest)
{
	struct buf exact = {0};

	put_exact(&exact, hottest->name);
	put_report(a, "arcs", NULL);
	buf_put_cstr(&a->command, " --filter ");
	buf_put_shell_word(&a->command, buf_text(&exact));
	advise(a, "who calls the hottest function");
	buf_release(&exact);
}

static void advise_report(struct advice *a, const char *kind, const char *options, const char *why)
{
	put_report(a, kind, NULL);
	buf_put_cstr(&a->command, options);
	advise(a, why);
}

/* Another recording of the same command. */
static void advise_record(struct advice *a, const char *options, const char *why)
{
	const char *command = trace_reader_meta(a->report->reader, "command");
	const char *mode = trace_reader_meta(a->report->reader, "mode");

	if (!command || !mode || strcmp(mode, "launch"))
		return;
	if (strlen(command) >= COMMAND_BYTES_MAX || strpbrk(command, "\n\r"))
		command = "...";
	buf_printf(&a->command, "  weir record %s -- %s", options, command);
	advise(a, why);
}

static bool mostly_waits(const struct report *report)
{
	const char *wall = trace_reader_meta(report->reader, "wall_ns");
	const char *cpu = trace_reader_meta(report->reader, "cpu_ns");

	return wall && cpu && strtod(cpu, NULL) * 100 < strtod(wall, NULL) * WAITING_PERCENT;
}

static bool has_waits(const struct report *report)
{
	const struct trace_reader *r = report->reader;

	for (uint32_t id = 1; id < trace_reader_n_metrics(r); id++)
		if (!strcmp(trace_reader_string(r, trace_reader_metric(r, id)->name), "wait"))
			return true;
	return false;
}

void summary_advice(const struct report *report, const struct calltree_routine *hottest)
{
	const struct profile *p = report->profile;
	const struct loss *loss = &p->loss;
	struct advice a = {.report = report, .table.left_columns = 1};
	bool has_events = calltree_has_events(p->tree), is_sampled = p->n_samples && !has_events;
	struct hooks_totals hooks;

	if (mostly_waits(report))
		fprintf(report->out,
			"\nThe CPU was used for less than %d %% of the time; the rest was waiting "
			"(for data, a lock, a timer or a free CPU).\n",
			WAITING_PERCENT);
	hooks_count(p, &hooks);
	if (!hottest && !has_events)
		fputs("\nThere are no samples: the command ran for too short a time, or it only "
		      "waited.\n",
			report->out);
	if ((loss->stacks - loss->stacks_complete) * 100 > loss->stacks * INCOMPLETE_PERCENT ||
		loss->frames_unresolved * 100 > loss->frames * UNRESOLVED_PERCENT ||
		loss_is_real(loss))
		advise_report(&a, "loss", "", "all that is missing, and why");
	if (hooks.by_method[PROFILE_HOOK_REFUSED])
		advise_report(
			&a, "hooks", " --sort method", "which functions were not hooked, and why");
	if (p->n_samples < FEW_SAMPLES && (is_sampled || !hottest) && !has_events)
		advise_record(&a, "-F 9999", "few samples: measure more often");
	if (mostly_waits(report) && !has_waits(report))
		advise_record(&a, "-e wall", "then 'weir report --metric wall': where it waits");
	if (hottest && p->counts.n_nodes && *hottest->image) { /* foreign ones have no lines here */
		put_report(&a, "source", hottest->name);
		advise(&a, "the hottest function line by line");
	}
	if (hottest && !p->counts.is_flat) {
		advise_callers(&a, hottest);
		advise_report(
			&a, "tree", " --sort cum --limit 40", "where the time goes, from the top");
	}
	if (hottest)
		advise_report(&a, "flat", " --sort base --limit 25", "more functions");
	if (a.table.n_rows)
		summary_heading(report, "Next");
	table_print(&a.table, false, report->out);
	table_release(&a.table);
	buf_release(&a.command);
}
