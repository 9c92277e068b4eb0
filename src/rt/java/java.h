/* SPDX-License-Identifier: MIT */
/*
 * Entries and exits of Java methods: an agent inside of a JVM (JVMTI), part of the hook library.
 *
 *	agent_start.c		the way in: an option for the JVM that is being made, or a thread in one that runs
 *	agent.c		what the agent does with classes: those that are loaded, those that will be, back again
 *	heap_bytes.c	what threads allocate
 *	class_questions.c	what it asks the recorder about them
 *	class_archives.c	JVMs that must be left alone
 *	method_calls.c		what the rewritten methods call
 *
 * The recorder decides which methods are watched and rewrites the class (record/hooks/plan_class.c); the agent
 * hands over what the JVM is about to load and takes what comes back. Rules, besides those of rt/hook:
 * 1. A class for which there is no answer in time stays as it is, and is counted.
 * 2. Nothing here makes a JVM fail: each error of one of its functions ends what was being done.
 */
#ifndef WEIR_RT_JAVA_JAVA_H
#define WEIR_RT_JAVA_JAVA_H

#include "../hook/hook.h"
#include "jvm_tables.h"

/* Whether this process is recorded just now. */
bool java_is_wanted(void);
/* A changed method was called and nobody records any more, maybe because the recorder was killed: a thread is made
 * that gives the classes back. On a thread of the program that holds no lock of libc's. */
void java_give_back(void);
/* What this library was loaded as; NULL: nobody says. */
const char *java_own_path(void);
/* Counts what stays unwatched: a whole JVM, or a class. */
void java_count_jvm(void);
void java_count_classes(uint32_t n);
/* A JVM that stays unwatched because it writes an archive of its classes. */
void java_note_archive(void);
/* A class is there, with this name as in class files. Tells the recorder what follows from it. */
void java_note_class(const char *name, size_t n);

/* method_calls.c: the native methods of java.lang.WeirHook, found by these names. */
#define JAVA_NO_METHOD 0 /* an id: nothing is recorded */
#define java_enter     Java_java_lang_WeirHook_enter
#define java_leave     Java_java_lang_WeirHook_leave
#define java_done      Java_java_lang_WeirHook_done
__attribute__((visibility("default"))) void java_enter(void *env, void *class, int32_t id);
__attribute__((visibility("default"))) void java_leave(void *env, void *class, int32_t id);
/* As leave, of a method that has counted its bytecodes. */
__attribute__((visibility("default"))) void java_done(
	void *env, void *class, int32_t id, int64_t n_bytecodes);

/* heap_bytes.c */
/* Finds where the JVM counts what its threads allocate, if that is wanted; counts a JVM that does not say. */
void heap_bytes_begin(jvm_table jvmti, jvm_table jni);
/* What the thread of this JNIEnv, which is the calling one, has allocated so far; false: nobody knows. */
bool heap_bytes(const void *env, uint64_t *bytes);

/* agent.c. All of them on a thread that the JVM knows. */
/* Before the JVM is ready: it says when it is. False: it refuses. */
bool agent_prepare(jvm_table vm);
/* Watches the chosen methods of all classes, from here on. */
void agent_begin(jvm_table jni);
/* Classes become what they were. */
void agent_end(jvm_table jni);
bool agent_is_on(void); /* there may be changed classes */

/* class_archives.c: whether the JVM that is being made, or that runs, writes its classes to a file. */
bool archive_is_asked_for(const struct jvm_init_args *args);
bool archive_is_written(jvm_table jni);

/* class_questions.c: as JVMTI has it. A new class is in memory of the exchange, which is to be closed; false: it stays as
 * it is. */
bool classes_ask(struct exchange *x, const uint8_t *class, size_t n, bool is_library);
/* The same for the names of many classes, each with a byte before it (see hook_abi.h) and a zero behind: a byte for each
 * of them, 1 = it may have something to watch. False: there is no answer. */
bool classes_ask_names(struct exchange *x, const uint8_t *names, size_t n, uint32_t n_names);

#endif
