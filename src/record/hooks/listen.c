/* SPDX-License-Identifier: MIT */
#include "record/hooks/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/temporary_folder.h"
#include "process/proc.h"

#define BACKLOG	     512
#define NAME_DIGITS  16
#define RANDOM_BYTES (HOOK_KEY_BYTES / 2 + NAME_DIGITS / 2)

static int choose_name_and_key(struct listener *l, struct err *err)
{
	uint8_t random[RANDOM_BYTES];
	struct buf digits = {0};

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return err_sys(err, errno, "cannot get random numbers");
	buf_put_hex(&digits, (struct span){random, sizeof(random)});
	memcpy(l->key, digits.p, HOOK_KEY_BYTES);
	snprintf(l->name, sizeof(l->name), "weir-%s", buf_text(&digits) + HOOK_KEY_BYTES);
	buf_release(&digits);
	return 0;
}

static void add(struct listener *l, int fd, uint64_t net)
{
	size_t n = atomic_load_explicit(&l->n, memory_order_relaxed);

	l->fds[n] = fd;
	l->nets[n] = net;
	atomic_store_explicit(&l->n, n + 1, memory_order_release);
}

/* Takes over the socket. */
static int listen_by_name(struct listener *l, int fd, uint64_t net, struct err *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t n = strlen(l->name);
	int errnum;

	memcpy(address.sun_path + 1, l->name, n); /* behind a zero */
	if (fd >= 0 &&
		bind(fd, (const struct sockaddr *)&address,
			(socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)) == 0 &&
		listen(fd, BACKLOG) == 0) {
		add(l, fd, net);
		return 0;
	}
	errnum = errno;
	fd_cleanup(&fd);
	return err_sys(err, errnum, "socket '@%s': cannot listen", l->name);
}

/* Binds a socket to a file, keeps hold of the file and removes its name. */
static int bind_nameless(int fd, const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int path_fd = -1;

	if (strlen(path) >= sizeof(address.sun_path))
		return -1;
	strcpy(address.sun_path, path);
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return -1;
	if (chmod(path, 0666) == 0 && listen(fd, BACKLOG) == 0)
		path_fd = open(path, O_PATH | O_CLOEXEC);
	unlink(path);
	return path_fd;
}

/* Where this is not possible, programs in other network namespaces are not heard, and say so
 * themselves (struct hook_family). */
static void listen_nameless(struct listener *l)
{
	struct temporary_folder folder;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd >= 0 && temporary_folder_make(&folder, temporary_place(), "weir-socket-") == 0) {
		char *path = mem_printf("%s/hooks", folder.path);

		l->path_fd = bind_nameless(fd, path);
		free(path);
		temporary_folder_remove(&folder);
	}
	if (l->path_fd >= 0)
		add(l, fd, 0);
	else
		fd_cleanup(&fd);
}

int listener_open(struct listener *l, struct err *err)
{
	int rc, n;

	*l = (struct listener){.path_fd = -1};
	rc = choose_name_and_key(l, err);
	if (rc == 0)
		rc = listen_by_name(l, socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
			0, err);
	if (rc < 0)
		return rc;
	listen_nameless(l);
	n = snprintf(l->place, sizeof(l->place), "@%s:%.*s", l->name, HOOK_KEY_BYTES, l->key);
	if (l->path_fd >= 0)
		snprintf(l->place + n, sizeof(l->place) - (size_t)n, ":/proc/%d/fd/%d", proc_number(getpid()),
			l->path_fd);
	return 0;
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

/* A socket belongs to the namespace that its maker was in, whoever uses it: a thread goes there, makes
 * it and ends. */
static int socket_of_net(pid_t pid, int *fd, struct err *err)
{
	char path[64];
	struct net_visit v = {.socket_fd = -1};
	pthread_t thread;
	int errnum;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", proc_number(pid));
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

int listener_reach(struct listener *l, pid_t pid, struct err *err)
{
	size_t n = atomic_load_explicit(&l->n, memory_order_relaxed);
	uint64_t net = proc_namespace_id(pid, "net");
	int fd = -1, rc;

	for (size_t i = 0; i < n; i++)
		if (l->nets[i] == net)
			return 0;
	if (n == LISTENERS_MAX)
		return err_set(err, ERR_UNSUPPORTED,
			"process %d: more than %d network namespaces in one recording", pid,
			LISTENERS_MAX - 2);
	rc = socket_of_net(pid, &fd, err);
	return rc < 0 ? rc : listen_by_name(l, fd, net, err);
}

void listener_close(struct listener *l)
{
	size_t n = atomic_load_explicit(&l->n, memory_order_relaxed);

	for (size_t i = 0; i < n; i++)
		close(l->fds[i]);
	atomic_store_explicit(&l->n, 0, memory_order_relaxed);
	fd_cleanup(&l->path_fd);
	l->path_fd = -1;
}

bool listener_is_invited(const struct listener *l, const struct hook_hello *hello)
{
	return !memcmp(l->key, hello->key, sizeof(l->key));
}
