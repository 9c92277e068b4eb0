/* SPDX-License-Identifier: MIT */
/* Any bytes as a step record; the first says which kind. What is accepted survives a round trip. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "trace/records.h"
#include "trace/step_records.h"
#include "trace/step_ways.h"

#define TIMES_MAX 1000 /* encoding is by iterations */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void need(bool condition)
{
	if (!condition)
		abort();
}

/* One by one and in blocks, both ways agree; when the whole run is fine its steps are in *steps. */
static bool decode_run(
	struct span payload, struct step_run_head *head, struct step_at **steps, uint32_t max)
{
	struct step_run_walk one, many;
	struct step_at *all;
	uint32_t n = 0, n_one = 0;
	int got, rc = 1;

	if (!step_run_open(&one, payload))
		return false;
	need(step_run_open(&many, payload) && step_run_head(head, payload));
	need(head->n && head->n <= payload.n);
	all = mem_calloc(head->n + (size_t)max, sizeof(*all));
	while ((got = step_run_take(&many, all + n, max)) > 0)
		need((n += (uint32_t)got) <= head->n);
	for (; rc > 0; rc = step_run_next(&one), n_one++)
		need(n_one < n && all[n_one].addr == one.at.addr &&
			all[n_one].times == one.at.times);
	need(n == n_one && rc == got && (rc < 0 || n == head->n));
	*steps = all;
	if (rc == 0)
		return true;
	free(all);
	return false;
}

static void try_run(struct span payload, uint32_t max)
{
	struct step_at *steps, *again;
	struct step_run_head head, head_again;
	struct step_run_coder c = {0};
	struct buf b = {0};
	bool is_encoded = true;

	if (!decode_run(payload, &head, &steps, max))
		return;
	step_run_begin(&c, head.first, head.space, head.generation);
	for (uint32_t i = 0; i < head.n && is_encoded; i++) {
		is_encoded = steps[i].times <= TIMES_MAX;
		step_run_add(&c, steps[i].addr);
		for (uint64_t k = 1; k < steps[i].times && is_encoded; k++)
			step_run_again(&c, 1);
	}
	step_run_end(&c, &b);
	if (is_encoded) {
		need(b.n <= payload.n); /* the shortest form */
		need(decode_run(buf_span(&b), &head_again, &again, 7));
		need(!memcmp(again, steps, head.n * sizeof(*steps)));
		free(again);
	}
	step_run_release(&c);
	buf_release(&b);
	free(steps);
}

static void try_code(struct span payload)
{
	VEC(struct step_code) entries = {0};
	struct step_code_walk w;
	struct step_code code;
	struct buf b = {0};
	int rc = step_code_open(&w, payload) ? 1 : -1;

	while (rc > 0 && (rc = step_code_next(&w, &code)) > 0) {
		need(code.n <= STEP_CODE_BYTES_MAX && entries.n < w.head.n);
		vec_push(&entries, code);
	}
	if (rc == 0) {
		need(entries.n == w.head.n);
		step_code_encode(&b, &w.head, entries.v);
		need(b.n <= payload.n && step_code_open(&w, buf_span(&b)));
		for (size_t i = 0; i < entries.n; i++)
			need(step_code_next(&w, &code) == 1 && code.addr == entries.v[i].addr &&
				code.frame == entries.v[i].frame && code.n == entries.v[i].n &&
				!memcmp(code.bytes, entries.v[i].bytes, sizeof(code.bytes)));
		need(step_code_next(&w, &code) == 0);
	}
	vec_release(&entries);
	buf_release(&b);
}

static void try_mark(struct span payload)
{
	struct step_mark m, again;
	struct buf b = {0};

	if (!step_mark_decode(&m, payload))
		return;
	need(m.kind > 0 && m.kind < STEP_N_MARKS);
	step_mark_encode(&b, &m);
	need(step_mark_decode(&again, buf_span(&b)));
	need(again.at == m.at && again.kind == m.kind && again.text == m.text);
	need(again.a == m.a && again.b == m.b && again.c == m.c);
	buf_release(&b);
}

static void try_data(struct span payload)
{
	VEC(struct step_datum) all = {0};
	struct step_data_walk w;
	struct step_datum d;
	struct buf b = {0};
	int rc = step_data_open(&w, payload) ? 1 : -1;

	while (rc > 0 && (rc = step_data_next(&w, &d)) > 0) {
		need(d.n <= STEP_DATA_BYTES_MAX && d.how && all.n <= payload.n);
		vec_push(&all, d);
	}
	if (rc == 0) {
		step_data_encode(&b, all.v, (uint32_t)all.n);
		need(b.n <= payload.n && step_data_open(&w, buf_span(&b)));
		for (size_t i = 0; i < all.n; i++)
			need(step_data_next(&w, &d) == 1 && d.at == all.v[i].at &&
				d.addr == all.v[i].addr && d.has_value == all.v[i].has_value);
		need(step_data_next(&w, &d) == 0);
	}
	vec_release(&all);
	buf_release(&b);
}

static void try_place(struct span payload)
{
	struct step_place p, again;
	struct buf b = {0};

	if (!step_place_decode(&p, payload))
		return;
	need(p.bytes && p.start + p.bytes > p.start && p.kind < STEP_N_PLACES);
	step_place_encode(&b, &p);
	need(b.n <= payload.n && step_place_decode(&again, buf_span(&b)));
	need(again.space == p.space && again.kind == p.kind && again.start == p.start);
	need(again.bytes == p.bytes && again.image == p.image && again.at == p.at);
	need(again.name == p.name);
	buf_release(&b);
}

static void try_blocks(struct span payload)
{
	VEC(struct step_block) all = {0};
	struct step_blocks_walk w;
	struct step_block block;
	struct buf b = {0};
	int rc = step_blocks_open(&w, payload) ? 1 : -1;

	while (rc > 0 && (rc = step_blocks_next(&w, &block)) > 0) {
		need(block.n && block.n <= STEP_BLOCK_INSNS_MAX && all.n <= payload.n);
		vec_push(&all, block);
	}
	if (rc == 0) {
		struct step_blocks_head head = w.head;

		step_blocks_encode(&b, &head, all.v);
		need(b.n <= payload.n && step_blocks_open(&w, buf_span(&b)));
		for (size_t i = 0; i < all.n; i++)
			need(step_blocks_next(&w, &block) == 1 && block.addr == all.v[i].addr &&
				block.strings == all.v[i].strings);
		need(step_blocks_next(&w, &block) == 0);
	}
	vec_release(&all);
	buf_release(&b);
}

#define WAY_BLOCKS_MAX	100000
#define WAY_NUMBERS_MAX 65536u /* a reader has as many as were told, and stops at others */

/* The blocks of a way make the same way again. */
static void try_way(struct span payload, uint32_t minor)
{
	static struct step_way_walk w, again; /* too large for a stack */
	static struct step_way_coder c;
	VEC(uint32_t) all = {0};
	struct buf b = {0};
	uint32_t block;
	int rc = step_way_open(&w, minor, payload) ? 1 : -1;

	while (rc > 0 && all.n < WAY_BLOCKS_MAX && (rc = step_way_next(&w, &block)) > 0) {
		if (block >= WAY_NUMBERS_MAX)
			break;
		vec_push(&all, block);
	}
	if (rc == 0) {
		step_way_begin(&c, w.head.first, w.head.space, w.head.generation, all.v[0]);
		step_way_add(&c, all.v + 1, all.n - 1);
		c.head.n = w.head.n;
		c.head.cut = w.head.cut;
		step_way_end(&c, &b);
		need(step_way_open(&again, RECORD_STEP_WAY, buf_span(&b)));
		for (size_t i = 0; i < all.n; i++)
			need(step_way_next(&again, &block) == 1 && block == all.v[i]);
		need(step_way_next(&again, &block) == 0);
	}
	vec_release(&all);
	buf_release(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct span payload;

	if (!n)
		return 0;
	payload = (struct span){data + 1, n - 1};
	switch (data[0] % 8) { /* of ways there are two */
	case RECORD_STEP_RUN:
		try_run(payload, 1 + data[0] / 8u);
		break;
	case RECORD_STEP_CODE:
		try_code(payload);
		break;
	case RECORD_STEP_MARK:
		try_mark(payload);
		break;
	case RECORD_STEP_DATA:
		try_data(payload);
		break;
	case RECORD_STEP_PLACE:
		try_place(payload);
		break;
	case RECORD_STEP_BLOCKS:
		try_blocks(payload);
		break;
	case RECORD_STEP_SHORT_WAY % 8:
		try_way(payload, data[0] / 8 % 2 ? RECORD_STEP_SHORT_WAY : RECORD_STEP_WAY);
		break;
	}
	return 0;
}
