/* SPDX-License-Identifier: MIT */
/* The processes that cannot be entered, and what to say about them. */
#include "process/ptrace/inject_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "process/proc.h"

#define STATUS_FILE_MAX 65536
#define PATH_BYTES_MAX	4096
#define PF_KTHREAD	0x00200000u /* include/linux/sched.h of the kernel */

/* The value of a line "NAME:\tVALUE" of the thread's status file; "" when there is none. */
static void status_value(pid_t pid, pid_t tid, const char *name, char *to, size_t bytes)
{
	char *path = mem_printf("/proc/%d/task/%d/status", pid, tid);
	struct buf b = {0};
	char *save = NULL;

	to[0] = 0;
	if (file_read(&b, path, STATUS_FILE_MAX, NULL) == 0) {
		char *text = mem_strdup(buf_text(&b));
		size_t n = strlen(name);

		for (char *line = strtok_r(text, "\n", &save); line;
			line = strtok_r(NULL, "\n", &save))
			if (!strncmp(line, name, n) && line[n] == ':')
				snprintf(to, bytes, "%s",
					line + n + 1 + strspn(line + n + 1, "\t "));
		free(text);
	}
	buf_release(&b);
	free(path);
}

/* The rest of the thread's stat file behind its name: state, parent, ... */
static void stat_rest(pid_t pid, pid_t tid, char *to, size_t bytes)
{
	char *path = mem_printf("/proc/%d/task/%d/stat", pid, tid);
	struct buf b = {0};
	const char *end = NULL;

	to[0] = 0;
	if (file_read(&b, path, STATUS_FILE_MAX, NULL) == 0)
		end = strrchr(buf_text(&b), ')');
	if (end && end[1] == ' ')
		snprintf(to, bytes, "%s", end + 2);
	buf_release(&b);
	free(path);
}

char inject_thread_state(pid_t pid, pid_t tid)
{
	char rest[512];

	stat_rest(pid, tid, rest, sizeof(rest));
	return rest[0];
}

uint64_t inject_start_stack(pid_t pid)
{
	const char *at;
	char rest[512];

	stat_rest(pid, pid, rest, sizeof(rest));
	/* The 28th field of all; the rest begins with the third. */
	at = rest;
	for (int i = 3; at && i < 28; i++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) : 0;
}

static bool is_kernel_thread(pid_t pid)
{
	unsigned flags = 0;
	char rest[512];

	stat_rest(pid, pid, rest, sizeof(rest));
	/* state ppid pgrp session tty tpgid flags */
	return sscanf(rest, "%*c %*d %*d %*d %*d %*d %u", &flags) == 1 && (flags & PF_KTHREAD);
}

static pid_t tracer_of(pid_t pid, pid_t tid)
{
	char value[64];

	status_value(pid, tid, "TracerPid", value, sizeof(value));
	return (pid_t)atoi(value);
}

bool inject_is_traced_here(pid_t pid, pid_t tid)
{
	return tracer_of(pid, tid) == gettid();
}

bool inject_is_traced(pid_t pid)
{
	return tracer_of(pid, pid) > 0;
}

int inject_check_tracer(pid_t pid, struct err *err)
{
	pid_t tracer = tracer_of(pid, pid);
	char name[64];

	if (tracer <= 0)
		return 0;
	proc_name(tracer, tracer, name, sizeof(name));
	return err_set(err, ERR_FAILED, "process %d is traced by process %d (%s) already", pid,
		tracer, name);
}

struct filter_search {
	pid_t pid;
	unsigned n;
};

static void look_at_filters(void *ctx, pid_t tid)
{
	struct filter_search *search = ctx;
	char mode[16], n[16];
	unsigned count;

	status_value(search->pid, tid, "Seccomp", mode, sizeof(mode));
	status_value(search->pid, tid, "Seccomp_filters", n, sizeof(n));
	count = (unsigned)atoi(n);
	if (!count && atoi(mode))
		count = 1; /* strict, or a kernel before 5.9, which does not say how many */
	if (count > search->n)
		search->n = count;
}

unsigned inject_n_filters(pid_t pid)
{
	struct filter_search search = {.pid = pid};

	proc_each_task(pid, look_at_filters, &search);
	return search.n;
}

int inject_check_process(pid_t pid, struct err *err)
{
	char value[256];
	char state = inject_thread_state(pid, pid);

	if (!state)
		return err_set(err, ERR_NOT_FOUND, "there is no process %d", pid);
	if (is_kernel_thread(pid))
		return err_set(err, ERR_UNSUPPORTED, "process %d is a thread of the kernel", pid);
	status_value(pid, pid, "Tgid", value, sizeof(value));
	if (atoi(value) != pid)
		return err_set(err, ERR_UNSUPPORTED, "%d is a thread of process %d, no process",
			pid, atoi(value));
	/* A first thread that has ended is a zombie while the others run. */
	status_value(pid, pid, "Threads", value, sizeof(value));
	if (state == 'X' || (state == 'Z' && atoi(value) <= 1))
		return err_set(err, ERR_NOT_FOUND,
			"process %d has ended (it is a zombie until its parent takes notice)", pid);
	if (state == 'T')
		return err_set(err, ERR_FAILED,
			"process %d is stopped: let it go on first (kill -CONT %d)", pid, pid);
	if (inject_n_filters(pid))
		return err_set(err, ERR_UNSUPPORTED,
			"process %d runs under a filter of system calls (seccomp), by which a call made in it could end it",
			pid);
	status_value(pid, pid, "x86_Thread_features", value, sizeof(value));
	if (strstr(value, "shstk"))
		return err_set(err, ERR_UNSUPPORTED,
			"process %d has its return addresses checked by the processor (shadow stack)",
			pid);
	return 0;
}

int inject_refused(pid_t pid, int errnum, struct err *err)
{
	struct buf b = {0};
	int scope = 0, rc;

	if (errnum != EPERM)
		return err_sys(err, errnum, "process %d: ptrace", pid);
	rc = inject_check_tracer(pid, err);
	if (rc < 0)
		return rc;
	if (file_read(&b, "/proc/sys/kernel/yama/ptrace_scope", 64, NULL) == 0)
		scope = atoi(buf_text(&b));
	buf_release(&b);
	if (scope >= 3)
		return err_set(err, ERR_PERMISSION,
			"process %d cannot be traced: /proc/sys/kernel/yama/ptrace_scope is %d, which forbids it to everybody",
			pid, scope);
	if (scope > 0 && geteuid() != 0)
		return err_set(err, ERR_PERMISSION,
			"process %d cannot be traced: /proc/sys/kernel/yama/ptrace_scope is %d: run as root, or set it to 0",
			pid, scope);
	return err_set(err, ERR_PERMISSION,
		"process %d cannot be traced: run as root, or as the user that it belongs to", pid);
}

int inject_check_library(pid_t pid, pid_t view, const char *library, struct err *err)
{
	char *path = mem_printf("/proc/%d/root%s", view, library);
	struct stat here, there;
	int rc = 0;

	if (library[0] != '/' || strlen(library) >= PATH_BYTES_MAX)
		rc = err_set(err, ERR_FAILED, "'%s': the library's path must be absolute",
			library);
	else if (stat(library, &here) < 0)
		rc = err_sys(err, errno, "'%s'", library);
	else if (stat(path, &there) < 0)
		rc = err_set(err, ERR_NOT_FOUND,
			"process %d has another root directory, in which '%s' is not there (%s): copy the library to that place",
			pid, library, strerror(errno));
	else if (there.st_size != here.st_size)
		rc = err_set(err, ERR_CHANGED,
			"process %d has another root directory, in which '%s' is another file",
			pid, library);
	free(path);
	return rc;
}

int inject_answer(pid_t pid, const char *function, uint64_t result, struct err *err)
{
	int errnum = -(int32_t)(uint32_t)result;

	if (errnum == 0)
		return 0;
	switch (errnum) {
	case EACCES:
	case EPERM:
		return err_set(err, ERR_PERMISSION,
			"process %d may not connect to the recorder's socket (a security module, or a filter for system calls)",
			pid);
	case ENOENT:
	case ECONNREFUSED:
		return err_set(err, ERR_FAILED,
			"process %d does not reach the recorder's socket (another network namespace, or the recorder has ended)",
			pid);
	case EAGAIN:
		return err_set(err, ERR_FAILED,
			"process %d: one of its threads is changing code and does not end",
			pid);
	case ESRCH:
		return err_set(
			err, ERR_NOT_FOUND, "process %d is hooked by another recorder", pid);
	case EBUSY:
	case EALREADY:
	case EEXIST:
		return err_set(err, ERR_FAILED,
			"process %d is being hooked already, by another recorder", pid);
	}
	return err_set(err, ERR_FAILED, "process %d: %s failed: %s", pid, function,
		errnum > 0 && errnum < 4096 ? strerror(errnum) : "it gave no reason");
}
