/* SPDX-License-Identifier: MIT */
/*
 * Takes the library out of a process when the tracing has ended. Threads leave by themselves at
 * their next trap (src/rt/steps/step_thread.c). Those that wait in a system call are moved here,
 * while all threads stand: the call, which the kernel will make again, is made again where the
 * program has it, and not in our stub. Then nothing refers to the range any more.
 *
 * A thread is only moved when it is certain where it stands: in its stub, or in the call in which
 * it was attached to, with the trap flag set. A handler of the program that the kernel has entered
 * on top of that runs with the trap flag clear, and its frame needs us: then all is left as it is.
 */
#include <errno.h>
#include <linux/kcmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "record/proc.h"
#include "steps/engine/inside_engine.h"

#define STOP_NS		 200000000u
#define OLD_NS		 1500000000u /* for threads of an earlier recording to leave */
#define OLD_NAP_NS	 20000000
#define FLAG_TRAP	 0x100u
#define TRAP_BIT	 (1ull << (SIGTRAP - 1))
#define N_SIGNALS	 64
#define SYSCALL_BYTES	 2
#define STATUS_BYTES_MAX (1u << 16)
#define MEMFD_PATH	 "/memfd:" STEPS_MEMFD_NAME

#ifndef PTRACE_GETSIGMASK
#define PTRACE_GETSIGMASK 0x420a
#define PTRACE_SETSIGMASK 0x420b
#endif

struct taking {
	const struct inside_range *range;
	pid_t but; /* this thread stays; 0 = none does */
	struct remote_threads threads;
	struct remote_stub stub;
	struct steps_config config;
};

/* Where a thread is, as far as the library is concerned. */
struct place {
	bool is_out;   /* nothing is to be done */
	bool is_ready; /* it can be moved */
	uint64_t state;
	struct steps_state_head head;
};

static int not_yet(const struct taking *k, struct err *err)
{
	return err_set(err, ERR_UNSUPPORTED,
		"process %d: a thread still needs the library of a recording that has ended: try again later",
		k->range->pid);
}

static bool is_in(const struct taking *k, uint64_t addr)
{
	return addr - k->range->base < k->range->bytes;
}

/* The value of a line of a thread's status, by `base`; all bits set when it is not known. */
static uint64_t status_value(struct buf *status, const char *name, int base)
{
	const char *at = status->n ? strstr(buf_text(status), name) : NULL;

	return at ? strtoull(at + strlen(name), NULL, base) : ~0ull;
}

/* A trap that has happened, or the signal by which the thread begins, has yet to be delivered; or
 * a seccomp filter looks at its calls. */
static bool is_untouchable(const struct remote_thread *t)
{
	char path[64];
	struct buf status = {0};
	bool is;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", t->pid, t->tid);
	file_read(&status, path, STATUS_BYTES_MAX, NULL);
	is = status_value(&status, "\nSigPnd:\t", 16) & TRAP_BIT ||
	     status_value(&status, "\nSeccomp:\t", 10);
	buf_release(&status);
	return is;
}

/* False when the state cannot be read, or is lent to another. */
static bool find_state(const struct taking *k, const struct remote_thread *t, struct place *place)
{
	for (uint32_t i = 0; i < STEPS_N_STATES; i++) {
		if (k->config.owners[i] != (uint32_t)t->tid)
			continue;
		place->state = k->range->base + STEPS_STATES_AT + (uint64_t)i * STEPS_STATE_BYTES;
		if (!remote_read(t, place->state, &place->head, sizeof(place->head)))
			return false;
		if (place->head.is_out)
			continue;
		return place->head.tid == (uint32_t)t->tid;
	}
	place->state = 0;
	return true;
}

static void look_at(const struct taking *k, const struct remote_thread *t, struct place *place)
{
	const struct steps_state_head *h = &place->head;
	uint64_t pc = remote_thread_pc(t);

	memset(place, 0, sizeof(*place));
	if (is_untouchable(t) || !find_state(k, t, place))
		return;
	if (!place->state) {
		place->is_out = !is_in(k, pc) && !is_in(k, remote_thread_sp(t));
		return;
	}
	if (!remote_thread_is_restarting(t) || !(t->regs.r64.eflags & FLAG_TRAP) ||
		h->has_own_trap || h->is_trap_pending)
		return;
	place->is_ready = h->is_begun
				  ? h->call_at && pc == h->call_at + SYSCALL_BYTES && !h->is_cloning
				  : !is_in(k, pc);
}

/* First its registers: whatever happens to us then, it does not trap any more. */
static int move_thread(
	struct taking *k, struct remote_thread *t, const struct place *place, struct err *err)
{
	const struct steps_state_head *h = &place->head;
	struct user_regs_struct *r = &t->regs.r64;
	stack_t stack = {.ss_sp = (void *)(uintptr_t)h->alt_sp,
		.ss_size = h->alt_bytes,
		.ss_flags = h->alt_bytes ? (int)h->alt_flags : SS_DISABLE};
	uint64_t scratch = place->state + STEPS_STATE_BYTES / 4, mask;
	uint32_t is_out = 1;
	int rc;

	r->eflags &= ~(unsigned long long)FLAG_TRAP;
	if (h->is_begun) {
		r->rip = h->call_ret;
		r->r11 &= ~(unsigned long long)FLAG_TRAP;
		if (r->rcx == h->call_at + SYSCALL_BYTES)
			r->rcx = h->call_ret;
	}
	rc = remote_thread_set_regs(t, err);
	if (rc < 0)
		return rc;
	if (!remote_write(t, place->state + offsetof(struct steps_state_head, is_out), &is_out,
		    sizeof(is_out)) ||
		!remote_write(t, scratch, &stack, sizeof(stack)))
		return err_sys(err, errno, "process %d: writing its memory", t->pid);
	rc = inside_call(t, &k->stub,
		&(const struct inside_call){SYS_sigaltstack, "sigaltstack", {scratch}}, NULL, err);
	if (rc == 0 && h->is_trap_blocked &&
		ptrace(PTRACE_GETSIGMASK, t->tid, sizeof(mask), &mask) == 0) {
		mask |= TRAP_BIT;
		ptrace(PTRACE_SETSIGMASK, t->tid, sizeof(mask), &mask);
	}
	return rc;
}

/* --- what the process has ------------------------------------------------------------------ */

static bool is_fault(int number)
{
	return number == SIGILL || number == SIGBUS || number == SIGFPE || number == SIGSEGV ||
	       number == SIGSYS;
}

static int put_action(
	struct taking *k, struct remote_thread *t, int number, uint64_t at, struct err *err)
{
	return inside_call(t, &k->stub,
		&(const struct inside_call){
			SYS_rt_sigaction, "rt_sigaction", {(uint64_t)number, at, 0, 8}},
		NULL, err);
}

static int restore_trap(struct taking *k, struct remote_thread *t, struct err *err)
{
	uint64_t own = k->config.actions_at
			       ? k->config.actions_at + SIGTRAP * sizeof(struct steps_action)
			       : k->range->base + STEPS_PRIVATE_AT +
					 offsetof(struct steps_config, trap_action);
	uint64_t scratch = k->range->base + STEPS_STATES_AT - 4096;
	struct steps_action now;
	int rc = inside_call(t, &k->stub,
		&(const struct inside_call){
			SYS_rt_sigaction, "rt_sigaction", {SIGTRAP, 0, scratch, 8}},
		NULL, err);

	if (rc < 0)
		return rc;
	if (!remote_read(t, scratch, &now, sizeof(now)))
		return err_sys(err, errno, "process %d: reading its memory", t->pid);
	return is_in(k, now.handler) ? put_action(k, t, SIGTRAP, own, err) : 0;
}

/* Those that the first thread to leave would have put back, and that of SIGTRAP. */
static int restore_actions(struct taking *k, struct remote_thread *t, struct err *err)
{
	struct steps_action own[N_SIGNALS + 1];
	int rc = 0;

	if (k->config.actions_at && !k->config.is_restored) {
		if (!remote_read(t, k->config.actions_at, own, sizeof(own)))
			return err_sys(err, errno, "process %d: reading its memory", t->pid);
		for (int i = 1; i <= N_SIGNALS && rc == 0; i++)
			if (i != SIGTRAP &&
				(own[i].handler > 1 || (is_fault(i) && !own[i].handler)))
				rc = put_action(k, t, i,
					k->config.actions_at + (uint64_t)i * sizeof(own[0]), err);
	}
	return rc == 0 ? restore_trap(k, t, err) : rc;
}

/* --- all of it ----------------------------------------------------------------------------- */

/* A child of vfork, or the like, whose memory is another's. A copy that fork made is its own. */
static bool is_borrowed(const struct taking *k)
{
	pid_t owner = (pid_t)k->config.pid;

	if (owner == k->range->pid)
		return false;
	errno = 0;
	return syscall(SYS_kcmp, owner, k->range->pid, KCMP_VM, 0, 0) <= 0 && errno != ESRCH;
}

static bool read_config(struct taking *k)
{
	if (pread(k->range->memory_fd, &k->config, sizeof(k->config),
		    (off_t)(k->range->base + STEPS_PRIVATE_AT)) != (ssize_t)sizeof(k->config) ||
		k->config.magic != STEPS_ABI_MAGIC || k->config.version != STEPS_ABI_VERSION ||
		k->config.is_shared || k->config.n_passing)
		return false;
	if (k->config.pid != (uint32_t)k->range->pid)
		return !is_borrowed(k);
	for (uint32_t i = 0; i < STEPS_N_STATES; i++)
		if (k->config.owners[i] == STEPS_OWNER_UNKNOWN)
			return false;
	return true;
}

static int move_all(struct taking *k, struct err *err)
{
	struct remote_threads *all = &k->threads;
	struct place *places = mem_calloc(all->all.n + 1, sizeof(*places));
	bool is_ready = true;
	int rc = 0;

	for (size_t i = 0; i < all->all.n && is_ready; i++) {
		if (all->all.v[i].is_gone || all->all.v[i].tid == k->but)
			continue;
		look_at(k, &all->all.v[i], &places[i]);
		is_ready = places[i].is_out || places[i].is_ready;
	}
	if (!is_ready)
		rc = not_yet(k, err);
	for (size_t i = 0; i < all->all.n && rc == 0; i++)
		if (places[i].is_ready)
			rc = move_thread(k, &all->all.v[i], &places[i], err);
	free(places);
	return rc;
}

static int take_out(struct taking *k, struct err *err)
{
	struct remote_thread *first = NULL;
	int rc = remote_threads_stop(&k->threads, clock_mono_ns() + STOP_NS, err);

	for (size_t i = 0; i < k->threads.all.n && !first; i++)
		if (!k->threads.all.v[i].is_gone)
			first = &k->threads.all.v[i];
	if (rc == 0 && (!first || !read_config(k)))
		rc = not_yet(k, err);
	if (rc == 0)
		rc = inside_find_syscall(first, &k->stub, err);
	if (rc == 0)
		rc = move_all(k, err);
	if (k->but || rc < 0)
		return rc;
	rc = restore_actions(k, first, err);
	if (rc == 0)
		rc = inside_call(first, &k->stub,
			&(const struct inside_call){
				SYS_munmap, "munmap", {k->range->base, k->range->bytes}},
			NULL, err);
	return rc;
}

int inside_take_out_others(const struct inside_range *range, pid_t but, struct err *err)
{
	struct taking *k = mem_zalloc(sizeof(*k));
	int rc;

	k->range = range;
	k->but = but;
	k->threads = (struct remote_threads){
		.pid = range->pid, .memory_fd = range->memory_fd, .is_64 = true};
	rc = take_out(k, err);
	remote_threads_let_go(&k->threads);
	free(k);
	return rc;
}

int inside_take_out(const struct inside_range *range, struct err *err)
{
	return inside_take_out_others(range, 0, err);
}

/* --- an earlier recording ------------------------------------------------------------------ */

static void look_for_range(void *ctx, const struct proc_mapping *m)
{
	struct inside_range *range = ctx;

	if (strncmp(m->path, MEMFD_PATH, strlen(MEMFD_PATH)))
		return;
	if (!range->base)
		range->base = m->start;
	range->bytes = m->end - range->base;
}

/* A recorder that lives traces it. */
static int turn_off(const struct inside_range *range, struct err *err)
{
	struct steps_area area;
	uint32_t is_off = 2;
	uint64_t at = range->base + STEPS_AREA_AT;

	if (pread(range->memory_fd, &area, sizeof(area), (off_t)at) != (ssize_t)sizeof(area) ||
		area.magic != STEPS_ABI_MAGIC || area.version != STEPS_ABI_VERSION)
		return err_set(err, ERR_UNSUPPORTED,
			"process %d has the library of another version's recording", range->pid);
	if (!area.is_off && kill((pid_t)area.recorder_pid, 0) == 0)
		return err_set(err, ERR_UNSUPPORTED, "process %d is being traced by process %u",
			range->pid, area.recorder_pid);
	at += offsetof(struct steps_area, is_off);
	if (pwrite(range->memory_fd, &is_off, sizeof(is_off), (off_t)at) != (ssize_t)sizeof(is_off))
		return err_sys(err, errno, "process %d: writing its memory", range->pid);
	return 0;
}

int inside_take_out_old(pid_t pid, int memory_fd, struct err *err)
{
	struct inside_range range = {.pid = pid, .memory_fd = memory_fd};
	uint64_t until = clock_mono_ns() + OLD_NS;
	int rc;

	proc_each_mapping(pid, look_for_range, &range, NULL);
	if (!range.base)
		return 0;
	rc = turn_off(&range, err);
	if (rc < 0)
		return rc;
	while ((rc = inside_take_out(&range, err)) < 0 && clock_mono_ns() < until)
		nanosleep(&(struct timespec){0, OLD_NAP_NS}, NULL);
	return rc;
}
