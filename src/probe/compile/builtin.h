/* SPDX-License-Identifier: MIT */
/*
 * The names and functions of the language: rows, each with what checks it and what makes its code.
 * A row stands below its functions, in the table of a file builtin_*.c; builtins.c lists those.
 */
#ifndef WEIR_PROBE_COMPILE_BUILTIN_H
#define WEIR_PROBE_COMPILE_BUILTIN_H

#include "probe/compile/checker.h"
#include "probe/compile/lower.h"
#include "probe/points/point_kind.h"

struct builtin {
	const char *name; /* aliases (quantize, copyinstr) are rows of their own */
	/* Of a function: "str(POINTER [, BYTES])". NULL: a name; () may follow it. */
	const char *form;
	uint8_t min_args, max_args;
	uint32_t points; /* a sum of enum point_trait: where it exists; 0 = everywhere */
	uint8_t bytes;	 /* an unsigned integer of so many, and nothing to check; or 0 */
	/* The type of `e`, the name or call, which means this row already; arguments are counted. */
	check_fn *check;
	/* One value, or 0 when it only has an effect; NULL: it lies in memory, or is aggregated. */
	ir_value (*lower)(struct lower *l, const struct expr *e);
	/* What lies in memory: n bytes of room. */
	void (*into)(struct lower *l, const struct expr *e, ir_mem mem, uint32_t at, uint32_t n);
	bool has_effect;  /* of one with a value: it may be called for what it does alone */
	const char *help; /* of a name: a phrase; of check_not_yet: what to do instead */
	int detail;	  /* for its functions: a format, a type, a helper of the kernel, ... */
	/* A hint where it does not exist; or NULL. */
	void (*not_here)(struct check_clause *c, struct expr *e);
	bool is_name; /* of a function without arguments: its () may be left out */
};

/* Tables, each up to a NULL name. */
extern const struct builtin name_builtins[], task_builtins[], stack_builtins[], output_builtins[],
	map_builtins[], text_builtins[], bytes_builtins[], value_builtins[], named_builtins[],
	message_builtins[], type_builtins[];

/* The one behind `b` in all tables, or the first; NULL behind the last. `table` is for the walk. */
const struct builtin *builtin_next(const struct builtin *b, size_t *table);

/* The row that a name or call means. */
static inline const struct builtin *check_row(const struct check_clause *c, const struct expr *e)
{
	return check_meaning(c, e)->builtin;
}
static inline const struct builtin *lower_row(const struct lower *l, const struct expr *e)
{
	return meaning_of(l, e)->builtin;
}

/* Adds the form of a function as a hint; gives TYPE_BAD. */
const struct type *builtin_hint_form(struct check_clause *c, const struct expr *e);
/* Whether argument `a` of call `e` is a literal text. */
bool check_literal(struct check_clause *c, struct expr *e, struct expr *a);
/* A word that is the only argument and no name of the script, as in nsecs(boot): its place in
 * `words` (up to NULL); 0 without an argument, -1 and a message when it is another. */
int check_word(struct check_clause *c, struct expr *e, const char *const *words);
/* Number of a text among those that values refer to; in CHECK_FINAL it is added. */
uint32_t check_stream_text(struct check_clause *c, const char *text);
/* Puts a record of that format into a ring; its arguments are from `args` on. */
void lower_record(struct lower *l, const struct expr *e, uint32_t format, const struct expr *args);
/* For calls that change the machine: with --unsafe only. */
bool check_is_allowed(struct check_clause *c, struct expr *e);
/* How a call of tseries() takes in values; false: its last argument is no word that it knows. */
bool builtin_tseries_function(const struct expr *call, enum tseries_function *out);
/* The length of a text or buffer, a constant up to the longest possible. */
bool check_length(
	struct check_clause *c, struct expr *a, const char *what, int64_t least, int64_t *out);
check_fn check_not_yet; /* says that there is no such function */

#endif
