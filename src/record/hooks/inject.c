/* SPDX-License-Identifier: MIT */
/*
 * Into a running process and out again:
 *
 *   attach   one thread, at a moment when that is safe:  dlopen(libweir.so)    the others run
 *            all threads stopped, on one of them:        weir_attach(socket)
 *            each thread that stands in patched code is moved
 *   detach   all threads stopped, on one of them:        weir_detach(socket)
 *            each thread that stands at a jump of ours has executed it before
 *   refused  one thread, at a safe moment:               dlclose()             the others run
 *
 * 1. All of it is done by a thread of our own, made for it: whatever happens, its end lets go of
 *    every thread that is still seized, even one that could not be stopped (ptrace(2)).
 * 2. Nothing is seized longer than it is needed: a thread that is looked at for a safe moment and
 *    is not at one is let go again.
 * 3. If we are killed, the program lives on (remote_call.c), with two exceptions: while memory for
 *    a stack is asked for, which takes microseconds and is only done where no other stack is surely
 *    large enough (the library brings one for its own functions); and between the patching and the moving of the threads, when one that stands in
 *    patched code goes on there.
 */
#include "record/hooks/inject.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/map_guard.h"
#include "process/ptrace/inject_internal.h"
#include "process/proc.h"
#include "rt/hook/hook_abi.h"

#define SECOND_NS	   1000000000u
#define CALL_NS		   (10 * (uint64_t)SECOND_NS)
#define MOMENT_NS	   (5 * (uint64_t)SECOND_NS) /* looking for a safe one */
#define OWN_STACK_NS	   (SECOND_NS / 5)	     /* of that, for one with a stack of its own */
#define STOP_ONE_NS	   (SECOND_NS / 10)
#define TRACER_NS	   (2 * (uint64_t)SECOND_NS) /* for another tracer to go */
#define STOP_ALL_NS	   (5 * (uint64_t)SECOND_NS)
#define WATCH_NS	   50000000
#define NAP_MIN_NS	   1000000
#define NAP_MAX_NS	   5000000
#define REMOTE_STACK_BYTES (256u << 10)
#define DLERROR_BYTES	   400
#define JUMP_BYTES	   5
#define HANDLERS_MAX	   64 /* nested signal handlers of one thread */

#define MMAP2_32  192
#define MUNMAP_32 91

/* Of __libc_dlopen_mode: the caller is libc (glibc's include/dlfcn.h). */
#define RTLD_DLOPEN_PRIVATE 0x80000000u
#define RTLD_LAZY_FLAG	    1u
#define RTLD_NOW_FLAG	    2u

struct injection {
	pid_t pid;
	const struct inject_options *options;
	bool is_attach;
	struct err *err;
	int rc;

	pid_t view;	     /* whose /proc files are read: the first thread that has not ended */
	const char *library; /* the one of the process's width */
	int memory_fd;
	struct remote_symbols *symbols;
	struct remote_threads threads;
	struct remote_thread *caller; /* of `threads`, stopped: functions are called on it */
	struct remote_stub stub;
	uint64_t stack;	     /* top of the one that calls are made on; 0 = the thread's own */
	uint64_t stack_addr; /* of memory mapped for it; 0 = none is */
	uint64_t handle;     /* of the library when this injection has loaded it; 0 = it was there */
	bool is_refused;     /* by the library, which has done nothing then */
	bool is_busy;	     /* the library said so: the last call is to be made again */
};

static const char *library_name(const struct injection *in)
{
	return path_base_name(in->library);
}

/* --- the thread that calls ------------------------------------------------------------------ */

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

static int plant_stub(struct injection *in)
{
	struct gap_search search = {.t = in->caller};
	uint64_t gap;

	if (in->stub.addr)
		return 0;
	gap = remote_symbols_find_gap(in->symbols, REMOTE_STUB_BYTES, stub_fits, &search);
	/* The descriptor is that of the program it was opened for. */
	if (!gap && !search.is_readable)
		return err_set(in->err, ERR_CHANGED,
			"process %d became another program or ended meanwhile", in->pid);
	if (!gap)
		return err_set(in->err, ERR_FAILED,
			"process %d: no %d unused bytes behind the code of any image", in->pid,
			REMOTE_STUB_BYTES);
	return remote_stub_plant(in->caller, &in->stub, gap, in->err);
}

/* Memory for calls where no stack is known to be large enough. */
static int map_stack(struct injection *in)
{
	bool is_64 = in->caller->is_64;
	const uint64_t args[6] = {0, REMOTE_STACK_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, (uint64_t)-1, 0};
	int64_t addr;
	int rc = remote_syscall(
		in->caller, &in->stub, is_64 ? SYS_mmap : MMAP2_32, args, &addr, in->err);

	if (rc < 0)
		return rc;
	if (addr < 0 && addr >= -4095)
		return err_sys(in->err, (int)-addr, "process %d: mmap", in->pid);
	in->stack_addr = is_64 ? (uint64_t)addr : (uint32_t)addr;
	in->stack = in->stack_addr + REMOTE_STACK_BYTES;
	return 0;
}

static void unmap_stack(struct injection *in)
{
	const uint64_t args[6] = {in->stack_addr, REMOTE_STACK_BYTES};
	int64_t result;

	if (in->stack_addr && in->caller && in->caller->is_stopped)
		remote_syscall(in->caller, &in->stub, in->caller->is_64 ? SYS_munmap : MUNMAP_32,
			args, &result, NULL);
	in->stack = in->stack_addr = 0;
}

/* Where the library's own stack ends; 0 when it has none, or a call that came too late is still
 * being made on it. Every thread stands still. */
static uint64_t library_stack(const struct injection *in)
{
	uint64_t bytes = 0;
	uint64_t addr = remote_symbols_find_object(
		in->symbols, library_name(in), "weir_call_stack", &bytes);

	for (size_t i = 0; i < in->threads.all.n; i++) {
		const struct remote_thread *t = &in->threads.all.v[i];

		if (t->is_stopped && remote_thread_sp(t) - addr <= bytes)
			return 0;
	}
	return addr && bytes > REMOTE_FRAME_BYTES_MAX ? addr + bytes : 0;
}

/* For calls of the library's functions. */
static int take_stack(struct injection *in, struct moments *moments, bool all_stopped)
{
	in->stack = all_stopped ? library_stack(in) : 0;
	if (in->stack || !moment_hinders_own_stack(moments, in->caller))
		return 0;
	return map_stack(in);
}

/* Leaves nothing behind, as far as a stopped thread is left to see to it. */
static void let_go(struct injection *in)
{
	unmap_stack(in);
	for (size_t i = 0; i < in->threads.all.n; i++)
		remote_stub_remove(&in->threads.all.v[i], &in->stub);
	remote_threads_let_go(&in->threads);
	in->caller = NULL;
	in->stub = (struct remote_stub){0};
}

struct tid_list {
	VEC(pid_t) tids;
};

static void list_tid(void *ctx, pid_t tid)
{
	struct tid_list *list = ctx;

	vec_push(&list->tids, tid);
}

/* Stops the thread and looks where it stands. 0 and in->caller set, with `moments` also in->stack;
 * or 1 with the reason in *why: another time, or another thread; or a failure. */
static int try_thread(
	struct injection *in, pid_t tid, struct moments *moments, bool any_stack, const char **why)
{
	struct remote_thread t = {.pid = in->pid,
		.tid = tid,
		.memory_fd = in->memory_fd,
		.is_64 = remote_symbols_is_64(in->symbols)};
	const char *stack = NULL;
	int rc;

	*why = "could not be stopped";
	if (inject_thread_state(in->pid, tid) == 'D')
		return 1;
	rc = remote_thread_seize(&t, in->err);
	if (rc < 0 && inject_is_traced(in->pid)) {
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
			in->caller = remote_threads_add(&in->threads, tid);
			*in->caller = t;
			rc = plant_stub(in);
			return rc == 0 && stack ? map_stack(in) : rc;
		}
	}
	remote_thread_let_go(&t);
	return 1;
}

/* Finds a thread on which a function can be called now, and stops it. With `moments`: dlopen, and
 * there is a stack for it. */
static int stop_caller(struct injection *in, struct moments *moments)
{
	uint64_t start = clock_mono_ns(), nap = NAP_MIN_NS;
	const char *why = "ended";
	pid_t last = 0;

	while (clock_mono_ns() - start < MOMENT_NS) {
		struct tid_list list = {0};
		int rc = 1;

		if (!proc_each_task(in->pid, list_tid, &list))
			return err_set(in->err, ERR_NOT_FOUND, "process %d has ended", in->pid);
		for (size_t i = 0; rc == 1 && i < list.tids.n; i++) {
			last = list.tids.v[i];
			rc = try_thread(
				in, last, moments, clock_mono_ns() - start > OWN_STACK_NS, &why);
		}
		vec_release(&list.tids);
		if (rc <= 0)
			return rc;
		nanosleep(&(struct timespec){0, (long)nap}, NULL);
		nap = nap * 2 > NAP_MAX_NS ? NAP_MIN_NS : nap * 2;
	}
	return err_set(in->err, ERR_FAILED,
		"process %d: in %u s no thread was found at a moment when a function can be called on it; thread %d %s",
		in->pid, (unsigned)(MOMENT_NS / SECOND_NS), last, why);
}

/* --- loading --------------------------------------------------------------------------------- */

/* On the caller, which must be stopped, and on the stack that was chosen for it. */
static int call_function(
	struct injection *in, struct remote_call call, uint64_t *result, struct err *err)
{
	call.stack = in->stack;
	call.timeout_ns = CALL_NS;
	return remote_call(in->caller, &in->stub, &call, result, err);
}

/* What dlerror says, or "". */
static void read_dlerror(struct injection *in, char *to, size_t bytes)
{
	uint64_t addr = remote_symbols_find(in->symbols, NULL, "dlerror");
	uint64_t text = 0;
	size_t n = 0;

	to[0] = 0;
	if (!addr || !in->caller->is_stopped ||
		call_function(in, (struct remote_call){.name = "dlerror", .function = addr}, &text,
			NULL) < 0 ||
		!text)
		return;
	while (n + 1 < bytes && remote_read(in->caller, text + n, to + n, 1) && to[n])
		n++;
	to[n] = 0;
	for (char *p = to; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = '?';
}

static int call_dlopen(struct injection *in)
{
	uint64_t plain = remote_symbols_find(in->symbols, NULL, "dlopen");
	uint64_t hidden = plain ? 0 : remote_symbols_find(in->symbols, NULL, "__libc_dlopen_mode");
	struct remote_call call = {.name = "dlopen",
		.function = plain ? plain : hidden,
		.text = in->library,
		.arg = plain ? RTLD_NOW_FLAG : RTLD_LAZY_FLAG | RTLD_DLOPEN_PRIVATE};
	char reason[DLERROR_BYTES];
	uint64_t handle = 0;
	int rc = call_function(in, call, &handle, in->err);

	if (rc < 0)
		return rc;
	in->handle = handle;
	if (handle)
		return 0;
	read_dlerror(in, reason, sizeof(reason));
	return err_set(in->err, ERR_FAILED, "process %d does not load '%s'%s%s", in->pid,
		in->library, reason[0] ? ": " : "", reason);
}

static int read_symbols(struct injection *in)
{
	remote_symbols_close(in->symbols);
	in->symbols = NULL;
	return remote_symbols_open(&in->symbols, in->view, in->err);
}

static int load_library(struct injection *in)
{
	struct moments *moments;
	int rc = inject_check_library(in->pid, in->view, in->library, in->err);

	if (rc < 0)
		return rc;
	if (!remote_symbols_find(in->symbols, NULL, "dlopen") &&
		!remote_symbols_find(in->symbols, NULL, "__libc_dlopen_mode"))
		return err_set(in->err, ERR_UNSUPPORTED,
			"process %d cannot load a library: it is statically linked (none of its images has dlopen)",
			in->pid);
	moments = moments_new(in->symbols);
	rc = stop_caller(in, moments);
	moments_free(moments);
	if (rc == 0)
		rc = call_dlopen(in);
	/* Nothing stands still while files are read. */
	let_go(in);
	return rc == 0 ? read_symbols(in) : rc;
}

/* Takes out again what load_library has brought. */
static int unload_library(struct injection *in)
{
	uint64_t dlclose = remote_symbols_find(in->symbols, NULL, "dlclose");
	struct moments *moments = moments_new(in->symbols);
	struct remote_call call = {.name = "dlclose",
		.function = dlclose ? dlclose
				    : remote_symbols_find(in->symbols, NULL, "__libc_dlclose"),
		.arg = in->handle};
	uint64_t result = 0;
	int rc = call.function ? stop_caller(in, moments) : ERR_NOT_FOUND;

	moments_free(moments);
	if (rc == 0)
		rc = call_function(in, call, &result, in->err);
	let_go(in);
	return rc == 0 && (uint32_t)result ? ERR_FAILED : rc;
}

/* A process that cannot be hooked is left as it was found. */
static int leave_as_found(struct injection *in, int rc)
{
	struct err *err = in->err, ignored, first = *err;

	let_go(in);
	in->err = &ignored;
	if (unload_library(in) < 0)
		err_set(err, first.code, "%s; '%s' stays loaded in it", first.text,
			library_name(in));
	in->err = err;
	return rc;
}

/* --- the library's functions ------------------------------------------------------------------ */

struct place_check {
	uint64_t addr;
	const char *image;
	bool is_there;
};

static void check_place(void *ctx, const struct proc_mapping *m)
{
	struct place_check *check = ctx;
	size_t n = strlen(check->image);
	const char *name = path_base_name(m->path);

	if (m->start <= check->addr && check->addr < m->end && path_plain_bytes(name) == n &&
		!strncmp(name, check->image, n))
		check->is_there = true;
}

static int call_library(struct injection *in, const char *name, const char *text, uint64_t arg,
	enum remote_call_late when_late)
{
	uint64_t addr = remote_symbols_find(in->symbols, library_name(in), name);
	struct place_check check = {.addr = addr, .image = library_name(in)};
	struct remote_call call = {.name = name,
		.function = addr,
		.text = text,
		.arg = arg,
		.late = when_late};
	uint64_t result = 0;
	int rc;

	if (!addr)
		return err_set(in->err, ERR_NOT_FOUND, "process %d: its '%s' has no function %s",
			in->pid, library_name(in), name);
	/* It may have become another program between two stops. */
	if (proc_each_mapping(in->view, check_place, &check, in->err) < 0 || !check.is_there)
		return err_set(in->err, ERR_CHANGED, "process %d: '%s' is no longer in it", in->pid,
			library_name(in));
	rc = call_function(in, call, &result, in->err);
	in->is_busy = rc == 0 && (int32_t)(uint32_t)result == -EAGAIN;
	if (rc < 0)
		return rc;
	rc = inject_answer(in->pid, name, result, in->err);
	in->is_refused = rc < 0;
	return rc;
}

/* Where a thread goes on that stands at `pc`. */
typedef uint64_t next_pc(const struct injection *in, const struct remote_thread *t, uint64_t pc);

/* Its instruction was moved. */
static uint64_t moved_pc(const struct injection *in, const struct remote_thread *t, uint64_t pc)
{
	(void)t;
	return in->options->moved_pc(in->options->ctx, in->pid, pc);
}

/* There is a jump that will be taken out: where it leads to is where the thread would be next. Nothing
 * but the program counter changes by a jump. */
static uint64_t after_jump(const struct injection *in, const struct remote_thread *t, uint64_t pc)
{
	uint8_t bytes[JUMP_BYTES];
	int32_t distance;

	(void)in;
	if (!remote_read(t, pc, bytes, sizeof(bytes)) || bytes[0] != 0xe9)
		return pc;
	memcpy(&distance, bytes + 1, sizeof(distance));
	pc += sizeof(bytes) + (uint64_t)(int64_t)distance;
	return t->is_64 ? pc : (uint32_t)pc;
}

/* Also where its signal handlers return to. A thread that will make its system call again stands behind
 * the instruction, but goes on at it: that address decides, and a moved instruction is as long. */
static int redirect_thread(
	struct injection *in, struct moments *moments, struct remote_thread *t, next_pc *next)
{
	struct moment_return returns[HANDLERS_MAX];
	size_t n = moment_handler_returns(moments, t, returns, HANDLERS_MAX);
	uint64_t back = remote_thread_is_restarting(t) ? 2 : 0;
	uint64_t pc = remote_thread_pc(t) - back, to;
	int rc = 0, set;

	for (size_t i = 0; i < n; i++) {
		to = next(in, t, returns[i].pc);
		if (to != returns[i].pc &&
			!remote_write(t, returns[i].where, &to, t->is_64 ? 8 : 4))
			rc = err_sys(in->err, errno,
				"thread %d: moving the place its signal handler returns to",
				t->tid);
	}
	to = next(in, t, pc);
	set = to == pc ? 0 : remote_thread_set_pc(t, to + back, in->err);
	return rc < 0 ? rc : set;
}

/* All of them, also when one fails. */
static int redirect_threads(struct injection *in, struct moments *moments, next_pc *next)
{
	int rc = 0;

	for (size_t i = 0; i < in->threads.all.n; i++) {
		struct remote_thread *t = &in->threads.all.v[i];
		int one = t->is_stopped ? redirect_thread(in, moments, t, next) : 0;

		rc = rc < 0 ? rc : one;
	}
	return rc;
}

static int stop_once(struct injection *in)
{
	int rc = stop_caller(in, NULL);

	if (rc == 0) {
		pid_t tid = in->caller->tid;

		rc = remote_threads_stop(&in->threads, clock_mono_ns() + STOP_ALL_NS, in->err);
		in->caller = remote_threads_add(&in->threads, tid); /* the array may have moved */
	}
	if (rc == 0 && !in->caller->is_stopped)
		rc = remote_thread_gone(in->caller, in->err);
	return rc;
}

/* Every thread stands still, in->caller is one of them, and there is a stack for it. The thread that
 * was chosen may end before the others stand: then another one. */
static int stop_all(struct injection *in, struct moments *moments)
{
	uint64_t start = clock_mono_ns();
	int rc = stop_once(in);

	while (rc == ERR_NOT_FOUND && clock_mono_ns() - start < STOP_ALL_NS &&
		inject_check_process(in->pid, NULL) == 0) {
		let_go(in);
		rc = stop_once(in);
	}
	return rc == 0 ? take_stack(in, moments, true) : rc;
}

static int hook(struct injection *in)
{
	struct moments *moments = moments_new(in->symbols);
	int rc = stop_all(in, moments);

	if (rc == 0)
		rc = call_library(
			in, "weir_attach", in->options->place, 0, REMOTE_CALL_LATE_GIVES_UP);
	if (rc == 0 && in->options->moved_pc)
		rc = redirect_threads(in, moments, moved_pc);
	moments_free(moments);
	return rc;
}

static int unhook_stopped(struct injection *in, struct moments *moments)
{
	int rc = stop_all(in, moments);

	if (rc < 0)
		return rc;
	redirect_threads(in, moments, after_jump);
	return call_library(
		in, "weir_detach", in->options->place, 1, REMOTE_CALL_LATE_GOES_ON);
}

/* Where not all threads can be stopped (one waits for a disk), the library does what it can while
 * they run. */
static int unhook_running(struct injection *in, struct moments *moments)
{
	int rc;

	let_go(in);
	rc = stop_caller(in, NULL);
	if (rc == 0)
		rc = take_stack(in, moments, false);
	if (rc == 0)
		rc = call_library(
			in, "weir_detach", in->options->place, 0, REMOTE_CALL_LATE_GOES_ON);
	return rc;
}

/* One of the stopped threads may be changing code just now: then once more, a little later. */
static int unhook(struct injection *in)
{
	struct moments *moments = moments_new(in->symbols);
	uint64_t start = clock_mono_ns();
	int rc = unhook_stopped(in, moments);

	while (in->is_busy && clock_mono_ns() - start < MOMENT_NS) {
		let_go(in);
		nanosleep(&(struct timespec){0, NAP_MAX_NS}, NULL);
		rc = unhook_stopped(in, moments);
	}
	if (rc < 0 && rc != ERR_NOT_FOUND && rc != ERR_CHANGED && !in->is_busy)
		rc = unhook_running(in, moments);
	moments_free(moments);
	return rc;
}

/* --- the whole -------------------------------------------------------------------------------- */

/* The files of a first thread that has ended are empty, those of the others show the same. */
static void find_view(void *ctx, pid_t tid)
{
	struct injection *in = ctx;

	if (!in->view && inject_thread_lives(in->pid, tid))
		in->view = tid;
}

/* A debugger may be there for a moment, or another recorder that puts its own hooks in. */
static int wait_for_tracer(const struct injection *in)
{
	uint64_t start = clock_mono_ns();
	int rc = inject_check_tracer(in->pid, in->err);

	while (rc < 0 && clock_mono_ns() - start < TRACER_NS) {
		nanosleep(&(struct timespec){0, NAP_MAX_NS}, NULL);
		rc = inject_check_tracer(in->pid, in->err);
	}
	return rc;
}

/* Known without a stop: every recorder that ends asks every process with a library. */
static bool is_of_other_recorder(const struct injection *in)
{
	const struct remote_thread t = {.memory_fd = in->memory_fd};
	char place[HOOK_PLACE_BYTES];
	uint64_t bytes = 0;
	uint64_t addr = remote_symbols_find_object(
		in->symbols, library_name(in), "weir_place", &bytes);

	return addr && bytes == sizeof(place) && remote_read(&t, addr, place, sizeof(place)) &&
	       strncmp(place, in->options->place, sizeof(place)) != 0;
}

static int inject_out(struct injection *in, bool is_there)
{
	int rc;

	if (!is_there)
		return err_set(in->err, ERR_NOT_FOUND, "process %d: '%s' is not loaded in it",
			in->pid, library_name(in));
	if (is_of_other_recorder(in))
		return inject_answer(in->pid, "weir_detach", (uint64_t)-ESRCH, in->err);
	rc = wait_for_tracer(in);
	return rc == 0 ? unhook(in) : rc;
}

static int inject(struct injection *in)
{
	char path[64];
	bool is_there;
	int rc = inject_check_process(in->pid, in->err);

	if (rc == 0 && in->is_attach)
		rc = wait_for_tracer(in);
	if (rc < 0)
		return rc;
	proc_each_task(in->pid, find_view, in);
	rc = in->view ? read_symbols(in)
		      : err_set(in->err, ERR_NOT_FOUND, "process %d has ended", in->pid);
	if (rc == ERR_PERMISSION)
		return inject_refused(in->pid, EPERM, in->err);
	if (rc < 0)
		return rc;
	snprintf(path, sizeof(path), "/proc/%d/mem", in->view);
	in->memory_fd = open(path, O_RDWR | O_CLOEXEC);
	if (in->memory_fd < 0)
		return errno == EACCES || errno == EPERM ? inject_refused(in->pid, EPERM, in->err)
							 : err_sys(in->err, errno, "'%s'", path);
	in->threads = (struct remote_threads){.pid = in->pid,
		.memory_fd = in->memory_fd,
		.is_64 = remote_symbols_is_64(in->symbols)};
	in->library = in->threads.is_64 ? in->options->library : in->options->library32;
	if (!in->library)
		return err_set(in->err, ERR_UNSUPPORTED,
			"process %d is a %d-bit program, for which there is no hook library",
			in->pid, in->threads.is_64 ? 64 : 32);
	is_there = remote_symbols_has_image(in->symbols, library_name(in));
	if (!in->is_attach)
		return inject_out(in, is_there);
	if (!is_there)
		rc = load_library(in);
	if (rc == 0)
		rc = hook(in);
	return rc < 0 && in->handle && in->is_refused ? leave_as_found(in, rc) : rc;
}

static void *run(void *ctx)
{
	struct injection *in = ctx;

	in->rc = inject(in);
	let_go(in);
	remote_symbols_close(in->symbols);
	fd_cleanup(&in->memory_fd);
	return NULL;
}

static void reap_one(void *ctx, pid_t tid)
{
	siginfo_t info = {0};

	if (tid == *(const pid_t *)ctx)
		return;
	/* Stops of a traced thread are told even if they are not asked for, and must be left to the
	 * injecting thread: so it is looked at first. */
	if (waitid(P_PID, (id_t)tid, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 &&
		(info.si_code == CLD_EXITED || info.si_code == CLD_KILLED ||
			info.si_code == CLD_DUMPED))
		waitid(P_PID, (id_t)tid, &info, WEXITED | WNOHANG | __WALL);
}

/*
 * The end of a seized thread has to be taken notice of by our process, or exec and exit of the
 * others wait for that; and seizing waits for exec. So it is done here, beside the injecting
 * thread, which may be waiting for one of those. (Not for the first thread, whose end may be for
 * somebody else here to see, and is not waited for.)
 */
static void watch(pthread_t thread, pid_t pid)
{
	struct timespec ts;

	for (;;) {
		ts = clock_in_ns(CLOCK_REALTIME, WATCH_NS);
		if (pthread_timedjoin_np(thread, NULL, &ts) == 0)
			return;
		proc_each_task(pid, reap_one, &pid);
	}
}

/* Runs in a thread of its own, without signals. */
static int run_alone(
	pid_t pid, const struct inject_options *options, bool is_attach, struct err *err)
{
	struct err own = {0};
	struct injection in = {.pid = pid,
		.options = options,
		.is_attach = is_attach,
		.err = err ? err : &own,
		.memory_fd = -1};
	sigset_t all, before;
	pthread_t thread;
	int errnum;

	map_guard_fill_mask(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	errnum = pthread_create(&thread, NULL, run, &in);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (errnum)
		return err_sys(err, errnum, "starting a thread");
	watch(thread, pid);
	return in.rc;
}

int inject_attach(pid_t pid, const struct inject_options *options, struct err *err)
{
	return run_alone(pid, options, true, err);
}

int inject_detach(pid_t pid, const struct inject_options *options, struct err *err)
{
	return run_alone(pid, options, false, err);
}
