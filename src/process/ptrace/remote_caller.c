/* SPDX-License-Identifier: MIT */
/*
 * A thread of another process on which functions are called: found at a moment when that is safe,
 * stopped alone or with all others, given a stub to return to and, where its own is not surely large
 * enough, a stack. Nothing is seized longer than it is needed: a thread that is looked at for a safe
 * moment and is not at one is let go again.
 */
#include "process/ptrace/inject_internal.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "process/proc.h"

#define SECOND_NS	   1000000000u
#define CALL_NS		   (10 * (uint64_t)SECOND_NS)
#define OWN_STACK_NS	   (SECOND_NS / 5) /* of REMOTE_MOMENT_NS, for one with a stack of its own */
#define STOP_ONE_NS	   (SECOND_NS / 10)
#define STOP_ALL_NS	   (5 * (uint64_t)SECOND_NS)
#define NAP_MIN_NS	   1000000
#define NAP_MAX_NS	   5000000
#define REMOTE_STACK_BYTES (256u << 10)

#define MMAP2_32  192
#define MUNMAP_32 91

/* The descriptor is that of the program it was opened for: when exec or its end have taken the memory, there is
 * nothing to read at any address, which is not the same as an address that is not mapped. */
static bool program_is_gone(const struct remote_caller *c)
{
	char byte;

	return pread(c->memory_fd, &byte, 1, 0) == 0;
}

static int gone(const struct remote_caller *c)
{
	return err_set(c->err, ERR_CHANGED, "process %d became another program or ended meanwhile",
		c->pid);
}

struct gap_search {
	const struct remote_thread *t;
	bool is_readable;
};

static bool stub_fits(void *ctx, uint64_t addr)
{
	struct gap_search *search = ctx;
	char byte;

	search->is_readable |= remote_read(search->t, addr, &byte, 1);
	return remote_stub_fits(search->t, addr);
}

static int plant_stub(struct remote_caller *c)
{
	struct gap_search search = {.t = c->thread};
	uint64_t gap;

	if (c->stub.addr)
		return 0;
	gap = remote_symbols_find_gap(c->symbols, REMOTE_STUB_BYTES, stub_fits, &search);
	if (!gap && !search.is_readable)
		return gone(c);
	if (!gap)
		return err_set(c->err, ERR_FAILED,
			"process %d: no %d unused bytes behind the code of any image", c->pid,
			REMOTE_STUB_BYTES);
	return remote_stub_plant(c->thread, &c->stub, gap, c->err);
}

int remote_caller_map_stack(struct remote_caller *c)
{
	bool is_64 = c->thread->is_64;
	const uint64_t args[6] = {0, REMOTE_STACK_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, (uint64_t)-1, 0};
	int64_t addr;
	int rc = remote_syscall(
		c->thread, &c->stub, is_64 ? SYS_mmap : MMAP2_32, args, &addr, c->err);

	if (rc < 0)
		return rc;
	if (addr < 0 && addr >= -4095)
		return err_sys(c->err, (int)-addr, "process %d: mmap", c->pid);
	c->stack_addr = is_64 ? (uint64_t)addr : (uint32_t)addr;
	c->stack = c->stack_addr + REMOTE_STACK_BYTES;
	return 0;
}

static void unmap_stack(struct remote_caller *c)
{
	const uint64_t args[6] = {c->stack_addr, REMOTE_STACK_BYTES};
	int64_t result;

	if (c->stack_addr && c->thread && c->thread->is_stopped)
		remote_syscall(c->thread, &c->stub, c->thread->is_64 ? SYS_munmap : MUNMAP_32,
			args, &result, NULL);
	c->stack = c->stack_addr = 0;
}

void remote_caller_let_go(struct remote_caller *c)
{
	unmap_stack(c);
	for (size_t i = 0; i < c->threads.all.n; i++)
		remote_stub_remove(&c->threads.all.v[i], &c->stub);
	remote_threads_let_go(&c->threads);
	c->thread = NULL;
	c->stub = (struct remote_stub){0};
}

struct tid_list {
	VEC(pid_t) tids;
};

static void list_tid(void *ctx, pid_t tid)
{
	struct tid_list *list = ctx;

	vec_push(&list->tids, tid);
}

/* Stops the thread and looks where it stands. 0 and c->thread set, with `moments` also c->stack;
 * or 1 with the reason in *why: another time, or another thread; or a failure. */
static int try_thread(struct remote_caller *c, pid_t tid, struct moments *moments, bool any_stack,
	const char **why)
{
	struct remote_thread t = {
		.pid = c->pid, .tid = tid, .memory_fd = c->memory_fd, .is_64 = c->symbols->is_64};
	const char *stack = NULL;
	int rc;

	*why = "could not be stopped";
	if (inject_thread_state(c->pid, tid) == 'D')
		return 1;
	rc = remote_thread_seize(&t, c->err);
	if (rc < 0 && inject_is_traced(c->pid)) {
		*why = "was traced by another process";
		return 1;
	}
	if (rc < 0)
		return rc == ERR_NOT_FOUND ? 1 : rc;
	if (remote_thread_stop(&t, clock_mono_ns() + STOP_ONE_NS, NULL) == 0) {
		*why = moments			      ? moment_hinders_dlopen(moments, &t)
		       : remote_thread_is_in_rseq(&t) ? "was in a restartable sequence"
						      : NULL;
		if (!*why && moments)
			stack = moment_hinders_own_stack(moments, &t);
		if (stack && !any_stack)
			*why = stack;
		if (!*why) {
			c->thread = remote_threads_add(&c->threads, tid);
			*c->thread = t;
			rc = plant_stub(c);
			return rc == 0 && stack ? remote_caller_map_stack(c) : rc;
		}
	}
	remote_thread_let_go(&t);
	return 1;
}

int remote_caller_stop(struct remote_caller *c, struct moments *moments)
{
	uint64_t start = clock_mono_ns(), nap = NAP_MIN_NS;
	const char *why = "ended";
	pid_t last = 0;

	while (clock_mono_ns() - start < REMOTE_MOMENT_NS) {
		struct tid_list list = {0};
		int rc = 1;

		if (!proc_each_task(c->pid, list_tid, &list))
			return err_set(c->err, ERR_NOT_FOUND, "process %d has ended", c->pid);
		if (program_is_gone(c)) {
			vec_release(&list.tids);
			return gone(c);
		}
		for (size_t i = 0; rc == 1 && i < list.tids.n; i++) {
			last = list.tids.v[i];
			rc = try_thread(
				c, last, moments, clock_mono_ns() - start > OWN_STACK_NS, &why);
		}
		vec_release(&list.tids);
		if (rc <= 0)
			return rc;
		nanosleep(&(struct timespec){0, (long)nap}, NULL);
		nap = nap * 2 > NAP_MAX_NS ? NAP_MIN_NS : nap * 2;
	}
	return err_set(c->err, ERR_FAILED,
		"process %d: in %u s no thread was found at a moment when a function can be called on it; thread %d %s",
		c->pid, (unsigned)(REMOTE_MOMENT_NS / SECOND_NS), last, why);
}

int remote_caller_call(
	struct remote_caller *c, struct remote_call call, uint64_t *result, struct err *err)
{
	call.stack = c->stack;
	call.timeout_ns = CALL_NS;
	return remote_call(c->thread, &c->stub, &call, result, err);
}

static int stop_once(struct remote_caller *c)
{
	int rc = remote_caller_stop(c, NULL);

	if (rc == 0) {
		pid_t tid = c->thread->tid;

		rc = remote_threads_stop(&c->threads, clock_mono_ns() + STOP_ALL_NS, c->err);
		c->thread = remote_threads_add(&c->threads, tid); /* the array may have moved */
	}
	if (rc == 0 && !c->thread->is_stopped)
		rc = remote_thread_gone(c->thread, c->err);
	return rc;
}

/* The thread that was chosen may end before the others stand: then another one. */
int remote_caller_stop_all(struct remote_caller *c)
{
	uint64_t start = clock_mono_ns();
	int rc = stop_once(c);

	while (rc == ERR_NOT_FOUND && clock_mono_ns() - start < STOP_ALL_NS &&
		inject_check_process(c->pid, NULL) == 0) {
		remote_caller_let_go(c);
		rc = stop_once(c);
	}
	return rc;
}
