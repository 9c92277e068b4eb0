/* SPDX-License-Identifier: MIT */
/* Streams made by hand at points of the kernel, their maps, and what the verifier refuses. */
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/mem.h"
#include "bpf/kernel_map.h"
#include "check.h"
#include "probe/types/call_abi.h"
#include "process/syscall_names.h"
#include "stream_maker.h"

#define GETPPID_32 64
#define GETPPID_64 SYS_getppid

static struct stream_maker maker; /* large */
static const struct probe_session_options small = {.ring_bytes = 65536};

static void say_why(const struct stream_maker *m)
{
	if (!m->session)
		printf("%s\n", m->err.text);
}

/* getppid as 32-bit programs call it, from 64-bit code. */
static void call_getppid_32(void)
{
	long result = GETPPID_32;

	__asm__ volatile("int $0x80" : "+a"(result) : : "r8", "r9", "r10", "r11", "memory");
}

/* Into 32-bit code for one system call and back: what a 32-bit program looks like to the kernel.
 * The page at rdi is below 4 GB; rsp is kept in it, since 32-bit code loses the upper half. */
void enter_32_bit_code(void *page);
__asm__(".text\n.globl enter_32_bit_code\nenter_32_bit_code:\n"
	"push %rbx\npush %rbp\npush %r12\npush %r13\npush %r14\npush %r15\n"
	"lea 1f(%rip), %rax\npush %rax\n"
	"mov %rsp, 0x100(%rdi)\n"
	"lea 0x1000(%rdi), %rsp\n"
	"ljmpl *0x110(%rdi)\n"
	"1:\npop %r15\npop %r14\npop %r13\npop %r12\npop %rbp\npop %rbx\nret\n");

static void call_getppid_in_32_bit_code(void)
{
	/* mov $64, %eax; int $0x80; ljmp $0x33, $page + 14; (64 bit:) mov 0x100(page), %rsp; ret */
	static const uint8_t code[] = {0xb8, GETPPID_32, 0, 0, 0, 0xcd, 0x80, 0xea, 0, 0, 0, 0,
		CS_64, 0, 0x48, 0x8b, 0x25, 0x100 - 21, 0, 0, 0, 0xc3};
	uint8_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	uint32_t start = (uint32_t)(uintptr_t)page, back = start + 14;
	uint16_t segment = CS_32;

	if (page == MAP_FAILED)
		return;
	memcpy(page, code, sizeof(code));
	memcpy(page + 8, &back, 4);
	memcpy(page + 0x110, &start, 4);
	memcpy(page + 0x114, &segment, 2);
	enter_32_bit_code(page);
	munmap(page, 4096);
}

/* A piece that sends `value` when it is our own process. */
static void add_piece(struct stream_maker *m, struct stream_point *p, enum mode mode,
	uint32_t format, int32_t value, bool sends_site)
{
	struct bpf_code c = {0};
	int skip = bpf_label(&c);

	bpf_call(&c, BPF_FUNC_get_current_pid_tgid);
	bpf_alu_imm(&c, BPF_RSH, BPF_REG_0, 32);
	bpf_jump_imm(&c, BPF_JNE, BPF_REG_0, getpid(), skip);
	maker_send_constant(&c, STREAM_MAP_RECORDS, format, p->clause_i, value);
	if (sends_site) {
		bpf_load(&c, BPF_DW, BPF_REG_1, BPF_REG_10, STREAM_WORD_SITE);
		bpf_store(&c, BPF_DW, BPF_REG_10, MAKER_ARG_AT, BPF_REG_1);
		maker_send(&c, STREAM_MAP_RECORDS, format, p->clause_i);
	}
	bpf_place(&c, skip);
	maker_piece(m, p, mode, &c)->uses_site = sends_site;
}

static struct point *found_calls(struct stream_maker *m, int number_32, int number_64)
{
	struct point *found = arena_zalloc(m->s.arena, sizeof(*found));

	for (int i = 0; i < N_MODES; i++)
		found->numbers[i] = arena_zalloc(m->s.arena, SYSCALL_NUMBERS_MAX / 8);
	if (number_32 >= 0)
		found->numbers[MODE_32][number_32 / 64] |= 1ull << number_32 % 64;
	if (number_64 >= 0)
		found->numbers[MODE_64][number_64 / 64] |= 1ull << number_64 % 64;
	return found;
}

static void check_syscall(enum point_kind kind, const struct probe_session_options *options)
{
	struct stream_maker *m = &maker;
	const char *name =
		kind == POINT_SYSCALL_ENTRY ? "syscall:getppid:entry" : "syscall:getppid:return";
	struct stream_point *p;
	uint32_t format;

	maker_init(m);
	format = maker_format(m, FORMAT_PRINT);
	p = maker_point(m, maker_clause(m), kind, "syscall:get*");
	p->found = found_calls(m, GETPPID_32, GETPPID_64);
	add_piece(m, p, MODE_32, format, 32, true);
	add_piece(m, p, MODE_64, format, 64, true);
	CHECK_EQ(maker_open(m, options), 0);
	say_why(m);
	if (m->session) {
		CHECK_EQ(probe_session_begin(m->session, &m->err), 0);
		syscall(SYS_getppid);
		syscall(SYS_getuid);
		syscall(GETPPID_32); /* another call in the other mode: semget */
		call_getppid_32();
		maker_wait(m, 4);
		CHECK_EQ(m->n_records, 4);
		CHECK_EQ(m->records[0].arg, 64);
		CHECK_EQ(m->records[2].arg, 32);
		CHECK_STR(probe_session_site(m->session, m->records[1].arg, false), name);
		CHECK_STR(probe_session_site(m->session, m->records[3].arg, false), name);
		CHECK_STR(probe_session_site(m->session, m->records[3].arg, true), "getppid");
	}
	maker_release(m);
}

static void test_syscall(void)
{
	struct probe_session_options without_btf = {.ring_bytes = 65536, .without = "btf"};

	check_syscall(POINT_SYSCALL_ENTRY, &small);
	check_syscall(POINT_SYSCALL_RETURN, &small);
	check_syscall(POINT_SYSCALL_ENTRY, &without_btf);
}

/* More numbers than are compared one by one, and code for one mode only. */
static void test_many_calls(void)
{
	struct stream_maker *m = &maker;
	struct stream_point *p;
	struct point *found;

	maker_init(m);
	p = maker_point(m, maker_clause(m), POINT_SYSCALL_ENTRY, "syscall:*");
	found = found_calls(m, GETPPID_32, GETPPID_64);
	for (int i = 200; i < 300; i++)
		found->numbers[MODE_64][i / 64] |= 1ull << i % 64;
	p->found = found;
	add_piece(m, p, MODE_64, maker_format(m, FORMAT_PRINT), 64, false);
	CHECK_EQ(maker_open(m, &small), 0);
	say_why(m);
	if (m->session) {
		CHECK_EQ(probe_session_begin(m->session, &m->err), 0);
		call_getppid_32();
		syscall(SYS_getppid); /* 110 */
		syscall(SYS_getuid);  /* 102 */
		syscall(SYS_time);    /* 201 */
		maker_wait(m, 2);
		/* Our own polling may be among 200 .. 299. */
		CHECK(m->n_records >= 2);
	}
	maker_release(m);
}

/* A point that sees both modes looks at the code segment. */
static void test_segment(void)
{
	struct stream_maker *m = &maker;
	struct stream_point *p;
	uint32_t format;

	maker_init(m);
	format = maker_format(m, FORMAT_PRINT);
	p = maker_point(m, maker_clause(m), POINT_RAW_TRACEPOINT, "rawtracepoint:sys_enter");
	p->spec.name = "sys_enter";
	p->found = arena_zalloc(m->s.arena, sizeof(struct point));
	add_piece(m, p, MODE_32, format, 32, true);
	add_piece(m, p, MODE_64, format, 64, true);
	CHECK_EQ(maker_open(m, &small), 0);
	say_why(m);
	if (m->session) {
		size_t n_32 = 0, n_64 = 0;

		CHECK_EQ(probe_session_begin(m->session, &m->err), 0);
		call_getppid_32(); /* 64-bit code, whatever it calls */
		call_getppid_in_32_bit_code();
		probe_session_end(m->session);
		for (size_t i = 0; i < m->n_records; i += 2) {
			n_32 += m->records[i].arg == 32;
			n_64 += m->records[i].arg == 64;
		}
		CHECK_EQ(n_32, 1);
		CHECK(n_64 >= 3);
		CHECK_STR(probe_session_site(m->session, m->records[1].arg, false),
			"rawtracepoint:sys_enter");
	}
	maker_release(m);
}

static void test_tracepoint(void)
{
	struct stream_maker *m = &maker;
	struct stream_point *p;

	maker_init(m);
	p = maker_point(m, maker_clause(m), POINT_TRACEPOINT, "tracepoint:task:task_rename");
	p->spec.provider = "task";
	p->spec.name = "task_rename";
	p->found = arena_zalloc(m->s.arena, sizeof(struct point));
	add_piece(m, p, MODE_64, maker_format(m, FORMAT_PRINT), 64, false);
	CHECK_EQ(maker_open(m, &small), 0);
	say_why(m);
	if (m->session) {
		FILE *f = fopen("/proc/self/comm", "we");

		CHECK_EQ(probe_session_begin(m->session, &m->err), 0);
		if (f) {
			fputs("renamed", f);
			fclose(f);
		}
		maker_wait(m, 1);
		CHECK_EQ(m->n_records, 1);
	}
	maker_release(m);
}

static void test_unknown_tracepoint(void)
{
	struct stream_maker *m = &maker;
	struct stream_point *p;

	maker_init(m);
	p = maker_point(m, maker_clause(m), POINT_RAW_TRACEPOINT, "rawtracepoint:no_such");
	p->spec.name = "no_such";
	p->found = arena_zalloc(m->s.arena, sizeof(struct point));
	add_piece(m, p, MODE_64, maker_format(m, FORMAT_PRINT), 64, false);
	CHECK_EQ(maker_open(m, &small), ERR_NOT_FOUND);
	CHECK_STR(
		m->err.text, "rawtracepoint:no_such: this kernel has no raw tracepoint 'no_such'");
	maker_release(m);
}

static void check_function(enum point_kind kind)
{
	struct stream_maker *m = &maker;
	struct stream_point *p;
	int rc;

	maker_init(m);
	p = maker_point(m, maker_clause(m), kind, "fentry:vfs_read");
	p->spec.name = "vfs_read";
	p->found = arena_zalloc(m->s.arena, sizeof(struct point));
	add_piece(m, p, MODE_64, maker_format(m, FORMAT_PRINT), 64, false);
	rc = maker_open(m, &small);
	if (rc == ERR_UNSUPPORTED || rc == ERR_PERMISSION) {
		printf("skip %s is run: %s\n", p->spec.text, m->err.text);
	} else {
		CHECK_EQ(rc, 0);
		say_why(m);
	}
	if (m->session) {
		FILE *f = fopen("/proc/self/comm", "re");
		char text[32];

		CHECK_EQ(probe_session_begin(m->session, &m->err), 0);
		CHECK(f && fgets(text, sizeof(text), f));
		maker_wait(m, 1);
		CHECK(m->n_records >= 1);
		if (f)
			fclose(f);
	}
	maker_release(m);
}

static void test_function(void)
{
	check_function(POINT_FENTRY);
	check_function(POINT_FEXIT);
}

static void test_profile(void)
{
	struct stream_maker *m = &maker;
	struct stream_point *p;

	maker_init(m);
	p = maker_point(m, maker_clause(m), POINT_PROFILE, "profile:ms:1");
	p->spec.period_ns = 1000000;
	add_piece(m, p, MODE_64, maker_format(m, FORMAT_PRINT), 64, false);
	CHECK_EQ(maker_open(m, &small), 0);
	say_why(m);
	if (m->session) {
		CHECK_EQ(probe_session_begin(m->session, &m->err), 0);
		for (int i = 0; i < 1000 && !m->n_records; i++) {
			for (volatile int spin = 0; spin < 1000000; spin++)
				;
			probe_session_work(m->session);
		}
		CHECK(m->n_records >= 1);
	}
	maker_release(m);
}

/* --- maps ------------------------------------------------------------------------------------ */

/* r0 = map_update(map, key at -64, value at -128) */
static void emit_update(struct bpf_code *c, uint32_t map)
{
	bpf_load_map(c, BPF_REG_1, (int)map);
	bpf_mov(c, BPF_REG_2, BPF_REG_10);
	bpf_alu_imm(c, BPF_ADD, BPF_REG_2, -64);
	bpf_mov(c, BPF_REG_3, BPF_REG_10);
	bpf_alu_imm(c, BPF_ADD, BPF_REG_3, -128);
	bpf_mov_imm(c, BPF_REG_4, BPF_ANY);
	bpf_call(c, BPF_FUNC_map_update_elem);
}

/* Counts in LOSS when r0 is not 0. */
static void emit_count_full(struct bpf_code *c)
{
	int fine = bpf_label(c);

	bpf_jump_imm(c, BPF_JEQ, BPF_REG_0, 0, fine);
	bpf_store_imm(c, BPF_W, BPF_REG_10, -136, 0);
	bpf_load_map(c, BPF_REG_1, STREAM_MAP_LOSS);
	bpf_mov(c, BPF_REG_2, BPF_REG_10);
	bpf_alu_imm(c, BPF_ADD, BPF_REG_2, -136);
	bpf_call(c, BPF_FUNC_map_lookup_elem);
	bpf_jump_imm(c, BPF_JEQ, BPF_REG_0, 0, fine);
	bpf_mov_imm(c, BPF_REG_1, 1);
	bpf_atomic(c, BPF_ADD, BPF_REG_0, offsetof(struct clause_loss, map_full), BPF_REG_1);
	bpf_place(c, fine);
}

struct entries {
	size_t n;
	uint64_t keys, values, last[2];
};

static void add_entry(void *ctx, struct span key, struct span value)
{
	struct entries *e = ctx;
	uint64_t k, v;

	memcpy(&k, key.p, 8);
	memcpy(&v, value.p, 8);
	e->n++;
	e->keys += k;
	e->values += v;
	memcpy(e->last, value.p, value.n < 16 ? value.n : 16);
}

static void test_full_map(void)
{
	struct stream_maker *m = &maker;
	struct clause_loss loss;
	struct entries e = {0};
	struct bpf_code c = {0};
	uint32_t map;

	maker_init(m);
	map = maker_map(m, maker_shape(m, SHAPE_INT, 8), maker_shape(m, SHAPE_INT, 8), 4);
	for (int i = 1; i <= 6; i++) {
		bpf_store_imm(&c, BPF_DW, BPF_REG_10, -64, i);
		bpf_store_imm(&c, BPF_DW, BPF_REG_10, -128, 10 * i);
		emit_update(&c, map);
		emit_count_full(&c);
	}
	maker_piece(m, maker_point(m, maker_clause(m), POINT_BEGIN, "begin"), MODE_64, &c);
	CHECK_EQ(maker_open(m, &small), 0);
	say_why(m);
	if (m->session) {
		CHECK_EQ(probe_session_begin(m->session, &m->err), 0);
		CHECK_EQ(probe_session_map_each(m->session, 0, add_entry, &e, &m->err), 0);
		CHECK_EQ(e.n, 4);
		CHECK_EQ(e.values, 10 * e.keys);
		probe_session_loss(m->session, 0, &loss);
		CHECK_EQ(loss.map_full, 2);
		CHECK_EQ(loss.failed_reads, 0);
		CHECK_EQ(probe_session_map_clear(m->session, 0, true), 0);
		e = (struct entries){0};
		probe_session_map_each(m->session, 0, add_entry, &e, &m->err);
		CHECK_EQ(e.n, 4);
		CHECK_EQ(e.values, 0);
		CHECK_EQ(probe_session_map_clear(m->session, 0, false), 0);
		e = (struct entries){0};
		probe_session_map_each(m->session, 0, add_entry, &e, &m->err);
		CHECK_EQ(e.n, 0);
	}
	maker_release(m);
}

/* Values of all CPUs are put together by what they are. */
static void check_aggregation(enum shape_kind kind, uint32_t bytes, uint64_t first, uint64_t second)
{
	struct stream_maker *m = &maker;
	struct entries e = {0};
	struct bpf_code c = {0};
	uint32_t map;

	maker_init(m);
	map = maker_map(m, maker_shape(m, SHAPE_NONE, 0), maker_shape(m, kind, bytes), 0);
	bpf_store_imm(&c, BPF_DW, BPF_REG_10, -64, 0);
	bpf_store_imm(&c, BPF_DW, BPF_REG_10, -128, 3);
	bpf_store_imm(&c, BPF_DW, BPF_REG_10, -120, -5);
	emit_update(&c, map);
	maker_piece(m, maker_point(m, maker_clause(m), POINT_BEGIN, "begin"), MODE_64, &c);
	CHECK_EQ(maker_open(m, &small), 0);
	say_why(m);
	if (m->session) {
		/* On this CPU only: the others have n = 0 and must not count as a value. */
		CHECK_EQ(probe_session_begin(m->session, &m->err), 0);
		CHECK_EQ(probe_session_map_each(m->session, 0, add_entry, &e, &m->err), 0);
		CHECK_EQ(e.n, 1);
		CHECK_EQ(e.last[0], first);
		CHECK_EQ(e.last[1], second);
	}
	maker_release(m);
}

static void test_aggregations(void)
{
	check_aggregation(SHAPE_COUNT, 8, 3, 0);
	check_aggregation(SHAPE_AVG, 16, 3, (uint64_t)-5);
	check_aggregation(SHAPE_MIN, 16, 3, (uint64_t)-5);
	check_aggregation(SHAPE_MAX, 16, 3, (uint64_t)-5);
}

static void add_self_counter(struct stream_maker *m)
{
	uint32_t clause = maker_clause(m);
	struct bpf_code c = {0};
	int none = bpf_label(&c);

	bpf_call(&c, BPF_FUNC_get_current_task_btf);
	bpf_mov(&c, BPF_REG_2, BPF_REG_0);
	bpf_load_map(&c, BPF_REG_1, STREAM_MAP_SELF);
	bpf_mov_imm(&c, BPF_REG_3, 0);
	bpf_mov_imm(&c, BPF_REG_4, BPF_LOCAL_STORAGE_GET_F_CREATE);
	bpf_call(&c, BPF_FUNC_task_storage_get);
	bpf_jump_imm(&c, BPF_JEQ, BPF_REG_0, 0, none);
	bpf_load(&c, BPF_DW, BPF_REG_1, BPF_REG_0, 8);
	bpf_alu_imm(&c, BPF_ADD, BPF_REG_1, 1);
	bpf_store(&c, BPF_DW, BPF_REG_0, 8, BPF_REG_1);
	bpf_store(&c, BPF_DW, BPF_REG_10, MAKER_ARG_AT, BPF_REG_1);
	maker_send(&c, STREAM_MAP_RECORDS, maker_format(m, FORMAT_PRINT), clause);
	bpf_place(&c, none);
	maker_piece(m, maker_point(m, clause, POINT_BEGIN, "begin"), MODE_64, &c);
	m->s.self_bytes = 16;
}

static void test_self(void)
{
	struct probe_session_options without = {.ring_bytes = 65536, .without = "task-storage"};
	struct stream_maker *m = &maker;

	maker_init(m);
	add_self_counter(m);
	CHECK_EQ(maker_open(m, &small), 0);
	say_why(m);
	if (m->session) {
		CHECK_EQ(probe_session_begin(m->session, &m->err), 0);
		CHECK_EQ(probe_session_begin(m->session, &m->err), 0);
		CHECK_EQ(m->n_records, 2);
		CHECK_EQ(m->records[1].arg, 2);
	}
	maker_release(m);
	maker_init(m);
	add_self_counter(m);
	CHECK_EQ(maker_open(m, &without), ERR_UNSUPPORTED);
	CHECK(strstr(m->err.text, "task storage"));
	maker_release(m);
}

/* --- refusals and switches ------------------------------------------------------------------- */

static void test_refused_program(void)
{
	struct stream_maker *m = &maker;
	struct bpf_code c = {0};
	struct stream_piece *piece;
	/* MAKER_TEXT: "begin { a }\nuprobe:x:y { b; }": b is in line 2, column 14 */
	struct stream_line lines[] = {{0, {0, 8, 9, 0}}, {1, {0, 25, 26, 0}}, {3, {0, 8, 9, 0}}};

	maker_init(m);
	bpf_mov_imm(&c, BPF_REG_1, 0);
	bpf_mov_imm(&c, BPF_REG_2, 5);
	bpf_load(&c, BPF_DW, BPF_REG_0, BPF_REG_2, 0); /* 5 is no address */
	bpf_mov_imm(&c, BPF_REG_0, 0);
	piece = maker_piece(m, maker_point(m, maker_clause(m), POINT_BEGIN, "begin"), MODE_64, &c);
	for (size_t i = 0; i < 3; i++) {
		lines[i].insn_i += piece->action_at;
		vec_push(&m->s.lines[MODE_64], lines[i]);
	}
	CHECK_EQ(maker_open(m, &small), ERR_UNSUPPORTED);
	CHECK_STR(m->err.text,
		"test.wr:2:14: the kernel's verifier refuses this: R2 invalid mem access 'scalar'");
	maker_release(m);
}

static void test_switches(void)
{
	struct stream_maker *m = &maker;
	struct stream_point *p;
	uint32_t format;

	maker_init(m);
	format = maker_format(m, FORMAT_PRINT);
	for (int i = 1; i <= 2; i++) {
		p = maker_point(m, maker_clause(m), POINT_SYSCALL_ENTRY, "syscall:getppid");
		p->found = found_calls(m, -1, GETPPID_64);
		add_piece(m, p, MODE_64, format, i, false);
		add_piece(m, p, MODE_32, format, i, false); /* has no such number */
	}
	CHECK_EQ(maker_open(m, &small), 0);
	say_why(m);
	if (m->session) {
		CHECK_EQ(probe_session_begin(m->session, &m->err), 0);
		CHECK_EQ(probe_session_enable(m->session, 0, false), 0);
		syscall(SYS_getppid);
		CHECK_EQ(probe_session_enable(m->session, 0, true), 0);
		CHECK_EQ(probe_session_enable(m->session, 1, false), 0);
		syscall(SYS_getppid);
		maker_wait(m, 2);
		CHECK_EQ(m->n_records, 2);
		CHECK_EQ(m->records[0].arg, 2);
		CHECK_EQ(m->records[1].arg, 1);
		CHECK_EQ(probe_session_enable(m->session, 2, true), ERR_NOT_FOUND);
	}
	maker_release(m);
}

static void test_without_bpf(void)
{
	struct stream_maker *m = &maker;

	maker_init(m);
	add_self_counter(m);
	setenv("WEIR_PROBE_WITHOUT", "multi,bpf", 1);
	CHECK_EQ(maker_open(m, &small), ERR_PERMISSION);
	CHECK(strstr(m->err.text, "not permit"));
	unsetenv("WEIR_PROBE_WITHOUT");
	maker_release(m);
}

static const struct test tests[] = {
	{"a system call is seen in both modes, with its name", test_syscall},
	{"many calls are looked up, and a mode without code is left out", test_many_calls},
	{"a raw tracepoint runs the code of the interrupted code segment", test_segment},
	{"a tracepoint is attached by its name", test_tracepoint},
	{"a tracepoint that is not there is an error with its name", test_unknown_tracepoint},
	{"a function of the kernel is traced at its entry and return", test_function},
	{"profile samples this process", test_profile},
	{"a full map keeps what it has and counts the rest", test_full_map},
	{"aggregations of all CPUs are put together", test_aggregations},
	{"thread-locals keep their value, and need task storage", test_self},
	{"a program that the verifier refuses names the script's line", test_refused_program},
	{"clauses are switched off and on while running", test_switches},
	{"without rights there is a sentence that says which", test_without_bpf},
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
