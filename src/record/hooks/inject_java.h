/* SPDX-License-Identifier: MIT */
/* The agent in a JVM that runs (rt/java/agent_start.c), told from outside to look at what is recorded. */
#ifndef WEIR_RECORD_HOOKS_INJECT_JAVA_H
#define WEIR_RECORD_HOOKS_INJECT_JAVA_H

#include "process/ptrace/inject_internal.h"

/*
 * Once the library records in the process, its Java classes get what they need; once it does not, they become what
 * they were. Returns when that is done; nothing is done in a process without a JVM. The library's name and
 * the place of the recorder are as in inject.h. Fails with a sentence.
 */
int inject_java(struct remote_caller *c, const char *library, const char *place);

#endif
