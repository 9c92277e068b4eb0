/* SPDX-License-Identifier: MIT */
/*
 * With --tree no events come: the programs keep a tree for each of their threads, which is read
 * here and becomes records of the trace. Belongs to the session's thread, and does nothing without
 * --tree.
 */
#ifndef WEIR_RECORD_HOOKS_TRANSCRIPT_TREES_H
#define WEIR_RECORD_HOOKS_TRANSCRIPT_TREES_H

#include <stdint.h>

struct transcript;

/* All trees as they are now; what a later call writes of a thread replaces it. */
void transcript_write_trees(struct transcript *t, uint64_t time);

/* The thread has ended: its tree is complete, its memory is for another one. */
void transcript_end_tree(struct transcript *t, uint32_t pid, uint32_t tid, uint64_t time);
/* The process became another program: likewise for the trees of the old one. */
void transcript_exec_trees(struct transcript *t, uint32_t pid, uint64_t time);
/* The recording is over: all that are left. Before transcript_finish, which says how often each
 * function was called. */
void transcript_finish_trees(struct transcript *t, uint64_t time);

#endif
