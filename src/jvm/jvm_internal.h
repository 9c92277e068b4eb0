/* SPDX-License-Identifier: MIT */
/* What the files of this folder share; nobody else includes it. */
#ifndef WEIR_JVM_JVM_INTERNAL_H
#define WEIR_JVM_JVM_INTERNAL_H

#include "base/arena.h"
#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "elf/elf_file.h"
#include "jvm/exit_rule.h"
#include "classfile/java_name.h"
#include "jvm/jvm.h"
#include "jvm/scopes.h"
#include "jvm/vm_layout.h"
#include "jvm/vm_memory.h"

#define HEAPS_MAX 8 /* HotSpot has up to 3, 4 in a debug build */

/* A part of the code cache: blocks of segments, and a byte for each segment that leads back to the
 * first segment of its block. */
struct code_heap {
	uint64_t low, high; /* committed; it grows */
	uint64_t segmap;
	unsigned log2_segment;
	uint64_t descriptor; /* CodeHeap* */
};

enum code_kind {
	CODE_COMPILED,	  /* nmethod of a Java method */
	CODE_NATIVE,	  /* nmethod that calls a native method */
	CODE_INTERPRETER, /* codelets */
	CODE_FRAMED,	  /* a stub with a frame of a fixed size */
	CODE_BARE	  /* stubs and adapters: how they are left is found in their code */
};

/* What tells one code from another that had its place before. */
struct code_identity {
	uint64_t name, method, code_begin;
	uint32_t size, data_offset;
	int32_t frame_size, compile_id, entry_bci;
};

struct code {
	uint32_t number;
	enum code_kind kind;
	uint64_t start, end; /* CodeBlob, header included */
	uint64_t code_begin, code_end;
	struct code_identity identity;
	int32_t frame_bytes;	/* 0 = none */
	int32_t frame_complete; /* offset from code_begin; negative: never */
	const char *name;	/* interned; of the blob */
	uint32_t batch;		/* in which it was last compared with memory */
	uint32_t used;		/* in which it was last asked for */
	bool is_dead;		/* something else is there now */

	/* Of compiled methods. */
	uint64_t method;	/* Method* */
	uint64_t stubs_begin;	/* exception and deoptimisation handlers behind the code */
	uint64_t deopt[2];	/* return addresses that stand for others; 0 = none */
	int32_t orig_pc_offset; /* where in the frame the true one is */
	uint64_t scopes_data, scopes_pcs, metadata; /* debug information; 0 = not known */
	uint32_t scopes_data_bytes, scopes_pcs_bytes, metadata_bytes;

	uint8_t *
		debug; /* copies of scopes_pcs, scopes_data and metadata, one behind the other; owned */
	uint8_t *copy; /* of stubs: their bytes from code_begin, read at first use; owned */
};

/* A piece of the interpreter: a bytecode's template, an entry, ... */
struct codelet {
	uint64_t start, end;
	const char *name; /* interned */
	bool is_entry;	  /* builds a frame */
};

/* A Method of the JVM and what was read of it. */
struct method;
struct methods;

/* How code is left from a place, by code and offset: found once. */
#define EXIT_RULES_MAX 16384
struct exit_rules {
	struct exit_rule *v;
	size_t n, cap;
	struct map by_place;
};

/* What was found of places in compiled code, kept for when the code is gone. */
#define PLACE_LEVELS_MAX (1u << 20)
struct place_levels {
	struct jvm_level *v;
	size_t n, cap;
	struct map by_place; /* number and offset -> first << 8 | how many */
};

/* How references and classes of objects are kept in this JVM. */
struct oop_format {
	bool is_known;
	bool has_narrow_oops, has_narrow_klass, has_compact_headers, is_z;
	uint64_t oop_base, klass_base;
	unsigned oop_shift, klass_shift;
};

struct jvm {
	struct vm_memory memory;
	struct file_map file;
	struct elf_file elf;
	struct vm_table_symbols symbols;
	struct vm_layout layout;
	bool has_layout, is_ready, is_gone;
	bool is_refused;      /* it will never be ready */
	struct err hindrance; /* why it is not ready */
	uint32_t batch;
	uint32_t next_number;

	uint64_t code_low, code_high; /* reserved for code */
	struct code_heap heaps[HEAPS_MAX];
	size_t n_heaps;
	VEC(struct code *) codes; /* by start, none overlap; owned */
	VEC(struct code *) dead;  /* a ring of those that were replaced last; owned */
	size_t next_dead;
	struct map by_number; /* number -> struct code * */
	VEC(struct codelet) codelets;
	uint64_t interpreter_low, interpreter_high;
	uint64_t call_stub_return, continuation_return; /* 0 = not made yet */
	uint64_t
		return_barrier; /* where frames return to whose callers are in the heap; 0 = not seen */
	unsigned least_byte; /* of compressed streams, see unsigned5.h */
	size_t debug_bytes;  /* of all copies of debug information */
	struct place_levels place_levels;
	struct exit_rules exit_rules;
	struct map codelet_states; /* by address, enum codelet_state */
	struct intern texts;
	struct methods *methods;

	struct oop_format oops;
	uint32_t thread_name_at; /* offsets of fields; 0 = not known yet */
	uint32_t string_value_at, string_coder_at;
	uint64_t string_klass; /* java.lang.String */
};

/* The texts live as long as `jvm`. */
const char *jvm_text(struct jvm *jvm, const char *text);

/* --- code_cache.c --- */
/* Reads where the heaps are; false while there are none. */
bool code_cache_begin(struct jvm *jvm);
/* The block that holds the address: where its CodeBlob starts. *used_bytes are the block header's. */
bool code_cache_find_start(struct jvm *jvm, uint64_t pc, uint64_t *start);

/* --- code_blob.c --- */
/* The code that holds the address, compared with memory in this batch; NULL when there is none. */
struct code *code_find(struct jvm *jvm, uint64_t pc);
struct code *code_by_number(struct jvm *jvm, uint32_t number);
/* Compares all that the last batch used, with few system calls. */
void codes_compare(struct jvm *jvm);
/* The code's own bytes from code_begin on, kept; empty when they cannot be read. */
struct span code_bytes(struct jvm *jvm, struct code *code);
/* Its debug information, kept; false when it is not known or cannot be read. */
bool code_scopes(struct jvm *jvm, struct code *code, struct scopes *scopes);
void codes_release(struct jvm *jvm);

/* --- interpreter.c --- */
bool interpreter_begin(struct jvm *jvm);
const struct codelet *codelet_find(const struct jvm *jvm, uint64_t pc);

/* --- methods.c --- */
struct methods *methods_new(void);
void methods_free(struct methods *methods);
/* The Method at this address, read or compared in this batch; NULL when there is none. */
const struct method *method_find(struct jvm *jvm, uint64_t addr);
/* Compares all that the last batch used, with few system calls. */
void methods_compare(struct jvm *jvm);
const struct method *method_by_number(struct jvm *jvm, uint32_t number);
uint32_t method_number(const struct method *method);
bool method_is_native(const struct method *method);
/* The index of the bytecode at this address; -1 when it is none of the method's. */
int32_t method_bytecode_index(const struct method *method, uint64_t bcp);
/* Name, signature, file, and the line of the bytecode (-1: not known). */
void method_describe(const struct method *method, int32_t bci, struct jvm_level *level);

/* --- vm_symbols.c --- */
struct symbol_identity {
	uint64_t addr;
	uint32_t hash;
	uint16_t length;
};
/* The text of a Symbol, put in place of what `to` held, when it can be such a name; freed memory has no
 * references, or is no name. */
bool symbol_identify(struct jvm *jvm, uint64_t addr, enum java_name_kind kind,
	struct symbol_identity *id, struct buf *to);
bool symbol_read(struct jvm *jvm, uint64_t addr, enum java_name_kind kind, struct buf *to);
bool symbol_is(struct jvm *jvm, uint64_t addr, const char *text);

/* --- oops.c --- */
/* False when this JVM does not tell how it keeps objects. */
bool oop_format_begin(struct jvm *jvm);
/* References; false when there is none, or it cannot be followed safely. */
bool oop_read_handle(struct jvm *jvm, uint64_t handle, uint64_t *oop);
bool oop_read_field(struct jvm *jvm, uint64_t object, uint32_t offset, uint64_t *oop);
bool oop_klass(struct jvm *jvm, uint64_t object, uint64_t *klass);
/* The class or that of its superclasses with this name (java/lang/Thread); 0 = none. */
uint64_t klass_find_super(struct jvm *jvm, uint64_t klass, const char *name);
/* The offset in objects of a field that this class itself declares; -1 = it has none. */
int32_t klass_field_offset(struct jvm *jvm, uint64_t klass, const char *name);

#endif
