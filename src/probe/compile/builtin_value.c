/* SPDX-License-Identifier: MIT */
/* Functions that take and give numbers: addresses, registers, symbols, signals, the clock. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "probe/compile/builtin.h"
#include "probe/points/kernel_symbols.h"

#define SIGNAL_MAX 64
#define ERROR_MAX  4095

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

/* "KILL" or "SIGKILL" becomes the constant 9. */
static bool name_signal(struct check_clause *c, struct expr *a)
{
	const char *name = !strncmp(a->text, "SIG", 3) ? a->text + 3 : a->text;

	for (int i = 1; i <= SIGNAL_MAX; i++) {
		const char *known = sigabbrev_np(i);

		if (known && !strcmp(known, name)) {
			check_set_constant(c, a, check_int(c, 8, true), (uint64_t)i);
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
	if (a->kind == EXPR_STRING ? !name_signal(c, a) : !check_integer(c, a, "the signal"))
		return check_bad(c);
	if (a->is_constant[c->mode] &&
		(a->constant[c->mode] < 1 || a->constant[c->mode] > SIGNAL_MAX))
		return check_refuse(
			c, a->place, "range", "signals have the numbers 1 to %d", SIGNAL_MAX);
	return check_void(c);
}

static ir_value lower_signal(struct lower *l, const struct expr *e)
{
	return IR_CALL_(&l->ir, lower_row(l, e)->detail, IR_V(lower_value(l, e->args)));
}

/* --- clocks ----------------------------------------------------------------------------------- */

enum { CLOCK_WORD_BOOT, CLOCK_WORD_MONOTONIC, CLOCK_WORD_TAI, CLOCK_WORD_SW_TAI };

static const char *const clocks[] = {[CLOCK_WORD_BOOT] = "boot",
	[CLOCK_WORD_MONOTONIC] = "monotonic",
	[CLOCK_WORD_TAI] = "tai",
	[CLOCK_WORD_SW_TAI] = "sw_tai",
	NULL};

static const struct type *check_nsecs(struct check_clause *c, struct expr *e)
{
	return check_word(c, e, clocks) < 0 ? check_bad(c) : check_int(c, 8, false);
}

/* sw_tai is for kernels that have no helper: what TAI was ahead when the run began. */
static ir_value lower_nsecs(struct lower *l, const struct expr *e)
{
	const char *word = e->args ? e->args->name : clocks[CLOCK_WORD_BOOT];

	if (!strcmp(word, clocks[CLOCK_WORD_MONOTONIC]))
		return ir_call(&l->ir, BPF_FUNC_ktime_get_ns, NULL, 0);
	if (!strcmp(word, clocks[CLOCK_WORD_TAI]))
		return ir_call(&l->ir, BPF_FUNC_ktime_get_tai_ns, NULL, 0);
	if (!strcmp(word, clocks[CLOCK_WORD_SW_TAI]))
		return ir_alu(&l->ir, BPF_ADD, lower_fact(l, FACT_TAI),
			ir_call(&l->ir, BPF_FUNC_ktime_get_boot_ns, NULL, 0));
	return ir_call(&l->ir, BPF_FUNC_ktime_get_boot_ns, NULL, 0);
}

/* --- the kernel ------------------------------------------------------------------------------- */

/* Addresses of this kernel, until it is started again. */
static const struct type *check_kaddr(struct check_clause *c, struct expr *e)
{
	const struct type *word = check_int(c, 8, false);
	uint64_t address;

	if (!check_literal(c, e, e->args))
		return check_bad(c);
	if (c->session->is_kept) {
		check_error(c, e->place, "not-here",
			"a compiled script that is kept cannot have addresses of this kernel");
		return check_hint(c, "run it without -o");
	}
	if (!kernel_symbol_address(e->args->text, &address)) {
		check_error(c, e->args->place, "unknown-name",
			"the kernel has no symbol '%s', or hides its address", e->args->text);
		return check_hint(c, "/proc/kallsyms has those that are known");
	}
	return check_set_constant(c, e, types_pointer(check_types(c), word, SPACE_KERNEL), address);
}

/* The id of a control group is the inode of its directory. */
static const struct type *check_cgroupid(struct check_clause *c, struct expr *e)
{
	struct stat st;

	if (!check_literal(c, e, e->args))
		return check_bad(c);
	if (stat(e->args->text, &st))
		return check_refuse(
			c, e->args->place, "not-found", "'%s': %s", e->args->text, strerror(errno));
	return check_set_constant(c, e, check_int(c, 8, false), st.st_ino);
}

/* The kernel's functions give the highest 4095 addresses for errors. */
static const struct type *check_is_err(struct check_clause *c, struct expr *e)
{
	return check_scalar(c, e->args, "the argument of is_err()") ? check_bool(c) : check_bad(c);
}

static ir_value lower_is_err(struct lower *l, const struct expr *e)
{
	return ir_set_imm(&l->ir, BPF_JGE, lower_value(l, e->args), -ERROR_MAX);
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
	{"kaddr", "kaddr(\"NAME\")", 1, 1, .check = check_kaddr},
	{"cgroupid", "cgroupid(\"DIRECTORY\")", 1, 1, .check = check_cgroupid},
	{"is_err", "is_err(POINTER)", 1, 1, CODE(check_is_err, lower_is_err)},
	{"reg", "reg(\"NAME\")", 1, 1, POINT_AT_CODE | POINT_ON_CPUS,
		CODE(check_reg, lower_reg)},
	{"bswap", "bswap(INTEGER)", 1, 1, CODE(check_bswap, lower_bswap)},
	{"signal", "signal(NUMBER | \"NAME\")", 1, 1, POINT_HAS_STACK,
		CODE(check_signal, lower_signal), .detail = BPF_FUNC_send_signal},
	{"signal_thread", "signal_thread(NUMBER | \"NAME\")", 1, 1, POINT_HAS_STACK,
		CODE(check_signal, lower_signal), .detail = BPF_FUNC_send_signal_thread},
	{"nsecs", "nsecs([boot | monotonic | tai | sw_tai])", 0, 1, CODE(check_nsecs, lower_nsecs),
		.help = "nanoseconds since boot", .is_name = true},
	{"timestamp", "timestamp([boot | monotonic | tai | sw_tai])", 0, 1,
		CODE(check_nsecs, lower_nsecs), .help = "the same as nsecs", .is_name = true},
	{.name = NULL},
};
