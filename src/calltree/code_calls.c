/* SPDX-License-Identifier: MIT */
#include "calltree/code_calls.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/order.h"
#include "calltree/frame_names.h"

struct node {
	size_t parent; /* index + 1; 0: the thread */
	uint32_t party;
	uint64_t site, calls;
	uint64_t instructions, cost; /* own, then with all below */
};

struct maker {
	const struct trace_reader *reader;
	const struct code_counts *counts;
	struct map function_of; /* frame -> index */
	struct map party_of;	/* frame -> index */
	struct map node_of;	/* thread, number -> index + 1 */
	VEC(struct node) nodes;
	VEC(struct code_party) parties;
	VEC(struct code_call) calls;
	struct frame_levels levels;
	struct code_calls *out;
	bool lacks_cost;
};

static const char *keep(struct maker *m, const char *text)
{
	return intern_get(&m->out->names, intern_text(&m->out->names, text));
}

static uint32_t party_at(struct maker *m, uint32_t frame)
{
	const uint64_t *function = map_find(&m->function_of, frame);
	struct code_party party = {.frame = frame, .function = CODE_NO_FUNCTION};
	bool created;
	uint64_t *at = map_ensure(&m->party_of, frame, &created);

	if (!created)
		return (uint32_t)*at;
	*at = m->parties.n;
	if (function) {
		party.function = (uint32_t)*function;
		party.name = keep(m, m->counts->functions[*function].name);
		party.image = keep(m, m->counts->functions[*function].image);
	} else {
		frame_names_get(m->reader, frame, &m->levels);
		party.name = keep(m, m->levels.v[m->levels.n - 1].name);
		party.image = keep(m, m->levels.v[m->levels.n - 1].image);
	}
	vec_push(&m->parties, party);
	return (uint32_t)(m->parties.n - 1);
}

/* The place counts only where it lies in the caller: one that jumped away is gone. */
static uint64_t site_in(const struct maker *m, const struct node *parent, uint64_t site)
{
	uint32_t function = parent ? m->parties.v[parent->party].function : CODE_NO_FUNCTION;
	const struct code_function *f;

	if (!site || function == CODE_NO_FUNCTION)
		return 0;
	f = &m->counts->functions[function];
	return site > f->address && site - f->address <= f->bytes ? site : 0;
}

static void add_node(void *ctx, const struct trace_record *record)
{
	struct maker *m = ctx;
	uint64_t n[11]; /* as RECORD_COUNT_NODE has them */
	struct node node = {0};
	const uint64_t *parent;
	bool created;
	uint64_t *at;

	/* Node 0 is the thread itself, and what is damaged the profile tells. */
	if (record->minor != RECORD_COUNT_NODE ||
		trace_record_numbers(m->reader, record, n, 11, NULL) < 0 || !n[1] || !n[3] ||
		n[0] > UINT32_MAX || n[1] > UINT32_MAX || n[2] > UINT32_MAX ||
		n[3] >= trace_reader_n_frames(m->reader))
		return;
	at = map_ensure(&m->node_of, n[0] << 32 | n[1], &created);
	if (!created)
		return;
	*at = m->nodes.n + 1;
	parent = n[2] ? map_find(&m->node_of, n[0] << 32 | n[2]) : NULL;
	node.parent = parent ? (size_t)*parent : 0;
	if (node.parent > m->nodes.n)
		node.parent = 0; /* its own parent: damaged */
	node.party = party_at(m, (uint32_t)n[3]);
	node.site = site_in(m, node.parent ? &m->nodes.v[node.parent - 1] : NULL, n[10]);
	node.calls = n[4] ? n[4] - 1 : 0;
	node.instructions = n[5];
	node.cost = n[6] ? n[6] - 1 : 0;
	m->lacks_cost |= !n[6] && !n[9];
	m->parties.v[node.party].own_cost += node.cost;
	vec_push(&m->nodes, node);
}

ORDER_BY(compare_calls, struct code_call, caller, callee, site)

/* Parents come before their children: one pass backwards hands the sums up. */
static void sum_nodes(struct maker *m)
{
	for (size_t i = m->nodes.n; i-- > 0;) {
		const struct node *node = &m->nodes.v[i];
		struct node *parent = node->parent ? &m->nodes.v[node->parent - 1] : NULL;
		struct code_call call = {.caller = parent ? parent->party : 0,
			.callee = node->party,
			.site = node->site,
			.calls = node->calls,
			.instructions = node->instructions,
			.cost = node->cost};

		vec_push(&m->calls, call);
		if (!parent)
			continue;
		parent->instructions += node->instructions;
		parent->cost += node->cost;
	}
}

static void merge_calls(struct maker *m)
{
	size_t n = 0;

	vec_sort(&m->calls, compare_calls);
	for (size_t i = 0; i < m->calls.n; i++) {
		const struct code_call *call = &m->calls.v[i];

		if (n && !compare_calls(&m->calls.v[n - 1], call)) {
			m->calls.v[n - 1].calls += call->calls;
			m->calls.v[n - 1].instructions += call->instructions;
			m->calls.v[n - 1].cost += call->cost;
		} else {
			m->calls.v[n++] = *call;
		}
	}
	m->calls.n = n;
}

int code_calls_build(struct code_calls **out, const struct trace_reader *r,
	const struct code_counts *counts, struct err *err)
{
	struct maker m = {.reader = r, .counts = counts};
	struct code_party thread = {.function = CODE_NO_FUNCTION, .name = "", .image = ""};
	int rc;

	m.out = mem_zalloc(sizeof(*m.out));
	vec_push(&m.parties, thread);
	for (size_t i = 0; i < counts->n_functions; i++)
		*map_ensure(&m.function_of, counts->functions[i].frame, NULL) = i;
	rc = code_counts_walk(r, add_node, &m, err);
	sum_nodes(&m);
	merge_calls(&m);
	m.out->parties = m.parties.v;
	m.out->n_parties = m.parties.n;
	m.out->calls = m.calls.v;
	m.out->n_calls = m.calls.n;
	m.out->has_cost = m.nodes.n && !m.lacks_cost;
	map_release(&m.function_of);
	map_release(&m.party_of);
	map_release(&m.node_of);
	vec_release(&m.nodes);
	if (rc == 0)
		*out = m.out;
	else
		code_calls_free(m.out);
	return rc;
}

void code_calls_free(struct code_calls *c)
{
	if (!c)
		return;
	free(c->parties);
	free(c->calls);
	intern_release(&c->names);
	free(c);
}

size_t code_calls_find(const struct code_calls *c, uint32_t function)
{
	for (size_t i = 1; i < c->n_parties; i++)
		if (c->parties[i].function == function)
			return i;
	return 0;
}

/* ---- parts of functions ---- */

/* How well a function fits as the owner of a part of this name; 0: it is not. */
static int fit(const struct code_function *part, size_t name_bytes, const struct code_function *f)
{
	if (f->is_fragment || strncmp(f->linkage_name, part->linkage_name, name_bytes) ||
		f->linkage_name[name_bytes] || strcmp(f->image, part->image))
		return 0;
	return 1 + (f->file == part->file) + 2 * !strcmp(f->object, part->object);
}

uint32_t *code_counts_owners(const struct code_counts *c)
{
	uint32_t *owners = mem_calloc(c->n_functions + 1, sizeof(*owners));
	struct intern names = {0};
	struct map by_name = {0}; /* name -> index + 1 of the last function */
	uint32_t *before = mem_calloc(c->n_functions + 1, sizeof(*before)); /* of that name, + 1 */

	for (size_t i = 0; i < c->n_functions; i++) {
		uint64_t *last = map_ensure(
			&by_name, intern_text(&names, c->functions[i].linkage_name), NULL);

		owners[i] = (uint32_t)i;
		before[i] = (uint32_t)*last;
		*last = i + 1;
	}
	for (size_t i = 0; i < c->n_functions; i++) {
		const struct code_function *part = &c->functions[i];
		const char *end = strstr(part->linkage_name, ".cold");
		size_t n = end ? (size_t)(end - part->linkage_name) : 0;
		const uint64_t *last;
		int best = 0;

		if (!part->is_fragment || !n)
			continue;
		last = map_find(&by_name, intern_bytes(&names, part->linkage_name, n));
		for (uint32_t at = last ? (uint32_t)*last : 0; at; at = before[at - 1]) {
			int this_fit = fit(part, n, &c->functions[at - 1]);

			if (this_fit > best) {
				best = this_fit;
				owners[i] = at - 1;
			}
		}
	}
	free(before);
	map_release(&by_name);
	intern_release(&names);
	return owners;
}
