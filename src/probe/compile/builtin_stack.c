/* SPDX-License-Identifier: MIT */
/*
 * Stacks of the program and of the kernel. They are kept once, under a hash of their addresses, in
 * a plain map: unlike the kernel's own stack maps that loses none to collisions of buckets, and
 * works in programs that may sleep. Those of the program are walked by call-frame information
 * (lower_stack_walk.c), or with the word `fp` by the kernel, along frame pointers.
 */
#include <stddef.h>
#include <string.h>

#include "probe/compile/builtin.h"
#include "probe/script/tree_search.h"
#include "probe/stream/stack_copy.h"

#define USER_STACK (1ull << 8) /* BPF_F_USER_STACK */

/* --- checking --------------------------------------------------------------------------------- */

#define BY_FRAME_POINTERS (-1)

/* ustack(perf, 5): in which form it is printed, and how it is walked. */
static const struct stack_word {
	const char *name;
	int form; /* enum stack_form, or BY_FRAME_POINTERS */
	bool is_user_only;
} stack_words[] = {
	{"bpftrace", STACK_FORM_NAMES, false},
	{"perf", STACK_FORM_PERF, false},
	{"raw", STACK_FORM_RAW, false},
	{"build_id", STACK_FORM_BUILD_ID, true},
	{"fp", BY_FRAME_POINTERS, true},
};

static const struct stack_word *find_word(const struct expr *a, bool is_user)
{
	for (size_t i = 0; a->kind == EXPR_NAME && i < sizeof(stack_words) / sizeof(*stack_words);
		i++)
		if (!strcmp(a->name, stack_words[i].name) &&
			(is_user || !stack_words[i].is_user_only))
			return &stack_words[i];
	return NULL;
}

/* False when there is something else before the number. */
static bool check_words(struct check_clause *c, struct expr *e, bool is_user, uint32_t *form)
{
	const struct type *type;
	int64_t number;

	for (struct expr *a = e->args; a; a = a->next) {
		const struct stack_word *word = find_word(a, is_user);

		if (!word && a->kind == EXPR_NAME && !check_has_builtin(a->name, false) &&
			!types_enumerator(check_types(c), a->name, &number, &type)) {
			check_error(c, a->place, "arguments", "there is no form '%s' of stacks",
				a->name);
			builtin_hint_form(c, e);
			return false;
		}
		if (!word)
			return true;
		a->type[c->mode] = check_void(c);
		a->is_constant[c->mode] = false;
		if (word->form != BY_FRAME_POINTERS)
			*form = (*form & ~(uint32_t)STACK_FORM_MASK) | (uint32_t)word->form;
	}
	return true;
}

/* ustack, and ustack([FORM,] [fp,] FRAMES) */
static const struct type *check_stack(struct check_clause *c, struct expr *e)
{
	enum type_kind kind = (enum type_kind)check_row(c, e)->detail;
	uint32_t form = c->session->stack_form;
	struct expr *a = e->args;
	int64_t n;

	if (kind == TYPE_KSTACK && (form & STACK_FORM_MASK) == STACK_FORM_BUILD_ID)
		form &= ~(uint32_t)STACK_FORM_MASK; /* the kernel has no such form */
	if (!check_words(c, e, kind == TYPE_USTACK, &form))
		return check_bad(c);
	while (a && find_word(a, kind == TYPE_USTACK))
		a = a->next;
	if (a && a->next)
		return check_refuse(
			c, a->next->place, "arguments", "%s() has too many arguments", e->name);
	if (a && !check_constant(c, a, "the number of frames", &n))
		return check_bad(c);
	if (a && (n < 1 || n > STREAM_STACK_FRAMES))
		return check_refuse(c, a->place, "range",
			"the number of frames must be from 1 to %d", STREAM_STACK_FRAMES);
	if (point_has(c->point->spec.kind, POINT_IS_OURS))
		check_warning(
			c, e->place, "not-here", "%s is empty at %s", e->name, check_point_text(c));
	else
		c->session->stream->uses_stacks = true;
	return types_stack(check_types(c), kind, form);
}

/* --- code ------------------------------------------------------------------------------------- */

/* id = a hash of the addresses up to the first 0; never 0. */
static ir_value stack_id(struct lower *l, ir_mem mem, uint32_t n_frames)
{
	ir_label done = ir_new_label(&l->ir);
	ir_value id = ir_new_value(&l->ir), factor = ir_const(&l->ir, (int64_t)STACK_HASH), h;

	ir_set_const(&l->ir, id, 1);
	for (uint32_t i = 0; i < n_frames; i++) {
		ir_value frame = ir_new_value(&l->ir);

		ir_copy(&l->ir, frame, ir_load(&l->ir, mem, (int32_t)(8 + 8 * i), 8, false));
		ir_branch_imm(&l->ir, BPF_JEQ, frame, 0, done);
		h = ir_alu(&l->ir, BPF_MUL, ir_alu(&l->ir, BPF_XOR, id, frame), factor);
		ir_copy(&l->ir, id, ir_alu(&l->ir, BPF_XOR, h, ir_alu_imm(&l->ir, BPF_RSH, h, 29)));
	}
	ir_place_label(&l->ir, done);
	return ir_alu_imm(&l->ir, BPF_OR, id, 1);
}

/*
 * At the first instruction of a function its caller's frame is not linked yet, so a walk along
 * frame pointers misses the caller: the return address is still on top of the stack. Kernels
 * from 6.11 on know that where the instruction is a push.
 */
static bool may_miss_caller(const struct lower *l, bool is_user)
{
	const struct point_spec *spec = &l->clause->point->spec;

	return is_user && spec->kind == POINT_UPROBE && !spec->offset && !spec->has_address;
}

static ir_value walk(struct lower *l, bool is_user, ir_mem mem, uint32_t first, uint32_t n_frames)
{
	return IR_CALL_(&l->ir, BPF_FUNC_get_stack, IR_CTX, IR_M(mem, 8 + 8 * first),
		IR_I(8 * (n_frames - first)), IR_I(is_user ? USER_STACK : 0));
}

/* bytes = walk to frames[0..]; if (frames[1] != *sp) { walk to frames[1..]; frames[0] = frames[1];
 * frames[1] = *sp } */
static ir_value walk_stack(struct lower *l, bool is_user, ir_mem mem, uint32_t n_frames)
{
	ir_value bytes = ir_new_value(&l->ir), sp, caller;
	ir_label done = ir_new_label(&l->ir);
	ir_mem word;

	ir_copy(&l->ir, bytes, walk(l, is_user, mem, 0, n_frames));
	if (!may_miss_caller(l, is_user) || n_frames < 2)
		return bytes;
	word = ir_new_memory(&l->ir, 8);
	caller = ir_new_value(&l->ir);
	ir_branch_imm(&l->ir, BPF_JSLE, bytes, 0, done);
	ir_zero(&l->ir, word, 0, 8);
	sp = lower_register(l, PT_SP);
	IR_CALL_(&l->ir, BPF_FUNC_copy_from_user, IR_M(word, 0), IR_I(l->mode == MODE_32 ? 4 : 8),
		IR_V(sp));
	ir_copy(&l->ir, caller, ir_load(&l->ir, word, 0, 8, false));
	ir_branch(&l->ir, BPF_JEQ, caller, ir_load(&l->ir, mem, 16, 8, false), done);
	ir_copy(&l->ir, bytes, walk(l, is_user, mem, 1, n_frames));
	ir_branch_imm(&l->ir, BPF_JSLE, bytes, 0, done);
	ir_store(&l->ir, mem, 8, 8, ir_load(&l->ir, mem, 16, 8, false));
	ir_store(&l->ir, mem, 16, 8, caller);
	ir_copy(&l->ir, bytes, ir_alu_imm(&l->ir, BPF_ADD, bytes, 8));
	ir_place_label(&l->ir, done);
	return bytes;
}

/* The stack as an id. */
static ir_value stack(struct lower *l, bool is_user, uint32_t n_frames)
{
	ir_mem mem = ir_new_memory(&l->ir, 8 + 8 * STREAM_STACK_FRAMES),
	       key = ir_new_memory(&l->ir, 8);
	ir_label failed = ir_new_label(&l->ir), done = ir_new_label(&l->ir);
	ir_value id = ir_new_value(&l->ir), bytes, p;

	ir_set_const(&l->ir, id, 0);
	ir_zero(&l->ir, mem, 0, 8 + 8 * STREAM_STACK_FRAMES);
	bytes = walk_stack(l, is_user, mem, n_frames);
	ir_branch_imm(&l->ir, BPF_JSLE, bytes, 0, done); /* no stack there (a kernel thread) */
	ir_store(&l->ir, mem, 0, 8, ir_alu_imm(&l->ir, BPF_RSH, bytes, 3));
	ir_copy(&l->ir, id, stack_id(l, mem, n_frames));
	ir_store(&l->ir, key, 0, 8, id);
	p = IR_CALL_(&l->ir, BPF_FUNC_map_lookup_elem, IR_MAP(STREAM_MAP_STACKS), IR_M(key, 0));
	ir_branch_imm(&l->ir, BPF_JNE, p, 0, done);
	ir_branch_imm(&l->ir, BPF_JSLT,
		IR_CALL_(&l->ir, BPF_FUNC_map_update_elem, IR_MAP(STREAM_MAP_STACKS), IR_M(key, 0),
			IR_M(mem, 0), IR_I(BPF_ANY)),
		0, failed);
	ir_jump(&l->ir, done);
	ir_place_label(&l->ir, failed);
	ir_set_const(&l->ir, id, STREAM_STACK_LOST);
	lower_count_loss(l, offsetof(struct clause_loss, stack_failed));
	ir_place_label(&l->ir, done);
	return id;
}

/* ustack, ustack(5), ustack(perf, 5): the last argument that is a number. */
static uint32_t frames_wanted(struct lower *l, const struct expr *e)
{
	uint32_t n = STREAM_STACK_FRAMES;

	for (const struct expr *a = e->args; a; a = a->next)
		if (a->is_constant[l->mode])
			n = (uint32_t)a->constant[l->mode];
	return n;
}

static bool is_by_frame_pointers(const struct expr *e)
{
	for (const struct expr *a = e->args; a; a = a->next) {
		const struct stack_word *word = find_word(a, true);

		if (word && word->form == BY_FRAME_POINTERS)
			return true;
	}
	return false;
}

static bool is_empty(const struct lower *l)
{
	return point_has(l->kind, POINT_IS_OURS);
}

static enum stack_way way_of(const struct lower *l, const struct expr *e)
{
	if (type_of(l, e)->kind == TYPE_KSTACK)
		return STACK_OF_KERNEL;
	return is_by_frame_pointers(e) ? STACK_BY_POINTERS : STACK_BY_RULES;
}

static ir_value lower_stack(struct lower *l, const struct expr *e)
{
	uint32_t n = frames_wanted(l, e);
	enum stack_way way = way_of(l, e);

	if (is_empty(l))
		return ir_const(&l->ir, 0);
	l->stream->uses_stacks = true;
	if (l->stacks[way][n])
		return l->stacks[way][n];
	return way == STACK_BY_RULES ? lower_stack_walk(l, n)
				     : stack(l, way == STACK_BY_POINTERS, n);
}

static void ustack_into(struct lower *l, const struct expr *e, ir_mem mem, uint32_t at, uint32_t n)
{
	(void)n;
	lower_user_address(l, lower_stack(l, e), mem, at);
}

static bool walk_ahead(void *ctx, const struct expr *e)
{
	struct lower *l = ctx;
	const struct meaning *m = meaning_of(l, e);

	if ((e->kind == EXPR_NAME || e->kind == EXPR_CALL) && m && m->kind == MEANING_BUILTIN &&
		m->builtin->check == check_stack)
		l->stacks[way_of(l, e)][frames_wanted(l, e)] = lower_stack(l, e);
	return false;
}

/* While a clause runs its stacks stay as they are. A walk in a loop is a loop in a loop, which the verifier
 * gives up on. */
void lower_stacks_of(struct lower *l, const struct stmt *loop)
{
	stmt_has(loop, &(struct tree_search){.is_expr = walk_ahead, .ctx = l});
}

#define USTACK .check = check_stack, .into = ustack_into, .detail = TYPE_USTACK
#define KSTACK .check = check_stack, .lower = lower_stack, .detail = TYPE_KSTACK

const struct builtin stack_builtins[] = {
	{"ustack", .help = "stack of the program", USTACK},
	{"dw_ustack", .help = "the same as ustack", USTACK},
	{"kstack", .help = "stack of the kernel", KSTACK},
	{"stack", .help = "the same as kstack", KSTACK},
	{"ustack", "ustack([FORM,] [fp,] [FRAMES])", 0, 3, USTACK},
	{"dw_ustack", "dw_ustack([FORM,] [FRAMES])", 0, 3, USTACK},
	{"kstack", "kstack([FORM,] [FRAMES])", 0, 2, KSTACK},
	{"stack", "stack([FORM,] [FRAMES])", 0, 2, KSTACK},
	{.name = NULL},
};
