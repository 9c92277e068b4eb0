/* SPDX-License-Identifier: MIT */
#include "jvm/exit_rule.h"

#include <string.h>

#define RSP 4
#define RBP 5
/* What calls leave alone, besides rsp: rbx rbp r12 ... r15. */
#define CALLEE_SAVED 0xf028u

#define WRITTEN_MAX 32 /* words written to the stack that are remembered */
#define PATHS_MAX   32 /* branches that are not followed yet */
#define INSNS_MAX   1500
#define SEEN_MAX    4096 /* of a table for INSNS_MAX, a power of two */

/* Values of a path. Stack words that it wrote are kept by register and offset; a stack pointer that
 * was aligned has a number of its own from there on. */
#define ALIGNED_SP 16
struct written {
	uint8_t reg;
	int64_t disp;
	struct exit_value value;
};
struct path {
	uint64_t pc;
	struct exit_value regs[16];
	struct exit_value loaded;
	struct written written[WRITTEN_MAX];
	unsigned n_written;
};

static void init_path(struct path *p, uint64_t pc)
{
	memset(p, 0, sizeof(*p));
	p->pc = pc;
	for (uint8_t i = 0; i < 16; i++)
		p->regs[i] = (struct exit_value){EXIT_REGISTER, i, 0};
}

static struct exit_value load(const struct path *p, struct exit_value addr, int64_t disp)
{
	if (addr.kind != EXIT_REGISTER)
		return (struct exit_value){0};
	disp += addr.disp;
	for (unsigned i = p->n_written; i-- > 0;)
		if (p->written[i].reg == addr.reg && p->written[i].disp == disp)
			return p->written[i].value;
	if (addr.reg == ALIGNED_SP)
		return (struct exit_value){0};
	return (struct exit_value){EXIT_MEMORY, addr.reg, disp};
}

static void store(struct path *p, struct exit_value addr, int64_t disp, struct exit_value value)
{
	if (addr.kind != EXIT_REGISTER)
		return;
	if (p->n_written == WRITTEN_MAX) {
		memmove(p->written, p->written + 1, sizeof(p->written) - sizeof(p->written[0]));
		p->n_written--;
	}
	p->written[p->n_written++] = (struct written){addr.reg, addr.disp + disp, value};
}

static struct exit_value register_value(const struct path *p, int reg)
{
	return reg >= 0 ? p->regs[reg] : (struct exit_value){0};
}

static void apply_other(struct path *p, const struct x86_transfer *t)
{
	for (uint8_t i = 0; i < 16; i++)
		if (t->writes >> i & 1)
			p->regs[i] = (struct exit_value){0};
	/* and rsp, -16 */
	if (t->writes >> RSP & 1)
		p->regs[RSP] = (struct exit_value){EXIT_REGISTER, ALIGNED_SP, 0};
}

/* A stack pointer that was saved in memory, which may be done once on a path; or one that is not known. */
static void name_stack_pointer(struct path *p)
{
	struct exit_value *sp = &p->regs[RSP];

	if (sp->kind == EXIT_MEMORY && !p->loaded.kind && sp->reg < 16) {
		p->loaded = *sp;
		*sp = (struct exit_value){EXIT_REGISTER, EXIT_LOADED, 0};
	} else {
		*sp = (struct exit_value){EXIT_REGISTER, ALIGNED_SP, 0};
	}
}

static void apply(struct path *p, const struct x86_transfer *t)
{
	struct exit_value *sp = &p->regs[RSP], value;

	switch (t->kind) {
	case X86_TRANSFER_SUM:
		value = p->regs[t->from];
		if (value.kind == EXIT_REGISTER)
			value.disp += t->disp;
		else if (t->disp)
			value = (struct exit_value){0};
		p->regs[t->to] = value;
		break;
	case X86_TRANSFER_LOAD:
		p->regs[t->to] = load(p, p->regs[t->from], t->disp);
		break;
	case X86_TRANSFER_STORE:
		store(p, p->regs[t->to], t->disp, register_value(p, t->from));
		break;
	case X86_TRANSFER_PUSH:
		value = register_value(p, t->from);
		sp->disp -= 8;
		store(p, *sp, 0, value);
		break;
	case X86_TRANSFER_POP:
		value = load(p, *sp, 0);
		sp->disp += 8;
		if (t->to >= 0)
			p->regs[t->to] = value;
		break;
	case X86_TRANSFER_LEAVE:
		*sp = p->regs[RBP];
		if (sp->kind != EXIT_REGISTER)
			name_stack_pointer(p);
		p->regs[RBP] = load(p, *sp, 0);
		sp->disp += 8;
		break;
	default:
		apply_other(p, t);
		break;
	}
	if (sp->kind != EXIT_REGISTER)
		name_stack_pointer(p);
}

static void forget_after_call(struct path *p)
{
	for (uint8_t i = 0; i < 16; i++)
		if (i != RSP && !(CALLEE_SAVED >> i & 1))
			p->regs[i] = (struct exit_value){0};
}

static bool finish(struct exit_rule *rule, const struct path *p, enum exit_how how)
{
	struct exit_value sp = p->regs[RSP];

	memset(rule, 0, sizeof(*rule));
	rule->how = how;
	memcpy(rule->regs, p->regs, sizeof(rule->regs));
	rule->loaded = p->loaded;
	rule->ret = load(p, sp, 0);
	sp.disp += 8;
	rule->sp = sp;
	if (sp.kind != EXIT_REGISTER || sp.reg == ALIGNED_SP)
		rule->sp = (struct exit_value){0};
	return true;
}

struct search {
	struct exit_rule *rule;
	const struct exit_code *code;
	unsigned left;
	struct path path, waiting[PATHS_MAX];
	unsigned n_waiting;
	uint32_t seen[SEEN_MAX];
};

/* Addresses are kept as offsets + 1. */
static bool was_seen(struct search *s, uint64_t pc)
{
	uint32_t offset = (uint32_t)(pc - s->code->low) + 1;

	for (uint32_t i = offset * 2654435761u;; i++) {
		uint32_t *slot = &s->seen[i % SEEN_MAX];

		if (*slot == offset)
			return true;
		if (!*slot) {
			*slot = offset;
			return false;
		}
	}
}

static struct span code_at(const struct exit_code *code, uint64_t pc)
{
	uint64_t at = pc - code->base;

	return at < code->bytes.n ? span_sub(code->bytes, at, code->bytes.n - at)
				  : (struct span){NULL, 0};
}

static bool is_inside(const struct exit_code *code, uint64_t pc)
{
	return pc >= code->low && pc < code->high;
}

/* push rbp; mov rbp, rsp: what follows is the frame. */
static bool is_frame_begin(const struct search *s, const struct x86_transfer *push, uint64_t next,
	struct x86_transfer *first_push)
{
	struct x86_insn insn;
	struct x86_transfer move;

	if (push->kind != X86_TRANSFER_PUSH || push->from != RBP ||
		!x86_decode_transfer(&insn, &move, code_at(s->code, next), next) ||
		move.kind != X86_TRANSFER_SUM || move.to != RBP || move.from != RSP || move.disp)
		return false;
	next += insn.length;
	if (!x86_decode_transfer(&insn, first_push, code_at(s->code, next), next) ||
		first_push->kind != X86_TRANSFER_PUSH)
		first_push->from = X86_NO_REGISTER;
	return true;
}

enum follow { FOLLOW_ON, FOLLOW_DEAD, FOLLOW_FOUND };

static enum follow leave_by_jump(struct search *s, const struct x86_transfer *t)
{
	finish(s->rule, &s->path, EXIT_BY_JUMP);
	s->rule->target = t->kind == X86_TRANSFER_JUMP ? register_value(&s->path, t->from)
						       : (struct exit_value){0};
	return FOLLOW_FOUND;
}

static enum follow go_on(
	struct search *s, const struct x86_insn *insn, const struct x86_transfer *t)
{
	struct path *p = &s->path;
	uint64_t next = p->pc + insn->length;

	switch (insn->flow) {
	case X86_FLOW_RETURN:
		finish(s->rule, p, EXIT_BY_RETURN);
		return FOLLOW_FOUND;
	case X86_FLOW_JUMP_FAR:
		return leave_by_jump(s, t);
	case X86_FLOW_JUMP:
		if (!is_inside(s->code, insn->target))
			return leave_by_jump(s, t);
		p->pc = insn->target;
		return FOLLOW_ON;
	case X86_FLOW_BRANCH:
		if (is_inside(s->code, insn->target) && s->n_waiting < PATHS_MAX) {
			s->waiting[s->n_waiting] = *p;
			s->waiting[s->n_waiting++].pc = insn->target;
		}
		break;
	case X86_FLOW_CALL:
	case X86_FLOW_CALL_FAR:
		forget_after_call(p);
		break;
	case X86_FLOW_STOP:
		return FOLLOW_DEAD;
	default:
		apply(p, t);
		break;
	}
	p->pc = next;
	return FOLLOW_ON;
}

static enum follow follow_one(struct search *s)
{
	struct path *p = &s->path;
	struct x86_insn insn;
	struct x86_transfer t, first;

	if (was_seen(s, p->pc) || !x86_decode_transfer(&insn, &t, code_at(s->code, p->pc), p->pc))
		return FOLLOW_DEAD;
	if (is_frame_begin(s, &t, p->pc + insn.length, &first)) {
		finish(s->rule, p, EXIT_BY_FRAME);
		s->rule->pushed = register_value(p, first.from);
		return FOLLOW_FOUND;
	}
	/* The push was just before: what stands above it is the return address. */
	if (t.kind == X86_TRANSFER_SUM && t.to == RBP && t.from == RSP && !t.disp) {
		p->regs[RBP] = load(p, p->regs[RSP], 0);
		if (p->regs[RSP].kind == EXIT_REGISTER)
			p->regs[RSP].disp += 8;
		finish(s->rule, p, EXIT_BY_FRAME);
		if (x86_decode_transfer(&insn, &first, code_at(s->code, p->pc + insn.length),
			    p->pc + insn.length) &&
			first.kind == X86_TRANSFER_PUSH)
			s->rule->pushed = register_value(p, first.from);
		return FOLLOW_FOUND;
	}
	return go_on(s, &insn, &t);
}

bool exit_rule_find(struct exit_rule *rule, const struct exit_code *code, uint64_t pc, unsigned max)
{
	struct search s;

	s.rule = rule;
	s.code = code;
	s.left = max < INSNS_MAX ? max : INSNS_MAX;
	s.n_waiting = 0;
	memset(s.seen, 0, sizeof(s.seen));
	init_path(&s.path, pc);
	while (s.left-- > 0) {
		switch (follow_one(&s)) {
		case FOLLOW_FOUND:
			return true;
		case FOLLOW_DEAD:
			if (!s.n_waiting)
				return false;
			s.path = s.waiting[--s.n_waiting];
			break;
		default:
			break;
		}
	}
	return false;
}

static struct exit_value memory_at_sp(int64_t disp)
{
	return (struct exit_value){EXIT_MEMORY, RSP, disp};
}

/* The return address is so far above the stack pointer; `rbp_at`: where the caller's rbp is, -1 = still
 * in the register. */
static bool prologue_rule(struct exit_rule *rule, int64_t ret_at, int64_t rbp_at)
{
	struct path p;

	init_path(&p, 0);
	memset(rule, 0, sizeof(*rule));
	rule->how = EXIT_BY_FRAME;
	memcpy(rule->regs, p.regs, sizeof(rule->regs));
	if (rbp_at >= 0)
		rule->regs[RBP] = memory_at_sp(rbp_at);
	rule->ret = memory_at_sp(ret_at);
	rule->sp = (struct exit_value){EXIT_REGISTER, RSP, ret_at + 8};
	return true;
}

/*
 * push rbp; sub rsp, frame - 16	or	sub rsp, frame - 8; mov [rsp + frame - 16], rbp
 */
bool exit_rule_find_prologue(struct exit_rule *rule, const struct exit_code *code, uint64_t pc,
	int32_t frame_bytes, unsigned max)
{
	for (unsigned i = 0; i < max && is_inside(code, pc); i++) {
		struct x86_insn insn;
		struct x86_transfer t;

		if (!x86_decode_transfer(&insn, &t, code_at(code, pc), pc) ||
			(insn.flow != X86_FLOW_NEXT && insn.flow != X86_FLOW_BRANCH))
			return false;
		if (t.kind == X86_TRANSFER_PUSH && t.from == RBP)
			return prologue_rule(rule, 0, -1);
		if (t.kind == X86_TRANSFER_SUM && t.to == RBP && t.from == RSP && !t.disp)
			return prologue_rule(rule, 8, 0);
		if (t.kind == X86_TRANSFER_SUM && t.to == RSP && t.from == RSP) {
			if (t.disp == 16 - frame_bytes)
				return prologue_rule(rule, 8, 0);
			return t.disp == 8 - frame_bytes && prologue_rule(rule, 0, -1);
		}
		if (t.kind == X86_TRANSFER_STORE && t.to == RSP && t.from == RBP &&
			t.disp == frame_bytes - 16)
			return prologue_rule(rule, frame_bytes - 8, -1);
		if (t.kind == X86_TRANSFER_POP || t.kind == X86_TRANSFER_LEAVE)
			return false;
		pc += insn.length;
	}
	return false;
}

#define TARGETS_MAX 64

/* Forward branches out of code that has left its frame. */
struct targets {
	uint64_t v[TARGETS_MAX];
	unsigned n;
};

static bool is_target(const struct targets *t, uint64_t pc)
{
	for (unsigned i = 0; i < t->n; i++)
		if (t->v[i] == pc)
			return true;
	return false;
}

/* Codelets are straight: every path but the one that left the frame has it, and what stands behind an
 * unconditional jump is reached from such a path. */
enum codelet_state codelet_state_at_end(struct span code, uint64_t base, bool is_entry)
{
	enum codelet_state state = is_entry ? CODELET_BEFORE : CODELET_BUILT;
	struct targets gone = {.n = 0};
	bool has_built = !is_entry;

	for (size_t at = 0; at < code.n;) {
		struct x86_insn insn;
		struct x86_transfer t;
		uint64_t pc = base + at;

		if (!x86_decode_transfer(&insn, &t, span_sub(code, at, code.n - at), pc))
			break;
		if (t.kind == X86_TRANSFER_SUM && t.to == RBP && t.from == RSP &&
			state == CODELET_BEFORE) {
			state = CODELET_BUILT;
			has_built = true;
		} else if (t.kind == X86_TRANSFER_LEAVE) {
			state = CODELET_GONE;
		} else if (insn.flow == X86_FLOW_BRANCH && state == CODELET_GONE &&
			   gone.n < TARGETS_MAX) {
			gone.v[gone.n++] = insn.target;
		} else if (insn.flow == X86_FLOW_JUMP || insn.flow == X86_FLOW_JUMP_FAR ||
			   insn.flow == X86_FLOW_RETURN || insn.flow == X86_FLOW_STOP) {
			if (state == CODELET_GONE && insn.flow == X86_FLOW_JUMP &&
				insn.target > pc && gone.n < TARGETS_MAX)
				gone.v[gone.n++] = insn.target;
			state = has_built ? CODELET_BUILT : CODELET_BEFORE;
		}
		at += insn.length;
		if (is_target(&gone, base + at))
			state = CODELET_GONE;
	}
	return state;
}
