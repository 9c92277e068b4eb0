/* SPDX-License-Identifier: MIT */
/* From checked clauses to intermediate code, for one point and one mode. Internal to compile/. */
#ifndef WEIR_PROBE_COMPILE_LOWER_H
#define WEIR_PROBE_COMPILE_LOWER_H

#include "probe/compile/check.h"
#include "probe/compile/ir.h"
#include "probe/compile/point_types.h"

/* Where the clause goes on after something failed. */
enum failure { FAILURE_READ, FAILURE_OTHER, FAILURE_UNWALKED, N_FAILURES };

/* What error {} may ask for. */
enum error_fact { ERROR_NUMBER, ERROR_ADDRESS, ERROR_LINE, N_ERROR_FACTS };

struct loop_labels {
	ir_label next, end;
	struct loop_labels *outer;
};

/* How a stack is walked: by call-frame information, along frame pointers, and the kernel's. */
enum stack_way { STACK_BY_RULES, STACK_BY_POINTERS, STACK_OF_KERNEL, N_STACK_WAYS };

/* Of what runs. */
enum task_number { TASK_THREAD, TASK_PROCESS };

struct lower {
	struct check_clause *clause;
	struct check_clause *error_clause; /* checked for this mode, or NULL */
	struct stream *stream;
	struct diags *diags;
	enum mode mode;
	enum point_kind kind;
	struct ir ir;
	ir_label end;	       /* of the clause */
	ir_label function_end; /* of the innermost function of the script; 0 = in none */
	ir_label failed[N_FAILURES];
	ir_value error[N_ERROR_FACTS]; /* kept for error {}; 0 = nobody asks */
	struct loop_labels *loop;
	/* By their frames: those that were walked in front of a loop. */
	ir_value stacks[N_STACK_WAYS][STREAM_STACK_FRAMES + 1];
	struct point_types *point_types; /* for facts of the running kernel */
	bool uses_site, reads_user, is_in_error, is_in_function;
	uint32_t n_looping; /* clauses with loops at this point, this one too */
};

/* The whole clause: predicate first. `*predicate_n` is the number of IR instructions that belong to
 * the predicate. */
void lower_clause(struct lower *l, size_t *predicate_n);

/* --- shared by the files of the lowering ----------------------------------------------------- */

/* lower.c */
void lower_statements(struct lower *l, const struct stmt *s);

/* lower_loop.c */
void lower_while(struct lower *l, const struct stmt *s);
void lower_for(struct lower *l, const struct stmt *s);
void lower_for_map(struct lower *l, const struct stmt *s);
void lower_unroll(struct lower *l, const struct stmt *s);

/* An object in memory: of the traced program, of the kernel, of the context, or of ours. */
struct object {
	enum { OBJECT_ADDRESS, OBJECT_MEMORY, OBJECT_CONTEXT } kind;
	enum space space; /* ADDRESS */
	ir_value address; /* ADDRESS; 0 with kind MEMORY */
	ir_mem mem;	  /* MEMORY */
	int64_t offset;
	uint8_t bit_offset, bit_size; /* of a bit-field */
};

static inline const struct type *type_of(const struct lower *l, const struct expr *e)
{
	return e->type[l->mode];
}
/* A structure of which only the name was known where it was mentioned. */
static inline const struct type *lower_completed(const struct lower *l, const struct type *type)
{
	return types_completed(l->clause->session->types[l->mode], type);
}
static inline const struct meaning *meaning_of(const struct lower *l, const struct expr *e)
{
	return e->meaning[l->mode];
}

/* An integer or pointer, extended to 64 bits as its type says. */
ir_value lower_value(struct lower *l, const struct expr *e);
/* a = b; the value, or 0 when it is none. */
ir_value lower_assign(struct lower *l, const struct expr *a, const struct expr *b);
/* The statements of an EXPR_BLOCK; its value, e->a, is the caller's matter. */
void lower_block(struct lower *l, const struct expr *e);
/* For its effects alone. */
void lower_effect(struct lower *l, const struct expr *e);
/* Jumps to `no` when the condition does not hold. */
void lower_condition(struct lower *l, const struct expr *e, ir_label no);
/* An expression that lies in memory: structures, arrays, dereferences, texts. */
struct object lower_object(struct lower *l, const struct expr *e);
/* A text as type->n bytes of memory, padded with NULs. */
ir_mem lower_text(struct lower *l, const struct expr *e);
/* Writes a text, buffer, stack, symbol or time: n bytes of room. */
void lower_into(struct lower *l, const struct expr *e, ir_mem mem, uint32_t at, uint32_t n);

/* lower_store.c */
/* Where a value is kept, and as what: room for lower_padded_size(type) bytes. */
struct destination {
	const struct type *type;
	ir_mem mem;
	uint32_t at;
};
/* Writes the value of `e`, whose type may be narrower, as one of the destination's type; fills all of
 * it. */
void lower_store(struct lower *l, const struct expr *e, struct destination to);
/* Whether two values are equal, both taken as of one type that lies in memory. */
ir_value lower_equal(
	struct lower *l, const struct expr *a, const struct expr *b, const struct type *type);
/* lower_cast.c: casts with a value, of arrays, and of texts into n bytes of room */
ir_value lower_cast_value(struct lower *l, const struct expr *e);
struct object lower_cast_object(struct lower *l, const struct expr *e);
void lower_cast_text(struct lower *l, const struct expr *e, ir_mem mem, uint32_t at, uint32_t n);
/* A number as one of another type. */
ir_value lower_convert(struct lower *l, ir_value v, const struct type *from, const struct type *to);
uint32_t lower_size(const struct type *type); /* bytes of a value that is kept */
static inline uint32_t lower_padded_size(const struct type *type)
{
	return (uint32_t)shape_padded(lower_size(type));
}
uint32_t lower_tuple_offset(const struct type *tuple, uint32_t i);
/* Whether a type is held as one 64-bit value. */
bool lower_is_value(const struct type *type);

/* lower_memory.c */
/* Goes to the failure unless the helper's result is 0 (or, with negative_only, not negative). */
void lower_fail_unless_ok(
	struct lower *l, ir_value result, bool negative_only, enum failure why, ir_value address);
void lower_fail(struct lower *l, enum failure why, int error_number);
/* Of an OBJECT_ADDRESS, with its offset. */
ir_value lower_address(struct lower *l, const struct object *o);
ir_value lower_read(struct lower *l, const struct object *o, uint32_t bytes, bool is_signed);
ir_value lower_load_object(struct lower *l, const struct object *o, const struct type *type);
/* Copies n bytes of an object into memory. */
void lower_copy_object(
	struct lower *l, const struct object *o, uint32_t n, ir_mem mem, uint32_t at);
/* A NUL-terminated text at an address into n bytes of memory; gives the helper's result (bytes with
 * the NUL). */
ir_value lower_read_text(
	struct lower *l, enum space space, ir_value address, uint32_t n, ir_mem mem, uint32_t at);
/* The same for n characters: behind them is no NUL. */
void lower_read_full_text(
	struct lower *l, enum space space, ir_value address, uint32_t n, ir_mem mem, uint32_t at);
/* Up to 8 bytes as a number; 0 when they cannot be read, which is no failure. */
ir_value lower_peek(struct lower *l, enum space space, ir_value address, uint32_t bytes);
/* And counts a text that goes on behind them. */
void lower_read_text_to_limit(
	struct lower *l, enum space space, ir_value address, uint32_t n, ir_mem mem, uint32_t at);
/* Of at most `length` and n characters. */
void lower_read_text_up_to(struct lower *l, enum space space, ir_value address, ir_value length,
	uint32_t n, ir_mem mem, uint32_t at);
void lower_copy_memory(
	struct lower *l, ir_mem from, uint32_t from_at, ir_mem to, uint32_t to_at, uint32_t n);
/* n bytes of memory: those given, zeros behind them. Of a text: up to its NUL. */
void lower_bytes(
	struct lower *l, const char *text, size_t text_n, ir_mem mem, uint32_t at, uint32_t n);
void lower_literal(
	struct lower *l, const char *text, size_t text_n, ir_mem mem, uint32_t at, uint32_t n);
ir_value lower_register(struct lower *l, uint16_t reg);

/* The key of an array map: 4 bytes of memory with a number. All 8 of a word are written, here and
 * in records: the verifier takes what it finds in words of the stack that are only written in part
 * for alive, and follows every path anew through all that comes behind. */
ir_mem lower_index(struct lower *l, uint32_t index);

/* lower_value_use.c: arguments, results */
ir_value lower_use_value(struct lower *l, const struct value_use *use);
struct object lower_use_object(struct lower *l, const struct value_use *use);
ir_value lower_fact(struct lower *l, enum run_fact fact);
ir_value lower_global_address(struct lower *l, const struct global_use *g);

/* lower_text.c */
ir_value lower_text_equal(struct lower *l, const struct expr *a, const struct expr *b, int64_t n);
ir_value lower_text_length(struct lower *l, const struct expr *call); /* strlen(TEXT) */
/* lower_search.c: where text b begins in text a, or -1; with `is_asked` 1 when it is somewhere, or 0. */
ir_value lower_text_find(
	struct lower *l, const struct expr *a, const struct expr *b, bool is_asked);

/* builtins.c: names and calls that mean a builtin; 0 when it has no value */
ir_value lower_builtin(struct lower *l, const struct expr *e);
/* One whose value lies in memory: str, buf, usym, comm, ...; false when it does not. */
bool lower_builtin_into(struct lower *l, const struct expr *e, ir_mem mem, uint32_t at, uint32_t n);
/* SHAPE_USYM, SHAPE_USTACK: a number, the process and the mode. */
void lower_user_address(struct lower *l, ir_value address, ir_mem mem, uint32_t at);

/* SHAPE_NAME: a number, which is printed as the name of what it is. */
void lower_name(struct lower *l, ir_value number, enum name_of what, uint32_t detail, ir_mem mem,
	uint32_t at);

/* lower_map.c */
ir_mem lower_map_key(struct lower *l, const struct map_use *map, const struct expr *keys);
/* The same to look something up: a loss when a stack in it is not known yet. */
ir_mem lower_map_read_key(struct lower *l, const struct map_use *map, const struct expr *keys);
/* Pointer to the value, possibly null. */
ir_value lower_map_find(struct lower *l, const struct map_use *map, ir_mem key);
/* *result = the word behind a pointer, when that is not null. */
void lower_load_found(struct lower *l, ir_value p, uint32_t at, ir_value result);
/* The same for n bytes, into memory. */
void lower_copy_found(struct lower *l, ir_value p, uint32_t at, ir_mem mem, uint32_t n);
ir_value lower_map_value(struct lower *l, const struct expr *e);
struct object lower_map_object(struct lower *l, const struct expr *e);
void lower_map_assign(struct lower *l, const struct expr *map, const struct expr *value);
/* @x += v: the value after it when `wants_value`, before it with `is_post`. */
ir_value lower_map_add(struct lower *l, const struct expr *map, ir_value v, bool is_post);
/* @x = v, of one value. */
void lower_map_store(struct lower *l, const struct expr *map, ir_value v);
/* The helper's result: 0, or negative when there was no such key. */
ir_value lower_map_delete(struct lower *l, const struct map_use *map, const struct expr *keys);
ir_value lower_map_update(
	struct lower *l, const struct map_use *map, ir_mem key, struct ir_arg value, int flags);
static inline int64_t lower_map_number(const struct map_use *map)
{
	return STREAM_MAP_FIRST_OF_SCRIPT + (int64_t)map->number;
}

/* lower_aggregation.c */
/* @x[keys] = count() and the others. */
void lower_aggregate(struct lower *l, const struct expr *map, const struct expr *call);
/* What the aggregation behind a key has come to (shape_is_readable); 0 when there is no such key. */
ir_value lower_aggregated(struct lower *l, const struct map_use *map, ir_mem key);
/* The processors that compiled code knows of: those of this machine. */
uint32_t lower_n_cpus(void);

/* lower_stack_walk.c: the id of the program's stack, walked by call-frame information */
ir_value lower_stack_walk(struct lower *l, uint32_t n_frames);

/* builtin_stack.c: walks the stacks that are asked for in a loop, for stacks[] */
void lower_stacks_of(struct lower *l, const struct stmt *loop);

/* lower_self.c */
ir_value lower_self_value(struct lower *l, const struct variable *v);
struct object lower_self_object(struct lower *l, const struct variable *v);
void lower_self_assign(struct lower *l, const struct variable *v, const struct expr *value);
void lower_self_set(struct lower *l, const struct variable *v, ir_value value);

/* Adds one to a counter of the clause: offset in struct clause_loss. */
void lower_count_loss(struct lower *l, uint32_t field);
/* As the kernel counts, and as weir sees it in /proc. The second is 0 for a process outside of weir's pid
 * namespace; *rc (or NULL) is the helper's result then, and 0 where none is called. */
ir_value lower_kernel_task_number(struct lower *l, enum task_number which);
ir_value lower_task_number(struct lower *l, enum task_number which, ir_value *rc);
/* goto done; lost: count that a map was full; done: */
void lower_end_lost(struct lower *l, ir_label lost, ir_label done);

#endif
