/* SPDX-License-Identifier: MIT */
#include "translate/count_trace_internal.h"

#include <stdio.h>
#include <stdlib.h>

struct count_trace *count_trace_new(struct trace_writer *w, uint32_t life_stream, struct images *images)
{
	struct count_trace *t = mem_zalloc(sizeof(*t));

	t->w = w;
	t->life = life_stream;
	t->process_images = images;
	t->tables = function_tables_new(images);
	t->files = code_files_new();
	trace_writer_metric(w, "instructions", "1");
	trace_writer_metric(w, "calls", "1");
	return t;
}

void count_trace_free(struct count_trace *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->images.n; i++)
		traced_image_release(&t->images.v[i]);
	vec_release(&t->images);
	vec_release(&t->functions);
	vec_release(&t->touched);
	map_release(&t->n_nodes_of);
	function_tables_free(t->tables);
	code_files_free(t->files);
	free(t);
}

struct function_tables *count_trace_functions(struct count_trace *t)
{
	return t->tables;
}

struct code_files *count_trace_files(struct count_trace *t)
{
	return t->files;
}

void count_trace_expect(struct count_trace *t, uint32_t image)
{
	const char *path = images_opened(t->process_images, image);
	const struct image *of = images_get(t->process_images, image);

	code_files_expect(t->files, image, of, path ? path : of->path);
}

/* --- what is told ------------------------------------------------------------------------------ */

void count_trace_note(struct count_trace *t, uint64_t time, uint64_t n, const char *sentence)
{
	if (n)
		trace_writer_loss(t->w, t->life, time, RECORD_LOSS_NOTE, n, sentence);
}

void count_trace_lost(struct count_trace *t, uint64_t time, uint64_t n, const char *sentence)
{
	if (n)
		trace_writer_loss(t->w, t->life, time, RECORD_LOSS_EVENTS, n, sentence);
	t->totals.n_lost += n;
}

static void tell_losses(struct count_trace *t, const struct counts *c, uint64_t time)
{
	for (size_t i = 0; i < c->losses.n; i++) {
		const struct counts_loss *l = &c->losses.v[i];

		if (l->is_loss)
			count_trace_lost(t, time, l->n, l->sentence);
		else
			count_trace_note(t, time, l->n, l->sentence);
	}
	count_trace_lost(t, time, c->n_bad_events, "an event of the translator makes no sense");
	count_trace_lost(t, time, c->n_bad_blocks, "a block of the translator makes no sense");
	count_trace_lost(t, time, c->n_back_costs, "a thread's sum of instructions went back");
	count_trace_lost(t, time, c->n_bad_faults,
		"a block that faulted has fewer instructions than were not executed of it");
	count_trace_lost(t, time, c->n_without_thread, "a thread is not counted: there are too many");
	count_trace_note(t, time, c->n_without_frame,
		"a call was too deep to be followed: it is a part of its caller");
	count_trace_note(t, time, c->n_without_node,
		"a call had no node in the tree, for want of memory: it is a part of its caller");
}

/* Of all programs together. */
static void tell_notes(struct count_trace *t, uint64_t time)
{
	const struct traced_function *f = t->n_elsewhere ? &t->functions.v[t->elsewhere] : NULL;
	char text[400];

	if (f) {
		snprintf(text, sizeof(text),
			"an instruction is in the cost of a function that jumped into the midst of the one it "
			"belongs to (mostly '%.200s'): flat, tree and arcs have it there, source and coverage "
			"where it is",
			f->linkage_name ? f->linkage_name : "one without a name");
		count_trace_note(t, time, t->n_elsewhere, text);
	}
	if (t->n_folded) {
		snprintf(text, sizeof(text),
			"a call tree has over %u nodes: recursion from there on is in the node of the open call "
			"of the same function%s",
			COUNTS_FOLD_NODES,
			t->n_folded_by_any ? ", whose caller may be another" : " by the same caller");
		count_trace_note(t, time, t->n_folded, text);
	}
	count_trace_note(t, time, t->n_unasked,
		"a thread was gone before it could be asked for its counters: its blocks are not counted");
	count_trace_note(t, time, t->n_undecoded,
		"a block's code is not at hand: its instructions are as long as each other");
	count_trace_lost(t, time, t->n_uneven,
		"an instruction is in the blocks of a thread and not in its call tree, or the other way round");
}

/* --- the trace --------------------------------------------------------------------------------- */

void count_trace_add(struct count_trace *t, struct counts *c, const struct process *p, uint64_t time)
{
	uint32_t *function_of;

	counts_settle(c);
	traced_code_add(t, c, &function_of);
	traced_trees_write(t, c, p, function_of, time);
	tell_losses(t, c, time);
	free(function_of);
}

void count_trace_finish(struct count_trace *t, uint64_t time, struct count_totals *totals)
{
	traced_code_write(t, time);
	tell_notes(t, time);
	*totals = t->totals;
}
