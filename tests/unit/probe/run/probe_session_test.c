/* SPDX-License-Identifier: MIT */
/* weir-test: tsan */
/* Streams made by hand are run on this kernel: rights are needed, or the tests are skipped. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/file.h"
#include "bpf/kernel_map.h"
#include "check.h"
#include "probe/run/run.h"
#include "probe/types/call_abi.h"
#include "process/syscall_names.h"
#include "stream_maker.h"

#define MANY 1000

/* Probed functions. Their addresses become file offsets through /proc/self/maps. */
int probed(int a, const char *text);
__attribute__((noinline)) int probed(int a, const char *text)
{
	__asm__ volatile("" : : "r"(text) : "memory");
	return a + 1;
}

extern const uint8_t many_functions[], locked_function[];
__asm__(".text\n.globl many_functions\n.balign 16\nmany_functions:\n"
	".rept 1000\npush %rbp\npop %rbp\nret\n.balign 16\n.endr\n"
	".globl locked_function\nlocked_function:\nlock incl (%rsp)\nret\n");

/* As USDT probes have it: how many are interested. */
static volatile uint16_t semaphore = 0x100; /* in .data, not in .bss */

static struct stream_maker maker; /* large */

static struct foff offset_of(const void *p)
{
	unsigned long at = (unsigned long)p, from, to, offset = 0;
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx %*s %lx", &from, &to, &offset) == 3 && at >= from &&
			at < to)
			break;
	if (f)
		fclose(f);
	return (struct foff){at - from + offset};
}

static const char *own_path(void)
{
	static char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	path[n > 0 ? n : 0] = 0;
	return path;
}

/* The sites of `functions` in this file, as point_find would find them. */
static void found_in_own_file(struct stream_maker *m, struct stream_point *p,
	const void *const *functions, const char *name, size_t n)
{
	struct point *found = arena_zalloc(m->s.arena, sizeof(*found));
	struct target *target = arena_zalloc(m->s.arena, sizeof(*target));

	target->path = own_path();
	target->mode = MODE_64;
	target->n_sites = n;
	target->sites = arena_zalloc(m->s.arena, n * sizeof(*target->sites));
	for (size_t i = 0; i < n; i++) {
		target->sites[i].function = name;
		target->sites[i].offset = offset_of(functions[i]);
		target->sites[i].addr.v = (uint64_t)(uintptr_t)functions[i];
	}
	found->spec = p->spec;
	found->targets = target;
	found->n_targets = 1;
	p->found = found;
}

/* begin{}, end{} with a constant each. */
static void add_constant(struct stream_maker *m, enum point_kind kind, const char *text,
	uint32_t format, enum stream_map ring, int32_t value)
{
	struct bpf_code c = {0};
	uint32_t clause = maker_clause(m);

	maker_send_constant(&c, ring, format, clause, value);
	maker_piece(m, maker_point(m, clause, kind, text), MODE_64, &c);
}

static void test_begin_end(void)
{
	struct probe_session_options options = {.ring_bytes = 65536};
	struct stream_maker *m = &maker;
	uint32_t print;

	maker_init(m);
	print = maker_format(m, FORMAT_PRINT);
	add_constant(m, POINT_BEGIN, "begin", print, STREAM_MAP_RECORDS, 11);
	add_constant(m, POINT_BEGIN, "begin", print, STREAM_MAP_RECORDS, 12);
	add_constant(m, POINT_END, "end", print, STREAM_MAP_RECORDS, 13);
	CHECK_EQ(maker_open(m, &options), 0);
	if (m->session) {
		struct probe_session_facts facts;

		CHECK_EQ(m->n_records, 0);
		CHECK_EQ(probe_session_begin(m->session, &m->err), 0);
		CHECK_EQ(m->n_records, 2); /* one program: in the order of the clauses */
		CHECK_EQ(m->records[0].arg, 11);
		CHECK_EQ(m->records[1].arg, 12);
		CHECK_EQ(m->records[1].r.pid, getpid());
		CHECK(probe_session_work(m->session));
		probe_session_end(m->session);
		CHECK_EQ(m->n_records, 3);
		CHECK_EQ(m->records[2].arg, 13);
		probe_session_facts(m->session, &facts);
		CHECK_EQ(facts.n_programs, 2);
	} else {
		printf("%s\n", m->err.text);
	}
	maker_release(m);
}

static void test_exit(void)
{
	struct probe_session_options options = {.ring_bytes = 65536};
	struct stream_maker *m = &maker;
	uint32_t print, leave;

	maker_init(m);
	print = maker_format(m, FORMAT_PRINT);
	leave = maker_format(m, FORMAT_EXIT);
	add_constant(m, POINT_BEGIN, "begin", print, STREAM_MAP_RECORDS, 1);
	add_constant(m, POINT_BEGIN, "begin", leave, STREAM_MAP_CONTROL, 7);
	add_constant(m, POINT_BEGIN, "begin", print, STREAM_MAP_RECORDS, 2);
	add_constant(m, POINT_END, "end", print, STREAM_MAP_RECORDS, 3);
	CHECK_EQ(maker_open(m, &options), 0);
	if (m->session) {
		CHECK_EQ(probe_session_begin(m->session, &m->err), 0);
		CHECK(!probe_session_work(m->session));
		CHECK_EQ(probe_session_exit_status(m->session), 7);
		CHECK_EQ(m->n_records, 1); /* not what came behind exit() */
		probe_session_end(m->session);
		CHECK_EQ(m->n_records, 2); /* but end{} */
		CHECK_EQ(m->records[1].arg, 3);
	}
	maker_release(m);
}

static void test_interval(void)
{
	struct probe_session_options options = {.ring_bytes = 65536};
	struct stream_maker *m = &maker;

	maker_init(m);
	add_constant(m, POINT_INTERVAL, "interval:ms:2", maker_format(m, FORMAT_PRINT),
		STREAM_MAP_RECORDS, 5);
	m->s.points.v[0].spec.period_ns = 2000000;
	CHECK_EQ(maker_open(m, &options), 0);
	if (m->session) {
		CHECK_EQ(probe_session_begin(m->session, &m->err), 0);
		maker_wait(m, 3);
		CHECK(m->n_records >= 3);
		CHECK(m->records[0].r.time_ns < m->records[1].r.time_ns);
	}
	maker_release(m);
}

/* uprobe of probed(): its first argument, then its site. */
static struct stream_point *add_uprobe(
	struct stream_maker *m, enum point_kind kind, uint32_t clause, int reg)
{
	const void *functions[] = {(const void *)probed};
	struct stream_point *p =
		maker_point(m, clause, kind, kind == POINT_UPROBE ? "uprobe:me:probed" : "uret:me");
	struct bpf_code c = {0};
	uint32_t format = maker_format(m, FORMAT_PRINT);

	bpf_load(&c, BPF_DW, BPF_REG_1, BPF_REG_6, (int16_t)reg);
	bpf_store(&c, BPF_DW, BPF_REG_10, MAKER_ARG_AT, BPF_REG_1);
	maker_send(&c, STREAM_MAP_RECORDS, format, clause);
	bpf_load(&c, BPF_DW, BPF_REG_1, BPF_REG_10, STREAM_WORD_SITE);
	bpf_store(&c, BPF_DW, BPF_REG_10, MAKER_ARG_AT, BPF_REG_1);
	maker_send(&c, STREAM_MAP_RECORDS, format, clause);
	maker_piece(m, p, MODE_64, &c)->uses_site = true;
	found_in_own_file(m, p, functions, "probed", 1);
	return p;
}

static void check_uprobe(const struct probe_session_options *options, bool uses_multi)
{
	struct stream_maker *m = &maker;
	struct probe_session_facts facts;

	maker_init(m);
	add_uprobe(m, POINT_UPROBE, maker_clause(m), PT_DI);
	add_uprobe(m, POINT_URETPROBE, maker_clause(m), PT_AX);
	CHECK_EQ(maker_open(m, options), 0);
	if (!m->session)
		printf("%s\n", m->err.text);
	if (m->session) {
		probed(1, "before begin");
		CHECK_EQ(probe_session_begin(m->session, &m->err), 0);
		CHECK_EQ(m->n_records, 0);
		CHECK_EQ(probed(41, "x"), 42);
		maker_wait(m, 4);
		CHECK_EQ(m->n_records, 4);
		CHECK_EQ(m->records[0].arg, 41);
		CHECK_STR(probe_session_site(m->session, m->records[1].arg, false),
			"uprobe:me:probed");
		CHECK_STR(probe_session_site(m->session, m->records[1].arg, true), "probed");
		CHECK_EQ(m->records[2].arg, 42); /* its result */
		CHECK_STR(probe_session_site(m->session, m->records[3].arg, false), "uret:me");
		probe_session_facts(m->session, &facts);
		CHECK_EQ(facts.uses_multi, uses_multi);
		CHECK_EQ(facts.n_sites, 2);
		probe_session_end(m->session);
		probed(1, "after the end");
		CHECK_EQ(m->n_records, 4);
	}
	maker_release(m);
}

static void test_uprobe(void)
{
	struct probe_session_options options = {.ring_bytes = 65536};

	check_uprobe(&options, true);
}

static void test_uprobe_by_perf(void)
{
	struct probe_session_options options = {.ring_bytes = 65536, .without = "multi"};

	check_uprobe(&options, false);
	CHECK(strstr(maker.notes, "detaching takes long"));
}

static void check_filter(void)
{
	pid_t others[1], child;
	struct probe_session_options options = {.ring_bytes = 65536, .pids = others, .n_pids = 1};
	struct stream_maker *m = &maker;
	int go[2];
	char byte;

	if (pipe(go) < 0)
		return;
	maker_init(m);
	add_uprobe(m, POINT_UPROBE, maker_clause(m), PT_DI);
	/* The child waits, then its own child calls, and at last it does so itself. */
	child = fork();
	if (child == 0) {
		pid_t grandchild;

		if (read(go[0], &byte, 1) != 1)
			_exit(1);
		grandchild = fork();
		if (grandchild == 0) {
			probed(22, "grandchild");
			_exit(0);
		}
		waitpid(grandchild, NULL, 0);
		probed(21, "child");
		_exit(0);
	}
	others[0] = child;
	CHECK_EQ(maker_open(m, &options), 0);
	if (m->session) {
		CHECK_EQ(probe_session_begin(m->session, &m->err), 0);
		probed(20, "not traced");
		CHECK_EQ(write(go[1], "g", 1), 1);
		waitpid(child, NULL, 0);
		maker_wait(m, 4);
		probed(20, "not traced");
		probe_session_end(m->session);
		CHECK_EQ(m->n_records, 4);
		CHECK_EQ(m->records[0].arg, 22);
		CHECK_EQ(m->records[2].arg, 21);
		CHECK_EQ(m->records[2].r.pid, child);
		CHECK_STR(m->notes, "");
	} else {
		printf("%s\n", m->err.text);
		kill(child, SIGKILL);
	}
	close(go[0]);
	close(go[1]);
	maker_release(m);
}

static void test_filter(void)
{
	check_filter();
	setenv("WEIR_PROBE_WITHOUT", "tracefs", 1); /* then the kernel's BTF tells */
	check_filter();
	unsetenv("WEIR_PROBE_WITHOUT");
}

static void test_many(void)
{
	static const void *functions[MANY];
	struct probe_session_options options = {.ring_bytes = 65536};
	struct stream_maker *m = &maker;
	struct stream_point *p;
	struct bpf_code c = {0};
	struct probe_session_facts facts;
	uint32_t clause;

	for (size_t i = 0; i < MANY; i++)
		functions[i] = many_functions + 16 * i;
	maker_init(m);
	clause = maker_clause(m);
	p = maker_point(m, clause, POINT_UPROBE, "uprobe:me:many*");
	p->spec.is_glob = true;
	bpf_load(&c, BPF_DW, BPF_REG_1, BPF_REG_10, STREAM_WORD_SITE);
	bpf_store(&c, BPF_DW, BPF_REG_10, MAKER_ARG_AT, BPF_REG_1);
	maker_send(&c, STREAM_MAP_RECORDS, maker_format(m, FORMAT_PRINT), clause);
	maker_piece(m, p, MODE_64, &c)->uses_site = true;
	found_in_own_file(m, p, functions, "many", MANY);
	CHECK_EQ(maker_open(m, &options), 0);
	if (m->session) {
		CHECK_EQ(probe_session_begin(m->session, &m->err), 0);
		for (size_t i = 0; i < MANY; i++)
			((void (*)(void))(uintptr_t)(many_functions + 16 * i))();
		maker_wait(m, MANY);
		CHECK_EQ(m->n_records, MANY);
		CHECK_EQ(m->records[0].arg, 0);
		CHECK_EQ(m->records[MANY - 1].arg, MANY - 1);
		probe_session_facts(m->session, &facts);
		CHECK_EQ(facts.n_sites, MANY);
		CHECK_EQ(facts.n_links, 1);
		probe_session_end(m->session);
		((void (*)(void))(uintptr_t)many_functions)();
		CHECK_EQ(m->n_records, MANY);
	} else {
		printf("%s\n", m->err.text);
	}
	maker_release(m);
}

static void check_refused(bool is_glob)
{
	const void *functions[] = {locked_function, many_functions, many_functions + 16};
	struct probe_session_options options = {.ring_bytes = 65536};
	struct stream_maker *m = &maker;
	struct probe_session_facts facts;
	struct stream_point *p;
	struct bpf_code c = {0};
	uint32_t clause;

	maker_init(m);
	clause = maker_clause(m);
	p = maker_point(m, clause, POINT_UPROBE, "uprobe:me:locked");
	p->spec.is_glob = is_glob;
	bpf_mov_imm(&c, BPF_REG_0, 0);
	maker_piece(m, p, MODE_64, &c);
	found_in_own_file(m, p, functions, "locked", is_glob ? 3 : 1);
	CHECK_EQ(maker_open(m, &options), is_glob ? 0 : ERR_UNSUPPORTED);
	if (m->session) {
		probe_session_facts(m->session, &facts);
		CHECK_EQ(facts.n_sites, 2);
		CHECK(strstr(m->notes, "1 of 3 sites"));
		CHECK(strstr(m->notes, "(locked): the kernel does not put a probe on that"));
	} else {
		CHECK(strstr(m->err.text, "uprobe:me:locked: cannot be attached"));
	}
	maker_release(m);
}

static void test_refused_site(void)
{
	check_refused(false);
	check_refused(true);
}

/* Reads one byte of the second argument, a page that nobody has touched. */
static void check_absent_page(bool without_sleep, uint64_t expected)
{
	struct probe_session_options options = {
		.ring_bytes = 65536, .without = without_sleep ? "sleep" : NULL};
	const void *functions[] = {(const void *)probed};
	struct stream_maker *m = &maker;
	struct probe_session_facts facts;
	struct stream_piece *piece;
	struct stream_point *p;
	struct bpf_code c = {0};
	uint32_t clause;
	char *page;

	page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, open(own_path(), O_RDONLY), 0);
	maker_init(m);
	clause = maker_clause(m);
	p = maker_point(m, clause, POINT_UPROBE, "uprobe:me:probed");
	bpf_store_imm(&c, BPF_DW, BPF_REG_10, MAKER_ARG_AT, 0);
	bpf_load(&c, BPF_DW, BPF_REG_3, BPF_REG_6, PT_SI);
	bpf_mov(&c, BPF_REG_1, BPF_REG_10);
	bpf_alu_imm(&c, BPF_ADD, BPF_REG_1, MAKER_ARG_AT);
	bpf_mov_imm(&c, BPF_REG_2, 4);
	bpf_call(&c, BPF_FUNC_copy_from_user);
	maker_send(&c, STREAM_MAP_RECORDS, maker_format(m, FORMAT_PRINT), clause);
	piece = maker_piece(m, p, MODE_64, &c);
	piece->reads_user = true;
	found_in_own_file(m, p, functions, "probed", 1);
	CHECK_EQ(maker_open(m, &options), 0);
	if (m->session && page != MAP_FAILED) {
		CHECK_EQ(probe_session_begin(m->session, &m->err), 0);
		probed(1, page);
		maker_wait(m, 1);
		CHECK_EQ(m->n_records, 1);
		CHECK_EQ(m->records[0].arg, expected);
		probe_session_facts(m->session, &facts);
		CHECK_EQ(facts.sleeps, !without_sleep);
		CHECK_EQ(strstr(m->notes, "cannot sleep") != NULL, without_sleep);
	} else {
		printf("%s\n", m->err.text);
	}
	maker_release(m);
	munmap(page, 4096);
}

static void test_sleep(void)
{
	check_absent_page(false, 0x464c457f);
	check_absent_page(true, 0);
}

/* Adds 8 to a word of the scratch area, which keeps nothing of value between runs. */
static void test_scratch(void)
{
	struct probe_session_options options = {.ring_bytes = 65536};
	struct stream_maker *m = &maker;
	struct clause_loss loss;
	struct bpf_code c = {0};
	uint32_t clause;

	maker_init(m);
	clause = maker_clause(m);
	bpf_mov_imm(&c, BPF_REG_1, 77);
	bpf_store(&c, BPF_DW, BPF_REG_7, 1016, BPF_REG_1);
	bpf_load(&c, BPF_DW, BPF_REG_1, BPF_REG_7, 1016);
	bpf_store(&c, BPF_DW, BPF_REG_10, MAKER_ARG_AT, BPF_REG_1);
	maker_send(&c, STREAM_MAP_RECORDS, maker_format(m, FORMAT_PRINT), clause);
	maker_piece(m, maker_point(m, clause, POINT_BEGIN, "begin"), MODE_64, &c)->scratch_bytes =
		1024;
	CHECK_EQ(maker_open(m, &options), 0);
	if (m->session) {
		for (int i = 0; i < 20; i++) /* an area that is not given back would be missed */
			CHECK_EQ(probe_session_begin(m->session, &m->err), 0);
		CHECK_EQ(m->n_records, 20);
		CHECK_EQ(m->records[19].arg, 77);
		probe_session_loss(m->session, 0, &loss);
		CHECK_EQ(loss.busy, 0);
	} else {
		printf("%s\n", m->err.text);
	}
	maker_release(m);
}

static void check_semaphore(const struct probe_session_options *options)
{
	const void *functions[] = {(const void *)probed};
	struct stream_maker *m = &maker;
	struct stream_point *p;
	struct bpf_code c = {0};

	maker_init(m);
	p = maker_point(m, maker_clause(m), POINT_USDT, "usdt:me:probe");
	p->operands = "4@%edi";
	p->operands_mode = MODE_64;
	bpf_mov_imm(&c, BPF_REG_0, 0);
	maker_piece(m, p, MODE_64, &c);
	found_in_own_file(m, p, functions, "probed", 1);
	p->found->targets[0].sites[0].operands = "4@%edi";
	p->found->targets[0].sites[0].semaphore = offset_of((const void *)&semaphore).v;
	CHECK_EQ(semaphore, 0x100);
	CHECK_EQ(maker_open(m, options), 0);
	CHECK_EQ(semaphore, 0x101);
	if (m->session)
		probe_session_end(m->session);
	CHECK_EQ(semaphore, 0x100);
	maker_release(m);
}

static void test_semaphore(void)
{
	struct probe_session_options multi = {.ring_bytes = 65536};
	struct probe_session_options perf = {.ring_bytes = 65536, .without = "multi"};

	check_semaphore(&multi);
	check_semaphore(&perf);
}

/* All areas of this clause's program are taken, as if programs had interrupted each other. */
static void test_busy(void)
{
	struct probe_session_options options = {.ring_bytes = 65536};
	size_t n = bpf_possible_cpus() * (8 + 16);
	uint8_t *busy = mem_alloc(n);
	struct stream_maker *m = &maker;
	struct clause_loss loss;
	struct bpf_code c = {0};
	uint32_t clause;

	memset(busy, 1, n);
	maker_init(m);
	maker_clause(m);
	clause = maker_clause(m);
	maker_send_constant(&c, STREAM_MAP_RECORDS, maker_format(m, FORMAT_PRINT), clause, 1);
	maker_piece(m, maker_point(m, clause, POINT_BEGIN, "begin"), MODE_64, &c)->scratch_bytes =
		16;
	CHECK_EQ(maker_open(m, &options), 0);
	if (m->session) {
		for (uint32_t i = 0; i < SCRATCH_AREAS; i++)
			CHECK_EQ(bpf_map_update(m->session->maps[STREAM_MAP_SCRATCH], &i, busy), 0);
		CHECK_EQ(probe_session_begin(m->session, &m->err), 0);
		CHECK_EQ(m->n_records, 0);
		probe_session_loss(m->session, clause, &loss);
		CHECK_EQ(loss.busy, 1);
		probe_session_loss(m->session, 0, &loss);
		CHECK_EQ(loss.busy, 0);
	}
	free(busy);
	maker_release(m);
}

static const struct test tests[] = {
	{"begin and end run in the order of their clauses", test_begin_end},
	{"exit stops records of later times and has a status", test_exit},
	{"an interval runs again and again", test_interval},
	{"a uprobe and a return probe see values and know their site", test_uprobe},
	{"the same by perf events where links for many sites are switched off",
		test_uprobe_by_perf},
	{"only a process and its children are traced when one is given", test_filter},
	{"a thousand functions are attached by one link", test_many},
	{"a function that the kernel refuses is an error, or left out of a glob",
		test_refused_site},
	{"a page that is not in memory is read by a program that may sleep", test_sleep},
	{"the scratch area is there and is given back", test_scratch},
	{"a semaphore is raised while its site is attached", test_semaphore},
	{"a clause that finds no scratch area is counted", test_busy},
};

int main(void)
{
	struct bpf_map_spec spec = {BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0, "try"};
	int fd = bpf_map_open(&spec);

	if (fd < 0) {
		for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
			printf("skip %s: BPF is not permitted: %s\n", tests[i].sentence,
				strerror(-fd));
		return 0;
	}
	close(fd);
	return RUN_TESTS(tests);
}
