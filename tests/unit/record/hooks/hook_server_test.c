/* SPDX-License-Identifier: MIT */
/* weir-test: tsan */
/*
 * The server, spoken to by forked children of this program in place of a hook library. What is
 * hooked is this test itself: its functions hook_target_* are in the main program's symbol table.
 */
#include "record/hooks/hooks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "check.h"
#include "record/hooks/hello.h"
#include "record/hooks/hooks_internal.h"

#define WAIT_NS 10000000000u

int hook_target_one(int n);
int hook_target_two(int n);

__attribute__((noinline)) int hook_target_one(int n)
{
	for (int i = 0; i < 10; i++)
		__asm__ volatile("nop; nop; nop; nop" : "+r"(n));
	return n + 1;
}

__attribute__((noinline)) int hook_target_two(int n)
{
	for (int i = 0; i < 10; i++)
		__asm__ volatile("nop; nop; nop; nop" : "+r"(n));
	return n + 2;
}

/* --- the library's side ---------------------------------------------------------------------- */

static char own_key[HOOK_KEY_BYTES]; /* of the recorder that was connected to last */

/* `place` is "@NAME:KEY:PATH"; by the name, or by the path. */
static int connect_by(const char *place, bool by_path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t n = strcspn(place, ":"), bytes = sizeof(address);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(own_key, place + n + 1, sizeof(own_key));
	if (by_path) {
		strcpy(address.sun_path, place + n + 1 + sizeof(own_key) + 1);
	} else {
		memcpy(address.sun_path + 1, place + 1, n - 1);
		bytes = offsetof(struct sockaddr_un, sun_path) + n;
	}
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, (socklen_t)bytes) < 0)
		_exit(100);
	return fd;
}

static int connect_to(const char *place)
{
	return connect_by(place, false);
}

static int note_main(struct dl_phdr_info *info, size_t n, void *ctx)
{
	struct hook_module *m = ctx;

	(void)n;
	m->bias = info->dlpi_addr;
	m->start = UINT64_MAX;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		uint64_t from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

		if (info->dlpi_phdr[i].p_type != PT_LOAD)
			continue;
		m->start = from < m->start ? from : m->start;
		m->end = from + info->dlpi_phdr[i].p_memsz;
	}
	return 1; /* the first is the main program */
}

/* For the recorder that was connected to last. */
static struct hook_hello hello_of(enum hook_hello_kind kind, uint32_t n_modules)
{
	struct hook_hello hello = {.magic = HOOK_ABI_MAGIC,
		.version = HOOK_ABI_VERSION,
		.kind = kind,
		.bits = 64,
		.pid = (uint32_t)getpid(),
		.tid = (uint32_t)gettid(),
		.n_modules = n_modules,
		.region_start = 0x700000000000,
		.region_bytes = 1 << 20};

	memcpy(hello.key, own_key, sizeof(own_key));
	return hello;
}

static void send_all(int fd, const void *p, size_t n)
{
	if (send(fd, p, n, MSG_NOSIGNAL) != (ssize_t)n)
		_exit(101);
}

static void receive(int fd, void *to, size_t n)
{
	if (recv(fd, to, n, MSG_WAITALL) != (ssize_t)n)
		_exit(102);
}

static int receive_reply(int fd, struct hook_reply *reply)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(2 * sizeof(int))];
	} extra;
	struct iovec part = {reply, sizeof(*reply)};
	struct msghdr message = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &extra,
		.msg_controllen = sizeof(extra)};
	int area = -1;

	if (recvmsg(fd, &message, MSG_WAITALL) != (ssize_t)sizeof(*reply))
		_exit(103);
	if (message.msg_controllen >= sizeof(struct cmsghdr))
		memcpy(&area, CMSG_DATA(&extra.header), sizeof(area));
	return area;
}

struct client {
	int fd;
	struct hook_reply reply;
	uint8_t *plans;
	struct hook_control *control;
	uint8_t *area;
};

static void map_area(struct client *c, int area_fd)
{
	c->area = mmap(NULL, c->reply.area_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, area_fd, 0);
	if (c->area == MAP_FAILED)
		_exit(104);
	c->control = (struct hook_control *)(void *)c->area;
	if (c->control->magic != HOOK_ABI_MAGIC || c->control->area_bytes < c->reply.area_bytes)
		_exit(105);
}

/* Answers each plan: the first is hooked at 0x600000, 0x600100, ..., with `refusal` none is. */
static void send_results(struct client *c, uint32_t refusal)
{
	struct hook_results head = {HOOK_ABI_MAGIC, c->reply.n_plans};
	const uint8_t *p = c->plans;
	char done;

	send_all(c->fd, &head, sizeof(head));
	for (uint32_t i = 0; i < c->reply.n_plans; i++) {
		struct hook_plan plan;
		struct hook_result r = {.refusal = refusal, .moved_code = 0x600000 + i * 256};

		memcpy(&plan, p, sizeof(plan));
		r.id = plan.id;
		if (plan.module_i != 0)
			_exit(106);
		p += plan.bytes;
		send_all(c->fd, &r, sizeof(r));
	}
	receive(c->fd, &done, 1); /* the recorder knows it all now */
}

static void start(struct client *c, const char *path)
{
	struct hook_module module = {0};
	struct hook_hello hello;

	c->fd = connect_to(path);
	hello = hello_of(HOOK_HELLO_START, 1);
	dl_iterate_phdr(note_main, &module);
	/* In pieces, as a stream may come. */
	send_all(c->fd, &hello, 10);
	usleep(2000);
	send_all(c->fd, (uint8_t *)&hello + 10, sizeof(hello) - 10);
	send_all(c->fd, &module, sizeof(module));
	map_area(c, receive_reply(c->fd, &c->reply));
	if (c->reply.status || !c->reply.has_area)
		_exit(107);
	c->plans = malloc(c->reply.plan_bytes + 1);
	receive(c->fd, c->plans, c->reply.plan_bytes);
}

struct ring {
	struct hook_thread *thread;
	struct hook_record *records;
	uint64_t n, written;
};

static struct ring take_ring(const struct client *c, uint32_t i)
{
	struct ring r = {
		.thread = (struct hook_thread *)(void *)(c->area + c->control->threads_offset) + i,
		.records = (struct hook_record *)(void *)(c->area + c->control->rings_offset +
							  i * c->control->ring_bytes),
		.n = c->control->ring_bytes / sizeof(struct hook_record)};

	r.thread->tid = (uint32_t)gettid();
	if (c->control->n_used <= i)
		c->control->n_used = i + 1;
	__atomic_store_n(&r.thread->state, HOOK_THREAD_LIVE, __ATOMIC_RELEASE);
	return r;
}

static void write_record(struct ring *r, uint64_t head, uint64_t data)
{
	struct hook_record *to = &r->records[r->written % r->n];

	while (r->written - __atomic_load_n(&r->thread->consumed, __ATOMIC_ACQUIRE) >= r->n - 1)
		usleep(100);
	to->data = data;
	__atomic_store_n(&to->head, head, __ATOMIC_RELEASE);
	r->written++;
}

/* --- the recorder's side --------------------------------------------------------------------- */

static struct hooks *open_hooks(const char *events)
{
	struct hooks_options options = {
		.events = events, .ring_bytes = 16384, .library_folder = "/nowhere"};
	struct hooks *h = NULL;
	struct err err = {0};

	if (hooks_open(&h, &options, &err) < 0) {
		printf("cannot open: %s\n", err.text);
		abort();
	}
	return h;
}

static bool is_over(uint64_t began)
{
	return clock_mono_ns() - began > WAIT_NS;
}

/* Waits until the only process is there and no connection is open. */
static struct hook_process *wait_for_process(struct hooks *h, size_t n)
{
	uint64_t began = clock_mono_ns();
	struct hook_process *p = NULL;

	while (!p && !is_over(began)) {
		pthread_mutex_lock(&h->lock);
		if (h->processes.n >= n && !h->n_exchanges)
			p = h->processes.v[n - 1];
		pthread_mutex_unlock(&h->lock);
		usleep(1000);
	}
	return p;
}

static int exit_status(pid_t pid)
{
	int status;

	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#define CHILD(body)                                                                                \
	({                                                                                         \
		pid_t child_ = fork();                                                             \
		if (!child_) {                                                                     \
			body;                                                                      \
			_exit(0);                                                                  \
		}                                                                                  \
		child_;                                                                            \
	})

struct got {
	VEC(uint64_t) heads;
	struct hook_source *source;
	struct hook_chunk *used;
};

static void note_source(void *ctx, struct hook_source *s)
{
	((struct got *)ctx)->source = s;
}

static void take(struct hooks *h, struct got *g)
{
	hooks_take(h, &g->used, note_source, g);
	while (g->source && g->source->mine) {
		struct hook_chunk *c = g->source->mine;

		for (uint32_t i = 0; i < c->n; i++)
			vec_push(&g->heads, c->records[i].head);
		g->source->mine = c->next;
		c->next = g->used;
		g->used = c;
	}
}

static void release_got(struct hooks *h, struct got *g)
{
	hooks_halt(h);
	if (g->source)
		hook_source_free(h, g->source);
	while (g->used) {
		struct hook_chunk *next = g->used->next;

		free(g->used);
		g->used = next;
	}
	vec_release(&g->heads);
}

/* --- tests ------------------------------------------------------------------------------------ */

static void child_starts(const char *path, uint32_t refusal)
{
	struct client c = {0};

	start(&c, path);
	if (c.reply.n_plans != 2)
		_exit(110);
	send_results(&c, refusal);
}

static void a_program_gets_its_plan_and_says_what_became_of_it(void)
{
	struct hooks *h = open_hooks("hook_target_*");
	pid_t child = CHILD({
		child_starts(h->listener.place, 0);
		pause();
	});
	struct hook_process *p = wait_for_process(h, 1);
	uint64_t site;

	CHECK(p != NULL);
	CHECK_EQ(p->pid, (uint64_t)child);
	CHECK_EQ(p->layout->moved.n, 2);
	CHECK_EQ(p->layout->moved.v[0].code, 0x600000);
	CHECK_EQ(p->layout->modules.n, 1);
	CHECK_EQ(p->layout->region_start, 0x700000000000);
	CHECK_EQ(hooks_outcome(h, 1)->n_hooked, 1);
	CHECK_EQ(hooks_outcome(h, 2)->n_hooked, 1);
	/* The child is a copy of this program: its functions are where ours are. */
	site = p->layout->moved.v[0].function;
	CHECK(site == (uintptr_t)hook_target_one || site == (uintptr_t)hook_target_two);
	CHECK_EQ(hooks_moved_pc(h, child, site), site);
	hooks_halt(h);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	hooks_close(h);
}

static void refusals_are_kept(void)
{
	struct hooks *h = open_hooks("hook_target_*");
	pid_t child = CHILD(child_starts(h->listener.place, HOOK_REFUSAL_CHANGED));

	CHECK_EQ(exit_status(child), 0);
	CHECK(wait_for_process(h, 1) != NULL);
	hooks_halt(h);
	CHECK_EQ(hooks_outcome(h, 1)->n_hooked, 0);
	CHECK_EQ(hooks_outcome(h, 1)->refusal, HOOK_REFUSAL_CHANGED);
	hooks_close(h);
}

static void child_fails(const char *path)
{
	struct hook_results failed = {HOOK_FAILED_MAGIC, EMFILE};
	struct client c = {0};
	char done;

	start(&c, path);
	send_all(c.fd, &failed, sizeof(failed));
	receive(c.fd, &done, 1);
}

/* It runs on, and may be over in no time, when the recorder has taken note of it. */
static void a_failure_is_known_before_the_program_runs_on(void)
{
	struct hooks *h = open_hooks("hook_target_*");
	pid_t child = CHILD(child_fails(h->listener.place));

	CHECK_EQ(exit_status(child), 0);
	pthread_mutex_lock(&h->lock);
	CHECK_EQ(h->heard.n, 1);
	CHECK_EQ(h->heard.v[0].pid, (uint64_t)child);
	CHECK_EQ(h->heard.v[0].error, EMFILE);
	pthread_mutex_unlock(&h->lock);
	hooks_close(h);
}

static void child_writes(const char *path, uint32_t n)
{
	struct client c = {0};
	struct ring r;

	start(&c, path);
	send_results(&c, 0);
	r = take_ring(&c, 0);
	for (uint32_t i = 0; i < n; i++)
		write_record(&r, HOOK_HEAD(i % 2 ? HOOK_RECORD_LEAVE : HOOK_RECORD_ENTER, 1, i), i);
}

/* The ring holds a hundredth of it: the child has to wait for us. */
static void every_record_arrives_in_order(void)
{
	uint32_t n = 100000;
	struct hooks *h = open_hooks("hook_target_*");
	pid_t child = CHILD(child_writes(h->listener.place, n));
	uint64_t began = clock_mono_ns();
	struct got g = {0};

	while ((!g.source || !g.source->mine_is_over) && !is_over(began)) {
		struct pollfd fd = {.fd = hooks_fd(h), .events = POLLIN};

		poll(&fd, 1, 10);
		take(h, &g);
	}
	CHECK_EQ(exit_status(child), 0);
	CHECK_EQ(g.heads.n, n);
	for (uint32_t i = 0; i < g.heads.n; i++)
		if (HOOK_HEAD_TICKS(g.heads.v[i]) != i) {
			CHECK_EQ(HOOK_HEAD_TICKS(g.heads.v[i]), i);
			break;
		}
	release_got(h, &g);
	hooks_close(h);
}

/* One that says half a hello and then nothing must not hold up the next. */
static void a_stuck_client_holds_up_nobody(void)
{
	struct hooks *h = open_hooks("hook_target_*");
	int stuck = connect_to(h->listener.place);
	struct hook_hello hello = hello_of(HOOK_HELLO_START, 1);
	pid_t child;

	send_all(stuck, &hello, 20);
	child = CHILD(child_starts(h->listener.place, 0));
	CHECK_EQ(exit_status(child), 0);
	CHECK(wait_for_process(h, 1) != NULL);
	close(stuck);
	hooks_close(h);
}

static void nonsense_is_hung_up_on(void)
{
	struct hooks *h = open_hooks("hook_target_*");
	struct hook_hello hello = hello_of(HOOK_HELLO_START, UINT32_MAX);
	char byte, text[200];
	int fd;

	fd = connect_to(h->listener.place);
	send_all(fd, &hello, sizeof(hello));
	CHECK_EQ(recv(fd, &byte, 1, 0), 0);
	close(fd);
	fd = connect_to(h->listener.place);
	memset(text, 'x', sizeof(text));
	send_all(fd, text, sizeof(text));
	CHECK(recv(fd, &byte, 1, 0) <= 0);
	close(fd);
	close(connect_to(h->listener.place)); /* only asks whether we live */
	CHECK_EQ(exit_status(CHILD(child_starts(h->listener.place, 0))), 0);
	hooks_halt(h);
	CHECK_EQ(h->n_bad_hellos, 2);
	hooks_close(h);
}

static void child_forks(const char *path)
{
	struct client c = {0};
	uint32_t parent;

	start(&c, path);
	send_results(&c, 0);
	parent = c.control->serial;
	if (fork() == 0) {
		struct hook_hello hello = hello_of(HOOK_HELLO_FORK, 0);
		struct client own = {.fd = connect_to(path)};

		hello.parent_serial = parent;
		send_all(own.fd, &hello, sizeof(hello));
		map_area(&own, receive_reply(own.fd, &own.reply));
		_exit(own.reply.n_plans ? 1 : 0);
	}
	wait(NULL);
}

static void a_forked_child_gets_an_area_and_its_parents_layout(void)
{
	struct hooks *h = open_hooks("hook_target_*");
	pid_t child = CHILD(child_forks(h->listener.place));
	struct hook_process *p;

	CHECK_EQ(exit_status(child), 0);
	p = wait_for_process(h, 2);
	CHECK(p != NULL);
	hooks_halt(h);
	CHECK_EQ(p->layout->moved.n, 2);
	CHECK(p->layout == h->processes.v[0]->layout);
	hooks_close(h);
}

static void a_program_that_starts_anew_ends_the_one_before(void)
{
	struct hooks *h = open_hooks("hook_target_*");
	pid_t child = CHILD({
		child_starts(h->listener.place, 0);
		child_starts(h->listener.place, 0); /* as after an exec */
		pause();
	});
	struct hook_process *p = wait_for_process(h, 2);
	uint64_t began = clock_mono_ns();
	bool has_ended = false;

	CHECK(p != NULL);
	while (!has_ended && !is_over(began)) {
		pthread_mutex_lock(&h->lock);
		has_ended = h->processes.v[0]->has_ended;
		CHECK(hooks_find_process(h, (uint32_t)child) == p);
		pthread_mutex_unlock(&h->lock);
	}
	CHECK(has_ended);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	hooks_close(h);
}

static void when_the_recording_is_over_nobody_is_hooked(void)
{
	struct hooks *h = open_hooks("hook_target_*");
	struct hook_hello hello;
	struct hook_reply reply;
	int fd;

	hooks_stop(h);
	fd = connect_to(h->listener.place);
	hello = hello_of(HOOK_HELLO_START, 0);
	send_all(fd, &hello, sizeof(hello));
	CHECK_EQ(receive_reply(fd, &reply), (uint64_t)-1);
	CHECK_EQ(reply.status, 1);
	close(fd);
	hooks_close(h);
}

/* Names of sockets are known to everybody; the key is not. */
static void who_was_not_told_is_hung_up_on(void)
{
	struct hooks *h = open_hooks("hook_target_*");
	int fd = connect_to(h->listener.place);
	struct hook_hello hello = hello_of(HOOK_HELLO_START, 0);
	char byte;

	hello.key[HOOK_KEY_BYTES - 1] ^= 1;
	send_all(fd, &hello, sizeof(hello));
	CHECK_EQ(recv(fd, &byte, 1, 0), 0);
	close(fd);
	hooks_halt(h);
	CHECK_EQ(h->n_bad_hellos, 1);
	CHECK_EQ(h->n_processes, 0);
	hooks_close(h);
}

static size_t n_folders(const char *prefix)
{
	DIR *d = opendir("/tmp");
	const struct dirent *e;
	size_t n = 0;

	while ((e = readdir(d)))
		n += !strncmp(e->d_name, prefix, strlen(prefix));
	closedir(d);
	return n;
}

static void the_second_socket_has_no_file_and_is_heard(void)
{
	struct hooks *h = open_hooks("hook_target_*");
	struct hook_hello hello;
	struct hook_reply reply;
	int fd = connect_by(h->listener.place, true);

	hello = hello_of(HOOK_HELLO_START, 0);
	send_all(fd, &hello, sizeof(hello));
	CHECK(receive_reply(fd, &reply) >= 0);
	CHECK_EQ(reply.status, 0);
	close(fd);
	CHECK(strstr(hooks_environment(h)[0], "LD_PRELOAD=/nowhere/$LIB/libweir.so") != NULL);
	CHECK(strstr(hooks_environment(h)[1], h->listener.place) != NULL);
	hooks_close(h);
}

/* LD_PRELOAD cannot have blanks: a folder with a link is made, and those of the dead are removed. */
static void a_folder_that_a_killed_recorder_left_is_swept(void)
{
	struct hooks_options options = {.events = "x", .library_folder = "/no where"};
	char prefix[64];
	struct hooks *h = NULL;
	struct err err = {0};
	pid_t killed = CHILD({
		if (hooks_open(&h, &options, &err) < 0)
			_exit(1);
		raise(SIGKILL);
	});

	CHECK_EQ(exit_status(killed), -1);
	snprintf(prefix, sizeof(prefix), "weir-link-%d-", killed);
	CHECK_EQ(n_folders(prefix), 1);
	CHECK_EQ(hooks_open(&h, &options, &err), 0);
	CHECK_EQ(n_folders(prefix), 0);
	CHECK(strstr(hooks_environment(h)[0], "LD_PRELOAD=/tmp/weir-link-") != NULL);
	hooks_close(h);
	snprintf(prefix, sizeof(prefix), "weir-link-%d-", getpid());
	CHECK_EQ(n_folders(prefix), 0);
}

static void wrong_wishes_are_said(void)
{
	struct hooks *h = NULL;
	struct err err = {0};

	CHECK(hooks_open(&h, &(struct hooks_options){.events = "/(/", .library_folder = "/"},
		      &err) < 0);
	CHECK(err.text[0] != 0);
	CHECK(!hooks_options_are_used(&(struct hooks_options){.tree = true}));
	CHECK(hooks_options_are_used(&(struct hooks_options){.allocations = true}));
}

int main(void)
{
	static const struct test tests[] = {
		{"a program gets its plan and says what became of it",
			a_program_gets_its_plan_and_says_what_became_of_it},
		{"refusals of a program are kept", refusals_are_kept},
		{"that a program could not begin is known before it runs on",
			a_failure_is_known_before_the_program_runs_on},
		{"every record arrives, in order, through a ring that is much smaller",
			every_record_arrives_in_order},
		{"a stuck client holds up nobody", a_stuck_client_holds_up_nobody},
		{"who talks nonsense is hung up on", nonsense_is_hung_up_on},
		{"a forked child gets an area of its own and its parent's layout",
			a_forked_child_gets_an_area_and_its_parents_layout},
		{"a program that starts anew ends the one before",
			a_program_that_starts_anew_ends_the_one_before},
		{"when the recording is over nobody is hooked any more",
			when_the_recording_is_over_nobody_is_hooked},
		{"who was not told the key is hung up on", who_was_not_told_is_hung_up_on},
		{"the second socket has no file and is heard",
			the_second_socket_has_no_file_and_is_heard},
		{"a folder that a killed recorder left is swept",
			a_folder_that_a_killed_recorder_left_is_swept},
		{"a wish that is wrong is said", wrong_wishes_are_said},
	};

	unsetenv("TMPDIR");
	setvbuf(stdout, NULL, _IOLBF, 0); /* children must not repeat what stands in the buffer */
	return RUN_TESTS(tests);
}
