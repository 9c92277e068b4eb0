/* SPDX-License-Identifier: MIT */
#include "formats/export_stacks.h"

#include <stdlib.h>

void export_stacks_init(struct export_stacks *s, const struct profile *profile)
{
	const struct trace_reader *r = profile->reader;

	*s = (struct export_stacks){.profile = profile, .own = calltree_new()};
	s->functions = s->own;
	frame_routines_init(&s->names, r, s->own);
	for (size_t i = 0; i < profile->n_hooks; i++)
		frame_routines_add_hooked(&s->names, profile->hooks[i].frame);
	s->first_place = mem_calloc(trace_reader_n_frames(r), sizeof(*s->first_place));
	s->n_places = mem_calloc(trace_reader_n_frames(r), sizeof(*s->n_places));
	s->of_stack = mem_calloc(trace_reader_n_stacks(r), sizeof(*s->of_stack));
	s->of_frame = mem_calloc(trace_reader_n_frames(r), sizeof(*s->of_frame));
	vec_push(&s->places, (struct export_place){0});
	vec_push(&s->nodes, (struct export_node){0});
}

void export_stacks_release(struct export_stacks *s)
{
	frame_routines_release(&s->names);
	calltree_free(s->own);
	free(s->first_place);
	free(s->n_places);
	free(s->of_stack);
	free(s->of_frame);
	vec_release(&s->places);
	vec_release(&s->nodes);
	vec_release(&s->path);
}

/* Routines are outermost first, levels innermost first. */
static void make_places(struct export_stacks *s, uint32_t frame)
{
	size_t n;
	const uint32_t *routines = frame_routines_get(&s->names, frame, &n);

	frame_names_get(s->profile->reader, frame, &s->levels);
	s->first_place[frame] = (uint32_t)s->places.n;
	s->n_places[frame] = (uint32_t)n;
	for (size_t i = 0; i < n; i++) {
		const struct frame_level *level = &s->levels.v[n - 1 - i];

		vec_push(&s->places, ((struct export_place){.function = routines[i],
					     .frame = frame,
					     .line = level->line,
					     .depth = (uint32_t)i,
					     .file = level->file}));
	}
}

static uint32_t add_frame(struct export_stacks *s, uint32_t node, uint32_t frame)
{
	if (!s->n_places[frame])
		make_places(s, frame);
	for (uint32_t i = 0; i < s->n_places[frame]; i++) {
		vec_push(&s->nodes, ((struct export_node){node, s->first_place[frame] + i}));
		node = (uint32_t)s->nodes.n - 1;
	}
	return node;
}

static uint32_t node_of_stack(struct export_stacks *s, uint32_t stack)
{
	const struct trace_reader *r = s->profile->reader;
	uint32_t node = 0;

	s->path.n = 0;
	for (; stack; stack = trace_reader_stack(r, stack)->parent) {
		node = s->of_stack[stack];
		if (node)
			break;
		vec_push(&s->path, stack);
	}
	while (s->path.n) {
		stack = s->path.v[--s->path.n];
		node = add_frame(s, node, trace_reader_stack(r, stack)->frame);
		s->of_stack[stack] = node;
	}
	return node;
}

uint32_t export_stacks_node(struct export_stacks *s, const struct sample_view *sample)
{
	uint32_t frame = sample->frame;

	if (sample->stack)
		return s->of_stack[sample->stack] ? s->of_stack[sample->stack]
						  : node_of_stack(s, sample->stack);
	if (frame && !s->of_frame[frame])
		s->of_frame[frame] = add_frame(s, 0, frame);
	return frame ? s->of_frame[frame] : 0;
}

uint32_t export_stacks_function(struct export_stacks *s, uint32_t frame)
{
	size_t n;

	return frame_routines_get(&s->names, frame, &n)[0];
}

const struct calltree_routine *export_stacks_routine(
	const struct export_stacks *s, uint32_t function)
{
	return calltree_get_routine(s->functions, function);
}

/* ---- trees without times ---- */

bool export_has_tree_alone(const struct profile *profile)
{
	return !profile->n_samples && !profile->n_events &&
	       calltree_first_root(profile->tree) != CALLTREE_NONE;
}

void export_stacks_of_tree(struct export_stacks *s,
	void (*add)(void *to, uint32_t thread, uint32_t node, uint64_t weight), void *to)
{
	const struct profile *p = s->profile;
	const struct calltree *tree = p->tree;
	uint64_t *weights = calltree_split_bases(tree);
	uint32_t *node_of = mem_calloc(calltree_n_nodes(tree), sizeof(*node_of));
	uint32_t *thread_of = mem_calloc(calltree_n_nodes(tree), sizeof(*thread_of));
	uint32_t *place_of = mem_calloc(calltree_n_routines(tree), sizeof(*place_of));

	s->functions = tree;
	for (uint32_t id = 1; id < p->n_threads; id++)
		thread_of[p->threads[id].root] = id;
	for (uint32_t id = calltree_first_root(tree); id; id = calltree_next(tree, id)) {
		const struct calltree_node *node = calltree_get(tree, id);

		if (node->parent) {
			uint32_t *place = &place_of[node->routine];

			if (!*place) {
				*place = (uint32_t)s->places.n;
				vec_push(&s->places,
					((struct export_place){.function = node->routine}));
			}
			thread_of[id] = thread_of[node->parent];
			node_of[id] = (uint32_t)s->nodes.n;
			vec_push(&s->nodes, ((struct export_node){node_of[node->parent], *place}));
		}
		if (weights[id])
			add(to, thread_of[id], node_of[id], weights[id]);
	}
	free(weights);
	free(node_of);
	free(thread_of);
	free(place_of);
}
