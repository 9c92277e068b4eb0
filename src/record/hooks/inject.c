/* SPDX-License-Identifier: MIT */
/*
 * Into a running process and out again:
 *
 *   attach   one thread, at a moment when that is safe:  dlopen(libweir.so)    the others run
 *            all threads stopped, on one of them:        weir_attach(socket)
 *            each thread that stands in patched code is moved
 *            in a JVM, one thread:                       weir_java_start(socket)
 *   detach   all threads stopped, on one of them:        weir_detach(socket)
 *            each thread that stands at a jump of ours has executed it before
 *            in a JVM, one thread:                       weir_java_start(socket)
 *   refused  one thread, at a safe moment:               dlclose()             the others run
 *
 * 1. All of it is done by a thread of our own, made for it: whatever happens, its end lets go of
 *    every thread that is still seized, even one that could not be stopped (ptrace(2)).
 * 2. If we are killed, the program lives on (remote_call.c), with two exceptions: while memory for
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
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/map_guard.h"
#include "process/ptrace/inject_internal.h"
#include "process/proc.h"
#include "record/hooks/inject_java.h"
#include "rt/hook/hook_abi.h"

#define SECOND_NS     1000000000u
#define TRACER_NS     (2 * (uint64_t)SECOND_NS) /* for another tracer to go */
#define WATCH_NS      50000000
#define NAP_NS	      5000000
#define DLERROR_BYTES 400
#define JUMP_BYTES    5
#define HANDLERS_MAX  64 /* nested signal handlers of one thread */

/* Of __libc_dlopen_mode: the caller is libc (glibc's include/dlfcn.h). */
#define RTLD_DLOPEN_PRIVATE 0x80000000u
#define RTLD_LAZY_FLAG	    1u
#define RTLD_NOW_FLAG	    2u

struct injection {
	struct remote_caller c; /* by which functions are called in it */
	const struct inject_options *options;
	bool is_attach;
	int rc;

	pid_t view;	     /* whose /proc files are read: the first thread that has not ended */
	const char *library; /* the one of the process's width */
	uint64_t handle; /* of the library when this injection has loaded it; 0 = it was there */
	bool is_refused; /* by the library, which has done nothing then */
	bool is_busy;	 /* the library said so: the last call is to be made again */
};

static const char *library_name(const struct injection *in)
{
	return path_base_name(in->library);
}

/* Where the library's own stack ends; 0 when it has none, or a call that came too late is still
 * being made on it. Every thread stands still. */
static uint64_t library_stack(const struct injection *in)
{
	uint64_t bytes = 0;
	uint64_t addr = remote_symbols_find_object(
		in->c.symbols, library_name(in), "weir_call_stack", &bytes);

	for (size_t i = 0; i < in->c.threads.all.n; i++) {
		const struct remote_thread *t = &in->c.threads.all.v[i];

		if (t->is_stopped && remote_thread_sp(t) - addr <= bytes)
			return 0;
	}
	return addr && bytes > REMOTE_FRAME_BYTES_MAX ? addr + bytes : 0;
}

/* For calls of the library's functions. */
static int take_stack(struct injection *in, struct moments *moments, bool all_stopped)
{
	in->c.stack = all_stopped ? library_stack(in) : 0;
	if (in->c.stack || !moment_hinders_own_stack(moments, in->c.thread))
		return 0;
	return remote_caller_map_stack(&in->c);
}

/* --- loading --------------------------------------------------------------------------------- */

/* What dlerror says, or "". */
static void read_dlerror(struct injection *in, char *to, size_t bytes)
{
	uint64_t addr = remote_symbols_find(in->c.symbols, NULL, "dlerror");
	uint64_t text = 0;
	size_t n = 0;

	to[0] = 0;
	if (!addr || !in->c.thread->is_stopped ||
		remote_caller_call(&in->c,
			(struct remote_call){.name = "dlerror", .function = addr}, &text,
			NULL) < 0 ||
		!text)
		return;
	while (n + 1 < bytes && remote_read(in->c.thread, text + n, to + n, 1) && to[n])
		n++;
	to[n] = 0;
	for (char *p = to; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = '?';
}

static int call_dlopen(struct injection *in)
{
	uint64_t plain = remote_symbols_find(in->c.symbols, NULL, "dlopen");
	uint64_t hidden =
		plain ? 0 : remote_symbols_find(in->c.symbols, NULL, "__libc_dlopen_mode");
	struct remote_call call = {.name = "dlopen",
		.function = plain ? plain : hidden,
		.text = in->library,
		.arg = plain ? RTLD_NOW_FLAG : RTLD_LAZY_FLAG | RTLD_DLOPEN_PRIVATE};
	char reason[DLERROR_BYTES];
	uint64_t handle = 0;
	int rc = remote_caller_call(&in->c, call, &handle, in->c.err);

	if (rc < 0)
		return rc;
	in->handle = handle;
	if (handle)
		return 0;
	read_dlerror(in, reason, sizeof(reason));
	return err_set(in->c.err, ERR_FAILED, "process %d does not load '%s'%s%s", in->c.pid,
		in->library, reason[0] ? ": " : "", reason);
}

static int read_symbols(struct injection *in)
{
	remote_symbols_close(in->c.symbols);
	in->c.symbols = NULL;
	return remote_symbols_open(&in->c.symbols, in->view, in->c.err);
}

static int load_library(struct injection *in)
{
	struct moments *moments;
	int rc = inject_check_library(in->c.pid, in->view, in->library, in->c.err);

	if (rc < 0)
		return rc;
	if (!remote_symbols_find(in->c.symbols, NULL, "dlopen") &&
		!remote_symbols_find(in->c.symbols, NULL, "__libc_dlopen_mode"))
		return err_set(in->c.err, ERR_UNSUPPORTED,
			"process %d cannot load a library: it is statically linked (none of its images has dlopen)",
			in->c.pid);
	moments = moments_new(in->c.symbols);
	rc = remote_caller_stop(&in->c, moments);
	moments_free(moments);
	if (rc == 0)
		rc = call_dlopen(in);
	/* Nothing stands still while files are read. */
	remote_caller_let_go(&in->c);
	return rc == 0 ? read_symbols(in) : rc;
}

/* Takes out again what load_library has brought. */
static int unload_library(struct injection *in)
{
	uint64_t dlclose = remote_symbols_find(in->c.symbols, NULL, "dlclose");
	struct moments *moments = moments_new(in->c.symbols);
	struct remote_call call = {.name = "dlclose",
		.function = dlclose ? dlclose
				    : remote_symbols_find(in->c.symbols, NULL, "__libc_dlclose"),
		.arg = in->handle};
	uint64_t result = 0;
	int rc = call.function ? remote_caller_stop(&in->c, moments) : ERR_NOT_FOUND;

	moments_free(moments);
	if (rc == 0)
		rc = remote_caller_call(&in->c, call, &result, in->c.err);
	remote_caller_let_go(&in->c);
	return rc == 0 && (uint32_t)result ? ERR_FAILED : rc;
}

/* A process that cannot be hooked is left as it was found. */
static int leave_as_found(struct injection *in, int rc)
{
	struct err *err = in->c.err, ignored, first = *err;

	remote_caller_let_go(&in->c);
	in->c.err = &ignored;
	if (unload_library(in) < 0)
		err_set(err, first.code, "%s; '%s' stays loaded in it", first.text,
			library_name(in));
	in->c.err = err;
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
	uint64_t addr = remote_symbols_find(in->c.symbols, library_name(in), name);
	struct place_check check = {.addr = addr, .image = library_name(in)};
	struct remote_call call = {
		.name = name, .function = addr, .text = text, .arg = arg, .late = when_late};
	uint64_t result = 0;
	int rc;

	if (!addr)
		return err_set(in->c.err, ERR_NOT_FOUND, "process %d: its '%s' has no function %s",
			in->c.pid, library_name(in), name);
	/* It may have become another program between two stops. */
	if (proc_each_mapping(in->view, check_place, &check, in->c.err) < 0 || !check.is_there)
		return err_set(in->c.err, ERR_CHANGED, "process %d: '%s' is no longer in it",
			in->c.pid, library_name(in));
	rc = remote_caller_call(&in->c, call, &result, in->c.err);
	in->is_busy = rc == 0 && (int32_t)(uint32_t)result == -EAGAIN;
	if (rc < 0)
		return rc;
	rc = inject_answer(in->c.pid, name, result, in->c.err);
	in->is_refused = rc < 0;
	return rc;
}

/* Where a thread goes on that stands at `pc`. */
typedef uint64_t next_pc(const struct injection *in, const struct remote_thread *t, uint64_t pc);

/* Its instruction was moved. */
static uint64_t moved_pc(const struct injection *in, const struct remote_thread *t, uint64_t pc)
{
	(void)t;
	return in->options->moved_pc(in->options->ctx, in->c.pid, pc);
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
			rc = err_sys(in->c.err, errno,
				"thread %d: moving the place its signal handler returns to",
				t->tid);
	}
	to = next(in, t, pc);
	set = to == pc ? 0 : remote_thread_set_pc(t, to + back, in->c.err);
	return rc < 0 ? rc : set;
}

/* All of them, also when one fails. */
static int redirect_threads(struct injection *in, struct moments *moments, next_pc *next)
{
	int rc = 0;

	for (size_t i = 0; i < in->c.threads.all.n; i++) {
		struct remote_thread *t = &in->c.threads.all.v[i];
		int one = t->is_stopped ? redirect_thread(in, moments, t, next) : 0;

		rc = rc < 0 ? rc : one;
	}
	return rc;
}

/* Every thread stands still, and there is a stack for the one that calls. */
static int stop_all(struct injection *in, struct moments *moments)
{
	int rc = remote_caller_stop_all(&in->c);

	return rc == 0 ? take_stack(in, moments, true) : rc;
}

static int hook(struct injection *in)
{
	struct moments *moments = moments_new(in->c.symbols);
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
	return call_library(in, "weir_detach", in->options->place, 1, REMOTE_CALL_LATE_GOES_ON);
}

/* Where not all threads can be stopped (one waits for a disk), the library does what it can while
 * they run. */
static int unhook_running(struct injection *in, struct moments *moments)
{
	int rc;

	remote_caller_let_go(&in->c);
	rc = remote_caller_stop(&in->c, NULL);
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
	struct moments *moments = moments_new(in->c.symbols);
	uint64_t start = clock_mono_ns();
	int rc = unhook_stopped(in, moments);

	while (in->is_busy && clock_mono_ns() - start < REMOTE_MOMENT_NS) {
		remote_caller_let_go(&in->c);
		nanosleep(&(struct timespec){0, NAP_NS}, NULL);
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

	if (!in->view && inject_thread_lives(in->c.pid, tid))
		in->view = tid;
}

/* A debugger may be there for a moment, or another recorder that puts its own hooks in. */
static int wait_for_tracer(const struct injection *in)
{
	uint64_t start = clock_mono_ns();
	int rc = inject_check_tracer(in->c.pid, in->c.err);

	while (rc < 0 && clock_mono_ns() - start < TRACER_NS) {
		nanosleep(&(struct timespec){0, NAP_NS}, NULL);
		rc = inject_check_tracer(in->c.pid, in->c.err);
	}
	return rc;
}

/* Known without a stop: every recorder that ends asks every process with a library. */
static bool is_of_other_recorder(const struct injection *in)
{
	const struct remote_thread t = {.memory_fd = in->c.memory_fd};
	char place[HOOK_PLACE_BYTES];
	uint64_t bytes = 0;
	uint64_t addr =
		remote_symbols_find_object(in->c.symbols, library_name(in), "weir_place", &bytes);

	return addr && bytes == sizeof(place) && remote_read(&t, addr, place, sizeof(place)) &&
	       strncmp(place, in->options->place, sizeof(place)) != 0;
}

static int inject_out(struct injection *in, bool is_there)
{
	int rc;

	if (!is_there)
		return err_set(in->c.err, ERR_NOT_FOUND, "process %d: '%s' is not loaded in it",
			in->c.pid, library_name(in));
	if (is_of_other_recorder(in))
		return inject_answer(in->c.pid, "weir_detach", (uint64_t)-ESRCH, in->c.err);
	rc = wait_for_tracer(in);
	if (rc == 0)
		rc = unhook(in);
	return rc == 0 ? inject_java(&in->c, library_name(in), in->options->place) : rc;
}

static int inject(struct injection *in)
{
	char path[64];
	bool is_there;
	int rc = inject_check_process(in->c.pid, in->c.err);

	if (rc == 0 && in->is_attach)
		rc = wait_for_tracer(in);
	if (rc < 0)
		return rc;
	proc_each_task(in->c.pid, find_view, in);
	rc = in->view ? read_symbols(in)
		      : err_set(in->c.err, ERR_NOT_FOUND, "process %d has ended", in->c.pid);
	if (rc == ERR_PERMISSION)
		return inject_refused(in->c.pid, EPERM, in->c.err);
	if (rc < 0)
		return rc;
	snprintf(path, sizeof(path), "/proc/%d/mem", proc_number(in->view));
	in->c.memory_fd = open(path, O_RDWR | O_CLOEXEC);
	if (in->c.memory_fd < 0)
		return errno == EACCES || errno == EPERM
			       ? inject_refused(in->c.pid, EPERM, in->c.err)
			       : err_sys(in->c.err, errno, "'%s'", path);
	in->c.threads = (struct remote_threads){
		.pid = in->c.pid, .memory_fd = in->c.memory_fd, .is_64 = in->c.symbols->is_64};
	in->library = in->c.threads.is_64 ? in->options->library : in->options->library32;
	if (!in->library)
		return err_set(in->c.err, ERR_UNSUPPORTED,
			"process %d is a %d-bit program, for which there is no hook library",
			in->c.pid, in->c.threads.is_64 ? 64 : 32);
	is_there = remote_symbols_has_image(in->c.symbols, library_name(in));
	if (!in->is_attach)
		return inject_out(in, is_there);
	if (!is_there)
		rc = load_library(in);
	if (rc == 0)
		rc = hook(in);
	if (rc < 0)
		return in->handle && in->is_refused ? leave_as_found(in, rc) : rc;
	rc = inject_java(&in->c, library_name(in), in->options->place);
	/* The program runs by now, and may have become another one or ended: its JVM then, too, and what was
	 * called before is known. */
	return rc == ERR_CHANGED || rc == ERR_NOT_FOUND ? 0 : rc;
}

static void *run(void *ctx)
{
	struct injection *in = ctx;

	in->rc = inject(in);
	remote_caller_let_go(&in->c);
	remote_symbols_close(in->c.symbols);
	fd_cleanup(&in->c.memory_fd);
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
	struct injection in = {.c = {.pid = pid, .err = err ? err : &own, .memory_fd = -1},
		.options = options,
		.is_attach = is_attach};
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
