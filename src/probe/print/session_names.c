/* SPDX-License-Identifier: MIT */
#include "probe/print/session_names.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "probe/print/kernel_names.h"
#include "probe/print/user_names.h"

#define SHAPE_DEPTH_MAX 32

/* --- what the stream needs -------------------------------------------------------------------- */

static bool has_user_addresses(const struct shape *s, unsigned depth)
{
	if (!s)
		return false;
	if (s->kind == SHAPE_USTACK || s->kind == SHAPE_USYM)
		return true;
	for (uint32_t i = 0; i < s->n_fields && depth < SHAPE_DEPTH_MAX; i++)
		if (has_user_addresses(s->fields[i].shape, depth + 1))
			return true;
	return false;
}

static bool maps_have_user_addresses(const struct stream *s)
{
	for (size_t i = 0; i < s->maps.n; i++)
		if (has_user_addresses(s->maps.v[i].key, 0) ||
			has_user_addresses(s->maps.v[i].value, 0))
			return true;
	return false;
}

static bool formats_have_user_addresses(const struct stream *s)
{
	for (size_t i = 0; i < s->formats.n; i++)
		for (uint32_t k = 0; k < s->formats.v[i].n_args; k++)
			if (has_user_addresses(s->formats.v[i].args[k], 0))
				return true;
	return false;
}

/* --- answers ---------------------------------------------------------------------------------- */

static const char *find_site(void *ctx, uint64_t site, bool is_function)
{
	struct session_names *n = ctx;

	return n->session ? probe_session_site(n->session, site, is_function) : NULL;
}

static size_t find_stack(void *ctx, uint64_t stack_id, uint64_t *addresses, size_t max)
{
	struct session_names *n = ctx;

	return n->session ? probe_session_stack(n->session, stack_id, addresses, max) : 0;
}

static bool find_user(
	void *ctx, uint32_t pid, uint32_t bits, uint64_t address, struct printer_symbol *out)
{
	struct session_names *n = ctx;

	if (bits == 32)
		address &= UINT32_MAX;
	return n->user && user_names_find(n->user, pid, address, out);
}

static bool find_kernel(void *ctx, uint64_t address, struct printer_symbol *out)
{
	struct session_names *n = ctx;

	return kernel_names_find(n->kernel, address, out);
}

/* Reading every process takes time that the start of the run should not wait for: it is left to the
 * first call of session_names_work, which the caller's loop makes at once. */
static void want_all(struct session_names *n)
{
	struct epoll_event wanted = {.events = EPOLLIN};

	n->all_fd = eventfd(1, EFD_CLOEXEC);
	n->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	epoll_ctl(n->epoll_fd, EPOLL_CTL_ADD, n->all_fd, &wanted);
	if (user_names_fd(n->user) >= 0)
		epoll_ctl(n->epoll_fd, EPOLL_CTL_ADD, user_names_fd(n->user), &wanted);
}

static void read_all(struct session_names *n)
{
	if (n->all_fd < 0)
		return;
	user_names_all_processes(n->user);
	close(n->all_fd); /* epoll forgets it, too */
	n->all_fd = -1;
}

struct session_names *session_names_new(
	const struct stream *stream, const pid_t *pids, size_t n_pids, struct err *err)
{
	struct session_names *n = mem_zalloc(sizeof(*n));
	bool in_maps = maps_have_user_addresses(stream);

	n->names = (struct printer_names){.ctx = n,
		.site = find_site,
		.stack = find_stack,
		.user_symbol = find_user,
		.kernel_symbol = find_kernel};
	n->all_fd = n->epoll_fd = -1;
	n->kernel = kernel_names_new(NULL);
	err->code = 0;
	if (!in_maps && !formats_have_user_addresses(stream))
		return n;
	n->user = user_names_new(!n_pids);
	user_names_watch(n->user, err);
	for (size_t i = 0; i < n_pids; i++)
		user_names_process(n->user, pids[i]);
	/* Maps are printed long after their keys were made, records soon enough to look then. */
	if (in_maps && !n_pids)
		want_all(n);
	return n;
}

void session_names_free(struct session_names *n)
{
	if (!n)
		return;
	fd_cleanup(&n->all_fd);
	fd_cleanup(&n->epoll_fd);
	user_names_free(n->user);
	kernel_names_free(n->kernel);
	free(n);
}

int session_names_fd(const struct session_names *n)
{
	if (n->epoll_fd >= 0)
		return n->epoll_fd;
	return n->user ? user_names_fd(n->user) : -1;
}

void session_names_work(struct session_names *n)
{
	if (!n->user)
		return;
	user_names_work(n->user);
	read_all(n);
}

uint64_t session_names_n_lost(const struct session_names *n)
{
	return n->user ? user_names_n_lost(n->user) : 0;
}
