/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "cmd/options.h"

struct values {
	bool all, brief;
	const char *output;
	uint64_t hz;
	double seconds, share;
};

static const struct option_spec specs[] = {
	{'a', "all", OPTION_FLAG, NULL, "everything", offsetof(struct values, all)},
	{'b', NULL, OPTION_FLAG, NULL, "only a letter", offsetof(struct values, brief)},
	{'o', "output", OPTION_TEXT, "FILE", "where to", offsetof(struct values, output)},
	{'f', "hz", OPTION_NUMBER, "N", "how often", offsetof(struct values, hz)},
	{0, "for", OPTION_SECONDS, "S", "how long", offsetof(struct values, seconds)},
	{0, "share", OPTION_DECIMAL, "PCT", "how much", offsetof(struct values, share)},
	{0, NULL, 0, NULL, NULL, 0},
};

static const struct command mixed = {.name = "mixed",
	.synopsis = "[OPTIONS] FILE\n-o FILE",
	.summary = "tests",
	.options = specs};
static const struct command stopping = {.name = "stopping",
	.synopsis = "COMMAND",
	.summary = "tests",
	.options = specs,
	.stops_at_operand = true};

/* The outcome of one command line. */
struct outcome {
	enum options_result result;
	struct values values;
	char operands[128]; /* with a bar behind each */
	char said[512];	    /* on stderr */
};

static void read_back(FILE *f, char *to, size_t bytes)
{
	size_t n;

	rewind(f);
	n = fread(to, 1, bytes - 1, f);
	to[n] = 0;
	fclose(f);
}

/* `line` is cut at its blanks. */
static struct outcome parse(const struct command *command, const char *line)
{
	struct outcome o = {.values = {.hz = 99}};
	char copy[256], *save = NULL, *words[32], **argv = words;
	int argc = 0, kept = dup(STDERR_FILENO);
	FILE *said = tmpfile();

	if (!said || kept < 0)
		abort();
	snprintf(copy, sizeof(copy), "%s %s", command->name, line);
	for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save))
		words[argc++] = w;
	words[argc] = NULL;
	fflush(stderr);
	dup2(fileno(said), STDERR_FILENO);
	o.result = options_parse(command, &o.values, &argc, &argv, NULL);
	fflush(stderr);
	dup2(kept, STDERR_FILENO);
	close(kept);
	read_back(said, o.said, sizeof(o.said));
	if (o.result != OPTIONS_RUN)
		return o;
	CHECK(!argv[argc]);
	for (int i = 0; i < argc; i++) {
		strcat(o.operands, argv[i]);
		strcat(o.operands, "|");
	}
	/* `copy` goes away: keep the text itself */
	if (o.values.output)
		o.values.output = strdup(o.values.output);
	return o;
}

static void fails_with(const char *line, const char *sentence)
{
	struct outcome o = parse(&mixed, line);
	char expected[256];

	snprintf(expected, sizeof(expected), "weir: mixed: %s ('weir help mixed' tells more)\n",
		sentence);
	CHECK_EQ(o.result, OPTIONS_USAGE);
	CHECK_STR(o.said, expected);
	free((void *)(uintptr_t)o.values.output);
}

static void outcome_is(const struct command *command, const char *line, struct values expected,
	const char *operands)
{
	struct outcome o = parse(command, line);

	CHECK_EQ(o.result, OPTIONS_RUN);
	CHECK_STR(o.said, "");
	CHECK_EQ(o.values.all, expected.all);
	CHECK_EQ(o.values.brief, expected.brief);
	CHECK_EQ(o.values.hz, expected.hz);
	CHECK(o.values.seconds == expected.seconds && o.values.share == expected.share);
	CHECK_EQ(!o.values.output, !expected.output);
	if (expected.output)
		CHECK_STR(o.values.output, expected.output);
	CHECK_STR(o.operands, operands);
	free((void *)(uintptr_t)o.values.output);
}

static void test_nothing(void)
{
	outcome_is(&mixed, "", (struct values){.hz = 99}, "");
	outcome_is(&stopping, "", (struct values){.hz = 99}, "");
}

static void test_letters(void)
{
	outcome_is(&mixed, "-a -b -o out -f 50", (struct values){true, true, "out", 50, 0, 0}, "");
	outcome_is(&mixed, "-ab", (struct values){true, true, NULL, 99, 0, 0}, "");
	outcome_is(&mixed, "-abf50", (struct values){true, true, NULL, 50, 0, 0}, "");
	outcome_is(&mixed, "-bof50 x", (struct values){false, true, "f50", 99, 0, 0}, "x|");
	outcome_is(&mixed, "-ao x y", (struct values){true, false, "x", 99, 0, 0}, "y|");
}

static void test_long(void)
{
	outcome_is(&mixed, "--all --output=x=y --hz 7 --for=0.25",
		(struct values){true, false, "x=y", 7, 0.25, 0}, "");
	outcome_is(&mixed, "--output= x", (struct values){false, false, "", 99, 0, 0}, "x|");
	outcome_is(&mixed, "--output --all", (struct values){false, false, "--all", 99, 0, 0}, "");
}

static void test_last_wins(void)
{
	outcome_is(&mixed, "-o one -f 1 --output two --hz=2",
		(struct values){false, false, "two", 2, 0, 0}, "");
}

static void test_operands(void)
{
	outcome_is(&mixed, "one -a two - -b three", (struct values){true, true, NULL, 99, 0, 0},
		"one|two|-|three|");
	outcome_is(
		&mixed, "one -a -- -b --", (struct values){true, false, NULL, 99, 0, 0}, "one|-b|--|");
	outcome_is(&mixed, "--", (struct values){.hz = 99}, "");
}

static void test_stops(void)
{
	outcome_is(&stopping, "-a ls -b -o x -- y", (struct values){true, false, NULL, 99, 0, 0},
		"ls|-b|-o|x|--|y|");
	outcome_is(&stopping, "-a -- -b ls", (struct values){true, false, NULL, 99, 0, 0}, "-b|ls|");
	outcome_is(
		&stopping, "-a -- ls -- x", (struct values){true, false, NULL, 99, 0, 0}, "ls|--|x|");
}

static void test_unknown(void)
{
	fails_with("-z", "unknown option '-z'");
	fails_with("-az", "unknown option '-z'");
	fails_with("--zap", "unknown option '--zap'");
	fails_with("--zap=1", "unknown option '--zap'");
	fails_with("--al", "unknown option '--al'; is it '--all'?"); /* no abbreviations */
	fails_with("--alls", "unknown option '--alls'; is it '--all'?");
	fails_with("--outptu=x", "unknown option '--outptu'; is it '--output'?");
	fails_with("---", "unknown option '---'");
	fails_with("--=x", "unknown option '--'");
	fails_with("--a", "unknown option '--a'");
}

static void test_missing_value(void)
{
	fails_with("-o", "-o needs a value (FILE)");
	fails_with("-ao", "-o needs a value (FILE)");
	fails_with("x --hz", "--hz needs a value (N)");
	fails_with("--for", "--for needs a value (S)");
	fails_with("--all=yes", "--all takes no value");
	fails_with("--all=", "--all takes no value");
}

static void test_numbers(void)
{
	outcome_is(&mixed, "--hz=18446744073709551615", (struct values){.hz = UINT64_MAX}, "");
	outcome_is(&mixed, "--hz=010", (struct values){.hz = 10}, "");
	fails_with(
		"--hz=18446744073709551616", "--hz: '18446744073709551616' is not a whole number");
	fails_with("-f -1", "-f: '-1' is not a whole number");
	fails_with("-f 1k", "-f: '1k' is not a whole number");
	fails_with("-f 0x10", "-f: '0x10' is not a whole number");
	fails_with("-f 1.5", "-f: '1.5' is not a whole number");
	fails_with("--hz=", "--hz: '' is not a whole number");
	fails_with("--hz=+5", "--hz: '+5' is not a whole number"); /* plain decimal */
	fails_with("--hz=\t-5", "--hz: '\t-5' is not a whole number");
}

static void test_seconds(void)
{
	outcome_is(&mixed, "--for 0", (struct values){.hz = 99, .seconds = 0}, "");
	outcome_is(&mixed, "--for 1e3", (struct values){.hz = 99, .seconds = 1000}, "");
	fails_with("--for -0.5", "--for: '-0.5' is not a number of seconds");
	fails_with("--for nan", "--for: 'nan' is not a number of seconds");
	fails_with("--for inf", "--for: 'inf' is not a number of seconds");
	fails_with("--for 1e10", "--for: '1e10' is not a number of seconds");
	fails_with("--for 5s", "--for: '5s' is not a number of seconds");
	fails_with("--for=", "--for: '' is not a number of seconds");
	outcome_is(&mixed, "--share 2.5", (struct values){.hz = 99, .share = 2.5}, "");
	fails_with("--share abc", "--share: 'abc' is not a number");
}

static void test_help_text(void)
{
	char text[2048];
	FILE *out = tmpfile();

	if (!out)
		abort();
	options_print_help(&mixed, out);
	read_back(out, text, sizeof(text));
	CHECK(!strncmp(text, "weir mixed: tests\n", 18));
	CHECK(strstr(text, "  weir mixed [OPTIONS] FILE\n  weir mixed -o FILE\n"));
	CHECK(strstr(text, "  -a, --all "));
	CHECK(strstr(text, "  -b  "));
	CHECK(strstr(text, "  -o, --output FILE "));
	CHECK(strstr(text, "      --for S "));
	CHECK(strstr(text, "  -h, --help "));
}

/* The help goes to stdout, which is the verdicts' as well: sent to /dev/null for the while. */
static void test_help_ends(void)
{
	int kept = dup(STDOUT_FILENO);
	struct outcome o, bundled;

	fflush(stdout);
	if (!freopen("/dev/null", "w", stdout))
		abort();
	o = parse(&mixed, "--help --zap");
	bundled = parse(&mixed, "-ah");
	fflush(stdout);
	dup2(kept, STDOUT_FILENO);
	close(kept);
	CHECK_EQ(o.result, OPTIONS_HELP);
	CHECK_EQ(bundled.result, OPTIONS_HELP);
	CHECK_STR(o.said, "");
}

static void test_every_command(void)
{
	size_t n = 0;

	for (; commands[n]; n++) {
		CHECK(command_find(commands[n]->name) == commands[n]);
		for (const struct option_spec *o = commands[n]->options;
			o && (o->letter || o->name); o++) {
			CHECK_EQ(o->kind == OPTION_FLAG, o->argument == NULL);
			CHECK(o->help && *o->help);
			for (const struct option_spec *p = commands[n]->options; p < o; p++) {
				CHECK(!o->letter || o->letter != p->letter);
				CHECK(!o->name || !p->name || strcmp(o->name, p->name));
			}
		}
	}
	CHECK(n > 0);
	CHECK(!command_find("no-such-command"));
	CHECK(!command_find(""));
}

int main(void)
{
	static const struct test tests[] = {
		{"without arguments the defaults stay", test_nothing},
		{"letters can be bundled, and a value attached to the last", test_letters},
		{"long options take their value behind = or as the next word", test_long},
		{"the last of several values wins", test_last_wins},
		{"operands stand anywhere, and after -- everything is one", test_operands},
		{"the first operand ends the options where a command line follows", test_stops},
		{"an unknown option is named as it was written", test_unknown},
		{"a missing value and one too many are told", test_missing_value},
		{"numbers are plain decimal and fit into 64 bits", test_numbers},
		{"seconds are at least 0 and finite", test_seconds},
		{"the help lists every option", test_help_text},
		{"asking for help ends the parsing", test_help_ends},
		{"every command's option table is well-formed", test_every_command},
	};

	return RUN_TESTS(tests);
}
