/* SPDX-License-Identifier: MIT */
/* Talking to the recorder: one short connection for each question. */
#include "hook.h"

#include <linux/net.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#define PLAN_BYTES_MAX (1ull << 30)

#ifdef __x86_64__
static long socket_call(int call, const long *a)
{
	switch (call) {
	case SYS_SOCKET:
		return raw_call(SYS_socket, a[0], a[1], a[2]);
	case SYS_CONNECT:
		return raw_call(SYS_connect, a[0], a[1], a[2]);
	case SYS_SENDTO:
		return raw_call(SYS_sendto, a[0], a[1], a[2], a[3], 0, 0);
	default:
		return raw_call(SYS_recvmsg, a[0], a[1], a[2]);
	}
}
#else
static long socket_call(int call, const long *a)
{
	long sendto[6] = {0};

	if (call != SYS_SENDTO)
		return raw_call(SYS_socketcall, call, a);
	bytes_copy(sendto, a, 4 * sizeof(long));
	return raw_call(SYS_socketcall, call, sendto);
}
#endif

/* The parts of the text that says where the recorder is (HOOK_ENV). */
struct place {
	const char *name, *key, *path; /* the name with its '@'; path: "" = none */
	size_t n_name, n_path;
};

static size_t part_length(const char *text)
{
	size_t n = 0;

	while (text[n] && text[n] != ':')
		n++;
	return n;
}

/* False when it makes no sense. */
static bool place_parse(struct place *p, const char *text)
{
	size_t n_key;

	p->name = text;
	p->n_name = part_length(text);
	p->key = text + p->n_name + (text[p->n_name] == ':');
	n_key = part_length(p->key);
	p->path = p->key + n_key + (p->key[n_key] == ':');
	p->n_path = part_length(p->path);
	return text[0] == '@' && p->n_name > 1 && n_key == HOOK_KEY_BYTES;
}

/* Connecting, sending and receiving each end with an error after so long; 0 = never. */
static void set_patience(int fd, long ms)
{
#ifdef __x86_64__
	const long limit[2] = {ms / 1000, ms % 1000 * 1000}; /* struct timeval */

	if (!ms)
		return;
	raw_call(SYS_setsockopt, fd, SOL_SOCKET, SO_RCVTIMEO, limit, sizeof(limit));
	raw_call(SYS_setsockopt, fd, SOL_SOCKET, SO_SNDTIMEO, limit, sizeof(limit));
#else
	(void)fd;
	(void)ms;
#endif
}

/* `path` begins with a zero or a slash, and has `n` bytes. */
static int connect_to(const char *path, size_t n, int flags, long patience_ms)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t bytes = offsetof(struct sockaddr_un, sun_path) + n;
	long fd = socket_call(SYS_SOCKET, (const long[]){AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0});
	long rc;

	if (fd < 0)
		return (int)fd;
	set_patience((int)fd, patience_ms);
	bytes_copy(address.sun_path, path, n);
	if (address.sun_path[0] == '@')
		address.sun_path[0] = 0; /* an abstract name: no file, its length counts */
	do
		rc = socket_call(SYS_CONNECT, (const long[]){fd, (long)&address, (long)bytes});
	while (rc == -EINTR);
	if (rc >= 0)
		return (int)fd;
	raw_close((int)fd);
	return (int)rc;
}

/* Abstract names belong to a network namespace; the path is for processes of another one. */
static int connect_recorder(int flags, long patience_ms)
{
	struct place p;
	int fd;

	if (!place_parse(&p, weir_place))
		return -EINVAL;
	fd = connect_to(p.name, p.n_name, flags, patience_ms);
	/* Refused: nobody has that name. */
	if (fd == -ECONNREFUSED && p.n_path) {
		int other = connect_to(p.path, p.n_path, flags, patience_ms);

		fd = other < 0 ? fd : other;
	}
	return fd;
}

/* One that is stopped accepts nothing, and when enough have asked, asking would wait for it. */
bool exchange_recorder_lives(void)
{
	int fd = connect_recorder(SOCK_NONBLOCK, 0);

	if (fd < 0)
		return fd == -EAGAIN;
	raw_close(fd);
	return true;
}

static bool move_all(int fd, uintptr_t at, size_t n, bool is_out)
{
	while (n) {
		const long args[] = {fd, (long)at, (long)n, MSG_NOSIGNAL};
		long done = is_out ? socket_call(SYS_SENDTO, args) : raw_call(SYS_read, fd, at, n);

		if (done == -EINTR)
			continue;
		if (done <= 0)
			return false;
		at += (uintptr_t)done;
		n -= (size_t)done;
	}
	return true;
}

static bool send_all(int fd, const void *bytes, size_t n)
{
	return move_all(fd, (uintptr_t)bytes, n, true);
}

static bool read_all(int fd, void *to, size_t n)
{
	return move_all(fd, (uintptr_t)to, n, false);
}

static bool pass_over(int fd, uint64_t n)
{
	uint8_t bytes[512];

	for (; n > sizeof(bytes); n -= sizeof(bytes))
		if (!read_all(fd, bytes, sizeof(bytes)))
			return false;
	return read_all(fd, bytes, (size_t)n);
}

/* The descriptors come with the first byte. */
static bool read_reply(struct exchange *x)
{
	int fds[2];
	union {
		struct cmsghdr header;
		uint8_t bytes[CMSG_SPACE(sizeof(fds))];
	} extra = {0};
	struct iovec part = {&x->reply, sizeof(x->reply)};
	struct msghdr message = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &extra,
		.msg_controllen = sizeof(extra)};
	long got;

	do
		got = socket_call(
			SYS_RECVMSG, (const long[]){x->fd, (long)&message, MSG_CMSG_CLOEXEC});
	while (got == -EINTR);
	if (got <= 0)
		return false;
	/* As many of them as the program may still open. */
	if (message.msg_controllen >= CMSG_LEN(sizeof(int)) &&
		extra.header.cmsg_type == SCM_RIGHTS) {
		bytes_copy(fds, CMSG_DATA(&extra.header), sizeof(fds));
		x->area_fd = fds[0];
		x->family_fd = extra.header.cmsg_len >= CMSG_LEN(sizeof(fds)) ? fds[1] : -1;
	}
	return read_all(x->fd, (uint8_t *)&x->reply + got, sizeof(x->reply) - (size_t)got) &&
	       x->reply.magic == HOOK_ABI_MAGIC;
}

static int ask(struct exchange *x, struct hook_hello *hello, const void *modules,
	size_t module_bytes, long patience_ms)
{
	struct place p;
	void *plans;

	*x = (struct exchange){.fd = connect_recorder(0, patience_ms), .area_fd = -1, .family_fd = -1};
	if (x->fd < 0)
		return x->fd;
	place_parse(&p, weir_place);
	bytes_copy(hello->key, p.key, HOOK_KEY_BYTES);
	if (!send_all(x->fd, hello, sizeof(*hello)) || !send_all(x->fd, modules, module_bytes) ||
		!read_reply(x) || x->reply.plan_bytes > PLAN_BYTES_MAX) {
		exchange_close(x);
		return -EIO;
	}
	if (!x->reply.plan_bytes)
		return 0;
	plans = raw_memory(NULL, (size_t)x->reply.plan_bytes, PROT_READ | PROT_WRITE, 0);
	if (!plans) {
		if (hello->kind == HOOK_HELLO_START && pass_over(x->fd, x->reply.plan_bytes))
			exchange_give_up(x, HOOK_HELLO_START, -ENOMEM);
		exchange_close(x);
		return -ENOMEM;
	}
	if (!read_all(x->fd, plans, (size_t)x->reply.plan_bytes)) {
		raw_call(SYS_munmap, plans, (size_t)x->reply.plan_bytes);
		exchange_close(x);
		return -EIO;
	}
	x->plans = plans;
	x->plan_bytes = x->reply.plan_bytes;
	return 0;
}

static void count_unheard(enum hook_hello_kind kind)
{
	if (library.family)
		__atomic_add_fetch(&library.family->n_unheard[kind], 1, __ATOMIC_RELAXED);
}

int exchange_open(
	struct exchange *x, struct hook_hello *hello, const void *modules, size_t module_bytes)
{
	return exchange_open_for(x, hello, modules, module_bytes, 0);
}

int exchange_open_for(struct exchange *x, struct hook_hello *hello, const void *content,
	size_t content_bytes, long patience_ms)
{
	int rc = ask(x, hello, content, content_bytes, patience_ms);

	if (rc < 0)
		count_unheard(hello->kind);
	return rc;
}

void exchange_give_up(const struct exchange *x, enum hook_hello_kind kind, int error)
{
	struct hook_results failed = {HOOK_FAILED_MAGIC, (uint32_t)-error};
	uint8_t done;

	/* A program that begins has no page to count in. The recorder knows before it runs on. */
	if (kind != HOOK_HELLO_START)
		count_unheard(kind);
	else if (send_all(x->fd, &failed, sizeof(failed)))
		read_all(x->fd, &done, 1);
}

void exchange_results(struct exchange *x, const struct hook_result *results, uint32_t n)
{
	struct hook_results head = {HOOK_ABI_MAGIC, n};
	uint8_t done;

	if (send_all(x->fd, &head, sizeof(head)) && send_all(x->fd, results, n * sizeof(*results)))
		read_all(x->fd, &done, 1); /* the recorder knows them before the program runs on */
}

void exchange_close_area(struct exchange *x)
{
	if (x->area_fd >= 0)
		raw_close(x->area_fd);
	if (x->family_fd >= 0)
		raw_close(x->family_fd);
	x->area_fd = x->family_fd = -1;
}

void exchange_close(struct exchange *x)
{
	if (x->plans)
		raw_call(SYS_munmap, x->plans, (size_t)x->plan_bytes);
	if (x->fd >= 0)
		raw_close(x->fd);
	exchange_close_area(x);
	*x = (struct exchange){.fd = -1, .area_fd = -1, .family_fd = -1};
}
