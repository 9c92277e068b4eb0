/* SPDX-License-Identifier: MIT */
/* weir export: a trace in the formats of other tools. */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/output.h"
#include "cmd/commands.h"
#include "cmd/open_trace.h"
#include "cmd/report/report.h"
#include "steps/read/step_mark_words.h"
#include "formats/export_limits.h"
#include "formats/exports.h"
#include "formats/http_post.h"
#include "query/query.h"
#include "query/transform.h"
#include "steps/stream/step_stream.h"

struct export_arguments {
	const char *output;
	struct open_trace_options open;
	struct build_options build;
	const char *transform;
	struct transforms *transforms; /* NULL: none */
	const char *post;	       /* a URL; NULL: to a file */
};

static const struct option_spec export_options[] = {
	{'o', "output", OPTION_TEXT, "FILE", "where to write ('-': standard output)",
		offsetof(struct export_arguments, output)},
	{0, "metric", OPTION_TEXT, "NAME", "what to count, where not all metrics go along",
		offsetof(struct export_arguments, build.metric)},
	{0, "thread", OPTION_TEXT, "ID|NAME", "only this thread: TID, PID_TID or its name",
		offsetof(struct export_arguments, build.thread)},
	{0, "transform", OPTION_TEXT, "LIST",
		"folded: the tree without some of it: focus=F;fold=F;drop=F;merge-recursion",
		offsetof(struct export_arguments, transform)},
	{0, "post", OPTION_TEXT, "URL", "otlp: to a collector, http://HOST:PORT, not to a file",
		offsetof(struct export_arguments, post)},
	OPEN_TRACE_OPTIONS(struct export_arguments, open),
	{0},
};

#define OF_PROFILE "output catalog cpu exe"

static const struct export_format {
	struct option_user user;
	int (*write)(const struct profile *profile, FILE *out, struct err *err);
	/* or, of executed instructions alone: */
	int (*write_steps)(const struct trace_reader *r, const struct step_export_options *options,
		FILE *out, struct step_export_result *result, struct err *err);
	const char *output;  /* without -o */
	bool counts_samples; /* the metric is samples, when there are any and no events */
	bool by_blocks;	     /* it has blocks or lines, not call trees alone */
	bool is_binary;	     /* not for a terminal */
	unsigned int lacks;  /* enum export_lack: said when a trace has it */
} formats[] = {
	{.user = {"folded", OF_PROFILE " metric thread transform"},
		.write = export_folded,
		.output = "-",
		.counts_samples = true,
		.lacks = EXPORT_LACKS_CALLS | EXPORT_LACKS_WAITS | EXPORT_LACKS_LOSSES |
			 EXPORT_LACKS_METRICS},
	{.user = {"pprof", OF_PROFILE " metric thread"},
		.write = export_pprof,
		.output = "profile.pb.gz",
		.is_binary = true,
		.lacks = EXPORT_LACKS_WHEN | EXPORT_LACKS_WAITS | EXPORT_LACKS_LOSSES},
	{.user = {"firefox", OF_PROFILE " metric thread"},
		.write = export_firefox,
		.output = "firefox.json.gz",
		.is_binary = true,
		.lacks = EXPORT_LACKS_METRICS | EXPORT_LACKS_UNITS | EXPORT_LACKS_TREES},
	{.user = {"speedscope", OF_PROFILE " metric thread"},
		.write = export_speedscope,
		.output = "profile.speedscope.json",
		.lacks = EXPORT_LACKS_WAITS | EXPORT_LACKS_LOSSES | EXPORT_LACKS_METRICS |
			 EXPORT_LACKS_UNITS | EXPORT_LACKS_TREES},
	{.user = {"perfetto", OF_PROFILE " metric thread"},
		.write = export_perfetto,
		.output = "trace.perfetto-trace",
		.counts_samples = true,
		.is_binary = true,
		.lacks = EXPORT_LACKS_WEIGHTS | EXPORT_LACKS_METRICS | EXPORT_LACKS_TREES},
	{.user = {"chrome", OF_PROFILE " metric thread"},
		.write = export_chrome,
		.output = "trace.json",
		.lacks = EXPORT_LACKS_METRICS | EXPORT_LACKS_TREES},
	{.user = {"otlp", OF_PROFILE " metric thread post"},
		.write = export_otlp,
		.output = "profile.otlp",
		.is_binary = true,
		.lacks = EXPORT_LACKS_CALLS | EXPORT_LACKS_WAITS | EXPORT_LACKS_LOSSES |
			 EXPORT_LACKS_TREES},
	{.user = {"callgrind", OF_PROFILE " metric thread"},
		.write = export_callgrind,
		.output = "callgrind.out.weir",
		.by_blocks = true,
		.lacks = EXPORT_LACKS_WHEN | EXPORT_LACKS_WAITS | EXPORT_LACKS_LOSSES |
			 EXPORT_LACKS_METRICS},
	{.user = {"lcov", OF_PROFILE},
		.write = export_lcov,
		.output = "coverage.info",
		.by_blocks = true},
	{.user = {"steps", "output catalog thread"},
		.write_steps = export_step_text,
		.output = "-"},
	{.user = {"step-stream", "output catalog thread"},
		.write_steps = export_step_stream,
		.output = "steps.stream",
		.is_binary = true},
};
#define N_FORMATS (sizeof(formats) / sizeof(formats[0]))

/* Exports are large. */
#define OUTPUT_BUFFER_BYTES (256 * 1024)
#define ANSWER_BYTES_SHOWN  200

/* What is written: a profile, or the steps of a trace. */
struct export_source {
	const struct export_format *format;
	const struct profile *profile;
	const struct trace_reader *reader;
	struct step_export_options steps;
	struct step_export_result steps_result;
};

static int write_source(struct export_source *s, FILE *out, struct err *err)
{
	return s->profile
		       ? s->format->write(s->profile, out, err)
		       : s->format->write_steps(s->reader, &s->steps, out, &s->steps_result, err);
}

/* What could not be written as a whole leaves nothing behind; a device stays. */
static int write_file(struct export_source *source, const char *path, struct err *err)
{
	struct output output;
	FILE *out;
	const struct trace_reader *read =
		source->profile ? source->profile->reader : source->reader;
	int fd, failed, rc = output_check_apart(path, trace_reader_name(read), err);

	if (rc == 0)
		rc = output_open(&output, &fd, path, OUTPUT_MODE_OVERWRITE, err);
	if (rc < 0)
		return rc;
	out = fdopen(fd, "wb");
	if (!out) {
		rc = err_sys(err, errno, "'%s': cannot write", path);
		close(fd);
	} else {
		setvbuf(out, NULL, _IOFBF, OUTPUT_BUFFER_BYTES);
		rc = write_source(source, out, err);
		failed = ferror(out);
		failed |= fclose(out);
		if (rc == 0 && failed)
			rc = err_sys(err, errno, "'%s': cannot write", path);
	}
	if (rc < 0)
		output_discard(&output);
	output_release(&output);
	return rc;
}

static int write_stdout(struct export_source *source, struct err *err)
{
	const char *name = source->format->user.name;
	int rc;

	if (source->format->is_binary && isatty(STDOUT_FILENO))
		return err_set(err, ERR_FAILED,
			"'%s' is binary, which a terminal cannot show: name a file with -o", name);
	rc = write_source(source, stdout, err);
	if (rc == 0 && (fflush(stdout) != 0 || ferror(stdout)))
		rc = err_sys(err, errno, "standard output: cannot write");
	return rc;
}

static int write_output(struct export_source *source, const char *path, struct err *err)
{
	path = path ? path : source->format->output;
	return strcmp(path, "-") ? write_file(source, path, err) : write_stdout(source, err);
}

/* What a collector says besides that it took all: as text, which it is for people. */
static void say_answer(const char *url, const struct buf *answer)
{
	if (!answer->n)
		return;
	fprintf(stderr, "weir: note: '%s' answers: ", url);
	for (size_t i = 0; i < answer->n && i < ANSWER_BYTES_SHOWN; i++)
		fputc(answer->p[i] >= ' ' && answer->p[i] < 0x7f ? answer->p[i] : '?', stderr);
	fputc('\n', stderr);
}

static int post_output(struct export_source *source, const char *url, struct err *err)
{
	struct buf answer = {0};
	char *body = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&body, &n);
	int rc;

	if (!out)
		return err_sys(err, errno, "'%s': cannot make the message", url);
	rc = write_source(source, out, err);
	if (fclose(out) != 0 && rc == 0)
		rc = err_sys(err, errno, "'%s': cannot make the message", url);
	if (rc == 0)
		rc = http_post(url, OTLP_POST_PATH, OTLP_CONTENT_TYPE,
			(struct span){(uint8_t *)body, n}, &answer, err);
	if (rc == 0)
		say_answer(url, &answer);
	buf_release(&answer);
	free(body);
	return rc;
}

/* What is in the trace, and could not go along. */
static void say_limits(const struct export_format *format, const struct profile *profile)
{
	struct buf words = {0};

	export_limits_say(&words, profile, format->lacks);
	if (words.n)
		fprintf(stderr, "weir: note: %s has no place for %s: not in it\n",
			format->user.name, buf_text(&words));
	buf_release(&words);
}

/* The exit status, or a failure. */
static int export_profile(const struct export_format *format, struct export_arguments *a,
	const char *path, struct err *err)
{
	struct export_source source = {.format = format};
	struct trace_reader *reader;
	struct profile *profile;
	int rc;

	a->open.steps = format->by_blocks ? OPEN_STEPS_COUNTS : OPEN_STEPS_TREES;
	rc = open_trace(&reader, path, &a->open, err);
	if (rc < 0)
		return rc;
	rc = (format->counts_samples ? query_count_samples : profile_build)(
		&profile, reader, &a->build, err);
	if (rc == 0) {
		source.profile = profile;
		rc = transforms_apply(a->transforms, profile, err);
		if (rc == 0)
			rc = a->post ? post_output(&source, a->post, err)
				     : write_output(&source, a->output, err);
		if (rc == 0)
			say_limits(format, profile);
		if (rc == 0 && loss_is_real(&profile->loss)) {
			loss_say(path, &profile->loss);
			rc = STATUS_LOSSES;
		}
		profile_free(profile);
	}
	trace_reader_close(reader);
	return rc;
}

static int export_steps(const struct export_format *format, struct export_arguments *a,
	const char *path, struct err *err)
{
	struct export_source source = {.format = format,
		.steps = {.thread = a->build.thread, .put_mark = step_mark_put_words}};
	struct trace_reader *reader;
	struct loss loss = {0};
	int rc;

	a->open.steps = OPEN_STEPS_PLAIN;
	rc = open_trace(&reader, path, &a->open, err);
	if (rc < 0)
		return rc;
	source.reader = reader;
	rc = write_output(&source, a->output, err);
	loss.is_cut = trace_reader_is_recovered(reader, NULL) ||
		      trace_reader_n_damaged_tables(reader, NULL);
	if (rc == 0 && loss.is_cut)
		loss_say(path, &loss);
	if (rc == 0 && source.steps_result.n_gaps)
		fprintf(stderr, "weir: '%s': steps are missing in %" PRIu64 " places\n", path,
			source.steps_result.n_gaps);
	if (rc == 0 && (source.steps_result.n_gaps || loss.is_cut))
		rc = STATUS_LOSSES;
	trace_reader_close(reader);
	return rc;
}

static int run(const struct command *command, int argc, char **argv)
{
	struct export_arguments a = {.build = BUILD_OPTIONS_ALL};
	struct option_user users[N_FORMATS];
	const struct export_format *format;
	struct err err = {0};
	uint64_t given;
	int status;

	if (!options_begin_given(command, &a, &argc, &argv, &status, &given))
		return status;
	if (argc < 1 || argc > 2)
		return options_usage_error(command, "needs a format and at most one trace");
	for (size_t i = 0; i < N_FORMATS; i++)
		users[i] = formats[i].user;
	status = options_choose_user(command, given, argv[0], "format", users, N_FORMATS);
	if (status < 0)
		return STATUS_USAGE;
	format = &formats[status];
	if (a.post && a.output)
		return options_usage_error(command, "--post and --output are one too many");
	if (a.transform && transforms_parse(&a.transforms, a.transform, &err) < 0)
		return options_usage_error(command, "--transform: %s", err.text);
	status = (format->write ? export_profile : export_steps)(
		format, &a, argc > 1 ? argv[1] : "trace.weir", &err);
	transforms_free(a.transforms);
	return status < 0 ? command_fail(&err) : status;
}

const struct command command_export = {
	.name = "export",
	.synopsis = "FORMAT [TRACE] [-o FILE]",
	.summary = "writes a trace for other tools: folded, pprof, firefox, speedscope, ...",
	.options = export_options,
	.details =
		"FORMAT is one of\n"
		"  folded      one line a call path, for flame graphs: comm;outer;...;inner COUNT\n"
		"              (to standard output unless -o is given)\n"
		"  pprof       the pprof tools' profile.proto, gzipped (profile.pb.gz unless -o is given)\n"
		"  firefox     samples, calls, waits and losses on a time line, for profiler.firefox.com\n"
		"              (firefox.json.gz)\n"
		"  speedscope  samples, and calls to the nanosecond (profile.speedscope.json)\n"
		"  perfetto    a time line for ui.perfetto.dev, to the nanosecond (trace.perfetto-trace)\n"
		"  chrome      the same as JSON, many times as large (trace.json)\n"
		"  otlp        OpenTelemetry profiles v1development, protocol 1.10 (profile.otlp)\n"
		"  callgrind   a profile for KCachegrind and callgrind_annotate (callgrind.out.weir)\n"
		"  lcov        line coverage for genhtml and others (coverage.info); of counts alone\n"
		"  steps       one executed instruction a line (to standard output unless -o is given)\n"
		"  step-stream executed instructions for simulators, binary (steps.stream)\n"
		"TRACE is trace.weir unless given. Exit status 3: done, but the trace has losses.\n",
	.run = run,
};
