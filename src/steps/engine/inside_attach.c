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
#define MEMFD_PATH	 "/memfd:" STEPS_MEMFD_NAME

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

static void look_for_library(void *ctx, const struct proc_mapping *m)
{
	bool *is_there = ctx;

	if (!strncmp(m->path, MEMFD_PATH, strlen(MEMFD_PATH)))
		*is_there = true;
}

/* A thread that sits in a system call since an earlier recording comes back into its library. */
static bool is_being_left(pid_t pid, struct buf *status)
{
	const char *caught = status_line(status, "\nSigCgt:\t");
	bool is_there = false;

	if (!caught || !(strtoull(caught, NULL, 16) & 1ull << (SIGTRAP - 1)))
		return false;
	proc_each_mapping(pid, look_for_library, &is_there, NULL);
	return is_there;
}

static int check_status(pid_t pid, struct buf *status, struct err *err)
{
	const char *pids = status_line(status, "\nNSpid:\t");

	/* Its threads would tell us numbers that mean others here. */
	if (pids && pids[strcspn(pids, "\t\n")] == '\t')
		return err_set(err, ERR_UNSUPPORTED,
			"process %d is in a pid namespace of its own, which the engine 'inside' cannot trace",
			pid);
	if (is_being_left(pid, status))
		return err_set(err, ERR_UNSUPPORTED,
			"process %d has a thread that sits in a system call since an earlier recording of the engine 'inside': try again when it has come back",
			pid);
	return 0;
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
