/* SPDX-License-Identifier: MIT */
#include "translate/counts_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/search.h"
#include "base/sort.h"

/* What identifies a function: code at the same address may be another one later. */
struct function_key {
	uint64_t address, bias;
	uint64_t image;
};

struct counts *counts_new(pid_t pid)
{
	struct counts *c = mem_zalloc(sizeof(*c));

	c->pid = pid;
	vec_push(&c->by_number,
		((struct call_function){.image = COUNTS_NO_IMAGE, .block = TRANSLATE_NO_BLOCK}));
	return c;
}

static void thread_free(struct call_thread *t)
{
	call_nodes_release(t);
	call_stacks_release(t);
	vec_release(&t->counters);
	vec_release(&t->faults);
	map_release(&t->fault_of);
	free(t->name);
	free(t);
}

void counts_free(struct counts *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->threads.n; i++)
		thread_free(c->threads.v[i]);
	vec_release(&c->threads);
	map_release(&c->thread_of);
	vec_release(&c->rows);
	vec_release(&c->row_functions);
	vec_release(&c->code);
	vec_release(&c->functions);
	intern_release(&c->function_keys);
	vec_release(&c->by_number);
	for (size_t i = 0; i < c->losses.n; i++)
		free(c->losses.v[i].sentence);
	vec_release(&c->losses);
	free(c);
}

pid_t counts_pid(const struct counts *c)
{
	return c->pid;
}

void counts_set_space(struct counts *c, struct addrspace *const *space)
{
	c->space = space;
}

void counts_set_stacks(struct counts *c, counts_stack_bounds *bounds, void *ctx)
{
	c->bounds = bounds;
	c->bounds_ctx = ctx;
}

void counts_tell(struct counts *c, bool is_loss, uint64_t n, const char *sentence)
{
	for (size_t i = 0; i < c->losses.n; i++) {
		struct counts_loss *l = &c->losses.v[i];

		if (l->is_loss == is_loss && !strcmp(l->sentence, sentence)) {
			l->n += n;
			return;
		}
	}
	if (c->losses.n == COUNTS_LOSSES_MAX) {
		c->losses.v[COUNTS_LOSSES_MAX - 1].n += n;
		return;
	}
	if (c->losses.n == COUNTS_LOSSES_MAX - 1) {
		is_loss = true;
		sentence = "other things that are not told one by one";
	}
	vec_push(&c->losses, ((struct counts_loss){mem_strdup(sentence), n, is_loss}));
}

/* --- blocks ------------------------------------------------------------------------------------ */

static bool is_sane(const struct translate_block *row)
{
	return row->n_insns && row->bytes >= row->n_insns && row->bytes <= row->n_insns * 16u &&
	       row->pc + row->bytes > row->pc;
}

static void add_row(struct counts *c, const struct translate_block *from)
{
	struct counts_row row = {.pc = from->pc,
		.image = COUNTS_NO_IMAGE,
		.bytes = from->bytes,
		.n_insns = from->n_insns,
		.flags = from->flags};
	const struct mapping *m =
		c->space && *c->space ? addrspace_find(*c->space, (struct vaddr){from->pc}) : NULL;

	if (m) {
		row.image = m->image;
		row.bias = m->bias;
	}
	if (!is_sane(from)) {
		c->n_bad_blocks++;
		row.bytes = row.n_insns = 0;
	}
	vec_push(&c->rows, row);
	vec_push(&c->row_functions, 0);
}

void counts_blocks(struct counts *c, uint32_t first, const struct translate_block *rows, size_t n)
{
	struct translate_block none = {0};

	if (first >= COUNTS_BLOCKS_MAX || n > COUNTS_BLOCKS_MAX - first) {
		c->n_bad_blocks += n;
		return;
	}
	while (c->rows.n < first)
		add_row(c, &none); /* nobody told of them */
	for (size_t i = 0; i < n; i++) {
		if (first + i < c->rows.n)
			c->rows.v[first + i].flags = rows[i].flags;
		else
			add_row(c, &rows[i]);
	}
}

void counts_code(struct counts *c, uint32_t block, const uint8_t *bytes, size_t n)
{
	struct counts_row *row = block < c->rows.n ? &c->rows.v[block] : NULL;

	if (!row || row->code || n != row->bytes || !n || c->code.n + n > COUNTS_CODE_MAX)
		return;
	row->code = c->code.n + 1;
	vec_reserve(&c->code, c->code.n + n);
	memcpy(c->code.v + c->code.n, bytes, n);
	c->code.n += n;
}

/* --- functions --------------------------------------------------------------------------------- */

/* Those that were known between the first and the last of these are other code now, or the same. */
void counts_functions(struct counts *c, const struct translate_function *f, size_t n)
{
	size_t low, high;

	for (size_t i = 1; i < n; i++)
		if (f[i].start < f[i - 1].start) {
			c->n_bad_blocks++;
			return;
		}
	if (!n || n > COUNTS_BLOCKS_MAX || c->functions.n > COUNTS_BLOCKS_MAX)
		return;
	low = SEARCH(0, c->functions.n, i, c->functions.v[i].start < f[0].start);
	high = SEARCH(low, c->functions.n, i, c->functions.v[i].start <= f[n - 1].start);
	vec_reserve(&c->functions, c->functions.n + n);
	memmove(c->functions.v + low + n, c->functions.v + high,
		(c->functions.n - high) * sizeof(*c->functions.v));
	memcpy(c->functions.v + low, f, n * sizeof(*f));
	c->functions.n = c->functions.n - (high - low) + n;
}

const struct translate_function *counts_function_at(const struct counts *c, uint64_t pc)
{
	size_t i = SEARCH(0, c->functions.n, k, c->functions.v[k].start <= pc);
	const struct translate_function *f = i ? &c->functions.v[i - 1] : NULL;

	return f && pc - f->start < f->bytes ? f : NULL;
}

/* Where the function begins that an address is in; the address itself when none is known. */
static uint64_t function_start(const struct counts *c, uint64_t pc)
{
	const struct translate_function *f = counts_function_at(c, pc);

	return f ? f->start : pc;
}

uint32_t counts_row_function(struct counts *c, uint32_t block)
{
	struct function_key key = {0};
	const struct counts_row *row;
	uint32_t number;

	if (block >= c->rows.n || !c->rows.v[block].n_insns)
		return 0;
	row = &c->rows.v[block];
	if (c->row_functions.v[block])
		return c->row_functions.v[block];
	key.address = function_start(c, row->pc);
	key.bias = row->bias;
	key.image = row->image;
	number = intern_bytes(&c->function_keys, &key, sizeof(key)) + 1;
	if (number == c->by_number.n)
		vec_push(&c->by_number,
			((struct call_function){key.address, row->bias, row->image, block}));
	else if (row->pc == key.address && c->rows.v[c->by_number.v[number].block].pc != row->pc)
		c->by_number.v[number].block = block;
	c->row_functions.v[block] = number | (row->pc == key.address ? 0 : ROW_IS_MIDST);
	return c->row_functions.v[block];
}

/* --- threads ----------------------------------------------------------------------------------- */

struct call_thread *counts_thread_of(struct counts *c, uint64_t key, pid_t tid)
{
	struct call_thread *t = c->last_thread;
	const uint64_t *at;

	if (t && t->key == key)
		return t;
	at = map_find(&c->thread_of, key);
	if (at)
		return c->last_thread = c->threads.v[*at];
	if (c->threads.n == COUNTS_THREADS_MAX) {
		c->n_without_thread++;
		return NULL;
	}
	t = mem_zalloc(sizeof(*t));
	t->key = key;
	t->tid = tid;
	t->counts = c;
	call_nodes_init(t);
	call_stacks_init(t);
	*map_ensure(&c->thread_of, key, NULL) = c->threads.n;
	vec_push(&c->threads, t);
	return c->last_thread = t;
}

void counts_thread(struct counts *c, uint64_t thread, pid_t tid, const char *name, uint64_t cost,
	const uint64_t *counters, size_t n)
{
	struct call_thread *t = counts_thread_of(c, thread, tid);

	if (!t)
		return;
	if (name) {
		free(t->name);
		t->name = mem_strdup(name);
	}
	t->final_cost = cost;
	t->has_final = true;
	t->counters.n = 0;
	for (size_t i = 0; i < n && i < COUNTS_BLOCKS_MAX; i++)
		if (counters[i])
			vec_push(&t->counters, ((struct call_count){(uint32_t)i, counters[i]}));
}

/* --- the end ----------------------------------------------------------------------------------- */

static void add_counters(struct counts *c, const struct call_thread *t)
{
	for (size_t i = 0; i < t->counters.n; i++) {
		const struct call_count *count = &t->counters.v[i];

		if (count->block < c->rows.n && c->rows.v[count->block].n_insns)
			c->rows.v[count->block].count += count->count;
		else
			c->n_bad_blocks++;
	}
}

void counts_settle(struct counts *c)
{
	for (size_t i = 0; i < c->rows.n; i++)
		c->rows.v[i].count = 0;
	for (size_t i = 0; i < c->threads.n; i++) {
		struct call_thread *t = c->threads.v[i];

		if (t->has_final)
			call_thread_charge(t, t->final_cost);
		add_counters(c, t);
	}
}

size_t counts_n_threads(const struct counts *c)
{
	return c->threads.n;
}

size_t counts_n_nodes(const struct counts *c, size_t thread)
{
	return c->threads.v[thread]->nodes.n;
}

void counts_get_node(const struct counts *c, size_t thread, size_t node, struct counts_node *out)
{
	const struct call_node *n = &c->threads.v[thread]->nodes.v[node];
	const struct call_function *f = &c->by_number.v[n->function];

	*out = (struct counts_node){.parent = n->parent,
		.block = f->block,
		.function = f->address,
		.calls = n->calls,
		.cost = n->cost,
		.min = n->min,
		.max = n->max};
}
