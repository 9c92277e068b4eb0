/* SPDX-License-Identifier: MIT */
/* Intermediate code and the BPF made of it: by looking at it, and by running random programs. */
#include "check.h"
#include "ir_print.h"
#include "ir_world.h"
#include "probe/compile/ir.h"

#define PROGRAMS   250
#define POOL_MAX   24
#define LOG_BYTES  (1u << 20)
#define RESULTS_AT 0   /* in the scratch area: values at the end */
#define INPUTS_AT  512 /* values that the verifier cannot know */
#define N_INPUTS   8

static int emit(const struct ir *ir, struct bpf_code *code, struct err *err)
{
	struct emit_out out = {.code = code};
	int rc = emit_code(ir, &out, err);

	free(out.lines);
	return rc;
}

/* --- looking --------------------------------------------------------------------------------- */

static void test_dead_code(void)
{
	struct buf text = {0};
	struct ir ir = {0};
	ir_label never = ir_new_label(&ir), end = ir_new_label(&ir);
	ir_value v = ir_const(&ir, 1);

	ir_jump(&ir, end);
	ir_store_imm(&ir, ir_new_memory(&ir, 8), 0, 8, 5);
	ir_branch_imm(&ir, BPF_JEQ, v, 0, never);
	ir_place_label(&ir, never); /* the only jump to it was dead */
	ir_copy(&ir, v, v);
	ir_place_label(&ir, end);
	ir_copy(&ir, v, v);
	ir_print(&ir, &text);
	CHECK_STR(buf_text(&text), "v1 = 1\ngoto L2\nL2:\nv1 = v1\n");
	buf_release(&text);
	ir_release(&ir);
}

static void test_long_immediates(void)
{
	struct buf text = {0};
	struct ir ir = {0};
	ir_value a = ir_const(&ir, 1);

	ir_alu_imm(&ir, BPF_ADD, a, INT32_MAX);
	ir_alu_imm(&ir, BPF_ADD, a, INT32_MAX + INT64_C(1));
	ir_set_imm(&ir, BPF_JSLT, a, INT32_MIN - INT64_C(1));
	ir_print(&ir, &text);
	CHECK_STR(buf_text(&text), "v1 = 1\nv2 = v1 + 2147483647\nv3 = 2147483648\n"
				   "v4 = v1 + v3\nv5 = -2147483649\nv6 = v1 s< v5\n");
	buf_release(&text);
	ir_release(&ir);
}

static void test_memory(void)
{
	struct ir ir = {0};
	struct ir_memory_mark mark;
	ir_mem a = ir_new_memory(&ir, 5), b, c;

	mark = ir_memory_mark(&ir);
	b = ir_new_memory(&ir, 64);
	c = ir_new_memory(&ir, 65);
	CHECK(ir.memories.v[a].is_on_stack && ir.memories.v[a].bytes == 8);
	CHECK(ir.memories.v[a].at % 8 == 0 && ir.memories.v[b].at % 8 == 0);
	CHECK_EQ(ir.memories.v[b].at, ir.memories.v[a].at - 64);
	CHECK(!ir.memories.v[c].is_on_stack && ir.memories.v[c].bytes == 72);
	ir_memory_release(&ir, mark);
	CHECK_EQ(ir.memories.v[ir_new_memory(&ir, 8)].at, ir.memories.v[a].at - 8);
	CHECK_EQ(ir.stack_top, 72);
	CHECK_EQ(ir.scratch_top, 72);
	ir_release(&ir);
}

static void test_used_at_once(void)
{
	struct bpf_code code = {0};
	struct err err = {0};
	struct ir ir = {0};
	ir_mem mem = ir_new_memory(&ir, 8);

	/* One value after the other, none of them kept: all in r0. */
	ir_store(&ir, mem, 0, 8, ir_alu_imm(&ir, BPF_ADD, ir_context(&ir, 8, 8, false), 5));
	CHECK_EQ(emit(&ir, &code, &err), 0);
	CHECK_EQ(code.insns.n, 3);
	for (size_t i = 0; i < code.insns.n; i++)
		CHECK(code.insns.v[i].dst_reg == BPF_REG_0 || i == 2);
	CHECK_EQ(code.insns.v[2].src_reg, BPF_REG_0);
	bpf_code_release(&code);
	ir_release(&ir);
}

static void test_homes(void)
{
	struct bpf_code code = {0};
	struct err err = {0};
	struct ir ir = {0};
	ir_mem mem = ir_new_memory(&ir, 24);
	ir_value v[3];

	for (int i = 0; i < 3; i++)
		v[i] = ir_const(&ir, i);
	for (int i = 0; i < 3; i++)
		ir_store(&ir, mem, 8 * i, 8, v[i]);
	CHECK_EQ(emit(&ir, &code, &err), 0);
	/* r8 = 0; r9 = 1; r0 = 2; *(r10 - 88) = r0, below the loader's words and the memory */
	CHECK_EQ(code.insns.v[0].dst_reg, BPF_REG_8);
	CHECK_EQ(code.insns.v[1].dst_reg, BPF_REG_9);
	CHECK_EQ(code.insns.v[3].dst_reg, BPF_REG_10);
	CHECK_EQ(code.insns.v[3].off, -STREAM_WORDS_BYTES - 32);
	bpf_code_release(&code);
	ir_release(&ir);
}

static void test_unused(void)
{
	struct bpf_code code = {0};
	struct err err = {0};
	struct ir ir = {0};

	ir_const(&ir, 5);
	ir_load(&ir, ir_new_memory(&ir, 8), 0, 8, false);
	ir_call(&ir, BPF_FUNC_get_prandom_u32, NULL, 0);
	CHECK_EQ(emit(&ir, &code, &err), 0);
	CHECK_EQ(code.insns.n, 1); /* the call: it may do something */
	bpf_code_release(&code);
	ir_release(&ir);
}

static void test_stack_full(void)
{
	struct bpf_code code = {0};
	struct err err = {0};
	struct ir ir = {0};
	ir_mem mem = ir_new_memory(&ir, 8);
	ir_value v[64];

	for (int i = 0; i < 64; i++)
		v[i] = ir_const(&ir, i);
	for (int i = 0; i < 64; i++)
		ir_store(&ir, mem, 0, 8, v[i]);
	CHECK(emit(&ir, &code, &err) < 0);
	CHECK(strstr(err.text, "456 bytes of stack"));
	bpf_code_release(&code);
	ir_release(&ir);
}

static void test_too_long(void)
{
	struct bpf_code code = {0};
	struct err err = {0};
	struct ir ir = {0};
	ir_mem mem = ir_new_memory(&ir, 8);

	for (int i = 0; i < 30001; i++)
		ir_store_imm(&ir, mem, 0, 8, i);
	CHECK(emit(&ir, &code, &err) < 0);
	CHECK(strstr(err.text, "instructions"));
	for (int i = 0; i < 2 * IR_INSNS_MAX; i++)
		ir_store_imm(&ir, mem, 0, 8, i);
	CHECK(ir.is_too_long && ir.insns.n == IR_INSNS_MAX);
	CHECK(emit(&ir, &code, &err) < 0);
	bpf_code_release(&code);
	ir_release(&ir);
}

static void test_scratch_full(void)
{
	struct bpf_code code = {0};
	struct err err = {0};
	struct ir ir = {0};

	for (int i = 0; i < 33; i++)
		ir_new_memory(&ir, 1024);
	CHECK(emit(&ir, &code, &err) < 0);
	CHECK(strstr(err.text, "32752 bytes"));
	ir_release(&ir);
}

/* while (..) { n_branches branches }, twice nested when `is_nested`; gives the limit. */
static int64_t limit_of(int n_branches, bool is_nested, int64_t known, uint32_t n_clauses)
{
	struct ir ir = {0};
	ir_value v = ir_const(&ir, 1), turns = ir_const(&ir, 0);
	ir_label out = ir_new_label(&ir);
	int64_t limit = -1;

	ir_loop(&ir, 0);
	ir_may_turn(&ir, turns, 0, out);
	if (is_nested)
		ir_loop(&ir, known);
	for (int i = 0; i < n_branches; i++)
		ir_branch_imm(&ir, BPF_JEQ, v, i, out);
	if (is_nested)
		ir_loop_end(&ir);
	ir_loop_end(&ir);
	ir_place_label(&ir, out);
	loop_turns_set(&ir, n_clauses);
	for (size_t i = 0; i < ir.insns.n; i++)
		if (ir.insns.v[i].op == IR_MAY_TURN)
			limit = ir.insns.v[i].imm;
	ir_release(&ir);
	return limit;
}

static void test_turns(void)
{
	CHECK_EQ(limit_of(1, false, 0, 1), LOOP_TURNS_MAX);
	CHECK(limit_of(7, false, 0, 1) >= 900 && limit_of(7, false, 0, 1) <= 1000);
	CHECK(limit_of(70, false, 0, 1) >= 90 && limit_of(70, false, 0, 1) <= 100);
	CHECK(limit_of(7, true, 0, 1) >= 25 && limit_of(7, true, 0, 1) <= 33); /* of both loops */
	CHECK(limit_of(7, true, 10, 1) >= 90 && limit_of(7, true, 10, 1) <= 100);
	CHECK_EQ(limit_of(20000, false, 0, 1), 2);
	CHECK(limit_of(7, false, 0, 10) >= 90 && limit_of(7, false, 0, 10) <= 100);
}

static void test_deep_loops(void)
{
	struct bpf_code code = {0};
	struct err err = {0};
	struct ir ir = {0};

	for (int i = 0; i < 200; i++)
		ir_loop(&ir, 1);
	for (int i = 0; i < 200; i++)
		ir_loop_end(&ir);
	CHECK_EQ(emit(&ir, &code, &err), 0);
	bpf_code_release(&code);
	ir_release(&ir);
}

/* --- running --------------------------------------------------------------------------------- */

struct random_program {
	struct ir ir;
	uint64_t rng;
	ir_value pool[POOL_MAX];
	size_t n_pool;
	ir_mem scratch, stack, odd, key, number;
	int array_fd;
	int budget; /* instructions left to be made */
};

static uint64_t next_random(struct random_program *p)
{
	p->rng ^= p->rng << 13;
	p->rng ^= p->rng >> 7;
	p->rng ^= p->rng << 17;
	return p->rng;
}

static uint32_t below(struct random_program *p, uint32_t n)
{
	return (uint32_t)(next_random(p) >> 20) % n;
}

static ir_value any(struct random_program *p)
{
	return p->pool[below(p, (uint32_t)p->n_pool)];
}

static void keep(struct random_program *p, ir_value v)
{
	if (p->n_pool < POOL_MAX)
		p->pool[p->n_pool++] = v;
	else
		ir_copy(&p->ir, any(p), v);
}

static int64_t any_number(struct random_program *p)
{
	static const int64_t edges[] = {0, 1, -1, 2, 63, 255, -128, INT32_MAX, INT32_MIN, INT64_MAX,
		INT64_MIN, INT64_C(1) << 32, 0x8000};

	if (below(p, 3))
		return edges[below(p, sizeof(edges) / sizeof(edges[0]))];
	return (int64_t)next_random(p);
}

static int any_condition(struct random_program *p)
{
	static const int conditions[] = {BPF_JEQ, BPF_JNE, BPF_JGT, BPF_JGE, BPF_JLT, BPF_JLE,
		BPF_JSGT, BPF_JSGE, BPF_JSLT, BPF_JSLE};

	return conditions[below(p, 10)];
}

static void random_alu(struct random_program *p)
{
	static const int ops[] = {BPF_ADD, BPF_SUB, BPF_MUL, BPF_DIV, BPF_MOD, BPF_AND, BPF_OR,
		BPF_XOR, BPF_LSH, BPF_RSH, BPF_ARSH};
	int op = ops[below(p, 11)];
	bool is_shift = op == BPF_LSH || op == BPF_RSH || op == BPF_ARSH;
	int64_t imm = any_number(p);
	ir_value a = any(p), b = any(p);

	if (is_shift)
		imm &= 63;
	if (!imm)
		imm = 1;
	keep(p, below(p, 2) ? ir_alu(&p->ir, op, a, b) : ir_alu_imm(&p->ir, op, a, imm));
}

/* a op (b op c): results that are used at once, on either side. */
static void random_chain(struct random_program *p)
{
	ir_value a = any(p), v = ir_alu(&p->ir, BPF_ADD, any(p), any(p));

	switch (below(p, 4)) {
	case 0:
		v = ir_alu(&p->ir, BPF_SUB, a, v);
		break;
	case 1:
		v = ir_alu(&p->ir, BPF_SUB, v, a);
		break;
	case 2:
		v = ir_set(&p->ir, any_condition(p), a, v);
		break;
	default:
		v = ir_set(&p->ir, any_condition(p), v, a);
		break;
	}
	keep(p, v);
}

static void random_memory(struct random_program *p)
{
	static const uint32_t sizes[] = {1, 2, 4, 8};
	uint32_t bytes = sizes[below(p, 4)];
	int32_t at = (int32_t)(below(p, 32 / bytes) * bytes);
	ir_mem mem = below(p, 2) ? p->stack : p->scratch;

	if (mem == p->scratch)
		at += 768;
	switch (below(p, 4)) {
	case 0:
		keep(p, ir_load(&p->ir, mem, at, bytes, below(p, 2)));
		break;
	case 1:
		ir_store(&p->ir, mem, at, bytes, any(p));
		break;
	case 2:
		ir_store_imm(&p->ir, mem, at, bytes, any_number(p));
		break;
	default:
		ir_zero(&p->ir, p->odd, (int32_t)below(p, 5), 1 + below(p, 12));
		keep(p, ir_load(&p->ir, p->odd, 0, 8, false));
		break;
	}
}

static void random_map(struct random_program *p)
{
	ir_label none = ir_new_label(&p->ir);
	ir_value at, v = any(p);

	ir_store_imm(&p->ir, p->key, 0, 8, below(p, ARRAY_N + 2));
	ir_store(&p->ir, p->number, 0, 8, any(p));
	if (below(p, 2))
		keep(p, IR_CALL_(&p->ir, BPF_FUNC_map_update_elem, IR_MAP(p->array_fd),
				IR_M(p->key, 0), IR_M(p->number, 0), IR_I(0)));
	at = IR_CALL_(&p->ir, BPF_FUNC_map_lookup_elem, IR_MAP(p->array_fd), IR_M(p->key, 0));
	ir_branch_imm(&p->ir, BPF_JEQ, at, 0, none);
	switch (below(p, 4)) {
	case 0:
		ir_add_atomic(&p->ir, at, 0, v);
		break;
	case 1:
		ir_copy(&p->ir, v, ir_load_at(&p->ir, at, 4, 4, true));
		break;
	case 2: /* an address that is used at once, and a value that is not */
		ir_store_at(&p->ir, ir_alu_imm(&p->ir, BPF_ADD, at, 4), -4, 8, v);
		break;
	default:
		ir_add_atomic(&p->ir, ir_alu_imm(&p->ir, BPF_ADD, at, 0), 0, v);
		break;
	}
	ir_place_label(&p->ir, none);
}

static void random_call(struct random_program *p)
{
	ir_value v = any(p);

	if (below(p, 2)) {
		v = ir_call(&p->ir, BPF_FUNC_get_current_pid_tgid, NULL, 0);
		keep(p, ir_alu_imm(&p->ir, BPF_MUL, v, 0));
		return;
	}
	v = ir_alu_imm(&p->ir, BPF_AND, v, 0xfff);
	v = IR_CALL_(&p->ir, BPF_FUNC_probe_read_kernel, IR_M(p->stack, 8), IR_I(16), IR_V(v));
	keep(p, ir_set_imm(&p->ir, BPF_JSLT, v, 0));
}

static void random_block(struct random_program *p, int depth);

static void random_if(struct random_program *p, int depth)
{
	ir_label no = ir_new_label(&p->ir), done = ir_new_label(&p->ir);
	size_t n_pool = p->n_pool;

	if (below(p, 2))
		ir_branch(&p->ir, any_condition(p), any(p), any(p), no);
	else
		ir_branch_imm(&p->ir, any_condition(p), any(p), any_number(p), no);
	random_block(p, depth + 1);
	p->n_pool = n_pool;
	if (below(p, 2))
		ir_jump(&p->ir, done);
	ir_place_label(&p->ir, no);
	random_block(p, depth + 1);
	p->n_pool = n_pool;
	ir_place_label(&p->ir, done);
}

static void random_loop(struct random_program *p, int depth)
{
	ir_label top = ir_new_label(&p->ir), end = ir_new_label(&p->ir);
	ir_value i = ir_new_value(&p->ir);
	size_t n_pool = p->n_pool;

	ir_set_const(&p->ir, i, 0);
	ir_loop(&p->ir, 3);
	ir_place_label(&p->ir, top);
	ir_branch_imm(&p->ir, BPF_JSGE, i, 1 + below(p, 3), end);
	random_block(p, depth + 1);
	if (below(p, 4) == 0)
		ir_branch(&p->ir, any_condition(p), any(p), any(p), end);
	p->n_pool = n_pool;
	ir_copy(&p->ir, i, ir_alu_imm(&p->ir, BPF_ADD, i, 1));
	ir_jump(&p->ir, top);
	ir_loop_end(&p->ir);
	ir_place_label(&p->ir, end);
}

static void random_insn(struct random_program *p, int depth)
{
	static const uint32_t sizes[] = {2, 4, 8};

	switch (below(p, 14)) {
	case 0:
		keep(p, ir_const(&p->ir, any_number(p)));
		break;
	case 1:
		ir_copy(&p->ir, any(p), any(p));
		break;
	case 2:
		keep(p, ir_extend(&p->ir, any(p), 1u << below(p, 3), below(p, 2)));
		break;
	case 3:
		keep(p, ir_swap(&p->ir, any(p), sizes[below(p, 3)]));
		break;
	case 4:
		keep(p, ir_set_imm(&p->ir, any_condition(p), any(p), any_number(p)));
		break;
	case 5:
		random_map(p);
		break;
	case 6:
		random_call(p);
		break;
	case 7:
		keep(p, below(p, 2) ? ir_word(&p->ir, STREAM_WORD_SITE)
				    : ir_context(&p->ir, 8, 8, false));
		break;
	case 8:
		random_memory(p);
		break;
	case 9:
		if (depth < 3)
			random_if(p, depth);
		break;
	case 10:
		if (depth < 2)
			random_loop(p, depth);
		break;
	case 11:
		random_chain(p);
		break;
	default:
		random_alu(p);
		break;
	}
}

static void random_block(struct random_program *p, int depth)
{
	for (uint32_t n = 1 + below(p, 8); n && p->budget > 0; n--, p->budget--)
		random_insn(p, depth);
}

static void make_program(struct random_program *p, uint64_t seed, int array_fd)
{
	*p = (struct random_program){
		.rng = seed * 0x9e3779b97f4a7c15 + 1, .array_fd = array_fd, .budget = 60};
	p->scratch = ir_new_memory(&p->ir, SCRATCH_BYTES);
	p->stack = ir_new_memory(&p->ir, 32);
	p->odd = ir_new_memory(&p->ir, 20);
	p->key = ir_new_memory(&p->ir, 8);
	p->number = ir_new_memory(&p->ir, 8);
	ir_zero(&p->ir, p->stack, 0, 32);
	ir_zero(&p->ir, p->odd, 0, 24);
	for (int i = 0; i < N_INPUTS; i++)
		p->pool[p->n_pool++] = ir_load(&p->ir, p->scratch, INPUTS_AT + 8 * i, 8, false);
	while (p->budget > 0)
		random_block(p, 0);
	/* Some are looked at no more, so that registers become free on the way. */
	for (size_t i = 0; i < p->n_pool; i++)
		if (below(p, 3))
			ir_store(&p->ir, p->scratch, (int32_t)(RESULTS_AT + 8 * i), 8, p->pool[i]);
}

static void fill_inputs(struct random_program *p, struct machine *m)
{
	for (int i = 0; i < N_INPUTS; i++) {
		int64_t v = any_number(p);

		memcpy(m->scratch + INPUTS_AT + 8 * i, &v, 8);
	}
}

/* Runs the code with the machine's memory; false when the kernel does not take it. */
static bool run_in_kernel(struct random_program *p, struct machine *m, int scratch_fd)
{
	struct bpf_code code = {0};
	struct err err = {0};
	char *log = malloc(LOG_BYTES);
	uint32_t key = 0;
	int fd;

	CHECK_EQ(emit(&p->ir, &code, &err), 0);
	fd = kernel_open(&code, scratch_fd, log, LOG_BYTES);
	if (fd < 0)
		printf("%s\n", strlen(log) > 2000 ? log + strlen(log) - 2000 : log);
	bpf_map_update(scratch_fd, &key, m->scratch);
	for (key = 0; key < ARRAY_N; key++)
		bpf_map_update(p->array_fd, &key, &m->array[key]);
	if (fd >= 0) {
		CHECK_EQ(bpf_program_run(fd), 0);
		close(fd);
	}
	key = 0;
	bpf_map_find(scratch_fd, &key, m->scratch);
	for (key = 0; key < ARRAY_N; key++)
		bpf_map_find(p->array_fd, &key, &m->array[key]);
	bpf_code_release(&code);
	free(log);
	return fd >= 0;
}

static void compare(uint64_t seed, struct random_program *p, const struct machine *is,
	const struct machine *should)
{
	struct buf text = {0};

	if (!memcmp(is->scratch, should->scratch, SCRATCH_BYTES) &&
		!memcmp(is->array, should->array, sizeof(is->array)))
		return;
	check_failures++;
	printf("program %" PRIu64 " differs:\n", seed);
	ir_print(&p->ir, &text);
	printf("%s", buf_text(&text));
	for (size_t i = 0; i < SCRATCH_BYTES; i += 8)
		if (memcmp(is->scratch + i, should->scratch + i, 8))
			printf("scratch[%zu] is %" PRIx64 ", expected %" PRIx64 "\n", i,
				*(const uint64_t *)(is->scratch + i),
				*(const uint64_t *)(should->scratch + i));
	buf_release(&text);
}

static void run_one(uint64_t seed, int scratch_fd, int array_fd)
{
	struct machine kernel = {0}, own = {0};
	struct random_program p;

	make_program(&p, seed, array_fd);
	fill_inputs(&p, &own);
	memcpy(kernel.scratch, own.scratch, SCRATCH_BYTES);
	own.values = calloc(p.ir.n_values + 1, 8);
	interpret(&own, &p.ir);
	if (run_in_kernel(&p, &kernel, scratch_fd))
		compare(seed, &p, &kernel, &own);
	else
		CHECK(!"the kernel takes the program");
	free(own.values);
	ir_release(&p.ir);
}

static void test_random_programs(void)
{
	struct bpf_map_spec scratch = {BPF_MAP_TYPE_ARRAY, 4, SCRATCH_BYTES, 1, 0, "scratch"},
			    array = {BPF_MAP_TYPE_ARRAY, 4, 8, ARRAY_N, 0, "numbers"};
	int scratch_fd = bpf_map_open(&scratch), array_fd = bpf_map_open(&array);
	const char *from = getenv("SEED");
	uint64_t first = from ? strtoull(from, NULL, 10) : 1;

	for (uint64_t i = 0; i < PROGRAMS && check_failures < 3; i++)
		run_one(first + i, scratch_fd, array_fd);
	close(scratch_fd);
	close(array_fd);
}

static const struct test tests[] = {
	{"code that nothing leads to is not added", test_dead_code},
	{"immediates of more than 32 bits become values", test_long_immediates},
	{"memory is aligned, small pieces lie on the stack, and it is taken back", test_memory},
	{"values that are used at once stay in r0", test_used_at_once},
	{"the first values get registers, others words below the memory", test_homes},
	{"what nobody uses is not made, but calls are", test_unused},
	{"too many values at once are refused", test_stack_full},
	{"code that is too long is refused and does not grow", test_too_long},
	{"too much scratch memory is refused", test_scratch_full},
	{"a loop may turn as often as its contents allow", test_turns},
	{"loops may be nested as deep as scripts can be", test_deep_loops},
};

static const struct test with_rights[] = {
	{"random programs do in the kernel what an interpreter does", test_random_programs},
};

int main(void)
{
	struct bpf_map_spec spec = {BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0, "try"};
	int fd = bpf_map_open(&spec), rc = RUN_TESTS(tests);

	if (fd < 0) {
		printf("skip %s: BPF is not permitted: %s\n", with_rights[0].sentence,
			strerror(-fd));
		return rc;
	}
	close(fd);
	return RUN_TESTS(with_rights) | rc;
}
