/* SPDX-License-Identifier: MIT */
#include "record/snapshot_request.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "process/proc.h"

#define REQUEST_MAGIC	 0x77736e61u /* "wsna" */
#define ANSWER_BYTES_MAX 8192
#define ANSWER_NS	 60000000000u /* a long trace is written, a slow disk is waited for */
#define LOOK_MS		 200
#define ANCESTORS_MAX	 64
#define SNAPSHOTS_MAX	 1000000u

static socklen_t address_of(uint32_t number, struct sockaddr_un *a)
{
	int n;

	*a = (struct sockaddr_un){.sun_family = AF_UNIX};
	n = snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, "weir-snapshot-%u", number);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

/* --- the recorder's side -------------------------------------------------------------------- */

static void send_text(uint32_t number, char kind, const char *text)
{
	struct sockaddr_un address;
	socklen_t n = address_of(number, &address);
	char *message = mem_printf("%c%s", kind, text);
	FD_AUTO fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (sendto(fd, message, strlen(message), MSG_NOSIGNAL, (struct sockaddr *)&address, n) < 0)
		errno = 0; /* whoever asked has gone away */
	free(message);
}

bool snapshot_desk_take(
	struct snapshot_desk *d, const struct signalfd_siginfo *info, bool plain_ones_ask)
{
	uint32_t number = (uint32_t)info->ssi_ptr;

	if (info->ssi_signo != SIGUSR1)
		return false;
	if (info->ssi_code == SI_USER && plain_ones_ask) {
		vec_push(&d->waiting, 0);
		return true;
	}
	if (info->ssi_code != SI_QUEUE || info->ssi_ptr >> 32 != REQUEST_MAGIC)
		return false;
	send_text(number, '+', "");
	if (number != d->last_number)
		vec_push(&d->waiting, number);
	d->last_number = number;
	return true;
}

void snapshot_desk_answer(struct snapshot_desk *d, const char *path, const struct err *err)
{
	char *absolute = err ? NULL : realpath(path, NULL);

	for (size_t i = 0; i < d->waiting.n; i++)
		if (d->waiting.v[i])
			send_text(d->waiting.v[i], err ? '!' : '=',
				err	   ? err->text
				: absolute ? absolute
					   : path);
	d->waiting.n = 0;
	free(absolute);
}

char *snapshot_desk_path(struct snapshot_desk *d, const char *output)
{
	for (;;) {
		char *path = mem_printf("%s.%u", output, ++d->last_path_number);
		struct stat st;

		if (lstat(path, &st) < 0 || d->last_path_number >= SNAPSHOTS_MAX)
			return path;
		free(path);
	}
}

/* --- finding the recorder ------------------------------------------------------------------- */

/* SIGUSR1 ends a process that does not expect it, so a recorder is known by two things: it is a
 * weir, and it has the signal blocked. */
static bool is_recorder(pid_t pid)
{
	char exe[4096];

	proc_exe(pid, exe, sizeof(exe));
	exe[path_plain_bytes(exe)] = 0; /* one that was replaced */
	return !strcmp(path_base_name(exe), "weir") &&
	       proc_status_number(pid, pid, "SigBlk", 16) >> (SIGUSR1 - 1) & 1;
}

static bool holds_pidfd_of(pid_t holder, pid_t pid)
{
	char path[320], line[256];
	struct dirent *entry;
	bool found = false;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo", holder);
	dir = opendir(path);
	if (!dir)
		return false;
	while (!found && (entry = readdir(dir))) {
		FILE *f;
		int of;

		snprintf(path, sizeof(path), "/proc/%d/fdinfo/%s", holder, entry->d_name);
		f = entry->d_name[0] == '.' ? NULL : fopen(path, "re");
		while (f && fgets(line, sizeof(line), f))
			found |= sscanf(line, "Pid: %d", &of) == 1 && of == pid;
		if (f)
			fclose(f);
	}
	closedir(dir);
	return found;
}

struct search {
	pid_t pid, found;
};

static void look_at(void *ctx, pid_t candidate)
{
	struct search *s = ctx;

	if (!s->found && candidate != getpid() && is_recorder(candidate) &&
		holds_pidfd_of(candidate, s->pid))
		s->found = candidate;
}

int snapshot_find_recorder(pid_t pid, pid_t *recorder, struct err *err)
{
	struct search s = {.pid = pid};
	pid_t ancestor = pid;

	if (!proc_exists(pid))
		return err_set(err, ERR_NOT_FOUND, "process %d: there is no such process", pid);
	for (int i = 0; i < ANCESTORS_MAX && ancestor > 1; i++) {
		if (is_recorder(ancestor)) {
			*recorder = ancestor;
			return 0;
		}
		ancestor = proc_parent(ancestor);
	}
	proc_each_task(0, look_at, &s);
	if (!s.found)
		return err_set(err, ERR_NOT_FOUND,
			"process %d: neither a 'weir record' nor recorded by one", pid);
	*recorder = s.found;
	return 0;
}

/* --- asking --------------------------------------------------------------------------------- */

static int listen_for_answer(uint32_t *number, struct err *err)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un address;
	int rc = -1;

	for (int i = 0; fd >= 0 && rc < 0 && i < 16; i++) {
		*number = (uint32_t)map_hash(clock_mono_ns() ^ (uint64_t)getpid() << 40);
		rc = bind(fd, (struct sockaddr *)&address, address_of(*number, &address));
	}
	if (rc == 0)
		rc = setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &(int){1}, sizeof(int));
	if (rc == 0)
		return fd;
	rc = err_sys(err, errno, "cannot make a socket for the answer");
	fd_cleanup(&fd);
	return rc;
}

/* The name of the socket is no secret: only what the recorder says counts. */
static bool receive_answer(int fd, pid_t recorder, char *text, size_t bytes)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct iovec part = {text, bytes - 1};
	struct msghdr message = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;
	struct ucred sender;

	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS)
		return false;
	memcpy(&sender, CMSG_DATA(c), sizeof(sender));
	text[n] = 0;
	return sender.pid == recorder;
}

static int ask(pid_t recorder, uint32_t number, struct err *err)
{
	union sigval value;

	value.sival_ptr = (void *)(uintptr_t)((uint64_t)REQUEST_MAGIC << 32 | number);
	if (sigqueue(recorder, SIGUSR1, value) < 0 && errno != EAGAIN)
		return err_sys(err, errno, "process %d: cannot ask it for a snapshot", recorder);
	return 0;
}

static int wait_for_answer(
	int fd, pid_t recorder, uint32_t number, char *text, size_t bytes, struct err *err)
{
	uint64_t began = clock_mono_ns();
	bool is_heard = false;

	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		int rc = 0;

		if (!proc_exists(recorder))
			return err_set(err, ERR_FAILED,
				"process %d: the recording has ended; its trace is complete",
				recorder);
		if (!is_heard)
			rc = ask(recorder, number, err);
		if (rc < 0)
			return rc;
		if (poll(&p, 1, LOOK_MS) > 0 && receive_answer(fd, recorder, text, bytes)) {
			if (text[0] != '+')
				return 0;
			is_heard = true;
		}
		if (clock_mono_ns() - began > ANSWER_NS)
			return err_set(err, ERR_FAILED,
				"process %d: the recorder gave no answer within %u s", recorder,
				(unsigned)(ANSWER_NS / 1000000000u));
	}
}

int snapshot_ask(pid_t recorder, char **path, struct err *err)
{
	char text[ANSWER_BYTES_MAX];
	uint32_t number = 0;
	FD_AUTO fd = listen_for_answer(&number, err);
	int rc;

	if (fd < 0)
		return fd;
	rc = wait_for_answer(fd, recorder, number, text, sizeof(text), err);
	if (rc < 0)
		return rc;
	if (text[0] != '=')
		return err_set(err, ERR_FAILED, "process %d: no snapshot: %s", recorder, text + 1);
	*path = mem_strdup(text + 1);
	return 0;
}
