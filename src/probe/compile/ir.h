/* SPDX-License-Identifier: MIT */
/*
 * The intermediate code between scripts and BPF: a list of instructions on any number of 64-bit
 * values and a few pieces of memory. It knows nothing of types, modes and scripts; those are gone
 * after the lowering. Jumps go forward, but for those back to the beginning of a loop.
 * Functions (ir_function) stand behind the one call of them, by the clause or by a helper; their code
 * has the values and the memory of the clause, and leaves by ir_return alone.
 *
 *   v3 = context[112]                       IR_CONTEXT
 *   v4 = call 112(mem1, 4, v3)              IR_CALL
 *   if v4 != 0 goto L2                      IR_BRANCH
 *   v5 = s32 mem1[0]                        IR_LOAD
 */
#ifndef WEIR_PROBE_COMPILE_IR_H
#define WEIR_PROBE_COMPILE_IR_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "probe/script/diag.h"

typedef uint32_t ir_value; /* 0 = none */
typedef uint32_t ir_label;
typedef uint32_t ir_mem; /* 0 = none */

enum ir_op {
	IR_CONST,	    /* d = imm */
	IR_COPY,	    /* d = a */
	IR_ALU,		    /* d = a sub b|imm; sub is BPF_ADD, ... */
	IR_EXTEND,	    /* d = a cut to `bytes` and extended, by is_signed */
	IR_SWAP,	    /* d = a with the order of its `bytes` reversed */
	IR_SET,		    /* d = a sub b|imm ? 1 : 0; sub is BPF_JEQ, ... */
	IR_LABEL,	    /* label: */
	IR_JUMP,	    /* goto label */
	IR_BRANCH,	    /* if (a sub b|imm) goto label */
	IR_CONTEXT,	    /* d = 8 bytes (or `bytes`) of the context at offset */
	IR_CONTEXT_ADDRESS, /* d = the context itself */
	IR_WORD,	    /* d = the loader's word at r10 + offset */
	IR_ADDRESS,	    /* d = the address of mem + offset */
	IR_LOAD,       /* d = `bytes` at mem (or at pointer a) + offset, extended by is_signed */
	IR_STORE,      /* `bytes` at mem (or at pointer a) + offset = b|imm */
	IR_ADD_ATOMIC, /* 8 bytes at pointer a + offset += b */
	IR_ZERO,       /* imm bytes of mem at offset = 0 */
	IR_CALL,       /* d = helper imm (args) */
	IR_LOOP,       /* a loop of imm turns (0: not known) begins: its first label follows */
	IR_LOOP_END,   /* it ends: the jump back stands before this */
	IR_MAY_TURN, /* goto label when the loop has turned too often: the kernel says so, or a >= imm */
	IR_UNKNOWN, /* d = something that the verifier knows nothing of, where the kernel counts turns */
	IR_CALL_FUNCTION, /* function imm */
	IR_FUNCTION,	  /* function number imm begins */
	IR_PARAMETER,	  /* d = argument imm of the function, counted from 1; first things in it */
	IR_RETURN,	  /* return imm */
	IR_FUNCTION_END
};

enum ir_arg_kind {
	IR_ARG_VALUE,
	IR_ARG_IMM,
	IR_ARG_MEM,
	IR_ARG_MAP,
	IR_ARG_CONTEXT,
	IR_ARG_FUNCTION, /* n: its number */
	IR_ARG_FRAME	 /* what such a function gets as its fourth argument */
};

struct ir_arg {
	enum ir_arg_kind kind;
	uint32_t n;  /* value, memory or function */
	int64_t imm; /* IMM; MEM: offset; MAP: its number in the stream */
};

#define IR_ARGS_MAX  5
#define IR_INSNS_MAX 60000

struct ir_insn {
	enum ir_op op;
	uint8_t sub;
	uint32_t bytes;
	bool is_signed, has_imm;
	ir_value d, a, b;
	ir_mem mem;
	ir_label label;
	int32_t offset;
	int64_t imm;
	struct ir_arg args[IR_ARGS_MAX];
	uint8_t n_args;
	struct place place;
};

/* Memory lies on the stack when it is small, and in the scratch area otherwise. */
struct ir_memory {
	uint32_t bytes;
	int32_t at; /* from r10 (negative) or from r7 */
	bool is_on_stack;
};

struct ir {
	VEC(struct ir_insn) insns;
	VEC(struct ir_memory) memories; /* [0] is none */
	uint32_t n_values, n_labels, n_functions;
	uint32_t stack_bytes, stack_top;     /* used by memory: now, at most */
	uint32_t scratch_bytes, scratch_top; /* likewise */
	/* Behind a jump nothing runs until a label that is jumped to; the kernel refuses code
	 * there, so it is not added. */
	bool is_dead;
	VEC(uint8_t) is_target; /* by label */
	bool is_too_big;	/* scratch memory ran out */
	bool is_too_long;	/* IR_INSNS_MAX: nothing more is added */
	struct place place;	/* given to instructions that are added */
};

void ir_release(struct ir *ir);
void ir_reset(struct ir *ir);

ir_value ir_new_value(struct ir *ir);
ir_label ir_new_label(struct ir *ir);
/* Zeroed nowhere. Taken back by ir_memory_release, last in first out. */
ir_mem ir_new_memory(struct ir *ir, uint32_t bytes);
/* The same, but never on the stack: it may be read at any offset and alignment. */
ir_mem ir_new_scratch(struct ir *ir, uint32_t bytes);
struct ir_memory_mark {
	uint32_t stack_bytes, scratch_bytes;
};
struct ir_memory_mark ir_memory_mark(const struct ir *ir);
void ir_memory_release(struct ir *ir, struct ir_memory_mark mark);

ir_value ir_const(struct ir *ir, int64_t value);
void ir_copy(struct ir *ir, ir_value d, ir_value a);
void ir_set_const(struct ir *ir, ir_value d, int64_t value);
ir_value ir_alu(struct ir *ir, int op, ir_value a, ir_value b);
ir_value ir_alu_imm(struct ir *ir, int op, ir_value a, int64_t imm);
ir_value ir_extend(struct ir *ir, ir_value a, uint32_t bytes, bool is_signed);
ir_value ir_swap(struct ir *ir, ir_value a, uint32_t bytes);
ir_value ir_set(struct ir *ir, int cond, ir_value a, ir_value b);
ir_value ir_set_imm(struct ir *ir, int cond, ir_value a, int64_t imm);
void ir_place_label(struct ir *ir, ir_label label);
void ir_jump(struct ir *ir, ir_label label);
void ir_branch(struct ir *ir, int cond, ir_value a, ir_value b, ir_label label);
void ir_branch_imm(struct ir *ir, int cond, ir_value a, int64_t imm, ir_label label);
ir_value ir_context(struct ir *ir, int32_t offset, uint32_t bytes, bool is_signed);
ir_value ir_context_address(struct ir *ir);
ir_value ir_address(struct ir *ir, ir_mem mem, int32_t offset);
ir_value ir_word(struct ir *ir, int32_t offset);
ir_value ir_load(struct ir *ir, ir_mem mem, int32_t offset, uint32_t bytes, bool is_signed);
ir_value ir_load_at(struct ir *ir, ir_value p, int32_t offset, uint32_t bytes, bool is_signed);
void ir_store(struct ir *ir, ir_mem mem, int32_t offset, uint32_t bytes, ir_value v);
void ir_store_imm(struct ir *ir, ir_mem mem, int32_t offset, uint32_t bytes, int64_t imm);
void ir_store_at(struct ir *ir, ir_value p, int32_t offset, uint32_t bytes, ir_value v);
void ir_add_atomic(struct ir *ir, ir_value p, int32_t offset, ir_value v);
void ir_zero(struct ir *ir, ir_mem mem, int32_t offset, uint32_t bytes);
void ir_loop(struct ir *ir, int64_t turns);
/* Counts one more turn, or goes to the label when there were too many: where the kernel counts them
 * when it says so, else when there were `most` (0: a limit that is still to be set). */
void ir_may_turn(struct ir *ir, ir_value turns, int64_t most, ir_label label);
void ir_loop_end(struct ir *ir);
/* Where the kernel counts turns: a number that its verifier knows nothing of; else 0. */
ir_value ir_unknown(struct ir *ir);
/* v = v, but the verifier knows no more of it than of `unknown`. */
void ir_forget(struct ir *ir, ir_value v, ir_value unknown);
/* The number of a function, for the call that stands before it. */
uint32_t ir_new_function(struct ir *ir);
void ir_call_function(struct ir *ir, uint32_t number);
void ir_function(struct ir *ir, uint32_t number);
ir_value ir_parameter(struct ir *ir, int n);
void ir_return(struct ir *ir, int64_t value);
void ir_function_end(struct ir *ir);

#define LOOP_TURNS_MAX 2000
/* loop_turns.c: gives the loops whose number of turns is not known (ir_loop and ir_may_turn with 0)
 * the limit that they have on kernels that do not count turns. The verifier sees `n_clauses` such
 * clauses one after the other. */
void loop_turns_set(struct ir *ir, uint32_t n_clauses);

/* d = helper(args): IR_V(value), IR_I(number), IR_M(memory, offset), IR_MAP(number), IR_CTX,
 * IR_FUNC(number), IR_FRAME. */
#define IR_V(v)	     ((struct ir_arg){IR_ARG_VALUE, (v), 0})
#define IR_I(i)	     ((struct ir_arg){IR_ARG_IMM, 0, (int64_t)(i)})
#define IR_M(m, off) ((struct ir_arg){IR_ARG_MEM, (m), (off)})
#define IR_MAP(n)    ((struct ir_arg){IR_ARG_MAP, 0, (n)})
#define IR_CTX	     ((struct ir_arg){IR_ARG_CONTEXT, 0, 0})
#define IR_FUNC(n)   ((struct ir_arg){IR_ARG_FUNCTION, (n), 0})
#define IR_FRAME     ((struct ir_arg){IR_ARG_FRAME, 0, 0})
ir_value ir_call(struct ir *ir, int helper, const struct ir_arg *args, int n);
#define IR_CALL_(ir, helper, ...)                                                                  \
	ir_call(ir, helper, (const struct ir_arg[]){__VA_ARGS__},                                  \
		sizeof((const struct ir_arg[]){__VA_ARGS__}) / sizeof(struct ir_arg))

#endif
