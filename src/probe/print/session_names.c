/* SPDX-License-Identifier: MIT */
#include "probe/print/session_names.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "probe/print/kernel_names.h"
#include "probe/print/stack_walker.h"
#include "probe/print/user_names.h"

#define SHAPE_DEPTH_MAX 32
#define COPY_WAITS	100
#define COPY_WAIT_US	200

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

/* Of a copy: one that another copy stands in front of, which is being made, comes late. */
static uint64_t find_stack_id(void *ctx, uint64_t stack_id)
{
	struct session_names *n = ctx;
	uint64_t id = n->walker ? stack_walker_id(n->walker, stack_id) : stack_id;

	for (int i = 0; id == stack_id && id && !(id & 1) && n->session && i < COPY_WAITS; i++) {
		if (i)
			usleep(COPY_WAIT_US);
		probe_session_copies(n->session, UINT64_MAX, stack_id);
		id = n->walker ? stack_walker_id(n->walker, stack_id) : id;
	}
	return id;
}

static size_t find_stack(
	void *ctx, uint64_t stack_id, uint64_t *addresses, size_t max, const char **reason)
{
	struct session_names *n = ctx;
	uint64_t id = find_stack_id(n, stack_id);
	enum unwind_end end;
	size_t count;

	if (!n->walker || !stack_walker_stack(n->walker, id, addresses, max, &count, &end)) {
		end = UNWIND_END_COMPLETE;
		count = n->session ? probe_session_stack(n->session, id, addresses, max) : 0;
		if (!count && id)
			*reason = "not known";
	}
	if (count == STREAM_STACK_FRAMES)
		end = UNWIND_END_TOO_DEEP;
	if (end != UNWIND_END_COMPLETE)
		*reason = unwind_end_reason(end);
	return count;
}

void session_names_copy(struct session_names *n, const struct stack_copy *copy, size_t n_bytes)
{
	struct err err = {0};

	/* No stack is shown and yet one is wanted, for its len(). */
	if (!n->user) {
		n->user = user_names_new(true);
		user_names_watch(n->user, &err);
	}
	if (!n->walker)
		n->walker = stack_walker_new(n->user);
	stack_walker_take(n->walker, n->session, copy, n_bytes);
}

static bool find_user(
	void *ctx, uint32_t pid, uint32_t bits, uint64_t address, struct printer_symbol *out)
{
	struct session_names *n = ctx;

	if (bits == 32)
		address &= UINT32_MAX;
	return n->user && user_names_find(n->user, pid, address, out);
}

static size_t find_places(void *ctx, uint32_t pid, uint32_t bits, uint64_t address,
	struct printer_place *out, size_t max)
{
	struct session_names *n = ctx;

	if (bits == 32)
		address &= UINT32_MAX;
	return n->user ? user_names_places(n->user, pid, address, out, max) : 0;
}

static bool find_file(
	void *ctx, uint32_t pid, uint32_t bits, uint64_t address, struct printer_file_place *out)
{
	struct session_names *n = ctx;

	if (bits == 32)
		address &= UINT32_MAX;
	return n->user && user_names_file(n->user, pid, address, out);
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
		.stack_id = find_stack_id,
		.user_symbol = find_user,
		.user_places = find_places,
		.user_file = find_file,
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
	stack_walker_free(n->walker);
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

void session_names_make_room(struct session_names *n)
{
	if (n->user)
		user_names_work_until(n->user, 0);
}

void session_names_work(struct session_names *n, uint64_t until_ns)
{
	if (!n->user)
		return;
	user_names_work_until(n->user, until_ns);
	read_all(n);
}

void session_names_at(struct session_names *n, uint64_t time_ns)
{
	if (n->user)
		user_names_at(n->user, time_ns);
}

uint64_t session_names_n_lost(const struct session_names *n)
{
	return n->user ? user_names_n_lost(n->user) : 0;
}
