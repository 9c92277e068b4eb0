/* SPDX-License-Identifier: MIT */
/* What code inside other programs shares, against what libc and the kernel say of this program. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "rt/base/proc_self.c"
#include "rt/base/proc_text.c" /* they are in no library of ours */
#include "rt/base/stack_bounds.c"

/* --- /proc --------------------------------------------------------------------------------- */

/* Static: nothing is mapped between the two readings. */
static char expected_text[1 << 20];

static void read_expected(void)
{
	int fd = open("/proc/self/maps", O_RDONLY);
	size_t n = 0;
	ssize_t got;

	while ((got = read(fd, expected_text + n, sizeof(expected_text) - n - 1)) > 0)
		n += (size_t)got;
	expected_text[n] = 0;
	close(fd);
}

/* As libc reads the line. */
static struct maps_line parse_expected(const char *text, char *path)
{
	struct maps_line l = {0};
	unsigned long start, end, offset, inode;
	unsigned major, minor;
	char prot[5];

	path[0] = 0;
	sscanf(text, "%lx-%lx %4s %lx %x:%x %lu %4095[^\n]", &start, &end, prot, &offset, &major,
		&minor, &inode, path);
	l.start = start;
	l.end = end;
	l.prot = (prot[0] == 'r' ? PROT_READ : 0) | (prot[1] == 'w' ? PROT_WRITE : 0) |
		 (prot[2] == 'x' ? PROT_EXEC : 0);
	l.is_shared = prot[3] == 's';
	l.is_main_stack = !strcmp(path, "[stack]");
	l.offset = offset;
	l.device = (uint64_t)major << 32 | minor;
	l.inode = inode;
	return l;
}

static void compare_lines(const struct maps_line *a, const struct maps_line *b)
{
	CHECK_EQ(a->start, b->start);
	CHECK_EQ(a->end, b->end);
	CHECK_EQ(a->prot, b->prot);
	CHECK_EQ(a->is_shared, b->is_shared);
	CHECK_EQ(a->is_main_stack, b->is_main_stack);
	CHECK_EQ(a->offset, b->offset);
	CHECK_EQ(a->device, b->device);
	CHECK_EQ(a->inode, b->inode);
}

static void read_all_maps(bool has_page)
{
	static char path[4096], expected_path[4096];
	struct maps_line line = {.path = path, .path_bytes = sizeof(path)};
	struct proc_text t;
	char *text = expected_text, *end;
	unsigned n_stacks = 0, n = 0;

	read_expected();
	CHECK(maps_open(&t));
	if (!has_page) {
		t.buffer = t.small;
		t.buffer_bytes = sizeof(t.small);
	}
	for (; (end = strchr(text, '\n')); text = end + 1, n++) {
		struct maps_line expected;

		*end = 0;
		expected = parse_expected(text, expected_path);
		CHECK(maps_next(&t, &line));
		compare_lines(&line, &expected);
		CHECK_STR(path, expected_path);
		n_stacks += line.is_main_stack;
	}
	CHECK(!maps_next(&t, &line));
	CHECK(n > 10);
	CHECK_EQ(n_stacks, 1);
	proc_text_close(&t);
}

static void maps_are_read(void)
{
	read_all_maps(true);
	read_all_maps(false);
}

static void a_name_is_cut_off(void)
{
	char path[5];
	struct maps_line line = {.path = path, .path_bytes = sizeof(path)};
	uintptr_t here = (uintptr_t)&line;

	CHECK(maps_find(here, &line));
	CHECK_STR(path, "[sta");
	CHECK(line.is_main_stack);
}

static void a_file_with_the_name_of_the_stack_is_none(void)
{
	char path[64];
	struct maps_line line = {0};
	void *p;
	int fd;

	snprintf(path, sizeof(path), "/tmp/weir %d [stack]", (int)getpid());
	fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	CHECK(fd >= 0 && ftruncate(fd, PAGE_BYTES) == 0);
	p = mmap(NULL, PAGE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	unlink(path);
	CHECK(p != MAP_FAILED);
	CHECK(maps_find((uintptr_t)p, &line));
	CHECK(line.is_shared && line.inode && !line.is_main_stack);
	munmap(p, PAGE_BYTES);
	close(fd);
}

static void addresses_are_found(void)
{
	static int variable;
	struct maps_line line = {0}, asked = {0};
	struct proc_text t;

	CHECK(maps_find((uintptr_t)&variable, &line));
	CHECK((uintptr_t)&variable - line.start < line.end - line.start);
	CHECK(line.prot & PROT_WRITE);
	CHECK(maps_open(&t));
	if (maps_query(&t, (uintptr_t)&variable, &asked))
		compare_lines(&asked, &line);
	CHECK(!maps_query(&t, 0, &asked));
	proc_text_close(&t);
	CHECK(!maps_find(0, &line));
}

static void numbers_are_found(void)
{
	struct proc_text t;
	uint64_t n = 0;

	CHECK(proc_text_open(&t, "/proc/self/status"));
	CHECK(proc_text_seek(&t, "\nPid:\t"));
	CHECK(proc_text_number(&t, 10, '\n', &n));
	CHECK_EQ(n, getpid());
	CHECK(!proc_text_seek(&t, "\nNo such line:\t"));
	CHECK_EQ(proc_text_byte(&t), -1);
	proc_text_close(&t);
	CHECK(proc_text_open(&t, "/proc/self/comm"));
	CHECK(!proc_text_number(&t, 10, '\n', &n));
	proc_text_close(&t);
	CHECK(!proc_text_open(&t, "/proc/self/none"));
}

struct extent {
	uintptr_t address, start, end;
};

static void take_extent(void *ctx, uintptr_t start, uintptr_t end)
{
	struct extent *e = ctx;

	if (e->address - start < end - start) {
		e->start = start;
		e->end = end;
	}
}

static void modules_and_gaps_are_found(void)
{
	static int variable = 1;
	struct extent e = {.address = (uintptr_t)modules_and_gaps_are_found};
	uintptr_t gap;

	CHECK(maps_each_module(take_extent, &e));
	CHECK(e.start && (uintptr_t)&variable - e.start < e.end - e.start);
	gap = maps_find_gap(e.start, e.end, 4 * PAGE_BYTES, (uintptr_t)1 << 31);
	CHECK(gap && gap % PAGE_BYTES == 0);
	CHECK(raw_memory((void *)gap, 4 * PAGE_BYTES, PROT_READ, MAP_FIXED_NOREPLACE) == (void *)gap);
	CHECK(!raw_memory((void *)gap, PAGE_BYTES, PROT_READ, MAP_FIXED_NOREPLACE));
	munmap((void *)gap, 4 * PAGE_BYTES);
	CHECK_EQ(tasks_count(), 1);
}

/* --- stacks -------------------------------------------------------------------------------- */

static bool find_own(uintptr_t sp, struct stack_bounds *b)
{
	uintptr_t block = (uintptr_t)__builtin_thread_pointer();
	struct maps_line line = {0};

	return maps_find(block, &line) && stack_find_by_control_block(block, sp, &line, b);
}

static void the_main_stack_is_known(void)
{
	struct stack_bounds b = {0};
	struct maps_line line = {0};
	uintptr_t sp = (uintptr_t)__builtin_frame_address(0);

	CHECK(maps_find(sp, &line) && line.is_main_stack);
	stack_bounds_of_main(&line, 0, &b);
	CHECK(b.low < sp && sp < b.high);
	CHECK(b.low <= line.start && b.high == line.end);
	stack_bounds_of_main(&line, line.start, &b);
	CHECK_EQ(b.low, line.start);
	CHECK(!find_own(sp, &b));
	b = (struct stack_bounds){0};
	CHECK(stack_find_main(&b));
	CHECK(b.low < sp && sp < b.high && b.high == line.end);
}

static void *in_thread(void *given)
{
	uintptr_t sp = (uintptr_t)__builtin_frame_address(0);
	struct stack_bounds b = {0};
	pthread_attr_t attr;
	size_t bytes, guard;
	void *start;

	pthread_getattr_np(pthread_self(), &attr);
	pthread_attr_getstack(&attr, &start, &bytes);
	pthread_attr_getguardsize(&attr, &guard);
	pthread_attr_destroy(&attr);
	CHECK(find_own(sp, &b));
	CHECK(b.low < sp && sp < b.high);
	CHECK(b.low <= (uintptr_t)start && b.low + guard >= (uintptr_t)start);
	CHECK(b.high <= (uintptr_t)start + bytes);
	if (given)
		CHECK_EQ(b.low, (uintptr_t)given);
	b.low = b.high = 0;
	CHECK(find_own((uintptr_t)&b + ((uintptr_t)1 << 30), &b)); /* on another stack just now */
	CHECK(b.low < sp && sp < b.high);
	return NULL;
}

/* Low in memory, as in a program with a fixed place, a pointer may be taken for a size. */
static void a_null_is_no_start_of_a_stack(void)
{
	uintptr_t *block = mmap((void *)0x200000, PAGE_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	uintptr_t at = (uintptr_t)block, start = at - 8 * PAGE_BYTES;
	struct maps_line line = {.start = at, .end = at + PAGE_BYTES};
	struct stack_bounds b = {0};

	CHECK(block != MAP_FAILED);
	if (block == MAP_FAILED)
		return;
	block[20] = 0;
	block[21] = at + 64;
	CHECK(!stack_find_by_control_block(at, start + 64, &line, &b));
	block[40] = start;
	block[41] = 9 * PAGE_BYTES;
	CHECK(stack_find_by_control_block(at, start + 64, &line, &b));
	CHECK_EQ(b.low, start);
	CHECK_EQ(b.high, at);
	munmap(block, PAGE_BYTES);
}

static void the_stack_of_a_thread_is_known(void)
{
	static uint8_t given[256 << 10] __attribute__((aligned(PAGE_BYTES)));
	pthread_attr_t attr;
	pthread_t thread;

	CHECK_EQ(pthread_create(&thread, NULL, in_thread, NULL), 0);
	pthread_join(thread, NULL);
	pthread_attr_init(&attr);
	CHECK_EQ(pthread_attr_setstack(&attr, given, sizeof(given)), 0);
	CHECK_EQ(pthread_create(&thread, &attr, in_thread, given), 0);
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attr);
}

static struct stack_bounds in_handler;
static bool has_signal_stack;

static void on_signal(int number)
{
	(void)number;
	has_signal_stack = stack_find_signal((uintptr_t)__builtin_frame_address(0), &in_handler);
}

static void a_signal_stack_is_known(void)
{
	static uint8_t stack[64 << 10];
	stack_t ours = {.ss_sp = stack, .ss_size = sizeof(stack)}, theirs;
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK}, old;
	struct stack_bounds b;

	sigaltstack(&ours, &theirs);
	sigaction(SIGUSR1, &action, &old);
	raise(SIGUSR1);
	sigaction(SIGUSR1, &old, NULL);
	CHECK(has_signal_stack);
	CHECK_EQ(in_handler.low, (uintptr_t)stack);
	CHECK_EQ(in_handler.high, (uintptr_t)stack + sizeof(stack));
	CHECK(!stack_find_signal((uintptr_t)__builtin_frame_address(0), &b));
	sigaltstack(&theirs, NULL);
	CHECK(theirs.ss_size || !stack_find_signal((uintptr_t)stack, &b));
}

/* --- small things -------------------------------------------------------------------------- */

static void texts(void)
{
	char to[6] = "xxxxx", *none[] = {NULL};
	char *environment[] = {(char *)"AB=1", (char *)"A", (char *)"A=2=3", (char *)"A=4", NULL};

	text_copy(to, sizeof(to), "ab");
	CHECK(!memcmp(to, "ab\0\0\0\0", 6));
	text_copy(to, sizeof(to), "abcdefgh");
	CHECK_STR(to, "abcde");
	CHECK(text_equals("", "") && text_equals("ab", "ab"));
	CHECK(!text_equals("ab", "abc") && !text_equals("abc", "ab"));
	CHECK(text_ends_with("a.weir", 6, ".weir") && text_ends_with(".weir", 5, ".weir"));
	CHECK(!text_ends_with("weir", 4, ".weir") && !text_ends_with("a.weir", 5, ".weir"));
	CHECK_EQ(text_length(NULL), 0);
	CHECK_STR(environment_find(environment, "A"), "2=3");
	CHECK_STR(environment_find(environment, "AB"), "1");
	CHECK(!environment_find(environment, "B") && !environment_find(none, "A"));
	CHECK(!environment_find(NULL, "A"));
}

static void texts_are_made(void)
{
	char to[12];
	struct text t = {to, 0, sizeof(to)};

	text_add(&t, "ab");
	text_add_char(&t, '.');
	text_add_number(&t, 0);
	CHECK_STR(to, "ab.0");
	text_add_number(&t, UINT64_MAX);
	CHECK_STR(to, "ab.01844674");
	text_add(&t, "c");
	CHECK_EQ(t.n, sizeof(to) - 1);
	CHECK_STR(to, "ab.01844674");
	CHECK_EQ(text_number("120x3"), 120);
	CHECK_EQ(text_number(NULL) + text_number("") + text_number("x"), 0);
}

static void pages(void)
{
	CHECK_EQ(PAGE_DOWN(8191), 4096);
	CHECK_EQ(PAGE_UP(4097), 8192);
	CHECK_EQ(PAGE_UP(4096), 4096);
}

static uint32_t word;

static void *wakes(void *arg)
{
	__atomic_store_n(&word, 1, __ATOMIC_RELEASE);
	futex_wake_one(&word, FUTEX_PRIVATE_FLAG);
	return arg;
}

static void waiting_ends(void)
{
	pthread_t thread;

	futex_wait(&word, 1, 0, 999999999); /* is not 1 */
	futex_wait(&word, 0, 0, 1000000);
	wait_ns(1000);
	CHECK_EQ(pthread_create(&thread, NULL, wakes, NULL), 0);
	while (!__atomic_load_n(&word, __ATOMIC_ACQUIRE))
		futex_wait(&word, 0, FUTEX_PRIVATE_FLAG, 999999999);
	pthread_join(thread, NULL);
	CHECK_EQ(word, 1);
}

static void signals_wait(void)
{
	sigset_t now;
	uint64_t old;

	signals_block(&old);
	sigprocmask(SIG_SETMASK, NULL, &now);
	CHECK(sigismember(&now, SIGTERM) && sigismember(&now, SIGSEGV));
	signals_unblock(&old);
	sigprocmask(SIG_SETMASK, NULL, &now);
	CHECK(!sigismember(&now, SIGSEGV));
}

static void errors_have_the_kernels_numbers(void)
{
	CHECK_EQ(raw_open("/none/at/all", O_RDONLY), -ENOENT);
	CHECK_EQ(raw_open("/dev/null/x", O_RDONLY), -ENOTDIR);
	CHECK_EQ(raw_call(SYS_munmap, 1, 1), -EINVAL);
	CHECK_EQ(raw_pid(), getpid());
	CHECK_EQ(raw_tid(), getpid());
}

int main(void)
{
	static const struct test tests[] = {
		{"every mapping is read as libc reads it, with a page and with little room",
			maps_are_read},
		{"a name that is too long is cut off", a_name_is_cut_off},
		{"a file with the name of the stack is not the stack",
			a_file_with_the_name_of_the_stack_is_none},
		{"the mapping of an address is found", addresses_are_found},
		{"numbers in other files of /proc are found", numbers_are_found},
		{"modules, room near to them and threads are found", modules_and_gaps_are_found},
		{"the main stack is known", the_main_stack_is_known},
		{"the stack of a thread is known, also one that the program gave it",
			the_stack_of_a_thread_is_known},
		{"a null is no start of a stack", a_null_is_no_start_of_a_stack},
		{"a signal stack is known on it", a_signal_stack_is_known},
		{"texts are compared, cut and found", texts},
		{"texts are made, and cut off where there is no room", texts_are_made},
		{"sizes are rounded to pages", pages},
		{"waiting ends by time, by a change and by being woken", waiting_ends},
		{"signals wait while they are blocked", signals_wait},
		{"errors have the kernel's numbers", errors_have_the_kernels_numbers},
	};

	return RUN_TESTS(tests);
}
