/* SPDX-License-Identifier: MIT */
/* A true JVM that runs tests/fixtures/java/Shape.java, and its threads stopped for a look at them. */
#ifndef WEIR_TESTS_JVM_WORLD_H
#define WEIR_TESTS_JVM_WORLD_H

#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jvm/jvm.h"
#include "process/proc.h"

struct jvm_world {
	char home[256]; /* of the JDK */
	pid_t pid;
	struct jvm *jvm;
	uint64_t bias;
	char lib[512];
};

/* The JDKs of this machine; 0 = none. The homes are the caller's to keep. */
static inline size_t jvm_world_homes(char homes[8][256])
{
	glob_t found;
	size_t n = 0;

	if (glob("/usr/lib/jvm/*/bin/javac", 0, NULL, &found))
		return 0;
	for (size_t i = 0; i < found.gl_pathc && n < 8; i++) {
		char path[512];
		bool is_known = false;

		snprintf(path, sizeof(path), "%.*s", (int)strlen(found.gl_pathv[i]) - 10,
			found.gl_pathv[i]);
		if (!realpath(path, homes[n]))
			continue;
		for (size_t k = 0; k < n; k++)
			is_known |= !strcmp(homes[k], homes[n]);
		n += !is_known;
	}
	globfree(&found);
	return n;
}

static inline void jvm_world_find_library(void *ctx, const struct proc_mapping *m)
{
	struct jvm_world *w = ctx;

	if (strstr(m->path, "libjvm.so") && !w->bias) {
		w->bias = m->start - m->offset;
		snprintf(w->lib, sizeof(w->lib), "%s", m->path);
	}
}

/* Starts the program in an interpreter or compiler of this kind; false when that fails. */
static inline bool jvm_world_start(struct jvm_world *w, const char *home, const char *flag)
{
	char command[2048], byte;
	int out[2];
	struct err err;

	memset(w, 0, sizeof(*w));
	snprintf(w->home, sizeof(w->home), "%s", home);
	snprintf(command, sizeof(command),
		"'%s/bin/javac' -encoding UTF-8 -d classes-%zu '%s/tests/fixtures/java/Shape.java'",
		home, strlen(home), getenv("ROOT"));
	if (system(command) || pipe(out))
		return false;
	w->pid = fork();
	if (!w->pid) {
		char java[512], classes[64];

		snprintf(java, sizeof(java), "%s/bin/java", home);
		snprintf(classes, sizeof(classes), "classes-%zu", strlen(home));
		dup2(out[1], 1);
		close(out[0]);
		execl(java, "java", flag, "-cp", classes, "Shape", "300000", (char *)NULL);
		_exit(127);
	}
	close(out[1]);
	if (read(out[0], &byte, 1) != 1)
		return false;
	close(out[0]);
	proc_each_mapping(w->pid, jvm_world_find_library, w, &err);
	if (jvm_open(&w->jvm, w->pid, w->lib, w->bias, &err)) {
		puts(err.text);
		return false;
	}
	return true;
}

static inline void jvm_world_stop(struct jvm_world *w)
{
	jvm_free(w->jvm);
	w->jvm = NULL;
	if (w->pid > 0) {
		kill(w->pid, SIGKILL);
		waitpid(w->pid, NULL, 0);
	}
	w->pid = 0;
}

static inline bool jvm_world_read(void *ctx, uint64_t addr, void *to, size_t n)
{
	return proc_read_memory(((struct jvm_world *)ctx)->pid, addr, to, n);
}

/* Holds the thread still; false when it is gone. */
static inline bool jvm_world_hold(pid_t tid, struct cpu_regs *regs)
{
	struct user_regs_struct u;
	int status;

	if (ptrace(PTRACE_SEIZE, tid, 0, 0) || ptrace(PTRACE_INTERRUPT, tid, 0, 0) ||
		waitpid(tid, &status, __WALL) != tid || ptrace(PTRACE_GETREGS, tid, 0, &u))
		return false;
	*regs = (struct cpu_regs){{u.rax, u.rdx, u.rcx, u.rbx, u.rsi, u.rdi, u.rbp, u.rsp, u.r8,
					  u.r9, u.r10, u.r11, u.r12, u.r13, u.r14, u.r15, u.rip},
		0x1ffff, true};
	return true;
}

static inline void jvm_world_let_go(pid_t tid)
{
	ptrace(PTRACE_DETACH, tid, 0, 0);
}

#define JVM_WORLD_LEVELS_MAX 512

/* A walk from the innermost frame to the native caller of Java: levels with their kinds. */
struct jvm_world_stack {
	bool in_java;	   /* the innermost frame was generated code */
	enum jvm_step end; /* of the last step */
	const char *why;
	size_t n, n_innermost; /* of them, those of the innermost frame */
	struct jvm_level levels[JVM_WORLD_LEVELS_MAX];
	enum jvm_place_kind kinds[JVM_WORLD_LEVELS_MAX];
	struct jvm_place last; /* the outermost */
};

static inline void jvm_world_walk(
	struct jvm_world *w, struct cpu_regs *regs, struct jvm_world_stack *s)
{
	struct jvm_stack stack = {jvm_world_read, w};
	struct jvm_level levels[JVM_LEVELS_MAX];
	const char *why;

	memset(s, 0, sizeof(*s));
	s->in_java = jvm_has_code(w->jvm, regs->r[CPU_REG_RIP]);
	for (unsigned i = 0; jvm_has_code(w->jvm, regs->r[CPU_REG_RIP]) && i < 200; i++) {
		size_t n;

		s->end = jvm_step(w->jvm, regs, i > 0, &stack, &s->last, &s->why);
		n = jvm_levels(w->jvm, &s->last, levels, &why);
		for (size_t k = 0; k < n && s->n < JVM_WORLD_LEVELS_MAX; k++) {
			s->kinds[s->n] = s->last.kind;
			s->levels[s->n++] = levels[k];
		}
		if (!i)
			s->n_innermost = s->n;
		if (s->end != JVM_STEP_DONE)
			return;
	}
}

static inline bool jvm_world_sample(struct jvm_world *w, pid_t tid, struct jvm_world_stack *s)
{
	struct cpu_regs regs;

	if (!jvm_world_hold(tid, &regs))
		return false;
	jvm_world_walk(w, &regs, s);
	jvm_world_let_go(tid);
	return true;
}

#endif
