/* SPDX-License-Identifier: MIT */
/*
 * The parts of the planner. For one image, in this order:
 *
 *   plan_image.c	its code, the functions by their symbols, what lies between them
 *   wish.c, plan_unsafe.c	which of them are wished for, and which must be left alone
 *   plan_relocs.c	what calls through the linkage table and through pointers mean
 *   plan_targets.c, plan_tables.c	where branches and tables lead into the bytes that would be
 * patched plan_method.c, plan_move.c	how each function is patched, and its moved instructions
 *   plan_return.c	what functions do with their return address
 *   plan_extras.c	functions of libc and of V8 that the hook library replaces or watches
 *   plan.c		all of that for every image, numbered
 *   plan_class.c	Java methods: the class gets calls instead
 */
#ifndef WEIR_RECORD_HOOKS_PLAN_INTERNAL_H
#define WEIR_RECORD_HOOKS_PLAN_INTERNAL_H

#include <string.h>

#include "arch/x86_code.h"
#include "record/hooks/plan.h"
#include "symbols/range_paint.h"
#include "symbols/elf_tables.h"

/* A planned image, and what the functions' names point into. */
struct image_entry {
	struct planned_image image;
	struct buf names;
	uint32_t first_id;
};
/* plan.c */
void image_entry_free(struct image_entry *e);
/* It is the planner's from here on; its functions are numbered already, from first_id on. Returns its place, plus 1. */
size_t hook_planner_add(struct hook_planner *p, struct image_entry *e);

#define JUMP_BYTES	 5 /* e9 and a 32-bit distance */
#define SHORT_JUMP_BYTES 2
#define NO_FUNCTION	 UINT32_MAX

struct ranges {
	VEC(struct range) all;
};

/* A section of code (a segment, when the image has no sections). */
struct code_region {
	uint64_t start, end;
	struct span bytes;
	uint64_t *is_wanted; /* a bit for each byte: would be patched */
	uint64_t *is_start;  /* a bit for each byte: a function begins there */
	bool is_stub;	     /* of the procedure linkage table */
};

struct image_function {
	uint64_t start, end;
	uint32_t name_i, n_names; /* in names; the best one first */
	bool is_ifunc;
	bool is_fragment;    /* foo.cold: jumped to, not called */
	bool is_label;	     /* nothing says that it is a function */
	bool calls_cyg;	     /* __cyg_profile_func_enter is called in it */
	const char *refusal; /* why it must be left alone; static; NULL = it need not */
};

/* Code of one function, or of a nameless one; stretches do not overlap. What is between them is
 * padding or unknown. */
struct code_stretch {
	uint64_t start, end;
	uint32_t function_i; /* NO_FUNCTION: nameless */
};

/* What a call may mean to the planner. */
enum callee { CALLEE_NONE, CALLEE_MCOUNT, CALLEE_CYG_ENTER, CALLEE_CYG_EXIT };

/* Zero-initialise. */
struct image_facts {
	const struct elf_file *elf;
	const char *path;
	bool is_64;
	uint64_t got_base; /* what 32-bit position-independent code has in ebx; 0 = not known */
	VEC(struct code_region) regions;      /* by address */
	VEC(struct candidate) names;	      /* by address, the best of an address first */
	VEC(struct image_function) functions; /* by address */
	VEC(struct code_stretch) stretches;   /* by address */
	VEC(uint64_t) labels;	/* sorted: symbols and frames that begin no function */
	VEC(uint64_t) targets;	/* sorted: where branches lead into wanted bytes */
	struct map callee_of;	/* address of code -> enum callee */
	struct map callee_slot; /* address of a pointer -> enum callee */
	struct map pads_used;	/* start of padding -> bytes of it that are taken */
	bool is_v8;		/* has V8's generated code */
	bool is_jvm;		/* is HotSpot, which makes code while it runs */
	bool has_cyg;		/* has stubs for libc's __cyg_profile_func_enter and exit */
	/* What names are borrowed from: */
	struct elf_tables tables;
	VEC(char *) owned;
};

/* --- plan_image.c --- */
/* Fails when the image has no code that could be hooked. */
int image_facts_init(
	struct image_facts *f, const struct elf_file *elf, const char *path, struct err *err);
void image_facts_release(struct image_facts *f);
/* Sorts structures by the address that they begin with. */
void image_sort(void *items, size_t n, size_t bytes);
struct code_region *image_region(const struct image_facts *f, uint64_t addr);
/* The bytes from `addr` to the end of its section; empty outside of code. */
struct span image_code(const struct image_facts *f, uint64_t addr);
bool image_decode(const struct image_facts *f, uint64_t addr, struct x86_insn *insn);
/* NO_FUNCTION when none begins there. */
uint32_t image_function_at(const struct image_facts *f, uint64_t start);
uint32_t image_function_named(const struct image_facts *f, const char *name);
/* The first stretch that ends behind `addr`; the number of stretches when there is none. */
size_t image_stretch_from(const struct image_facts *f, uint64_t addr);
static inline const char *image_function_name(
	const struct image_facts *f, const struct image_function *fn)
{
	return f->names.v[fn->name_i].name;
}

static inline uint32_t u32_at(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* --- plan_unsafe.c --- */
bool image_is_libc(const struct elf_file *elf, const char *path);
bool image_is_go(const struct elf_file *elf);
/* Why no function of the image may be hooked; NULL = they may. */
const char *image_refusal(const struct elf_file *elf, const char *path);
/* Why the function may not; NULL = it may. */
const char *function_refusal(const struct image_facts *f, const struct image_function *fn);

/* 32-bit code: mov (%esp),%reg; ret */
bool image_is_pc_thunk(const struct image_facts *f, uint64_t addr);

/* --- plan_return.c --- */
bool touches_return_address(const struct image_facts *f, const struct image_function *fn);

/* --- plan_relocs.c --- */
/* Fills callee_of, callee_slot, has_cyg. */
void image_find_callees(struct image_facts *f);
/* Calls `each` with the addresses of the image that its relocations put into memory. */
void image_each_pointer(
	struct image_facts *f, void (*each)(struct image_facts *f, uint64_t target));
/* Sections with the addresses of places to patch, such as -fpatchable-function-entry makes: whoever
 * has one does not go there. */
bool image_section_is_list_of_code(const char *name);
/* The kind of what an instruction calls, directly or through a pointer. */
enum callee image_callee(const struct image_facts *f, uint64_t addr, const struct x86_insn *insn);

/* --- plan_targets.c --- */
/* Adds to `targets` where branches, tables and pointers lead into the ranges, apart from calls of
 * functions and jumps from one function to another. Also finds calls_cyg. */
void image_find_targets(struct image_facts *f, const struct range *ranges, size_t n);
/* The first target or label in [low, high); false when there is none. */
bool image_has_target(const struct image_facts *f, uint64_t low, uint64_t high, uint64_t *target);

/* --- plan_tables.c --- */
/* What may be the table of a switch, by an instruction that has its address. */
struct switch_table {
	uint64_t table;
	uint64_t source; /* a byte of the instruction */
	uint64_t base;	 /* what its entries count from; 0: they are addresses */
};
/* Calls `each` for the entries that lead to code of the source's function. Sorts the tables. */
void image_read_tables(const struct image_facts *f, struct switch_table *tables, size_t n,
	void (*each)(void *ctx, const struct switch_table *t, uint64_t target), void *ctx);
/* Whether the instruction's memory operand may be the table. */
bool image_means_table(
	const struct image_facts *f, uint64_t addr, const struct x86_insn *insn, uint64_t table);

/* --- plan_move.c --- */
#define MOVED_FIXUPS_MAX 32

/* Zero-initialise. */
struct moved_code {
	uint8_t bytes[HOOK_CODE_MAX];
	uint8_t n;
	uint8_t n_fixups, n_moves;
	bool is_ended; /* control does not go on behind the last instruction */
	struct hook_fixup fixups[MOVED_FIXUPS_MAX];
	struct hook_move moves[HOOK_ORIGINAL_MAX];
};
/* Appends what has the effect of the instruction at `addr`. False, with a phrase, when it cannot be
 * moved. A call can only be moved as the last one: it returns to the original code. */
bool moved_code_add(struct moved_code *m, const struct image_facts *f, uint64_t addr,
	const struct x86_insn *insn, bool is_last, const char **reason);
/* The jump back, unless it could not be reached. */
void moved_code_end(struct moved_code *m, uint64_t back);
void moved_code_note(struct moved_code *m, uint64_t from); /* the next byte replaces byte `from` */

/* --- plan_method.c --- */
struct site_plan {
	uint8_t method; /* enum hook_method; 0 = refused */
	const char *reason;
	uint64_t site, pad_site;
	uint8_t n_patched, n_original;
	struct moved_code code;
};
/* The bytes that a jump at the entry might take: to be looked at for targets. */
struct range function_wanted(const struct image_facts *f, const struct image_function *fn);
/* Nops, mcount, or a jump. False when none fits; then `p->reason` says why. */
bool site_plan_jump(struct site_plan *p, struct image_facts *f, const struct image_function *fn);
/* A jump for which nothing needs to be moved, because the function is never run. */
bool site_plan_replace(struct site_plan *p, struct image_facts *f, const struct image_function *fn);
/* Padding in reach of a short jump, to be looked at for targets. */
void function_pads(struct image_facts *f, const struct image_function *fn,
	void (*each)(void *ctx, struct range pad), void *ctx);
/* A short jump to padding, or a breakpoint, or nothing. */
void site_plan_last(struct site_plan *p, struct image_facts *f, const struct image_function *fn);

/* Appends the wire form. */
struct plan_header {
	uint32_t id;
	uint8_t action, detail;
	uint64_t function;
};
void site_plan_put(const struct site_plan *p, const struct image_facts *f,
	const struct plan_header *header, struct buf *to);

/* --- plan_extras.c --- */
/* HOOK_AMOUNT_* of an allocation function; false when it is none. */
bool allocation_amount(const char *name, uint8_t *detail);
bool image_defines_allocations(const struct elf_file *elf);
struct extra {
	uint32_t function_i; /* NO_FUNCTION: the stub at `stub` */
	uint64_t stub;
	enum hook_action action;
	enum hook_own own;
};
/* The functions that the hook library needs for itself, one entry a place. */
struct extras {
	VEC(struct extra) all;
};
void extras_find_libc(struct extras *e, const struct image_facts *f);
void extras_find_cyg(struct extras *e, const struct image_facts *f);
/* A JVM's library: how JVMs are made and found. */
void extras_find_jvm(struct extras *e, const struct image_facts *f);
/* Of a JVM: where it says how much its threads have allocated. */
void extras_find_heap(struct extras *e, const struct image_facts *f);
bool image_is_jvm(const struct elf_file *elf, const char *path);
/* False when V8 is in the image and cannot be told of the hooks. */
bool extras_find_v8(struct extras *e, const struct image_facts *f);
bool image_defines_v8(const struct elf_file *elf);

#endif
