/* SPDX-License-Identifier: MIT */
/* The near side against a shell that answers as it should not; with an agent: tests/cli/remote_*.sh. */
#include "remote/remote_run.h"

#include <unistd.h>

#include "base/buf.h"
#include "check.h"

static int take_trace(void *ctx, struct span bytes, struct err *err)
{
	(void)err;
	buf_put(ctx, bytes.p, bytes.n);
	return 0;
}

static void say(void *ctx, const char *line)
{
	buf_printf(ctx, "<%s>", line);
}

static struct buf got;

/* `answer` is run in place of ssh, $n being the nonce. */
static int run_with(const char *answer, struct remote_result *result, struct err *err)
{
	char *line =
		mem_printf("read -r n; n=${n#weir_nonce=}; n=${n%%%% *}; %s; cat >&- 2>&-", answer);
	char *program[] = {(char *)"sh", (char *)"-c", line};
	struct remote_argument argument = {.text = "doctor"};
	struct remote_options o = {.host = {REMOTE_KIND_SSH, "box"},
		.program = program,
		.n_program = 3,
		.arguments = &argument,
		.n_arguments = 1,
		.input_fd = -1,
		.output_fd = STDOUT_FILENO,
		.error_fd = STDERR_FILENO,
		.trace = take_trace,
		.say = say,
		.ctx = &got};
	int rc;

	buf_reset(&got);
	*err = (struct err){0};
	fflush(stdout);
	rc = remote_run(&o, result, err);
	free(line);
	return rc;
}

static void before_the_agent_runs(void)
{
	struct remote_result result;
	struct err err;

	CHECK(run_with("exit 0", &result, &err) < 0);
	CHECK_STR(err.text, "the connection was lost");
	CHECK(run_with("echo hello; echo \"weir:$n fail it is closed\"", &result, &err) < 0);
	CHECK_STR(err.text, "it is closed");
	CHECK(run_with("yes 2>&-", &result, &err) < 0);
	CHECK_STR(err.text, "what comes is not from a shell that runs what it is told");
}

static void what_the_agent_sends(void)
{
	struct remote_result result;
	struct err err;

	CHECK_EQ(
		run_with(
			"printf \"weir:$n run\\n\\023\\002\\000\\000\\000a\\n\\020\\003\\000\\000\\000bcd\\025\\004\\000\\000\\000\\000\\007\\000\\000\"",
			&result, &err),
		0);
	CHECK_EQ(result.cut.code, 0);
	CHECK_EQ(result.wait_status, 0x700);
	CHECK_STR(buf_text(&got), "<a>bcd");
}

static void what_is_cut(void)
{
	struct remote_result result;
	struct err err;

	CHECK_EQ(
		run_with(
			"printf \"weir:$n run\\n\\023\\002\\000\\000\\000ab\\020\\003\\000\\000\\000b\"",
			&result, &err),
		0);
	CHECK_STR(result.cut.text, "the connection was lost");
	CHECK_STR(buf_text(&got), "<ab>");
	CHECK_EQ(run_with("printf \"weir:$n run\\nKilled\\n\"", &result, &err), 0);
	CHECK_STR(
		result.cut.text, "what comes is not from weir (a byte 0x4b where a parcel begins)");
	CHECK_EQ(run_with("printf \"weir:$n run\\n\\024\\004\\000\\000\\000\\377\\377\\377\\000\"",
			 &result, &err),
		0);
	CHECK_STR(result.cut.text, "more standard input was taken than was sent");
	buf_release(&got);
}

static const struct test tests[] = {
	{"a shell that ends, refuses or never stops talking is a sentence", before_the_agent_runs},
	{"what the agent sends comes to its place", what_the_agent_sends},
	{"what breaks is cut, with the reason", what_is_cut},
};

int main(void)
{
	return RUN_TESTS(tests);
}
