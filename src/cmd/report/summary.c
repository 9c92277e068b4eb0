/* SPDX-License-Identifier: MIT */
/*
 * The report for someone who has one minute: what ran, how it was measured, where the time went,
 * what is missing and why, what to ask next. Every fact may be absent from the trace (the recorder
 * may have been killed); what is absent is not mentioned.
 */
#include "cmd/report/summary.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "calltree/frame_names.h"
#include "cmd/report/brief_name.h"
#include "cmd/report/rows.h"

#define TOP_FUNCTIONS	  10
#define TOP_THREADS	  8
#define TOP_REASONS	  5
#define TOP_UNHOOKED	  5
#define COMMAND_BYTES_MAX 200
#define NAME_BYTES_MAX	  60 /* on a terminal */
/* So much more than the accounts of the command was used by processes that nobody waited for. */
#define UNACCOUNTED_NS	  20000000u
#define UNACCOUNTED_PARTS 2

static const char *meta(const struct report *report, const char *key)
{
	return trace_reader_meta(report->reader, key);
}

/* False when the key is absent or is not a number. */
static bool meta_number(const struct report *report, const char *key, uint64_t *value)
{
	const char *text = meta(report, key);
	char *end;
	unsigned long long n;

	if (!text || *text < '0' || *text > '9')
		return false;
	n = strtoull(text, &end, 10);
	if (*end)
		return false;
	*value = n;
	return true;
}

void summary_heading(const struct report *report, const char *text)
{
	bool color = report->options->color;
	struct buf line = {0};

	buf_put_cstr(&line, text);
	terminal_cut(&report->options->terminal, &line, 0);
	fprintf(report->out, "\n%s%s%s\n", color ? "\033[1m" : "", buf_text(&line),
		color ? "\033[0m" : "");
	buf_release(&line);
}

/* ---- what ran ---- */

/*
 * CPU time is known by two clocks: the kernel's accounts of the command and those of its children that
 * were waited for, which say user and system, and the count of the event, which has all that was recorded
 * and nothing of the time before the exec. They differ by what interrupts and a hypervisor take; figures
 * that stand together are of one of them. The event's is taken when it has much that the accounts have not.
 */
struct cpu_times {
	uint64_t total, user, sys;
	bool is_known, has_parts, is_sampled;
};

static struct cpu_times find_cpu_times(const struct report *report)
{
	struct cpu_times t = {0};
	uint64_t counted;
	bool has_count = meta_number(report, "cpu_ns", &counted), is_sampled = false;

	/* Processes that nobody waited for have no account, but samples. */
	if (!has_count)
		has_count = is_sampled = meta_number(report, "sampled_ns", &counted);
	t.has_parts =
		meta_number(report, "user_ns", &t.user) && meta_number(report, "sys_ns", &t.sys);
	t.total = t.user + t.sys;
	if (t.has_parts && has_count && counted > UNACCOUNTED_NS &&
		counted - UNACCOUNTED_NS > t.total + t.total / UNACCOUNTED_PARTS)
		t.has_parts = false;
	if (!t.has_parts && has_count) {
		t.total = counted;
		t.is_sampled = is_sampled;
	}
	t.is_known = has_count || t.has_parts;
	return t;
}

static void print_times(const struct report *report)
{
	uint64_t wall = 0, rss;
	bool has_wall = meta_number(report, "wall_ns", &wall);
	struct cpu_times cpu = find_cpu_times(report);
	FILE *out = report->out;

	if (has_wall)
		fprintf(out, "  took %s", value_human(wall, "ns").s);
	if (cpu.is_known)
		fprintf(out, "%s%s of CPU%s", has_wall ? ", " : "  used ",
			value_human(cpu.total, "ns").s, cpu.is_sampled ? " by the samples" : "");
	if (cpu.has_parts)
		fprintf(out, " (user %s, system %s)", value_human(cpu.user, "ns").s,
			value_human(cpu.sys, "ns").s);
	if ((has_wall || cpu.is_known) && meta_number(report, "max_rss_bytes", &rss))
		fprintf(out, ", peak memory %s", value_human(rss, "bytes").s);
	if (has_wall || cpu.is_known)
		fputc('\n', out);
}

static void print_outcome(const struct report *report)
{
	const char *status = meta(report, "exit_status"), *sig = meta(report, "exit_signal");
	uint64_t processes, threads;
	FILE *out = report->out;

	if (sig && *sig && strcmp(sig, "0"))
		fprintf(out, "  ended by signal %s\n", sig);
	else if (status && strcmp(status, "0"))
		fprintf(out, "  ended with exit status %s\n", status);
	if (meta_number(report, "n_processes", &processes) &&
		meta_number(report, "n_threads", &threads) && (processes > 1 || threads > 1))
		fprintf(out, "  %" PRIu64 " process%s, %" PRIu64 " thread%s\n", processes,
			processes == 1 ? "" : "es", threads, threads == 1 ? "" : "s");
}

/* On one line, however the command was written. */
static void print_command(const struct report *report, const char *before, const char *text)
{
	struct buf line = {0};
	size_t n = 0;

	buf_put_cstr(&line, before);
	for (; *text && n < COMMAND_BYTES_MAX; text++, n++)
		buf_put_u8(&line, (unsigned char)*text < ' ' ? ' ' : (uint8_t)*text);
	if (*text)
		buf_put_cstr(&line, "...");
	terminal_cut(&report->options->terminal, &line, 0);
	fputs(buf_text(&line), report->out);
	buf_release(&line);
}

static void print_run(const struct report *report)
{
	const char *command = meta(report, "command"), *mode = meta(report, "mode");
	bool color = report->options->color;
	const char *pids = meta(report, "pids");
	const char *what = command ? command : trace_reader_name(report->reader);

	if (mode && !strcmp(mode, "system"))
		what = "the whole system";
	else if (pids)
		what = pids;
	fputs(color ? "\033[1m" : "", report->out);
	print_command(report, pids ? "attached to process " : "", what);
	fputs(color ? "\033[0m\n" : "\n", report->out);
	print_times(report);
	print_outcome(report);
}

/* ---- how it was measured ---- */

/* What could not be measured here, and how to get it: a sentence a line. */
static void print_notes(const struct report *report)
{
	const char *line = meta(report, "notes");

	while (line && *line) {
		size_t n = strcspn(line, "\n");

		fprintf(report->out, "  note: %.*s\n", (int)n, line);
		line += n + (line[n] == '\n');
	}
}

static void print_unhooked(const struct report *report, uint64_t n)
{
	const struct profile *p = report->profile;
	struct frame_levels *levels = mem_alloc(sizeof(*levels));
	size_t n_shown = 0;

	fputs("  unhooked while it ran, to keep the budget:", report->out);
	for (size_t i = 0; i < p->n_hooks && n_shown < TOP_UNHOOKED; i++) {
		const struct profile_hook *hook = &p->hooks[i];

		if (!hook->is_off)
			continue;
		frame_names_get(report->reader, hook->frame, levels);
		fprintf(report->out, "%s %s (after %s)", n_shown++ ? "," : "",
			levels->v[levels->n - 1].name, value_human(hook->off_time, "ns").s);
	}
	if (n > n_shown)
		fprintf(report->out, " and %" PRIu64 " more", n - n_shown);
	fputc('\n', report->out);
	free(levels);
}

/* How many functions were to be hooked and what became of them. */
static void print_hooks(const struct report *report)
{
	const struct profile *p = report->profile;
	struct hooks_totals totals;
	uint64_t refused;

	if (!p->n_hooks)
		return;
	hooks_count(p, &totals);
	refused = totals.by_method[PROFILE_HOOK_REFUSED];
	fprintf(report->out, "  %" PRIu64 " of %zu functions that were asked for were hooked",
		p->n_hooks - refused, p->n_hooks);
	if (refused)
		fputs(" ('weir report hooks' says why not all)", report->out);
	fputc('\n', report->out);
	if (totals.n_off)
		print_unhooked(report, totals.n_off);
}

/* The end of a line. */
static void print_weak_names(
	const struct report *report, const struct weak_names *weak, const char *begin)
{
	const struct trace_image *image;

	if (!weak_names_are_told(weak, report))
		return;
	image = trace_reader_image(report->reader, weak->image);
	fprintf(report->out,
		"%s%s %% is in functions whose names may be those of another version (%s: rung %s; "
		"'weir report modules' says why)",
		begin, value_percent(weak->base, report->profile->total).s,
		path_base_name(trace_reader_string(report->reader, image->path)),
		weak_names_rung(weak, report));
}

static void print_measure(
	const struct report *report, const struct flat *flat, const struct weak_names *weak)
{
	const struct profile *p = report->profile;
	const char *event = meta(report, "event"), *hz = meta(report, "frequency");
	FILE *out = report->out;

	if (p->n_samples) {
		fprintf(out, "  measured by %" PRIu64 " samples", p->n_samples);
		if (event)
			fprintf(out, " of %s", event);
		if (hz)
			fprintf(out, " at %s Hz", hz);
		if (p->loss.cpu_ns)
			fprintf(out, " for %s %% of the CPU time",
				value_percent(p->loss.sampled_ns, p->loss.cpu_ns).s);
		if (p->loss.stacks)
			fprintf(out, "; %s %% of the stacks are complete",
				value_percent(p->loss.stacks_complete, p->loss.stacks).s);
		print_weak_names(report, weak, "; ");
		fputc('\n', out);
	}
	if (p->n_events)
		fprintf(out, "  measured by %" PRIu64 " function entries and exits", p->n_events);
	if (p->n_events && !p->n_samples)
		print_weak_names(report, weak, "; ");
	if (p->n_events)
		fputc('\n', out);
	if (p->n_stack_events)
		fprintf(out, "  with %" PRIu64 " stack%s at the entry of functions\n",
			p->n_stack_events, p->n_stack_events == 1 ? "" : "s");
	if (p->n_kept_nodes)
		fprintf(out,
			"  measured by call trees that the program kept: %" PRIu64
			" nodes, %" PRIu64 " pruned\n",
			p->n_kept_nodes, p->n_pruned);
	summary_counts(report);
	summary_java(report, flat);
	print_hooks(report);
	hooks_print_cost(report, "  ");
	print_notes(report);
}

/* ---- where the time went ---- */

/* "name  (image)"; on a terminal a long name is one that can be told from others before the line ends. */
static void put_function(
	const struct report *report, const struct calltree_routine *r, struct buf *to)
{
	bool is_long = report->options->terminal.is_there && strlen(r->name) > NAME_BYTES_MAX &&
		       r->kind != FRAME_KIND_JITTED;

	(is_long ? brief_name_put : buf_put_cstr)(to, r->name);
	if (*r->image)
		buf_printf(to, "  (%s)", path_base_name(r->image));
}

static void print_functions(
	const struct report *report, const struct flat *flat, const size_t *rows, size_t n)
{
	const struct profile *p = report->profile;
	bool has_calls = calltree_has_events(p->tree) && report_has_calls(report),
	     has_marks = false;
	struct table t = {.left_columns = 1u << 4, .terminal = &report->options->terminal};

	table_row(&t, TABLE_STYLE_PLAIN);
	table_cell(&t, "  Base%");
	table_cell(&t, "Cum%");
	table_cellf(&t, "Base %s", p->metric);
	if (has_calls)
		table_cell(&t, "Calls");
	table_cell(&t, "Function");
	for (size_t i = 0; i < n; i++) {
		const struct flat_row *row = &flat->rows[rows[i]];
		const struct calltree_routine *r = calltree_get_routine(p->tree, row->routine);
		const char *mark = report_mark(report, row->routine);
		struct buf shown = {0};

		buf_put_cstr(&shown, mark);
		put_function(report, r, &shown);
		has_marks |= *mark != 0;
		table_row(&t, i == 0 ? TABLE_STYLE_HOT : TABLE_STYLE_PLAIN);
		table_cell(&t, value_percent(row->base, p->total).s);
		table_cell(&t, report_has_cum(report, row->routine)
				       ? value_percent(row->cum, p->total).s
				       : ".");
		table_cell(&t, value_human(row->base, p->unit).s);
		if (has_calls && row->has_events)
			table_number(&t, row->calls);
		else if (has_calls)
			table_cell(&t, ".");
		table_cell(&t, buf_text(&shown));
		buf_release(&shown);
	}
	table_print(&t, report->options->color, report->out);
	table_release(&t);
	if (has_marks)
		fputs("  (+ by samples alone: its time is part of that of the functions that were "
		      "entered by events)\n",
			report->out);
}

static void print_threads(const struct report *report)
{
	const struct profile *p = report->profile;
	struct table t = {.terminal = &report->options->terminal};
	size_t *ids, n_busy = 0, n = query_threads(&report->options->query, p, &ids);

	while (n_busy < n && query_thread_cum(p, &p->threads[ids[n_busy]]))
		n_busy++;
	if (n_busy > 1) {
		summary_heading(report, "Threads");
		for (size_t i = 0; i < n_busy && i < TOP_THREADS; i++) {
			const struct profile_thread *thread = &p->threads[ids[i]];

			table_row(&t, TABLE_STYLE_PLAIN);
			table_cellf(&t, "  %s %%",
				value_percent(query_thread_cum(p, thread), p->total).s);
			table_cell(&t, value_human(query_thread_cum(p, thread), p->unit).s);
			table_cellf(&t, "%s%s%s", thread->root_name, *thread->name ? " " : "",
				thread->name);
		}
		table_print(&t, false, report->out);
		table_release(&t);
		if (n_busy > TOP_THREADS)
			fprintf(report->out, "  and %zu more ('weir report threads' lists all)\n",
				n_busy - TOP_THREADS);
	}
	free(ids);
}

/* ---- what is missing ---- */

/* Where timers belong to tasks, each begins anew. */
static void print_coverage(const struct report *report)
{
	const struct loss *loss = &report->profile->loss;
	const char *by = meta(report, "sampled_by");

	if (loss_is_covered(loss))
		return;
	fprintf(report->out, "  the samples stand for %s of %s of CPU time",
		value_human(loss->sampled_ns, "ns").s, value_human(loss->cpu_ns, "ns").s);
	if (by && !strcmp(by, "task") && loss->sampled_ns < loss->cpu_ns)
		fprintf(report->out,
			":\n    a process or thread that uses less than %s may have none (root, or CAP_BPF and "
			"CAP_PERFMON, would sample by CPU)",
			value_human(loss->period_ns, "ns").s);
	fputc('\n', report->out);
}

static void print_loss(const struct report *report, const struct weak_names *weak)
{
	const struct loss *loss = &report->profile->loss;
	FILE *out = report->out;

	if (!loss_is_real(loss) && !loss->n_reasons && !loss->records_unknown &&
		loss_is_covered(loss)) {
		summary_heading(report,
			weak_names_are_told(weak, report)
				? "Nothing was lost, and every frame has a name, though not for sure its own."
				: "Nothing was lost, and every frame has its name.");
		return;
	}
	summary_heading(report, loss_is_real(loss)		   ? "Data was lost"
				: report->profile->counts.n_missed ? "Not everything was counted"
								   : "Nothing was lost, but");
	print_coverage(report);
	if (loss->samples_lost)
		fprintf(out, "  %" PRIu64 " samples are lost\n", loss->samples_lost);
	if (loss->events_lost)
		fprintf(out, "  %" PRIu64 " events are lost\n", loss->events_lost);
	if (loss->records_lost)
		fprintf(out, "  %" PRIu64 " side-band records are lost\n", loss->records_lost);
	if (loss->records_unknown)
		fprintf(out, "  %" PRIu64 " records have a code that this version does not know\n",
			loss->records_unknown);
	if (loss->stacks_complete < loss->stacks)
		fprintf(out, "  %" PRIu64 " of %" PRIu64 " stacks are not complete\n",
			loss->stacks - loss->stacks_complete, loss->stacks);
	if (loss->frames_unresolved)
		fprintf(out, "  %" PRIu64 " of %" PRIu64 " frames have no true name\n",
			loss->frames_unresolved, loss->frames);
	for (size_t i = 0; i < loss->n_reasons && i < TOP_REASONS; i++)
		fprintf(out, "  %8" PRIu64 " x  %s\n", loss->reasons[i].n, loss->reasons[i].phrase);
	if (loss->n_reasons > TOP_REASONS)
		fprintf(out, "  and %zu more reasons ('weir report loss' lists all)\n",
			loss->n_reasons - TOP_REASONS);
}

static void json_hooks(struct json *j, const struct report *report)
{
	bool has_hooks = report->profile->n_hooks > 0;
	struct hooks_totals totals;

	hooks_count(report->profile, &totals);
	json_u64_if(j, "hooks", has_hooks, report->profile->n_hooks);
	json_u64_if(j, "hooks_refused", has_hooks, totals.by_method[PROFILE_HOOK_REFUSED]);
	json_u64_if(j, "hooks_off", has_hooks, totals.n_off);
	hooks_json_cost(j, report);
}

static void json_run(struct json *j, const struct report *report, const struct flat *flat,
	const struct weak_names *weak)
{
	static const char *const texts[] = {"command", "cwd", "host", "os", "cpu", "event", "mode",
		"exit_signal", "weir_version"};
	static const char *const numbers[] = {"n_cpus", "frequency", "start_realtime_ns", "wall_ns",
		"cpu_ns", "user_ns", "sys_ns", "max_rss_bytes", "exit_status", "n_processes",
		"n_threads"};

	json_object_begin(j, "run");
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		report_json_text(j, texts[i], meta(report, texts[i]));
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		uint64_t value = 0;
		bool has = meta_number(report, numbers[i], &value);

		json_u64_if(j, numbers[i], has, value);
	}
	json_u64(j, "samples", report->profile->n_samples);
	json_u64(j, "events", report->profile->n_events);
	json_u64(j, "stack_events", report->profile->n_stack_events);
	json_u64(j, "kept_nodes", report->profile->n_kept_nodes);
	json_u64(j, "pruned_nodes", report->profile->n_pruned);
	json_u64(j, "weakly_named", weak->base);
	json_hooks(j, report);
	summary_json_counts(j, report);
	summary_json_java(j, report, flat);
	json_object_end(j);
}

static void show_summary(
	const struct report *report, const struct flat *flat, const size_t *order, size_t n)
{
	struct weak_names weak;

	weak_names_count(&weak, report, flat);
	print_run(report);
	print_measure(report, flat, &weak);
	if (n) {
		summary_heading(report,
			query_has_waits(report->profile)
				? "Hottest functions (base: in the function itself, and waiting "
				  "there; cum: with all it calls)"
				: "Hottest functions (base: in the function itself; cum: with all it "
				  "calls)");
		print_functions(report, flat, order, n);
		summary_paths(report);
		print_threads(report);
	}
	print_loss(report, &weak);
	summary_advice(report,
		n ? calltree_get_routine(report->profile->tree, flat->rows[order[0]].routine)
		  : NULL);
}

static void json_summary(
	const struct report *report, const struct flat *flat, const size_t *order, size_t n)
{
	struct weak_names weak;
	struct rows r;

	weak_names_count(&weak, report, flat);
	rows_begin(&r, report, "summary", report->profile->total);
	json_run(&r.json, report, flat, &weak);
	summary_json_paths(&r.json, report);
	rows_open(&r, "rows", NULL);
	for (size_t i = 0; i < n; i++) {
		row_begin(&r, TABLE_STYLE_PLAIN);
		flat_row_put(&r, &flat->rows[order[i]]);
		row_end(&r);
	}
	rows_end_plain(&r);
}

int summary_report(const struct report *report, struct err *err)
{
	const struct calltree *tree = report->profile->tree;
	struct flat flat;
	size_t *order, n;

	(void)err;
	flat_init(&flat, tree);
	if (query_has_waits(report->profile))
		query_charge_waiters(tree, &flat);
	n = query_top_functions(&report->options->query, tree, &flat, TOP_FUNCTIONS, &order);
	(report->options->json ? json_summary : show_summary)(report, &flat, order, n);
	free(order);
	flat_release(&flat);
	return 0;
}
