/* SPDX-License-Identifier: MIT */
/*
 * Function events of a recording: answers the hook libraries of the traced programs, empties their
 * rings, and hands the events over to the session.
 *
 *   server thread (server.c)   hello, plan, results of each process
 *   drain thread (drain.c)     rings --> queues, one for each thread
 *   caller's thread            hooks_take; transcript.c makes records of the trace of it
 */
#ifndef WEIR_RECORD_HOOKS_HOOKS_H
#define WEIR_RECORD_HOOKS_HOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct hooks_options {
	const char *events;	    /* comma list of globs (plan.h); NULL = none */
	const char *stack_at;	    /* likewise: with the stack at each entry */
	bool allocations;	    /* the malloc family, with its bytes */
	bool heap_bytes;	    /* that Java threads allocate */
	bool bytecodes;		    /* of Java methods, that they execute themselves */
	bool tree;		    /* the tree is kept in the program */
	uint32_t prune_permille;    /* when the tree's memory runs short, and */
	bool prunes_all;	    /* in what is written, too: it was asked for */
	double budget_percent;	    /* unhook what costs more; 0 = never */
	size_t ring_bytes;	    /* of each thread; 0 = choose */
	bool is_attach;		    /* to running processes: no environment of ours is inherited */
	const char *library_folder; /* has lib/.../libweir.so; NULL = look beside the program */
};

/* Whether anything is to be hooked. */
bool hooks_options_are_used(const struct hooks_options *o);

struct hooks;

/* Makes the socket and starts the two threads. Fails with a sentence: a wish that is wrong, the
 * library is not where it should be. */
int hooks_open(struct hooks **out, const struct hooks_options *options, struct err *err);
/* NULL is fine. Programs that are still hooked stop recording by themselves. */
void hooks_close(struct hooks *h);

/* What the environment of a command needs: NAME=VALUE texts and a NULL, owned. */
char *const *hooks_environment(const struct hooks *h);
/* Before a running process is told: makes sure that it can connect, wherever its network is. */
int hooks_reach(struct hooks *h, pid_t pid, struct err *err);

/* Calls `each` with every wish that no function was found for, and the names near to it or NULL. */
void hooks_each_unmatched(
	struct hooks *h, void (*each)(void *ctx, const char *wish, const char *near), void *ctx);

/* At the end: the name of a program that was not hooked and whose file could not be read, so that what was not
 * found may be there; NULL when there is none. */
const char *hooks_unread_program(const struct hooks *h);

/* Readable when there are events to take. */
int hooks_fd(const struct hooks *h);

/* As inject_options.moved_pc, with the hooks as ctx. */
uint64_t hooks_moved_pc(void *ctx, pid_t pid, uint64_t pc);
/* Calls `each` for every process that is hooked now. */
void hooks_each_process(struct hooks *h, void (*each)(void *ctx, pid_t pid), void *ctx);

/* Processes that have unhooked everything since they install a system call filter. When it is over. */
uint64_t hooks_n_filtered(struct hooks *h);

/* When it is over: a sentence on threads that were not recorded, and how many calls are missing; NULL when
 * there is none. Owned by the caller. */
char *hooks_unrecorded(struct hooks *h);

/* When it is over: a sentence on what is known and not right; NULL when there is nothing of the kind. */
const char *hooks_doubt(struct hooks *h);

/* Whether the library in this process has unhooked everything by itself (enum hook_stop). */
bool hooks_has_stopped(struct hooks *h, pid_t pid);

/* The recording is over: events after this moment do not count, and no program is hooked any
 * more. */
void hooks_stop(struct hooks *h);
/* Then, when the programs have been unhooked or do not matter: they are told to write no more, and
 * the rings are emptied a last time. */
void hooks_drain_rest(struct hooks *h);

#endif
