/* SPDX-License-Identifier: MIT */
/* Functions of the language: their arguments and what they give. The table is in builtins.c. */
#include <signal.h>
#include <string.h>

#include "probe/compile/checker.h"

#define LHIST_STEPS_MAX 1000
#define SIGNAL_MAX	64

static const struct type *check_function(
	struct check_clause *c, struct expr *e, const struct function_def *f);

static const struct type *void_type(struct check_clause *c)
{
	return types_void(check_types(c));
}

static const struct type *unsigned64(struct check_clause *c)
{
	return types_int(check_types(c), 8, false);
}

static const struct function_def *function_find(const char *name)
{
	for (const struct function_def *f = function_defs; f->name; f++) {
		if (!strcmp(f->name, name))
			return f;
	}
	return NULL;
}

static void unknown_function(struct check_clause *c, struct expr *e)
{
	struct nearest n = {.name = e->name};

	check_error(c, e->place, "unknown-function", "there is no function %s()", e->name);
	for (const struct function_def *f = function_defs; f->name; f++)
		nearest_offer(&n, f->name);
	if (n.best)
		check_hint(c, "did you mean %s()?", n.best);
	for (const struct builtin *b = builtins; b->name && !n.best; b++) {
		if (!strcmp(b->name, e->name)) {
			check_hint(c, "'%s' is a name: write it without ()", e->name);
			return;
		}
	}
}

const struct type *check_call(struct check_clause *c, struct expr *e)
{
	const struct function_def *f = function_find(e->name);

	if (!f) {
		unknown_function(c, e);
		return check_bad(c);
	}
	check_mean(c, e, MEANING_FUNCTION)->function = f;
	if (e->n_args < f->min_args || e->n_args > f->max_args) {
		check_error(c, e->place, "arguments", "%s() has too %s arguments", e->name,
			e->n_args < f->min_args ? "few" : "many");
		check_hint(c, "%s", f->form);
		return check_bad(c);
	}
	if (!check_is_at(c, f->points)) {
		check_error(c, e->place, "not-here", "%s() does not exist at %s", e->name,
			check_point_text(c));
		return check_bad(c);
	}
	return check_function(c, e, f);
}

/* --- output ----------------------------------------------------------------------------------- */

/* A map as a whole: no key after it. NULL when it is something else. */
static struct map_use *whole_map(struct check_clause *c, struct expr *e, struct expr *a)
{
	struct map_use *m;

	if (a->kind != EXPR_MAP || a->args) {
		check_error(c, a->place, "arguments", "%s() takes a map without a key", e->name);
		return NULL;
	}
	m = check_map_of(c, a);
	if (m)
		m->is_read = true;
	a->type[c->mode] = void_type(c);
	return m;
}

static const struct type *map_action(struct check_clause *c, struct expr *e, enum format_kind kind)
{
	struct map_use *m = whole_map(c, e, e->args);
	struct stream_format f = {.kind = kind, .n_args = e->n_args - 1};
	uint32_t n_errors = c->n_errors;

	for (struct expr *a = e->args->next; a; a = a->next) {
		int64_t v;

		if (check_constant(c, a, "a number of print()", &v) && v < 0)
			check_error(c, a->place, "range", "a number of print() cannot be negative");
	}
	if (!m || c->n_errors != n_errors)
		return check_bad(c);
	f.map_i = m->number;
	f.args = check_argument_shapes(c, e->args->next, f.n_args);
	if (f.args)
		check_add_format(c, e, &f);
	return void_type(c);
}

static const struct type *check_print(struct check_clause *c, struct expr *e)
{
	struct stream_format f = {.kind = FORMAT_PRINT, .n_args = 1};

	if (e->args->kind == EXPR_MAP && !e->args->args)
		return map_action(c, e, FORMAT_PRINT_MAP);
	if (e->n_args > 1) {
		check_error(c, e->args->next->place, "arguments",
			"only a map without a key can be printed in part");
		return check_bad(c);
	}
	if (check_value(c, e->args)->kind == TYPE_BAD)
		return check_bad(c);
	f.args = check_argument_shapes(c, e->args, 1);
	if (!f.args)
		return check_bad(c);
	check_add_format(c, e, &f);
	return void_type(c);
}

/* One integer goes with the record. exit() means exit(0). */
static const struct type *number_action(
	struct check_clause *c, struct expr *e, enum format_kind kind, const char *what)
{
	struct stream_format f = {.kind = kind, .n_args = 1};

	if (!e->args) {
		e->args = arena_zalloc(c->session->script->arena, sizeof(*e->args));
		e->args->kind = EXPR_INT;
		e->args->place = e->place;
		e->n_args = 1;
	}
	if (!check_integer(c, e->args, what))
		return check_bad(c);
	f.args = check_argument_shapes(c, e->args, 1);
	check_add_format(c, e, &f);
	return void_type(c);
}

/* Clauses are counted from 1 in their order. */
static const struct type *check_switch(
	struct check_clause *c, struct expr *e, enum format_kind kind)
{
	uint32_t n = c->session->script->n_clauses;
	int64_t v;

	if (!check_constant(c, e->args, "a clause's number", &v))
		return check_bad(c);
	if (v < 1 || v > n) {
		check_error(c, e->args->place, "range", "clauses have the numbers 1 to %u", n);
		return check_bad(c);
	}
	return number_action(c, e, kind, "a clause's number");
}

bool check_literal(struct check_clause *c, struct expr *e, struct expr *a)
{
	check_expr(c, a);
	if (a->kind == EXPR_STRING)
		return a->type[c->mode]->kind != TYPE_BAD;
	check_error(c, a->place, "constant", "%s() needs a literal text", e->name);
	return false;
}

static const struct type *check_time(struct check_clause *c, struct expr *e)
{
	struct stream_format f = {.kind = FORMAT_TIME, .text = "%H:%M:%S\n"};

	if (e->args) {
		if (!check_literal(c, e, e->args))
			return check_bad(c);
		f.text = e->args->text;
	}
	check_add_format(c, e, &f);
	return void_type(c);
}

static const struct type *check_join_call(struct check_clause *c, struct expr *e)
{
	struct stream_format f = {.kind = FORMAT_JOIN, .text = " ", .n_args = 1};
	struct arena *arena = c->session->stream->arena;
	struct shape *words[CHECK_JOIN_WORDS];
	bool ok = check_scalar(c, e->args, "the argument of join()");

	if (e->args->next && !check_literal(c, e, e->args->next))
		return check_bad(c);
	if (!ok)
		return check_bad(c);
	if (e->args->next)
		f.text = e->args->next->text;
	for (int i = 0; i < CHECK_JOIN_WORDS; i++)
		words[i] = shape_new(arena, SHAPE_STRING, false, CHECK_JOIN_BYTES);
	f.args = arena_zalloc(arena, sizeof(*f.args));
	f.args[0] = shape_new_tuple(arena, words, CHECK_JOIN_WORDS);
	check_add_format(c, e, &f);
	return void_type(c);
}

/* --- maps ------------------------------------------------------------------------------------- */

/* delete(@m[k]), delete(@m, k), delete(@m) of a map without keys; has_key(@m, k). */
static bool map_and_key(struct check_clause *c, struct expr *e)
{
	struct expr *a = e->args;
	struct map_use *m;

	if (a->kind != EXPR_MAP || (a->args && a->next)) {
		check_error(c, a->place, "arguments", "%s() needs a map%s", e->name,
			a->kind == EXPR_MAP ? " without a key before the key" : "");
		check_hint(c, "%s", function_find(e->name)->form);
		return false;
	}
	m = check_map_of(c, a);
	if (!m)
		return false;
	m->is_read = true;
	a->type[c->mode] = void_type(c);
	check_map_keys(c, m, a->args ? a->args : a->next, a->args ? a->n_args : e->n_args - 1,
		a->next ? a->next->place : a->place);
	return true;
}

/* --- aggregations ----------------------------------------------------------------------------- */

static bool check_lhist(struct check_clause *c, struct expr *e)
{
	struct expr *min = e->args->next, *max = min->next, *step = max->next;
	int64_t v[3];
	__int128 n;
	bool ok = check_constant(c, min, "the minimum of lhist()", &v[0]);

	ok &= check_constant(c, max, "the maximum of lhist()", &v[1]);
	ok &= check_constant(c, step, "the step of lhist()", &v[2]);
	if (!ok)
		return false;
	if (v[2] <= 0) {
		check_error(c, step->place, "range", "the step of lhist() must be positive");
		return false;
	}
	if (v[1] <= v[0]) {
		check_error(c, max->place, "range",
			"the maximum of lhist() must be greater than its minimum");
		return false;
	}
	n = ((__int128)v[1] - v[0] + v[2] - 1) / v[2];
	if (n > LHIST_STEPS_MAX) {
		check_error(
			c, step->place, "range", "lhist() has at most %d steps", LHIST_STEPS_MAX);
		return false;
	}
	return true;
}

static const struct type *check_aggregation(
	struct check_clause *c, struct expr *e, enum aggregation aggregation)
{
	bool is_signed = false, ok = true;

	if (e->args) {
		ok = check_integer(c, e->args, "what is aggregated");
		is_signed = ok && e->args->type[c->mode]->is_signed;
	}
	if (aggregation == AGGREGATION_LHIST)
		ok &= check_lhist(c, e);
	return ok ? types_aggregation(check_types(c), aggregation, is_signed) : check_bad(c);
}

/* --- others ----------------------------------------------------------------------------------- */

static const struct type *check_in_space(struct check_clause *c, struct expr *e, enum space space)
{
	const struct type *to;

	if (!check_scalar(c, e->args, "the argument of kptr() and uptr()"))
		return check_bad(c);
	to = e->args->type[c->mode];
	return types_pointer(check_types(c),
		to->kind == TYPE_POINTER ? to->of : types_void(check_types(c)), space);
}

/* ustack(perf, 5): words that bpftrace has for the form in which a stack is printed. */
static bool is_stack_form(const struct expr *a)
{
	return a->kind == EXPR_NAME && (!strcmp(a->name, "bpftrace") || !strcmp(a->name, "perf") ||
					       !strcmp(a->name, "raw"));
}

static const struct type *check_stack(struct check_clause *c, struct expr *e, enum type_kind kind)
{
	struct expr *a = e->args;
	int64_t n;

	if (a && is_stack_form(a)) {
		a->type[c->mode] = void_type(c);
		a->is_constant[c->mode] = false;
		if (strcmp(a->name, "bpftrace")) {
			check_error(c, a->place, "arguments", "there is no form '%s' of stacks",
				a->name);
			check_hint(c, "%s", function_find(e->name)->form);
			return check_bad(c);
		}
		a = a->next;
	}
	if (a && a->next) {
		check_error(c, a->next->place, "arguments", "%s() has too many arguments", e->name);
		return check_bad(c);
	}
	if (a && !check_constant(c, a, "the number of frames", &n))
		return check_bad(c);
	if (a && (n < 1 || n > STREAM_STACK_FRAMES)) {
		check_error(c, a->place, "range", "the number of frames must be from 1 to %d",
			STREAM_STACK_FRAMES);
		return check_bad(c);
	}
	c->session->stream->uses_stacks = true;
	return types_special(check_types(c), kind);
}

static const struct type *check_reg(struct check_clause *c, struct expr *e)
{
	struct meaning *m = (struct meaning *)e->meaning[c->mode];
	struct value_use *u;
	uint16_t offset;
	uint8_t first, bytes;

	if (!check_literal(c, e, e->args))
		return check_bad(c);
	if (!pt_reg_find(e->args->text, &offset, &first, &bytes)) {
		check_error(c, e->args->place, "unknown-name", "there is no register '%s'",
			e->args->text);
		check_hint(c, "ax, bx, cx, dx, si, di, bp, sp, ip, flags, r8 to r15");
		return check_bad(c);
	}
	u = arena_zalloc(c->session->arena, sizeof(*u));
	*u = (struct value_use){.id = BUILTIN_ARG, .kind = USE_USDT, .type = unsigned64(c)};
	u->operand = (struct usdt_operand){
		.kind = USDT_REGISTER, .bytes = bytes, .reg = offset, .first_byte = first};
	m->reg = u;
	return u->type;
}

static const struct type *check_uaddr(struct check_clause *c, struct expr *e)
{
	struct meaning *m = (struct meaning *)e->meaning[c->mode];
	struct global_use *g;
	const struct type *type;
	uint64_t iaddr;

	if (!check_literal(c, e, e->args))
		return check_bad(c);
	if (!types_variable(check_types(c), e->args->text, &type, &iaddr) || !iaddr) {
		check_error(c, e->args->place, "unknown-name", "'%s' is no global of the program",
			e->args->text);
		return check_bad(c);
	}
	g = arena_zalloc(c->session->arena, sizeof(*g));
	*g = (struct global_use){.name = e->args->text, .iaddr = iaddr, .type = type};
	m->address = g;
	return types_pointer(check_types(c), type, SPACE_USER);
}

static bool is_allowed(struct check_clause *c, struct expr *e)
{
	if (c->session->is_unsafe)
		return true;
	check_error(c, e->place, "unsafe", "%s() changes things outside of the trace", e->name);
	check_hint(c, "--unsafe allows it");
	return false;
}

static const struct {
	const char *name;
	int number;
} signals[] = {
	{"HUP", SIGHUP},
	{"INT", SIGINT},
	{"QUIT", SIGQUIT},
	{"TRAP", SIGTRAP},
	{"ABRT", SIGABRT},
	{"KILL", SIGKILL},
	{"USR1", SIGUSR1},
	{"SEGV", SIGSEGV},
	{"USR2", SIGUSR2},
	{"PIPE", SIGPIPE},
	{"ALRM", SIGALRM},
	{"TERM", SIGTERM},
	{"CHLD", SIGCHLD},
	{"CONT", SIGCONT},
	{"STOP", SIGSTOP},
	{"TSTP", SIGTSTP},
};

/* "KILL" or "SIGKILL" becomes the constant 9. */
static bool name_signal(struct check_clause *c, struct expr *a)
{
	const char *name = !strncmp(a->text, "SIG", 3) ? a->text + 3 : a->text;

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		if (!strcmp(signals[i].name, name)) {
			check_set_constant(c, a, types_int(check_types(c), 8, true),
				(uint64_t)signals[i].number);
			return true;
		}
	}
	check_error(c, a->place, "unknown-name", "there is no signal '%s'", a->text);
	return false;
}

static const struct type *check_signal(struct check_clause *c, struct expr *e)
{
	struct expr *a = e->args;

	if (!is_allowed(c, e))
		return check_bad(c);
	if (a->kind == EXPR_STRING ? !name_signal(c, a)
				   : !check_integer(c, a, "the argument of signal()"))
		return check_bad(c);
	if (a->is_constant[c->mode] &&
		(a->constant[c->mode] < 1 || a->constant[c->mode] > SIGNAL_MAX)) {
		check_error(c, a->place, "range", "signals have the numbers 1 to %d", SIGNAL_MAX);
		return check_bad(c);
	}
	return void_type(c);
}

static const struct type *check_nsecs(struct check_clause *c, struct expr *e)
{
	struct expr *a = e->args;

	if (a && (a->kind != EXPR_NAME || strcmp(a->name, "boot"))) {
		check_error(c, a->place, "arguments", "the only clock is nsecs(boot)");
		return check_bad(c);
	}
	if (a)
		a->type[c->mode] = void_type(c);
	return unsigned64(c);
}

static const struct type *check_bswap(struct check_clause *c, struct expr *e)
{
	const struct type *type;

	if (!check_integer(c, e->args, "the argument of bswap()"))
		return check_bad(c);
	type = e->args->type[c->mode];
	return types_int(check_types(c), (uint32_t)type->size, false);
}

static const struct type *check_symbol(struct check_clause *c, struct expr *e, enum type_kind kind)
{
	if (!check_scalar(c, e->args, "an address"))
		return check_bad(c);
	return types_special(check_types(c), kind);
}

static const struct type *not_yet(struct check_clause *c, struct expr *e, const char *hint)
{
	check_error(c, e->place, "unknown-function", "%s() does not exist yet", e->name);
	check_hint(c, "%s", hint);
	return check_bad(c);
}

/* --- all of them ------------------------------------------------------------------------------ */

static const struct type *check_output(struct check_clause *c, struct expr *e, enum function_id id)
{
	switch (id) {
	case FUNCTION_PRINTF:
		check_printf(c, e, FORMAT_PRINTF);
		return void_type(c);
	case FUNCTION_CAT:
		check_printf(c, e, FORMAT_CAT);
		return void_type(c);
	case FUNCTION_SYSTEM:
		if (is_allowed(c, e))
			check_printf(c, e, FORMAT_SYSTEM);
		return void_type(c);
	case FUNCTION_PRINT:
		return check_print(c, e);
	case FUNCTION_CLEAR:
		return map_action(c, e, FORMAT_CLEAR_MAP);
	case FUNCTION_ZERO:
		return map_action(c, e, FORMAT_ZERO_MAP);
	case FUNCTION_EXIT:
		return number_action(c, e, FORMAT_EXIT, "the status of exit()");
	case FUNCTION_TIME:
		return check_time(c, e);
	case FUNCTION_JOIN:
		return check_join_call(c, e);
	case FUNCTION_ENABLE:
		return check_switch(c, e, FORMAT_ENABLE);
	case FUNCTION_DISABLE:
		return check_switch(c, e, FORMAT_DISABLE);
	default:
		return NULL;
	}
}

static const enum aggregation aggregations[] = {
	[FUNCTION_COUNT] = AGGREGATION_COUNT,
	[FUNCTION_SUM] = AGGREGATION_SUM,
	[FUNCTION_MIN] = AGGREGATION_MIN,
	[FUNCTION_MAX] = AGGREGATION_MAX,
	[FUNCTION_AVG] = AGGREGATION_AVG,
	[FUNCTION_STATS] = AGGREGATION_STATS,
	[FUNCTION_HIST] = AGGREGATION_HIST,
	[FUNCTION_LHIST] = AGGREGATION_LHIST,
};

static const struct type *check_function(
	struct check_clause *c, struct expr *e, const struct function_def *f)
{
	const struct type *type = check_output(c, e, f->id);

	if (!type)
		type = check_text_function(c, e, f->id);
	if (type)
		return type;
	switch (f->id) {
	case FUNCTION_DELETE:
		return map_and_key(c, e) ? void_type(c) : check_bad(c);
	case FUNCTION_HAS_KEY:
		return map_and_key(c, e) ? types_int(check_types(c), 8, true) : check_bad(c);
	case FUNCTION_LEN:
		return not_yet(c, e, "a counter of its own counts what is put into a map");
	case FUNCTION_KADDR:
		return not_yet(c, e, "give the address as a number");
	case FUNCTION_KPTR:
		return check_in_space(c, e, SPACE_KERNEL);
	case FUNCTION_UPTR:
		return check_in_space(c, e, SPACE_USER);
	case FUNCTION_USYM:
		return check_symbol(c, e, TYPE_USYM);
	case FUNCTION_KSYM:
		return check_symbol(c, e, TYPE_KSYM);
	case FUNCTION_UADDR:
		return check_uaddr(c, e);
	case FUNCTION_REG:
		return check_reg(c, e);
	case FUNCTION_USTACK:
		return check_stack(c, e, TYPE_USTACK);
	case FUNCTION_KSTACK:
		return check_stack(c, e, TYPE_KSTACK);
	case FUNCTION_BSWAP:
		return check_bswap(c, e);
	case FUNCTION_SIGNAL:
		return check_signal(c, e);
	case FUNCTION_NSECS:
		return check_nsecs(c, e);
	default:
		return check_aggregation(c, e, aggregations[f->id]);
	}
}
