/* SPDX-License-Identifier: MIT */
/*
 * Records of the kernel's events, made by hand, and what they become in the trace, as lines:
 * "1 T101 +write", "2 T101 -write", "3 T101 1 faults", "4 C0 +0x8 1" (level, depth).
 */
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "check.h"
#include "record/kernel_events.h"
#include "trace/reader.h"

#define PID 100

static struct world {
	char path[64];
	struct trace_writer *w;
	struct perf_set set;
	struct images *images;
	struct processes *processes;
	struct kernel_events *k;
	uint32_t life;
	struct buf text;
} world;

static void begin(void)
{
	struct err err;

	memset(&world, 0, sizeof(world));
	snprintf(world.path, sizeof(world.path), "/tmp/kernel_events_test.%d", (int)getpid());
	CHECK_EQ(trace_writer_open(&world.w, world.path, &err), 0);
	world.life = trace_writer_stream(world.w, STREAM_KIND_LIFE, 0);
	world.images = images_new();
	world.processes = processes_new(world.w, world.life);
	for (int i = 0; i < KERNEL_N_EVENTS; i++)
		world.set.kernel[i].is_on = true;
	world.k = kernel_events_new(world.w, &world.set, world.images, false);
}

static struct thread *thread_of(uint32_t tid)
{
	return processes_thread(world.processes, PID, tid, 1);
}

static void happen(enum kernel_event event, uint32_t tid, int64_t number, uint64_t time)
{
	struct collected r = {.kind = COLLECTED_KERNEL,
		.time = time,
		.pid = PID,
		.tid = tid,
		.kernel = {event, number}};

	if (kernel_event_is_of_thread(event))
		kernel_events_of_thread(world.k, thread_of(tid), &r);
	else
		kernel_events_of_cpu(
			world.k, trace_writer_stream(world.w, STREAM_KIND_CPU, r.cpu), &r);
}

static void enter(uint32_t tid, int64_t number, uint64_t time)
{
	happen(KERNEL_EVENT_SYS_ENTER, tid, number, time);
}

static void leave(uint32_t tid, int64_t number, uint64_t time)
{
	happen(KERNEL_EVENT_SYS_EXIT, tid, number, time);
}

static void show(const struct trace_reader *r, const struct trace_record *record)
{
	const struct trace_stream *stream = trace_reader_stream(r, record->stream);
	char sign = record->minor & RECORD_MINOR_EXIT ? '-' : '+';
	uint64_t n[2] = {0};

	if (stream->kind == STREAM_KIND_LIFE && record->major != RECORD_MAJOR_LOSS)
		return;
	buf_printf(&world.text, "%d ", (int)record->time);
	if (stream->kind == STREAM_KIND_THREAD)
		buf_printf(&world.text, "T%d ", (int)trace_reader_thread(r, stream->number)->tid);
	else if (stream->kind == STREAM_KIND_CPU)
		buf_printf(&world.text, "C%d ", (int)stream->number);
	trace_record_numbers(r, record, n, record->major == RECORD_MAJOR_RESOURCE ? 2 : 1, NULL);
	if (record->major == RECORD_MAJOR_ROUTINE)
		buf_printf(&world.text, "%c%s\n", sign,
			trace_reader_string(r, trace_reader_frame(r, (uint32_t)n[0])->name));
	else if (record->major == RECORD_MAJOR_RESOURCE)
		buf_printf(&world.text, "%d %s\n", (int)n[1],
			trace_reader_string(r, trace_reader_metric(r, (uint32_t)n[0])->name));
	else if (record->major == RECORD_MAJOR_INTERRUPT)
		buf_printf(&world.text, "%c%#x %d\n", sign,
			(record->minor & ~RECORD_MINOR_EXIT) - 1, (int)n[0]);
	else
		buf_printf(&world.text, "note %d\n", (int)n[0]);
}

/* Ends the trace and shows it. */
static const char *written(void)
{
	struct trace_cursor *cursor;
	struct trace_record record;
	struct trace_reader *r;
	struct err err;

	kernel_events_write_notes(world.k, world.life, 1000);
	kernel_events_free(world.k);
	processes_free(world.processes);
	images_free(world.images);
	CHECK_EQ(trace_writer_close(world.w, &err), 0);
	CHECK_EQ(trace_reader_open(&r, world.path, &err), 0);
	CHECK_EQ(trace_cursor_open(&cursor, r, TRACE_ALL_STREAMS, 0, UINT64_MAX, &err), 0);
	while (trace_cursor_next(cursor, &record, &err) > 0)
		show(r, &record);
	trace_cursor_close(cursor);
	trace_reader_close(r);
	unlink(world.path);
	return buf_text(&world.text);
}

static void check_written(const char *expected)
{
	CHECK_STR(written(), expected);
	buf_release(&world.text);
}

static void test_calls(void)
{
	begin();
	enter(101, 1, 10);
	enter(102, 0, 11);
	leave(101, 1, 12);
	leave(102, 0, 13);
	enter(101, 110, 14);
	happen(KERNEL_EVENT_FAULT, 101, 0, 15);
	leave(101, 110, 16);
	check_written("10 T101 +write\n11 T102 +read\n12 T101 -write\n13 T102 -read\n"
		      "14 T101 +getppid\n15 T101 1 faults\n16 T101 -getppid\n");
}

static void test_unpaired(void)
{
	begin();
	leave(101, 7, 10); /* the recording began inside poll */
	enter(101, 1, 11);
	leave(101, 0, 12); /* of another call: not this one's end */
	enter(101, 110, 13);
	leave(101, 110, 14);
	leave(101, 56, 15); /* clone, in the child */
	check_written("11 T101 +write\n13 T101 -write\n13 T101 +getppid\n14 T101 -getppid\n"
		      "1000 note 1\n");
}

static void test_odd_ends(void)
{
	begin();
	enter(101, 15, 10);
	leave(101, -1, 11); /* rt_sigreturn has put other registers in place */
	enter(101, 59, 12);
	leave(101, 11, 13); /* execve of a 32-bit program */
	enter(101, 231, 14);
	kernel_events_thread_ended(world.k, thread_of(101), 15);
	kernel_events_thread_ended(world.k, thread_of(101), 16);
	kernel_events_thread_ended(world.k, thread_of(103), 16);
	check_written("10 T101 +rt_sigreturn\n11 T101 -rt_sigreturn\n12 T101 +execve\n"
		      "13 T101 -execve\n14 T101 +exit_group\n15 T101 -exit_group\n");
}

static void test_numbers(void)
{
	static const int64_t numbers[] = {1, 0x40000001, 500, 100000, -5, INT64_MAX};

	begin();
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		enter(101, numbers[i], 10 + i);
		leave(101, numbers[i], 10 + i);
	}
	check_written("10 T101 +write\n10 T101 -write\n11 T101 +write\n11 T101 -write\n"
		      "12 T101 +syscall_500\n12 T101 -syscall_500\n"
		      "13 T101 +syscall_unknown\n13 T101 -syscall_unknown\n"
		      "14 T101 +syscall_unknown\n14 T101 -syscall_unknown\n"
		      "15 T101 +syscall_unknown\n15 T101 -syscall_unknown\n");
}

static void map_ourselves(struct process *p)
{
	char path[4096] = "";
	struct mapping m = {.start = 0x1000, .end = 0x2000};

	CHECK(readlink("/proc/self/exe", path, sizeof(path) - 1) > 0);
	m.image = images_ensure(world.images,
		&(struct image_query){
			.pid = (uint32_t)getpid(), .mapping = {.path = path, .start = m.start, .end = m.end}});
	addrspace_map(&p->space, &m);
}

static void test_width(void)
{
	begin();
	thread_of(101)->process->is_32_bit = true; /* a sample said so */
	enter(101, 4, 10);
	leave(101, 4, 11);
	map_ourselves(thread_of(101)->process); /* what is mapped knows better */
	enter(101, 4, 12);
	leave(101, 4, 13);
	check_written("10 T101 +write\n11 T101 -write\n12 T101 +stat\n13 T101 -stat\n");
}

static void test_interrupts(void)
{
	begin();
	happen(KERNEL_EVENT_SOFTIRQ_EXIT, 101, 1, 9); /* it had begun before */
	happen(KERNEL_EVENT_SOFTIRQ_ENTRY, 101, 1, 10);
	happen(KERNEL_EVENT_IRQ_ENTRY, 101, 36, 11);
	happen(KERNEL_EVENT_IRQ_EXIT, 101, 36, 12);
	happen(KERNEL_EVENT_TIMER_ENTRY, 101, 236, 13);
	happen(KERNEL_EVENT_TIMER_EXIT, 101, 236, 14);
	happen(KERNEL_EVENT_SOFTIRQ_EXIT, 101, 1, 15);
	check_written("10 C0 +0x1 1\n11 C0 +0x1024 2\n12 C0 -0x1024 2\n13 C0 +0x1ec 2\n"
		      "14 C0 -0x1ec 2\n15 C0 -0x1 1\n");
}

static void test_lost_interrupts(void)
{
	begin();
	happen(KERNEL_EVENT_SOFTIRQ_ENTRY, 101, 1, 10);
	happen(KERNEL_EVENT_IRQ_ENTRY, 101, 36, 11);
	happen(KERNEL_EVENT_SOFTIRQ_EXIT, 101, 1, 12); /* so the inner one is over, too */
	happen(KERNEL_EVENT_IRQ_ENTRY, 101, 36, 13);
	happen(KERNEL_EVENT_IRQ_ENTRY, 101, 36, 14); /* not inside itself */
	happen(KERNEL_EVENT_IRQ_EXIT, 101, 36, 15);
	check_written("10 C0 +0x1 1\n11 C0 +0x1024 2\n12 C0 -0x1024 2\n12 C0 -0x1 1\n"
		      "13 C0 +0x1024 1\n14 C0 -0x1024 1\n14 C0 +0x1024 1\n15 C0 -0x1024 1\n"
		      "1000 note 2\n");
}

static void test_deep_interrupts(void)
{
	begin();
	for (int i = 0; i < 1000; i++)
		happen(KERNEL_EVENT_IRQ_ENTRY, 101, i, 10);
	for (int i = 1000; i-- > 0;)
		happen(KERNEL_EVENT_IRQ_EXIT, 101, i, 11);
	happen(KERNEL_EVENT_IRQ_ENTRY, 101, 5, 12);
	CHECK(strstr(written(), "12 C0 +0x1005 1\n"));
	buf_release(&world.text);
}

int main(void)
{
	static const struct test tests[] = {
		{"calls and faults go to the stream of their thread", test_calls},
		{"ends without a beginning are left out, missing ends are put in", test_unpaired},
		{"sigreturn, exec and exit end as they do", test_odd_ends},
		{"calls that nobody knows have a name all the same", test_numbers},
		{"32-bit programs have their own numbers", test_width},
		{"interrupts nest", test_interrupts},
		{"an interrupt whose end is missing is over when its like begins",
			test_lost_interrupts},
		{"interrupts do not nest without end", test_deep_interrupts},
	};

	return RUN_TESTS(tests);
}
