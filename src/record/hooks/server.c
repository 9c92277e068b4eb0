/* SPDX-License-Identifier: MIT */
/*
 * The thread that answers hook libraries: reads a hello, has the modules planned, makes the area,
 * sends both, and keeps what the results say. Many programs may connect at once; one that says
 * nothing more holds up nobody and is dropped after a while.
 */
#include "base/map.h"
#include "record/hooks/hooks_internal.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "process/mapped_file.h"
#include "record/hooks/hello.h"
#include "record/hooks/tick_clock.h"

#define CONNECTIONS_MAX 256
/* A program may be stopped by a debugger while it speaks; one that is not is done within ms. */
#define PATIENCE_NS 30000000000u
#define POLL_MS	    1000
#define READ_BYTES  65536
#define RETIRED_MAX 4096
#define PAGE_BYTES  4096u

struct sent_plan {
	uint32_t id; /* 0: none of the functions asked for */
	struct hook_moved moved;
};

enum connection_state { READS_HELLO, SENDS_PLAN, READS_RESULTS, SENDS_DONE };

struct connection {
	int fd;
	enum connection_state state;
	uint32_t pid;
	uint64_t since_ns;
	struct buf in, out;
	size_t n_out; /* bytes of `out` that are gone */
	int area_fd;  /* goes with the first byte, and with it that of the
				       * family page; borrowed; -1 = none */
	int family_fd;
	struct hook_process *process; /* a reference; NULL until the hello was understood */
	VEC(struct sent_plan) sent;
	VEC(struct hook_module_at) modules; /* new ones */
	bool wants_results;
};

struct server {
	struct hooks *h;
	VEC(struct connection *) connections;
};

void hook_server_wake(struct hooks *h)
{
	uint64_t one = 1;

	if (h->wake_fd >= 0 && write(h->wake_fd, &one, sizeof(one)) < 0)
		return; /* cannot be: the counter is far from full */
}

/* --- connections ------------------------------------------------------------------------ */

static void begin_exchange(struct hooks *h, struct connection *c)
{
	c->process->n_refs++;
	c->process->n_exchanges++;
	h->n_exchanges++;
}

static void connection_free(struct hooks *h, struct connection *c)
{
	close(c->fd);
	buf_release(&c->in);
	buf_release(&c->out);
	vec_release(&c->sent);
	vec_release(&c->modules);
	if (c->process) {
		pthread_mutex_lock(&h->lock);
		c->process->n_exchanges--;
		h->n_exchanges--;
		hooks_unref_process(c->process);
		pthread_cond_broadcast(&h->changed);
		pthread_mutex_unlock(&h->lock);
	}
	free(c);
}

static void accept_one(struct server *s, int listen_fd)
{
	int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct connection *c;
	struct ucred peer;
	socklen_t n = sizeof(peer);

	if (fd < 0)
		return;
	/* The kernel has translated the pid, if there is one for us. */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0 || peer.pid <= 0) {
		atomic_fetch_add(&s->h->n_bad_hellos, 1);
		close(fd);
		return;
	}
	c = mem_zalloc(sizeof(*c));
	c->fd = fd;
	c->pid = (uint32_t)peer.pid;
	c->area_fd = -1;
	c->family_fd = s->h->family_fd;
	c->since_ns = clock_mono_ns();
	vec_push(&s->connections, c);
}

/* --- a hello ---------------------------------------------------------------------------- */

/* Appends the image's plan to the message. */
static void add_plans(struct hooks *h, struct connection *c, const struct planned_image *image,
	uint32_t module_i, uint64_t bias)
{
	struct span left = buf_span(&image->plans);
	struct hook_plan plan;

	while (left.n >= sizeof(plan)) {
		memcpy(&plan, left.p, sizeof(plan));
		if (plan.bytes < sizeof(plan) || plan.bytes > left.n)
			break;
		plan.module_i = module_i;
		buf_put(&c->out, &plan, sizeof(plan));
		buf_put(&c->out, left.p + sizeof(plan), plan.bytes - sizeof(plan));
		vec_push(&c->sent,
			((struct sent_plan){plan.id,
				{.n_code = plan.n_code,
					.n_patched = plan.n_patched,
					.function = plan.function + bias,
					.site = plan.site + bias,
					.planned = plan.id ? hooks_planned(h, plan.id, NULL)
							   : NULL}}));
		left = span_sub(left, plan.bytes, left.n - plan.bytes);
	}
}

static void keep_file_mapping(void *ctx, const struct proc_mapping *m)
{
	if (m->inode && m->path[0] == '/')
		proc_mappings_add(ctx, m);
}

/* The first that touches [start, end); NULL when there is none. */
static const struct proc_mapping *find_mapping(
	const struct proc_mappings *maps, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < maps->n; i++)
		if (maps->v[i].start < end && maps->v[i].end > start)
			return &maps->v[i];
	return NULL;
}

/* Names this version of the file. */
static uint64_t key_of(const struct stat *st)
{
	uint64_t key = map_hash_mix(map_hash(st->st_dev), st->st_ino);

	key = map_hash_mix(key, (uint64_t)st->st_size);
	key = map_hash_mix(key, (uint64_t)st->st_mtim.tv_sec);
	return map_hash_mix(key, (uint64_t)st->st_mtim.tv_nsec);
}

/* Fails when the file is not there, is another one now, or cannot be hooked. */
static int plan_file(struct hooks *h, pid_t pid, const struct proc_mapping *m, bool is_main,
	const struct planned_image **image)
{
	struct mapped_file mapped;
	struct file_map file;
	struct elf_file elf;
	struct err err;
	char *path;
	int rc = mapped_file_open(&mapped, pid, m, (struct span){0}, &err);

	if (rc < 0)
		return rc;
	rc = mapped_file_read_elf(&mapped, &file, &elf, &err);
	if (rc == 0) {
		struct planned_file key = {key_of(&mapped.st), m->major, m->minor, m->inode};

		path = mem_strndup(m->path, path_plain_bytes(m->path));
		pthread_mutex_lock(&h->planner_lock);
		rc = hook_planner_image(h->planner, &key, &elf, path, is_main, image, &err);
		pthread_mutex_unlock(&h->planner_lock);
		elf_file_release(&elf);
		file_map_release(&file);
		free(path);
	}
	mapped_file_close(&mapped);
	return rc;
}

/* NULL when there is no file (the vdso) or it cannot be used, which is counted. */
static const struct planned_image *plan_module(struct hooks *h, struct connection *c,
	const struct proc_mappings *maps, const struct hello_module *m, uint32_t module_i)
{
	const struct proc_mapping *mapping = find_mapping(maps, m->start, m->end);
	const struct planned_image *image = NULL;

	if (!mapping)
		return NULL;
	if (plan_file(h, (pid_t)c->pid, mapping, !m->path[0], &image) < 0) {
		atomic_fetch_add(&h->n_unread_modules, 1);
		return NULL;
	}
	add_plans(h, c, image, module_i, m->bias);
	return image;
}

static void plan_modules(struct hooks *h, struct connection *c, const struct hello *hello)
{
	struct proc_mappings maps = {0};

	proc_each_mapping((pid_t)c->pid, keep_file_mapping, &maps, NULL);
	for (size_t i = 0; i < hello->modules.n; i++) {
		const struct hello_module *m = &hello->modules.v[i];
		const struct planned_image *image = plan_module(h, c, &maps, m, (uint32_t)i);

		vec_push(&c->modules, ((struct hook_module_at){m->bias, m->start, m->end, image}));
	}
	proc_mappings_release(&maps);
}

static struct hook_process *new_process(
	struct hooks *h, const struct connection *c, const struct hook_hello *hello)
{
	struct hook_area_options options = {.is_64 = hello->bits == 64,
		.tree = h->options.tree,
		.ring_bytes = h->options.ring_bytes,
		.prune_permille = h->options.prune_permille,
		.counts_bytes = h->options.heap_bytes};
	struct hook_process *p = mem_zalloc(sizeof(*p));
	pid_t own;

	p->n_refs = 1;
	p->pid = c->pid;
	p->is_64 = hello->bits == 64;
	p->since_ticks = tick_clock_read();
	p->area.fd = -1;
	p->pid_fd = (int)syscall(SYS_pidfd_open, (pid_t)c->pid, 0);
	if (p->pid_fd < 0 || hook_area_open(&p->area, &options, NULL) < 0) {
		hooks_unref_process(p);
		return NULL;
	}
	p->needs_tids = proc_own_number((pid_t)c->pid, (pid_t)c->pid, &own) > 1;
	p->area.control->needs_tids = p->needs_tids;
	p->rings = mem_calloc(p->area.n_threads, sizeof(*p->rings));
	return p;
}

static struct hook_process *find_parent(const struct hooks *h, uint32_t serial)
{
	for (size_t i = h->processes.n; i--;)
		if ((uint32_t)h->processes.v[i]->serial == serial)
			return h->processes.v[i];
	return NULL;
}

/* A program that begins, or a child of one: gets an area. */
static bool open_process(struct hooks *h, struct connection *c, const struct hook_hello *hello)
{
	struct hook_process *p = new_process(h, c, hello), *parent = NULL;

	if (!p)
		return false;
	pthread_mutex_lock(&h->lock);
	if (hello->kind == HOOK_HELLO_FORK)
		parent = find_parent(h, hello->parent_serial);
	p->layout = parent ? hooks_ref_layout(parent->layout) : hook_layout_new(NULL);
	if (!parent) {
		p->layout->region_start = hello->region_start;
		p->layout->region_bytes = hello->region_bytes;
	}
	for (size_t i = 0; i < h->off.n; i++)
		hook_area_turn_off(&p->area, h->off.v[i]);
	hooks_add_process(h, p);
	p->area.control->serial = (uint32_t)p->serial;
	c->process = p;
	begin_exchange(h, c);
	pthread_mutex_unlock(&h->lock);
	c->area_fd = p->area.fd;
	return true;
}

static bool join_process(struct hooks *h, struct connection *c)
{
	HOLD(&h->lock);
	c->process = hooks_find_process(h, c->pid);
	if (c->process)
		begin_exchange(h, c);
	return c->process != NULL;
}

/* --- classes of Java ---------------------------------------------------------------------- */

static void count_hooked(struct hooks *h, const struct planned_image *image)
{
	HOLD(&h->lock);
	for (size_t i = 0; i < image->functions.n; i++)
		if (image->functions.v[i].method)
			hooks_outcome(h, image->functions.v[i].id)->n_hooked++;
}

/* The class with calls in it, or nothing. */
static void answer_class(struct hooks *h, struct connection *c, const struct hello *hello)
{
	bool is_library = hello->classes.flags & HOOK_CLASS_OF_LIBRARY;
	const struct planned_image *image = NULL;
	struct err err;
	int rc;

	pthread_mutex_lock(&h->planner_lock);
	rc = hook_planner_class(h->planner, hello->class_bytes, is_library, &image, &c->out, &err);
	pthread_mutex_unlock(&h->planner_lock);
	if (rc < 0)
		atomic_fetch_add(&h->n_unread_classes, 1);
	else if (image)
		count_hooked(h, image);
}

static char *dotted(const char *name)
{
	char *copy = mem_strdup(name);

	for (char *p = copy; *p; p++)
		if (*p == '/')
			*p = '.';
	return copy;
}

/* A byte for each name. */
static void answer_names(struct hooks *h, struct connection *c, const struct hello *hello)
{
	struct cursor in = cursor_of(hello->class_bytes);
	HOLD(&h->planner_lock);

	for (uint32_t i = 0; i < hello->classes.n_names; i++) {
		bool is_library = cursor_u8(&in) == 1;
		const char *name = cursor_cstr(&in);
		char *copy = name ? dotted(name) : NULL;

		buf_put_u8(
			&c->out, copy && hook_planner_may_want_class(h->planner, copy, is_library));
		free(copy);
	}
}

static void answer_classes(struct hooks *h, struct connection *c, const struct hello *hello)
{
	if (hello->classes.flags & HOOK_CLASS_NAMES)
		answer_names(h, c, hello);
	else
		answer_class(h, c, hello);
}

/* For whoever asks which programs have never said anything. */
static void hear(struct hooks *h, uint32_t pid)
{
	HOLD(&h->lock);
	vec_push(&h->heard, ((struct heard_program){pid, 0, tick_clock_read()}));
}

/* The whole program is refused: every function that it has is, for this reason. */
static void keep_refusal(struct hooks *h, enum hook_refusal refusal)
{
	uint32_t n = hooks_n_functions(h);

	HOLD(&h->lock);
	for (uint32_t id = 1; id <= n; id++)
		if (!hooks_outcome(h, id)->refusal)
			hooks_outcome(h, id)->refusal = refusal;
}

/* The process of the hello is known, as it has to be for this kind. */
static bool find_process(struct hooks *h, struct connection *c, const struct hook_hello *head)
{
	if (head->kind == HOOK_HELLO_MODULES || head->kind == HOOK_HELLO_CLASSES)
		return join_process(h, c);
	return open_process(h, c, head);
}

static void take_hello(struct hooks *h, struct connection *c, const struct hello *hello)
{
	struct hook_reply reply = {.magic = HOOK_ABI_MAGIC, .status = 1};
	const struct hook_hello *head = &hello->head;
	size_t at = c->out.n;

	buf_put(&c->out, &reply, sizeof(reply));
	if (head->kind == HOOK_HELLO_START)
		hear(h, c->pid);
	if (head->refusal && head->refusal < HOOK_REFUSAL_N) {
		keep_refusal(h, head->refusal);
	} else if (!atomic_load(&h->is_off) && find_process(h, c, head)) {
		c->wants_results =
			head->kind == HOOK_HELLO_START || head->kind == HOOK_HELLO_MODULES;
		if (c->wants_results)
			plan_modules(h, c, hello);
		else if (head->kind == HOOK_HELLO_CLASSES)
			answer_classes(h, c, hello);
		reply.status = 0;
		reply.n_plans = (uint32_t)c->sent.n;
		reply.plan_bytes = c->out.n - at - sizeof(reply);
		reply.has_area = c->area_fd >= 0;
		reply.area_bytes = reply.has_area ? c->process->area.head_bytes : 0;
	}
	memcpy(c->out.p + at, &reply, sizeof(reply));
	c->state = SENDS_PLAN;
}

/* --- results ---------------------------------------------------------------------------- */

/* What new modules and their moved code have taken the place of. */
static void drop_replaced(
	struct hook_layout *layout, const struct connection *c, struct span results)
{
	uint64_t low = UINT64_MAX, high = 0;

	if (!layout->modules.n)
		return;
	for (size_t i = 0; i < c->modules.n; i++)
		hook_layout_drop(layout, c->modules.v[i].start, c->modules.v[i].end);
	/* Moved code of one module lies together, that of several may not. */
	for (size_t i = 0; i < c->sent.n; i++) {
		struct hook_result r;

		memcpy(&r, results.p + i * sizeof(r), sizeof(r));
		if (!r.moved_code)
			continue;
		if (high && (r.moved_code < low || r.moved_code > high + PAGE_BYTES)) {
			hook_layout_drop(layout, low, high);
			high = 0;
		}
		low = high ? low : r.moved_code;
		high = r.moved_code + c->sent.v[i].moved.n_code;
	}
	if (high)
		hook_layout_drop(layout, low, high);
}

static void take_results(struct hooks *h, struct connection *c, struct span results)
{
	struct hook_layout *layout, *old;

	HOLD(&h->lock);
	old = c->process->layout;
	layout = hook_layout_new(old);
	drop_replaced(layout, c, results);
	for (size_t i = 0; i < c->modules.n; i++)
		vec_push(&layout->modules, c->modules.v[i]);
	for (size_t i = 0; i < c->sent.n; i++) {
		const struct sent_plan *sent = &c->sent.v[i];
		struct hook_result r;

		memcpy(&r, results.p + i * sizeof(r), sizeof(r));
		if (sent->id && r.refusal && r.refusal < HOOK_REFUSAL_N) {
			hooks_outcome(h, sent->id)->refusal = r.refusal;
			hooks_outcome(h, sent->id)->n_refused++;
		}
		if (r.refusal)
			continue;
		if (sent->id)
			hooks_outcome(h, sent->id)->n_hooked++;
		if (!r.moved_code)
			continue;
		vec_push(&layout->moved, sent->moved);
		layout->moved.v[layout->moved.n - 1].code = r.moved_code;
	}
	hook_layout_sort(layout);
	c->process->layout = layout;
	hooks_unref_layout(old);
}

/* --- bytes to and fro ------------------------------------------------------------------- */

/* False when the connection is over. */
static bool read_some(struct connection *c)
{
	uint8_t bytes[READ_BYTES];
	ssize_t n = recv(c->fd, bytes, sizeof(bytes), 0);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if (n)
		buf_put(&c->in, bytes, (size_t)n);
	return n > 0;
}

static bool read_hello(struct hooks *h, struct connection *c)
{
	struct hello hello;
	struct err err;
	bool is_invited;

	if (!read_some(c))
		return false;
	switch (hello_parse(&hello, buf_span(&c->in), &err)) {
	case HELLO_WHOLE:
		is_invited = listener_is_invited(&h->listener, &hello.head);
		if (is_invited)
			take_hello(h, c, &hello);
		else
			atomic_fetch_add(&h->n_bad_hellos, 1);
		hello_release(&hello);
		buf_reset(&c->in);
		return is_invited;
	case HELLO_BAD:
		atomic_fetch_add(&h->n_bad_hellos, 1);
		return false;
	default:
		return true;
	}
}

static ssize_t send_some(struct connection *c)
{
	struct iovec part = {c->out.p + c->n_out, c->out.n - c->n_out};
	int fds[2] = {c->area_fd, c->family_fd};
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(fds))];
	} extra = {0};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	if (!c->n_out && c->area_fd >= 0) {
		extra.header.cmsg_level = SOL_SOCKET;
		extra.header.cmsg_type = SCM_RIGHTS;
		extra.header.cmsg_len = CMSG_LEN(sizeof(fds));
		memcpy(CMSG_DATA(&extra.header), fds, sizeof(fds));
		message.msg_control = &extra;
		message.msg_controllen = sizeof(extra);
	}
	return sendmsg(c->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static bool send_out(struct connection *c)
{
	ssize_t n = send_some(c);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	c->n_out += (size_t)n;
	if (c->n_out < c->out.n)
		return true;
	if (c->state == SENDS_DONE || !c->wants_results)
		return false; /* all is said */
	c->state = READS_RESULTS;
	return true;
}

/* Functions that are hooked in another process have figures; those of this one are a loss by themselves. */
static void take_failure(struct hooks *h, const struct connection *c, uint32_t error)
{
	uint32_t refusal = error == ENOMEM   ? HOOK_REFUSAL_NO_MEMORY
			   : error == EMFILE ? HOOK_REFUSAL_NO_FILES
					     : HOOK_REFUSAL_FAILED;

	HOLD(&h->lock);
	for (size_t i = h->heard.n; i--;)
		if (h->heard.v[i].pid == c->pid) {
			h->heard.v[i].error = error ? error : EIO;
			break;
		}
	for (size_t i = 0; i < c->sent.n; i++)
		if (c->sent.v[i].id && !hooks_outcome(h, c->sent.v[i].id)->refusal)
			hooks_outcome(h, c->sent.v[i].id)->refusal = refusal;
}

/* The program runs on when it has this: nothing of it is unknown then. */
static bool say_done(struct connection *c)
{
	buf_reset(&c->out);
	c->n_out = 0;
	c->area_fd = -1;
	buf_put_u8(&c->out, 1);
	c->state = SENDS_DONE;
	return true;
}

static bool read_results(struct hooks *h, struct connection *c)
{
	struct span results;
	struct err err;
	uint32_t error;

	if (!read_some(c))
		return false;
	switch (hello_parse_results(buf_span(&c->in), (uint32_t)c->sent.n, &results, &err)) {
	case HELLO_WHOLE:
		take_results(h, c, results);
		return say_done(c);
	case HELLO_BAD:
		if (!hello_is_failure(buf_span(&c->in), &error))
			return false;
		take_failure(h, c, error);
		return say_done(c);
	default:
		return c->in.n < sizeof(struct hook_results) +
					 (size_t)RESULTS_MAX * sizeof(struct hook_result);
	}
}

static bool serve(struct hooks *h, struct connection *c)
{
	switch (c->state) {
	case READS_HELLO:
		return read_hello(h, c);
	case READS_RESULTS:
		return read_results(h, c);
	case SENDS_PLAN:
	case SENDS_DONE:
		break;
	}
	return send_out(c);
}

/* --- the thread ------------------------------------------------------------------------- */

static void serve_ready(struct server *s, const struct pollfd *fds, size_t n)
{
	uint64_t now = clock_mono_ns();
	size_t kept = 0;

	for (size_t i = 0; i < s->connections.n; i++) {
		struct connection *c = s->connections.v[i];
		bool goes_on = i >= n || !fds[i].revents || serve(s->h, c);

		if (goes_on && now - c->since_ns < PATIENCE_NS)
			s->connections.v[kept++] = c;
		else
			connection_free(s->h, c);
	}
	s->connections.n = kept;
}

/* Processes that are over are kept for a while: a child may refer to them. */
static void forget_retired(struct hooks *h)
{
	size_t n_ended = 0, kept = 0;

	HOLD(&h->lock);
	for (size_t i = 0; i < h->processes.n; i++)
		n_ended += h->processes.v[i]->has_ended;
	for (size_t i = 0; i < h->processes.n && n_ended > RETIRED_MAX; i++) {
		if (h->processes.v[i]->has_ended) {
			hooks_unref_process(h->processes.v[i]);
			h->processes.v[i] = NULL;
			n_ended--;
		}
	}
	for (size_t i = 0; i < h->processes.n; i++)
		if (h->processes.v[i])
			h->processes.v[kept++] = h->processes.v[i];
	h->version += kept != h->processes.n;
	h->processes.n = kept;
}

void *hook_server_main(void *hooks)
{
	struct server s = {.h = hooks};
	struct pollfd fds[CONNECTIONS_MAX + 1 + LISTENERS_MAX];

	while (!atomic_load(&s.h->stop)) {
		/* Pairs with the release of listen.c. */
		size_t n_listen = atomic_load_explicit(&s.h->listener.n, memory_order_acquire);
		size_t n = s.connections.n;
		uint64_t wakes;

		for (size_t i = 0; i < n; i++) {
			const struct connection *c = s.connections.v[i];
			bool reads = c->state == READS_HELLO || c->state == READS_RESULTS;

			fds[i] = (struct pollfd){.fd = c->fd, .events = reads ? POLLIN : POLLOUT};
		}
		fds[n] = (struct pollfd){.fd = s.h->wake_fd, .events = POLLIN};
		for (size_t i = 0; i < n_listen; i++)
			fds[n + 1 + i] = (struct pollfd){
				.fd = n + i < CONNECTIONS_MAX ? s.h->listener.fds[i] : -1,
				.events = POLLIN};
		if (poll(fds, n + 1 + n_listen, POLL_MS) < 0)
			continue;
		if (fds[n].revents & POLLIN && read(fds[n].fd, &wakes, sizeof(wakes)) < 0)
			continue;
		serve_ready(&s, fds, n);
		for (size_t i = 0; i < n_listen; i++)
			if (fds[n + 1 + i].revents & POLLIN)
				accept_one(&s, fds[n + 1 + i].fd);
		forget_retired(s.h);
	}
	for (size_t i = 0; i < s.connections.n; i++)
		connection_free(s.h, s.connections.v[i]);
	vec_release(&s.connections);
	return NULL;
}
