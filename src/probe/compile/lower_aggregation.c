/* SPDX-License-Identifier: MIT */
/*
 * Aggregations: @x[keys] = count() and the others, and what they have come to. Each processor has a
 * value of its own behind a key, so that adding costs no other processor anything; whoever reads
 * adds them up.
 */
#include <errno.h>
#include <stddef.h>

#include "bpf/kernel_map.h"
#include "probe/compile/lower.h"

/* --- adding ----------------------------------------------------------------------------------- */

/* The key's value on this CPU, made of zeros when there is none; goes to `lost` when it cannot. */
static ir_value ensure(struct lower *l, const struct map_use *map, ir_mem key, ir_label lost)
{
	ir_label there = ir_new_label(&l->ir);
	ir_value p = ir_new_value(&l->ir), zeros;
	ir_mem index;

	ir_copy(&l->ir, p, lower_map_find(l, map, key));
	ir_branch_imm(&l->ir, BPF_JNE, p, 0, there);
	index = lower_index(l, 0);
	zeros = IR_CALL_(&l->ir, BPF_FUNC_map_lookup_elem, IR_MAP(STREAM_MAP_ZERO), IR_M(index, 0));
	ir_branch_imm(&l->ir, BPF_JEQ, zeros, 0, lost);
	lower_map_update(l, map, key, IR_V(zeros), BPF_NOEXIST);
	ir_copy(&l->ir, p, lower_map_find(l, map, key));
	ir_branch_imm(&l->ir, BPF_JEQ, p, 0, lost);
	ir_place_label(&l->ir, there);
	return p;
}

/*
 * The logarithm of a value that is not 0, cut to an integer. Without branches, since the kernel's
 * verifier would follow each path to the end:
 *   for s in 32, 16, 8, 4, 2, 1: t = (v >> s) != 0; r += t * s; v >>= t * s
 */
static ir_value log2_of(struct lower *l, ir_value v)
{
	ir_value r = 0, rest = v;

	for (int s = 32; s; s /= 2) {
		ir_value high = ir_alu_imm(&l->ir, BPF_RSH, rest, s), t;

		t = ir_alu(&l->ir, BPF_OR, high, ir_alu_imm(&l->ir, BPF_MUL, high, -1));
		t = ir_alu_imm(&l->ir, BPF_RSH, t, 63);
		t = ir_alu_imm(&l->ir, BPF_MUL, t, s);
		rest = ir_alu(&l->ir, BPF_RSH, rest, t);
		r = r ? ir_alu(&l->ir, BPF_ADD, r, t) : t;
	}
	return r;
}

/*
 * The bucket of a value in a histogram of `bits` (0 to HIST_BITS_MAX):
 *   v < 0: 0                     v < 2^bits: 1 + v
 *   else, with e = log2(v) - bits: 1 + (e << bits) + (v >> e), since v >> e is from 2^bits on
 */
static ir_value hist_bucket(struct lower *l, ir_value v, uint32_t bits, bool is_signed)
{
	ir_value bucket = ir_new_value(&l->ir), e;
	ir_label done = ir_new_label(&l->ir);

	if (is_signed) {
		ir_set_const(&l->ir, bucket, 0);
		ir_branch_imm(&l->ir, BPF_JSLT, v, 0, done);
	}
	ir_copy(&l->ir, bucket, ir_alu_imm(&l->ir, BPF_ADD, v, 1));
	ir_branch_imm(&l->ir, BPF_JLT, v, 1 << bits, done);
	e = ir_alu_imm(&l->ir, BPF_SUB, log2_of(l, v), bits);
	ir_copy(&l->ir, bucket,
		ir_alu(&l->ir, BPF_ADD, ir_alu_imm(&l->ir, BPF_LSH, e, bits),
			ir_alu(&l->ir, BPF_RSH, v, e)));
	ir_copy(&l->ir, bucket, ir_alu_imm(&l->ir, BPF_ADD, bucket, 1));
	ir_place_label(&l->ir, done);
	return bucket;
}

static ir_value lhist_bucket(
	struct lower *l, ir_value v, const struct shape *shape, bool is_unsigned)
{
	ir_value bucket = ir_new_value(&l->ir), from_min;
	int64_t n = (shape->max - shape->min + shape->step - 1) / shape->step;
	ir_label done = ir_new_label(&l->ir);

	if (is_unsigned) { /* the upper half of 64 bits is large, not negative */
		ir_set_const(&l->ir, bucket, n + 1);
		ir_branch_imm(&l->ir, BPF_JSLT, v, 0, done);
	}
	ir_set_const(&l->ir, bucket, 0);
	ir_branch_imm(&l->ir, BPF_JSLT, v, shape->min, done);
	ir_set_const(&l->ir, bucket, n + 1);
	ir_branch_imm(&l->ir, BPF_JSGE, v, shape->max, done);
	from_min = shape->min ? ir_alu_imm(&l->ir, BPF_ADD, v, -shape->min) : v;
	ir_copy(&l->ir, bucket,
		ir_alu_imm(&l->ir, BPF_ADD, ir_alu_imm(&l->ir, BPF_DIV, from_min, shape->step), 1));
	ir_place_label(&l->ir, done);
	return bucket;
}

static void add_to_bucket(
	struct lower *l, ir_value p, ir_value bucket, uint32_t n_buckets, ir_label lost)
{
	ir_value at;

	ir_branch_imm(&l->ir, BPF_JGT, bucket, n_buckets - 1, lost);
	at = ir_alu(&l->ir, BPF_ADD, p, ir_alu_imm(&l->ir, BPF_LSH, bucket, 3));
	ir_add_atomic(&l->ir, at, 0, ir_const(&l->ir, 1));
}

/* The comparison of a value with the least or greatest one that says to keep the latter. */
static int keeping(bool is_min, bool is_signed)
{
	if (is_min)
		return is_signed ? BPF_JSGE : BPF_JGE;
	return is_signed ? BPF_JSLE : BPF_JLE;
}

/* n and the smallest or largest so far; the first value is taken whatever it is. */
static void keep_extreme(struct lower *l, ir_value p, ir_value v, bool is_min, bool is_signed)
{
	ir_label take = ir_new_label(&l->ir), done = ir_new_label(&l->ir);
	int keep = keeping(is_min, is_signed);

	ir_branch_imm(&l->ir, BPF_JEQ, ir_load_at(&l->ir, p, 0, 8, false), 0, take);
	ir_branch(&l->ir, keep, v, ir_load_at(&l->ir, p, 8, 8, false), done);
	ir_place_label(&l->ir, take);
	ir_store_at(&l->ir, p, 8, 8, v);
	ir_place_label(&l->ir, done);
	ir_add_atomic(&l->ir, p, 0, ir_const(&l->ir, 1));
}

/*
 * The time that intervals are counted in: ns since the epoch, or what the tests' map says.
 * facts[1] is what the wall clock is ahead of the monotonic one.
 */
static ir_value wall_time(struct lower *l, const struct expr *call)
{
	ir_label unknown = ir_new_label(&l->ir);
	ir_value time = ir_new_value(&l->ir), ahead;
	ir_mem index;

	if (call->c)
		return lower_value(l, call->c);
	ir_copy(&l->ir, time, ir_call(&l->ir, BPF_FUNC_ktime_get_ns, NULL, 0));
	index = lower_index(l, FACT_WALL_CLOCK);
	ahead = IR_CALL_(
		&l->ir, BPF_FUNC_map_lookup_elem, IR_MAP(STREAM_MAP_FACTS), IR_M(index, 0));
	ir_branch_imm(&l->ir, BPF_JEQ, ahead, 0, unknown);
	ir_copy(&l->ir, time,
		ir_alu(&l->ir, BPF_ADD, time, ir_load_at(&l->ir, ahead, 0, 8, false)));
	ir_place_label(&l->ir, unknown);
	return time;
}

/*
 * slot = &series[interval % n]; if (slot->interval != interval) *slot = {interval}
 * the value is taken in as the series' function says; slot->n++
 */
static void add_to_series(struct lower *l, ir_value p, const struct shape *shape,
	const struct expr *call, ir_value v, ir_label lost)
{
	ir_value time = wall_time(l, call), interval, i, slot;
	ir_label same = ir_new_label(&l->ir), done = ir_new_label(&l->ir);

	interval = ir_alu(&l->ir, BPF_DIV, time, ir_const(&l->ir, shape->step));
	i = ir_alu(&l->ir, BPF_MOD, interval, ir_const(&l->ir, shape->max));
	ir_branch_imm(&l->ir, BPF_JGT, i, shape->max - 1, lost);
	slot = ir_alu(&l->ir, BPF_ADD, p,
		ir_alu_imm(&l->ir, BPF_MUL, i, (int64_t)sizeof(struct tseries_slot)));
	ir_branch(&l->ir, BPF_JEQ, interval, ir_load_at(&l->ir, slot, 0, 8, false), same);
	for (uint32_t at = 8; at < sizeof(struct tseries_slot); at += 8)
		ir_store_at(&l->ir, slot, (int32_t)at, 8, ir_const(&l->ir, 0));
	ir_store_at(&l->ir, slot, 0, 8, interval);
	ir_place_label(&l->ir, same);
	switch ((enum tseries_function)shape->min) {
	case TSERIES_MIN:
	case TSERIES_MAX:
		keep_extreme(l, ir_alu_imm(&l->ir, BPF_ADD, slot, 8), v, shape->min == TSERIES_MIN,
			shape->is_signed);
		return;
	case TSERIES_LAST:
		ir_branch(&l->ir, BPF_JLE, time, ir_load_at(&l->ir, slot, 24, 8, false), done);
		ir_store_at(&l->ir, slot, 24, 8, time);
		ir_store_at(&l->ir, slot, 16, 8, v);
		ir_place_label(&l->ir, done);
		break;
	default:
		ir_add_atomic(&l->ir, slot, 16, v);
		break;
	}
	ir_add_atomic(&l->ir, slot, 8, ir_const(&l->ir, 1));
}

static void aggregate_value(struct lower *l, const struct shape *shape, const struct expr *call,
	ir_value p, ir_value v, ir_label lost)
{
	bool is_unsigned = call->args && type_is_unsigned64(type_of(l, call->args));

	switch (shape->kind) {
	case SHAPE_COUNT:
		ir_add_atomic(&l->ir, p, 0, ir_const(&l->ir, 1));
		break;
	case SHAPE_SUM:
		ir_add_atomic(&l->ir, p, 0, v);
		break;
	case SHAPE_MIN:
	case SHAPE_MAX:
		keep_extreme(l, p, v, shape->kind == SHAPE_MIN, shape->is_signed);
		break;
	case SHAPE_AVG:
	case SHAPE_STATS:
		ir_add_atomic(&l->ir, p, 0, ir_const(&l->ir, 1));
		ir_add_atomic(&l->ir, p, 8, v);
		break;
	case SHAPE_HIST:
		add_to_bucket(
			l, p, hist_bucket(l, v, shape->n, !is_unsigned), shape->size / 8, lost);
		break;
	case SHAPE_TSERIES:
		add_to_series(l, p, shape, call, v, lost);
		break;
	default:
		add_to_bucket(l, p, lhist_bucket(l, v, shape, is_unsigned), shape->size / 8, lost);
		break;
	}
}

void lower_aggregate(struct lower *l, const struct expr *e, const struct expr *b)
{
	const struct expr *call = check_aggregating_call(b);
	const struct map_use *map = meaning_of(l, e)->map;
	ir_label lost = ir_new_label(&l->ir), done = ir_new_label(&l->ir);
	ir_value v, p;
	ir_mem key;

	for (; b != call; b = b->a)
		lower_block(l, b);
	v = call->args ? lower_value(l, call->args) : ir_const(&l->ir, 1);
	key = lower_map_key(l, map, e->args);
	p = ensure(l, map, key, lost);

	aggregate_value(l, map->value, call, p, v, lost);
	lower_end_lost(l, lost, done);
}

/* --- reading ---------------------------------------------------------------------------------- */

uint32_t lower_n_cpus(void)
{
	static uint32_t n;

	if (!n)
		n = (uint32_t)bpf_possible_cpus();
	return n;
}

static ir_value find_of_cpu(struct lower *l, const struct map_use *map, ir_mem key, ir_value cpu)
{
	return IR_CALL_(&l->ir, BPF_FUNC_map_lookup_percpu_elem, IR_MAP(lower_map_number(map)),
		IR_M(key, 0), IR_V(cpu));
}

/* What has been added up, or found, over the processors so far. */
struct sums {
	ir_value n, v;
};

static void take_cpu(struct lower *l, const struct shape *shape, ir_value p, struct sums *sums)
{
	ir_label take = ir_new_label(&l->ir), done = ir_new_label(&l->ir);
	bool has_n = shape->kind != SHAPE_COUNT && shape->kind != SHAPE_SUM;
	ir_value v = ir_load_at(&l->ir, p, has_n ? 8 : 0, 8, false), n;

	if (shape->kind != SHAPE_MIN && shape->kind != SHAPE_MAX) {
		ir_copy(&l->ir, sums->v, ir_alu(&l->ir, BPF_ADD, sums->v, v));
		if (has_n)
			ir_copy(&l->ir, sums->n,
				ir_alu(&l->ir, BPF_ADD, sums->n,
					ir_load_at(&l->ir, p, 0, 8, false)));
		return;
	}
	n = ir_load_at(&l->ir, p, 0, 8, false);
	ir_branch_imm(&l->ir, BPF_JEQ, n, 0, done);
	ir_branch_imm(&l->ir, BPF_JEQ, sums->n, 0, take);
	ir_branch(&l->ir, keeping(shape->kind == SHAPE_MIN, shape->is_signed), v, sums->v, done);
	ir_place_label(&l->ir, take);
	ir_copy(&l->ir, sums->v, v);
	ir_set_const(&l->ir, sums->n, 1);
	ir_place_label(&l->ir, done);
}

/* v / n, towards 0; 0 when n is: BPF says so of divisions by 0. */
static ir_value average(struct lower *l, const struct sums *sums, bool is_signed)
{
	ir_label negative = ir_new_label(&l->ir), done = ir_new_label(&l->ir);
	ir_value result = ir_new_value(&l->ir), positive;

	if (is_signed)
		ir_branch_imm(&l->ir, BPF_JSLT, sums->v, 0, negative);
	ir_copy(&l->ir, result, ir_alu(&l->ir, BPF_DIV, sums->v, sums->n));
	if (is_signed) {
		ir_jump(&l->ir, done);
		ir_place_label(&l->ir, negative);
		positive = ir_alu_imm(&l->ir, BPF_MUL, sums->v, -1);
		ir_copy(&l->ir, result,
			ir_alu_imm(
				&l->ir, BPF_MUL, ir_alu(&l->ir, BPF_DIV, positive, sums->n), -1));
		ir_place_label(&l->ir, done);
	}
	return result;
}

/*
 * for (cpu = 0; cpu < N; cpu++) {
 *     p = value of key on cpu
 *     if (!p) goto end           -- no such key, or no such processor
 *     take p in
 * }
 * if (value of key on N) fail    -- compiled on a machine with fewer processors
 * end:
 */
ir_value lower_aggregated(struct lower *l, const struct map_use *map, ir_mem key)
{
	ir_label next = ir_new_label(&l->ir), whole = ir_new_label(&l->ir),
		 end = ir_new_label(&l->ir);
	ir_value cpu = ir_new_value(&l->ir), p;
	struct sums sums = {ir_new_value(&l->ir), ir_new_value(&l->ir)};
	uint32_t n_cpus = lower_n_cpus();

	ir_set_const(&l->ir, sums.n, 0);
	ir_set_const(&l->ir, sums.v, 0);
	ir_set_const(&l->ir, cpu, 0);
	ir_loop(&l->ir, n_cpus);
	ir_place_label(&l->ir, next);
	ir_branch_imm(&l->ir, BPF_JGE, cpu, n_cpus, whole);
	p = find_of_cpu(l, map, key, cpu);
	ir_branch_imm(&l->ir, BPF_JEQ, p, 0, end);
	take_cpu(l, map->value, p, &sums);
	ir_copy(&l->ir, cpu, ir_alu_imm(&l->ir, BPF_ADD, cpu, 1));
	ir_jump(&l->ir, next);
	ir_loop_end(&l->ir);
	ir_place_label(&l->ir, whole);
	ir_branch_imm(&l->ir, BPF_JEQ, find_of_cpu(l, map, key, cpu), 0, end);
	lower_fail(l, FAILURE_OTHER, ENODEV);
	ir_place_label(&l->ir, end);
	return map->value->kind == SHAPE_AVG ? average(l, &sums, map->value->is_signed) : sums.v;
}
