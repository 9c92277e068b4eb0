/* SPDX-License-Identifier: MIT */
/* Followed tasks: children are in the map from their birth to their end, and those that found no room are counted. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "bpf/attach.h"
#include "bpf/followed.h"
#include "bpf/kernel_map.h"
#include "bpf/program.h"
#include "check.h"

#define ROOM	   2
#define N_CHILDREN 5
#define AT_KEY	   (-8)

/* Only this process is followed; its children are known by the addresses of their structures. */
static void emit_current(struct bpf_code *c, void *context, int leave)
{
	bpf_call(c, BPF_FUNC_get_current_pid_tgid);
	bpf_alu_imm(c, BPF_RSH, BPF_REG_0, 32);
	bpf_jump_imm(c, BPF_JNE, BPF_REG_0, *(const pid_t *)context, leave);
}

static void emit_key(struct bpf_code *c, void *context, bool is_birth, int leave)
{
	(void)context, (void)is_birth, (void)leave;
	bpf_load(c, BPF_DW, BPF_REG_1, BPF_REG_6, 0);
	bpf_store(c, BPF_DW, BPF_REG_10, AT_KEY, BPF_REG_1);
}

static int watch(const struct followed *f, const char *tracepoint,
	void (*emit)(struct bpf_code *c, const struct followed *f))
{
	struct bpf_code code = {0};
	struct err err = {0};
	FD_AUTO program = -1;

	emit(&code, f);
	program = bpf_program_load(BPF_PROG_TYPE_RAW_TRACEPOINT, tracepoint, &code, &err);
	bpf_code_release(&code);
	if (program < 0)
		printf("%s\n", err.text);
	return program < 0 ? program : bpf_attach_raw_tracepoint(program, tracepoint);
}

static void count_one(void *ctx, const void *key, const void *value)
{
	(void)key, (void)value;
	++*(size_t *)ctx;
}

static size_t n_in_map(const struct followed *f)
{
	size_t n = 0;

	CHECK_EQ(bpf_map_each(f->map_fd, 8, 4, count_one, &n), 0);
	return n;
}

static void make_children(pid_t *pids)
{
	for (int i = 0; i < N_CHILDREN; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			alarm(60);
			pause();
			_exit(0);
		}
	}
}

static void end_children(const pid_t *pids)
{
	for (int i = 0; i < N_CHILDREN; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
}

/* The kernel gives structures back when it has the time. */
static void wait_until_empty(const struct followed *f)
{
	for (int i = 0; i < 2000 && n_in_map(f); i++)
		nanosleep(&(struct timespec){0, 10000000}, NULL);
}

static void test_children(void)
{
	struct bpf_map_spec spec = {BPF_MAP_TYPE_HASH, 8, 4, ROOM, 0, "followed"};
	pid_t self = getpid(), pids[N_CHILDREN];
	struct followed f = {.map_fd = bpf_map_open(&spec),
		.at = AT_KEY,
		.emit_current = emit_current,
		.emit_key = emit_key,
		.context = &self};
	int born, gone;

	CHECK_EQ(followed_open(&f, NULL), 0);
	gone = watch(&f, "sched_process_free", followed_emit_gone);
	born = watch(&f, "task_newtask", followed_emit_born);
	CHECK(born >= 0 && gone >= 0);
	for (uint64_t round = 1; round <= 2; round++) {
		make_children(pids);
		CHECK_EQ(n_in_map(&f), ROOM);
		CHECK_EQ(followed_n_left_out(&f), round * (N_CHILDREN - ROOM));
		end_children(pids);
		wait_until_empty(&f);
		CHECK_EQ(n_in_map(&f), 0);
	}
	close(born);
	close(gone);
	close(f.map_fd);
	followed_close(&f);
	CHECK_EQ(followed_n_left_out(&f), 0);
}

int main(void)
{
	static const struct test tests[] = {
		{"children are followed from birth to end, and counted where there is no room",
			test_children}};
	struct bpf_map_spec spec = {BPF_MAP_TYPE_HASH, 8, 4, ROOM, 0, "followed"};
	FD_AUTO fd = bpf_map_open(&spec);

	if (fd < 0) {
		printf("skip children are followed: BPF is not permitted here\n");
		return 0;
	}
	return RUN_TESTS(tests);
}
