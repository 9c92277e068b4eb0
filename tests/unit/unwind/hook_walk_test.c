/* SPDX-License-Identifier: MIT */
/* Walks through places that a tool has put there, and the fast way to write what it recorded. */
#include "unwind/unwind.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "check.h"
#include "trace/writer.h"
#include "unwind_world.h"

#define OURS_ADDR 0x50000000u

static struct world w;

/* OURS_ADDR + i leads to truth[i]; an address in `entries` is a function's entry. */
static uint64_t truth[8];
static bool is_entry[8];
static size_t n_asked;

static bool is_ours(void *ctx, uint64_t pc)
{
	(void)ctx;
	return pc - OURS_ADDR < 8;
}

static uint64_t true_pc(void *ctx, uint64_t pc, bool *is_caller)
{
	(void)ctx;
	n_asked++;
	*is_caller = !is_entry[pc - OURS_ADDR];
	return truth[pc - OURS_ADDR];
}

static bool follows_call(void *ctx, struct vaddr pc)
{
	(void)ctx;
	return pc.v != F_BIG + 0x33;
}

static enum unwind_end walk_hooked(uint64_t pc)
{
	size_t word = w.is_64 ? 8 : 4;
	struct unwind_callbacks callbacks = {.find_module = world_find,
		.ctx = &w,
		.follows_call = follows_call,
		.is_replaced = is_ours,
		.true_pc = true_pc};
	struct unwind_memory memory = {.start = {STACK_ADDR}, .bytes = {w.bytes, w.n_words * word}};

	for (size_t i = 0; i < w.n_words; i++)
		memcpy(w.bytes + i * word, &w.words[i], word);
	w.regs.r[CPU_REG_RIP] = pc;
	n_asked = 0;
	return unwinder_walk(w.unwinder, &w.regs, &memory, &callbacks, ++w.generation, w.frames,
		UNWIND_FRAMES_MAX, &w.n_frames);
}

static void begin(void)
{
	world_init(&w, true);
	memset(truth, 0, sizeof(truth));
	memset(is_entry, 0, sizeof(is_entry));
}

static void replaced_return_addresses_are_passed_through(void)
{
	begin();
	truth[1] = F_BIG + 9;
	truth[2] = F_START + 5;
	world_push(&w, OURS_ADDR + 1);
	for (int i = 0; i < 3; i++)
		world_push(&w, 1); /* of F_BIG */
	world_push(&w, OURS_ADDR + 2);
	CHECK_EQ(walk_hooked(F_LEAF + 4), UNWIND_END_COMPLETE);
	CHECK_EQ(w.n_frames, 3);
	CHECK_EQ(w.frames[1].pc.v, F_BIG + 9);
	CHECK(w.frames[1].is_caller);
	CHECK_EQ(w.frames[2].pc.v, F_START + 5);
	CHECK_EQ(n_asked, 2);
	world_release(&w);
}

static void what_is_no_longer_known_ends_the_walk(void)
{
	begin();
	world_push(&w, OURS_ADDR + 3);
	CHECK_EQ(walk_hooked(F_LEAF + 4), UNWIND_END_HOOKED);
	CHECK_EQ(w.n_frames, 1);
	CHECK_STR(unwind_end_reason(UNWIND_END_HOOKED), "hooked call no longer known");
	world_release(&w);
}

/* Between the function's return and the hook's exit: the pc itself is in the slot. */
static void a_pc_in_a_slot_is_its_callers(void)
{
	begin();
	truth[1] = F_BIG + 9;
	for (int i = 0; i < 3; i++)
		world_push(&w, 1);
	world_push(&w, F_START + 5);
	CHECK_EQ(walk_hooked(OURS_ADDR + 1), UNWIND_END_COMPLETE);
	CHECK_EQ(w.n_frames, 2);
	CHECK_EQ(w.frames[0].pc.v, F_BIG + 9);
	CHECK(w.frames[0].is_caller);
	world_release(&w);
}

static void a_pc_that_is_not_known_is_shown_as_it_is(void)
{
	begin();
	world_push(&w, F_START + 5);
	walk_hooked(OURS_ADDR + 4);
	CHECK_EQ(w.frames[0].pc.v, OURS_ADDR + 4);
	world_release(&w);
}

/* The entry hook was called from moved code, of a function without CFI: its return address is on
 * top of the stack, as for an innermost function. */
static void a_function_at_its_entry_needs_no_cfi(void)
{
	begin();
	truth[5] = F_BARE;
	is_entry[5] = true;
	world_push(&w, OURS_ADDR + 5);
	world_push(&w, F_START + 7);
	CHECK_EQ(walk_hooked(F_LEAF + 4), UNWIND_END_COMPLETE);
	CHECK_EQ(w.n_frames, 3);
	CHECK_EQ(w.frames[1].pc.v, F_BARE);
	CHECK(!w.frames[1].is_caller);
	CHECK_EQ(w.frames[2].pc.v, F_START + 7);
	world_release(&w);
}

/* A guess is as good with a replaced return address. */
static void guesses_know_replaced_addresses(void)
{
	begin();
	truth[6] = F_START + 9;
	world_push(&w, OURS_ADDR + 6);
	w.regs.r[CPU_REG_RBP] = 0;
	CHECK_EQ(walk_hooked(F_BARE + 3), UNWIND_END_COMPLETE);
	CHECK_EQ(w.n_frames, 2);
	CHECK_EQ(w.frames[1].pc.v, F_START + 9);
	world_release(&w);
}

/* --- writing ------------------------------------------------------------------------------- */

static void write_slowly(
	struct trace_writer *t, uint32_t stream, uint64_t time, uint32_t frame, bool is_left)
{
	trace_writer_numbers(t, stream, time, RECORD_MAJOR_ROUTINE,
		RECORD_ROUTINE_ENTER | (is_left ? RECORD_MINOR_EXIT : 0), (uint64_t[]){frame}, 1);
}

/* Frames of one to four bytes, times that stand still, jump, and go back. */
static void write_trace(const char *path,
	void (*write_one)(struct trace_writer *, uint32_t, uint64_t, uint32_t, bool))
{
	struct trace_writer *t = NULL;
	uint32_t stream, frames[40000];
	struct err err;

	CHECK_EQ(trace_writer_open(&t, path, &err), 0);
	stream = trace_writer_stream(t, STREAM_KIND_THREAD,
		trace_writer_thread(t, &(struct trace_thread){.pid = 1, .tid = 1}));
	for (uint32_t i = 0; i < 40000; i++)
		frames[i] = trace_writer_frame(
			t, &(struct trace_frame){.kind = FRAME_KIND_NATIVE, .addr = i});
	for (uint64_t i = 0; i < 100000; i++)
		write_one(t, stream, 5000000000 + (i % 7 == 6 ? i - 3 : i * i), frames[i % 40000],
			i & 1);
	CHECK(trace_writer_stream_time(t, stream) >= 5000000000);
	CHECK_EQ(trace_writer_close(t, &err), 0);
}

static void the_fast_way_writes_the_same_bytes(void)
{
	struct buf slow = {0}, fast = {0};
	char a[64], b[64];
	struct err err;

	snprintf(a, sizeof(a), "hook-walk-a-%d.weir", (int)getpid());
	snprintf(b, sizeof(b), "hook-walk-b-%d.weir", (int)getpid());
	write_trace(a, write_slowly);
	write_trace(b, trace_writer_routine);
	CHECK_EQ(file_read(&slow, a, 64 << 20, &err), 0);
	CHECK_EQ(file_read(&fast, b, 64 << 20, &err), 0);
	CHECK_EQ(slow.n, fast.n);
	CHECK(slow.n == fast.n && !memcmp(slow.p, fast.p, slow.n));
	unlink(a);
	unlink(b);
	buf_release(&slow);
	buf_release(&fast);
}

int main(void)
{
	static const struct test tests[] = {
		{"replaced return addresses are passed through",
			replaced_return_addresses_are_passed_through},
		{"a replaced address that is no longer known ends the walk and says so",
			what_is_no_longer_known_ends_the_walk},
		{"a program counter on its way out is its caller's", a_pc_in_a_slot_is_its_callers},
		{"a program counter that is not known is shown as it is",
			a_pc_that_is_not_known_is_shown_as_it_is},
		{"a function at its entry needs no CFI", a_function_at_its_entry_needs_no_cfi},
		{"guesses know replaced addresses", guesses_know_replaced_addresses},
		{"the fast way to write routines gives the same bytes",
			the_fast_way_writes_the_same_bytes},
	};

	return RUN_TESTS(tests);
}
