/* SPDX-License-Identifier: MIT */
/*
 * Puts the stepping library into a program whose threads stand: by system calls that the first of
 * them makes for us, through the `syscall` instruction of its vdso, so that not one byte of the
 * program's memory is changed. The program makes the memfd that both share, and the recorder opens
 * it through /proc: this needs no right of the program's, and works in any mount namespace.
 *
 * The range lies far from where the kernel puts mappings by itself, so that the program's own come
 * to lie where they would have been.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "steps/engine/inside_engine.h"

#define VDSO_BYTES	 0x4000u
#define STUB_SYSCALL	 8 /* where remote_syscall expects the instruction in its stub */
#define RANGE_FIRST	 0x430000000000ull
#define RANGE_STRIDE	 0x100000000ull
#define RANGE_TRIES	 64
#define N_SLOTS		 256u
#define RING_DEFAULT	 (256u << 10)
#define RING_BYTES_MIN	 4096u
#define RING_BYTES_MAX	 (64u << 20)
#define FLAG_TRAP	 0x100u
#define TRAP_BIT	 (1ull << (SIGTRAP - 1))
#define KERNEL_RESTORER	 0x04000000ull
#define AT_SYSINFO_VALUE 33 /* AT_SYSINFO_EHDR */
#define POPULATE_WRITE	 23 /* MADV_POPULATE_WRITE, Linux 5.14; without it the first traps fault */
#define SCRATCH_AT	 (STEPS_PRIVATE_BYTES - 4096u) /* for arguments of calls */
#define BELOW_STACK	 1024u
#define AUTODISARM	 ((int)(1u << 31)) /* SS_AUTODISARM */

#ifndef MFD_EXEC
#define MFD_EXEC 0x10u
#endif
#ifndef PTRACE_GETSIGMASK
#define PTRACE_GETSIGMASK 0x420a
#define PTRACE_SETSIGMASK 0x420b
#endif

struct injection {
	struct inside_engine *e;
	struct remote_threads *threads;
	struct remote_thread *first; /* who makes the calls */
	struct remote_stub stub;
	uint64_t base;
	int64_t program_fd; /* of the memfd in the program; -1 = none */
	int fd;		    /* ours */
	struct inside_area *area;
	uint32_t n_prepared;	      /* threads whose signal stack is ours */
	bool has_trap;		      /* the action of SIGTRAP is ours: */
	struct steps_action own_trap; /* the program's */
};

int inside_call(struct remote_thread *t, const struct remote_stub *stub,
	const struct inside_call *call, int64_t *result, struct err *err)
{
	int64_t value;
	int rc = remote_syscall(t, stub, call->number, call->args, &value, err);

	if (rc < 0)
		return rc;
	if (value < 0 && value >= -4095)
		return err_sys(err, (int)-value, "process %d: %s", t->pid, call->name);
	if (result)
		*result = value;
	return 0;
}

#define CALL(in, n, what, result, err, ...)                                                        \
	inside_call((in)->first, &(in)->stub, &(const struct inside_call){n, what, {__VA_ARGS__}}, \
		result, err)

/* --- the vdso ------------------------------------------------------------------------------ */

static uint64_t find_vdso(pid_t pid)
{
	char path[64];
	struct buf b = {0};
	uint64_t found = 0;

	snprintf(path, sizeof(path), "/proc/%d/auxv", pid);
	if (file_read(&b, path, 1u << 16, NULL) == 0) {
		for (size_t i = 0; i + 16 <= b.n; i += 16) {
			uint64_t pair[2];

			memcpy(pair, b.p + i, sizeof(pair));
			if (pair[0] == AT_SYSINFO_VALUE)
				found = pair[1];
		}
	}
	buf_release(&b);
	return found;
}

int inside_find_syscall(const struct remote_thread *t, struct remote_stub *stub, struct err *err)
{
	uint64_t vdso = find_vdso(t->pid);
	uint8_t *bytes = mem_zalloc(VDSO_BYTES);
	size_t n = 0, i = 0;

	while (vdso && n < VDSO_BYTES && remote_read(t, vdso + n, bytes + n, 4096))
		n += 4096;
	while (i + 1 < n && (bytes[i] != 0x0f || bytes[i + 1] != 0x05))
		i++;
	free(bytes);
	if (i + 1 >= n)
		return err_set(
			err, ERR_UNSUPPORTED, "process %d: its vdso has no system call", t->pid);
	*stub = (struct remote_stub){.addr = vdso + i - STUB_SYSCALL, .stays = true};
	return 0;
}

/* --- the memory ---------------------------------------------------------------------------- */

static uint32_t ring_records(const struct inside_engine *e)
{
	size_t bytes = e->o->buffer_bytes ? e->o->buffer_bytes : RING_DEFAULT;
	uint32_t n = RING_BYTES_MIN / sizeof(struct steps_record);

	if (bytes > RING_BYTES_MAX)
		bytes = RING_BYTES_MAX;
	for (n = 64; (size_t)n * 2 * sizeof(struct steps_record) <= bytes;)
		n *= 2;
	return n;
}

static size_t round_page(size_t n)
{
	return (n + 4095) & ~(size_t)4095;
}

static struct steps_area layout(const struct inside_engine *e, size_t *bytes)
{
	struct steps_area a = {.magic = STEPS_ABI_MAGIC,
		.version = STEPS_ABI_VERSION,
		.n_slots = N_SLOTS,
		.ring_records = ring_records(e),
		.recorder_pid = (uint32_t)getpid()};

	if (e->o->lossy)
		a.flags |= STEPS_FLAG_LOSSY;
	if (e->o->no_follow)
		a.flags |= STEPS_FLAG_NO_FOLLOW;
	a.slots_at = 4096;
	a.rings_at = a.slots_at + round_page(N_SLOTS * sizeof(struct steps_slot));
	a.ring_stride = round_page((size_t)a.ring_records * sizeof(struct steps_record));
	*bytes = (size_t)(a.rings_at + N_SLOTS * a.ring_stride);
	return a;
}

static int take_range(struct injection *in, size_t area_bytes, struct err *err)
{
	uint64_t bytes = STEPS_AREA_AT + area_bytes;
	int rc = -1;
	int64_t base = 0;

	for (unsigned i = 0; i < RANGE_TRIES && rc < 0; i++) {
		rc = CALL(in, SYS_mmap, "taking address space", &base, err,
			RANGE_FIRST + i * RANGE_STRIDE, bytes, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
			(uint64_t)-1, 0);
		if (!in->first->is_stopped)
			return rc;
	}
	if (rc < 0)
		return rc;
	in->base = (uint64_t)base;
	return CALL(in, SYS_mmap, "taking memory", NULL, err, in->base + STEPS_PRIVATE_AT,
		STEPS_AREA_AT - STEPS_PRIVATE_AT, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, (uint64_t)-1, 0);
}

static int write_at(struct injection *in, uint64_t at, const void *from, size_t n, struct err *err)
{
	if (!remote_write(in->first, in->base + at, from, n))
		return err_sys(err, errno, "process %d: writing its memory", in->threads->pid);
	return 0;
}

/* The program makes it, we open it. */
static int make_memfd(struct injection *in, struct err *err)
{
	uint64_t name = in->base + STEPS_PRIVATE_AT + SCRATCH_AT;
	char path[64];
	int rc = write_at(
		in, STEPS_PRIVATE_AT + SCRATCH_AT, STEPS_MEMFD_NAME, sizeof(STEPS_MEMFD_NAME), err);

	if (rc < 0)
		return rc;
	rc = CALL(in, SYS_memfd_create, "memfd_create", &in->program_fd, err, name,
		MFD_CLOEXEC | MFD_EXEC);
	if (rc < 0 && in->first->is_stopped) /* before Linux 6.3 */
		rc = CALL(in, SYS_memfd_create, "memfd_create", &in->program_fd, err, name,
			MFD_CLOEXEC);
	if (rc < 0)
		return rc;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", in->threads->pid, (int)in->program_fd);
	in->fd = open(path, O_RDWR | O_CLOEXEC);
	return in->fd < 0 ? err_sys(err, errno, "'%s'", path) : 0;
}

static int fill_memfd(struct injection *in, const struct steps_area *a, struct err *err)
{
	struct inside_area *area = in->area;
	const struct inside_library *l = &in->e->library;
	void *p;

	if (ftruncate(in->fd, (off_t)(STEPS_IMAGE_BYTES + area->bytes)) < 0 ||
		pwrite(in->fd, l->image, sizeof(l->image), 0) != (ssize_t)sizeof(l->image))
		return err_sys(err, errno, "cannot fill the shared memory");
	p = mmap(NULL, area->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, in->fd, STEPS_IMAGE_BYTES);
	if (p == MAP_FAILED)
		return err_sys(err, errno, "cannot map the shared memory");
	area->shared = p;
	*area->shared = *a;
	area->slots = (struct steps_slot *)((uint8_t *)p + a->slots_at);
	area->is_bound = mem_calloc(a->n_slots, sizeof(bool));
	/* Locked where we may; the rings of threads to come are touched when they are taken. */
	mlock(p, (size_t)(a->rings_at + a->ring_stride));
	return 0;
}

static int map_memfd(struct injection *in, struct err *err)
{
	uint64_t fd = (uint64_t)in->program_fd;
	int rc = CALL(in, SYS_mmap, "mapping the library", NULL, err, in->base, STEPS_IMAGE_BYTES,
		PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0);

	if (rc == 0)
		rc = CALL(in, SYS_mmap, "mapping the shared memory", NULL, err,
			in->base + STEPS_AREA_AT, in->area->bytes, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_FIXED, fd, STEPS_IMAGE_BYTES);
	return rc;
}

/* --- the threads --------------------------------------------------------------------------- */

static int take_trap_signal(struct injection *in, struct steps_config *config, struct err *err)
{
	uint64_t entry = in->base + in->e->library.entry;
	struct steps_action a[2] = {{.handler = entry,
		.flags = SA_SIGINFO | SA_ONSTACK | KERNEL_RESTORER,
		.restorer = entry + STEPS_RESTORER_AT,
		.mask = ~0ull}};
	uint64_t at = STEPS_PRIVATE_AT + SCRATCH_AT;
	int rc = write_at(in, at, a, sizeof(a), err);

	if (rc == 0)
		rc = CALL(in, SYS_rt_sigaction, "rt_sigaction", NULL, err, SIGTRAP, in->base + at,
			in->base + at + sizeof(a[0]), 8);
	if (rc == 0 && !remote_read(in->first, in->base + at + sizeof(a[0]), &config->trap_action,
			       sizeof(config->trap_action)))
		rc = err_sys(err, errno, "process %d: reading its memory", in->threads->pid);
	in->has_trap = rc == 0;
	in->own_trap = config->trap_action;
	memset(a, 0, sizeof(a));
	if (rc == 0)
		rc = write_at(in, at, a, sizeof(a), err);
	return rc;
}

/* The state and the signal stack of one thread. */
static int prepare_thread(
	struct injection *in, struct remote_thread *t, uint32_t index, struct err *err)
{
	struct steps_state_head head = {.tid = (uint32_t)t->tid};
	uint64_t state = STEPS_STATES_AT + (uint64_t)index * STEPS_STATE_BYTES;
	uint64_t scratch = STEPS_PRIVATE_AT + SCRATCH_AT, mask;
	stack_t stacks[2] = {0};
	int rc;

	stacks[0].ss_sp = (void *)(uintptr_t)(in->base + state + STEPS_STATE_BYTES / 4);
	stacks[0].ss_size = STEPS_STATE_BYTES - STEPS_STATE_BYTES / 4;
	stacks[0].ss_flags = AUTODISARM;
	rc = write_at(in, scratch, stacks, sizeof(stacks), err);
	if (rc == 0)
		rc = inside_call(t, &in->stub,
			&(const struct inside_call){SYS_sigaltstack, "sigaltstack",
				{in->base + scratch, in->base + scratch + sizeof(stack_t)}},
			NULL, err);
	if (rc < 0)
		return rc;
	if (!remote_read(t, in->base + scratch + sizeof(stack_t), &stacks[1], sizeof(stacks[1])) ||
		ptrace(PTRACE_GETSIGMASK, t->tid, sizeof(mask), &mask) < 0)
		return err_sys(err, errno, "thread %d: reading its signal stack and mask", t->tid);
	head.alt_sp = (uint64_t)(uintptr_t)stacks[1].ss_sp;
	head.alt_bytes = stacks[1].ss_flags & SS_DISABLE ? 0 : stacks[1].ss_size;
	head.alt_flags = (uint32_t)stacks[1].ss_flags & ~(uint32_t)SS_ONSTACK;
	head.is_trap_blocked = (mask & TRAP_BIT) != 0;
	mask &= ~TRAP_BIT;
	if (head.is_trap_blocked && ptrace(PTRACE_SETSIGMASK, t->tid, sizeof(mask), &mask) < 0)
		return err_sys(err, errno, "thread %d: setting its signal mask", t->tid);
	memset(stacks, 0, sizeof(stacks));
	rc = write_at(in, scratch, stacks, sizeof(stacks), err);
	return rc == 0 ? write_at(in, state, &head, sizeof(head), err) : rc;
}

/* A thread in a system call goes on with it; its first trap is behind it. The others get a signal,
 * in whose handler they begin. */
static int start_thread(struct remote_thread *t, struct err *err)
{
	siginfo_t info = {0};

	if (remote_thread_is_restarting(t)) {
		t->regs.r64.eflags |= FLAG_TRAP;
		return remote_thread_set_regs(t, err);
	}
	info.si_signo = SIGTRAP;
	info.si_code = SI_QUEUE;
	info.si_pid = getpid();
	info.si_value.sival_ptr = (void *)(uintptr_t)STEPS_START_VALUE;
	if (syscall(SYS_rt_tgsigqueueinfo, t->pid, t->tid, SIGTRAP, &info) < 0)
		return err_sys(err, errno, "thread %d: starting it", t->tid);
	return 0;
}

/* The range, with everything in it but what threads need; or nothing. */
static int make_memory(struct injection *in, struct err *err)
{
	struct steps_area a = layout(in->e, &in->area->bytes);
	int rc = inside_find_syscall(in->first, &in->stub, err);

	if (rc == 0)
		rc = take_range(in, in->area->bytes, err);
	if (rc == 0)
		rc = make_memfd(in, err);
	if (rc == 0)
		rc = fill_memfd(in, &a, err);
	if (rc == 0)
		rc = map_memfd(in, err);
	/* What handlers touch first; a fault now is not in the trace. */
	if (rc == 0)
		CALL(in, SYS_madvise, "madvise", NULL, NULL, in->base + STEPS_STATES_AT,
			STEPS_STATE_BYTES, POPULATE_WRITE);
	if (in->program_fd >= 0 && in->first->is_stopped) {
		int closed = CALL(in, SYS_close, "close", NULL, rc < 0 ? NULL : err,
			(uint64_t)in->program_fd);

		rc = rc < 0 ? rc : closed;
	}
	return rc;
}

static int inject_all(struct injection *in, struct err *err)
{
	struct steps_config config = {.magic = STEPS_ABI_MAGIC,
		.version = STEPS_ABI_VERSION,
		.pid = (uint32_t)in->threads->pid};
	uint32_t index = 0;
	int rc = make_memory(in, err);

	for (size_t i = 0; i < in->threads->all.n && rc == 0; i++) {
		if (in->threads->all.v[i].is_gone)
			continue;
		config.owners[index] = (uint32_t)in->threads->all.v[i].tid;
		rc = prepare_thread(in, &in->threads->all.v[i], index, err);
		index += rc == 0;
	}
	in->n_prepared = index;
	config.n_threads = index;
	if (rc == 0)
		rc = take_trap_signal(in, &config, err);
	return rc == 0 ? write_at(in, STEPS_PRIVATE_AT, &config, sizeof(config), err) : rc;
}

static void undo_thread(struct injection *in, struct remote_thread *t, uint32_t index)
{
	uint64_t scratch = STEPS_PRIVATE_AT + SCRATCH_AT, mask;
	struct steps_state_head head;
	stack_t stack = {0};

	if (!remote_read(t, in->base + STEPS_STATES_AT + (uint64_t)index * STEPS_STATE_BYTES, &head,
		    sizeof(head)))
		return;
	stack.ss_sp = (void *)(uintptr_t)head.alt_sp;
	stack.ss_size = head.alt_bytes;
	stack.ss_flags = head.alt_bytes ? (int)head.alt_flags : SS_DISABLE;
	if (write_at(in, scratch, &stack, sizeof(stack), NULL) == 0)
		inside_call(t, &in->stub,
			&(const struct inside_call){
				SYS_sigaltstack, "sigaltstack", {in->base + scratch}},
			NULL, NULL);
	if (head.is_trap_blocked && ptrace(PTRACE_GETSIGMASK, t->tid, sizeof(mask), &mask) == 0) {
		mask |= TRAP_BIT;
		ptrace(PTRACE_SETSIGMASK, t->tid, sizeof(mask), &mask);
	}
}

/* No thread has begun: all is put back. */
static void undo(struct injection *in)
{
	uint64_t scratch = STEPS_PRIVATE_AT + SCRATCH_AT;
	uint32_t index = 0;

	if (!in->base || !in->first->is_stopped)
		return;
	for (size_t i = 0; i < in->threads->all.n && index < in->n_prepared; i++)
		if (!in->threads->all.v[i].is_gone)
			undo_thread(in, &in->threads->all.v[i], index++);
	if (in->has_trap && write_at(in, scratch, &in->own_trap, sizeof(in->own_trap), NULL) == 0)
		CALL(in, SYS_rt_sigaction, "rt_sigaction", NULL, NULL, SIGTRAP, in->base + scratch,
			0, 8);
	CALL(in, SYS_munmap, "munmap", NULL, NULL, in->base, STEPS_AREA_AT + in->area->bytes);
}

int inside_ignore_trap(struct remote_threads *threads, struct err *err)
{
	struct injection in = {.threads = threads, .first = &threads->all.v[0]};
	struct steps_action ignored = {.handler = 1}, there; /* SIG_IGN */
	uint64_t at = (remote_thread_sp(in.first) - BELOW_STACK) & ~15ull;
	int rc = inside_find_syscall(in.first, &in.stub, err);

	if (rc < 0)
		return rc;
	if (!remote_read(in.first, at, &there, sizeof(there)) ||
		!remote_write(in.first, at, &ignored, sizeof(ignored)))
		return err_sys(err, errno, "process %d: writing its memory", threads->pid);
	rc = CALL(&in, SYS_rt_sigaction, "rt_sigaction", NULL, err, SIGTRAP, at, 0, 8);
	remote_write(in.first, at, &there, sizeof(there));
	return rc;
}

void inside_area_free(struct inside_area *area)
{
	if (!area)
		return;
	if (area->shared)
		munmap(area->shared, area->bytes);
	free(area->is_bound);
	free(area);
}

int inside_inject(struct inside_engine *e, struct remote_threads *threads,
	struct inside_area **area, struct err *err)
{
	struct injection in = {.e = e, .threads = threads, .program_fd = -1, .fd = -1};
	int rc;

	for (size_t i = 0; i < threads->all.n && !in.first; i++)
		if (!threads->all.v[i].is_gone && threads->all.v[i].is_stopped)
			in.first = &threads->all.v[i];
	if (!in.first)
		return err_set(
			err, ERR_NOT_FOUND, "process %d has no thread any more", threads->pid);
	if (threads->all.n > STEPS_N_STATES - 1)
		return err_set(err, ERR_LIMIT, "process %d has more than %u threads", threads->pid,
			STEPS_N_STATES - 1);
	in.area = mem_zalloc(sizeof(*in.area));
	rc = inject_all(&in, err);
	if (rc < 0)
		undo(&in);
	for (size_t i = 0; i < threads->all.n && rc == 0; i++)
		if (!threads->all.v[i].is_gone)
			rc = start_thread(&threads->all.v[i], err);
	fd_cleanup(&in.fd);
	if (rc < 0) {
		inside_area_free(in.area);
		return rc;
	}
	for (size_t i = 0; i < threads->all.n; i++) {
		struct remote_thread *t = &threads->all.v[i];

		if (t->is_stopped)
			ptrace(PTRACE_DETACH, t->tid, 0, 0);
		t->is_seized = t->is_stopped = false;
	}
	in.area->base = in.base;
	*area = in.area;
	return 0;
}
