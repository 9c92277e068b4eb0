/* SPDX-License-Identifier: MIT */
/*
 * What is to be hooked, and how: from the user's globs and an image's symbols and code to a plan
 * that the hook library applies without knowing anything about instructions. A plan depends on the
 * image alone, not on where a process has it, so it is made once for all processes.
 */
#ifndef WEIR_RECORD_HOOKS_PLAN_H
#define WEIR_RECORD_HOOKS_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "elf/elf_file.h"
#include "record/hooks/wish.h"
#include "rt/hook/hook_abi.h"
#include "trace/defs.h"

/* Byte `from` of the patched instructions is now byte `to` of the moved code. Byte 0 is not listed:
 * who stands there enters the function. Nor is what stays as it is behind a short jump or int3. */
struct hook_move {
	uint8_t from, to;
};

struct planned_function {
	uint32_t id; /* over all images of the planner, dense, from 1; also when refused */
	struct iaddr function;
	uint64_t bytes;
	const char *name;   /* as in the symbol table; owned by the image */
	uint8_t method;	    /* enum hook_method; 0 = refused */
	uint8_t action;	    /* enum hook_action */
	const char *reason; /* why it was refused, or why int3; a phrase; static; NULL = plain */
	uint32_t plan_at, plan_bytes; /* its struct hook_plan in `plans` of the image; none when
					 refused. With HOOK_METHOD_CYGPROF nothing is patched */
	struct iaddr site;
	uint8_t n_patched;
	uint8_t n_moves;
	struct hook_move moves[HOOK_ORIGINAL_MAX];
	uint32_t line; /* of a Java method: its first; 0 = not known */
};

/* What tells the versions of an image apart, that may have the same path. */
struct planned_file {
	uint64_t key; /* any number that names its version */
	/* As the kernel names the mapped file; 0: not known. */
	uint32_t major, minor;
	uint64_t inode;
};

struct planned_image {
	bool is_class; /* of Java: its functions have their full names, and are nowhere in memory */
	char *source;  /* of a class: `com/example/Main.java`; NULL = not known */
	char *path;    /* of a class: `com.example.Main` */
	struct planned_file file;
	uint8_t build_id_n; /* 0 = it has none */
	uint8_t build_id[BUILD_ID_MAX];
	bool is_64;
	VEC(struct planned_function) functions; /* in order of address */
	struct buf plans; /* wire form, module_i 0: the sender sets it. Also those without function
			     (REPLACE, NOTE), which come first: n_extra of them */
	size_t n_extra;
};

struct hook_planner {
	/* Patterns (wishes_add); one without an image is about the program itself. A function that several
	 * wishes name has the action with the greater number. */
	struct wishes wishes;
	bool wants_bytecodes;  /* calls in Java methods count these */
	bool wants_heap_bytes; /* of JVMs: where these are found */
	bool wants_allocations; /* of every image: the malloc family that it defines, HOOK_ACTION_AMOUNT */
	/* Functions that were built with -finstrument-functions are patched like others: their calls find
	 * no open entry, which a tree needs to know the caller. */
	bool ignores_own_calls;
	/* To read: */
	uint32_t n_ids; /* of functions: the greatest */
	/* Its own: */
	bool needs_traps;		  /* some function so far is hooked by int3 */
	VEC(struct image_entry *) images; /* by first id */
	struct map by_key;		  /* key -> index, plus 1 */
	struct map by_class;		  /* key of a class -> index, plus 1 */
};
struct hook_planner *hook_planner_new(void);
void hook_planner_free(struct hook_planner *p);

/* The plan of an image: empty when no wish concerns it. The same image (by `key`) is planned
 * once. Owned by the planner. `needs_traps` is set in the extras by
 * the planner itself: REPLACE entries for the signal functions of libc are made when any function
 * so far needs int3. Of libc's two mask functions only the inner one is replaced when the other is
 * made of it (glibc: pthread_sigmask, which returns the error's number). Images compiled with
 * -finstrument-functions get REPLACE entries for their own stubs of __cyg_profile_func_enter and
 * exit, which in glibc are one empty function. Fails when the ELF file cannot be used. */
int hook_planner_image(struct hook_planner *p, const struct planned_file *file,
	const struct elf_file *elf, const char *path, bool is_main,
	const struct planned_image **out, struct err *err);

/* Whether a class of this name (`com.example.Main`) may have methods that are wished for. A wish without an
 * image is about classes that are not the JVM's own. */
bool hook_planner_may_want_class(const struct hook_planner *p, const char *name, bool is_library);
/* The class file of a JVM's class, with calls in the methods that are wished for, is appended to `to`; nothing is when
 * there are none. A class is numbered once, however often and in however many JVMs it is loaded. Fails when
 * it is no class file. */
int hook_planner_class(struct hook_planner *p, struct span bytes, bool is_library,
	const struct planned_image **out, struct buf *to, struct err *err);
/* Whether any wish may be about a Java method. */
bool hook_planner_may_want_java(const struct hook_planner *p);

/* By id; NULL when there is none. */
const struct planned_function *hook_planner_function(
	const struct hook_planner *p, uint32_t id, const struct planned_image **image);
/* Wishes that matched nothing in any image so far: calls `f` for each with its text, and with the
 * names that were there instead ("'work' or 'walk'"; NULL = none is near). */
void hook_planner_each_unmatched(const struct hook_planner *p,
	void (*f)(void *ctx, const char *wish, const char *near), void *ctx);

/* A phrase for people: "the code in memory is not that of the file", ... */
const char *hook_refusal_phrase(enum hook_refusal refusal);
const char *hook_method_name(enum hook_method method); /* "jump", "int3", "nop", "mcount",
							  "instrument", "bytecode"; "refused" for 0 */

#endif
