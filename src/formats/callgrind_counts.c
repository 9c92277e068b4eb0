/* SPDX-License-Identifier: MIT */
/*
 * A part that the compiler split off is a part of its function here. Inclusive cycles are known
 * where the program summed them by node: else calls have instructions alone, or are left out with
 * cycles.
 *
 * What the program summed was modelled when it was linked, without knowing where its data would
 * lie; the costs of blocks are modelled now. Functions get what the program summed, so that self
 * and inclusive sums fit, and share it out over their lines as blocks have it now.
 */
#include <stdlib.h>
#include <string.h>

#include "calltree/code_calls.h"
#include "formats/callgrind_model.h"

#define CYCLE_PARTS 100

struct counts_events {
	bool has_instructions, has_cycles;
};

/* How the cycles of a function's lines become whole ones, so that their sum is right. */
struct cycle_shares {
	uint64_t summed;   /* hundredths that the function is to have */
	uint64_t modelled; /* hundredths that its lines have together */
	uint64_t passed;   /* of the latter, so far */
	uint64_t given;	   /* whole cycles, so far */
};

static uint64_t share_cycles(struct cycle_shares *s, uint64_t modelled)
{
	uint64_t upto, before = s->given;

	s->passed += modelled;
	upto = s->modelled ? (uint64_t)((__uint128_t)s->passed * s->summed / s->modelled) : 0;
	s->given = (upto + CYCLE_PARTS / 2) / CYCLE_PARTS;
	return s->given - before;
}

static const char *keep(struct callgrind_model *m, const char *text)
{
	return intern_get(&m->texts, intern_text(&m->texts, text));
}

static void name_events(struct callgrind_model *m, const struct counts_events *e)
{
	if (e->has_instructions) {
		m->titles[m->n_events] = "instructions executed";
		m->events[m->n_events++] = "Ir";
	}
	if (e->has_cycles) {
		m->titles[m->n_events] = "modelled cycles";
		m->events[m->n_events++] = "Cy";
	}
}

static void set_values(
	const struct counts_events *e, uint64_t instructions, uint64_t cycles, uint64_t *values)
{
	if (e->has_instructions)
		*values++ = instructions;
	if (e->has_cycles)
		*values = cycles;
}

static void add_costs(struct callgrind_model *m, const struct code_counts *c, uint32_t to,
	const struct code_function *f, const struct counts_events *e, struct cycle_shares *shares)
{
	for (uint32_t i = 0; i < f->n_blocks; i++) {
		const struct code_block *block = &c->blocks[f->first_block + i];

		for (uint32_t j = 0; block->count && j < block->n_lines; j++) {
			const struct code_line *line = &c->lines[block->first_line + j];
			struct callgrind_cost cost = {.function = to,
				.file = keep(m, c->files[line->file]),
				.line = line->line};

			set_values(e, block->count * line->n_insns,
				share_cycles(shares, block->count * line->cost), cost.values);
			vec_push(&m->costs, cost);
		}
	}
}

/* By function, parts included in theirs. */
static struct cycle_shares *find_shares(
	const struct code_counts *c, const struct code_calls *calls, const uint32_t *owners)
{
	struct cycle_shares *shares = mem_calloc(c->n_functions + 1, sizeof(*shares));

	for (size_t i = 0; i < c->n_functions; i++) {
		shares[owners[i]].modelled += c->functions[i].cost;
		if (!calls->has_cost)
			shares[owners[i]].summed += c->functions[i].cost;
	}
	for (size_t i = 1; calls->has_cost && i < calls->n_parties; i++)
		if (calls->parties[i].function != CODE_NO_FUNCTION)
			shares[owners[calls->parties[i].function]].summed +=
				calls->parties[i].own_cost;
	return shares;
}

static void add_functions(struct callgrind_model *m, const struct code_counts *c,
	const struct code_calls *calls, const struct counts_events *e)
{
	uint32_t *owners = code_counts_owners(c);
	struct cycle_shares *shares = find_shares(c, calls, owners);

	for (size_t i = 0; i < c->n_functions; i++) {
		const struct code_function *f = &c->functions[i];
		struct callgrind_function to = {.name = keep(m, f->name),
			.file = keep(m, c->files[f->file]),
			.object = keep(m, f->image),
			.line = f->line};

		vec_push(&m->functions, to);
		add_costs(m, c, owners[i], f, e, &shares[owners[i]]);
	}
	free(shares);
	free(owners);
}

/* The line of the call that returns to `site`; the function's own when it is not known. */
static uint32_t call_line(const struct code_counts *c, const struct code_function *f, uint64_t site)
{
	uint32_t found = f->line;

	for (uint32_t i = 0; site && i < f->n_blocks; i++) {
		const struct code_block *block = &c->blocks[f->first_block + i];

		if (site <= block->address || site > block->end)
			continue;
		for (uint32_t j = 0; j < block->n_lines; j++) {
			const struct code_line *line = &c->lines[block->first_line + j];

			if (line->address < site && line->file == f->file)
				found = line->line;
		}
	}
	return found;
}

/* Functions that are not counted come behind the others. Returns their numbers by party. */
static uint32_t *number_parties(struct callgrind_model *m, const struct code_calls *calls)
{
	uint32_t *numbers = mem_calloc(calls->n_parties, sizeof(*numbers));

	for (size_t i = 1; i < calls->n_parties; i++) {
		const struct code_party *party = &calls->parties[i];
		struct callgrind_function f = {
			.name = keep(m, party->name), .file = "", .object = keep(m, party->image)};

		if (party->function != CODE_NO_FUNCTION) {
			numbers[i] = party->function;
			continue;
		}
		numbers[i] = (uint32_t)m->functions.n;
		vec_push(&m->functions, f);
	}
	return numbers;
}

static void add_calls(struct callgrind_model *m, const struct code_counts *c,
	const struct code_calls *calls, const struct counts_events *e)
{
	uint32_t *numbers = number_parties(m, calls);

	for (size_t i = 0; i < calls->n_calls; i++) {
		const struct code_call *from = &calls->calls[i];
		uint32_t function = calls->parties[from->caller].function;
		struct callgrind_call call = {.caller = numbers[from->caller],
			.callee = numbers[from->callee],
			.calls = from->calls};

		if (!from->caller)
			continue; /* a thread begins with it */
		if (function != CODE_NO_FUNCTION)
			call.line = call_line(c, &c->functions[function], from->site);
		set_values(e, from->instructions, (from->cost + CYCLE_PARTS / 2) / CYCLE_PARTS,
			call.values);
		vec_push(&m->calls, call);
	}
	free(numbers);
}

int callgrind_from_counts(struct callgrind_model *m, const struct profile *profile, struct err *err)
{
	bool is_cycles = !strcmp(profile->metric, "cycles"), fits;
	struct code_counts *c = NULL;
	struct code_calls *calls = NULL;
	struct counts_events e;
	int rc = code_counts_build(&c, profile->reader, err);

	if (rc == 0)
		rc = code_calls_build(&calls, profile->reader, c, err);
	if (rc < 0) {
		code_counts_free(c);
		return rc;
	}
	fits = calls->has_cost || !calls->n_calls;
	e = (struct counts_events){!is_cycles, is_cycles || (fits && c->has_cost)};
	name_events(m, &e);
	add_functions(m, c, calls, &e);
	if (!is_cycles || calls->has_cost)
		add_calls(m, c, calls, &e);
	code_calls_free(calls);
	code_counts_free(c);
	return 0;
}
