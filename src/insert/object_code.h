/* SPDX-License-Identifier: MIT */
/*
 * The machine code of an object, taken apart: instructions, functions, who refers to what.
 * Everything that the inserter does is decided on this model.
 *
 *	code_read	decodes every function of every executable section
 *	code_resolve	finds out what branches, operands, tables and data mean (references.c)
 *	code_blocks	cuts functions into blocks (blocks.c)
 *	code_live	what is live at the head of each block (live.c)
 *	code_plan	what goes where (code_plan.c), and how much blocks add (late_sums.c)
 *	code_lay_out	where everything comes to lie (code_layout.c)
 *	code_emit	the new bytes and relocations (emit.c)
 */
#ifndef WEIR_INSERT_OBJECT_CODE_H
#define WEIR_INSERT_OBJECT_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/x86_code.h"
#include "arch/x86_effects.h"
#include "elf/elf_object.h"
#include "insert/exception_tables.h"
#include "insert/insert.h"
#include "insert/moved.h"

#define CODE_SECTION_BYTES_MAX (1u << 30)
#define CODE_NONE	       UINT32_MAX

enum code_insn_bits {
	CODE_INSN_HEAD = 1 << 0,    /* a block begins here */
	CODE_INSN_LANDING = 1 << 1, /* the unwinder enters here */
	CODE_INSN_TAIL = 1 << 2,    /* leaves the function by a jump */
	CODE_INSN_TWICE = 1 << 3,   /* calls a function that may return twice */
	CODE_INSN_FOREIGN = 1 << 4, /* calls a function that is timed */
	CODE_INSN_NOP = 1 << 5,
	CODE_INSN_WIDE = 1 << 6,     /* a short branch that needs a long distance now */
	CODE_INSN_TAIL_OUT = 1 << 7, /* the target of the tail jump is surely not inserted */
	CODE_INSN_GS = 1 << 8,
	CODE_INSN_ENDBR = 1 << 9,
	CODE_INSN_GATE = 1 << 10,  /* calls or jumps to a function that has a gate */
	CODE_INSN_FLAGS = 1 << 11, /* a head: status flags are live */
	CODE_INSN_EDGES = 1 << 12, /* a conditional branch that counts its block on both sides */
	CODE_INSN_BOUND = 1 << 13,
	CODE_INSN_FALLS =
		1 << 14, /* a conditional branch out of the function: leave only when taken */
	CODE_INSN_LABEL =
		1 << 15, /* a head that something refers to, not only the instruction before */
	CODE_INSN_TRANSACTION = 1 << 16,
	CODE_INSN_PAST_LOCK =
		1 << 17, /* a conditional branch past the lock prefix of an instruction */
	CODE_INSN_DATA_LABEL =
		1 << 19,	   /* data refer to it: perhaps as the address a call returns to */
	CODE_INSN_START = 1 << 18, /* a function begins here, or its entry code is in front of it */
	CODE_INSN_APART =
		1 << 20, /* its section is apart: blocks have counters, and add to no sum */
	CODE_INSN_PLACE = 1 << 21,     /* a distance counts from here (table_distance.c) */
	CODE_INSN_ELSEWHERE = 1 << 22, /* a head that more than branches of its function lead to */
	CODE_INSN_CARRY = 1 << 23,     /* a head: of the status flags the carry alone is live */
};

/* Where flags are live at the head of a block. */
enum code_detour {
	CODE_DETOUR_NONE,     /* there is no way */
	CODE_DETOUR_LATER,    /* they are dead further on in the block: the counter goes there */
	CODE_DETOUR_COMPARE,  /* the comparison that made them is made again behind the counter */
	CODE_DETOUR_EDGES,    /* the block is a conditional branch: counted on both its sides */
	CODE_DETOUR_REGISTER, /* they are saved in ax, and rax in a register that is free */
	CODE_DETOUR_STACK,    /* they are saved in ax, and rax below the red zone */
};

struct code_insn {
	uint32_t offset; /* in the section */
	uint8_t length;
	uint8_t flow;				    /* enum x86_flow */
	uint8_t rel_at, rel_bytes, disp_at, opcode; /* as in struct x86_insn */
	uint32_t bits;				    /* enum code_insn_bits */
	/* What its branch target or rip-relative operand means, when that is code of this object.
	 */
	uint32_t to_section; /* 0 = nothing here */
	uint32_t to;
	uint32_t reloc; /* the first relocation within it; CODE_NONE */
	/* For liveness. */
	uint16_t reads, kills;
	uint8_t flags_read, flags_killed;
	/* Of a head with CODE_INSN_FLAGS: how its block is counted all the same (enum code_detour).
	 */
	uint8_t detour;
	uint8_t detail; /* CODE_DETOUR_REGISTER: which; LATER, COMPARE: how many instructions away
			 */
	/* Layout. */
	uint32_t label, place;	/* new offsets: of what is inserted in front, and of itself */
	uint32_t before, after; /* bytes that are inserted in front of it and behind it */
	uint32_t between; /* of a branch past a lock prefix: bytes of the counter on its way */
};

struct code_function {
	const char *name; /* borrowed from the object; "" when nothing names it */
	uint32_t start, end;
	uint32_t first_insn, n_insns;
	uint32_t first_block, n_blocks;
	uint32_t parent; /* a .cold part: the function that it is a part of, in any section; else
			    itself */
	uint32_t parent_section;
	enum insert_reason reason; /* INSERT_REASON_DONE: code goes into it */
	bool is_fragment;	   /* entered by jumps only */
	bool is_global;
	bool is_decoded;
	bool takes_flags, returns_flags;
	bool is_named; /* a symbol says that it is a function */
	bool is_thunk; /* stands for an indirect jump or a return: no call enters it */
	/* By register, once label_jumps.c has asked: it holds nothing but addresses of labels. */
	uint16_t asked_registers, label_registers;
	bool has_asked_stack,
		lacks_stack;  /* once own_stack.c has been asked: rsp is no stack pointer */
	bool has_data_labels; /* data refer to places within it: jump tables, computed goto */
	bool has_code_labels; /* instructions take addresses of places within it */
	uint32_t pad;	      /* bytes of padding in front of it, in the new layout */
	uint32_t entry_insn;  /* enter is called in front of it: the first one behind endbr and pads
			       */
};

/* Bytes between functions. */
struct code_gap {
	uint32_t start, end;
	bool is_padding; /* may be made longer or shorter */
	uint32_t pad;	 /* bytes of padding in front of it, in the new layout */
	uint32_t place;	 /* its new offset */
};

struct code_block {
	uint32_t first_insn, n_insns;
	uint32_t function;
	bool is_unreachable; /* padding behind a jump: it needs no counter */
	int32_t added;	     /* to the sum of costs */
	uint32_t stripe;     /* of that sum */
};

struct code_section {
	uint32_t number; /* of the object */
	const char *name;
	struct span bytes;
	uint32_t align;
	bool is_code;		     /* executable, and taken apart */
	enum insert_reason reason;   /* why the section as a whole is left alone; else DONE */
	VEC(struct code_insn) insns; /* by offset */
	VEC(struct code_function) functions;
	uint32_t asked_function; /* the last one that code_function_at has found */
	VEC(struct code_gap) gaps;
	VEC(struct code_block) blocks;
	uint32_t *at; /* by offset: 1 + instruction that begins there; 0 = none */
	uint32_t new_bytes;
	uint32_t counters; /* the section that was added for them */
	uint32_t unit;	   /* the section that was added to describe it */
	bool is_apart; /* nothing but thunks: counted, and in the cost of none of their callers */
};

struct code {
	struct elf_object *object;
	const struct insert_options *options;
	struct exception_tables tables;
	struct code_section *sections; /* by section number; [0] is not used */
	size_t n_sections;
	bool is_compiled; /* a compiler made it */
	struct moved moved;
	/* Relocations of data that are jump-table entries and need more than their target's new
	 * place: by section and relocation. */
	VEC(struct code_table_entry {
		uint32_t section;
		uint32_t reloc;	    /* index into its relocations */
		uint32_t from_base; /* PC32: the distance from the table's start, in the addend */
		bool is_inner;	    /* a jump of a function to its own start, past its entry code */
	})
	table_entries;
	VEC(struct code_label {
		uint64_t offset;
		uint32_t section;
		uint32_t symbol;
	})
	labels;		       /* symbols without a type or a size, by place */
	size_t name_bytes;     /* of the names that code_admit_name let through */
	uint8_t *callee_kinds; /* by symbol: blocks.c */
	bool has_patch_places; /* of -fpatchable-function-entry */
};

/* A place that a relocation means: `section` 0 when it is not in a section of this object. */
struct code_target {
	uint32_t section;
	int64_t offset;
};

/* Fails when exception tables are not understood: then every function is there, and refused. To be
 * released in any case. */
int code_read(struct code *c, struct elf_object *o, const struct insert_options *options,
	struct err *err);
void code_release(struct code *c);
void code_resolve(struct code *c);
/* Part of code_resolve: distances to the global offset table (table_distance.c). */
void code_find_distances(struct code *c);
void code_blocks(struct code *c);
/* Is this a jump through a register that holds nothing but addresses of labels (label_jumps.c)? */
bool code_jumps_to_labels(const struct code *c, const struct code_section *s,
	struct code_function *f, const struct code_insn *jump);
/* Is a call of a function of this name timed, when it has no inserted code? */
bool code_is_timed(const struct code *c, const char *name);
void code_live(struct code *c);
/* Does the stack pointer point to a stack all through the function (own_stack.c)? */
bool code_keeps_stack(const struct code *c, const struct code_section *s, struct code_function *f);
void code_plan(struct code *c);
void code_lay_out(struct code *c);
/* Adds the counters, and the units that describe the functions: a section each for each text
 * section. Behind code_lay_out, in front of code_emit; or alone, where all sections are left alone. */
void code_describe(struct code *c);
void code_emit(struct code *c);
/* The addend of a relocation that lies in this instruction of a section (or in data: NULL), for
 * where its target has gone. Symbols must still have their old values. */
void code_move_addend(const struct code *c, const struct code_section *s,
	const struct code_insn *insn, struct object_reloc *r);
/* Part of it; false when the relocation is not such a distance. */
bool code_move_distance(const struct code *c, const struct code_section *s,
	const struct code_insn *insn, struct object_reloc *r);
/* Relocations of the sections that code_emit has not written, and the symbols, once every map is
 * known. */
void code_relocate(struct code *c);
/* Code refers to its unit, so that linkers that drop what nothing refers to (--gc-sections) keep both: gold does not
 * know SHF_LINK_ORDER. Behind all else. */
void code_keep_units(struct code *c);

/* Parts of code_read. Code between functions that something leads to becomes functions, too. */
void code_find_unnamed(struct code *c);
void code_decode_function(struct code *c, struct code_section *s, struct code_function *f);
/* The padding that [at, end) of the section begins with; 0 when it is none. */
uint32_t code_padding_bytes(const struct code_section *s, uint32_t at, uint32_t end);
/* Puts the functions in order and finds what lies between them. */
void code_section_find_gaps(struct code_section *s);
/* Names (code_names.c). The name itself, or "" when the object's names are too long in all. */
const char *code_admit_name(struct code *c, const char *name);
/* "f.cold" and "f.cold.3" are parts of "f" that are entered by jumps: the length of "f"; else 0. */
size_t code_fragment_base(const char *name);
/* Entered by the kernel, not by a call, and known to unwinders by its very bytes and by the one in front. */
bool code_is_signal_return(const char *name);
/* A function whose end the object does not tell: nasm, .type without .size. Returns from signals stay as they
 * are. */
bool code_symbol_lacks_size(const struct object_symbol *sym);
void code_read_labels(struct code *c);
/* The first of its labels that is here or behind. */
size_t code_label_from(const struct code *c, uint32_t section, uint64_t offset);
/* The symbol without a type or a size at this very place; "" when there is none. */
const char *code_name_at(struct code *c, uint32_t section, uint64_t offset);
/* The function that each .cold part belongs to: by name; when there is none, it stays on its own.
 */
void code_find_parents(struct code *c);

/* The instruction at this offset; NULL when none begins there. */
struct code_insn *code_insn_at(const struct code *c, uint32_t section, uint64_t offset);
/* The function that holds the offset; NULL. O(log n). */
struct code_function *code_function_at(const struct code *c, uint32_t section, uint64_t offset);
/* The gap that holds the offset; NULL. O(log n). */
const struct code_gap *code_gap_at(const struct code_section *s, uint64_t offset);
/* The section when it is code; NULL. */
static inline struct code_section *code_section_at(const struct code *c, uint64_t number)
{
	return number < c->n_sections && c->sections[number].is_code ? &c->sections[number] : NULL;
}
/* The section that is code behind `s`, or the first of them when that is NULL; NULL: no more. */
static inline struct code_section *code_next(const struct code *c, const struct code_section *s)
{
	for (size_t n = s ? s->number + (size_t)1 : 1; n < c->n_sections; n++)
		if (c->sections[n].is_code)
			return &c->sections[n];
	return NULL;
}
/* True when code goes into the section. */
static inline bool code_section_is_inserted(const struct code_section *s)
{
	return s->is_code && s->reason == INSERT_REASON_DONE;
}
/* Leaves the whole section alone, with all its functions that have no reason of their own yet. */
void code_section_refuse(struct code_section *s, enum insert_reason reason);
void code_refuse(struct code *c, enum insert_reason reason); /* all sections */

/* Lengths, of the instruction as it will be and of what is put around it (code_plan.c). */
uint32_t code_insn_bytes(const struct code_insn *insn);
/* Those of them that are not inserted: some branches become several instructions. */
uint32_t code_insn_own_bytes(const struct code_insn *insn);
/* How many sums there are to add to. */
uint32_t code_head_sums(const struct code *c, const struct code_insn *head);
uint32_t code_head_bytes(
	const struct code *c, const struct code_section *s, const struct code_block *b);
/* Of what is inserted in front of an instruction, that in front of the counters. */
uint32_t code_bytes_before_heads(const struct code *c, const struct code_section *s,
	const struct code_function *f, uint32_t insn_i);
static inline bool code_add_is_long(int32_t added)
{
	return added < INT8_MIN || added > INT8_MAX;
}
/* Sets what each block of the function adds. */
void code_late_sums(const struct code *c, struct code_section *s, const struct code_function *f);
/* The block that a CODE_INSN_PAST_LOCK branch of the function leads into. */
uint32_t code_locked_block(
	const struct code_section *s, const struct code_function *f, const struct code_insn *insn);
/* The instruction that a block's counter is put in front of. */
uint32_t code_head_insn(
	const struct code_section *s, const struct code_function *f, uint32_t block);
/* Is its entry code in front of this instruction? */
bool code_function_enters_at(const struct code *c, const struct code_function *f, uint32_t insn_i);
#define CODE_CALL_BYTES 5
/* CODE_DETOUR_STACK: the red zone, which the program may use, and a word. */
#define CODE_STACK_SHIFT (128 + 8)
#define CODE_LEA_BYTES	 8 /* lea n(%rsp),%rsp */
#define CODE_SLOT_BYTES	 4 /* mov %rax,(%rsp) */
#define CODE_MOV_BYTES	 3 /* mov %rax,%r */
/* Where the entry code of a function ends: jumps back to its beginning, which are no calls, go
 * there. And where the branch or operand of an instruction of section `from`, whose target is code
 * of this object, leads to in the new layout. */
uint32_t code_inner_start(
	const struct code *c, const struct code_section *s, const struct code_function *f);
uint32_t code_branch_target(
	const struct code *c, const struct code_section *from, const struct code_insn *insn);

/* Whether relocation `k` of its section, from insn->reloc on, is one within the instruction. */
static inline bool code_insn_has_reloc(
	const struct code_insn *insn, const struct object_section *os, size_t k)
{
	return insn->reloc != CODE_NONE && k < os->relocs.n &&
	       os->relocs.v[k].offset < insn->offset + insn->length;
}
/* Where the instruction ends in the new layout, with what is inserted behind it. */
static inline uint32_t code_insn_end(const struct code_insn *insn)
{
	return insn->place + code_insn_bytes(insn) + insn->after;
}

/* What the relocation at index `i` of a section means. Relocations of code count from the end of
 * the instruction, and `insn` is the one that holds it; NULL for data. */
struct code_target code_reloc_target(
	const struct code *c, const struct object_reloc *r, const struct code_insn *insn);
/* Does the value of this type depend on where the target lies, in a way that can be mended? */
bool code_reloc_is_pc(uint32_t type);
bool code_reloc_is_address(uint32_t type);
/* Name of the symbol that a call or jump goes to by a relocation, its own or one of what set its register; NULL when it
 * goes by distance or is not known (callee.c). */
const char *code_insn_callee(const struct code *c, const struct code_section *s,
	const struct code_insn *insn, const struct object_symbol **symbol);
/* The function of this object whose start it calls or jumps to; NULL. */
const struct code_function *code_called(
	const struct code *c, const struct code_section *s, const struct code_insn *insn);
/* Does an instruction that is no call take the address of a symbol, or of the slot that has it? */
bool code_takes_address(const struct code *c, const struct code_section *s,
	const struct code_insn *insn, const struct object_symbol **symbol);

#endif
