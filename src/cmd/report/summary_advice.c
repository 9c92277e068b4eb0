/* SPDX-License-Identifier: MIT */
/* "Next": commands chosen by what the trace shows, ready to be pasted into a shell. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "cmd/report/summary.h"
#include "cmd/report/table.h"
#include "record/perf_set.h"

#define ADVICE_MAX 4 /* the last one opens the page */
/* Above these shares the report says how to find out more. */
#define UNRESOLVED_PERCENT 2
#define INCOMPLETE_PERCENT 1
#define WAITING_PERCENT	   50
#define FEW_SAMPLES	   100
#define COMMAND_BYTES_MAX  100
#define LINE_COLUMNS_MAX   160 /* where there is no terminal */

struct advice {
	const struct report *report;
	struct {
		char *command; /* owned */
		const char *why;
	} v[ADVICE_MAX];
	size_t n;
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

static void advise_up_to(struct advice *a, size_t max, const char *why)
{
	/* What came by a pipe cannot be asked again. */
	bool is_gone = !strcmp(trace_reader_name(a->report->reader), "-") &&
		       !strncmp(buf_text(&a->command), "  weir report", 13);

	if (!is_gone && a->n < max) {
		a->v[a->n].command = mem_strdup(buf_text(&a->command));
		a->v[a->n++].why = why;
	}
	buf_reset(&a->command);
}

static void advise(struct advice *a, const char *why)
{
	advise_up_to(a, ADVICE_MAX - 1, why);
}

static void advise_view(struct advice *a)
{
	const char *trace = trace_reader_name(a->report->reader);

	if (!strcmp(trace, "-"))
		return;
	buf_put_cstr(&a->command, "  weir view");
	if (strcmp(trace, "trace.weir")) {
		buf_put_cstr(&a->command, " ");
		buf_put_shell_word(&a->command, trace);
	}
	advise_up_to(a, ADVICE_MAX, "all of it in a browser");
}

/* Commands are there to be copied, so none is cut: where one is too long to have the reason
 * beside it, reasons are below. */
static void print_advice(const struct advice *a)
{
	size_t width = a->report->options->terminal.width ?: LINE_COLUMNS_MAX;
	size_t n_command = 0, n_why = 0;
	struct table t = {.left_columns = 1};

	for (size_t i = 0; i < a->n; i++) {
		size_t command = text_width(a->v[i].command), why = text_width(a->v[i].why);

		n_command = command > n_command ? command : n_command;
		n_why = why > n_why ? why : n_why;
	}
	for (size_t i = 0; i < a->n; i++) {
		if (n_command + 2 + n_why > width) {
			fprintf(a->report->out, "%s\n      %s\n", a->v[i].command, a->v[i].why);
			continue;
		}
		table_row(&t, TABLE_STYLE_PLAIN);
		table_cell(&t, a->v[i].command);
		table_cell(&t, a->v[i].why);
	}
	table_print(&t, false, a->report->out);
	table_release(&t);
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

/* Whether this user may record waiting on this machine: the kernel is asked, as in a recording. */
static bool may_record_waits(void)
{
	struct perf_options o = {.hz = 99, .pc_only = true};
	struct perf_set set;
	struct err err;

	if (event_specs_parse("wall", o.events, &o.n_events, &err) < 0 ||
		perf_set_init(&set, &o, &err) < 0)
		return false;
	perf_set_release(&set);
	return true;
}

static bool has_waits(const struct report *report)
{
	const struct trace_reader *r = report->reader;

	for (uint32_t id = 1; id < trace_reader_n_metrics(r); id++)
		if (!strcmp(trace_reader_string(r, trace_reader_metric(r, id)->name), "wait"))
			return true;
	return false;
}

/* What the trace does not have, and how to get it. */
static void advise_more(struct advice *a, const struct calltree_routine *hottest)
{
	const struct profile *p = a->report->profile;
	bool has_events = calltree_has_events(p->tree);

	if (p->n_samples < FEW_SAMPLES && (p->n_samples || !hottest) && !has_events &&
		!query_has_waits(p)) /* each wait is seen */
		advise_record(a, "-F 9999", "few samples: measure more often");
	if (!mostly_waits(a->report))
		return;
	if (!has_waits(a->report) && may_record_waits())
		advise_record(a, "-e wall", "then 'weir report --metric wall': where it waits");
	else if (has_waits(a->report) && !query_has_waits(p))
		advise_report(a, "summary", " --metric wall", "where it waits");
}

/* More of what it has. */
static void advise_hottest(struct advice *a, const struct calltree_routine *hottest)
{
	const struct profile *p = a->report->profile;

	if (p->counts.n_nodes && *hottest->image) { /* foreign ones have no lines here */
		put_report(a, "source", hottest->name);
		advise(a, "the hottest function line by line");
	}
	if (!p->counts.is_flat) {
		advise_callers(a, hottest);
		advise_report(
			a, "tree", " --sort cum --limit 40", "where the time goes, from the top");
	}
	advise_report(a, "flat", " --sort base --limit 25", "more functions");
}

void summary_advice(const struct report *report, const struct calltree_routine *hottest)
{
	const struct profile *p = report->profile;
	const struct loss *loss = &p->loss;
	struct advice a = {.report = report};
	struct hooks_totals hooks;

	if (mostly_waits(report))
		fprintf(report->out,
			"\nThe CPU was used for less than %d %% of the time; the rest was waiting "
			"(for data, a lock, a timer or a free CPU).\n",
			WAITING_PERCENT);
	hooks_count(p, &hooks);
	if (!hottest && !calltree_has_events(p->tree))
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
	advise_more(&a, hottest);
	if (hottest)
		advise_hottest(&a, hottest);
	if (hottest || calltree_has_events(p->tree))
		advise_view(&a);
	if (a.n)
		summary_heading(report, "Next");
	print_advice(&a);
	for (size_t i = 0; i < a.n; i++)
		free(a.v[i].command);
	buf_release(&a.command);
}
