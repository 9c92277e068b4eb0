/* SPDX-License-Identifier: MIT */
/* The kernel takes the program, and does not go through it many times over: that would be the time that
 * every recording takes to begin. */
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "bpf/kernel_map.h"
#include "bpf/program.h"
#include "bpf/ring.h"
#include "check.h"
#include "record/deep_program.h"

#define LOG_BYTES ((size_t)16 << 20)

static struct bpf_ring ring;
static int tops_fd;

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

static void each_copy_size(void)
{
	for (uint32_t stack_bytes = 4096; stack_bytes <= 65536; stack_bytes *= 2) {
		struct bpf_code code = {0};
		unsigned long n;

		deep_program_make(&code, &ring, tops_fd, stack_bytes - 8, NULL);
		n = n_verified(&code);
		CHECK(n >= code.insns.n / 2);
		CHECK(n <= 2 * code.insns.n);
		bpf_code_release(&code);
	}
}

int main(void)
{
	static const struct test tests[] = {
		{"the verifier goes through the program about once", each_copy_size},
	};
	struct bpf_map_spec spec = {
		BPF_MAP_TYPE_LRU_HASH, sizeof(uint32_t), sizeof(uint64_t), 16, 0, ""};

	tops_fd = bpf_map_open(&spec);
	if (tops_fd < 0 || bpf_ring_open(&ring, 1 << 20, NULL) < 0) {
		printf("skip %s: BPF is not permitted\n", tests[0].sentence);
		puts("end");
		return 0;
	}
	return run_tests(tests, sizeof(tests) / sizeof(*tests));
}
