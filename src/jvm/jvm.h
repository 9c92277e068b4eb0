/* SPDX-License-Identifier: MIT */
/*
 * A HotSpot JVM, read from outside. Nothing is loaded into it and nothing in it is stopped: the JVM
 * describes its own structures (gHotSpotVMStructs and its siblings, exported by libjvm.so), and
 * they are read with process_vm_readv. From them come what a code address is (interpreter, compiled
 * method, stub), how its frame leads to the caller, and which methods it stands for.
 *
 * The JVM runs on while it is read, so whatever is read may be torn, freed or reused: every pointer
 * is checked, every walk is bounded, and what was read before is compared again before it is used
 * in a later batch. An answer is given only when it holds; otherwise there is a reason.
 */
#ifndef WEIR_JVM_JVM_H
#define WEIR_JVM_JVM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "arch/cpu_regs.h"
#include "base/err.h"

struct jvm;

/* `bias` is the virtual minus the image address of libjvm.so, `path` a file that has it (maybe below
 * /proc/PID/root). Fails with a sentence when this is no JVM that we can read: 32 bits, no
 * structures exported, or not permitted. A JVM that has not begun yet is no error: jvm_is_ready()
 * says so, and jvm_begin_batch() tries again. */
int jvm_open(struct jvm **to, pid_t pid, const char *path, uint64_t bias, struct err *err);
void jvm_free(struct jvm *jvm);
bool jvm_is_ready(const struct jvm *jvm);
/* Why it is not ready; NULL when it is. */
const char *jvm_hindrance(const struct jvm *jvm);

/* What was read before is compared with the JVM's memory again at its first use from here on. */
void jvm_begin_batch(struct jvm *jvm);

/* --- frames ----------------------------------------------------------------------------- */

/* Whether the address lies in one of the JVM's code heaps. Cheap. */
bool jvm_has_code(struct jvm *jvm, uint64_t pc);

/* Memory of the thread's stack, at the time of the sample. */
struct jvm_stack {
	bool (*read)(void *ctx, uint64_t addr, void *to, size_t n);
	void *ctx;
};

enum jvm_place_kind {
	JVM_PLACE_INTERPRETED, /* a method at a bytecode */
	JVM_PLACE_COMPILED, /* compiled code at an address; inlined methods come by jvm_levels() */
	JVM_PLACE_NATIVE,   /* the way into a native method: it has a method and no bytecode */
	JVM_PLACE_STUB	    /* the JVM's own generated code, by its name */
};

/* Where a frame is. */
struct jvm_place {
	enum jvm_place_kind kind;
	/* Unique in this JVM for the life of `struct jvm`: code that was unloaded and other code at
	 * the same address have different numbers. Of the method (interpreted), the compiled
	 * method or the stub. */
	uint32_t code;
	uint32_t at; /* bytecode index (interpreted); offset of the address in the code */
};
#define JVM_BYTECODE_UNKNOWN UINT32_MAX

enum jvm_step {
	JVM_STEP_DONE,	/* `regs` are the caller's: rip, rsp, rbp */
	JVM_STEP_SHORT, /* the stack could not be read there */
	JVM_STEP_LOST	/* no frame that we understand; *why says what it was */
};

/* From a frame in the JVM's code to its caller. `is_caller`: rip is a return address. The place is
 * set whatever comes out, as far as it is known. In a prologue, an epilogue or the interpreter's
 * dispatch of the innermost frame the frame is not complete: that is told by the code itself. */
enum jvm_step jvm_step(struct jvm *jvm, struct cpu_regs *regs, bool is_caller,
	const struct jvm_stack *stack, struct jvm_place *place, const char **why);

/* --- names ------------------------------------------------------------------------------ */

struct jvm_level {
	const char *
		name; /* `com.example.Outer$Inner.method(int, java.lang.String[])`, or a stub's name */
	const char *signature; /* as in class files: `(I[Ljava/lang/String;)V`; NULL for stubs */
	const char *file;      /* `Outer.java`; NULL = not known */
	uint32_t line;	       /* 0 = not known */
	bool is_inlined;       /* into the next level */
};
#define JVM_LEVELS_MAX 64

/* The methods that a place stands for, innermost first; 0 with a reason when they cannot be read any more.
 * The strings live as long as `jvm`. */
size_t jvm_levels(struct jvm *jvm, const struct jvm_place *place,
	struct jvm_level levels[JVM_LEVELS_MAX], const char **why);

/* --- threads ---------------------------------------------------------------------------- */

/* The thread's name in Java, in UTF-8; false when the JVM knows no such thread (any more). The JVM's own
 * threads (collector, compiler) have their names, too. */
enum jvm_thread_kind { JVM_THREAD_JAVA, JVM_THREAD_COLLECTOR, JVM_THREAD_COMPILER, JVM_THREAD_VM };
struct jvm_thread {
	uint32_t tid; /* of the JVM's own pid namespace */
	enum jvm_thread_kind kind;
	bool is_systems; /* the name, which is cut to 15 bytes then */
	char name[128];
};
/* All of them; fewer than there are when `max` is too small. */
size_t jvm_threads(struct jvm *jvm, struct jvm_thread *to, size_t max);

/* --- classes ---------------------------------------------------------------------------- */

/* Calls `each` for every class that is loaded now: `com.example.Outer$Inner`. False when the list
 * could not be read to its end. */
bool jvm_classes(
	struct jvm *jvm, void (*each)(void *ctx, const char *name, uint64_t loader), void *ctx);

#endif
