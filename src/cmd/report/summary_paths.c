/* SPDX-License-Identifier: MIT */
/* The part of the summary about the heaviest paths: each on one line, with what fits of its callers. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "cmd/report/brief_name.h"
#include "cmd/report/summary.h"
#include "cmd/report/table.h"

#define TOP_PATHS 3
/* A path that is longer shows its ends: so many names, or as many as fit a line of the terminal. */
#define PATH_NAMES_MAX	 9
#define PATH_NAMES_FRONT 3
#define PATH_NAMES_INNER 2 /* the innermost ones stay longest */
#define PATH_INDENT	 12
#define NAME_BYTES_MAX	 40 /* longer ones are shown without what is in their brackets */

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

static void put_name(struct buf *b, const struct calltree_routine *r)
{
	bool is_long = strlen(r->name) > NAME_BYTES_MAX &&
		       (r->kind == FRAME_KIND_NATIVE || r->kind == FRAME_KIND_INLINE);

	(is_long ? brief_name_put : buf_put_cstr)(b, r->name);
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
		buf_put_cstr(b, b->n ? " > " : "");
		put_name(b, routine_at(s, i));
		buf_put_cstr(b, s->path->is_recursive[i] ? " (recursive)" : "");
		n_left_out = 0;
	}
}

static bool is_kernel(const struct calltree_routine *r)
{
	return r->kind == FRAME_KIND_KERNEL;
}

/* What templates are made of, and nobody has written here. */
static bool is_plumbing(const struct calltree_routine *r)
{
	const char *space = strstr(r->name, "std::"), *brackets = strpbrk(r->name, "<(");

	return (space && (!brackets || space < brackets)) ||
	       strstr(r->name, "__gnu_cxx::") == r->name;
}

static bool is_library(const struct calltree_routine *r)
{
	return strstr(path_base_name(r->image), ".so") != NULL;
}

/* Of the first n: the way through the kernel, through templates, through libraries. */
static size_t find_foreign(const struct shown_path *s, size_t n)
{
	static bool (*const kinds[])(const struct calltree_routine *r) = {
		is_kernel, is_plumbing, is_library};

	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
		for (size_t i = 0; i < n; i++)
			if (!s->is_left_out[i] && kinds[k](routine_at(s, i)))
				return i;
	return SIZE_MAX;
}

/* What is missed least: what is not the program's own, then what is behind the first functions. SIZE_MAX:
 * nothing. */
static size_t find_dispensable(const struct shown_path *s)
{
	size_t n = s->path->n, outer = n > PATH_NAMES_INNER ? n - PATH_NAMES_INNER : 0;
	size_t found = find_foreign(s, outer);

	if (found == SIZE_MAX)
		found = find_foreign(s, n - 1); /* all but where it ends */
	for (size_t i = PATH_NAMES_FRONT; found == SIZE_MAX && i < outer; i++)
		if (!s->is_left_out[i])
			found = i;
	for (size_t i = outer < PATH_NAMES_FRONT ? outer : PATH_NAMES_FRONT;
		found == SIZE_MAX && i-- > 0;)
		if (!s->is_left_out[i])
			found = i;
	return found;
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
