/* SPDX-License-Identifier: MIT */
/*
 * Option tables. One table a command yields the parser, the -h text and (compared by a test) the
 * manual page's option list.
 */
#ifndef WEIR_CMD_OPTIONS_H
#define WEIR_CMD_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

enum option_kind {
	OPTION_FLAG,	  /* bool */
	OPTION_TEXT,	  /* const char *, borrowed from argv; the last one wins */
	OPTION_TEXT_ONCE, /* the same; a second one is wrong usage */
	OPTION_TEXTS,	  /* struct option_texts; each one counts */
	OPTION_NUMBER,	  /* uint64_t, plain decimal */
	OPTION_SECONDS,	  /* double, at least 0 */
	OPTION_DECIMAL	  /* the same of something else */
};

struct option_texts {
	const char **v; /* owned; the texts are borrowed from argv */
	size_t n, cap;
};

/* The help of a name that is still accepted, and that -h does not show. */
extern const char option_old_name[];

struct option_spec {
	char letter;	  /* 0 = none */
	const char *name; /* long name without dashes; NULL = none */
	enum option_kind kind;
	const char *argument; /* "FILE", ...; NULL for flags */
	const char *help;     /* one line; or option_old_name */
	size_t offset;	      /* of the value in the command's options struct */
};

struct command {
	const char *name;
	const char *synopsis;		   /* one or more lines without the leading "weir NAME " */
	const char *summary;		   /* one line for `weir help` */
	const struct option_spec *options; /* ends with an all-zero row */
	bool stops_at_operand; /* the first operand ends the options (a command line follows) */
	/* Further text for -h, NULL = none. */
	const char *details;
	/* argv[0] is the command's name. Returns the exit status. */
	int (*run)(const struct command *command, int argc, char **argv);
};

enum exit_status { STATUS_DONE = 0, STATUS_FAILED = 1, STATUS_USAGE = 2, STATUS_LOSSES = 3 };

enum options_result {
	OPTIONS_RUN,		     /* go on; operands are in argv[0 .. argc-1] */
	OPTIONS_HELP,		     /* -h was given and answered: exit 0 */
	OPTIONS_USAGE = STATUS_USAGE /* wrong usage, said on stderr */
};

/* Parses argv[1..]; on OPTIONS_RUN *argc and *argv describe what is left (operands only, without
 * "--"), and *given (may be NULL) which options were given: bit i is row i of the table. */
enum options_result options_parse(
	const struct command *command, void *into, int *argc, char ***argv, uint64_t *given);

/* The same for a command's run function: false when there is nothing left to do but to return
 * *status. */
bool options_begin(const struct command *command, void *into, int *argc, char ***argv, int *status);

bool options_begin_given(const struct command *command, void *into, int *argc, char ***argv,
	int *status, uint64_t *given);

/* The options that were given (the bits of options_parse), with their values, as arguments again, but for those with a
 * long name in `without` (separated by blanks). The texts are the caller's. */
struct option_value {
	const struct option_spec *option;
	char *text; /* "--name=value"; owned */
};
struct option_values {
	struct option_value *v;
	size_t n, cap;
};
void options_again(const struct command *command, const void *from, uint64_t given, const char *without,
	struct option_values *out);

/* What the first operand of a command may be (a kind of report, a format), and the long names of
 * those of the command's options that it knows, separated by blanks. */
struct option_user {
	const char *name;
	const char *options;
};
/* The index of the user of this name; negative, with what is wrong said on stderr, when there is
 * none ("'NAME' is not a WHAT"), or when an option was given that it does not know, with those of
 * the n users that do. */
int options_choose_user(const struct command *command, uint64_t given, const char *name,
	const char *what, const struct option_user *users, size_t n);

/* "weir: COMMAND: WHAT (weir help COMMAND tells more)" on stderr; returns STATUS_USAGE. */
int options_usage_error(const struct command *command, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Which of the names (ended by a NULL) the value of an option is, in *i; a usage error that tells
 * them when it is none. */
int options_choose(const struct command *command, const char *option, const char *value,
	const char *const *names, size_t *i);

struct nearest_names;
#define OPTIONS_IS_IT_BYTES 512
/* "; is it 'flat' or 'tree'?" for the end of a sentence; "" when nothing is near. */
const char *options_is_it(const struct nearest_names *near, char text[OPTIONS_IS_IT_BYTES]);

void options_print_help(const struct command *command, FILE *out);

/* "1500", "1500ns", "1.5us", "2ms", "3s", in ns; false when it is none of these. */
bool option_parse_time(const char *text, uint64_t *time);

#define PID_LIST_MAX 1024
/* The processes that -p names, a comma list; one that is named twice is in it once. Wrong usage is
 * said here, and the result is then the exit status. */
int pid_list_parse(
	const struct command *command, const char *list, pid_t pids[PID_LIST_MAX], size_t *n);
/* The same for processes of another machine, where one may have our number. */
int pid_list_parse_there(
	const struct command *command, const char *list, pid_t pids[PID_LIST_MAX], size_t *n);

/* All commands, ended by a NULL; the one visible list (commands.c). */
extern const struct command *const commands[];
const struct command *command_find(const char *name);

struct err;
/* "weir: SENTENCE" on stderr; returns STATUS_FAILED. */
int command_fail(const struct err *err);

#endif
