/* SPDX-License-Identifier: MIT */
#include "record/hooks/hooks.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/map_guard.h"
#include "process/proc.h"
#include "process/ptrace/inject_internal.h"
#include "record/hooks/budget.h"
#include "record/hooks/hooks_internal.h"
#include "record/hooks/inject.h"
#include "record/hooks/tick_clock.h"

#define LIBRARY_NAME "libweir.so"
#define LIBRARY_64   "lib/x86_64-linux-gnu/" LIBRARY_NAME
#define LIBRARY_32   "lib/i386-linux-gnu/" LIBRARY_NAME
/* What the library may take of a program's addresses, and what the program needs at least. */
#define LIBRARY_BYTES	  (256u << 20)
#define PROGRAM_BYTES_MIN (LIBRARY_BYTES + (16u << 20))
/* How long the last records are waited for. */
#define REST_NS		2000000000u
#define EXCHANGE_NS	5000000000u
#define FREE_CHUNKS_MAX 1024u

bool hooks_options_are_used(const struct hooks_options *o)
{
	return o->events || o->stack_at || o->allocations;
}

/* --- processes, with the lock held ------------------------------------------------------- */

struct hook_layout *hooks_ref_layout(struct hook_layout *l)
{
	l->n_refs++;
	return l;
}

void hooks_unref_layout(struct hook_layout *l)
{
	if (l && !--l->n_refs)
		hook_layout_free(l);
}

void hooks_unref_process(struct hook_process *p)
{
	if (--p->n_refs)
		return;
	hook_area_close(&p->area);
	fd_cleanup(&p->pid_fd);
	hooks_unref_layout(p->layout);
	free(p->rings);
	free(p);
}

struct hook_process *hooks_find_process(const struct hooks *h, uint32_t pid)
{
	for (size_t i = h->processes.n; i--;) {
		struct hook_process *p = h->processes.v[i];

		if (p->pid == pid)
			return p->has_ended || p->is_superseded ? NULL : p;
	}
	return NULL;
}

void hooks_add_process(struct hooks *h, struct hook_process *p)
{
	struct hook_process *before = hooks_find_process(h, p->pid);

	if (before)
		before->is_superseded = true;
	vec_push(&h->processes, p);
	h->version++;
	p->serial = ++h->n_processes;
}

void hooks_take_counts(struct hooks *h, const struct hook_process *p)
{
	const struct hook_control *c = p->area.control;

	h->n_threadless += c->n_threadless;
	h->n_memoryless += c->n_memoryless;
	h->n_missed += c->n_missed;
	h->n_filtered += c->stop_reason == HOOK_STOP_FILTER;
	h->n_jvms_left += c->n_jvms_left;
	h->n_classes_left += c->n_classes_left;
	h->n_archives += c->writes_archive != 0;
	h->n_virtual += c->has_virtual_threads != 0;
	h->n_without_bytes += c->n_jvms_without_bytes != 0;
}

struct hook_outcome *hooks_outcome(struct hooks *h, uint32_t id)
{
	vec_ensure_zero(&h->outcomes, (size_t)id + 1);
	return &h->outcomes.v[id];
}

/* --- taking ------------------------------------------------------------------------------ */

static void append_chunks(struct hook_source *s)
{
	if (s->mine)
		s->mine_end->next = s->first;
	else
		s->mine = s->first;
	if (s->first)
		s->mine_end = s->last;
	s->first = s->last = NULL;
	s->mine_is_over = s->is_over;
}

static struct hook_chunk *give_back(struct hooks *h, struct hook_chunk *used)
{
	while (used && h->n_free_chunks < FREE_CHUNKS_MAX) {
		struct hook_chunk *next = used->next;

		used->next = h->free_chunks;
		h->free_chunks = used;
		h->n_free_chunks++;
		used = next;
	}
	return used;
}

void hook_chunks_free(struct hook_chunk *c)
{
	while (c) {
		struct hook_chunk *next = c->next;

		free(c);
		c = next;
	}
}

uint64_t hooks_take(struct hooks *h, struct hook_chunk **used,
	void (*fresh)(void *ctx, struct hook_source *source), void *ctx)
{
	VEC(struct hook_source *) new_ones = {0};
	struct hook_chunk *rest;
	uint64_t count, ticks;

	if (read(h->event_fd, &count, sizeof(count)) < 0)
		count = 0; /* nothing was announced; take what there is all the same */
	pthread_mutex_lock(&h->lock);
	for (size_t i = 0; i < h->dirty.n; i++) {
		struct hook_source *s = h->dirty.v[i];

		append_chunks(s);
		s->is_listed = false;
		if (s->is_fresh)
			vec_push(&new_ones, s);
		s->is_fresh = false;
	}
	h->dirty.n = 0;
	h->n_queued = 0;
	ticks = h->drained_ticks;
	rest = give_back(h, *used);
	pthread_cond_broadcast(&h->changed);
	pthread_mutex_unlock(&h->lock);
	*used = NULL;
	hook_chunks_free(rest);
	for (size_t i = 0; i < new_ones.n; i++)
		fresh(ctx, new_ones.v[i]);
	vec_release(&new_ones);
	return ticks;
}

/* It is still known to the drain thread unless that has ended it: then that thread must be halted.
 */
void hook_source_free(struct hooks *h, struct hook_source *s)
{
	struct hook_process *p = s->process;

	hook_chunks_free(s->mine);
	hook_chunks_free(s->first);
	pthread_mutex_lock(&h->lock);
	for (size_t i = 0; s->is_listed && i < h->dirty.n; i++)
		if (h->dirty.v[i] == s)
			h->dirty.v[i--] = h->dirty.v[--h->dirty.n];
	if (p->rings && p->rings[s->thread_i].source == s)
		p->rings[s->thread_i].source = NULL;
	hooks_unref_process(p);
	pthread_mutex_unlock(&h->lock);
	free(s);
}

/* --- opening and closing ----------------------------------------------------------------- */

/* Beside the program, or where `make install` puts it. */
static int find_library(struct hooks *h, struct err *err)
{
	char exe[4096];
	static const char *const places[] = {"", "/../lib/weir"};
	char *slash;

	if (h->options.library_folder) {
		h->library_folder = mem_strdup(h->options.library_folder);
		return 0;
	}
	proc_exe(0, exe, sizeof(exe));
	slash = strrchr(exe, '/');
	if (slash)
		*slash = 0;
	for (size_t i = 0; !h->library_folder && i < sizeof(places) / sizeof(places[0]); i++) {
		char *folder = mem_printf("%s%s", exe, places[i]);
		char *path = mem_printf("%s/%s", folder, LIBRARY_64);

		if (access(path, R_OK) == 0)
			h->library_folder = realpath(folder, NULL);
		free(path);
		free(folder);
	}
	if (h->library_folder)
		return 0;
	return err_set(err, ERR_NOT_FOUND,
		"'%s/%s': the library that hooks functions is not there (make builds it)", exe,
		LIBRARY_64);
}

/* One page, in which children count that cannot speak to us. */
static int open_family(struct hooks *h, struct err *err)
{
	h->family = hook_memory_open(HOOK_FAMILY_BYTES, &h->family_fd);
	if (!h->family)
		return err_sys(err, errno, "cannot make a page of shared memory");
	h->family->magic = HOOK_ABI_MAGIC;
	return 0;
}

/* ld.so splits LD_PRELOAD there. */
static bool has_separator(const char *folder)
{
	return strpbrk(folder, " :\t\n") != NULL;
}

/* The library in a folder whose name has a separator is reached through a link `lib` in a folder of ours,
 * which every user can enter. Negative when it cannot be made. */
static int link_library(struct temporary_folder *own, const char *folder)
{
	const char *place = temporary_place();
	char *to = mem_printf("%s/lib", folder), *link = NULL;
	int rc = temporary_folder_make(own, has_separator(place) ? "/tmp" : place, "weir-link-");

	if (rc == 0) {
		link = mem_printf("%s/lib", own->path);
		if (chmod(own->path, 0755) < 0 || symlink(to, link) < 0) {
			temporary_folder_remove(own);
			rc = -1;
		}
	}
	free(link);
	free(to);
	return rc;
}

/* ld.so puts lib/... of the program's kind for $LIB. */
static void make_environment(struct hooks *h)
{
	const char *old = getenv("LD_PRELOAD"), *asan = getenv("ASAN_OPTIONS");
	const char *folder = h->library_folder;

	if (has_separator(folder) && link_library(&h->library_link, folder) == 0)
		folder = h->library_link.path;
	h->environment[0] = mem_printf("LD_PRELOAD=%s/$LIB/" LIBRARY_NAME "%s%s", folder,
		old && *old ? ":" : "", old ? old : "");
	h->environment[1] = mem_printf(HOOK_ENV "=%s", h->listener.place);
	/* The address sanitizer's library refuses to start a program in which it is not the first,
	 * since others might have replaced malloc: ours replaces nothing. */
	h->environment[2] = mem_printf("ASAN_OPTIONS=%s%sverify_asan_link_order=0",
		asan ? asan : "", asan && *asan ? ":" : "");
	h->environment[3] = mem_printf(HOOK_ENV_FILTERS "=%u", inject_n_filters(getpid()));
	h->libraries[0] = mem_printf("%s/%s", h->library_folder, LIBRARY_32);
	h->libraries[1] = mem_printf("%s/%s", h->library_folder, LIBRARY_64);
}

static int make_wishes(struct hooks *h, struct err *err)
{
	const struct hooks_options *o = &h->options;
	int rc = 0;

	h->planner = hook_planner_new();
	if (o->events)
		rc = wishes_add(&h->planner->wishes, o->events, HOOK_ACTION_CALL, err);
	if (rc == 0 && o->stack_at)
		rc = wishes_add(&h->planner->wishes, o->stack_at, HOOK_ACTION_STACK, err);
	h->planner->wants_allocations = o->allocations;
	h->planner->wants_bytecodes = o->bytecodes;
	h->planner->wants_heap_bytes = o->heap_bytes;
	h->planner->ignores_own_calls = o->tree;
	return rc;
}

static int start_threads(struct hooks *h, struct err *err)
{
	sigset_t all, old;
	int rc;

	map_guard_fill_mask(&all); /* signals are the main thread's */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&h->server_thread, NULL, hook_server_main, h);
	h->server_runs = rc == 0;
	if (rc == 0) {
		rc = pthread_create(&h->drain_thread, NULL, hook_drain_main, h);
		h->drain_runs = rc == 0;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return rc ? err_sys(err, rc, "cannot start a thread for function events") : 0;
}

/* A program that has room for the library, and then none for its own libraries, would not start. */
static int check_limit(const struct hooks_options *options, struct err *err)
{
	struct rlimit limit;

	if (options->is_attach || getrlimit(RLIMIT_AS, &limit) < 0 ||
		limit.rlim_cur >= PROGRAM_BYTES_MIN)
		return 0;
	return err_set(err, ERR_FAILED,
		"hooked functions take up to %u MiB of a program's address space, of which it may have %lu "
		"(ulimit -v)",
		LIBRARY_BYTES >> 20, (uint64_t)limit.rlim_cur >> 20);
}

int hooks_open(struct hooks **out, const struct hooks_options *options, struct err *err)
{
	struct hooks *h = mem_zalloc(sizeof(*h));
	pthread_condattr_t attr;
	int rc;

	h->options = *options;
	h->listener.path_fd = h->family_fd = -1;
	h->began_ns = clock_mono_ns();
	h->stop_ticks = UINT64_MAX;
	if (options->budget_percent > 0)
		h->trap_ns = budget_measure_trap();
	pthread_mutex_init(&h->lock, NULL);
	pthread_mutex_init(&h->planner_lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&h->changed, &attr);
	pthread_condattr_destroy(&attr);
	h->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	h->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = h->event_fd < 0 || h->wake_fd < 0 ? err_sys(err, errno, "cannot make an eventfd") : 0;
	if (rc == 0)
		rc = check_limit(options, err);
	if (rc == 0)
		rc = make_wishes(h, err);
	if (rc == 0)
		rc = find_library(h, err);
	if (rc == 0)
		rc = open_family(h, err);
	if (rc == 0)
		rc = listener_open(&h->listener, err);
	if (rc == 0) {
		make_environment(h);
		rc = start_threads(h, err);
	}
	if (rc < 0) {
		hooks_close(h);
		return rc;
	}
	*out = h;
	return 0;
}

void hooks_halt(struct hooks *h)
{
	atomic_store(&h->stop, true);
	hook_server_wake(h);
	if (h->server_runs)
		pthread_join(h->server_thread, NULL);
	if (h->drain_runs)
		pthread_join(h->drain_thread, NULL);
	h->server_runs = h->drain_runs = false;
}

/* Programs that still have an area write no more into it. */
static void turn_off(struct hooks *h)
{
	HOLD(&h->lock);
	for (size_t i = 0; i < h->processes.n; i++)
		if (!h->processes.v[i]->has_ended)
			__atomic_store_n(
				&h->processes.v[i]->area.control->is_off, 1, __ATOMIC_RELEASE);
}

/* Sources that nobody has taken over. */
static void release_sources(struct hooks *h)
{
	while (h->dirty.n)
		hook_source_free(h, h->dirty.v[0]);
	for (size_t i = 0; i < h->processes.n; i++) {
		struct hook_process *p = h->processes.v[i];

		for (uint32_t k = 0; p->rings && k < p->area.n_threads; k++)
			if (p->rings[k].source)
				hook_source_free(h, p->rings[k].source);
	}
}

void hooks_close(struct hooks *h)
{
	if (!h)
		return;
	hooks_halt(h);
	turn_off(h);
	release_sources(h);
	for (size_t i = 0; i < h->processes.n; i++)
		hooks_unref_process(h->processes.v[i]);
	temporary_folder_remove(&h->library_link);
	listener_close(&h->listener);
	if (h->family)
		munmap(h->family, HOOK_FAMILY_BYTES);
	fd_cleanup(&h->family_fd);
	hook_planner_free(h->planner);
	hook_chunks_free(h->free_chunks);
	vec_release(&h->processes);
	vec_release(&h->drained);
	vec_release(&h->dirty);
	vec_release(&h->off);
	vec_release(&h->outcomes);
	vec_release(&h->heard);
	fd_cleanup(&h->event_fd);
	fd_cleanup(&h->wake_fd);
	pthread_mutex_destroy(&h->lock);
	pthread_mutex_destroy(&h->planner_lock);
	pthread_cond_destroy(&h->changed);
	for (size_t i = 0; i < sizeof(h->environment) / sizeof(h->environment[0]); i++)
		free(h->environment[i]);
	free(h->unread_program);
	free(h->library_folder);
	free(h->libraries[0]);
	free(h->libraries[1]);
	free(h);
}

uint32_t hooks_n_functions(struct hooks *h)
{
	HOLD(&h->planner_lock);
	return h->planner->n_ids;
}

const struct planned_function *hooks_planned(
	struct hooks *h, uint32_t id, const struct planned_image **image)
{
	HOLD(&h->planner_lock);
	return hook_planner_function(h->planner, id, image);
}

/* --- questions --------------------------------------------------------------------------- */

char *const *hooks_environment(const struct hooks *h)
{
	return h->environment;
}

int hooks_reach(struct hooks *h, pid_t pid, struct err *err)
{
	int rc = listener_reach(&h->listener, pid, err);

	hook_server_wake(h);
	return rc;
}

void hooks_each_unmatched(
	struct hooks *h, void (*each)(void *ctx, const char *wish, const char *near), void *ctx)
{
	HOLD(&h->planner_lock);
	hook_planner_each_unmatched(h->planner, each, ctx);
}

const char *hooks_unread_program(const struct hooks *h)
{
	return h->unread_program;
}

int hooks_fd(const struct hooks *h)
{
	return h->event_fd;
}

/* The results of the process come by the server's thread, perhaps a moment later. */
static struct hook_layout *settled_layout(struct hooks *h, uint32_t pid)
{
	struct timespec until = clock_in_ns(CLOCK_MONOTONIC, EXCHANGE_NS);
	struct hook_process *p;
	HOLD(&h->lock);

	while ((p = hooks_find_process(h, pid)) && p->n_exchanges)
		if (pthread_cond_timedwait(&h->changed, &h->lock, &until))
			break;
	return p ? hooks_ref_layout(p->layout) : NULL;
}

uint64_t hooks_moved_pc(void *ctx, pid_t pid, uint64_t pc)
{
	struct hooks *h = ctx;
	struct hook_layout *l = settled_layout(h, (uint32_t)pid);

	if (!l)
		return pc;
	pc = hook_layout_moved_pc(l, pc);
	HOLD(&h->lock);
	hooks_unref_layout(l);
	return pc;
}

uint64_t hooks_n_filtered(struct hooks *h)
{
	HOLD(&h->lock);
	return h->n_filtered;
}

const char *hooks_doubt(struct hooks *h)
{
	HOLD(&h->lock);

	return h->n_virtual
		       ? "calls of Java's virtual threads are counted exactly, but their times and callers are "
			 "those of the threads that carried them"
		       : NULL;
}

char *hooks_unrecorded(struct hooks *h)
{
	uint64_t n;
	HOLD(&h->lock);

	n = h->n_threadless + h->n_memoryless;
	if (!n)
		return NULL;
	return mem_printf("%lu thread%s not recorded, because %s: %lu of their calls are missing",
		n, n == 1 ? " was" : "s were",
		h->n_memoryless ? "there was no address space for more"
				: "too many others ran at the same time",
		h->n_missed);
}

bool hooks_has_stopped(struct hooks *h, pid_t pid)
{
	const struct hook_process *p;
	HOLD(&h->lock);

	p = hooks_find_process(h, (uint32_t)pid);
	return p && p->area.control->stop_reason;
}

void hooks_each_process(struct hooks *h, void (*each)(void *ctx, pid_t pid), void *ctx)
{
	VEC(pid_t) pids = {0};

	pthread_mutex_lock(&h->lock);
	for (size_t i = 0; i < h->processes.n; i++) {
		const struct hook_process *p = h->processes.v[i];
		struct pollfd fd = {.fd = p->pid_fd, .events = POLLIN};

		/* The descriptor is readable once it is a zombie. */
		if (!p->has_ended && !p->is_superseded && poll(&fd, 1, 0) == 0)
			vec_push(&pids, (pid_t)p->pid);
	}
	pthread_mutex_unlock(&h->lock);
	for (size_t i = 0; i < pids.n; i++)
		each(ctx, pids.v[i]);
	vec_release(&pids);
}

/* --- the end ----------------------------------------------------------------------------- */

void hooks_stop(struct hooks *h)
{
	h->stop_ticks = tick_clock_read();
	atomic_store(&h->is_off, true);
	/* Later ones have nothing to say. */
	for (size_t i = 0; i < sizeof(h->lost.n_unheard) / sizeof(h->lost.n_unheard[0]); i++)
		h->lost.n_unheard[i] = __atomic_load_n(&h->family->n_unheard[i], __ATOMIC_RELAXED);
}

/* Two whole rounds after this moment: what was written before it is in the queues. */
void hooks_drain_rest(struct hooks *h)
{
	unsigned began = atomic_load(&h->rounds_done);
	uint64_t began_ns = clock_mono_ns();

	turn_off(h);
	while (h->drain_runs && atomic_load(&h->rounds_done) - began < 2 &&
		clock_mono_ns() - began_ns < REST_NS)
		nanosleep(&(struct timespec){0, 1000000}, NULL);
	hooks_halt(h);
	hook_drain_round(h, true);
	for (size_t i = 0; i < h->processes.n; i++) /* the threads have ended */
		if (!h->processes.v[i]->has_ended)
			hooks_take_counts(h, h->processes.v[i]);
}
