/* SPDX-License-Identifier: MIT */
/* Attaching to a process that runs: what speaks against it, and all its threads at once. */
#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "record/proc.h"
#include "steps/engine/inside_engine.h"

#define STOP_NS		 5000000000u
#define STATUS_BYTES_MAX (1u << 16)
#define SCRIPT_BYTES_MAX 255
#define SCRIPTS_MAX	 4 /* that are each other's interpreter: as many as the kernel takes */

/* The value of a line of /proc/PID/status, borrowed; NULL when there is none. */
static const char *status_line(struct buf *status, const char *name)
{
	const char *at = strstr(buf_text(status), name);

	return at ? at + strlen(name) : NULL;
}

static bool is_32_bit(pid_t pid)
{
	uint8_t header[EI_CLASS + 1] = {0};
	char path[64];
	bool is_64;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	is_64 = fd < 0 || read(fd, header, sizeof(header)) != (ssize_t)sizeof(header) ||
		header[EI_CLASS] == ELFCLASS64;
	fd_cleanup(&fd);
	return !is_64;
}

/* What exec would begin with: the file, or the interpreter that its first line names. */
static bool names_interpreter(const char *path, char *to, size_t n, bool *is_32)
{
	uint8_t head[SCRIPT_BYTES_MAX + 1] = {0};
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, head, SCRIPT_BYTES_MAX);
	const char *at = (const char *)head + 2;

	fd_cleanup(&fd);
	*is_32 = got > EI_CLASS && !memcmp(head, ELFMAG, SELFMAG) && head[EI_CLASS] == ELFCLASS32;
	if (got < 3 || memcmp(head, "#!", 2))
		return false;
	at += strspn(at, " \t");
	snprintf(to, n, "%.*s", (int)strcspn(at, " \t\n"), at);
	return *to;
}

int inside_check_command(const char *name, struct err *err)
{
	char *path = NULL, interpreter[SCRIPT_BYTES_MAX + 1] = "";
	bool is_script, is_32 = false;

	if (launch_find(name, &path, NULL) < 0)
		return 0; /* whoever starts it says so */
	is_script = names_interpreter(path, interpreter, sizeof(interpreter), &is_32);
	for (unsigned i = 0; i < SCRIPTS_MAX && is_script; i++) {
		char of[sizeof(interpreter)];

		memcpy(of, interpreter, sizeof(of));
		is_script = names_interpreter(of, interpreter, sizeof(interpreter), &is_32);
	}
	free(path);
	if (is_32)
		return err_set(err, ERR_UNSUPPORTED,
			"'%s' is a 32-bit program, which the engine 'inside' cannot trace: take --engine ptrace",
			name);
	return 0;
}

static int check_status(pid_t pid, struct buf *status, struct err *err)
{
	const char *pids = status_line(status, "\nNSpid:\t");

	/* Its threads would tell us numbers that mean others here. */
	if (pids && pids[strcspn(pids, "\t\n")] == '\t')
		return err_set(err, ERR_UNSUPPORTED,
			"process %d is in a pid namespace of its own, which the engine 'inside' cannot trace",
			pid);
	return 0;
}

struct filter_search {
	pid_t pid;
	bool has_filter;
};

static void look_for_filter(void *ctx, pid_t tid)
{
	struct filter_search *search = ctx;
	char path[64];
	struct buf status = {0};
	const char *mode = NULL;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", search->pid, tid);
	if (file_read(&status, path, STATUS_BYTES_MAX, NULL) == 0)
		mode = status_line(&status, "\nSeccomp:\t");
	search->has_filter |= mode && *mode != '0';
	buf_release(&status);
}

int inside_check_filter(pid_t pid, struct err *err)
{
	struct filter_search search = {.pid = pid};

	proc_each_task(pid, look_for_filter, &search);
	if (!search.has_filter)
		return 0;
	return err_set(err, ERR_UNSUPPORTED,
		"process %d is under a seccomp filter, which may end it for a system call of the engine 'inside': take --engine ptrace",
		pid);
}

static int check_process(pid_t pid, struct err *err)
{
	char path[64];
	struct buf status = {0};
	int rc = inject_check_process(pid, err);

	if (rc < 0)
		return rc;
	if (is_32_bit(pid))
		return err_set(err, ERR_UNSUPPORTED,
			"process %d is a 32-bit program, which the engine 'inside' cannot trace",
			pid);
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	rc = file_read(&status, path, STATUS_BYTES_MAX, err);
	if (rc == 0)
		rc = check_status(pid, &status, err);
	if (rc == 0)
		rc = inside_check_filter(pid, err);
	buf_release(&status);
	return rc;
}

int inside_attach(struct inside_engine *e, pid_t pid, struct err *err)
{
	struct inside_process *p;
	struct remote_threads threads = {.pid = pid, .is_64 = true};
	struct inside_area *area = NULL;
	int rc = check_process(pid, err);

	if (rc < 0)
		return rc;
	p = inside_process_add(e, pid, NULL);
	threads.memory_fd = p->memory_fd;
	rc = inside_take_out_old(pid, p->memory_fd, err);
	if (rc < 0) {
		p->has_ended = true;
		return rc;
	}
	rc = remote_threads_stop(&threads, clock_mono_ns() + STOP_NS, err);
	if (rc == 0)
		rc = inside_inject(e, &threads, &area, err);
	if (rc < 0) {
		remote_threads_let_go(&threads);
		vec_release(&threads.all);
		p->has_ended = true;
		return rc;
	}
	vec_push(&e->areas, area);
	inside_process_use(p, area);
	for (size_t i = 0; i < threads.all.n; i++)
		if (!threads.all.v[i].is_gone)
			inside_thread_add(
				e, step_session_thread(e->s, pid, threads.all.v[i].tid), area);
	vec_release(&threads.all);
	return 0;
}
