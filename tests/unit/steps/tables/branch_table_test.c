/* SPDX-License-Identifier: MIT */
/* The pass over steps, fed item by item. */
#include "steps/tables/branch_table.h"

#include "check.h"

/* A little code: number, address, what it is. */
enum { NONE, CMP, JCC, FALL, SIDE, CALL, HANDLER, RET, SYSCALL, REP, JMP, SELF, NEXT_JCC, N_INSNS };

#define FALL_AT	   0x1004
#define SIDE_AT	   0x2000
#define HANDLER_AT 0x3000

static const struct step_insn code[N_INSNS] = {
	[CMP] = {.addr = 0x1000, .length = 2, .flow = X86_FLOW_NEXT},
	[JCC] = {.addr = 0x1002,
		.length = 2,
		.flow = X86_FLOW_BRANCH,
		.target = SIDE_AT,
		.has_target = true},
	[FALL] = {.addr = FALL_AT, .length = 1, .flow = X86_FLOW_NEXT},
	[SIDE] = {.addr = SIDE_AT, .length = 1, .flow = X86_FLOW_NEXT},
	[CALL] = {.addr = 0x1010, .length = 2, .flow = X86_FLOW_CALL_FAR},
	[HANDLER] = {.addr = HANDLER_AT, .length = 1, .flow = X86_FLOW_NEXT},
	[RET] = {.addr = 0x3001, .length = 1, .flow = X86_FLOW_RETURN},
	[SYSCALL] = {.addr = 0x3010, .length = 2, .flow = X86_FLOW_SYSCALL},
	[REP] = {.addr = 0x3020, .length = 2, .flow = X86_FLOW_NEXT, .is_string = true},
	[JMP] = {.addr = 0x3030, .length = 2, .flow = X86_FLOW_JUMP_FAR},
	[SELF] = {.addr = 0x3040,
		.length = 2,
		.flow = X86_FLOW_BRANCH,
		.target = 0x3040,
		.has_target = true},
	[NEXT_JCC] = {.addr = 0x3050,
		.length = 2,
		.flow = X86_FLOW_BRANCH,
		.target = 0x3052,
		.has_target = true},
};

static struct branch_table table;
static uint64_t step_number;

static void begin(bool wants_returns)
{
	branch_table_init(&table, N_INSNS, wants_returns);
	for (uint32_t i = 1; i < N_INSNS; i++)
		branch_table_describe(&table, i, &code[i]);
	branch_table_begin_thread(&table);
	step_number = 0;
}

static void add_steps(const struct step *steps, uint32_t n)
{
	struct step_item item = {
		.kind = STEP_ITEM_STEPS, .first = step_number, .steps = steps, .n = n};

	branch_table_add(&table, &item);
	step_number += n;
}

/* Instructions by their numbers; 0 ends them. */
static void go(const uint32_t *numbers)
{
	struct step steps[32];
	uint32_t n = 0;

	for (; numbers[n]; n++)
		steps[n] = (struct step){code[numbers[n]].addr, numbers[n], 1};
	add_steps(steps, n);
}
#define GO(...) go((const uint32_t[]){__VA_ARGS__, 0})

static void mark(enum step_mark_kind kind, int64_t a, int64_t c)
{
	struct step_item item = {.kind = STEP_ITEM_MARK, .first = step_number};

	item.mark = (struct step_mark){.at = step_number, .kind = kind, .a = a, .c = c};
	branch_table_add(&table, &item);
}

static const struct branch *branch_of(uint32_t number)
{
	return &table.branches.v[table.counts[number].branch];
}

static void check_outcomes(uint32_t number, uint64_t taken, uint64_t not_taken, uint64_t unknown)
{
	const struct branch *b = branch_of(number);

	CHECK_EQ(b->insn, number);
	CHECK_EQ(b->taken, taken);
	CHECK_EQ(b->not_taken, not_taken);
	CHECK_EQ(branch_unknown(&table, b), unknown);
	CHECK_EQ(branch_executed(&table, b), taken + not_taken + unknown);
}

static void test_sides(void)
{
	begin(false);
	GO(CMP, JCC, FALL, CMP, JCC, SIDE, CMP, JCC, SIDE);
	check_outcomes(JCC, 2, 1, 0);
	CHECK_EQ(branch_mainline(branch_of(JCC)), 2);
	CHECK_EQ(branch_exceptions(branch_of(JCC)), 1);
	CHECK_EQ(table.counts[CMP].executed, 3);
	CHECK_EQ(table.total, 9);
	branch_table_release(&table);
}

static void test_rows(void)
{
	begin(false);
	GO(CMP, JCC);
	GO(SIDE, CMP, JCC);
	mark(STEP_MARK_MAP, STEP_MAP_ADDED, 0);
	mark(STEP_MARK_FORK, 7, 0);
	branch_table_add(&table, &(struct step_item){.kind = STEP_ITEM_DATA});
	GO(FALL);
	check_outcomes(JCC, 1, 1, 0);
	branch_table_release(&table);
}

static void test_end(void)
{
	begin(false);
	GO(CMP, JCC);
	branch_table_begin_thread(&table);
	step_number = 0;
	GO(SIDE, JCC);
	check_outcomes(JCC, 0, 0, 2);
	branch_table_release(&table);
}

static void test_gaps(void)
{
	static const enum step_mark_kind gaps[] = {
		STEP_MARK_PAUSE, STEP_MARK_RESUME, STEP_MARK_LOST, STEP_MARK_EXEC, STEP_MARK_EXIT};

	begin(false);
	for (size_t i = 0; i < sizeof(gaps) / sizeof(gaps[0]); i++) {
		GO(JCC);
		mark(gaps[i], 5, 0);
		GO(SIDE);
	}
	check_outcomes(JCC, 0, 0, 5);
	CHECK_EQ(table.lost, 5);
	GO(JCC);
	branch_table_add(&table, &(struct step_item){.kind = STEP_ITEM_DAMAGE, .sentence = "x"});
	GO(SIDE);
	check_outcomes(JCC, 0, 0, 6);
	CHECK_EQ(table.n_damaged, 1);
	/* Numbers that are left out say the same without a mark. */
	GO(JCC);
	step_number += 3;
	GO(SIDE);
	check_outcomes(JCC, 0, 0, 7);
	branch_table_release(&table);
}

static void test_strange(void)
{
	begin(false);
	GO(JCC, HANDLER, JCC);
	check_outcomes(JCC, 0, 0, 2);
	branch_table_release(&table);
}

static void test_special_branches(void)
{
	begin(false);
	GO(SELF, SELF, SELF, CMP); /* to itself twice, then to what is neither */
	check_outcomes(SELF, 2, 0, 1);
	add_steps((const struct step[]){{0x3050, NEXT_JCC, 1}, {0x3052, 0, 1}}, 2);
	check_outcomes(NEXT_JCC, 0, 1, 0);
	CHECK_EQ(table.counts[0].executed, 1);
	branch_table_release(&table);
}

static void test_signal(void)
{
	begin(false);
	/* The handler returns to the taken side, by the system call of either table. */
	GO(CMP, JCC);
	mark(STEP_MARK_SIGNAL, 14, 0);
	GO(HANDLER, RET, SYSCALL);
	check_outcomes(JCC, 0, 0, 1);
	mark(STEP_MARK_SYSCALL, 15, 0);
	GO(SIDE, CMP, JCC);
	check_outcomes(JCC, 1, 0, 1);
	mark(STEP_MARK_SIGNAL, 14, 0);
	GO(HANDLER, SYSCALL);
	mark(STEP_MARK_SYSCALL, 119, 1);
	GO(FALL);
	check_outcomes(JCC, 1, 1, 0);
	/* Nothing handles it. */
	GO(JCC);
	mark(STEP_MARK_SIGNAL, 17, 0);
	GO(FALL);
	check_outcomes(JCC, 1, 2, 0);
	branch_table_release(&table);
}

static void test_signal_never_returns(void)
{
	begin(false);
	GO(JCC);
	mark(STEP_MARK_SIGNAL, 14, 0);
	GO(HANDLER, SYSCALL);
	mark(STEP_MARK_SYSCALL, 1, 0); /* write, which returns to no branch */
	GO(SIDE);
	check_outcomes(JCC, 0, 0, 1);
	GO(SYSCALL);
	mark(STEP_MARK_SYSCALL, 15, 0); /* to somewhere else: the handler changed the address */
	GO(CMP);
	check_outcomes(JCC, 0, 0, 1);
	branch_table_release(&table);
}

static void test_signal_in_handler(void)
{
	begin(false);
	GO(JCC);
	mark(STEP_MARK_SIGNAL, 14, 0);
	GO(HANDLER, SELF);
	mark(STEP_MARK_SIGNAL, 10, 0);
	GO(HANDLER, SYSCALL);
	mark(STEP_MARK_SYSCALL, 15, 0);
	/* The next signal was waiting already. */
	mark(STEP_MARK_SIGNAL, 12, 0);
	GO(HANDLER, SYSCALL);
	mark(STEP_MARK_SYSCALL, 15, 0);
	add_steps((const struct step[]){{0x3042, 0, 1}, {0x3010, SYSCALL, 1}}, 2);
	mark(STEP_MARK_SYSCALL, 15, 0);
	GO(SIDE);
	check_outcomes(SELF, 0, 1, 0);
	check_outcomes(JCC, 1, 0, 0);
	/* More of them than anyone keeps: the oldest stay unknown. */
	for (int i = 0; i < BRANCH_WAITING_MAX + 3; i++) {
		GO(JCC);
		mark(STEP_MARK_SIGNAL, 14, 0);
	}
	GO(HANDLER, SYSCALL);
	mark(STEP_MARK_SYSCALL, 15, 0);
	GO(SIDE);
	check_outcomes(JCC, 2, 0, BRANCH_WAITING_MAX + 2);
	branch_table_release(&table);
}

static void test_targets(void)
{
	const struct branch *b;

	begin(false);
	GO(CALL, HANDLER, CALL, SIDE, CALL, HANDLER, JMP, FALL, RET, SIDE);
	branch_table_finish(&table);
	b = branch_of(CALL);
	CHECK_EQ(b->kind, BRANCH_KIND_INDIRECT_CALL);
	CHECK_EQ(b->targets.n, 2);
	CHECK_EQ(b->targets.v[0].addr, HANDLER_AT);
	CHECK_EQ(b->targets.v[0].count, 2);
	CHECK_EQ(b->targets.v[0].insn, HANDLER);
	CHECK_EQ(b->targets.v[1].addr, SIDE_AT);
	CHECK_EQ(b->targets.v[1].count, 1);
	CHECK_EQ(branch_unknown(&table, b), 0);
	CHECK_EQ(branch_of(JMP)->kind, BRANCH_KIND_INDIRECT_JUMP);
	CHECK_EQ(table.counts[RET].branch, 0); /* nobody asked for returns */
	branch_table_release(&table);
	begin(true);
	GO(RET, SIDE, RET, FALL, RET);
	CHECK_EQ(branch_of(RET)->kind, BRANCH_KIND_RETURN);
	CHECK_EQ(branch_of(RET)->targets.n, 2);
	CHECK_EQ(branch_unknown(&table, branch_of(RET)), 1);
	branch_table_release(&table);
}

static void test_target_behind_signal(void)
{
	begin(false);
	GO(CALL);
	mark(STEP_MARK_SIGNAL, 14, 0);
	GO(HANDLER, CALL);
	mark(STEP_MARK_PAUSE, 0, 0);
	GO(SIDE);
	CHECK_EQ(branch_of(CALL)->targets.n, 0);
	CHECK_EQ(branch_unknown(&table, branch_of(CALL)), 2);
	branch_table_release(&table);
}

/* An interpreter's jump: 1000 targets, number i met i + 1 times. */
static void test_many_targets(void)
{
	const struct branch *b;

	begin(false);
	for (uint64_t round = 0; round < 1000; round++)
		for (uint64_t i = round; i < 1000; i++)
			add_steps((const struct step[]){{0x3030, JMP, 1}, {0x8000 + i, 0, 1}}, 2);
	branch_table_finish(&table);
	b = branch_of(JMP);
	CHECK_EQ(b->targets.n, 1000);
	CHECK_EQ(table.n_targets, 1000);
	for (uint64_t i = 0; i < 1000; i++) {
		CHECK_EQ(b->targets.v[i].addr, 0x8000 + 999 - i);
		CHECK_EQ(b->targets.v[i].count, 1000 - i);
	}
	CHECK_EQ(branch_unknown(&table, b), 0);
	branch_table_release(&table);
}

static void test_too_many_targets(void)
{
	const struct branch *b;
	const uint64_t n = (1u << 20) + 10;

	begin(false);
	for (uint64_t i = 0; i < n; i++)
		add_steps((const struct step[]){{0x3030, JMP, 1}, {0x8000 + i, 0, 1}}, 2);
	b = branch_of(JMP);
	CHECK_EQ(b->targets.n, 1u << 20);
	CHECK_EQ(b->other, 10);
	CHECK_EQ(branch_unknown(&table, b), 0);
	CHECK_EQ(branch_executed(&table, b), n);
	branch_table_release(&table);
}

static void test_iterations(void)
{
	begin(false);
	add_steps((const struct step[]){{0x3020, REP, 7}, {0x3020, REP, 1}, {0x3020, REP, 100}}, 3);
	CHECK_EQ(table.counts[REP].executed, 3);
	CHECK_EQ(table.again[REP], 105);
	CHECK_EQ(table.total, 3);
	branch_table_release(&table);
}

/* As if SELF, JMP, RET and REP were JCC, CALL, HANDLER and CMP of another process. */
static void test_fold(void)
{
	uint32_t same_as[N_INSNS];
	uint64_t addrs[N_INSNS];
	const struct branch *b;

	for (uint32_t i = 0; i < N_INSNS; i++) {
		same_as[i] = i;
		addrs[i] = code[i].addr;
	}
	same_as[SELF] = JCC;
	same_as[JMP] = CALL;
	same_as[RET] = HANDLER;
	same_as[REP] = CMP;
	begin(false);
	GO(JCC, SIDE, SELF, SELF, CMP, CALL, HANDLER, JMP, RET, JMP, SIDE);
	add_steps((const struct step[]){{0x3020, REP, 3}}, 1);
	branch_table_fold(&table, same_as, addrs);
	branch_table_finish(&table);
	check_outcomes(JCC, 2, 0, 1);
	check_outcomes(SELF, 0, 0, 0);
	CHECK_EQ(table.counts[CMP].executed, 2);
	CHECK_EQ(table.again[CMP], 2);
	CHECK_EQ(table.again[REP], 0);
	b = branch_of(CALL);
	CHECK_EQ(branch_executed(&table, b), 3);
	CHECK_EQ(branch_unknown(&table, b), 0);
	CHECK_EQ(b->targets.n, 2);
	CHECK_EQ(b->targets.v[0].insn, HANDLER);
	CHECK_EQ(b->targets.v[0].addr, HANDLER_AT);
	CHECK_EQ(b->targets.v[0].count, 2);
	CHECK_EQ(branch_executed(&table, branch_of(JMP)), 0);
	CHECK_EQ(branch_unknown(&table, branch_of(JMP)), 0);
	CHECK_EQ(table.n_targets, 2);
	branch_table_release(&table);
}

int main(void)
{
	static const struct test tests[] = {
		{"the step behind a branch tells its side", test_sides},
		{"a branch at the end of a row is decided by the next row", test_rows},
		{"the last branch of a thread is not decided by another thread", test_end},
		{"a branch in front of a gap is unknown", test_gaps},
		{"a step that is on neither side decides nothing", test_strange},
		{"a branch to itself and one to the next instruction are counted",
			test_special_branches},
		{"a branch that a signal interrupts is decided when its handler returns",
			test_signal},
		{"a handler that does not return to the branch decides nothing",
			test_signal_never_returns},
		{"signals in handlers are told apart", test_signal_in_handler},
		{"targets of indirect branches are counted", test_targets},
		{"the handler of a signal is no target", test_target_behind_signal},
		{"a thousand targets are counted each", test_many_targets},
		{"targets beyond the limit are counted together", test_too_many_targets},
		{"iterations of string instructions are counted apart from steps", test_iterations},
		{"code that several processes execute is one", test_fold},
	};

	return RUN_TESTS(tests);
}
