/* SPDX-License-Identifier: MIT */
/*
 * From a frame of generated code to its caller. Compiled methods have frames of a fixed size and the
 * interpreter's are at rbp; before the frame is there, after it was left, and in stubs and adapters,
 * the code itself tells (exit_rule.h). What comes out must be an address in known code, or the next
 * way is tried.
 *
 * An interpreter's frame, in words from rbp on:
 *	+1 return address	-2 last sp	-5 profile	-8 bytecode pointer
 *	 0 caller's rbp		-3 Method	-6 cache
 *	-1 caller's sp		-4 mirror	-7 locals
 */
#include <string.h>

#include "jvm/exit_rule.h"
#include "jvm/jvm_internal.h"

#define RBX	  3
#define RDX	  2
#define RSP	  4
#define RBP	  5
#define NONE	  UINT32_MAX
#define WORD	  8
#define METHOD_AT (-3 * WORD)
#define BCP_AT	  (-8 * WORD)

#define STUB_INSNS_MAX	    1200
#define METHOD_INSNS_MAX    24
#define BARE_BYTES	    12288 /* of stubs, around the pc */
#define METHOD_BYTES	    256	  /* of a method's code from the innermost pc on */
#define BARRIER_WORDS_MAX   8
#define PUSHED_WORDS_MAX    8
#define STUB_FRAME_MAX	    1024
#define SENDER_DISTANCE_MAX (1u << 20) /* what an adapter or locals may add to a frame */

/* DWARF numbers of the registers by their numbers in encodings. */
static const uint8_t dwarf_numbers[16] = {CPU_REG_RAX, CPU_REG_RCX, CPU_REG_RDX, CPU_REG_RBX,
	CPU_REG_RSP, CPU_REG_RBP, CPU_REG_RSI, CPU_REG_RDI, CPU_REG_R8, CPU_REG_R9, CPU_REG_R10,
	CPU_REG_R11, CPU_REG_R12, CPU_REG_R13, CPU_REG_R14, CPU_REG_R15};
/* Those that native callers rely on. */
static const uint8_t callee_saved[] = {3, 12, 13, 14, 15};

struct step {
	struct jvm *jvm;
	struct cpu_regs *regs;
	const struct jvm_stack *stack;
	struct jvm_place *place;
	const char **why;
	struct code *code;
	uint64_t pc;
	bool is_caller;
	bool is_short; /* the stack could not be read somewhere */
};

static uint64_t reg(const struct step *s, enum cpu_reg r)
{
	return s->regs->r[r];
}

static bool has_reg(const struct step *s, enum cpu_reg r)
{
	return s->regs->known >> r & 1;
}

static bool read_word(struct step *s, uint64_t addr, uint64_t *to)
{
	if (s->stack->read(s->stack->ctx, addr, to, WORD))
		return true;
	s->is_short = true;
	return false;
}

/* The caller's registers, as far as they were found. */
struct caller {
	uint64_t rip, rsp, rbp;
	uint64_t saved[5];
	uint8_t has_saved; /* bit i: saved[i] is known */
};

static enum jvm_step finish(struct step *s, const struct caller *caller)
{
	struct cpu_regs *r = s->regs;

	r->r[CPU_REG_RIP] = caller->rip;
	r->r[CPU_REG_RSP] = caller->rsp;
	r->r[CPU_REG_RBP] = caller->rbp;
	r->known = 1u << CPU_REG_RIP | 1u << CPU_REG_RSP | 1u << CPU_REG_RBP;
	for (size_t i = 0; i < sizeof(callee_saved); i++)
		if (caller->has_saved >> i & 1) {
			r->r[dwarf_numbers[callee_saved[i]]] = caller->saved[i];
			r->known |= 1u << dwarf_numbers[callee_saved[i]];
		}
	return JVM_STEP_DONE;
}

static enum jvm_step lost(struct step *s, const char *why)
{
	*s->why = why;
	return s->is_short ? JVM_STEP_SHORT : JVM_STEP_LOST;
}

/* --- what the code tells --- */

/* The register that a value counts from. */
static bool eval_base(
	struct step *s, const struct exit_rule *rule, struct exit_value value, uint64_t *to)
{
	const struct exit_value *loaded = &rule->loaded;
	bool is_loaded = value.reg == EXIT_LOADED;
	uint8_t number = is_loaded ? loaded->reg : value.reg;

	if (value.kind == EXIT_UNKNOWN || number >= 16 || !has_reg(s, dwarf_numbers[number]))
		return false;
	*to = reg(s, dwarf_numbers[number]);
	return !is_loaded || read_word(s, *to + (uint64_t)loaded->disp, to);
}

static bool eval(
	struct step *s, const struct exit_rule *rule, struct exit_value value, uint64_t *to)
{
	if (!eval_base(s, rule, value, to))
		return false;
	*to += (uint64_t)value.disp;
	return value.kind == EXIT_REGISTER || read_word(s, *to, to);
}

/* Whether it can be where generated code was called from: known code, or (`native`) anything that is no
 * such code. */
static bool is_return_address(struct step *s, uint64_t pc, bool native)
{
	struct code *c;

	if (!jvm_has_code(s->jvm, pc))
		return native && pc >= 4096 && pc < (uint64_t)1 << 47;
	c = code_find(s->jvm, pc);
	return c && pc > c->code_begin && pc < c->code_end;
}

static bool is_interpreter(const struct step *s, uint64_t pc)
{
	return pc >= s->jvm->interpreter_low && pc < s->jvm->interpreter_high;
}

/* Return address, stack pointer and rbp from these; the caller's frame is above. */
static bool try_caller(struct step *s, const struct exit_rule *rule, struct exit_value ret,
	struct exit_value sp, bool native, struct caller *caller)
{
	struct caller c = {0};

	if (!eval(s, rule, ret, &c.rip) || !is_return_address(s, c.rip, native) ||
		!eval(s, rule, rule->regs[RBP], &c.rbp))
		return false;
	if (!eval(s, rule, sp, &c.rsp)) {
		/* An adapter aligned it; the interpreter goes by rbp. */
		if (!is_interpreter(s, c.rip))
			return false;
		c.rsp = reg(s, CPU_REG_RSP);
	}
	if (c.rsp < reg(s, CPU_REG_RSP) || c.rsp & 7)
		return false;
	for (size_t i = 0; i < sizeof(callee_saved); i++)
		if (eval(s, rule, rule->regs[callee_saved[i]], &c.saved[i]))
			c.has_saved |= (uint8_t)(1u << i);
	*caller = c;
	return true;
}

/* The rule of the place, looked for once by `find`; NULL when there is none. */
static const struct exit_rule *rule_of(
	struct step *s, bool (*find)(struct step *s, struct exit_rule *rule))
{
	uint64_t key = (uint64_t)s->code->number << 32 | (s->pc - s->code->start);
	struct exit_rules *rules = &s->jvm->exit_rules;
	struct exit_rule rule;
	bool is_new;
	uint64_t *slot;

	if (rules->by_place.n >= EXIT_RULES_MAX) {
		map_reset(&rules->by_place);
		rules->n = 0;
	}
	slot = map_ensure(&rules->by_place, key, &is_new);
	if (is_new)
		*slot = NONE;
	if (is_new || (*slot == NONE && s->code->kind == CODE_BARE)) {
		if (find(s, &rule)) {
			*slot = (uint32_t)rules->n;
			vec_push(rules, rule);
		}
	}
	return *slot == NONE ? NULL : &rules->v[*slot];
}

/* Blobs of stubs are filled while the program runs: what is around the address is read anew. */
static bool find_in_bare_stub(struct step *s, struct exit_rule *rule)
{
	uint8_t bytes[BARE_BYTES];
	uint64_t low = s->pc - s->code->code_begin > BARE_BYTES / 3 ? s->pc - BARE_BYTES / 3
								    : s->code->code_begin;
	uint64_t left = s->code->code_end - low;
	struct exit_code code = {{bytes, left < sizeof(bytes) ? left : sizeof(bytes)}, low,
		s->code->code_begin, s->code->code_end};

	return s->pc < s->code->code_end && vm_read(&s->jvm->memory, low, bytes, code.bytes.n) &&
	       exit_rule_find(rule, &code, s->pc, STUB_INSNS_MAX);
}

static bool find_in_stub(struct step *s, struct exit_rule *rule)
{
	struct exit_code code = {
		{NULL, 0}, s->code->code_begin, s->code->code_begin, s->code->code_end};

	if (s->code->kind == CODE_BARE)
		return find_in_bare_stub(s, rule);
	code.bytes = code_bytes(s->jvm, s->code);
	return exit_rule_find(rule, &code, s->pc, STUB_INSNS_MAX);
}

static const struct exit_rule *stub_rule(struct step *s)
{
	return rule_of(s, find_in_stub);
}

/* --- the interpreter --- */

static enum codelet_state state_in_codelet(struct step *s, const struct codelet *codelet)
{
	struct span code = code_bytes(s->jvm, s->code);
	uint64_t begin = codelet->start + s->jvm->layout.codelet_bytes;
	bool is_new;
	uint64_t *state;

	if (s->pc <= begin || begin < s->code->code_begin)
		return CODELET_BUILT;
	state = map_ensure(&s->jvm->codelet_states, s->pc, &is_new);
	if (is_new)
		*state = codelet_state_at_end(
			span_sub(code, begin - s->code->code_begin, s->pc - begin), begin,
			codelet->is_entry);
	return (enum codelet_state) * state;
}

static void set_method_place(struct step *s, const struct method *m, int32_t bci)
{
	s->place->kind = method_is_native(m) ? JVM_PLACE_NATIVE : JVM_PLACE_INTERPRETED;
	s->place->code = method_number(m);
	s->place->at = bci < 0 ? JVM_BYTECODE_UNKNOWN : (uint32_t)bci;
	if (method_is_native(m))
		s->place->at = 0;
}

/* Words of the frame may not have been pushed yet when it is the innermost. */
static bool is_pushed(const struct step *s, uint64_t addr)
{
	return s->is_caller || addr >= reg(s, CPU_REG_RSP);
}

static void find_interpreted_method(struct step *s, uint64_t fp)
{
	const struct method *m = NULL;
	uint64_t addr, bcp;
	int32_t bci = -1;

	if (is_pushed(s, fp + METHOD_AT)) {
		if (read_word(s, fp + METHOD_AT, &addr))
			m = method_find(s->jvm, addr);
	} else if (has_reg(s, CPU_REG_RBX)) {
		m = method_find(s->jvm, reg(s, CPU_REG_RBX));
	}
	if (!m)
		return;
	/* The live one is in r13; it is saved to the frame before calls of Java and of most of the JVM. */
	if (has_reg(s, CPU_REG_R13))
		bci = method_bytecode_index(m, reg(s, CPU_REG_R13));
	if (bci < 0 && is_pushed(s, fp + BCP_AT) && read_word(s, fp + BCP_AT, &bcp))
		bci = method_bytecode_index(m, bcp);
	if (bci < 0 && !is_pushed(s, fp + BCP_AT))
		bci = 0;
	set_method_place(s, m, bci);
}

static enum jvm_step step_built(struct step *s)
{
	uint64_t fp = reg(s, CPU_REG_RBP), sender = 0;
	struct caller c = {0};

	if (fp & 7 || fp < reg(s, CPU_REG_RSP) - WORD)
		return lost(s, "the interpreter's frame is not where it should be");
	if (!read_word(s, fp, &c.rbp) || !read_word(s, fp + WORD, &c.rip))
		return lost(s, "the stack ends in an interpreter's frame");
	find_interpreted_method(s, fp);
	if (!is_return_address(s, c.rip, false))
		return lost(s, "the interpreter's frame has no return address");
	c.rsp = fp + 2 * WORD;
	if (is_pushed(s, fp - WORD) && read_word(s, fp - WORD, &sender) && sender >= c.rsp &&
		sender - c.rsp <= SENDER_DISTANCE_MAX && !(sender & 7))
		c.rsp = sender;
	else if (!is_pushed(s, fp - WORD) && has_reg(s, CPU_REG_R13) &&
		 reg(s, CPU_REG_R13) - c.rsp <= SENDER_DISTANCE_MAX)
		c.rsp = reg(s, CPU_REG_R13);
	return finish(s, &c);
}

/* The entry of a method before its frame. */
static enum jvm_step step_before(struct step *s)
{
	const struct exit_rule *rule = stub_rule(s);
	const struct method *m = NULL;
	struct caller c;

	if (has_reg(s, CPU_REG_RBX))
		m = method_find(s->jvm, reg(s, CPU_REG_RBX));
	if (m)
		set_method_place(s, m, 0);
	if (!rule)
		return lost(s, "the interpreter's entry is not understood");
	if (rule->how == EXIT_BY_FRAME && try_caller(s, rule, rule->ret, rule->pushed, false, &c))
		return finish(s, &c);
	if (rule->how == EXIT_BY_JUMP && rule->target.kind != EXIT_UNKNOWN &&
		try_caller(s, rule, rule->target, rule->regs[RSP], false, &c))
		return finish(s, &c);
	if (try_caller(s, rule, rule->ret, rule->sp, false, &c))
		return finish(s, &c);
	return lost(s, "the interpreter's entry has no return address");
}

/* Behind the frame: the return address is in a register, or about to be taken from the stack. */
static enum jvm_step step_gone(struct step *s)
{
	const struct exit_rule *rule = stub_rule(s);
	struct caller c;

	if (!rule)
		return lost(s, "the interpreter's exit is not understood");
	if (rule->how == EXIT_BY_JUMP &&
		(try_caller(s, rule, rule->target, rule->regs[RSP], false, &c) ||
			try_caller(s, rule, rule->regs[RDX], rule->regs[RSP], false, &c)))
		return finish(s, &c);
	if (try_caller(s, rule, rule->ret, rule->sp, false, &c))
		return finish(s, &c);
	return lost(s, "the interpreter's exit has no return address");
}

static enum jvm_step step_interpreter(struct step *s)
{
	const struct codelet *codelet = codelet_find(s->jvm, s->pc - s->is_caller);

	switch (codelet ? state_in_codelet(s, codelet) : CODELET_BUILT) {
	case CODELET_BEFORE:
		return step_before(s);
	case CODELET_GONE:
		return step_gone(s);
	default:
		return step_built(s);
	}
}

/* --- compiled methods, and stubs with a frame --- */

/* Whether the caller's frame is where it must be then: with a return address of its own. */
static bool has_frame(struct step *s, const struct caller *c)
{
	const struct code *code = code_find(s->jvm, c->rip);
	uint64_t ret;

	if (!code)
		return false;
	if ((code->kind == CODE_COMPILED || code->kind == CODE_NATIVE) && code->frame_bytes)
		return read_word(s, c->rsp + (uint64_t)code->frame_bytes - WORD, &ret) &&
		       is_return_address(s, ret, false);
	return c->rbp >= c->rsp && !(c->rbp & 7) && read_word(s, c->rbp + WORD, &ret) &&
	       is_return_address(s, ret, c->rip == s->jvm->call_stub_return);
}

/*
 * In the midst of a compiled method code for a method that the compiler knows (String.compareTo, BigInteger's) pushes
 * registers for a while: then the frame is so many words larger than it says. Where there is no frame yet, or no more,
 * a return address is on top of the stack, or below rbp there.
 */
static bool find_behind_pushed(struct step *s, struct caller *c)
{
	uint64_t sp = reg(s, CPU_REG_RSP), end = sp + (uint64_t)s->code->frame_bytes, word;

	for (uint64_t at = sp; at <= sp + WORD; at += WORD)
		if (!read_word(s, at, &word) || is_return_address(s, word, false))
			return false;
	for (unsigned i = 1; i <= PUSHED_WORDS_MAX; i++) {
		c->rsp = end + i * WORD;
		if (read_word(s, c->rsp - WORD, &c->rip) &&
			read_word(s, c->rsp - 2 * WORD, &c->rbp) &&
			is_return_address(s, c->rip, false) && has_frame(s, c))
			return true;
	}
	return false;
}

static enum jvm_step step_by_size(struct step *s)
{
	uint64_t sp = reg(s, CPU_REG_RSP);
	struct caller c = {.rsp = sp + (uint64_t)s->code->frame_bytes};

	if (!read_word(s, c.rsp - WORD, &c.rip) || !read_word(s, c.rsp - 2 * WORD, &c.rbp))
		return lost(s, "the stack ends in a compiled frame");
	if (!is_return_address(s, c.rip, false) &&
		(s->is_caller || s->code->kind != CODE_COMPILED || !find_behind_pushed(s, &c)))
		return lost(s, "a compiled frame has no return address");
	return finish(s, &c);
}

/* Whether what was followed took the frame away. */
static bool took_frame(const struct exit_rule *rule)
{
	return (rule->sp.kind == EXIT_REGISTER && rule->sp.reg == RSP && rule->sp.disp > WORD) ||
	       rule->regs[RBP].kind == EXIT_MEMORY;
}

/* Only what is not in the middle of the method, where its frame is as large as it says. */
static bool find_in_method(struct step *s, struct exit_rule *rule)
{
	uint8_t bytes[METHOD_BYTES];
	uint64_t left = s->code->code_end > s->pc ? s->code->code_end - s->pc : 0;
	struct exit_code code = {{bytes, left < sizeof(bytes) ? left : sizeof(bytes)}, s->pc,
		s->code->code_begin, s->code->code_end};

	return vm_read(&s->jvm->memory, s->pc, bytes, code.bytes.n) &&
	       (exit_rule_find_prologue(
			rule, &code, s->pc, s->code->frame_bytes, METHOD_INSNS_MAX) ||
		       (exit_rule_find(rule, &code, s->pc, METHOD_INSNS_MAX) &&
			       (rule->how == EXIT_BY_RETURN || took_frame(rule) ||
				       !s->code->frame_bytes)));
}

/* The innermost frame of a method: it may be in the prologue or in the epilogue. */
static enum jvm_step step_innermost_method(struct step *s)
{
	const struct exit_rule *rule = rule_of(s, find_in_method);
	struct caller c;

	if (rule && try_caller(s, rule, rule->ret, rule->sp, false, &c))
		return finish(s, &c);
	return s->code->frame_bytes ? step_by_size(s)
				    : lost(s, "compiled code without a frame is not understood");
}

/* A return address that was replaced so that the frame will be deoptimised: the true one is in the
 * frame. */
static uint64_t true_pc(struct step *s)
{
	uint64_t pc;

	if (!s->is_caller || (s->pc != s->code->deopt[0] && s->pc != s->code->deopt[1]))
		return s->pc;
	if (!read_word(s, reg(s, CPU_REG_RSP) + (uint64_t)s->code->orig_pc_offset, &pc) ||
		pc <= s->code->code_begin || pc >= s->code->code_end)
		return s->pc;
	return pc;
}

static enum jvm_step step_method(struct step *s)
{
	s->place->kind = s->code->kind == CODE_NATIVE ? JVM_PLACE_NATIVE : JVM_PLACE_COMPILED;
	s->place->at = (uint32_t)(true_pc(s) - s->code->start);
	return s->is_caller && s->code->frame_bytes ? step_by_size(s) : step_innermost_method(s);
}

/* --- stubs --- */

/* The way from native code into Java: its frame is at rbp, its caller is native. */
static enum jvm_step step_call_stub(struct step *s)
{
	const struct exit_rule *rule = stub_rule(s);
	uint64_t fp = reg(s, CPU_REG_RBP);
	struct caller c = {.rsp = fp + 2 * WORD};

	if (!read_word(s, fp, &c.rbp) || !read_word(s, fp + WORD, &c.rip))
		return lost(s, "the stack ends in the call stub");
	if (!is_return_address(s, c.rip, true))
		return lost(s, "the call stub has no return address");
	for (size_t i = 0; rule && i < sizeof(callee_saved); i++)
		if (rule->how == EXIT_BY_RETURN &&
			eval(s, rule, rule->regs[callee_saved[i]], &c.saved[i]))
			c.has_saved |= (uint8_t)(1u << i);
	return finish(s, &c);
}

/*
 * A virtual thread runs with its innermost frames on the stack and the others in the heap, until it
 * returns to them: the frame below which they are returns to a stub. On the stack the entry of the
 * virtual thread follows, whose frame begins with a ContinuationEntry.
 */
static bool is_return_barrier(const struct step *s)
{
	struct jvm *jvm = s->jvm;

	if (!s->is_caller || strncmp(s->code->name, "StubRoutines (continuation", 26))
		return false;
	/* It is made when the first virtual thread is. */
	if (!jvm->continuation_return && jvm->layout.continuation_return &&
		!vm_read_u64(
			&jvm->memory, jvm->layout.continuation_return, &jvm->continuation_return))
		return false;
	return jvm->continuation_return;
}

static enum jvm_step step_return_barrier(struct step *s)
{
	uint64_t entry = reg(s, CPU_REG_RSP), ret;
	uint64_t bytes = s->jvm->layout.continuation_entry_bytes;
	struct caller c = {s->jvm->continuation_return, 0, 0, {0}, 0};

	/* Arguments on the stack may stand between. */
	for (unsigned i = 0; i < BARRIER_WORDS_MAX; i++, entry += WORD) {
		if (!read_word(s, entry + bytes + WORD, &ret))
			break;
		if (!jvm_has_code(s->jvm, ret) || !is_return_address(s, ret, false))
			continue;
		c.rsp = entry;
		c.rbp = entry + bytes;
		s->jvm->return_barrier = s->pc;
		return finish(s, &c);
	}
	return lost(s, "callers of a virtual thread are in the heap");
}

/*
 * A stub that saves registers around what it calls has a frame at rbp. Where it is not its frame yet, or again, its own
 * return address stands below that; and where it calls from without a frame, on top of the stack. Among saved registers
 * anything may be.
 */
static bool find_at_rbp(struct step *s, struct caller *c)
{
	uint64_t sp = reg(s, CPU_REG_RSP), fp = reg(s, CPU_REG_RBP), word;
	uint64_t end = s->is_caller && fp - sp > 2 * WORD ? sp + 2 * WORD : fp;

	if (!has_reg(s, CPU_REG_RBP) || fp & 7 || fp < sp || fp - sp > STUB_FRAME_MAX)
		return false;
	for (uint64_t at = sp; at < end; at += WORD)
		if (!read_word(s, at, &word) || is_return_address(s, word, false))
			return false;
	*c = (struct caller){.rsp = fp + 2 * WORD};
	return read_word(s, fp, &c->rbp) && read_word(s, fp + WORD, &c->rip) &&
	       is_return_address(s, c->rip, false) && has_frame(s, c);
}

static enum jvm_step step_stub(struct step *s)
{
	const struct exit_rule *rule;
	struct caller c;

	if (is_return_barrier(s))
		return step_return_barrier(s);
	if (s->is_caller && s->pc == s->jvm->call_stub_return)
		return step_call_stub(s);
	if (s->is_caller && s->code->kind == CODE_FRAMED)
		return step_by_size(s);
	rule = stub_rule(s);
	if (rule && try_caller(s, rule, rule->ret, rule->sp, true, &c))
		return finish(s, &c);
	if (s->code->kind == CODE_FRAMED)
		return step_by_size(s);
	if (find_at_rbp(s, &c))
		return finish(s, &c);
	return lost(s, rule ? "a stub of the JVM has no return address"
			    : "a stub of the JVM is not understood");
}

enum jvm_step jvm_step(struct jvm *jvm, struct cpu_regs *regs, bool is_caller,
	const struct jvm_stack *stack, struct jvm_place *place, const char **why)
{
	uint64_t pc = regs->r[CPU_REG_RIP];
	struct step s = {jvm, regs, stack, place, why, code_find(jvm, pc), pc, is_caller, false};

	*why = NULL;
	*place = (struct jvm_place){JVM_PLACE_STUB, 0, 0};
	if (!s.code)
		return lost(&s, "no code is known there");
	place->code = s.code->number;
	place->at = (uint32_t)(pc - s.code->start);
	switch (s.code->kind) {
	case CODE_COMPILED:
	case CODE_NATIVE:
		return step_method(&s);
	case CODE_INTERPRETER:
		return step_interpreter(&s);
	default:
		return step_stub(&s);
	}
}
