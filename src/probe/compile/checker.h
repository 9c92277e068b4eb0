/* SPDX-License-Identifier: MIT */
/* What the files of the checker know of each other; check.h is what others need. */
#ifndef WEIR_PROBE_COMPILE_CHECKER_H
#define WEIR_PROBE_COMPILE_CHECKER_H

#include "base/arena.h"
#include "probe/compile/check.h"

#define CHECK_STRING_MAX   10240 /* bytes of a string or buffer */
#define CHECK_VALUE_MAX	   4096	 /* bytes of a structure or array held by value */
#define CHECK_DEPTH_MAX	   400	 /* of nested expressions and statements */
#define CHECK_JOIN_WORDS   16	 /* that join() takes */
#define CHECK_JOIN_BYTES   256	 /* of each */
#define CHECK_FIELDS_MAX   256	 /* of a structure or array that is printed or kept */
#define CHECK_HAYSTACK_MAX 4096	 /* bytes of a string that is searched */
#define CHECK_SEARCH_MAX   65536 /* bytes of a string times words that are looked for in it */
#define CHECK_TUPLE_MAX	   64
#define CHECK_SELF_MAX	   4096 /* bytes of all thread-locals */

/* --- check.c: messages ------------------------------------------------------------------------ */
/* Gives false, and check_refuse TYPE_BAD, so that callers may return it. */
bool check_error(struct check_clause *c, struct place place, const char *tag, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
const struct type *check_refuse(struct check_clause *c, struct place place, const char *tag,
	const char *fmt, ...) __attribute__((format(printf, 4, 5)));
void check_warning(struct check_clause *c, struct place place, const char *tag, const char *fmt,
	...) __attribute__((format(printf, 4, 5)));
/* To the error before it; gives TYPE_BAD. */
const struct type *check_hint(struct check_clause *c, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The name of a type for a message, owned by the session's arena. */
const char *check_type_text(struct check_session *s, const struct type *type);
static inline const struct type *check_bad(struct check_clause *c)
{
	return types_bad(c->session->types[c->mode]);
}
static inline struct types *check_types(struct check_clause *c)
{
	return c->session->types[c->mode];
}
static inline const char *type_text(struct check_clause *c, const struct type *type)
{
	return check_type_text(c->session, type);
}
static inline const struct type *check_void(struct check_clause *c)
{
	return types_void(check_types(c));
}
static inline const struct type *check_int(struct check_clause *c, uint32_t bytes, bool is_signed)
{
	return types_int(check_types(c), bytes, is_signed);
}
static inline bool check_is_like_0_17(const struct check_clause *c)
{
	return c->session->stream->like == STREAM_LIKE_0_17;
}
/* Of what holds or not; a number once. */
static inline const struct type *check_bool(struct check_clause *c)
{
	return check_is_like_0_17(c) ? check_int(c, 8, true) : types_bool(check_types(c));
}
/* Of a name, call, variable or map that was checked. */
static inline struct meaning *check_meaning(const struct check_clause *c, const struct expr *e)
{
	return (struct meaning *)e->meaning[c->mode];
}
static inline enum mode check_other(enum mode mode)
{
	return mode == MODE_32 ? MODE_64 : MODE_32;
}
/* "32-bit". */
const char *check_mode_text(enum mode mode);
/* False, and a message once, when the tree is nested too deeply. */
bool check_enter(struct check_clause *c, struct place place);
static inline void check_leave(struct check_clause *c)
{
	c->depth--;
}

/* Offers `candidate` as what `name` may have meant; the best so far is in *best. */
struct nearest {
	const char *name;
	const char *best;
	uint32_t distance;
};
void nearest_offer(struct nearest *n, const char *candidate);

/* What finds the type and the meaning of an expression; the type is also given back. */
typedef const struct type *check_fn(struct check_clause *c, struct expr *e);

/* --- check_expr.c ----------------------------------------------------------------------------- */
check_fn check_expr; /* of any kind */
/* The same for one whose value is wanted: neither nothing nor an aggregation. */
check_fn check_value;
/* `what` begins the sentence when it is no integer (or pointer): "the length of buf()". */
bool check_integer(struct check_clause *c, struct expr *e, const char *what);
bool check_scalar(struct check_clause *c, struct expr *e, const char *what);
/* Constants: an integer that is known now. */
bool check_constant(struct check_clause *c, struct expr *e, const char *what, int64_t *out);
/* Gives the type. */
const struct type *check_set_constant(
	struct check_clause *c, struct expr *e, const struct type *type, uint64_t value);
/* Type of a op b on two integers or pointers; reports what does not go together at `e`. */
const struct type *check_arithmetic(
	struct check_clause *c, struct expr *e, enum op op, struct expr *a, struct expr *b);
struct meaning *check_mean(struct check_clause *c, struct expr *e, enum meaning_kind kind);

uint64_t check_text_bytes(const struct type *type);
/* False, and a message, for an array of char that is too long for a string. */
bool check_text_fits(struct check_clause *c, const struct type *type, struct place place);

/* --- check_tuple.c ---------------------------------------------------------------------------- */
check_fn check_tuple;
/* What reading field i gives. */
const struct type *check_tuple_field(struct check_clause *c, const struct type *tuple, uint32_t i);
const struct type *check_tuple_member(
	struct check_clause *c, struct expr *e, const struct type *tuple);
/* For check_join. */
const struct type *check_join_tuples(
	struct check_clause *c, const struct type *have, const struct type *add);

/* --- check_memory.c --------------------------------------------------------------------------- */
check_fn check_deref, check_address, check_index, check_member, check_cast, check_sizeof,
	check_offsetof;
enum space check_space(const struct check_clause *c); /* of addresses that are plain numbers */
/* The type that a script names; an error is counted. */
const struct type *check_declared(
	struct check_clause *c, const struct decl_type *decl, enum space space);

/* --- check_name.c, check_args.c -------------------------------------------------------------- */
check_fn check_name;
/* "uprobe:a:f" for messages. */
const char *check_point_text(const struct check_clause *c);
/* sargN, retval. */
const struct type *check_stack_word(struct check_clause *c, struct expr *e, uint32_t i);
check_fn check_retval;
check_fn check_args_field; /* args.NAME: the EXPR_MEMBER */
/* "const char *" in a mode: a type of syscall_args(). */
const struct type *check_c_type(struct types *types, const char *text);
/* A structure by its tag; NULL when nobody knows it. */
const struct type *check_struct_named(struct types *types, const char *word, const char *tag);

/* --- known_constants.c: errors, signals, families, numbers of system calls */
bool check_known_constant(enum mode mode, const char *name, int64_t *value);

/* --- builtins.c ------------------------------------------------------------------------------- */
check_fn check_call, check_builtin_name; /* NULL when it is none */
/* The builtin that an unknown name may have meant; false when there is none. */
bool check_hint_builtin(struct check_clause *c, const struct expr *e);

/* --- check_format.c --------------------------------------------------------------------------- */
/* The literal format of a call and its values. */
bool check_format(struct check_clause *c, struct expr *e);
/* printf, cat, system: format and arguments, and in CHECK_FINAL the stream's format. */
void check_printf(struct check_clause *c, struct expr *e, enum format_kind kind);
/* Adds a format (or finds the same) and notes its number in the call's meaning. */
void check_add_format(struct check_clause *c, struct expr *e, const struct stream_format *format);
/* The shapes of `n` arguments from `args` on; NULL when one has none. */
struct shape **check_argument_shapes(struct check_clause *c, struct expr *args, uint32_t n);

/* --- check_variable.c ------------------------------------------------------------------------- */
check_fn check_local, check_self, check_assign, check_step;
/* A type for values of both; NULL when there is none. `added` is the second's expression. */
const struct type *check_join(struct check_clause *c, const struct type *have, bool have_weak,
	const struct type *add, const struct expr *added);
/* A new variable of a block (let, for), hiding others of that name; `node` of the tree declares it. */
struct variable *check_declare(
	struct check_clause *c, const char *name, struct place place, const void *node);
/* The end of the block c->scope: variables declared in it go out of sight. */
void check_close_block(struct check_clause *c);
/* An assignment's effect on a variable's type. */
const struct type *check_assign_variable(struct check_clause *c, struct variable *v,
	const struct type *type, const struct expr *value, struct place place, bool is_self);

/* --- check_map.c ------------------------------------------------------------------------------ */
check_fn check_map_read, check_map_assign, check_map_step;
/* What reading a map gives; its value is known. */
const struct type *check_map_value_type(struct check_clause *c, struct map_use *m);
/* The map of an EXPR_MAP, keys not looked at. */
struct map_use *check_map_of(struct check_clause *c, struct expr *e);
/* Checks keys, as many as are linked from `keys` on (0: a scalar map), and joins their shape. */
void check_map_keys(struct check_clause *c, struct map_use *m, struct expr *keys, uint32_t n,
	struct place place);

/* --- check_stmt.c ----------------------------------------------------------------------------- */
void check_stmts(struct check_clause *c, struct stmt *s);
check_fn check_block_value; /* EXPR_BLOCK */

#endif
