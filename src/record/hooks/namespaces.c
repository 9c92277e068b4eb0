/* SPDX-License-Identifier: MIT */
#include "record/hooks/namespaces.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "process/proc.h"

/* --- pids --------------------------------------------------------------------------------- */

bool namespace_has_own_pids(pid_t pid)
{
	pid_t own;

	return proc_own_number(pid, pid, &own) > 1;
}

struct tid_search {
	pid_t pid;
	uint32_t own_tid, found;
};

static void try_tid(void *ctx, pid_t tid)
{
	struct tid_search *s = ctx;
	pid_t own;

	if (!s->found && proc_own_number(s->pid, tid, &own) && (uint32_t)own == s->own_tid)
		s->found = (uint32_t)tid;
}

uint32_t namespace_find_tid(pid_t pid, uint32_t own_tid)
{
	struct tid_search s = {.pid = pid, .own_tid = own_tid};

	try_tid(&s, pid);
	if (!s.found)
		proc_each_task(pid, try_tid, &s);
	return s.found;
}

/* --- networks ------------------------------------------------------------------------------ */

uint64_t namespace_net_id(pid_t pid)
{
	return proc_namespace_id(pid, "net");
}

struct net_visit {
	int net_fd, socket_fd, errnum;
};

static void *visit_net(void *ctx)
{
	struct net_visit *v = ctx;

	if (setns(v->net_fd, CLONE_NEWNET) == 0)
		v->socket_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	v->errnum = errno;
	return NULL;
}

/* A socket belongs to the namespace that its maker was in: a thread goes there, makes it and ends.
 */
int namespace_net_socket(pid_t pid, int *fd, struct err *err)
{
	char path[64];
	struct net_visit v = {.socket_fd = -1};
	pthread_t thread;
	int errnum;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	v.net_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (v.net_fd < 0)
		return err_sys(err, errno, "'%s'", path);
	errnum = pthread_create(&thread, NULL, visit_net, &v);
	if (!errnum) {
		pthread_join(thread, NULL);
		errnum = v.socket_fd < 0 ? v.errnum : 0;
	}
	close(v.net_fd);
	if (errnum)
		return err_sys(err, errnum, "process %d is in another network namespace", pid);
	*fd = v.socket_fd;
	return 0;
}
