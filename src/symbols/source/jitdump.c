/* SPDX-License-Identifier: MIT */
/*
 * The format is that of the kernel's tools/perf/Documentation/jitdump-specification.txt, version 1:
 * a header, then records of {id, total size, time} and a body, in the writer's byte order.
 *
 * Each version of a method is a rectangle: a range of addresses by a range of time. They do not
 * overlap, since a load ends whatever was at its place. The ranges of time are computed backwards
 * (the next load over my addresses is the earliest one seen so far there), on a segment tree over
 * the distinct addresses. Look-up uses a tree of the same shape: a code is entered at the few
 * nodes that together make its range; codes of one node cover the same addresses, so they are
 * disjoint in time and searched by it.
 *
 * What is used of "the last one there" is the latest load at the place, even when the code was
 * moved away since: an address of a sample without a time is better explained by it than by
 * nothing.
 */
#include "symbols/source/jitdump.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/search.h"
#include "base/sort.h"
#include "symbols/symtab.h"

#define JITDUMP_MAGIC		0x4A695444u
#define JITDUMP_VERSION		1
#define JITDUMP_HEADER_BYTES	40
#define JITDUMP_PREFIX_BYTES	16
#define JITDUMP_FLAG_ARCH_CLOCK 1u
#define JITDUMP_CODES_MAX	(1u << 22)
/* A line takes 18 bytes of a file, but moved code has a copy of its lines. */
#define JITDUMP_LINES_PER_BYTES 4

enum jit_record {
	JIT_RECORD_LOAD = 0,
	JIT_RECORD_MOVE = 1,
	JIT_RECORD_DEBUG_INFO = 2,
	JIT_RECORD_CLOSE = 3,
	JIT_RECORD_UNWINDING_INFO = 4
};

/* --- reading --- */

/* Where a debug record's lines are in j->lines. */
struct debug_lines {
	size_t first, n;
};

struct reader {
	struct jitdump *j;
	bool is_swapped;
	size_t lines_max;
	/* Pieces of j->lines, whose place in memory is known only at the end. */
	VEC(size_t) lines_first; /* of each code */
	struct map pending;	 /* address of code -> 1 + index into `debugs` */
	VEC(struct debug_lines) debugs;
	struct map last_at; /* address -> 1 + the latest code that starts there */
};

static uint32_t take_u32(const struct reader *r, struct cursor *c)
{
	uint32_t v = cursor_u32(c);

	return r->is_swapped ? __builtin_bswap32(v) : v;
}

static uint64_t take_u64(const struct reader *r, struct cursor *c)
{
	uint64_t v = cursor_u64(c);

	return r->is_swapped ? __builtin_bswap64(v) : v;
}

static bool is_range(uint64_t addr, uint64_t bytes)
{
	return bytes && bytes <= UINT64_MAX - addr;
}

static void add_code(struct reader *r, const struct jit_code *code, size_t lines_first)
{
	*map_ensure(&r->last_at, code->addr, NULL) = r->j->codes.n + 1;
	vec_push(&r->j->codes, *code);
	vec_push(&r->lines_first, lines_first);
}

static bool read_load(struct reader *r, struct cursor *c, uint64_t time)
{
	struct jit_code code = {.from_ns = time, .to_ns = UINT64_MAX};
	size_t lines_first = 0;
	uint64_t *pending;

	take_u32(r, c); /* pid: that of the header */
	code.tid = take_u32(r, c);
	take_u64(r, c); /* address of the mapping */
	code.addr = take_u64(r, c);
	code.bytes = take_u64(r, c);
	code.index = take_u64(r, c);
	code.name = cursor_cstr(c);
	if (c->failed || !is_range(code.addr, code.bytes) || !code.name[0] ||
		strnlen(code.name, SYMTAB_NAME_BYTES_MAX + 1) > SYMTAB_NAME_BYTES_MAX ||
		r->j->codes.n >= JITDUMP_CODES_MAX)
		return false;
	code.code = cursor_bytes(c, code.bytes);
	pending = map_find(&r->pending, code.addr);
	if (pending && *pending) {
		code.n_lines = r->debugs.v[*pending - 1].n;
		lines_first = r->debugs.v[*pending - 1].first;
		*pending = 0;
	}
	add_code(r, &code, lines_first);
	return true;
}

/* Copies the lines of a code that moved, when there may be that many. */
static bool move_lines(struct reader *r, size_t first, size_t n, uint64_t delta)
{
	struct jitdump *j = r->j;

	if (n > r->lines_max - j->lines.n)
		return false;
	vec_reserve(&j->lines, j->lines.n + n);
	for (size_t i = 0; i < n; i++) {
		struct jit_line line = j->lines.v[first + i];

		line.addr += delta;
		vec_push(&j->lines, line);
	}
	return true;
}

static bool read_move(struct reader *r, struct cursor *c, uint64_t time)
{
	struct jitdump *j = r->j;
	uint64_t from, to, bytes, *last;
	struct jit_code code;
	size_t lines_first;
	uint32_t tid;

	take_u32(r, c);
	tid = take_u32(r, c);
	take_u64(r, c);
	from = take_u64(r, c);
	to = take_u64(r, c);
	bytes = take_u64(r, c);
	take_u64(r, c); /* the compiler's number: that of the code at the old address */
	last = map_find(&r->last_at, from);
	if (c->failed || !last || !is_range(to, bytes) || j->codes.n >= JITDUMP_CODES_MAX)
		return false;
	code = j->codes.v[*last - 1];
	if (time < code.from_ns || code.to_ns != UINT64_MAX)
		return false; /* moved before */
	lines_first = r->lines_first.v[*last - 1];
	j->codes.v[*last - 1].to_ns = time;
	code.addr = to;
	code.tid = tid;
	code.from_ns = time;
	if (bytes < code.code.n)
		code.code.n = bytes;
	code.bytes = bytes;
	if (code.n_lines && move_lines(r, lines_first, code.n_lines, to - from)) {
		lines_first = j->lines.n - code.n_lines;
	} else if (code.n_lines) {
		code.n_lines = 0;
		j->n_malformed++;
	}
	add_code(r, &code, lines_first);
	return true;
}

/* {address, line, discriminator, file}; the file "\377" is that of the entry before. */
static bool read_debug_info(struct reader *r, struct cursor *c)
{
	struct jitdump *j = r->j;
	struct debug_lines d = {.first = j->lines.n};
	uint64_t code_addr = take_u64(r, c), n = take_u64(r, c);
	const char *file = NULL;

	for (; d.n < n && !c->failed && j->lines.n < r->lines_max; d.n++) {
		struct jit_line line = {.addr = take_u64(r, c)};

		line.line = take_u32(r, c);
		take_u32(r, c);
		line.file = cursor_cstr(c);
		if (c->failed)
			break;
		if (strcmp(line.file, "\377") != 0)
			file = line.file;
		line.file = file ? file : "";
		vec_push(&j->lines, line);
	}
	if (d.n != n) {
		j->lines.n = d.first;
		return false;
	}
	vec_push(&r->debugs, d);
	*map_ensure(&r->pending, code_addr, NULL) = r->debugs.n;
	return true;
}

static void read_record(struct reader *r, uint32_t id, struct cursor *c, uint64_t time)
{
	bool is_good = true;

	switch (id) {
	case JIT_RECORD_LOAD:
		is_good = read_load(r, c, time);
		break;
	case JIT_RECORD_MOVE:
		is_good = read_move(r, c, time);
		break;
	case JIT_RECORD_DEBUG_INFO:
		is_good = read_debug_info(r, c);
		break;
	case JIT_RECORD_CLOSE:
	case JIT_RECORD_UNWINDING_INFO:
		break;
	default:
		r->j->n_unknown++;
	}
	if (!is_good)
		r->j->n_malformed++;
}

static void read_records(struct reader *r, struct span bytes, uint64_t at)
{
	struct jitdump *j = r->j;

	for (;;) {
		struct cursor c = cursor_of(span_sub(bytes, at, JITDUMP_PREFIX_BYTES));
		struct span body;
		uint32_t id = take_u32(r, &c), total = take_u32(r, &c);
		uint64_t time = take_u64(r, &c);

		j->bytes_read = at;
		if (c.failed)
			return;
		if (total < JITDUMP_PREFIX_BYTES) {
			/* A file that was made larger in advance ends in zeros. */
			j->n_malformed += id || total || time;
			return;
		}
		if (total > bytes.n - at)
			return; /* its rest is still to come */
		body = span_sub(bytes, at + JITDUMP_PREFIX_BYTES, total - JITDUMP_PREFIX_BYTES);
		c = cursor_of(body);
		read_record(r, id, &c, time);
		at += total;
	}
}

static int read_header(struct reader *r, struct span bytes, uint64_t *at, struct err *err)
{
	struct jitdump *j = r->j;
	struct cursor c = cursor_of(bytes);
	uint32_t magic = cursor_u32(&c), version, total;

	r->is_swapped = magic == __builtin_bswap32(JITDUMP_MAGIC);
	if (bytes.n < JITDUMP_HEADER_BYTES || (magic != JITDUMP_MAGIC && !r->is_swapped))
		return err_set(err, ERR_FORMAT, "does not begin as a jitdump file does");
	version = take_u32(r, &c);
	total = take_u32(r, &c);
	j->machine = (uint16_t)take_u32(r, &c);
	take_u32(r, &c); /* padding */
	j->pid = take_u32(r, &c);
	take_u64(r, &c); /* when it was made */
	j->uses_arch_clock = take_u64(r, &c) & JITDUMP_FLAG_ARCH_CLOCK;
	if (version != JITDUMP_VERSION)
		return err_set(err, ERR_UNSUPPORTED, "version %u of jitdump is not known", version);
	if (total < JITDUMP_HEADER_BYTES || total > bytes.n)
		return err_set(err, ERR_FORMAT, "jitdump header of %u bytes in a file of %zu",
			total, bytes.n);
	*at = total;
	return 0;
}

/* --- time --- */

/* Codes by time of load, in order of the file where that is equal. */
static struct sort_pair *order_loads(const struct jitdump *j)
{
	struct sort_pair *orders = mem_calloc(j->codes.n + 1, sizeof(*orders));

	for (size_t i = 0; i < j->codes.n; i++)
		orders[i] = (struct sort_pair){j->codes.v[i].from_ns, (uint32_t)i};
	sort_pairs(orders, j->codes.n);
	return orders;
}

static void make_bounds(struct jitdump *j)
{
	struct jit_index *x = &j->index;
	size_t n = 0;

	x->bounds = mem_calloc(j->codes.n * 2 + 1, sizeof(*x->bounds));
	for (size_t i = 0; i < j->codes.n; i++) {
		x->bounds[n++] = j->codes.v[i].addr;
		x->bounds[n++] = j->codes.v[i].addr + j->codes.v[i].bytes;
	}
	x->n_bounds = sort_distinct_u64(x->bounds, n);
	for (x->n_leaves = 1; x->n_leaves < x->n_bounds;)
		x->n_leaves *= 2;
}

/* How many bounds are <= addr. */
static size_t bounds_up_to(const struct jit_index *x, uint64_t addr)
{
	return SEARCH(0, x->n_bounds, middle, x->bounds[middle] <= addr);
}

/* Leaf i is the range from bound i to bound i + 1; node n has the children 2n and 2n + 1, the root
 * is 1, leaf i is node n_leaves + i. The nodes that make up the range of a code, at most 128: */
struct node_set {
	size_t n;
	size_t nodes[128];
};

static struct node_set nodes_of(const struct jit_index *x, const struct jit_code *code)
{
	size_t low = bounds_up_to(x, code->addr) - 1 + x->n_leaves;
	size_t high = bounds_up_to(x, code->addr + code->bytes) - 1 + x->n_leaves;
	struct node_set set = {0};

	for (; low < high; low /= 2, high /= 2) {
		if (low & 1)
			set.nodes[set.n++] = low++;
		if (high & 1)
			set.nodes[set.n++] = --high;
	}
	return set;
}

/* Each code ends when the next one is loaded over any part of it. `covers[node]`: the earliest
 * load so far that covers the whole node; `touches[node]`: any part of it. */
static void end_at_next_load(struct jitdump *j, const struct sort_pair *orders)
{
	size_t n_nodes = j->index.n_leaves * 2;
	uint64_t *covers = mem_calloc(n_nodes, sizeof(*covers));
	uint64_t *touches = mem_calloc(n_nodes, sizeof(*touches));

	memset(covers, 0xff, n_nodes * sizeof(*covers));
	memset(touches, 0xff, n_nodes * sizeof(*touches));
	for (size_t i = j->codes.n; i-- > 0;) {
		struct jit_code *code = &j->codes.v[orders[i].i];
		struct node_set set = nodes_of(&j->index, code);
		uint64_t next = UINT64_MAX;

		for (size_t k = 0; k < set.n; k++) {
			size_t node = set.nodes[k];

			if (touches[node] < next)
				next = touches[node];
			for (; node; node /= 2)
				if (covers[node] < next)
					next = covers[node];
		}
		if (next < code->to_ns)
			code->to_ns = next;
		for (size_t k = 0; k < set.n; k++) {
			covers[set.nodes[k]] = code->from_ns;
			for (size_t node = set.nodes[k]; node; node /= 2)
				touches[node] = code->from_ns;
		}
	}
	free(covers);
	free(touches);
}

/* --- look-up --- */

static void make_index(struct jitdump *j, const struct sort_pair *orders)
{
	struct jit_index *x = &j->index;
	size_t n_nodes = x->n_leaves * 2;
	uint32_t *next;

	x->node_first = mem_calloc(n_nodes + 1, sizeof(*x->node_first));
	for (size_t i = 0; i < j->codes.n; i++) {
		struct node_set set = nodes_of(x, &j->codes.v[i]);

		for (size_t k = 0; k < set.n; k++)
			x->node_first[set.nodes[k] + 1]++;
	}
	for (size_t node = 0; node < n_nodes; node++)
		x->node_first[node + 1] += x->node_first[node];
	x->entries = mem_calloc((size_t)x->node_first[n_nodes] + 1, sizeof(*x->entries));
	next = mem_dup(x->node_first, n_nodes * sizeof(*next));
	for (size_t i = 0; i < j->codes.n; i++) {
		struct node_set set = nodes_of(x, &j->codes.v[orders[i].i]);

		for (size_t k = 0; k < set.n; k++)
			x->entries[next[set.nodes[k]]++] = orders[i].i;
	}
	free(next);
}

/* The last code of the node that was loaded at `time` or before. */
static const struct jit_code *find_in_node(const struct jitdump *j, size_t node, uint64_t time)
{
	size_t first = j->index.node_first[node], low = first, high = j->index.node_first[node + 1];

	low = SEARCH(low, high, middle, j->codes.v[j->index.entries[middle]].from_ns <= time);
	return low > first ? &j->codes.v[j->index.entries[low - 1]] : NULL;
}

const struct jit_code *jitdump_find(const struct jitdump *j, uint64_t addr, uint64_t time)
{
	const struct jit_code *best = NULL;
	size_t n = bounds_up_to(&j->index, addr);

	if (!n)
		return NULL;
	for (size_t node = j->index.n_leaves + n - 1; node; node /= 2) {
		const struct jit_code *code = find_in_node(j, node, time);

		if (!code || (time != UINT64_MAX && code->to_ns <= time))
			continue;
		/* Of one time, the later in the file: codes are in its order. */
		if (!best || code->from_ns > best->from_ns ||
			(code->from_ns == best->from_ns && code > best))
			best = code;
	}
	return best;
}

/* --- life --- */

int jitdump_init(struct jitdump *j, struct span bytes, struct err *err)
{
	struct reader r = {.j = j, .lines_max = bytes.n / JITDUMP_LINES_PER_BYTES};
	struct sort_pair *orders;
	uint64_t at = 0;
	int rc;

	*j = (struct jitdump){0};
	rc = read_header(&r, bytes, &at, err);
	if (rc < 0)
		return rc;
	read_records(&r, bytes, at);
	for (size_t i = 0; i < j->codes.n; i++)
		if (j->codes.v[i].n_lines)
			j->codes.v[i].lines = &j->lines.v[r.lines_first.v[i]];
	vec_release(&r.lines_first);
	vec_release(&r.debugs);
	map_release(&r.pending);
	map_release(&r.last_at);
	orders = order_loads(j);
	make_bounds(j);
	end_at_next_load(j, orders);
	make_index(j, orders);
	free(orders);
	return 0;
}

void jitdump_release(struct jitdump *j)
{
	vec_release(&j->codes);
	vec_release(&j->lines);
	free(j->index.bounds);
	free(j->index.node_first);
	free(j->index.entries);
	*j = (struct jitdump){0};
}
