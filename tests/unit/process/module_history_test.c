/* SPDX-License-Identifier: MIT */
/*
 * Records about processes and mappings, made by hand, and the module records and address index that
 * come out of them, as lines: addresses in hex, "used" for spans that were hit.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "check.h"
#include "process/module_check.h"
#include "record/process_life.h"
#include "trace/reader.h"

#define PID 100

static struct world {
	char path[64];
	struct trace_writer *w;
	struct perf_set set;
	struct images *images;
	struct process_life *life;
	struct buf text;
} world;

static void begin(const struct module_options *options)
{
	struct life_options o = {.modules = *options};
	struct err err;

	memset(&world, 0, sizeof(world));
	snprintf(world.path, sizeof(world.path), "/tmp/module_history_test.%d", (int)getpid());
	CHECK_EQ(trace_writer_open(&world.w, world.path, &err), 0);
	world.images = images_new();
	world.set.kernel[KERNEL_EVENT_MUNMAP].is_on = true;
	world.life = process_life_new(world.w, &world.set, world.images, &o);
}

static void launch(uint64_t time)
{
	process_life_add_launched(world.life, PID, "", time);
	process_life_started(world.life, time);
}

static void apply(struct collected r)
{
	if (!r.tid)
		r.tid = r.pid;
	process_life_apply(world.life, &r);
}

static void map(uint32_t pid, uint64_t start, uint64_t end, const char *path, uint64_t time)
{
	apply((struct collected){.kind = COLLECTED_MMAP,
		.time = time,
		.pid = pid,
		.mmap = {.mapping = {.start = start,
				 .end = end,
				 .offset = 0x1000,
				 .prot = PROT_EXEC,
				 .path = path}}});
}

static void unmap(uint32_t pid, uint64_t start, uint64_t end, uint64_t time)
{
	apply((struct collected){.kind = COLLECTED_MUNMAP,
		.time = time,
		.pid = pid,
		.munmap = {start, end - start}});
}

static void become(uint32_t pid, const char *name, uint64_t time)
{
	apply((struct collected){.kind = COLLECTED_COMM,
		.time = time,
		.pid = pid,
		.comm = {.name = name, .is_exec = true}});
}

static void fork_to(uint32_t pid, uint64_t time)
{
	apply((struct collected){
		.kind = COLLECTED_FORK, .time = time, .pid = pid, .fork = {PID, PID}});
}

static void leave(uint32_t pid, uint64_t time)
{
	apply((struct collected){.kind = COLLECTED_EXIT, .time = time, .pid = pid});
}

static bool hit(uint32_t pid, uint64_t addr, uint64_t time)
{
	struct process *p = processes_find(world.life->processes, pid);
	const struct mapping *m = p ? addrspace_find(p->space, (struct vaddr){addr}) : NULL;

	/* As for samples: those behind the end have their frames, and use nothing. */
	if (m && p->n_live)
		module_history_use(world.life->modules, p, m, time);
	return m != NULL;
}

static const char *image_name(const struct trace_reader *r, uint32_t id)
{
	const char *path = trace_reader_string(r, trace_reader_image(r, id)->path);
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static const char *const ends[MODULE_N_ENDS] = {
	"none", "overlap", "munmap", "exec", "exit", "reused", "snapshot"};

static void print_record(const struct trace_reader *r, const struct trace_record *record)
{
	uint64_t n[9];
	struct err err;

	if (record->major != RECORD_MAJOR_MODULE)
		return;
	if (record->minor == RECORD_MODULE_LOAD) {
		CHECK_EQ(trace_record_numbers(r, record, n, 9, &err), 0);
		buf_printf(&world.text, "%lu load %lu %lx-%lx %s +%lx\n", record->time, n[0], n[2],
			n[2] + n[3], image_name(r, (uint32_t)n[5]), n[6]);
	} else if (record->minor == RECORD_MODULE_UNLOAD) {
		CHECK_EQ(trace_record_numbers(r, record, n, 5, &err), 0);
		buf_printf(&world.text, "%lu unload %lu %lx-%lx %s\n", record->time, n[0], n[2],
			n[2] + n[3], ends[n[4] % MODULE_N_ENDS]);
	} else if (record->minor == RECORD_MODULE_SNAPSHOT) {
		CHECK_EQ(trace_record_numbers(r, record, n, 7, &err), 0);
		buf_printf(&world.text, "%lu %s %lu %lx-%lx %s\n", record->time,
			n[6] ? "end" : "start", n[0], n[2], n[2] + n[3],
			image_name(r, (uint32_t)n[4]));
	}
}

static void print_index(const struct trace_reader *r)
{
	const struct trace_module_span *spans;
	size_t n = trace_reader_module_spans(r, &spans);

	for (size_t i = 0; i < n; i++) {
		const struct trace_module_span *s = &spans[i];

		buf_printf(&world.text, "span %u@%lu %lx-%lx %s %lu-", s->pid, s->process_start,
			s->start, s->end, image_name(r, s->image), s->from);
		if (s->to == UINT64_MAX)
			buf_printf(&world.text, "*");
		else
			buf_printf(&world.text, "%lu", s->to);
		buf_printf(&world.text, " %s%s%s\n", ends[s->ended], s->at_start ? " start" : "",
			s->is_used ? " used" : "");
	}
}

static struct trace_reader *reread(void)
{
	struct trace_reader *r = NULL;
	struct err err;

	CHECK_EQ(trace_writer_close(world.w, &err), 0);
	process_life_free(world.life);
	images_free(world.images);
	CHECK_EQ(trace_reader_open(&r, world.path, &err), 0);
	unlink(world.path);
	return r;
}

/* The records and the index of what has been applied, up to the next begin. */
static const char *result(uint64_t time)
{
	struct trace_reader *r;
	struct trace_cursor *c;
	struct trace_record record;
	struct err err;

	process_life_finish(world.life, time);
	r = reread();
	CHECK_EQ(trace_cursor_open(&c, r, TRACE_ALL_STREAMS, 0, UINT64_MAX, &err), 0);
	while (trace_cursor_next(c, &record, &err) > 0)
		print_record(r, &record);
	trace_cursor_close(c);
	print_index(r);
	trace_reader_close(r);
	return buf_text(&world.text);
}

static const struct module_options usual = {0};

static void test_first_reference(void)
{
	begin(&usual);
	launch(10);
	map(PID, 0x10000, 0x20000, "/a/used", 20);
	map(PID, 0x30000, 0x40000, "/a/unused", 21);
	map(PID, 0x50000, 0x60000, "/a/gone", 22);
	unmap(PID, 0x50000, 0x60000, 23);
	CHECK(hit(PID, 0x10010, 30));
	CHECK(hit(PID, 0x1fff0, 31));
	CHECK(!hit(PID, 0x50000, 32));
	CHECK_STR(result(40), "30 load 100 10000-20000 used +1000\n"
			      "40 end 100 10000-20000 used\n"
			      "40 end 100 30000-40000 unused\n"
			      "span 100@10 10000-20000 used 20-* none used\n"
			      "span 100@10 30000-40000 unused 21-* none\n");
	buf_release(&world.text);
}

static void test_munmap(void)
{
	begin(&usual);
	launch(10);
	for (uint64_t t = 20; t < 80; t += 20) {
		map(PID, 0x10000, 0x20000, "/a/one", t);
		CHECK(hit(PID, 0x10000, t + 1));
		unmap(PID, 0xf000, 0x21000, t + 2);
	}
	CHECK_STR(result(99), "21 load 100 10000-20000 one +1000\n"
			      "22 unload 100 10000-20000 munmap\n"
			      "41 load 100 10000-20000 one +1000\n"
			      "42 unload 100 10000-20000 munmap\n"
			      "61 load 100 10000-20000 one +1000\n"
			      "62 unload 100 10000-20000 munmap\n"
			      "span 100@10 10000-20000 one 20-22 munmap used\n"
			      "span 100@10 10000-20000 one 40-42 munmap used\n"
			      "span 100@10 10000-20000 one 60-62 munmap used\n");
	buf_release(&world.text);
}

static void test_refused_munmap(void)
{
	begin(&usual);
	launch(10);
	map(PID, 0x10000, 0x20000, "/a/one", 20);
	CHECK(hit(PID, 0x10000, 21));
	unmap(PID, 0x10010, 0x20000, 22);
	unmap(PID, 0x10000, 0x10000, 23);
	unmap(PID, 0x10000, 0xfffffffffffff000, 24);
	unmap(7777, 0x10000, 0x20000, 25);
	unmap(PID, 0x1f000, 0x1f001, 26); /* a page at least */
	CHECK_STR(result(40), "21 load 100 10000-20000 one +1000\n"
			      "26 unload 100 1f000-20000 munmap\n"
			      "40 end 100 10000-1f000 one\n"
			      "span 100@10 10000-1f000 one 20-* none used\n"
			      "span 100@10 1f000-20000 one 20-26 munmap used\n");
	buf_release(&world.text);
}

static void test_overlap(void)
{
	begin(&usual);
	launch(10);
	map(PID, 0x10000, 0x20000, "/a/one", 20);
	CHECK(hit(PID, 0x10000, 21));
	map(PID, 0x10000, 0x20000, "/a/two", 30);
	CHECK(hit(PID, 0x10000, 31));
	map(PID, 0x14000, 0x18000, "/a/three", 40); /* splits it */
	CHECK(hit(PID, 0x18000, 41));		    /* loaded already, both parts */
	CHECK(hit(PID, 0x14000, 42));
	CHECK_STR(result(50), "21 load 100 10000-20000 one +1000\n"
			      "30 unload 100 10000-20000 overlap\n"
			      "31 load 100 10000-20000 two +1000\n"
			      "40 unload 100 14000-18000 overlap\n"
			      "42 load 100 14000-18000 three +1000\n"
			      "50 end 100 10000-14000 two\n"
			      "50 end 100 14000-18000 three\n"
			      "50 end 100 18000-20000 two\n"
			      "span 100@10 10000-20000 one 20-30 overlap used\n"
			      "span 100@10 10000-14000 two 30-* none used\n"
			      "span 100@10 14000-18000 two 30-40 overlap used\n"
			      "span 100@10 14000-18000 three 40-* none used\n"
			      "span 100@10 18000-20000 two 30-* none used\n");
	buf_release(&world.text);
}

static void test_split_before_use(void)
{
	begin(&usual);
	launch(10);
	map(PID, 0x10000, 0x20000, "/a/one", 20);
	unmap(PID, 0x14000, 0x18000, 21);
	CHECK(hit(PID, 0x18000, 22));
	CHECK(hit(PID, 0x10000, 23));
	CHECK_STR(result(50), "22 load 100 18000-20000 one +9000\n"
			      "23 load 100 10000-14000 one +1000\n"
			      "50 end 100 10000-14000 one\n"
			      "50 end 100 18000-20000 one\n"
			      "span 100@10 10000-14000 one 20-* none used\n"
			      "span 100@10 18000-20000 one 20-* none used\n");
	buf_release(&world.text);
}

static void test_exec_and_exit(void)
{
	begin(&usual);
	launch(10);
	map(PID, 0x10000, 0x20000, "/a/shell", 20);
	map(PID, 0x30000, 0x40000, "/a/unused", 21);
	CHECK(hit(PID, 0x10000, 22));
	become(PID, "prog", 30);
	map(PID, 0x10000, 0x20000, "/a/prog", 31);
	CHECK(hit(PID, 0x10000, 32));
	leave(PID, 40);
	CHECK(hit(PID, 0x10000, 41));
	CHECK_STR(result(50), "22 load 100 10000-20000 shell +1000\n"
			      "30 unload 100 10000-20000 exec\n"
			      "32 load 100 10000-20000 prog +1000\n"
			      "40 end 100 10000-20000 prog\n"
			      "40 unload 100 10000-20000 exit\n"
			      "span 100@10 10000-20000 shell 20-30 exec used\n"
			      "span 100@10 10000-20000 prog 31-40 exit used\n");
	buf_release(&world.text);
}

static void test_threads(void)
{
	begin(&usual);
	launch(10);
	map(PID, 0x10000, 0x20000, "/a/prog", 20);
	apply((struct collected){
		.kind = COLLECTED_FORK, .time = 21, .pid = PID, .tid = 101, .fork = {PID, PID}});
	CHECK(hit(PID, 0x10000, 22));
	leave(PID, 30); /* its first thread; the other goes on */
	CHECK(hit(PID, 0x10000, 31));
	apply((struct collected){.kind = COLLECTED_EXIT, .time = 40, .pid = PID, .tid = 101});
	CHECK_STR(result(50), "22 load 100 10000-20000 prog +1000\n"
			      "40 end 100 10000-20000 prog\n"
			      "40 unload 100 10000-20000 exit\n"
			      "span 100@10 10000-20000 prog 20-40 exit used\n");
	buf_release(&world.text);
}

static void test_fork(void)
{
	begin(&usual);
	launch(10);
	map(PID, 0x10000, 0x20000, "/a/prog", 20);
	CHECK(hit(PID, 0x10000, 22));
	fork_to(200, 30);
	fork_to(300, 31);
	CHECK(hit(200, 0x10000, 32)); /* shares its parent's mappings, not its records */
	unmap(200, 0x10000, 0x20000, 33);
	CHECK(hit(PID, 0x10000, 34));
	leave(300, 40); /* never hit: nothing of it */
	leave(200, 41);
	CHECK_STR(result(50), "22 load 100 10000-20000 prog +1000\n"
			      "32 load 200 10000-20000 prog +1000\n"
			      "33 unload 200 10000-20000 munmap\n"
			      "50 end 100 10000-20000 prog\n"
			      "span 100@10 10000-20000 prog 20-* none used\n"
			      "span 200@30 10000-20000 prog 30-33 munmap used\n");
	buf_release(&world.text);
}

static void test_pid_reuse(void)
{
	begin(&usual);
	launch(10);
	fork_to(200, 20);
	become(200, "one", 21);
	map(200, 0x10000, 0x20000, "/a/one", 22);
	CHECK(hit(200, 0x10000, 23));
	fork_to(200, 30); /* its exit was lost */
	become(200, "two", 31);
	map(200, 0x10000, 0x20000, "/a/two", 32);
	CHECK(hit(200, 0x10000, 33));
	leave(200, 40);
	fork_to(200, 50);
	become(200, "three", 51);
	map(200, 0x10000, 0x20000, "/a/three", 52);
	CHECK(hit(200, 0x10000, 53));
	CHECK_STR(result(60), "23 load 200 10000-20000 one +1000\n"
			      "30 end 200 10000-20000 one\n"
			      "30 unload 200 10000-20000 reused\n"
			      "33 load 200 10000-20000 two +1000\n"
			      "40 end 200 10000-20000 two\n"
			      "40 unload 200 10000-20000 exit\n"
			      "53 load 200 10000-20000 three +1000\n"
			      "60 end 200 10000-20000 three\n"
			      "span 200@20 10000-20000 one 22-30 reused used\n"
			      "span 200@30 10000-20000 two 32-40 exit used\n"
			      "span 200@50 10000-20000 three 52-* none used\n");
	buf_release(&world.text);
}

static void test_run_time_code(void)
{
	begin(&usual);
	launch(10);
	map(PID, 0x10000, 0x20000, "//anon", 20);
	CHECK(hit(PID, 0x10000, 21));
	for (uint64_t t = 30; t < 40; t++)
		map(PID, 0x12000, 0x13000, "//anon", t); /* mprotect to and fro */
	CHECK(hit(PID, 0x12000, 41));
	map(PID, 0x10000, 0x24000, "//anon", 50); /* it grows */
	CHECK(hit(PID, 0x20000, 51));
	CHECK_STR(result(60), "21 load 100 10000-20000 [jit] +1000\n"
			      "50 unload 100 10000-20000 overlap\n"
			      "51 load 100 10000-24000 [jit] +1000\n"
			      "60 end 100 10000-24000 [jit]\n"
			      "span 100@10 10000-20000 [jit] 20-50 overlap used\n"
			      "span 100@10 10000-24000 [jit] 50-* none used\n");
	buf_release(&world.text);
}

static void test_all_modules(void)
{
	begin(&(struct module_options){.all_modules = true});
	launch(10);
	map(PID, 0x10000, 0x20000, "/a/prog", 20);
	map(PID, 0x30000, 0x40000, "/a/gone", 21);
	unmap(PID, 0x30000, 0x40000, 22);
	CHECK(hit(PID, 0x10000, 23));
	CHECK_STR(result(60), "20 load 100 10000-20000 prog +1000\n"
			      "21 load 100 30000-40000 gone +1000\n"
			      "22 unload 100 30000-40000 munmap\n"
			      "60 end 100 10000-20000 prog\n"
			      "span 100@10 10000-20000 prog 20-* none used\n"
			      "span 100@10 30000-40000 gone 21-22 munmap\n");
	buf_release(&world.text);
}

static void test_snapshots_only(void)
{
	begin(&(struct module_options){.snapshots_only = true});
	launch(10);
	map(PID, 0x10000, 0x20000, "/a/prog", 20);
	map(PID, 0x30000, 0x40000, "/a/gone", 21);
	CHECK(hit(PID, 0x10000, 22));
	CHECK(hit(PID, 0x30000, 23));
	fork_to(200, 30);
	fork_to(300, 31);
	CHECK(hit(200, 0x10000, 32));
	leave(200, 40);
	leave(300, 41);
	unmap(PID, 0x30000, 0x40000, 42);
	CHECK_STR(result(60), "40 end 200 10000-20000 prog\n"
			      "40 end 200 30000-40000 gone\n"
			      "60 end 100 10000-20000 prog\n");
	buf_release(&world.text);
}

/* This process itself runs already; a page of its code is given back later. */
static void test_running(void)
{
	struct process *p;
	const char *text;
	size_t n_start = 0, n_end = 0, n_spans = 0;
	pid_t self = getpid();
	void *code =
		mmap(NULL, 3 * 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *late;

	begin(&usual);
	process_life_add_running(world.life, self, 10);
	process_life_started(world.life, 10);
	p = processes_find(world.life->processes, (uint32_t)self);
	CHECK(p->was_running && p->is_named && p->read_ns);
	CHECK(hit((uint32_t)self, (uint64_t)(uintptr_t)code, p->read_ns + 1));
	/* Older than the reading of /proc: nothing new. */
	unmap((uint32_t)self, 0, 0x7ffffffff000, p->read_ns - 1);
	CHECK(hit((uint32_t)self, (uint64_t)(uintptr_t)code, p->read_ns + 2));
	munmap((char *)code + 4096, 4096);
	late = mmap(NULL, 2 * 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	process_life_stopped(world.life);
	text = result(p->read_ns + 10);
	for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
		n_start += !strncmp(line, "10 start ", 9);
		n_end += strstr(line, " end ") && strstr(line, " end ") < strchr(line, '\n');
		n_spans += !strncmp(line, "span ", 5);
	}
	CHECK(n_start >= 3); /* program, C library, loader */
	CHECK(n_end >= 3);
	CHECK(n_spans >= n_start);
	CHECK(strstr(text, " snapshot start used\n"));
	CHECK(strstr(text, " none start\n"));
	CHECK(strstr(text, " module_history_test "));
	munmap(late, 2 * 4096);
	munmap(code, 3 * 4096);
	buf_release(&world.text);
}

static uint32_t next_random(void)
{
	static uint64_t state = 0x2545f4914f6cdd1du;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 20);
}

#define PAGES	 32
#define STEPS	 3000
#define AT(page) ((uint64_t)(page)*4096u)

static uint32_t model[STEPS][PAGES]; /* number of the image there + 1 */
static bool was_hit[STEPS][PAGES];

static void random_step(uint64_t t)
{
	uint32_t page = next_random() % PAGES, end = page + 1 + next_random() % 8;
	char path[32];

	if (end > PAGES)
		end = PAGES;
	memcpy(model[t], model[t - 1], sizeof(model[t]));
	switch (next_random() % 4) {
	case 0:
		snprintf(path, sizeof(path), "/m/%lu", t);
		map(PID, AT(page + 1), AT(end + 1), path, t);
		for (uint32_t i = page; i < end; i++)
			model[t][i] = (uint32_t)t;
		break;
	case 1:
		unmap(PID, AT(page + 1), AT(end + 1), t);
		for (uint32_t i = page; i < end; i++)
			model[t][i] = 0;
		break;
	default:
		was_hit[t][page] = hit(PID, AT(page + 1), t);
		CHECK(was_hit[t][page] == (model[t][page] != 0));
		break;
	}
}

/* Every hit is in one span, of the image that the model has; no span says what the model does not.
 */
static void test_model(void)
{
	static uint8_t n_covering[STEPS][PAGES];
	const struct trace_module_span *spans;
	struct trace_reader *r;
	size_t n, n_wrong = 0, n_missing = 0, n_hits = 0;

	begin(&usual);
	launch(0);
	for (uint64_t t = 1; t < STEPS; t++)
		random_step(t);
	process_life_finish(world.life, STEPS);
	r = reread();
	n = trace_reader_module_spans(r, &spans);
	CHECK(n > 100);
	for (size_t i = 0; i < n; i++) {
		const struct trace_module_span *s = &spans[i];
		uint32_t image = (uint32_t)atoi(image_name(r, s->image));

		for (uint64_t t = s->from; t < STEPS && t < s->to; t++)
			for (uint64_t page = s->start / 4096; page < s->end / 4096; page++) {
				n_wrong += model[t][page - 1] != image;
				n_covering[t][page - 1]++;
			}
	}
	for (uint64_t t = 1; t < STEPS; t++)
		for (uint32_t page = 0; page < PAGES; page++) {
			n_hits += was_hit[t][page];
			n_missing += was_hit[t][page] && !n_covering[t][page];
			n_wrong += n_covering[t][page] > 1;
		}
	CHECK(n_hits > 300);
	CHECK_EQ(n_wrong, 0);
	CHECK_EQ(n_missing, 0);
	trace_reader_close(r);
	buf_release(&world.text);
}

static bool concerns(enum collected_kind kind, uint32_t pid, uint32_t parent, uint64_t time)
{
	struct collected r = {.kind = kind, .time = time, .pid = pid, .tid = pid};

	r.fork.parent_pid = r.fork.parent_tid = parent;
	return process_life_concerns(world.life, &r);
}

static void test_others(void)
{
	begin(&usual);
	launch(10);
	map(PID, 0x10000, 0x20000, "/a/one", 20);
	CHECK(hit(PID, 0x10000, 21));
	CHECK(!concerns(COLLECTED_FORK, 700, 699, 22));
	CHECK(!concerns(COLLECTED_SAMPLE, 700, 0, 23));
	CHECK(concerns(COLLECTED_FORK, 701, PID, 24));
	fork_to(701, 24);
	CHECK(concerns(COLLECTED_SAMPLE, 701, 0, 25));
	leave(701, 26);
	CHECK(concerns(COLLECTED_SAMPLE, 701, 0, 27));	/* it may still be on its way out */
	CHECK(!concerns(COLLECTED_FORK, 701, 699, 28)); /* somebody else's now */
	CHECK(!concerns(COLLECTED_SAMPLE, 701, 0, 29));
	CHECK(!concerns(COLLECTED_FORK, 702, 701, 30));
	CHECK(!hit(701, 0x10000, 31));
	CHECK(concerns(COLLECTED_FORK, 701, PID, 32)); /* and ours again */
	fork_to(701, 32);
	CHECK(hit(701, 0x10000, 33));
	leave(701, 34);
	leave(PID, 35);
	result(40);
	buf_release(&world.text);
}

static bool goes_on(uint64_t time)
{
	return process_life_goes_on(world.life,
		&(struct collected){.kind = COLLECTED_EXIT, .time = time, .pid = PID, .tid = PID});
}

static void test_exit_in_exec(void)
{
	begin(&usual);
	launch(10);
	CHECK(!goes_on(11));
	become(PID, "other", 20);
	CHECK(goes_on(21));
	map(PID, 0x10000, 0x20000, "/a/other", 22);
	CHECK(!goes_on(23));
	result(40);
	buf_release(&world.text);
}

int main(void)
{
	static const struct test tests[] = {
		{"a load record is written when a mapping is first hit", test_first_reference},
		{"after an unload the same image at the same place is a new load", test_munmap},
		{"an munmap that the kernel refuses changes nothing", test_refused_munmap},
		{"what another mapping covers has ended, and the rest goes on", test_overlap},
		{"what is left of a mapping is loaded part by part when hit",
			test_split_before_use},
		{"exec and exit end all mappings, exit with a snapshot", test_exec_and_exit},
		{"a process ends with its last thread", test_threads},
		{"a child has its parent's mappings and its own records", test_fork},
		{"a new process with an old pid ends the old one", test_pid_reuse},
		{"code made at run time does not end when its protection changes",
			test_run_time_code},
		{"with all_modules nothing needs to be hit", test_all_modules},
		{"with snapshots_only there is the last state of what was hit, and no index",
			test_snapshots_only},
		{"a running process is taken from /proc, and compared with it at the end",
			test_running},
		{"processes of others are not taken, also under a pid that was known", test_others},
		{"an exit between exec and the first mapping is none", test_exit_in_exec},
		{"the index agrees with a table of single pages and times", test_model},
	};

	return RUN_TESTS(tests);
}
