/* SPDX-License-Identifier: MIT */
#include "cmd/options.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/nearest_names.h"
#include "base/word_list.h"

int command_fail(const struct err *err)
{
	fprintf(stderr, "weir: %s\n", err->text);
	return STATUS_FAILED;
}

int options_usage_error(const struct command *command, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "weir: %s: ", command->name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, " ('weir help %s' tells more)\n", command->name);
	return STATUS_USAGE;
}

const char *options_is_it(const struct nearest_names *near, char text[OPTIONS_IS_IT_BYTES])
{
	int n = snprintf(text, OPTIONS_IS_IT_BYTES, "; is it ");

	if (!nearest_names_text(near, text + n, OPTIONS_IS_IT_BYTES - (size_t)n - 1))
		return "";
	return strcat(text, "?");
}

int options_choose(const struct command *command, const char *option, const char *value,
	const char *const *names, size_t *i)
{
	struct nearest_names near = {.wanted = value};
	char is_it[OPTIONS_IS_IT_BYTES];
	struct buf known = {0};

	for (*i = 0; names[*i]; ++*i)
		if (!strcmp(names[*i], value))
			return STATUS_DONE;
	for (const char *const *name = names; *name; name++) {
		nearest_names_add(&near, *name);
		buf_printf(&known, "%s%s", name == names ? "" : ", ", *name);
	}
	options_usage_error(command, "%s: '%s' is not one of %s%s", option, value, buf_text(&known),
		options_is_it(&near, is_it));
	buf_release(&known);
	return STATUS_USAGE;
}

static void print_option(const struct option_spec *o, FILE *out)
{
	char left[64];
	int n = 0;

	if (o->letter)
		n += snprintf(left, sizeof(left), "-%c%s", o->letter, o->name ? ", " : "");
	else
		n += snprintf(left, sizeof(left), "    ");
	if (o->name)
		n += snprintf(left + n, sizeof(left) - (size_t)n, "--%s", o->name);
	if (o->argument)
		snprintf(left + n, sizeof(left) - (size_t)n, " %s", o->argument);
	fprintf(out, "  %-26s %s\n", left, o->help);
}

const char option_old_name[] = "an old name";

void options_print_help(const struct command *command, FILE *out)
{
	const char *line = command->synopsis;

	fprintf(out, "weir %s: %s\n\n", command->name, command->summary);
	while (line) {
		const char *end = strchr(line, '\n');
		int n = end ? (int)(end - line) : (int)strlen(line);

		fprintf(out, "  weir %s %.*s\n", command->name, n, line);
		line = end ? end + 1 : NULL;
	}
	fputs("\n", out);
	for (const struct option_spec *o = command->options; o && (o->letter || o->name); o++)
		if (o->help != option_old_name)
			print_option(o, out);
	fprintf(out, "  %-26s %s\n", "-h, --help", "this text");
	if (command->details)
		fprintf(out, "\n%s", command->details);
}

static const struct option_spec *find_long(
	const struct command *command, const char *name, size_t n)
{
	for (const struct option_spec *o = command->options; o && (o->letter || o->name); o++)
		if (o->name && strlen(o->name) == n && !memcmp(o->name, name, n))
			return o;
	return NULL;
}

static const struct option_spec *find_letter(const struct command *command, char letter)
{
	for (const struct option_spec *o = command->options; o && (o->letter || o->name); o++)
		if (o->letter && o->letter == letter)
			return o;
	return NULL;
}

static bool set_number(void *to, const char *value)
{
	char *end;
	uint64_t n;

	errno = 0;
	n = strtoull(value, &end, 10);
	if (errno || end == value || *end || *value < '0' || *value > '9')
		return false;
	*(uint64_t *)to = n;
	return true;
}

static bool set_decimal(void *to, const char *value)
{
	char *end;
	double d = strtod(value, &end);

	if (end == value || *end || !(d >= 0) || d > 1e9)
		return false;
	*(double *)to = d;
	return true;
}

static const char *const value_names[] = {
	[OPTION_NUMBER] = "whole number",
	[OPTION_SECONDS] = "number of seconds",
	[OPTION_DECIMAL] = "number",
};

/* `shown` is the option as the user wrote it. */
static enum options_result set_value(const struct command *command, const struct option_spec *o,
	void *into, const char *value, const char *shown)
{
	void *to = (char *)into + o->offset;
	bool good = true;

	if (o->kind == OPTION_TEXT_ONCE && *(const char **)to)
		return options_usage_error(command, "%s: is given twice: '%s' and '%s'", shown,
			*(const char **)to, value);
	if (o->kind == OPTION_FLAG)
		*(bool *)to = true;
	else if (o->kind == OPTION_TEXT || o->kind == OPTION_TEXT_ONCE)
		*(const char **)to = value;
	else if (o->kind == OPTION_TEXTS)
		vec_push((struct option_texts *)to, value);
	else if (o->kind == OPTION_NUMBER)
		good = set_number(to, value);
	else
		good = set_decimal(to, value);
	return good ? OPTIONS_RUN
		    : options_usage_error(
			      command, "%s: '%s' is not a %s", shown, value, value_names[o->kind]);
}

struct parse {
	const struct command *command;
	void *into;
	int argc;
	char **argv;
	int i; /* the argument being looked at */
	uint64_t given;
};

static enum options_result take(
	struct parse *p, const struct option_spec *o, const char *attached, const char *shown)
{
	p->given |= UINT64_C(1) << (o - p->command->options);
	if (o->kind == OPTION_FLAG && attached)
		return options_usage_error(p->command, "%s takes no value", shown);
	if (o->kind != OPTION_FLAG && !attached) {
		if (p->i + 1 >= p->argc)
			return options_usage_error(
				p->command, "%s needs a value (%s)", shown, o->argument);
		attached = p->argv[++p->i];
	}
	return set_value(p->command, o, p->into, attached, shown);
}

/* `name` is as it was written, with its dashes; they say nothing about what is near. */
static enum options_result unknown_option(const struct command *command, const char *name, size_t n)
{
	char *wanted = mem_strndup(name, n), is_it[OPTIONS_IS_IT_BYTES];
	struct nearest_names near = {.wanted = wanted + 2};

	for (const struct option_spec *o = command->options; o && (o->letter || o->name); o++)
		if (o->name && o->help != option_old_name)
			nearest_names_add(&near, o->name);
	for (size_t i = 0; i < near.n; i++) {
		char bare[NEAREST_NAME_BYTES - 2];

		snprintf(bare, sizeof(bare), "%s", near.v[i].name);
		snprintf(near.v[i].name, sizeof(near.v[i].name), "--%s", bare);
	}
	options_usage_error(command, "unknown option '%s'%s", wanted, options_is_it(&near, is_it));
	free(wanted);
	return OPTIONS_USAGE;
}

static enum options_result parse_long(struct parse *p, const char *arg)
{
	const char *equals = strchr(arg, '=');
	size_t n = equals ? (size_t)(equals - arg) : strlen(arg);
	const struct option_spec *o = find_long(p->command, arg + 2, n - 2);
	char shown[64];

	if (!strcmp(arg, "--help"))
		return OPTIONS_HELP;
	if (!o)
		return unknown_option(p->command, arg, n);
	snprintf(shown, sizeof(shown), "--%s", o->name);
	return take(p, o, equals ? equals + 1 : NULL, shown);
}

static enum options_result parse_letters(struct parse *p, const char *arg)
{
	for (const char *c = arg + 1; *c; c++) {
		const struct option_spec *o = find_letter(p->command, *c);
		char shown[3] = {'-', *c, 0};
		enum options_result result;

		if (*c == 'h' && !o)
			return OPTIONS_HELP;
		if (!o)
			return options_usage_error(p->command, "unknown option '-%c'", *c);
		if (o->kind != OPTION_FLAG)
			return take(p, o, c[1] ? c + 1 : NULL, shown);
		result = take(p, o, NULL, shown);
		if (result != OPTIONS_RUN)
			return result;
	}
	return OPTIONS_RUN;
}

enum options_result options_parse(
	const struct command *command, void *into, int *argc, char ***argv, uint64_t *given)
{
	struct parse p = {command, into, *argc, *argv, 1, 0};
	int n_operands = 0;

	for (; p.i < p.argc; p.i++) {
		char *arg = p.argv[p.i];
		enum options_result result;

		if (!strcmp(arg, "--")) {
			p.i++;
			break;
		}
		if (arg[0] != '-' || !arg[1]) {
			if (command->stops_at_operand)
				break;
			p.argv[n_operands++] = arg; /* never overtakes p.i */
			continue;
		}
		result = arg[1] == '-' ? parse_long(&p, arg) : parse_letters(&p, arg);
		if (result == OPTIONS_HELP)
			options_print_help(command, stdout);
		if (result != OPTIONS_RUN)
			return result;
	}
	while (p.i < p.argc)
		p.argv[n_operands++] = p.argv[p.i++];
	p.argv[n_operands] = NULL;
	*argc = n_operands;
	if (given)
		*given = p.given;
	return OPTIONS_RUN;
}

bool options_begin_given(const struct command *command, void *into, int *argc, char ***argv,
	int *status, uint64_t *given)
{
	enum options_result result = options_parse(command, into, argc, argv, given);

	*status = result == OPTIONS_USAGE ? STATUS_USAGE : STATUS_DONE;
	return result == OPTIONS_RUN;
}

bool options_begin(const struct command *command, void *into, int *argc, char ***argv, int *status)
{
	return options_begin_given(command, into, argc, argv, status, NULL);
}

/* Those that know the option (NULL: all): "flat", "flat and tree", "steps, branches and mix". */
static void put_users(char *to, size_t max, const char *option, const char *last,
	const struct option_user *users, size_t n)
{
	const char *const after[] = {"", last, ", "};
	size_t n_left = 0, used = 0;

	for (size_t i = 0; i < n; i++)
		n_left += !option || word_list_has(users[i].options, option);
	for (size_t i = 0; i < n && used < max; i++)
		if (!option || word_list_has(users[i].options, option)) {
			n_left--;
			used += (size_t)snprintf(to + used, max - used, "%s%s", users[i].name,
				after[n_left < 2 ? n_left : 2]);
		}
}

int options_choose_user(const struct command *command, uint64_t given, const char *name,
	const char *what, const struct option_user *users, size_t n)
{
	struct nearest_names near = {.wanted = name};
	char known[256] = "", is_it[OPTIONS_IS_IT_BYTES];
	size_t user = 0;

	while (user < n && strcmp(users[user].name, name))
		user++;
	if (user == n) {
		put_users(known, sizeof(known), NULL, ", ", users, n);
		for (size_t i = 0; i < n; i++)
			nearest_names_add(&near, users[i].name);
		return -options_usage_error(command, "'%s' is not a %s (%s)%s", name, what, known,
			options_is_it(&near, is_it));
	}
	for (size_t i = 0; given >> i; i++) {
		const char *option = command->options[i].name;

		if (!(given >> i & 1) || word_list_has(users[user].options, option))
			continue;
		put_users(known, sizeof(known), option, " and ", users, n);
		return -options_usage_error(
			command, "--%s is not an option of %s (but of %s)", option, name, known);
	}
	return (int)user;
}

bool option_parse_time(const char *text, uint64_t *time)
{
	static const struct {
		const char *suffix;
		double ns;
	} units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
	char *end;
	double value;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*time = strtoull(text, &end, 10);
	if (!*end)
		return !errno;
	value = strtod(text, &end);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].suffix))
			continue;
		*time = value * units[i].ns < 1e19 ? (uint64_t)llround(value * units[i].ns) : 0;
		return value * units[i].ns < 9e18;
	}
	return false;
}

static bool has_pid(const pid_t *pids, size_t n, pid_t pid)
{
	for (size_t i = 0; i < n; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

int pid_list_parse(
	const struct command *command, const char *list, pid_t pids[PID_LIST_MAX], size_t *n)
{
	int status = pid_list_parse_there(command, list, pids, n);

	if (!status && has_pid(pids, *n, getpid()))
		return options_usage_error(command, "-p: %d is weir itself", getpid());
	return status;
}

int pid_list_parse_there(
	const struct command *command, const char *list, pid_t pids[PID_LIST_MAX], size_t *n)
{
	const char *p = list;

	*n = 0;
	while (*p) {
		char *end;
		long pid;

		errno = 0;
		pid = strtol(p, &end, 10);
		if (errno || end == p || pid <= 0 || pid > INT32_MAX || (*end && *end != ','))
			return options_usage_error(
				command, "-p: '%s' is not a list of process ids", list);
		if (*n == PID_LIST_MAX)
			return options_usage_error(
				command, "-p: more than %d processes", PID_LIST_MAX);
		if (!has_pid(pids, *n, (pid_t)pid))
			pids[(*n)++] = (pid_t)pid;
		p = *end ? end + 1 : end;
	}
	return *n ? 0 : options_usage_error(command, "-p: no process named");
}
