/* SPDX-License-Identifier: MIT */
/* The kernel takes the program, and does not go through it many times over: that would be the time that
 * every recording takes to begin. What it copies of this process is what is there. */
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "bpf/kernel_map.h"
#include "bpf/program.h"
#include "bpf/ring.h"
#include "check.h"
#include "record/deep_program.h"
#include "record/perf_ring.h"

#define LOG_BYTES ((size_t)16 << 20)

static struct bpf_ring ring;
static int tops_fd, lost_fd;

/* How many instructions the verifier went through; 0 when it refuses them. */
static unsigned long n_verified(const struct bpf_code *code)
{
	struct bpf_program_spec spec = {.type = BPF_PROG_TYPE_PERF_EVENT,
		.name = "deep",
		.insns = code->insns.v,
		.n_insns = code->insns.n};
	char *log = mem_zalloc(LOG_BYTES);
	int fd = bpf_program_open(&spec, log, LOG_BYTES);
	const char *said = fd < 0 ? NULL : strstr(log, "processed ");
	unsigned long n = said ? strtoul(said + strlen("processed "), NULL, 10) : 0;

	if (fd < 0)
		printf("refused: %s: %.2000s\n", strerror(-fd), log);
	else
		close(fd);
	free(log);
	return n;
}

static void once_through(void)
{
	struct bpf_code code = {0};
	unsigned long n;

	deep_program_make(&code, &(struct deep_maps){&ring, tops_fd, lost_fd}, NULL);
	n = n_verified(&code);
	CHECK(n >= code.insns.n / 2);
	CHECK(n <= 2 * code.insns.n);
	bpf_code_release(&code);
}

/* The sampled thread is this one: samples come at `hz`, each with a record in the ring. Returns how many bytes the
 * kernel has written of its own. */
static uint64_t sample_here(const struct deep_maps *maps, void (*work)(void))
{
	struct perf_event_attr attr = {.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.freq = 1,
		.sample_freq = 5000,
		.sample_type = PERF_SAMPLE_IP,
		.disabled = 1,
		.exclude_kernel = 1};
	struct bpf_code code = {0};
	struct perf_ring kernels = {0};
	uint64_t written;
	int program, fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);

	deep_program_make(&code, maps, NULL);
	program = bpf_program_load(BPF_PROG_TYPE_PERF_EVENT, "deep", &code, NULL);
	bpf_code_release(&code);
	CHECK(fd >= 0 && program >= 0 && perf_ring_map(&kernels, fd, 64 << 10));
	CHECK(ioctl(fd, PERF_EVENT_IOC_SET_BPF, program) == 0);
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	work();
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	written = kernels.page->data_head;
	perf_ring_unmap(&kernels);
	close(fd);
	close(program);
	return written;
}

static void set_top(uint64_t top)
{
	uint32_t tid = (uint32_t)gettid();

	bpf_map_update(tops_fd, &tid, &top);
}

/* A frame with a hole: pages of a large local that nobody has touched. */
static __attribute__((noinline)) void burn(size_t n_untouched)
{
	volatile char *untouched = __builtin_alloca(n_untouched + 1);
	clock_t end = clock() + CLOCKS_PER_SEC / 20;

	for (untouched[0] = 0; clock() < end;)
		for (int i = 0; i < 100000; i++)
			untouched[0]++;
}

static volatile char *mark;

static __attribute__((noinline)) void marked(size_t n_untouched)
{
	volatile char here[64];

	memset((char *)here, 0x5a, sizeof(here));
	mark = here;
	burn(n_untouched);
	here[0]++;
}

static void near(void)
{
	marked(0);
}

static void behind_hole(void)
{
	marked(100000);
}

struct seen {
	size_t n, n_marked, n_to_top;
	uint64_t top;
};

static void look(void *ctx, const uint8_t *bytes, size_t n)
{
	const struct deep_record *r = (const void *)bytes;
	struct seen *seen = ctx;
	uint64_t at = (uint64_t)(uintptr_t)mark - r->start;

	CHECK(n >= sizeof(*r) + r->n && r->start <= r->sp);
	seen->n++;
	seen->n_to_top += r->start + r->n == seen->top && r->n_below == DEEP_BELOW_BYTES;
	seen->n_marked += at < r->n && r->n - at >= 64 && r->bytes[at + 1] == 0x5a &&
			  r->bytes[at + 63] == 0x5a;
}

/* Of some samples the moment is before or behind the work. */
static bool nearly(size_t n, size_t of)
{
	return of >= 20 && n + 5 >= of;
}

static void to_the_top(void)
{
	const struct deep_maps maps = {&ring, tops_fd, lost_fd};
	struct seen seen = {.top = (uint64_t)(uintptr_t)__builtin_frame_address(0)};

	set_top(seen.top);
	sample_here(&maps, near);
	bpf_ring_drain(&ring, look, &seen);
	CHECK(nearly(seen.n_to_top, seen.n));
	CHECK(nearly(seen.n_marked, seen.n));
}

static void over_holes(void)
{
	const struct deep_maps maps = {&ring, tops_fd, lost_fd};
	struct seen known = {0}, unknown = {0};

	set_top((uint64_t)(uintptr_t)__builtin_frame_address(0));
	sample_here(&maps, behind_hole);
	bpf_ring_drain(&ring, look, &known);
	CHECK(nearly(known.n_marked, known.n));
	set_top(1);
	sample_here(&maps, behind_hole);
	bpf_ring_drain(&ring, look, &unknown);
	CHECK(nearly(unknown.n_marked, unknown.n));
}

static void without_room(void)
{
	struct bpf_ring small;
	const struct deep_maps maps = {&small, tops_fd, lost_fd};
	uint32_t key = 0;
	uint64_t n = 0;

	CHECK(bpf_ring_open(&small, 4096, NULL) == 0);
	set_top((uint64_t)(uintptr_t)__builtin_frame_address(0));
	CHECK_EQ(sample_here(&maps, near), 0);
	CHECK(bpf_map_find(lost_fd, &key, &n) == 0);
	CHECK(n >= 20);
	bpf_ring_close(&small);
}

static void cut(void)
{
	struct deep_stack *stack = mem_zalloc(sizeof(*stack) + 200);
	uint8_t *bytes = (uint8_t *)(stack + 1);

	bytes[9] = 7;
	*stack = (struct deep_stack){
		.bytes = {bytes, 100}, .tail = {bytes + 100, 100}, .n_bytes = sizeof(*stack) + 200};
	stack = deep_stack_cut(stack, 10);
	CHECK_EQ(stack->bytes.n, 10);
	CHECK_EQ(stack->bytes.p[9], 7);
	CHECK_EQ(stack->tail.n, 0);
	CHECK_EQ(stack->n_bytes, sizeof(*stack) + 10);
	free(stack);
}

int main(void)
{
	static const struct test tests[] = {
		{"a stack that is cut keeps its innermost part", cut},
		{"the verifier goes through the program about once", once_through},
		{"a stack is copied to its top, and no further", to_the_top},
		{"what is behind pages that were never touched is copied, too", over_holes},
		{"without room in the ring there is no sample, and it is counted", without_room},
	};
	struct bpf_map_spec tops = {
		BPF_MAP_TYPE_LRU_HASH, sizeof(uint32_t), sizeof(uint64_t), 16, 0, ""};
	struct bpf_map_spec lost = {
		BPF_MAP_TYPE_ARRAY, sizeof(uint32_t), sizeof(uint64_t), 1, 0, ""};

	tops_fd = bpf_map_open(&tops);
	lost_fd = tops_fd < 0 ? -1 : bpf_map_open(&lost);
	if (lost_fd >= 0 && bpf_ring_open(&ring, 32 << 20, NULL) == 0)
		return run_tests(tests, sizeof(tests) / sizeof(*tests));
	for (size_t i = 1; i < sizeof(tests) / sizeof(*tests); i++)
		printf("skip %s: BPF is not permitted\n", tests[i].sentence);
	return run_tests(tests, 1);
}
