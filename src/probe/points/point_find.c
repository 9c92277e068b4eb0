/* SPDX-License-Identifier: MIT */
/* A trace point on this machine: each kind has its own place where it is looked for; here files. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "probe/points/find_file.h"
#include "probe/points/find_sites.h"
#include "probe/points/point_kind.h"

/* "libc.so.6", or "libc.so.6 (64-bit) and libc.so.6 (32-bit)" shortened to how many. */
static const char *files_text(const struct probe_files *files, struct arena *arena)
{
	if (files->v.n == 1)
		return arena_printf(arena, "'%s'", files->v.v[0].path);
	return arena_printf(arena, "'%s' and %zu more file%s", files->v.v[0].path, files->v.n - 1,
		files->v.n == 2 ? "" : "s");
}

static void report_no_match(struct site_search *s, const struct probe_files *files)
{
	const struct point_spec *spec = s->spec;
	const char *where = files_text(files, s->arena);
	const char *what = s->what;
	char text[512];

	if (spec->is_glob)
		diag_warning(s->d, spec->place, "no-symbol", "no %s in %s matches '%s'", what,
			where, spec->name);
	else
		diag_error(s->d, spec->place, "no-symbol", "there is no %s '%s%s%s' in %s", what,
			spec->provider ? spec->provider : "", spec->provider ? ":" : "", spec->name,
			where);
	if (s->hint[0]) {
		diag_hint(s->d, "%s", s->hint);
		return;
	}
	if (nearest_names_text(&s->near, text, sizeof(text)))
		diag_hint(s->d, "is it %s?", text);
	else if (s->is_stripped && !spec->is_glob)
		diag_hint(s->d,
			"the file is stripped: with its debug symbols installed, functions of "
			"its own can be probed too");
}

static void report_no_sites(struct site_search *s, const struct point *out)
{
	const struct point_spec *spec = s->spec;
	const struct left_out *l = NULL;

	for (size_t i = 0; i < out->n_targets && !l; i++)
		l = out->targets[i].n_left_out ? out->targets[i].left_out : NULL;
	if (spec->is_glob)
		diag_warning(s->d, spec->place, "no-sites",
			"nothing that '%s' matches can be probed", spec->text);
	else
		diag_error(s->d, spec->place, "no-sites", "'%s' cannot be probed: %s", spec->name,
			l ? l->why : "it has no code");
	if (!spec->is_glob && s->hint[0])
		diag_hint(s->d, "%s", s->hint);
}

static const char *left_out_name(const struct site_search *s, const struct left_out *l)
{
	return l->function ? l->function : s->spec->name;
}

/* What can be probed is. What was named and cannot be is told one by one; of what a glob found, the
 * first is told and how many there are. */
static void report_left_out(struct site_search *s, const struct point *out)
{
	const struct target *first = NULL;
	size_t n = 0;

	for (size_t i = 0; i < out->n_targets; i++) {
		const struct target *t = &out->targets[i];

		if (t->n_left_out && !first)
			first = t;
		n += t->n_left_out;
		for (size_t k = 0; k < t->n_left_out && !s->spec->is_glob; k++)
			diag_warning(s->d, s->spec->place, "left-out",
				"'%s' of '%s' is left out: %s", left_out_name(s, &t->left_out[k]),
				t->path, t->left_out[k].why);
	}
	if (!first || !s->spec->is_glob)
		return;
	if (n == 1)
		diag_warning(s->d, s->spec->place, "left-out", "'%s' of '%s' is left out: %s",
			left_out_name(s, first->left_out), first->path, first->left_out[0].why);
	else
		diag_warning(s->d, s->spec->place, "left-out",
			"%zu functions are left out, the first '%s' of '%s': %s", n,
			left_out_name(s, first->left_out), first->path, first->left_out[0].why);
	diag_hint(s->d, "--dry-run lists %s", n == 1 ? "it" : "all of them");
}

/* Return probes that may end the program: said, or refused where they will. */
static bool report_unwind_risk(struct site_search *s)
{
	const struct point_spec *spec = s->spec;

	if (s->unwind_risk == UNWIND_RISK_NONE)
		return true;
	if (s->unwind_risk == UNWIND_RISK_GO) {
		diag_error(s->d, spec->place, "unsafe",
			"a Go program must not have return probes: its runtime would find the "
			"kernel's return address on the stack and end the program");
		return diag_hint(s->d,
			"uprobe at places where the function returns (uprobe:FILE:FUNCTION"
			"+OFFSET) does no harm");
	}
	diag_warning(s->d, spec->place, "unsafe",
		"%s that passes through '%s' while it has a return probe ends the program",
		s->unwind_risk == UNWIND_RISK_PANICS ? "a panic" : "an exception", spec->name);
	diag_hint(s->d, "the kernel puts a return address of its own on the stack, where unwinding "
			"stops; a uprobe does no harm");
	return true;
}

bool find_in_files(struct site_search *s, const struct find_options *options, struct point *out)
{
	struct probe_files files = {0};
	bool is_readable = true;
	size_t n_sites = 0;

	if (!find_files(s->spec, options, s->arena, &files, s->d)) {
		vec_release(&files.v);
		return s->spec->is_glob;
	}
	out->targets = arena_zalloc(s->arena, files.v.n * sizeof(*out->targets));
	for (size_t i = 0; i < files.v.n && is_readable; i++) {
		struct target t = {0};

		is_readable = find_sites(s, &files.v.v[i], &t);
		if (t.n_sites || t.n_left_out)
			out->targets[out->n_targets++] = t;
		n_sites += t.n_sites;
	}
	if (is_readable && !s->has_match)
		report_no_match(s, &files);
	else if (is_readable && !n_sites)
		report_no_sites(s, out);
	if (n_sites)
		report_left_out(s, out);
	is_readable = report_unwind_risk(s) && is_readable;
	vec_release(&files.v);
	return is_readable && (n_sites > 0 || s->spec->is_glob);
}

bool point_find(const struct point_spec *spec, const struct find_options *options,
	struct arena *arena, struct point *out, struct diags *d)
{
	struct point point = {.spec = *spec};
	point_find_fn *find = point_kinds[spec->kind].find;

	if (find && !find(&point, options, arena, d))
		return false;
	*out = point;
	return true;
}
