/* SPDX-License-Identifier: MIT */
#include "cmd/host_option.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/output.h"
#include "base/word_list.h"
#include "cmd/probe.h"
#include "cmd/record_run.h"
#include "remote/parcel.h"
#include "remote/remote_run.h"
#include "trace/layout.h"

#define PROGRAM_OF_ENVIRONMENT "WEIR_SSH"

struct host_life {
	const struct host_request *request;
	VEC(struct remote_argument) arguments;
	VEC(char *) texts;	    /* of these, owned */
	VEC(struct buf *) contents; /* of files, owned */
	/* The trace. */
	int fd; /* -1 = no byte has come */
	struct output output;
	struct err write_error;
	uint64_t n_bytes;
	uint8_t tail[TRACE_TRAILER_BYTES];
};

/* --- what is asked for ------------------------------------------------------------------------ */

int host_check(const struct command *command, const struct host_arguments *a)
{
	struct remote_host host;
	struct err err;

	if (!a->host)
		return a->ssh || a->keep
			       ? options_usage_error(command, "%s: on which host? give --host, too",
					 a->ssh ? "--ssh" : "--keep")
			       : 0;
	if (remote_host_parse(&host, a->host, &err) < 0)
		return options_usage_error(command, "--host: %s", err.text);
	return 0;
}

static void add_text(struct host_life *h, char *text)
{
	vec_push(&h->texts, text);
	vec_push(&h->arguments, ((struct remote_argument){.text = text}));
}

/* An argument of which the end is a path of a file here. */
static int add_file(struct host_life *h, char *text, const char *path, struct err *err)
{
	struct remote_argument a = {.text = text};
	struct buf *content = mem_zalloc(sizeof(*content));
	bool is_input = !strcmp(path, "-");

	vec_push(&h->texts, text);
	vec_push(&h->contents, content);
	if (file_read(content, is_input ? "/dev/stdin" : path, PARCEL_BYTES_MAX / 2, err) < 0)
		return err->code;
	a.file_name = is_input ? "standard-input" : path;
	a.file = buf_span(content);
	vec_push(&h->arguments, a);
	return 0;
}

static int add_options(struct host_life *h, struct err *err)
{
	const struct host_request *q = h->request;
	struct option_values options = {0};
	char *without = mem_printf("host ssh keep %s", q->without ? q->without : "");
	int rc = 0;

	options_again(q->command, q->from, q->given, without, &options);
	for (size_t i = 0; i < options.n; i++) {
		const struct option_value *o = &options.v[i];
		const char *value = strchr(o->text, '=');

		if (rc == 0 && value && word_list_has(q->files, o->option->name)) {
			rc = add_file(h, mem_strndup(o->text, (size_t)(value + 1 - o->text)),
				value + 1, err);
			free(o->text);
		} else {
			add_text(h, o->text);
		}
	}
	free(options.v);
	free(without);
	return rc;
}

static int add_arguments(struct host_life *h, struct err *err)
{
	const struct host_request *q = h->request;
	int rc;

	add_text(h, mem_strdup(q->command->name));
	rc = add_options(h, err);
	if (rc == 0 && q->n_operands)
		add_text(h, mem_strdup("--"));
	for (size_t i = 0; i < q->n_operands && rc == 0; i++) {
		if (strlen(q->operands[i]) >= PARCEL_BYTES_MAX)
			rc = err_set(err, ERR_LIMIT, "an argument of %zu bytes is too long",
				strlen(q->operands[i]));
		else if (i == 0 && q->first_is_file)
			rc = add_file(h, mem_strdup(""), q->operands[i], err);
		else
			add_text(h, mem_strdup(q->operands[i]));
	}
	return rc;
}

/* --- what comes ------------------------------------------------------------------------------- */

static void keep_tail(struct host_life *h, struct span bytes)
{
	size_t n = bytes.n < sizeof(h->tail) ? bytes.n : sizeof(h->tail);

	if (!n)
		return;
	memmove(h->tail, h->tail + n, sizeof(h->tail) - n);
	memcpy(h->tail + sizeof(h->tail) - n, bytes.p + bytes.n - n, n);
	h->n_bytes += bytes.n;
}

/* The command there goes on when its trace cannot be written here, as it does with one that is recorded here. */
static int take_trace(void *ctx, struct span bytes, struct err *err)
{
	struct host_life *h = ctx;
	const struct host_request *q = h->request;
	int rc;

	(void)err;
	keep_tail(h, bytes);
	if (h->write_error.code || !q->output)
		return 0;
	if (h->fd < 0 && q->output_fd)
		h->fd = q->output_fd;
	else if (h->fd < 0 &&
		 output_open(&h->output, &h->fd, q->output, OUTPUT_MODE_OURS, &h->write_error) < 0)
		return 0;
	rc = fd_write_all(h->fd, bytes);
	if (rc < 0)
		err_sys(&h->write_error, errno, "'%s': cannot write", q->output);
	return 0;
}

/* "weir: SENTENCE" becomes "weir: HOST: SENTENCE". */
static void say(void *ctx, const char *line)
{
	static const char ours[] = "weir: ";
	const struct host_life *h = ctx;

	if (!strncmp(line, ours, sizeof(ours) - 1))
		fprintf(stderr, "weir: %s: %s\n", h->request->host->host, line + sizeof(ours) - 1);
	else
		fprintf(stderr, "%s\n", line);
}

/* --- how it ends ------------------------------------------------------------------------------ */

static bool is_whole(const struct host_life *h)
{
	struct trailer trailer;

	return h->n_bytes >= TRACE_HEADER_BYTES + TRACE_TRAILER_BYTES &&
	       trailer_decode(&trailer, h->tail, true);
}

static int end_cut(struct host_life *h, const struct err *why)
{
	const struct host_request *q = h->request;

	if (!h->n_bytes || h->write_error.code) {
		fprintf(stderr, "weir: %s: %s%s\n", q->host->host, why->text,
			q->output ? ": there is no trace" : "");
		return STATUS_FAILED;
	}
	fprintf(stderr, "weir: %s: %s: '%s' is cut: it has what had arrived until then\n",
		q->host->host, why->text, q->output);
	return STATUS_LOSSES;
}

/* What weir there gave up is of no use, as here; what it could not end because it was killed, is. */
static int end_whole(struct host_life *h, int wait_status)
{
	const struct host_request *q = h->request;

	if (q->output && h->n_bytes && !is_whole(h) && !h->write_error.code) {
		if (WIFSIGNALED(wait_status)) {
			fprintf(stderr, "weir: %s: weir was killed there: '%s' is cut\n",
				q->host->host, q->output);
			return STATUS_LOSSES;
		}
		output_discard(&h->output);
	}
	if (h->write_error.code && WIFEXITED(wait_status) && !WEXITSTATUS(wait_status))
		return STATUS_FAILED;
	return record_pass_on(wait_status);
}

static void release(struct host_life *h)
{
	if (h->fd >= 0)
		close(h->fd);
	output_release(&h->output);
	vec_release_all(&h->texts);
	for (size_t i = 0; i < h->contents.n; i++)
		buf_release(h->contents.v[i]);
	vec_release_all(&h->contents);
	vec_release(&h->arguments);
}

static int run_there(struct host_life *h, const struct option_texts *program)
{
	const struct host_request *q = h->request;
	struct remote_options o = {.program = (char *const *)program->v,
		.n_program = program->n,
		.keep = q->host->keep,
		.input_fd = q->reads_input ? STDIN_FILENO : -1,
		.output_fd = STDOUT_FILENO,
		.error_fd = STDERR_FILENO,
		.trace = take_trace,
		.say = say,
		.ctx = h};
	struct remote_result result;
	struct err err = {0};

	if (remote_host_parse(&o.host, q->host->host, &err) < 0 || add_arguments(h, &err) < 0 ||
		(q->output && !q->output_fd && output_check(q->output, &err) < 0))
		return command_fail(&err);
	o.arguments = h->arguments.v;
	o.n_arguments = h->arguments.n;
	if (remote_run(&o, &result, &err) < 0) {
		err_prefix(&err, "%s", q->host->host);
		return command_fail(&err);
	}
	if (h->write_error.code)
		command_fail(&h->write_error);
	if (result.left.code)
		fprintf(stderr, "weir: %s: %s\n", q->host->host, result.left.text);
	return result.cut.code ? end_cut(h, &result.cut) : end_whole(h, result.wait_status);
}

int host_run(const struct host_request *request)
{
	struct host_life h = {.request = request, .fd = -1, .output = OUTPUT_NONE};
	struct option_texts program = {0};
	const char *words =
		request->host->ssh ? request->host->ssh : getenv(PROGRAM_OF_ENVIRONMENT);
	int status;

	if (words && !probe_split_words(words, &program))
		status = options_usage_error(request->command, "%s: a quote is not closed",
			request->host->ssh ? "--ssh" : PROGRAM_OF_ENVIRONMENT);
	else
		status = run_there(&h, &program);
	vec_release_all(&program);
	release(&h);
	return status;
}
