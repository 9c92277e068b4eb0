/* SPDX-License-Identifier: MIT */
/* weir-test: tsan */
/* /proc/PID/maps from hand-made texts, and the rest of /proc on ourselves and our children. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sysmacros.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "check.h"
#include "process/proc.h"

#define ROWS_MAX 64

struct rows {
	size_t n;
	struct proc_mapping row[ROWS_MAX];
	char path[ROWS_MAX][300];
};

static void keep(void *ctx, const struct proc_mapping *m)
{
	struct rows *r = ctx;

	if (r->n == ROWS_MAX)
		return;
	snprintf(r->path[r->n], sizeof(r->path[0]), "%s", m->path);
	r->row[r->n++] = *m;
}

static struct rows parse(const char *text)
{
	struct rows r = {0};

	proc_parse_maps((struct span){(const uint8_t *)text, strlen(text)}, keep, &r);
	return r;
}

static void test_lines(void)
{
	struct rows r = parse("55d0c0a00000-55d0c0a25000 r-xp 00002000 fd:01 1835015"
			      "                    /usr/bin/cat\n"
			      "7ffd1000-7ffd2000 rw-p 00000000 00:00 0                   [stack]\n"
			      "7f0000000000-7f0000001000 rwxs 00000000 00:00 0 \n"
			      "7f0000002000-7f0000003000 ---p 00000000 00:00 0");

	CHECK_EQ(r.n, 4);
	CHECK_EQ(r.row[0].start, 0x55d0c0a00000);
	CHECK_EQ(r.row[0].end, 0x55d0c0a25000);
	CHECK_EQ(r.row[0].offset, 0x2000);
	CHECK_EQ(r.row[0].prot, PROT_READ | PROT_EXEC);
	CHECK_EQ(r.row[0].major, 0xfd);
	CHECK_EQ(r.row[0].minor, 1);
	CHECK_EQ(r.row[0].inode, 1835015);
	CHECK_STR(r.path[0], "/usr/bin/cat");
	CHECK_STR(r.path[1], "[stack]");
	CHECK_EQ(r.row[1].prot, PROT_READ | PROT_WRITE);
	CHECK_EQ(r.row[2].prot, PROT_READ | PROT_WRITE | PROT_EXEC);
	CHECK_STR(r.path[2], "");
	CHECK_EQ(r.row[3].prot, 0);
	CHECK_STR(r.path[3], "");
}

static void test_paths(void)
{
	struct rows r = parse("1000-2000 r-xp 00000000 08:02 5 /tmp/a b  c (deleted)\n"
			      "2000-3000 r-xp 00000000 00:01 6 /memfd:jit code (deleted)\n"
			      "3000-4000 r-xp 00000000 08:02 7 /tmp/line\\012break\n"
			      "4000-5000 r-xp 00000000 08:02 8 /tmp/\xff\xfe\n"
			      "5000-6000 rw-s 00000000 00:0e 9 anon_inode:[perf_event]\n");

	CHECK_EQ(r.n, 5);
	CHECK_STR(r.path[0], "/tmp/a b  c (deleted)");
	CHECK_STR(r.path[1], "/memfd:jit code (deleted)");
	CHECK_STR(r.path[2], "/tmp/line\\012break");
	CHECK_STR(r.path[3], "/tmp/\xff\xfe");
	CHECK_STR(r.path[4], "anon_inode:[perf_event]");
	CHECK_EQ(r.row[4].minor, 0x0e);
}

static void test_ends_of_memory(void)
{
	struct rows r = parse("08048000-08049000 r-xp 00000000 08:02 5 /bin/i386\n"
			      "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n"
			      "00000000-00001000 r-xp 00000000 00:00 0 \n");

	CHECK_EQ(r.n, 3);
	CHECK_EQ(r.row[0].start, 0x8048000);
	CHECK_EQ(r.row[1].start, 0xffffffffff600000u);
	CHECK_EQ(r.row[1].end, 0xffffffffff601000u);
	CHECK_EQ(r.row[1].prot, PROT_EXEC);
	CHECK_STR(r.path[1], "[vsyscall]");
	CHECK_EQ(r.row[2].start, 0);
}

static void test_junk(void)
{
	struct rows r = parse("\n\n"
			      "hello\n"
			      "1000-2000\n"
			      "1000-2000 r-xp 0 00:00\n"
			      "2000-1000 r-xp 00000000 00:00 5 /backwards\n"
			      "1000-1000 r-xp 00000000 00:00 5 /empty\n"
			      "zzzz-2000 r-xp 00000000 00:00 5 /x\n"
			      "1000-2000 r-xpq 00000000 00:00 5 /x\n"
			      "7000-8000 r-xp 00000000 00:00 5 /good\n"
			      "7000-80");

	CHECK_EQ(r.n, 1);
	CHECK_STR(r.path[0], "/good");
	CHECK_EQ(parse("").n, 0);
}

/* The rights of the line before must not leak into one that has too few letters. */
static void test_short_rights(void)
{
	struct rows r = parse("1000-2000 rwxp 00000000 00:00 5 /x\n"
			      "2000-3000 r 00000000 00:00 5 /y\n");

	for (size_t i = 1; i < r.n; i++)
		CHECK_EQ(r.row[i].prot, PROT_READ);
	CHECK(r.n >= 1);
}

static void test_no_text(void)
{
	struct rows r = {0};

	proc_parse_maps((struct span){NULL, 0}, keep, &r);
	CHECK_EQ(r.n, 0);
}

struct place {
	uint64_t addr;
	size_t n_found;
	struct proc_mapping found;
	char path[4096];
};

static void find_place(void *ctx, const struct proc_mapping *m)
{
	struct place *p = ctx;

	if (p->addr < m->start || p->addr >= m->end)
		return;
	p->n_found++;
	p->found = *m;
	snprintf(p->path, sizeof(p->path), "%s", m->path);
}

static void test_ourselves(void)
{
	struct place p = {.addr = (uintptr_t)test_ourselves};
	struct err err = {0};
	char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	struct stat st;

	CHECK(n > 0);
	self[n > 0 ? n : 0] = 0;
	CHECK_EQ(proc_each_mapping(getpid(), find_place, &p, &err), 0);
	CHECK_EQ(p.n_found, 1);
	CHECK_STR(p.path, self);
	CHECK_EQ(p.found.prot, PROT_READ | PROT_EXEC);
	CHECK_EQ(stat(self, &st), 0);
	CHECK_EQ(p.found.inode, st.st_ino);
}

/* A pid that was just now reaped. */
static pid_t gone_pid(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	return pid;
}

static void test_gone(void)
{
	struct rows r = {0};
	struct err err = {0};
	pid_t pid = gone_pid();
	char name[32] = "x", expected[64];

	CHECK_EQ(proc_each_mapping(pid, keep, &r, &err), ERR_NOT_FOUND);
	snprintf(expected, sizeof(expected), "'/proc/%d/maps'", pid);
	CHECK(!strncmp(err.text, expected, strlen(expected)));
	CHECK_EQ(r.n, 0);
	CHECK(!proc_exists(pid));
	CHECK(proc_exists(getpid()));
	proc_name(pid, pid, name, sizeof(name));
	CHECK_STR(name, "");
	proc_command_line(pid, name, sizeof(name));
	CHECK_STR(name, "");
	CHECK_EQ(proc_parent(pid), 0);
	CHECK_EQ(proc_start_ns(pid), 0);
	CHECK_EQ(proc_status_number(pid, pid, "Tgid", 10), 0);
	proc_stat_field(pid, pid, 3, name, sizeof(name));
	CHECK_STR(name, "");
	proc_exe(pid, name, sizeof(name));
	CHECK_STR(name, "");
	CHECK_EQ(proc_own_number(pid, pid, &pid), 0);
	CHECK_EQ(proc_namespace_id(pid, "net"), 0);
	CHECK(!proc_read_memory(pid, (uintptr_t)name, name, 1));
	CHECK_EQ(proc_each_task(pid, NULL, NULL), 0);
}

static void test_names(void)
{
	char name[32], narrow[4];

	prctl(PR_SET_NAME, "one) 2 (three");
	proc_name(getpid(), getpid(), name, sizeof(name));
	CHECK_STR(name, "one) 2 (three");
	proc_name(getpid(), getpid(), narrow, sizeof(narrow));
	CHECK_STR(narrow, "one");
	CHECK_EQ(proc_parent(getpid()), getppid()); /* in spite of the name */
	prctl(PR_SET_NAME, "two\nlines");
	proc_name(getpid(), getpid(), name, sizeof(name));
	CHECK(!strchr(name, '\n'));
	prctl(PR_SET_NAME, "proc_test");
}

static void test_status(void)
{
	pid_t self = getpid(), own = 0;
	char text[64], narrow[4];
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	CHECK(proc_status_number(self, self, "SigBlk", 16) >> (SIGUSR1 - 1) & 1);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	CHECK(!(proc_status_number(self, self, "SigBlk", 16) >> (SIGUSR1 - 1) & 1));
	CHECK_EQ(proc_status_number(self, self, "Tgid", 10), self);
	CHECK_EQ(proc_status_number(self, self, "PPid", 10), getppid());
	prctl(PR_SET_NAME, "a: b\nTgid:\t1");
	proc_status_field(self, self, "Name", text, sizeof(text));
	CHECK_STR(text, "a: b\\nTgid:\t1");
	CHECK_EQ(proc_status_number(self, self, "Tgid", 10), self);
	prctl(PR_SET_NAME, "proc_test");
	proc_status_field(self, self, "Name", narrow, sizeof(narrow));
	CHECK_STR(narrow, "pro");
	/* Only a whole name is one. */
	proc_status_field(self, self, "Nam", text, sizeof(text));
	CHECK_STR(text, "");
	proc_status_field(self, self, "NoSuchLine", text, sizeof(text));
	CHECK_STR(text, "");
	CHECK(proc_own_number(self, self, &own) >= 1);
	CHECK_EQ(own, syscall(SYS_getpid));
}

static void test_stat(void)
{
	pid_t self = getpid();
	char text[64];

	prctl(PR_SET_NAME, "one) 2 (three");
	proc_stat_field(self, self, 3, text, sizeof(text));
	CHECK_STR(text, "R");
	proc_stat_field(self, self, 4, text, sizeof(text));
	CHECK_EQ(strtoul(text, NULL, 10), getppid());
	proc_stat_field(self, self, 52, text, sizeof(text)); /* the last one */
	CHECK(text[0] && !strchr(text, '\n'));
	proc_stat_field(self, self, 1000, text, sizeof(text));
	CHECK_STR(text, "");
	prctl(PR_SET_NAME, "proc_test");
}

static void test_exe(void)
{
	char own[4096], same[4096], narrow[4];

	proc_exe(0, own, sizeof(own));
	proc_exe(getpid(), same, sizeof(same));
	CHECK(own[0] == '/');
	CHECK_STR(same, own);
	proc_exe(0, narrow, sizeof(narrow));
	CHECK_EQ(strlen(narrow), 3);
}

static void test_deleted(void)
{
	CHECK_EQ(path_plain_bytes("/bin/cat"), 8);
	CHECK_EQ(path_plain_bytes("/bin/cat (deleted)"), 8);
	CHECK_EQ(path_plain_bytes("/bin/cat (deleted) (deleted)"), 18);
	CHECK_EQ(path_plain_bytes("/bin/cat (deleted).so"), 21);
	CHECK_EQ(path_plain_bytes(" (deleted)"), 10);
	CHECK_EQ(path_plain_bytes(""), 0);
	CHECK(path_is_deleted("/a (deleted)"));
	CHECK(!path_is_deleted("/a(deleted)") && !path_is_deleted("/a (deleted) "));
}

static void test_memory(void)
{
	const char text[] = "some bytes";
	char copy[sizeof(text)] = "";
	uint8_t *pages =
		mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(proc_read_memory(getpid(), (uintptr_t)text, copy, sizeof(copy)));
	CHECK_STR(copy, text);
	munmap(pages + 4096, 4096);
	CHECK(proc_read_memory(getpid(), (uintptr_t)pages + 4090, copy, 6));
	CHECK(!proc_read_memory(getpid(), (uintptr_t)pages + 4090, copy, 7)); /* all or nothing */
	munmap(pages, 4096);
}

static void test_setting(void)
{
	CHECK(proc_setting("kernel/pid_max", -1) > 0);
	CHECK_EQ(proc_setting("kernel/no-such-setting", 7), 7);
}

static void test_namespace(void)
{
	uint64_t other;
	char done = 0;
	int ready[2];
	pid_t pid;

	CHECK_EQ(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		done = unshare(CLONE_NEWNET) == 0;
		if (write(ready[1], &done, 1) == 1)
			pause();
		_exit(0);
	}
	CHECK_EQ(read(ready[0], &done, 1), 1);
	CHECK_EQ(proc_namespace_id(getpid(), "net"), 0);
	CHECK_EQ(proc_namespace_id(pid, "mnt"), 0);
	other = proc_namespace_id(pid, "net");
	CHECK(done ? other != 0 : other == 0); /* it takes a privilege */
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(ready[0]);
	close(ready[1]);
}

static void test_kept_mappings(void)
{
	struct proc_mappings kept = {0};
	char path[] = "/lib/a.so";

	proc_mappings_add(&kept, &(struct proc_mapping){.start = 1, .end = 2, .path = path});
	proc_mappings_add(&kept, &(struct proc_mapping){.start = 3, .end = 4, .path = ""});
	path[0] = 'x';
	CHECK_EQ(kept.n, 2);
	CHECK_EQ(kept.v[1].start, 3);
	CHECK_STR(kept.v[0].path, "/lib/a.so");
	proc_mappings_release(&kept);
	CHECK_EQ(kept.n, 0);
}

static void test_command_line(void)
{
	char line[8192];
	int status = -1;
	char expected[] = "sleep 1000";
	pid_t pid = fork();

	if (pid == 0) {
		execlp("sleep", "sleep", "1000", (char *)NULL);
		_exit(1);
	}
	for (int i = 0; i < 500; i++) {
		proc_command_line(pid, line, sizeof(line));
		if (!strcmp(line, expected))
			break;
		usleep(10000);
	}
	CHECK_STR(line, expected);
	kill(pid, SIGKILL);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
}

static void test_start_time(void)
{
	uint64_t slack = 50000000, before = clock_mono_ns(), after, start;
	pid_t pid = fork();

	if (pid == 0) {
		pause();
		_exit(0);
	}
	after = clock_mono_ns();
	start = proc_start_ns(pid);
	CHECK(start + slack >= before);
	CHECK(start <= after + slack);
	CHECK_EQ(proc_parent(pid), getpid());
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

struct wanted {
	pid_t tid[2];
	size_t n_seen[2], n;
};

static void see(void *ctx, pid_t tid)
{
	struct wanted *w = ctx;

	w->n++;
	for (int i = 0; i < 2; i++)
		w->n_seen[i] += tid == w->tid[i];
}

static pthread_barrier_t barrier;

static void *second_thread(void *arg)
{
	*(pid_t *)arg = (pid_t)syscall(SYS_gettid);
	prctl(PR_SET_NAME, "second");
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return NULL;
}

static void test_tasks(void)
{
	struct wanted threads = {{getpid(), 0}, {0, 0}, 0},
		      processes = {{getpid(), getppid()}, {0, 0}, 0};
	pthread_t thread;
	char name[32];

	pthread_barrier_init(&barrier, NULL, 2);
	if (pthread_create(&thread, NULL, second_thread, &threads.tid[1]))
		abort();
	pthread_barrier_wait(&barrier);
	CHECK_EQ(proc_each_task(getpid(), see, &threads), threads.n);
	CHECK_EQ(threads.n_seen[0], 1);
	CHECK_EQ(threads.n_seen[1], 1);
	proc_name(getpid(), threads.tid[1], name, sizeof(name));
	CHECK_STR(name, "second");
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&barrier);
	CHECK_EQ(proc_each_task(0, see, &processes), processes.n);
	CHECK_EQ(processes.n_seen[0], 1);
	CHECK_EQ(processes.n_seen[1], 1);
}

int main(void)
{
	static const struct test tests[] = {
		{"every field of a line is read", test_lines},
		{"paths keep their blanks, marks and odd bytes", test_paths},
		{"32-bit, vsyscall and zero addresses are read", test_ends_of_memory},
		{"lines that are not mappings are skipped, and only those", test_junk},
		{"rights that are too short grant nothing more", test_short_rights},
		{"no text at all has no mappings", test_no_text},
		{"our own code is found in our own file", test_ourselves},
		{"a process that is gone is told as such", test_gone},
		{"odd thread names do not confuse the other fields", test_names},
		{"a line of status is found by its whole name", test_status},
		{"fields of stat are counted behind the name", test_stat},
		{"the path of the program is cut to the room", test_exe},
		{"only a mark at the end of a path is one", test_deleted},
		{"memory is read as a whole or not at all", test_memory},
		{"a setting that is not there has a default", test_setting},
		{"a namespace that is not ours has an identity", test_namespace},
		{"kept mappings have their own paths", test_kept_mappings},
		{"the command line has blanks between its words", test_command_line},
		{"a child began when it was forked", test_start_time},
		{"threads and processes are each seen once", test_tasks},
	};

	return RUN_TESTS(tests);
}
