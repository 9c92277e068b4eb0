/* SPDX-License-Identifier: MIT */
#include "cmd/record_probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "cmd/commands.h"
#include "probe/compile/compile.h"
#include "probe/print/session_names.h"
#include "probe/run/probe_session.h"
#include "process/launch.h"
#include "trace/records.h"

#define SCRIPT_BYTES_MAX ((size_t)4 << 20)
#define TEXT_BYTES_MAX	 ((size_t)256 << 20) /* of lines that are kept until the end */

/* A line that the script printed; its text is in `text`. */
struct line {
	uint64_t time_ns;
	uint32_t pid, tid, clause;
	size_t at, n;
};

struct record_probe {
	struct stream *stream;
	struct probe_session *session;
	struct session_names *names;
	struct printer *printer;
	const struct recorder_options *options;
	char *program; /* that the command will run */
	VEC(struct line) lines;
	struct buf text;
	uint64_t n_dropped; /* lines beyond TEXT_BYTES_MAX */
	uint64_t stop_ns;
};

/* --- output -------------------------------------------------------------------------------------- */

static void keep_line(struct record_probe *p, const struct stream_record *r, size_t at)
{
	struct line line = {r->time_ns, r->pid, r->tid, r->clause & 0xffffff, at, p->text.n - at};

	if (p->text.n > TEXT_BYTES_MAX) {
		p->text.n = at;
		p->n_dropped++;
	} else if (line.n) {
		vec_push(&p->lines, line);
	}
}

static void add_entry(void *ctx, struct span key, struct span value)
{
	printer_map_add(ctx, key, value);
}

static void print_map(
	struct record_probe *p, struct printer *printer, uint32_t map_i, struct buf *out)
{
	struct err err = {0};

	printer_map_begin(printer, map_i);
	if (probe_session_map_each(p->session, map_i, add_entry, printer, &err) < 0)
		command_fail(&err);
	printer_map_end(printer, 0, 0, out);
}

static void take_record(void *ctx, const struct stream_record *r, struct span args)
{
	struct record_probe *p = ctx;
	const struct stream_format *f = &p->stream->formats.v[r->format];
	size_t at = p->text.n;

	session_names_at(p->names, r->time_ns);
	if (f->kind == FORMAT_PRINT_MAP || f->kind == FORMAT_PRINT_ENTRY)
		print_map(p, p->printer, f->map_i, &p->text);
	else
		printer_record(p->printer, r, args, &p->text);
	session_names_at(p->names, 0);
	keep_line(p, r, at);
}

static void take_copy(void *ctx, const struct stack_copy *copy, size_t n)
{
	session_names_copy(((struct record_probe *)ctx)->names, copy, n);
}

static void take_note(void *ctx, const char *sentence)
{
	(void)ctx;
	fprintf(stderr, "weir: %s\n", sentence);
}

/* --- beside the recording ------------------------------------------------------------------------ */

static int start(void *ctx, pid_t command, struct err *err)
{
	struct record_probe *p = ctx;
	struct probe_session_options options = {.pids = command ? &command : p->options->pids,
		.n_pids = command ? 1 : p->options->n_pids};
	struct probe_session_output output = {
		.ctx = p, .record = take_record, .copy = take_copy, .note = take_note};
	struct err names_err = {0};
	int rc;

	p->names = session_names_new(p->stream, options.pids, options.n_pids, &names_err);
	if (names_err.code)
		take_note(p, names_err.text);
	p->printer = printer_new(p->stream, PRINTER_TEXT, &p->names->names);
	rc = probe_session_open(p->stream, &options, &output, &p->session, err);
	if (rc < 0)
		return rc;
	p->names->session = p->session;
	return probe_session_begin(p->session, err);
}

static int poll_fd(void *ctx)
{
	return probe_session_fd(((struct record_probe *)ctx)->session);
}

/* exit() ends the script's output, not the recording. */
static void work(void *ctx)
{
	struct record_probe *p = ctx;

	uint64_t began_ns = clock_mono_ns();

	probe_session_work(p->session);
	session_names_work(p->names, began_ns); /* records of earlier have been printed */
}

static void stop(void *ctx)
{
	struct record_probe *p = ctx;

	probe_session_end(p->session);
	p->stop_ns = clock_mono_ns();
}

static void write_lines(struct record_probe *p, struct trace_writer *w, uint32_t stream)
{
	for (size_t i = 0; i < p->lines.n; i++) {
		const struct line *l = &p->lines.v[i];
		uint64_t numbers[] = {l->pid, l->tid, l->clause,
			trace_writer_string_n(w, (const char *)p->text.p + l->at, l->n)};

		trace_writer_numbers(
			w, stream, l->time_ns, RECORD_MAJOR_PROBE, RECORD_PROBE_LINE, numbers, 4);
	}
	if (p->n_dropped)
		trace_writer_loss(w, stream, p->stop_ns, RECORD_LOSS_EVENTS, p->n_dropped,
			"lines of a script that printed too much");
}

static void write_maps(struct record_probe *p, struct trace_writer *w, uint32_t stream)
{
	struct printer *json = printer_new(p->stream, PRINTER_JSON, &p->names->names);

	for (uint32_t i = 0; i < p->stream->maps.n; i++) {
		struct buf text = {0}, object = {0};
		uint64_t numbers[3];

		print_map(p, p->printer, i, &text);
		print_map(p, json, i, &object);
		numbers[0] = trace_writer_string(w, p->stream->maps.v[i].name);
		numbers[1] = trace_writer_string_n(w, (const char *)text.p, text.n);
		numbers[2] = trace_writer_string_n(w, (const char *)object.p, object.n);
		trace_writer_numbers(
			w, stream, p->stop_ns, RECORD_MAJOR_PROBE, RECORD_PROBE_MAP, numbers, 3);
		buf_release(&text);
		buf_release(&object);
	}
	printer_free(json);
}

static void write_losses(struct record_probe *p, struct trace_writer *w, uint32_t stream)
{
	static const struct {
		size_t at;
		const char *reason;
	} kinds[] = {
		{offsetof(struct clause_loss, failed_reads), "script: memory could not be read"},
		{offsetof(struct clause_loss, map_full), "script: a map was full"},
		{offsetof(struct clause_loss, lost_records), "script: its ring was full"},
		{offsetof(struct clause_loss, busy), "script: no scratch memory was free"},
		{offsetof(struct clause_loss, stack_failed), "script: a stack could not be kept"},
		{offsetof(struct clause_loss, loop_limit), "script: a loop ran too often"},
		{offsetof(struct clause_loss, other), "script: a value could not be had"},
		{offsetof(struct clause_loss, unseen),
			"script: a program with other rights (setuid) was not traced"},
		{offsetof(struct clause_loss, left_out),
			"script: a process was not traced, since there were too many at a time"},
		{offsetof(struct clause_loss, stack_unwalked),
			"script: a stack that was not walked yet when its length, or a map by it, was asked"},
		{offsetof(struct clause_loss, texts_cut),
			"script: a text was cut at the limit of str()"},
		{offsetof(struct clause_loss, missed),
			"script: a hit was not seen, in whichever process: other BPF was at work on its CPU"},
		{offsetof(struct clause_loss, late_ticks),
			"script: a tick of an interval was too late"},
	};

	uint64_t sum = p->n_dropped;

	for (uint32_t i = 0; i < p->stream->clauses.n; i++) {
		struct clause_loss loss;
		uint64_t n;

		probe_session_loss(p->session, i, &loss);
		for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
			memcpy(&n, (const char *)&loss + kinds[k].at, sizeof(n));
			sum += n;
			if (n)
				trace_writer_loss(w, stream, p->stop_ns, RECORD_LOSS_EVENTS, n,
					kinds[k].reason);
		}
	}
	if (sum)
		take_note(p, "the script lost something; weir report loss says what");
}

static void write_all(void *ctx, struct trace_writer *w)
{
	struct record_probe *p = ctx;
	uint32_t stream = trace_writer_stream(w, STREAM_KIND_LIFE, RECORD_PROBE_STREAM);

	write_lines(p, w, stream);
	write_maps(p, w, stream);
	write_losses(p, w, stream);
}

/* --- all ----------------------------------------------------------------------------------------- */

static int add_script(struct sources *sources, const char *path, struct err *err)
{
	struct buf bytes = {0};
	int rc = file_read(&bytes, path, SCRIPT_BYTES_MAX, err);

	if (rc >= 0)
		sources_add(sources, path, buf_span(&bytes));
	buf_release(&bytes);
	return rc < 0 ? rc : 0;
}

static bool compile(struct record_probe *p, struct sources *sources)
{
	struct compile_options options = {.find = {.pids = p->options->pids,
						  .n_pids = p->options->n_pids,
						  .command = p->program},
		.parameters = {.imports = true}};
	struct buf text = {0};
	struct diags diags;

	diags_init(&diags, sources);
	p->stream = compile_scripts(sources, &options, &diags);
	diags_text(&diags, &text);
	if (text.n)
		fwrite(text.p, 1, text.n, stderr);
	buf_release(&text);
	diags_release(&diags);
	return p->stream != NULL;
}

struct record_probe *record_probe_new(const struct option_texts *scripts,
	const struct recorder_options *options, struct recorder_companion *companion, int *status)
{
	struct record_probe *p = mem_zalloc(sizeof(*p));
	struct sources sources = {0};
	struct err err = {0};
	int rc = 0;

	p->options = options;
	for (size_t i = 0; rc == 0 && i < scripts->n; i++)
		rc = add_script(&sources, scripts->v[i], &err);
	if (rc == 0 && options->command)
		rc = launch_find(options->command[0], &p->program, &err);
	*status = rc < 0 ? command_fail(&err) : STATUS_FAILED;
	if (rc < 0 || !compile(p, &sources)) {
		record_probe_free(p);
		p = NULL;
	} else {
		*companion = (struct recorder_companion){.ctx = p,
			.start = start,
			.fd = poll_fd,
			.work = work,
			.stop = stop,
			.write = write_all};
	}
	sources_release(&sources);
	return p;
}

void record_probe_free(struct record_probe *p)
{
	if (!p)
		return;
	printer_free(p->printer);
	session_names_free(p->names);
	probe_session_close(p->session);
	stream_free(p->stream);
	vec_release(&p->lines);
	buf_release(&p->text);
	free(p->program);
	free(p);
}
