/* SPDX-License-Identifier: MIT */
/* The part of the summary about the heaviest paths: each on one line, with what fits of its callers. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cmd/report/summary.h"
#include "cmd/report/table.h"

#define TOP_PATHS 3
/* A path that is longer shows its ends: so many names, or as many as fit a line of the terminal. */
#define PATH_NAMES_MAX	 9
#define PATH_NAMES_FRONT 3
#define PATH_NAMES_INNER 2 /* the innermost ones are always there */
#define PATH_INDENT	 12

struct shown_path {
	const struct calltree *tree;
	const struct query_path *path;
	bool *is_left_out;
	size_t n_shown;
};

static const struct calltree_routine *routine_at(const struct shown_path *s, size_t i)
{
	return calltree_get_routine(s->tree, s->path->routines[i]);
}

/* "main > parse > (4 more) > lex" */
static void put_path(const struct shown_path *s, struct buf *b)
{
	size_t n_left_out = 0;

	for (size_t i = 0; i < s->path->n; i++) {
		n_left_out += s->is_left_out[i];
		if (s->is_left_out[i])
			continue;
		if (n_left_out)
			buf_printf(b, "%s(%zu more)", b->n ? " > " : "", n_left_out);
		buf_printf(b, "%s%s%s", b->n ? " > " : "", routine_at(s, i)->name,
			s->path->is_recursive[i] ? " (recursive)" : "");
		n_left_out = 0;
	}
}

/* What is missed least: the kernel's way to where it ends, then what is next to a gap or else behind the
 * first functions. SIZE_MAX: nothing. */
static size_t find_dispensable(const struct shown_path *s)
{
	size_t n = s->path->n, last = n > PATH_NAMES_INNER ? n - PATH_NAMES_INNER : 0;

	for (size_t i = 0; i < last; i++)
		if (!s->is_left_out[i] && routine_at(s, i)->kind == FRAME_KIND_KERNEL)
			return i;
	for (size_t i = PATH_NAMES_FRONT; i < last; i++)
		if (!s->is_left_out[i])
			return i;
	for (size_t i = last < PATH_NAMES_FRONT ? last : PATH_NAMES_FRONT; i-- > 0;)
		if (!s->is_left_out[i])
			return i;
	return SIZE_MAX;
}

static bool fits(const struct shown_path *s, const struct terminal *terminal, struct buf *b)
{
	buf_reset(b);
	put_path(s, b);
	if (terminal->width)
		return PATH_INDENT + text_width(buf_text(b)) <= terminal->width;
	return s->n_shown <= PATH_NAMES_MAX;
}

static void print_path(const struct report *report, const struct query_path *path)
{
	const struct terminal *terminal = &report->options->terminal;
	struct shown_path s = {
		report->profile->tree, path, mem_calloc(path->n, sizeof(*s.is_left_out)), path->n};
	struct buf names = {0}, line = {0};
	size_t i = 0;

	while (!fits(&s, terminal, &names) && i != SIZE_MAX) {
		i = find_dispensable(&s);
		if (i != SIZE_MAX) {
			s.is_left_out[i] = true;
			s.n_shown--;
		}
	}
	buf_printf(&line, "  %6s %%  %s", value_percent(path->weight, report->profile->total).s,
		buf_text(&names));
	terminal_cut(terminal, &line, 0);
	fprintf(report->out, "%s\n", buf_text(&line));
	buf_release(&names);
	buf_release(&line);
	free(s.is_left_out);
}

/* None of a profile whose figures are by function. */
static void find_paths(const struct report *report, struct query_paths *paths)
{
	const struct profile *p = report->profile;

	*paths = (struct query_paths){0};
	if (!p->counts.is_flat)
		query_paths_init(paths, p->tree, query_has_waits(p), TOP_PATHS);
}

void summary_paths(const struct report *report)
{
	struct query_paths paths;

	find_paths(report, &paths);
	if (paths.n)
		summary_heading(report, "Heaviest paths, outermost first");
	for (size_t i = 0; i < paths.n; i++)
		print_path(report, &paths.v[i]);
	query_paths_release(&paths);
}

void summary_json_paths(struct json *j, const struct report *report)
{
	struct query_paths paths;

	find_paths(report, &paths);
	json_array_begin(j, "paths");
	for (size_t i = 0; i < paths.n; i++) {
		json_object_begin(j, NULL);
		json_u64(j, "base", paths.v[i].weight);
		json_array_begin(j, "stack"); /* innermost first */
		for (size_t k = paths.v[i].n; k-- > 0;)
			json_string(j, NULL,
				calltree_get_routine(report->profile->tree, paths.v[i].routines[k])
					->name);
		json_array_end(j);
		json_object_end(j);
	}
	json_array_end(j);
	query_paths_release(&paths);
}
