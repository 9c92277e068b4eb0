/* SPDX-License-Identifier: MIT */
/*
 * The checker gives every expression of a clause its type and meaning, for one trace point and one
 * mode at a time; the lowering follows at once, since the next point may mean something else
 * (args.x of another function). Maps and thread-locals belong to all clauses: everything is checked
 * once to learn their types (CHECK_LEARN), and then again for good (CHECK_FINAL).
 *
 * Rules of types: arithmetic is done in 64 bits on widened operands; it is unsigned when an operand
 * is an unsigned 64-bit integer or a pointer, signed otherwise. Pointer + integer steps by the size
 * of what it points to in the mode. Locals and thread-locals have the type of their first
 * assignment; a map has one type in both modes: canonical (shape.h).
 * A branch that a constant condition (bits == 32) never takes is not checked and not lowered.
 */
#ifndef WEIR_PROBE_COMPILE_CHECK_H
#define WEIR_PROBE_COMPILE_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "probe/points/usdt.h"
#include "probe/stream/stream.h"
#include "probe/types/call_abi.h"
#include "probe/types/type.h"

/* --- what names and calls mean: expr->meaning ----------------------------------------------- */

struct builtin; /* builtin.h */

/* Where a value of the traced program is: the meaning of argN, sargN, retval and args.NAME. */
enum value_use_kind {
	USE_PLACE,	    /* registers or stack of a call: place */
	USE_SYSCALL_ARG,    /* index: of the saved user registers */
	USE_SYSCALL_RESULT, /* second word of the raw tracepoint; index: RESULT_OF_* */
	USE_CONTEXT_FIELD,  /* offset: of a tracepoint's record */
	USE_CONTEXT_DATA,   /* offset: of its __data_loc word; the type is a string */
	USE_CONTEXT_WORD,   /* index: 8-byte word of the context (raw tracepoints, fentry) */
	USE_USDT,	    /* operand */
	USE_UNREADABLE	    /* in a vector register: counts as a failed read; a warning was given */
};
/* The index of a USE_SYSCALL_RESULT: how 32 bits become 64. */
enum result_of {
	RESULT_OF_NUMBER,  /* by the type's sign */
	RESULT_OF_ADDRESS, /* only errors are negative */
	RESULT_OF_SEVERAL  /* as an address when the call is one that returns one */
};
struct value_use {
	enum value_use_kind kind;
	uint32_t index, offset;
	struct value_place place;
	struct usdt_operand operand;
	const struct type *type;
};

/* $x, self->x: one for each name; locals belong to a clause. */
struct variable {
	const char *name;
	const struct type *type[N_MODES]; /* NULL: not assigned yet */
	struct place place;		  /* first assignment */
	uint32_t offset;		  /* self: in the thread's storage, 8-byte steps */
	uint32_t storage;		  /* locals: for the lowering's use */
	bool is_read, is_assigned;
	/* The checker's own. */
	bool is_weak;	   /* only constants were assigned: a wider or unsigned type replaces it */
	bool is_declared;  /* let with a type, loop variables: the type is fixed */
	bool is_hidden;	   /* its block has ended */
	bool is_let;	   /* declared: 0 until it is assigned */
	bool is_loop;	   /* of for: not to be assigned */
	bool is_left;	   /* the block of its first assignment has ended */
	bool is_addressed; /* &$x: it lies in memory */
	uint32_t scope;	   /* depth of the block that declares it; 0: the whole clause */
	uint32_t home;	   /* with scope 0: depth of the block of its first assignment */
	const void *node;  /* of the tree: where it begins */
	struct variable *next;
};

/* @x. `number` is that of the stream's map. */
struct map_use {
	const char *name;			/* "@x" */
	uint32_t number;			/* index into stream.maps */
	struct shape *key, *value;		/* NULL: not known yet */
	const struct type *key_type[N_MODES];	/* of the canonical key; set by check_learned */
	const struct type *value_type[N_MODES]; /* of the canonical value: what reading it gives */
	const struct map_decl *decl;		/* or NULL */
	struct place place;
	bool is_read, is_assigned;
	struct map_use *next;
};

/* A global of the probed program: meaning of an EXPR_NAME that is no builtin. */
struct global_use {
	const char *name;
	uint64_t iaddr;
	const struct type *type;
};

/* What an EXPR_NAME means is one of these; the kind comes first in each wrapper. */
enum meaning_kind {
	MEANING_BUILTIN,
	MEANING_VALUE,
	MEANING_GLOBAL,
	MEANING_CONSTANT,
	MEANING_VARIABLE,
	MEANING_MAP,
	MEANING_JOINED
};
struct meaning {
	enum meaning_kind kind;
	union {
		const struct builtin *builtin;	 /* NAME, CALL */
		const struct value_use *value;	 /* NAME argN, retval; MEMBER args.x */
		const struct global_use *global; /* NAME */
		struct variable *variable;	 /* LOCAL, SELF */
		struct map_use *map;		 /* MAP */
		const struct type *joined;	 /* BINARY: as what both sides are compared */
	};
	/* CALL of printf, print, time, exit, ...: number in stream.formats (made in CHECK_FINAL).
	 * Its args are as many as the call gives: exit() has none, print(@m, 5) has one.
	 * strftime: number in stream.strings. */
	uint32_t format;
	struct expr *record;		  /* NAME args: the record of all arguments */
	const struct value_use *reg;	  /* CALL of reg(): kind USE_USDT, operand a register */
	const struct global_use *address; /* CALL of uaddr() */
};

/* --- checking --------------------------------------------------------------------------------- */

/* All that lasts over clauses. */
struct check_session {
	const struct script *script;
	struct stream *stream; /* maps, formats and shapes are added to it */
	struct types *types[N_MODES];
	struct diags *diags;
	struct arena *arena;
	struct map_use *maps;	/* all, in order of first use */
	struct variable *selfs; /* all thread-locals */
	uint32_t string_bytes;	/* of str() without a length */
	uint32_t stack_form;	/* of stacks that do not say it: a sum of enum stack_form */
	bool is_unsafe;
	const char *clock_map; /* "@ts": what tseries() takes for the time, in tests; or NULL */
	bool is_kept;	       /* the stream is written to a file, and may run elsewhere */
	bool reads_records;    /* of tracepoints: the code is for this kernel */
	enum { CHECK_LEARN, CHECK_FINAL } pass;
	/* CHECK_LEARN found out something new (a longer string, a type that a clause further down
	 * assigns). Set it to false, check everything again, and so on until it stays false; at
	 * most CHECK_LEARN_ROUNDS times. */
	bool is_changed;
};
#define CHECK_LEARN_ROUNDS 16

/* One clause at one point in one mode. */
struct check_clause {
	struct check_session *session;
	struct clause *clause;
	uint32_t clause_i;
	const struct stream_point *point; /* spec, operands, name */
	enum mode mode;
	/* What is known of the point in this mode; set by compile.c, any may be NULL. */
	const struct type *function;	     /* TYPE_FUNCTION of the probed function */
	const struct call_facts *call;	     /* what debug information says of it at the site */
	const struct type *fields;	     /* TYPE_STRUCT: record of the tracepoint */
	const struct usdt_operand *operands; /* USDT */
	uint32_t n_operands;
	const char *syscall;	 /* the one system call it is about; NULL when several */
	struct variable *locals; /* made by the checker */
	/* The checker's own; all 0 at first. */
	uint32_t n_errors, n_loops, depth, scope, round;
	bool has_grown; /* a local's type changed after its first use: once more */
};

/* The count(), sum(...), ... that is the value of blocks around it: { ...; count() }. */
const struct expr *check_aggregating_call(const struct expr *e);
/* False when it found errors. */
bool check_clause(struct check_clause *c);
/* Whether the language has such a name or function. */
bool check_has_builtin(const char *name, bool is_function);
/* After CHECK_LEARN over everything without errors: reports maps and thread-locals that are read
 * but never assigned, gives thread-locals their offsets (stream.self_bytes) and maps their shapes.
 */
void check_learned(struct check_session *s);

/* The canonical shape of a type in a mode, for keys, values and arguments; NULL and a message at
 * `place` when there is none (a struct whose layout differs between the modes: `other` is its type
 * in the other mode, or NULL when not known). */
struct shape *check_shape(struct check_session *s, const struct type *type,
	const struct type *other, struct place place);
/* The field of a tuple that .0, .name or [0] names; n_fields when there is none. */
uint32_t check_tuple_index(const struct expr *member, const struct type *tuple, enum mode mode);
/* The type in which a value is kept: an array of characters as a string. */
const struct type *check_kept_type(struct types *types, const struct type *type);
/* What reading a value of that shape gives. */
const struct type *check_shape_type(struct types *types, const struct shape *shape);

#endif
