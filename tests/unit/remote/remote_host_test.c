/* SPDX-License-Identifier: MIT */
#include "remote/remote_host.h"

#include "base/buf.h"
#include "check.h"

#define SCRIPT "eval \"$(dd bs=1 count=7 2>&-)\""

/* The command line, words between bars; "" when it is no host. */
static const char *command_of(const char *text, char *const *program, size_t n)
{
	static struct buf line;
	struct remote_words words = {0};
	struct remote_host host;
	struct err err;

	buf_reset(&line);
	if (remote_host_parse(&host, text, &err) < 0)
		return err.text[0] ? "" : "no sentence";
	remote_host_command(&host, program, n, 7, &words);
	for (size_t i = 0; words.v.v[i]; i++)
		buf_printf(&line, "%s%s", i ? "|" : "", words.v.v[i]);
	vec_release_all(&words.v);
	return buf_text(&line);
}

static void command_lines(void)
{
	char *other[] = {(char *)"ssh", (char *)"-p", (char *)"2222"};

	CHECK_STR(command_of("box", NULL, 0), "ssh|-T|box|exec sh -c '" SCRIPT "'");
	CHECK_STR(command_of("me@box", other, 3), "ssh|-p|2222|-T|me@box|exec sh -c '" SCRIPT "'");
	CHECK_STR(command_of("docker:web", NULL, 0), "docker|exec|-i|web|sh|-c|" SCRIPT);
	CHECK_STR(command_of("kubectl:a/b", NULL, 0), "kubectl|exec|-i|a/b|--|sh|-c|" SCRIPT);
	CHECK_STR(command_of("ssh://me@box:22", NULL, 0),
		"ssh|-T|ssh://me@box:22|exec sh -c '" SCRIPT "'");
}

static void no_hosts(void)
{
	CHECK_STR(command_of("", NULL, 0), "");
	CHECK_STR(command_of("-oProxyCommand=x", NULL, 0), "");
	CHECK_STR(command_of("docker:", NULL, 0), "");
	CHECK_STR(command_of("docker:--privileged", NULL, 0), "");
	CHECK_STR(command_of("a b", NULL, 0), "");
	CHECK_STR(command_of("a\nb", NULL, 0), "");
}

static const struct test tests[] = {
	{"each kind of host has its command line", command_lines},
	{"what is no name, or an option, is no host", no_hosts},
};

int main(void)
{
	return RUN_TESTS(tests);
}
