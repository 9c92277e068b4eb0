/* SPDX-License-Identifier: MIT */
/* The processes that cannot be entered, and what to say about them. */
#include "process/ptrace/inject_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "process/proc.h"

#define PATH_BYTES_MAX 4096
#define STAT_FLAGS     9
#define PF_KTHREAD     0x00200000u /* include/linux/sched.h of the kernel */

char inject_thread_state(pid_t pid, pid_t tid)
{
	char state[8];

	proc_stat_field(pid, tid, 3, state, sizeof(state));
	return state[0];
}

bool inject_thread_lives(pid_t pid, pid_t tid)
{
	char state = inject_thread_state(pid, tid);

	return state && state != 'Z' && state != 'X';
}

static pid_t tracer_of(pid_t pid, pid_t tid)
{
	return (pid_t)proc_status_number(pid, tid, "TracerPid", 10);
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
	unsigned count = (unsigned)proc_status_number(search->pid, tid, "Seccomp_filters", 10);

	if (!count && proc_status_number(search->pid, tid, "Seccomp", 10))
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
	char state = inject_thread_state(pid, pid), features[256];
	pid_t process;

	if (!state)
		return err_set(err, ERR_NOT_FOUND, "there is no process %d", pid);
	if (proc_stat_number(pid, STAT_FLAGS) & PF_KTHREAD)
		return err_set(err, ERR_UNSUPPORTED, "process %d is a thread of the kernel", pid);
	process = (pid_t)proc_status_number(pid, pid, "Tgid", 10);
	if (process != pid)
		return err_set(err, ERR_UNSUPPORTED, "%d is a thread of process %d, no process",
			pid, process);
	/* A first thread that has ended is a zombie while the others run. */
	if (state == 'X' || (state == 'Z' && proc_status_number(pid, pid, "Threads", 10) <= 1))
		return err_set(err, ERR_NOT_FOUND,
			"process %d has ended (it is a zombie until its parent takes notice)", pid);
	if (state == 'T')
		return err_set(err, ERR_FAILED,
			"process %d is stopped: let it go on first (kill -CONT %d)", pid, pid);
	if (inject_n_filters(pid))
		return err_set(err, ERR_UNSUPPORTED,
			"process %d runs under a filter of system calls (seccomp), by which a call made in it could end it",
			pid);
	proc_status_field(pid, pid, "x86_Thread_features", features, sizeof(features));
	if (strstr(features, "shstk"))
		return err_set(err, ERR_UNSUPPORTED,
			"process %d has its return addresses checked by the processor (shadow stack)",
			pid);
	return 0;
}

int inject_refused(pid_t pid, int errnum, struct err *err)
{
	int scope, rc;

	if (errnum != EPERM)
		return err_sys(err, errnum, "process %d: ptrace", pid);
	rc = inject_check_tracer(pid, err);
	if (rc < 0)
		return rc;
	scope = proc_setting("kernel/yama/ptrace_scope", 0);
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
	char *path = mem_printf("/proc/%d/root%s", proc_number(view), library);
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
	static const char refused[] =
		" may not connect to the recorder's socket (a security module, or a filter for system calls)";
	static const char unreached[] =
		" does not reach the recorder's socket (another network namespace, or the recorder has ended)";
	static const char hooked[] = " is being hooked already, by another recorder";
	static const struct {
		int errnum, code;
		const char *text;
	} answers[] = {
		{EACCES, ERR_PERMISSION, refused},
		{EPERM, ERR_PERMISSION, refused},
		{ENOENT, ERR_FAILED, unreached},
		{ECONNREFUSED, ERR_FAILED, unreached},
		{EAGAIN, ERR_FAILED, ": one of its threads is changing code and does not end"},
		{ESRCH, ERR_NOT_FOUND, " is hooked by another recorder"},
		{EBUSY, ERR_FAILED, hooked},
		{EALREADY, ERR_FAILED, hooked},
		{EEXIST, ERR_FAILED, hooked},
	};
	int errnum = -(int32_t)(uint32_t)result;

	if (errnum == 0)
		return 0;
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
		if (answers[i].errnum == errnum)
			return err_set(err, answers[i].code, "process %d%s", pid, answers[i].text);
	return err_set(err, ERR_FAILED, "process %d: %s failed: %s", pid, function,
		errnum > 0 && errnum < 4096 ? strerror(errnum) : "it gave no reason");
}
