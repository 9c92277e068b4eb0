/* SPDX-License-Identifier: MIT */
#include "cmd/report/source_view.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/order.h"
#include "calltree/arcs.h"
#include "calltree/frame_names.h"
#include "calltree/sample_walk.h"

#define CYCLE_PARTS 100

int report_code_counts(struct code_counts **out, const struct report *report, struct err *err)
{
	const struct profile *p = report->profile;
	int rc = code_counts_build(out, report->reader, err);

	if (rc < 0)
		return rc;
	if (!(*out)->n_functions)
		rc = err_set(err, ERR_NOT_FOUND,
			"'%s': has no counts of blocks (they come from 'weir count' and 'weir "
			"steps')",
			trace_reader_name(report->reader));
	for (uint32_t id = 1; rc == 0 && id < p->n_threads; id++)
		if (!p->threads[id].is_wanted)
			rc = err_set(err, ERR_UNSUPPORTED,
				"'%s': has counts of blocks over all threads, not of one (--thread)",
				trace_reader_name(report->reader));
	if (rc < 0) {
		code_counts_free(*out);
		*out = NULL;
	}
	return rc;
}

/* ---- rows ---- */

/* The function's own file first. */
static int compare_parts(const void *a, const void *b, void *context)
{
	const struct source_part *x = a, *y = b;
	const char *own = context;

	if (x->file != y->file && (x->file == own || y->file == own))
		return x->file == own ? -1 : 1;
	return strcmp(x->file, y->file) ?: ORDER(x->line, y->line) ?:
	       x->block && y->block ? ORDER(x->block->address, y->block->address) : 0;
}

static char mark_of(const struct source_function *f, const struct source_row *row)
{
	size_t n_executed = 0;

	for (size_t i = 0; i < row->n_parts; i++) {
		const struct code_block *block = f->parts.v[row->first_part + i].block;

		if (!block)
			return ' ';
		n_executed += block->count != 0;
	}
	if (!n_executed)
		return '#';
	return row->n_parts > 1 ? '+' : '|';
}

/* A line may be several times in a block: that is one part of it. */
static void merge_parts(struct source_function *f)
{
	size_t n = 0;

	if (f->parts.n)
		qsort_r(f->parts.v, f->parts.n, sizeof(*f->parts.v), compare_parts,
			(void *)f->file);
	for (size_t i = 0; i < f->parts.n; i++) {
		const struct source_part *part = &f->parts.v[i];

		if (n && !compare_parts(&f->parts.v[n - 1], part, (void *)f->file))
			f->parts.v[n - 1].value += part->value;
		else
			f->parts.v[n++] = *part;
	}
	f->parts.n = n;
}

static void make_rows(struct source_function *f)
{
	merge_parts(f);
	f->rows = mem_calloc(f->parts.n + 1, sizeof(*f->rows));
	for (size_t i = 0; i < f->parts.n; i++) {
		const struct source_part *part = &f->parts.v[i];
		struct source_row *row = f->n_rows ? &f->rows[f->n_rows - 1] : NULL;

		if (!row || strcmp(row->file, part->file) || row->line != part->line) {
			row = &f->rows[f->n_rows++];
			*row = (struct source_row){
				.file = part->file, .line = part->line, .first_part = i};
		}
		row->n_parts++;
		row->value += part->value;
		if (part->block && part->block->count > row->count)
			row->count = part->block->count;
	}
	for (size_t i = 0; i < f->n_rows; i++)
		f->rows[i].mark = mark_of(f, &f->rows[i]);
}

static int compare_callers(const void *a, const void *b)
{
	const struct source_caller *x = a, *y = b;

	return ORDER(y->calls, x->calls) ?: strcmp(x->name, y->name);
}

/* ---- counts ---- */

static bool name_fits(const char *name, const char *asked)
{
	size_t n = strlen(asked);

	return !strncmp(name, asked, n) && (!name[n] || name[n] == '(');
}

/* A method of Java also without the mark that says how it ran. */
static bool level_fits(const struct frame_level *level, const char *asked)
{
	return name_fits(level->name, asked) ||
	       name_fits(frame_name_bare(level->name, level->image), asked);
}

static bool function_fits(const struct code_function *f, const char *asked)
{
	return name_fits(f->name, asked) || !strcmp(f->linkage_name, asked);
}

static void add_blocks(struct source_view *v, struct source_function *to,
	const struct code_function *f, bool is_cycles)
{
	const struct code_counts *c = v->counts;

	for (uint32_t i = 0; i < f->n_blocks; i++) {
		const struct code_block *block = &c->blocks[f->first_block + i];

		for (uint32_t j = 0; j < block->n_lines; j++) {
			const struct code_line *line = &c->lines[block->first_line + j];
			struct source_part part = {.file = c->files[line->file],
				.line = line->line,
				.block = block,
				.value = block->count * (is_cycles ? line->cost : line->n_insns)};

			vec_push(&to->parts, part);
		}
	}
	to->value += is_cycles ? f->cost : f->instructions;
}

static void add_callers(const struct source_view *v, struct source_function *f, uint32_t function)
{
	size_t party = code_calls_find(v->calls, function);

	for (size_t i = 0; party && i < v->calls->n_calls; i++) {
		const struct code_call *call = &v->calls->calls[i];
		const char *name = v->calls->parties[call->caller].name;

		if (call->callee != party)
			continue;
		/* Calls from several places of one function are neighbours. */
		if (f->callers.n && v->calls->calls[i - 1].callee == party &&
			v->calls->calls[i - 1].caller == call->caller)
			f->callers.v[f->callers.n - 1].calls += call->calls;
		else
			vec_push(&f->callers, ((struct source_caller){name, true, call->calls}));
	}
	vec_sort(&f->callers, compare_callers);
}

static struct source_function counted_function(
	struct source_view *v, const struct report *report, uint32_t i, bool is_cycles)
{
	const struct code_function *f = &v->counts->functions[i];
	struct source_function to = {.name = f->name,
		.file = v->counts->files[f->file],
		.image = f->image,
		.line = f->line,
		.counted = f,
		.has_calls = report->profile->counts.has_calls,
		.calls = f->calls};

	for (size_t part = 0; part < v->counts->n_functions; part++)
		if (v->owners[part] == i)
			add_blocks(v, &to, &v->counts->functions[part], is_cycles);
	add_callers(v, &to, i);
	make_rows(&to);
	return to;
}

static bool is_there(const struct source_view *v, const struct code_function *f)
{
	for (size_t i = 0; i < v->functions.n; i++)
		if (v->functions.v[i].counted == f)
			return true;
	return false;
}

static int add_counted(struct source_view *v, const struct report *report, struct err *err)
{
	const char *metric = report->profile->metric, *asked = report->options->function;
	bool is_cycles = !strcmp(metric, "cycles");
	const char *reason = NULL;

	if (!is_cycles && strcmp(metric, "instructions"))
		return err_set(err, ERR_NOT_FOUND,
			"'%s': lines have instructions and cycles, not %s",
			trace_reader_name(report->reader), metric);
	v->scale = is_cycles ? CYCLE_PARTS : 1;
	for (size_t i = 0; i < v->counts->n_functions; i++) {
		const struct code_function *f = &v->counts->functions[i];
		uint32_t owner = v->owners[i];

		v->total += is_cycles ? f->cost : f->instructions;
		if (!function_fits(f, asked) || is_there(v, &v->counts->functions[owner]))
			continue;
		if (f->is_counted)
			vec_push(&v->functions, counted_function(v, report, owner, is_cycles));
		else
			reason = f->reason;
	}
	if (v->functions.n)
		return 0;
	if (reason)
		return err_set(err, ERR_NOT_FOUND, "'%s': '%s' was not counted: %s",
			trace_reader_name(report->reader), asked, reason);
	return err_set(err, ERR_NOT_FOUND, "'%s': has no function '%s'",
		trace_reader_name(report->reader), asked);
}

/* ---- samples ---- */

static struct source_function *sampled_function(
	struct source_view *v, const struct frame_level *level)
{
	for (size_t i = 0; i < v->functions.n; i++)
		if (!strcmp(v->functions.v[i].name, level->name) &&
			!strcmp(v->functions.v[i].image, level->image))
			return &v->functions.v[i];
	vec_push(&v->functions,
		((struct source_function){
			.name = intern_get(&v->names, intern_text(&v->names, level->name)),
			.image = level->image,
			.file = level->file ? level->file : ""}));
	return &v->functions.v[v->functions.n - 1];
}

static void add_frame(
	struct source_view *v, const struct report *report, uint32_t frame, uint64_t weight)
{
	struct frame_levels *levels = mem_alloc(sizeof(*levels));
	const struct frame_level *level = &levels->v[0];
	struct source_function *f;

	frame_names_get(report->reader, frame, levels);
	if (level_fits(level, report->options->function)) {
		struct source_part part = {.file = level->file ? level->file : "",
			.line = level->line,
			.value = weight};

		f = sampled_function(v, level);
		vec_push(&f->parts, part);
		f->value += weight;
	}
	free(levels);
}

/* Callers by the call tree, whose routine has the name and the image. */
static void add_routine_callers(struct source_function *f, const struct report *report)
{
	const struct calltree *tree = report->profile->tree;
	struct flat flat;
	struct arcs arcs;

	flat_init(&flat, tree);
	arcs_init(&arcs, tree, &flat);
	for (size_t i = 0; i < arcs.n_stanzas; i++) {
		const struct arc_stanza *stanza = &arcs.stanzas[i];
		const struct calltree_routine *r = calltree_get_routine(tree, stanza->self.routine);

		if (strcmp(r->name, f->name) || strcmp(r->image, f->image))
			continue;
		f->has_calls = stanza->self.has_events;
		f->calls = stanza->self.calls;
		for (size_t j = 0; j < stanza->n_parents; j++) {
			const struct arc_row *row = &arcs.rows.v[stanza->first_row + j];
			const struct calltree_routine *caller =
				calltree_get_routine(tree, row->routine);

			vec_push(&f->callers,
				((struct source_caller){caller->is_root ? "" : caller->name,
					row->has_events, row->calls}));
		}
	}
	arcs_release(&arcs);
	flat_release(&flat);
}

static int add_sampled(struct source_view *v, const struct report *report, struct err *err)
{
	struct map weights = {0};
	int rc = sample_frames_sum(&weights, report->profile, err);

	v->scale = 1;
	v->total = report->profile->total;
	for (uint32_t frame = 1; rc == 0 && frame < trace_reader_n_frames(report->reader);
		frame++) {
		const uint64_t *weight = map_find(&weights, frame);

		if (weight && *weight)
			add_frame(v, report, frame, *weight);
	}
	map_release(&weights);
	for (size_t i = 0; rc == 0 && i < v->functions.n; i++) {
		make_rows(&v->functions.v[i]);
		add_routine_callers(&v->functions.v[i], report);
	}
	if (rc == 0 && !report->profile->n_samples)
		rc = err_set(err, ERR_NOT_FOUND,
			"'%s': has no source lines (neither counts of blocks nor samples)",
			trace_reader_name(report->reader));
	else if (rc == 0 && !v->functions.n)
		rc = err_set(err, ERR_NOT_FOUND,
			"'%s': no sample of %s is in a function '%s': 'weir record -F 9999' takes more, 'weir count' counts each line",
			trace_reader_name(report->reader), report->profile->metric,
			report->options->function);
	return rc;
}

int source_view_init(struct source_view *v, const struct report *report, struct err *err)
{
	int rc;

	memset(v, 0, sizeof(*v));
	v->is_counted = report->profile->counts.n_nodes != 0;
	if (v->is_counted) {
		rc = report_code_counts(&v->counts, report, err);
		if (rc == 0)
			rc = code_calls_build(&v->calls, report->reader, v->counts, err);
		if (rc == 0) {
			v->owners = code_counts_owners(v->counts);
			rc = add_counted(v, report, err);
		}
	} else {
		rc = add_sampled(v, report, err);
	}
	if (rc < 0)
		source_view_release(v);
	return rc;
}

void source_view_release(struct source_view *v)
{
	for (size_t i = 0; i < v->functions.n; i++) {
		vec_release(&v->functions.v[i].callers);
		free(v->functions.v[i].rows);
		vec_release(&v->functions.v[i].parts);
	}
	vec_release(&v->functions);
	free(v->owners);
	code_calls_free(v->calls);
	code_counts_free(v->counts);
	intern_release(&v->names);
	memset(v, 0, sizeof(*v));
}
