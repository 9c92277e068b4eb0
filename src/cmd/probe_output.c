/* SPDX-License-Identifier: MIT */
#include "cmd/probe_output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define SYSTEM_BYTES_MAX  ((size_t)1 << 20) /* of what system() prints */
#define COMMANDS_AFTER_NS 1000000000	    /* those still waiting when a signal ends the run */

void probe_output_init(struct probe_output *o, const pid_t *pids, size_t n_pids)
{
	struct err err = {0};

	o->manner = print_manner_of(o->stream);
	o->names = session_names_new(o->stream, pids, n_pids, &err);
	if (err.code)
		probe_output_note(o, err.text);
	o->printer = printer_new(
		o->stream, o->setup->is_json ? PRINTER_JSON : PRINTER_TEXT, &o->names->names);
}

void probe_output_release(struct probe_output *o)
{
	printer_free(o->printer);
	session_names_free(o->names);
	buf_release(&o->text);
	buf_release(&o->held);
}

static void keep_errno(struct probe_output *o)
{
	if (!o->write_errno)
		o->write_errno = errno ? errno : EIO;
}

static void write_text(struct probe_output *o)
{
	errno = 0;
	if (o->holds)
		buf_put(&o->held, o->text.p, o->text.n);
	else if (o->text.n && fwrite(o->text.p, 1, o->text.n, o->setup->out) != o->text.n)
		keep_errno(o);
	if (o->text.n)
		o->is_in_line = o->text.p[o->text.n - 1] != '\n';
	buf_reset(&o->text);
}

void probe_output_let_go(struct probe_output *o)
{
	o->holds = false;
	buf_reset(&o->text);
	buf_put(&o->text, o->held.p, o->held.n);
	write_text(o);
	buf_release(&o->held);
	o->held = (struct buf){0};
}

void probe_output_flush(struct probe_output *o)
{
	errno = 0;
	if (fflush(o->setup->out) || ferror(o->setup->out))
		keep_errno(o);
}

/* ---- maps ---- */

struct map_reading {
	struct printer *printer;
	size_t n;
	struct span key; /* of the one that is wanted; p NULL: all */
};

static void add_entry(void *ctx, struct span key, struct span value)
{
	struct map_reading *reading = ctx;

	if (reading->key.p &&
		(key.n != reading->key.n || memcmp(key.p, reading->key.p, key.n) != 0))
		return;
	reading->n++;
	printer_map_add(reading->printer, key, value);
}

static void print_entries(
	struct probe_output *o, uint32_t map_i, struct span key, uint64_t top, uint64_t div)
{
	struct map_reading reading = {.printer = o->printer, .key = key};
	struct err err = {0};

	printer_map_begin(o->printer, map_i);
	if (probe_session_map_each(o->session, map_i, add_entry, &reading, &err) < 0)
		command_fail(&err);
	if (reading.n || (o->manner->has_empty_maps && !key.p))
		printer_map_end(o->printer, top, div, &o->text);
	write_text(o);
}

static void print_map(struct probe_output *o, uint32_t map_i, uint64_t top, uint64_t div)
{
	print_entries(o, map_i, (struct span){NULL, 0}, top, div);
}

static int compare_names(const void *left, const void *right, void *ctx)
{
	const struct stream *s = ctx;

	return strcmp(
		s->maps.v[*(const uint32_t *)left].name, s->maps.v[*(const uint32_t *)right].name);
}

static void print_maps(struct probe_output *o)
{
	VEC(uint32_t) order = {0};

	for (uint32_t i = 0; i < o->stream->maps.n; i++)
		vec_push(&order, i);
	if (o->manner->has_maps_by_name && order.n)
		qsort_r(order.v, order.n, sizeof(*order.v), compare_names,
			(void *)(uintptr_t)o->stream);
	for (size_t i = 0; i < order.n; i++)
		print_map(o, order.v[i], 0, 0);
	vec_release(&order);
}

void probe_output_maps(struct probe_output *o, bool is_end)
{
	if (is_end && o->manner->has_blank_end && !o->setup->is_json) {
		buf_put_cstr(&o->text, "\n\n");
		write_text(o);
	} else if (o->is_in_line && !o->setup->is_json && o->stream->maps.n) {
		/* What clauses have printed need not end a line. */
		buf_put_u8(&o->text, '\n');
		write_text(o);
	}
	print_maps(o);
}

/* ---- system() ---- */

static void run_shell(const char *command, int out_fd, const struct run *run)
{
	run_leave(run);
	dup2(out_fd, STDOUT_FILENO);
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(127);
}

/* What the command prints takes its place among the records, so we wait for it. */
/* Who presses Ctrl-C does not wait for thousands of commands; those of end{} are run. */
static bool is_too_late(const struct probe_output *o, const struct stream_record *r)
{
	return o->over_ns && r->time_ns <= o->over_ns &&
	       clock_mono_ns() - o->over_ns > COMMANDS_AFTER_NS;
}

static void run_system(struct probe_output *o, const struct stream_format *f, struct span args)
{
	struct buf command = {0}, text = {0};
	int fds[2], status;
	uint8_t bytes[4096];
	ssize_t n;
	pid_t pid;

	printer_text(o->printer, f, args, &command);
	fflush(o->setup->out);
	if (pipe2(fds, O_CLOEXEC) < 0)
		return;
	pid = fork();
	if (pid == 0)
		run_shell(buf_text(&command), fds[1], o->run);
	close(fds[1]);
	while (pid > 0 &&
		((n = read(fds[0], bytes, sizeof(bytes))) > 0 || (n < 0 && errno == EINTR)))
		if (n > 0 && text.n + (size_t)n <= SYSTEM_BYTES_MAX)
			buf_put(&text, bytes, (size_t)n);
	close(fds[0]);
	if (pid > 0)
		waitpid(pid, &status, 0);
	printer_wrap(o->printer, "syscall", buf_span(&text), &o->text);
	write_text(o);
	buf_release(&command);
	buf_release(&text);
}

/* ---- records ---- */

static uint64_t number_at(struct span args, size_t i)
{
	struct cursor c = cursor_of(span_sub(args, i * 8, 8));

	return cursor_u64(&c);
}

/* As text they are messages, and so not for -o; -q leaves warnings out. */
static void write_message(struct probe_output *o, const struct stream_format *f, struct span args)
{
	printer_message(o->printer, f, args, &o->text);
	if (o->setup->is_json) {
		write_text(o);
		return;
	}
	fflush(o->setup->out);
	if (f->kind == FORMAT_ERRORF || (!o->setup->a->quiet && !o->setup->a->no_warnings))
		fwrite(o->text.p, 1, o->text.n, stderr);
	buf_reset(&o->text);
}

static void write_record(struct probe_output *o, const struct stream_record *r, struct span args)
{
	const struct stream_format *f;

	if (r->format >= o->stream->formats.n)
		return;
	f = &o->stream->formats.v[r->format];
	if (f->kind == FORMAT_PRINT_MAP) {
		print_map(o, f->map_i, f->n_args > 0 ? number_at(args, 0) : 0,
			f->n_args > 1 ? number_at(args, 1) : 0);
	} else if (f->kind == FORMAT_PRINT_ENTRY) {
		print_entries(o, f->map_i, args, 0, 0);
	} else if (f->kind == FORMAT_SYSTEM) {
		if (is_too_late(o, r))
			o->n_not_run++;
		else if (o->setup->a->unsafe)
			run_system(o, f, args);
	} else if (f->kind == FORMAT_ERRORF || f->kind == FORMAT_WARNF) {
		write_message(o, f, args);
	} else {
		printer_record(o->printer, r, args, &o->text);
		write_text(o);
	}
}

void probe_output_record(void *ctx, const struct stream_record *r, struct span args)
{
	struct probe_output *o = ctx;

	session_names_at(o->names, r->time_ns);
	write_record(o, r, args);
	session_names_at(o->names, 0);
}

void probe_output_copy(void *ctx, const struct stack_copy *copy, size_t n)
{
	struct probe_output *o = ctx;

	session_names_copy(o->names, copy, n);
}

void probe_output_note(void *ctx, const char *sentence)
{
	struct probe_output *o = ctx;

	if (!o->setup->a->quiet)
		fprintf(stderr, "weir: note: %s\n", sentence);
}
