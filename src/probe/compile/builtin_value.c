/* SPDX-License-Identifier: MIT */
/* Functions that take and give numbers: addresses, registers, symbols, signals, the clock. */
#include <signal.h>
#include <string.h>

#include "probe/compile/builtin.h"

#define SIGNAL_MAX 64

static ir_value lower_argument(struct lower *l, const struct expr *e)
{
	return lower_value(l, e->args);
}

static const struct type *check_in_space(struct check_clause *c, struct expr *e)
{
	const struct type *to;

	if (!check_scalar(c, e->args, "the argument of kptr() and uptr()"))
		return check_bad(c);
	to = e->args->type[c->mode];
	return types_pointer(check_types(c), to->kind == TYPE_POINTER ? to->of : check_void(c),
		(enum space)check_row(c, e)->detail);
}

static const struct type *check_symbol(struct check_clause *c, struct expr *e)
{
	if (!check_scalar(c, e->args, "an address"))
		return check_bad(c);
	return types_special(check_types(c), (enum type_kind)check_row(c, e)->detail);
}

static void usym_into(struct lower *l, const struct expr *e, ir_mem mem, uint32_t at, uint32_t n)
{
	(void)n;
	lower_user_address(l, lower_value(l, e->args), mem, at);
}

static const struct type *check_uaddr(struct check_clause *c, struct expr *e)
{
	struct meaning *m = check_meaning(c, e);
	struct global_use *g;
	const struct type *type;
	uint64_t iaddr;

	if (!check_literal(c, e, e->args))
		return check_bad(c);
	if (!types_variable(check_types(c), e->args->text, &type, &iaddr) || !iaddr)
		return check_refuse(c, e->args->place, "unknown-name",
			"'%s' is no global of the program", e->args->text);
	g = arena_zalloc(c->session->arena, sizeof(*g));
	*g = (struct global_use){.name = e->args->text, .iaddr = iaddr, .type = type};
	m->address = g;
	return types_pointer(check_types(c), type, SPACE_USER);
}

static ir_value lower_uaddr(struct lower *l, const struct expr *e)
{
	return lower_global_address(l, meaning_of(l, e)->address);
}

static const struct type *check_reg(struct check_clause *c, struct expr *e)
{
	struct meaning *m = check_meaning(c, e);
	struct value_use *u;
	uint16_t offset;
	uint8_t first, bytes;

	if (!check_literal(c, e, e->args))
		return check_bad(c);
	if (!pt_reg_find(e->args->text, &offset, &first, &bytes)) {
		check_error(c, e->args->place, "unknown-name", "there is no register '%s'",
			e->args->text);
		return check_hint(c, "ax, bx, cx, dx, si, di, bp, sp, ip, flags, r8 to r15");
	}
	u = arena_zalloc(c->session->arena, sizeof(*u));
	*u = (struct value_use){.kind = USE_USDT, .type = check_int(c, 8, false)};
	u->operand = (struct usdt_operand){
		.kind = USDT_REGISTER, .bytes = bytes, .reg = offset, .first_byte = first};
	m->reg = u;
	return u->type;
}

static ir_value lower_reg(struct lower *l, const struct expr *e)
{
	return lower_use_value(l, meaning_of(l, e)->reg);
}

static const struct type *check_bswap(struct check_clause *c, struct expr *e)
{
	if (!check_integer(c, e->args, "the argument of bswap()"))
		return check_bad(c);
	return check_int(c, (uint32_t)e->args->type[c->mode]->size, false);
}

static ir_value lower_bswap(struct lower *l, const struct expr *e)
{
	uint32_t bytes = (uint32_t)type_of(l, e->args)->size;
	ir_value v = lower_value(l, e->args);

	return bytes == 1 ? v : ir_swap(&l->ir, v, bytes);
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
			check_set_constant(
				c, a, check_int(c, 8, true), (uint64_t)signals[i].number);
			return true;
		}
	}
	return check_error(c, a->place, "unknown-name", "there is no signal '%s'", a->text);
}

static const struct type *check_signal(struct check_clause *c, struct expr *e)
{
	struct expr *a = e->args;

	if (!check_is_allowed(c, e))
		return check_bad(c);
	if (a->kind == EXPR_STRING ? !name_signal(c, a)
				   : !check_integer(c, a, "the argument of signal()"))
		return check_bad(c);
	if (a->is_constant[c->mode] &&
		(a->constant[c->mode] < 1 || a->constant[c->mode] > SIGNAL_MAX))
		return check_refuse(
			c, a->place, "range", "signals have the numbers 1 to %d", SIGNAL_MAX);
	return check_void(c);
}

static ir_value lower_signal(struct lower *l, const struct expr *e)
{
	return IR_CALL_(&l->ir, BPF_FUNC_send_signal, IR_V(lower_value(l, e->args)));
}

static const struct type *check_nsecs(struct check_clause *c, struct expr *e)
{
	struct expr *a = e->args;

	if (a && (a->kind != EXPR_NAME || strcmp(a->name, "boot")))
		return check_refuse(c, a->place, "arguments", "the only clock is nsecs(boot)");
	if (a)
		a->type[c->mode] = check_void(c);
	return check_int(c, 8, false);
}

static ir_value lower_nsecs(struct lower *l, const struct expr *e)
{
	(void)e;
	return ir_call(&l->ir, BPF_FUNC_ktime_get_boot_ns, NULL, 0);
}

#define CODE(checked, code) .check = checked, .lower = code

const struct builtin value_builtins[] = {
	{"kptr", "kptr(POINTER)", 1, 1, CODE(check_in_space, lower_argument),
		.detail = SPACE_KERNEL},
	{"uptr", "uptr(POINTER)", 1, 1, CODE(check_in_space, lower_argument), .detail = SPACE_USER},
	{"usym", "usym(ADDRESS)", 1, 1, .check = check_symbol, .into = usym_into,
		.detail = TYPE_USYM},
	{"ksym", "ksym(ADDRESS)", 1, 1, CODE(check_symbol, lower_argument), .detail = TYPE_KSYM},
	{"uaddr", "uaddr(\"NAME\")", 1, 1, POINT_IN_FILES, CODE(check_uaddr, lower_uaddr)},
	{"kaddr", "kaddr(\"NAME\")", 1, 1, .check = check_not_yet,
		.help = "give the address as a number"},
	{"reg", "reg(\"NAME\")", 1, 1, POINT_AT_CODE | POINT_ON_CPUS, CODE(check_reg, lower_reg)},
	{"bswap", "bswap(INTEGER)", 1, 1, CODE(check_bswap, lower_bswap)},
	{"signal", "signal(NUMBER)", 1, 1, POINT_HAS_STACK, CODE(check_signal, lower_signal)},
	{"nsecs", "nsecs([boot])", 0, 1, CODE(check_nsecs, lower_nsecs)},
	{.name = NULL},
};
