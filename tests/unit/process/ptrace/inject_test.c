/* SPDX-License-Identifier: MIT */
/* weir-test: tsan */
/* weir-test: alone: attaches to processes within a time */
/*
 * The parts of the injection, on processes forked from the test. Whole programs and libraries:
 * tests/workloads/inject_programs.sh, for which this is the program that injects when it has
 * arguments:
 *
 *   inject_test attach|detach|cycle PID LIBRARY LIBRARY32 SOCKET [N [FROM TO]]
 *
 * cycle: attach and detach, N times. With addresses: threads in [FROM, TO) are moved to TO.
 */
#include "record/hooks/inject.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/clock.h"
#include "check.h"
#include "process/ptrace/inject_internal.h"

#define SECOND 1000000000ull

/* --- refusals ------------------------------------------------------------------------------- */

static void check_refused(
	pid_t pid, const struct inject_options *options, int code, const char *part)
{
	struct err err = {0};

	CHECK_EQ(inject_attach(pid, options, &err), code);
	CHECK(strstr(err.text, part));
	if (!strstr(err.text, part))
		printf("'%s' has no '%s'\n", err.text, part);
}

static const struct inject_options no_library = {.library = "/nonexistent/libweir.so",
	.library32 = "/nonexistent/libweir32.so",
	.place = "/nonexistent/socket"};

static pid_t fork_child(void (*body)(void))
{
	pid_t pid = fork();

	if (pid == 0) {
		body();
		_exit(0);
	}
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
}

static void wait_for_ever(void)
{
	for (;;)
		pause();
}

static void stop_oneself(void)
{
	raise(SIGSTOP);
}

static void ask_to_be_traced(void)
{
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	raise(SIGSTOP);
}

static void end_at_once(void)
{
}

static void no_such_process(void)
{
	check_refused(0x3ffffff0, &no_library, ERR_NOT_FOUND, "there is no process");
}

static void kernel_thread(void)
{
	char name[64] = "";
	FILE *f = fopen("/proc/2/comm", "r");

	if (f) {
		(void)!fgets(name, sizeof(name), f);
		fclose(f);
	}
	if (strcmp(name, "kthreadd\n"))
		printf("process 2 is no kernel thread here (a container): not looked at\n");
	else
		check_refused(2, &no_library, ERR_UNSUPPORTED, "a thread of the kernel");
}

static void zombie(void)
{
	pid_t pid = fork_child(end_at_once);
	siginfo_t info;

	waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
	check_refused(pid, &no_library, ERR_NOT_FOUND, "zombie");
	end_child(pid);
}

static void stopped_process(void)
{
	pid_t pid = fork_child(stop_oneself);
	int status;

	waitpid(pid, &status, WUNTRACED);
	check_refused(pid, &no_library, ERR_FAILED, "is stopped");
	end_child(pid);
}

static void traced_process(void)
{
	pid_t pid = fork_child(ask_to_be_traced);
	char expected[100];
	int status;

	waitpid(pid, &status, 0);
	snprintf(expected, sizeof(expected), "is traced by process %d", getpid());
	/* A traced process is stopped, too, but not by a signal that SIGCONT would end. */
	check_refused(pid, &no_library, ERR_FAILED, expected);
	end_child(pid);
}

static pid_t thread_tid;
static int thread_pipe[2];

static void *thread_body(void *arg)
{
	char c;

	__atomic_store_n(&thread_tid, gettid(), __ATOMIC_RELEASE); /* pairs with thread_id() */
	(void)!read(thread_pipe[0], &c, 1);
	return arg;
}

static void thread_id(void)
{
	pthread_t t;

	CHECK(pipe(thread_pipe) == 0);
	pthread_create(&t, NULL, thread_body, NULL);
	while (!__atomic_load_n(&thread_tid, __ATOMIC_ACQUIRE))
		sched_yield();
	check_refused(thread_tid, &no_library, ERR_UNSUPPORTED, "is a thread of process");
	CHECK(write(thread_pipe[1], "x", 1) == 1);
	pthread_join(t, NULL);
}

static void library_paths(void)
{
	struct inject_options relative = no_library, none = no_library;
	pid_t pid = fork_child(wait_for_ever);
	struct err err = {0};

	relative.library = "libweir.so";
	none.library = NULL;
	check_refused(pid, &no_library, ERR_NOT_FOUND, "/nonexistent/libweir.so");
	check_refused(pid, &relative, ERR_FAILED, "must be absolute");
	check_refused(pid, &none, ERR_UNSUPPORTED, "no hook library");
	CHECK_EQ(inject_detach(pid, &no_library, &err), ERR_NOT_FOUND);
	CHECK(strstr(err.text, "is not loaded"));
	/* It runs on, untraced. */
	CHECK(inject_thread_state(pid, pid) == 'S');
	CHECK_EQ(inject_check_process(pid, &err), 0);
	end_child(pid);
}

/* --- symbols ---------------------------------------------------------------------------------- */

static void own_symbols(void)
{
	struct remote_symbols *s = NULL;
	struct err err = {0};
	uint64_t in_malloc, in_read;
	void *libc = dlopen("libc.so.6", RTLD_NOW); /* not what a sanitizer has put before it */
	int on_stack = 0;

	CHECK_EQ(remote_symbols_open(&s, getpid(), &err), 0);
	if (!s)
		return;
	CHECK(s->is_64);
	CHECK_EQ(remote_symbols_find(s, "libc.so.6", "fputs"), (uint64_t)dlsym(libc, "fputs"));
	CHECK_EQ(remote_symbols_find(s, NULL, "no_such_function"), 0);
	CHECK_EQ(remote_symbols_find(s, "libz.so.1", "fputs"), 0);
	CHECK(remote_symbols_has_image(s, "libc.so.6"));
	CHECK(!remote_symbols_has_image(s, "libweir.so"));
	in_malloc = remote_symbols_find(s, "libc.so.6", "malloc");
	in_read = remote_symbols_find(s, "libc.so.6", "read");
	CHECK(in_malloc && in_read);
	CHECK_EQ(remote_symbols_place(s, in_malloc), REMOTE_PLACE_DELICATE);
	/* Static functions of the same object file, which have no names: before and between. */
	CHECK_EQ(remote_symbols_place(s, in_malloc - 64), REMOTE_PLACE_DELICATE);
	CHECK_EQ(remote_symbols_place(s, remote_symbols_find(s, "libc.so.6", "free") - 16),
		REMOTE_PLACE_DELICATE);
	CHECK_EQ(remote_symbols_place(s, remote_symbols_find(s, "libc.so.6", "fork") + 4),
		REMOTE_PLACE_DELICATE);
	CHECK_EQ(remote_symbols_place(s, in_read), REMOTE_PLACE_LIBC);
	CHECK_EQ(remote_symbols_place(s, remote_symbols_find(s, NULL, "__tls_get_addr")),
		REMOTE_PLACE_DELICATE);
	CHECK_EQ(remote_symbols_place(s, (uint64_t)own_symbols), REMOTE_PLACE_PROGRAM);
	CHECK_EQ(remote_symbols_place(s, (uint64_t)&on_stack), REMOTE_PLACE_NOWHERE);
	remote_symbols_close(s);
	dlclose(libc);
}

/* --- frames ---------------------------------------------------------------------------------- */

static uint64_t word_at(const struct remote_frame *f, uint64_t addr, size_t bytes)
{
	uint64_t value = 0;

	memcpy(&value, f->bytes + (addr - f->addr), bytes);
	return value;
}

static void make_state(struct remote_state *s, bool is_64)
{
	memset(s, 0, sizeof(*s));
	s->thread.is_64 = is_64;
	s->n_xstate = 2696;
	s->n_x87 = 108;
	s->signal_mask = 0x1234;
	memset(s->xstate + 160, 0xab, 16); /* xmm0 */
	s->xstate[512] = 3;		   /* x87 and SSE are in use */
	memset(s->x87, 0x7f, s->n_x87);
}

static void frame_64(void)
{
	static struct remote_frame f;
	static struct remote_state s;
	struct err err = {0};
	uint64_t fp;

	for (uint64_t top = 0x7fff00010000; top < 0x7fff00010040; top += 4) {
		make_state(&s, true);
		s.thread.regs.r64.rip = 0x401002;
		s.thread.regs.r64.rsp = top;
		s.thread.regs.r64.orig_rax = (unsigned long long)-1;
		s.thread.regs.r64.rax = 77;
		CHECK_EQ(remote_frame_build(&f, &s, top, 0xabc0, "text", &err), 0);
		CHECK_EQ((f.addr + 8) % 16, 0);
		CHECK(f.addr + f.n <= top - 128);
		CHECK_EQ(word_at(&f, f.addr, 8), 0xabc0);
		CHECK(!strcmp((char *)f.bytes + (f.text - f.addr), "text"));
		CHECK_EQ(word_at(&f, f.addr + 8 + 40 + 8 * REG_RIP, 8), 0x401002);
		CHECK_EQ(word_at(&f, f.addr + 8 + 40 + 8 * REG_RSP, 8), top);
		CHECK_EQ(word_at(&f, f.addr + 8 + 40 + 8 * REG_RAX, 8), 77);
		CHECK_EQ(word_at(&f, f.addr + 8 + 296, 8), 0x1234);
		fp = word_at(&f, f.addr + 8 + 40 + 184, 8);
		CHECK_EQ(fp % 64, 0);
		CHECK_EQ(word_at(&f, fp + 160, 4), 0xabababab);
		CHECK_EQ(word_at(&f, fp + 464, 4), 0x46505853);
		CHECK_EQ(word_at(&f, fp + 480, 4), 576); /* no more than is in use */
		CHECK_EQ(word_at(&f, fp + 576, 4), 0x46505845);
	}
	/* A system call is made again. */
	s.thread.regs.r64.orig_rax = 7;
	s.thread.regs.r64.rax = (unsigned long long)-512;
	CHECK_EQ(remote_frame_build(&f, &s, 0x7fff00010000, 0xabc0, NULL, &err), 0);
	CHECK_EQ(word_at(&f, f.addr + 8 + 40 + 8 * REG_RIP, 8), 0x401000);
	CHECK_EQ(word_at(&f, f.addr + 8 + 40 + 8 * REG_RAX, 8), 7);
}

static void frame_32(void)
{
	static struct remote_frame f;
	static struct remote_state s;
	struct err err = {0};
	uint64_t fp;

	make_state(&s, false);
	s.thread.regs.r32.eip = 0x8049002;
	s.thread.regs.r32.orig_eax = 3;
	s.thread.regs.r32.eax = (uint32_t)-516;
	CHECK_EQ(remote_frame_build(&f, &s, 0xffffc001, 0xabc0, "text", &err), 0);
	CHECK_EQ((f.addr + 4) % 16, 0);
	CHECK_EQ(word_at(&f, f.addr, 4), 0xabc0);
	CHECK_EQ(word_at(&f, f.addr + 144 + 76, 4), 0x8049000);
	CHECK_EQ(word_at(&f, f.addr + 144 + 64, 4), 3);
	fp = word_at(&f, f.addr + 144 + 96, 4);
	CHECK_EQ((fp + 112) % 64, 0);
	CHECK_EQ(word_at(&f, fp, 4), 0x7f7f7f7f);
	CHECK_EQ(word_at(&f, fp + 112 + 160, 4), 0xabababab);
	CHECK_EQ(word_at(&f, f.addr + 144 + 108, 8), 0x1234);
}

static void frame_too_large(void)
{
	static char text[REMOTE_FRAME_BYTES_MAX];
	static struct remote_frame f;
	static struct remote_state s;
	struct err err = {0};

	memset(text, 'x', sizeof(text) - 1);
	make_state(&s, true);
	CHECK_EQ(remote_frame_build(&f, &s, 0x7fff00010000, 0, text, &err), ERR_LIMIT);
}

/* --- calls ----------------------------------------------------------------------------------- */

/* A child that is stopped, and what is needed to call something in it. */
struct subject {
	struct remote_thread thread;
	struct remote_symbols *symbols;
	struct remote_stub stub;
};

static bool take_gap(void *ctx, uint64_t addr)
{
	struct subject *s = ctx;

	return remote_stub_fits(&s->thread, addr) &&
	       remote_stub_plant(&s->thread, &s->stub, addr, NULL) == 0;
}

static bool subject_init(struct subject *s, pid_t pid)
{
	struct err err = {0};
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	*s = (struct subject){.thread = {.pid = pid, .tid = pid, .is_64 = true}};
	s->thread.memory_fd = open(path, O_RDWR | O_CLOEXEC);
	CHECK_EQ(remote_symbols_open(&s->symbols, pid, &err), 0);
	CHECK_EQ(remote_thread_seize(&s->thread, &err), 0);
	CHECK_EQ(remote_thread_stop(&s->thread, clock_mono_ns() + 5 * SECOND, &err), 0);
	CHECK(remote_symbols_find_gap(s->symbols, REMOTE_STUB_BYTES, take_gap, s));
	return s->thread.is_stopped && s->stub.addr;
}

static void subject_release(struct subject *s)
{
	remote_stub_remove(&s->thread, &s->stub);
	remote_thread_let_go(&s->thread);
	remote_symbols_close(s->symbols);
	close(s->thread.memory_fd);
}

static int test_pipe[2], back_pipe[2];

static void open_pipes(void)
{
	CHECK(pipe(test_pipe) == 0 && pipe(back_pipe) == 0);
}

static void close_pipes(void)
{
	for (int i = 0; i < 2; i++) {
		close(test_pipe[i]);
		close(back_pipe[i]);
	}
}

/* The child waits, and ends with 0 when the wait ended as it should. */
static void read_one_byte(void)
{
	char c;

	_exit(read(test_pipe[0], &c, 1) == 1 && c == 'x' ? 0 : 1);
}

/* Until the child sleeps, which it does in the wait that the test is about. */
static void wait_until_asleep(pid_t pid)
{
	for (int i = 0; i < 5000 && inject_thread_state(pid, pid) != 'S'; i++)
		usleep(1000);
	usleep(2000);
}

__attribute__((noinline)) static long count_text(const char *text, long add)
{
	return (long)strlen(text) + add;
}

static void call_and_back(void)
{
	struct remote_call call = {.name = "count_text",
		.function = (uint64_t)count_text,
		.text = "seven..",
		.arg = 1000,
		.timeout_ns = 10 * SECOND};
	struct user_regs_struct before;
	struct subject s;
	struct err err = {0};
	pid_t pid;
	int status = -1;

	open_pipes();
	pid = fork_child(read_one_byte);
	wait_until_asleep(pid);
	if (subject_init(&s, pid)) {
		before = s.thread.regs.r64;
		CHECK(remote_thread_is_restarting(&s.thread));
		for (uint64_t i = 0; i < 5; i++) {
			uint64_t result = 0;

			call.arg = 1000 + i;
			CHECK_EQ(remote_call(&s.thread, &s.stub, &call, &result, &err), 0);
			CHECK_EQ(result, 1007 + i);
			CHECK(!memcmp(&before, &s.thread.regs.r64, sizeof(before)));
		}
	}
	subject_release(&s);
	CHECK(write(test_pipe[1], "x", 1) == 1);
	waitpid(pid, &status, 0);
	CHECK_EQ(status, 0);
	close_pipes();
}

static void one_system_call(void)
{
	const uint64_t args[6] = {0};
	struct subject s;
	struct err err = {0};
	int64_t result = 0;
	int status = -1;
	pid_t pid;

	open_pipes();
	pid = fork_child(read_one_byte);
	wait_until_asleep(pid);
	if (subject_init(&s, pid)) {
		CHECK_EQ(remote_syscall(&s.thread, &s.stub, SYS_getppid, args, &result, &err), 0);
		CHECK_EQ(result, getpid());
	}
	subject_release(&s);
	CHECK(write(test_pipe[1], "x", 1) == 1);
	waitpid(pid, &status, 0);
	CHECK_EQ(status, 0);
	close_pipes();
}

/* A signal during the call waits until it is over, and then ends the wait as it always would. */
static void got_signal(int sig)
{
	(void)sig;
	(void)!write(back_pipe[1], "s", 1);
}

static void pause_once(void)
{
	struct sigaction a = {.sa_handler = got_signal};

	sigaction(SIGUSR1, &a, NULL);
	_exit(pause() == -1 && errno == EINTR ? 0 : 1);
}

static long signal_oneself(void)
{
	struct pollfd {
		int fd;
		short events, revents;
	} p = {.fd = back_pipe[0], .events = 1};

	kill(getpid(), SIGUSR1);
	return syscall(SYS_poll, &p, 1, 0); /* 1 if the handler has run already */
}

static void signal_during_call(void)
{
	struct remote_call call = {.name = "signal_oneself",
		.function = (uint64_t)signal_oneself,
		.timeout_ns = 10 * SECOND};
	uint64_t result = 99;
	struct subject s;
	struct err err = {0};
	int status = -1;
	pid_t pid;

	open_pipes();
	pid = fork_child(pause_once);
	wait_until_asleep(pid);
	if (subject_init(&s, pid)) {
		CHECK_EQ(remote_call(&s.thread, &s.stub, &call, &result, &err), 0);
		CHECK_EQ(result, 0);
	}
	subject_release(&s);
	waitpid(pid, &status, 0);
	CHECK_EQ(status, 0);
	close_pipes();
}

/* The stub's bytes are as before when all is over. */
static void stub_is_removed(void)
{
	uint8_t before[REMOTE_STUB_BYTES], after[REMOTE_STUB_BYTES];
	struct subject s;
	uint64_t addr;
	pid_t pid;

	open_pipes();
	pid = fork_child(read_one_byte);
	wait_until_asleep(pid);
	if (subject_init(&s, pid)) {
		addr = s.stub.addr;
		CHECK(remote_read(&s.thread, addr, after, sizeof(after)));
		memcpy(before, s.stub.original, sizeof(before));
		CHECK(memcmp(before, after, sizeof(before)));
		remote_stub_remove(&s.thread, &s.stub);
		CHECK(remote_read(&s.thread, addr, after, sizeof(after)));
		CHECK(!memcmp(before, after, sizeof(before)));
	}
	subject_release(&s);
	end_child(pid);
	close_pipes();
}

static pid_t traced_pid;

static void trace_for_a_moment(void)
{
	ptrace(PTRACE_SEIZE, traced_pid, 0, 0);
	(void)!write(test_pipe[1], "x", 1);
	usleep(400000);
}

/* It is waited for, and the next thing that is wrong is told. */
static void traced_for_a_moment(void)
{
	pid_t tracer;
	char c;

	open_pipes();
	traced_pid = fork_child(wait_for_ever);
	tracer = fork_child(trace_for_a_moment);
	CHECK(read(test_pipe[0], &c, 1) == 1);
	check_refused(traced_pid, &no_library, ERR_NOT_FOUND, "/nonexistent/libweir.so");
	end_child(traced_pid);
	end_child(tracer);
	close_pipes();
}

/* --- moments --------------------------------------------------------------------------------- */

static const char *dlopen_hindrance(void (*body)(void), const char **stack)
{
	const char *why = "could not be tested";
	struct moments *m;
	struct subject s;
	pid_t pid;

	open_pipes();
	pid = fork_child(body);
	wait_until_asleep(pid);
	if (subject_init(&s, pid)) {
		m = moments_new(s.symbols);
		why = moment_hinders_dlopen(m, &s.thread);
		if (stack)
			*stack = moment_hinders_own_stack(m, &s.thread);
		moments_free(m);
	}
	subject_release(&s);
	end_child(pid);
	close_pipes();
	return why;
}

static int block_in_callback(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	char c;

	(void)info;
	(void)bytes;
	(void)arg;
	return read(test_pipe[0], &c, 1) == 1;
}

static void block_in_loader(void)
{
	dl_iterate_phdr(block_in_callback, NULL);
}

static void block_before_fork(void)
{
	block_in_callback(NULL, 0, NULL);
}

static void block_in_fork(void)
{
	pthread_atfork(block_before_fork, NULL, NULL);
	fork();
}

/* Old return addresses of the loader lie in it; they are no callers. */
static void block_above_old_stack(void)
{
	volatile char room[8192];

	room[0] = 0;
	block_in_callback(NULL, 0, NULL);
	room[1] = room[0];
	(void)room[1];
}

static void fill_stack(void)
{
	const unsigned char *trap = dlsym(RTLD_DEFAULT, "__tls_get_addr");
	const void *volatile words[2048];

	while (*trap != 0xe8) /* call */
		trap++;
	for (size_t i = 0; i < 2048; i++)
		words[i] = trap + 5;
	(void)words[7];
}

static void block_above_filled_stack(void)
{
	fill_stack();
	block_above_old_stack();
}

static char coroutine_stack[65536];
static ucontext_t coroutine_context, back_context;

static void coroutine_body(void)
{
	block_in_callback(NULL, 0, NULL);
}

static void block_on_other_stack(void)
{
	getcontext(&coroutine_context);
	coroutine_context.uc_stack.ss_sp = coroutine_stack;
	coroutine_context.uc_stack.ss_size = sizeof(coroutine_stack);
	coroutine_context.uc_link = &back_context;
	makecontext(&coroutine_context, coroutine_body, 0);
	swapcontext(&back_context, &coroutine_context);
}

/* As large as a thread's, but what lies below it is in use. */
static void block_on_local_stack(void)
{
	char stack[65536];

	getcontext(&coroutine_context);
	coroutine_context.uc_stack.ss_sp = stack;
	coroutine_context.uc_stack.ss_size = sizeof(stack);
	coroutine_context.uc_link = &back_context;
	makecontext(&coroutine_context, coroutine_body, 0);
	swapcontext(&back_context, &coroutine_context);
}

static void good_moment(void)
{
	const char *stack = "";

	CHECK(!dlopen_hindrance(read_one_byte, &stack));
	CHECK(!stack);
	CHECK(!dlopen_hindrance(block_above_filled_stack, NULL));
}

static void bad_moments(void)
{
	CHECK(dlopen_hindrance(block_in_loader, NULL));
	CHECK(dlopen_hindrance(block_in_fork, NULL));
}

static void foreign_stack(void)
{
	const char *stack = NULL;

	dlopen_hindrance(block_on_other_stack, &stack);
	CHECK(stack && strstr(stack, "nothing is known"));
	stack = NULL;
	dlopen_hindrance(block_on_local_stack, &stack);
	CHECK(stack && strstr(stack, "nothing is known"));
}

/* --- the program that injects ---------------------------------------------------------------- */

struct move {
	uint64_t from, to;
};

static uint64_t move_pc(void *ctx, pid_t pid, uint64_t pc)
{
	const struct move *move = ctx;

	(void)pid;
	return pc >= move->from && pc < move->to ? pc - move->from + move->to : pc;
}

static int inject_by_arguments(int argc, char **argv)
{
	struct move move = {argc > 8 ? strtoull(argv[7], NULL, 16) : 0,
		argc > 8 ? strtoull(argv[8], NULL, 16) : 0};
	struct inject_options options = {.library = argv[3],
		.library32 = argv[4],
		.place = argv[5],
		.moved_pc = move_pc,
		.ctx = &move};
	pid_t pid = (pid_t)atoi(argv[2]);
	int n = argc > 6 ? atoi(argv[6]) : 1;
	bool attach = strcmp(argv[1], "detach") != 0, detach = strcmp(argv[1], "attach") != 0;

	for (int i = 0; i < n; i++) {
		struct err err = {0};
		int rc = attach ? inject_attach(pid, &options, &err) : 0;

		if (rc == 0 && detach)
			rc = inject_detach(pid, &options, &err);
		if (rc < 0) {
			fprintf(stderr, "%s\n", err.text);
			return 1;
		}
	}
	return 0;
}

static const struct test tests[] = {
	{"a process that is not there is refused", no_such_process},
	{"a kernel thread is refused", kernel_thread},
	{"a zombie is refused", zombie},
	{"a stopped process is refused", stopped_process},
	{"a process that is traced already is refused, and its tracer named", traced_process},
	{"a tracer that goes soon is waited for", traced_for_a_moment},
	{"the number of a thread is refused", thread_id},
	{"a library that cannot be loaded is refused before anything is stopped", library_paths},
	{"functions, and where locks may be held, are found in our own process", own_symbols},
	{"the frame of a 64-bit call is what rt_sigreturn needs", frame_64},
	{"the frame of a 32-bit call is what rt_sigreturn needs", frame_32},
	{"a frame has a maximum", frame_too_large},
	{"a thread in a system call calls a function and is in its call again", call_and_back},
	{"a thread makes a system call for us", one_system_call},
	{"a signal that comes during a call is delivered after it", signal_during_call},
	{"the bytes that a call needs are taken away again", stub_is_removed},
	{"a thread that waits is at a good moment, whatever its stack once held", good_moment},
	{"a thread in the loader or in fork is at a bad moment", bad_moments},
	{"a coroutine's stack is told from a thread's own", foreign_stack},
};

int main(int argc, char **argv)
{
	if (argc >= 6)
		return inject_by_arguments(argc, argv);
	return RUN_TESTS(tests);
}
