/* SPDX-License-Identifier: MIT */
/*
 * weir view: a trace in a browser. The page and its answers come from here, over loopback; the address has
 * a token, so that others on the machine do not see what is shown.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/commands.h"
#include "cmd/open_trace.h"
#include "cmd/view/answer_export.h"
#include "cmd/view/engine.h"
#include "cmd/view/page_files.h"
#include "serve/http_server.h"

struct view_arguments {
	uint64_t port;
	struct open_trace_options open;
};

#define AT(member) offsetof(struct view_arguments, member)
static const struct option_spec view_options[] = {
	{0, "port", OPTION_NUMBER, "N", "the port on 127.0.0.1 (any that is free)", AT(port)},
	OPEN_TRACE_OPTIONS(struct view_arguments, open),
	{0},
};

static unsigned status_of(const struct err *err)
{
	return err->code == ERR_NOT_FOUND			   ? 404
	       : err->code == ERR_FORMAT || err->code == ERR_LIMIT ? 400
								   : 500;
}

/* What is not at once is a question. */
static void answer_in_turn(void *ctx, const char *path, struct http_answer *a)
{
	const char *question = path + strlen("q/");
	struct view_engine *engine = ctx;
	struct err err = {0};
	int rc;

	view_until(engine, &a->is_unwanted);
	rc = view_answer(engine, question, strlen(question), &a->body, &err);
	view_until(engine, NULL);
	if (rc < 0) {
		a->status = status_of(&err);
		buf_reset(&a->body);
		buf_printf(&a->body, "%s\n", err.text);
		return;
	}
	a->type =
		a->body.n && a->body.p[0] == '{' ? "application/json" : "application/octet-stream";
}

static void answer_progress(const struct view_engine *engine, struct http_answer *a)
{
	uint64_t done, whole;

	view_progress(engine, &done, &whole);
	a->type = "application/json";
	buf_printf(&a->body, "{\"done\": %" PRIu64 ", \"whole\": %" PRIu64 "}\n", done, whole);
}

static bool answer_at_once(void *ctx, const char *path, struct http_answer *a)
{
	const struct page_file *file;

	if (!strcmp(path, "q/progress")) {
		answer_progress(ctx, a);
		return true;
	}
	if (!strncmp(path, "q/", 2))
		return false;
	file = page_file_find(*path ? path : "page.html");
	if (file) {
		a->type = file->type;
		buf_put(&a->body, file->bytes.p, file->bytes.n);
		return true;
	}
	a->status = 404;
	buf_put_cstr(&a->body, "There is no such page.\n");
	return true;
}

/* From another machine the port has to be led here: that somebody sits there is known by ssh, or by a port that was
 * chosen, since sudo and screen hide what ssh says. */
static int say_address(const struct http_server *s, const char *before, const char *trace,
	bool is_chosen, struct err *err)
{
	bool is_remote = is_chosen || getenv("SSH_CONNECTION");
	char host[256] = "HOST";
	unsigned port = http_server_port(s);

	printf("weir: '%s'", trace);
	if (before)
		printf(", compared with '%s',", before);
	printf(" is shown at http://127.0.0.1:%u/%s/ (Ctrl-C ends it)\n", port,
		http_server_token(s));
	if (is_remote && gethostname(host, sizeof(host) - 1) == 0)
		printf("weir: from your own machine: ssh -N -L %u:127.0.0.1:%u %s, then open the same address there\n",
			port, port, host);
	return fflush(stdout) || ferror(stdout)
		       ? err_sys(err, errno,
				 "the address of the page cannot be told: standard output")
		       : 0;
}

static void wait_for_end(void)
{
	sigset_t ends;
	int signal_n;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	while (sigwait(&ends, &signal_n) != 0)
		;
}

/* Before the server's thread begins, so that it has none of them. */
static void hold_signals(void)
{
	sigset_t ends;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &ends, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* `before`: NULL when there is one trace alone. */
static int view(
	struct view_arguments *a, const char *before_path, const char *path, struct err *err)
{
	struct view_sources sources = {.exe = a->open.counts.exe};
	struct view_more more = {&sources, view_answer_here};
	struct trace_reader *reader, *before = NULL;
	struct view_engine *engine;
	struct http_answers answers = {.at_once = answer_at_once, .in_turn = answer_in_turn};
	struct http_server *server;
	int rc;

	a->open.steps = OPEN_STEPS_TOLD;
	rc = before_path ? open_trace(&before, before_path, &a->open, err) : 0;
	if (rc >= 0)
		rc = open_trace(&reader, path, &a->open, err);
	if (rc < 0) {
		trace_reader_close(before);
		return rc;
	}
	sources.engine = engine = view_engine_new(reader, before, &more);
	hold_signals();
	answers.ctx = engine;
	rc = http_server_open(&server, (uint16_t)a->port, &answers, err);
	if (rc == 0) {
		rc = say_address(server, before_path, path, a->port != 0, err);
		if (rc == 0)
			wait_for_end();
		http_server_close(server);
	}
	view_engine_free(engine);
	return rc;
}

static int run(const struct command *command, int argc, char **argv)
{
	struct view_arguments a = {0};
	struct err err = {0};
	int status;

	if (!options_begin(command, &a, &argc, &argv, &status))
		return status;
	if (argc > 2)
		return options_usage_error(command, "more than two traces");
	if (a.port > UINT16_MAX)
		return options_usage_error(command, "--port: must be at most %u", UINT16_MAX);
	return view(&a, argc == 2 ? argv[0] : NULL, argc ? argv[argc - 1] : "trace.weir", &err) < 0
		       ? command_fail(&err)
		       : STATUS_DONE;
}

const struct command command_view = {
	.name = "view",
	.synopsis = "[[BEFORE] TRACE] [--port N]",
	.summary = "shows a trace in a browser",
	.options = view_options,
	.details =
		"TRACE is trace.weir unless given. With BEFORE, a trace of an earlier run, it is compared with\n"
		"that: what is more, less and the same. The page is served on 127.0.0.1 alone, at an address that\n"
		"is printed; whoever has it sees the trace. Ctrl-C ends it.\n",
	.run = run,
};
