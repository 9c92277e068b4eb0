/* SPDX-License-Identifier: MIT */
/*
 * The compiler's plan:
 *
 *   parse -> find every trace point -> check all clauses until nothing new is learnt of maps and
 *   thread-locals -> for each clause, each of its points, each mode: check for good, lower, emit
 */
#include "probe/compile/compile.h"

#include <stdlib.h>
#include <string.h>

#include "probe/compile/check.h"
#include "probe/compile/emit_bpf.h"
#include "probe/compile/lower.h"
#include "probe/compile/point_types.h"
#include "probe/compile/settings.h"
#include "probe/points/point_kind.h"
#include "probe/points/syscalls.h"
#include "probe/script/macros.h"
#include "probe/script/tree_search.h"
#include "process/syscall_names.h"

#define STRING_BYTES	     128
#define CALLS_OF_PATTERN_MAX 32
#define SITES_OF_PATTERN_MAX 200

/* One clause at one point, as the passes go over them. */
struct unit {
	struct clause *clause;
	uint32_t point_i;	/* in stream.points */
	bool modes[N_MODES];	/* those to be compiled */
	bool is_spare[N_MODES]; /* not on this machine: may fail without harm */
};

struct compiler {
	const struct compile_options *options;
	struct diags *diags;
	struct stream *stream;
	struct script *script;
	struct check_session check;
	struct point_types *point_types;
	VEC(struct unit) units;
	struct settings settings;
	size_t n_sites;		     /* found so far */
	size_t n_filtered;	     /* points that were left out */
	struct clause *error_clause; /* error { }, or NULL */
	uint32_t error_clause_i;
};

/* --- points ----------------------------------------------------------------------------------- */

static void add_unit(struct compiler *c, struct unit u, const struct stream_point *point)
{
	u.point_i = (uint32_t)c->stream->points.n;
	vec_push(&c->stream->points, *point);
	vec_push(&c->units, u);
}

/* Which modes a point can see. */
static void find_modes(const struct compiler *c, const struct point *p, struct unit *u)
{
	enum point_kind kind = p->spec.kind;

	for (enum mode m = 0; m < N_MODES; m++) {
		bool occurs = true;

		if (point_has(kind, POINT_IS_OURS)) {
			u->modes[m] = m == MODE_64;
			continue;
		}
		if (point_has(kind, POINT_IN_FILES)) {
			occurs = false;
			for (size_t i = 0; i < p->n_targets; i++)
				occurs |= p->targets[i].mode == m && p->targets[i].n_sites;
		} else if (point_has(kind, POINT_OF_CALLS)) {
			occurs = point_has_calls(p, m);
		}
		u->modes[m] =
			occurs || (c->options->wants_all_modes && point_has(kind, POINT_IN_FILES));
		u->is_spare[m] = !occurs;
	}
}

/* The code of a USDT clause depends on where the operands are: one unit for each way. */
static void add_usdt_units(
	struct compiler *c, struct clause *clause, const struct stream_point *point)
{
	const struct point *p = point->found;
	size_t first = c->stream->points.n;

	for (size_t i = 0; i < p->n_targets; i++)
		for (size_t k = 0; k < p->targets[i].n_sites; k++) {
			struct stream_point one = *point;
			struct unit u = {.clause = clause};
			bool is_known = false;

			one.operands = p->targets[i].sites[k].operands;
			if (!one.operands)
				one.operands = "";
			one.operands_mode = p->targets[i].mode;
			for (size_t n = first; n < c->stream->points.n; n++)
				is_known |=
					c->stream->points.v[n].operands_mode == one.operands_mode &&
					!strcmp(c->stream->points.v[n].operands, one.operands);
			u.modes[one.operands_mode] = true;
			if (!is_known)
				add_unit(c, u, &one);
		}
}

/* One call of several: as if the script had named it. */
static void add_call_unit(struct compiler *c, struct clause *clause,
	const struct stream_point *point, const char *name)
{
	const struct point *all = point->found;
	struct arena *arena = c->stream->arena;
	struct stream_point one = *point;
	struct point *p = arena_zalloc(arena, sizeof(*p));
	struct unit u = {.clause = clause};

	*p = (struct point){.spec = all->spec};
	p->spec.is_glob = false;
	p->spec.name = name;
	p->spec.text = arena_printf(arena, "syscall:%s:%s", name,
		point_has(all->spec.kind, POINT_AT_RETURN) ? "return" : "entry");
	for (enum mode m = 0; m < N_MODES; m++) {
		int number = syscall_number(m, name);

		p->numbers[m] = arena_zalloc(arena, SYSCALL_NUMBERS_MAX / 8);
		if (number >= 0)
			p->numbers[m][number / 64] |= 1ull << (number % 64);
	}
	one.spec = p->spec;
	one.found = p;
	find_modes(c, p, &u);
	add_unit(c, u, &one);
}

static bool is_call_of(const struct point *p, enum mode mode, int number)
{
	return p->numbers[mode] && (p->numbers[mode][number / 64] >> (number % 64) & 1);
}

/* The names of arguments differ from call to call: a clause that uses them, at a pattern that few
 * calls match, is compiled for each. */
static bool add_call_units(
	struct compiler *c, struct clause *clause, const struct stream_point *point)
{
	const struct source *source = &c->stream->sources.v.v[clause->place.source_i];
	const struct point *p = point->found;
	const char *names[CALLS_OF_PATTERN_MAX];
	size_t n = 0;

	if (!p->spec.is_glob || p->is_all_calls ||
		(!c->script->macros && !memmem(source->text + clause->place.from,
					       clause->place.to - clause->place.from, "args", 4)))
		return false;
	for (enum mode m = 0; m < N_MODES; m++)
		for (int i = 0; i < SYSCALL_NUMBERS_MAX; i++) {
			const char *name = syscall_name(m == MODE_32, i);
			bool is_known = false;

			if (!name || !is_call_of(p, m, i))
				continue;
			for (size_t k = 0; k < n && !is_known; k++)
				is_known = !strcmp(names[k], name);
			if (!is_known && n == CALLS_OF_PATTERN_MAX)
				return false;
			if (!is_known)
				names[n++] = name;
		}
	for (size_t i = 0; i < n; i++)
		add_call_unit(c, clause, point, names[i]);
	return n > 0;
}

/* Arguments are at other places in each function, and at each instruction of it: where a clause names
 * them and a point has several sites of a mode, each has code of its own. All clauses of a point are
 * compiled in the same way, so that they run in their order. */
static bool is_function_wanted(const struct compiler *c, const char *text)
{
	for (const struct clause *clause = c->script->clauses; clause; clause = clause->next)
		for (const struct point_text *t = clause->points; t; t = t->next)
			if (!strcmp(t->text, text) && point_types_wants_function(clause))
				return true;
	return false;
}

static bool wants_site_units(
	const struct compiler *c, const struct clause *clause, const struct point *p)
{
	size_t n[N_MODES] = {0};

	if (p->spec.kind != POINT_UPROBE && p->spec.kind != POINT_URETPROBE)
		return false;
	for (size_t i = 0; i < p->n_targets; i++)
		n[p->targets[i].mode] += p->targets[i].n_sites;
	if ((n[MODE_32] < 2 && n[MODE_64] < 2) || n[MODE_32] + n[MODE_64] > SITES_OF_PATTERN_MAX)
		return false;
	for (const struct point_text *t = clause->points; t; t = t->next)
		if (t->place.from == p->spec.place.from && is_function_wanted(c, t->text))
			return true;
	return false;
}

static void add_site_units(
	struct compiler *c, struct clause *clause, const struct stream_point *point)
{
	const struct point *p = point->found;

	for (size_t i = 0; i < p->n_targets; i++)
		for (size_t k = 0; k < p->targets[i].n_sites; k++) {
			struct stream_point one = *point;
			struct unit u = {.clause = clause};

			one.site_target = &p->targets[i];
			one.site = &p->targets[i].sites[k];
			u.modes[one.site_target->mode] = true;
			add_unit(c, u, &one);
		}
}

static void add_point_units(struct compiler *c, struct clause *clause, struct stream_point *point,
	const struct point *p)
{
	struct unit u = {.clause = clause};

	point->found = p;
	if (p->spec.kind == POINT_USDT) {
		add_usdt_units(c, clause, point);
		return;
	}
	if (point_has(p->spec.kind, POINT_OF_CALLS) && add_call_units(c, clause, point))
		return;
	if (wants_site_units(c, clause, p)) {
		add_site_units(c, clause, point);
		return;
	}
	find_modes(c, p, &u);
	if (!point_has(p->spec.kind, POINT_OF_NAMES)) {
		add_unit(c, u, point);
		return;
	}
	for (size_t i = 0; i < p->n_names; i++) {
		point->name = p->names[i];
		add_unit(c, u, point);
	}
}

/* config = { missing_probes = warn } or ignore: the errors since `first` do not count. */
static void forgive_missing(struct compiler *c, size_t first)
{
	struct diags *d = c->diags;
	size_t kept = first;

	if (c->settings.missing == MISSING_ERROR)
		return;
	for (size_t i = first; i < d->v.n; i++) {
		struct diag *m = &d->v.v[i];

		if (m->severity != DIAG_ERROR ||
			(strcmp(m->tag, "no-symbol") && strcmp(m->tag, "not-found") &&
				strcmp(m->tag, "kernel-lacks") &&
				strcmp(m->tag, "point-unknown"))) {
			d->v.v[kept++] = *m;
			continue;
		}
		d->n_errors--;
		if (c->settings.missing == MISSING_IGNORE) {
			free(m->text);
			free(m->hint);
			continue;
		}
		d->n_warnings++;
		m->severity = DIAG_WARNING;
		d->v.v[kept++] = *m;
	}
	d->v.n = kept;
	d->last_is_kept = false;
}

/* max_probes */
static void limit_sites(struct compiler *c, const struct point *found, struct place place)
{
	uint32_t max = c->settings.max_sites;

	c->n_sites += found->n_targets ? 0 : found->n_names ? found->n_names : 1;
	for (size_t i = 0; i < found->n_targets; i++)
		c->n_sites += found->targets[i].n_sites;
	if (max && c->n_sites > max)
		diag_error(c->diags, place, "config",
			"these are more than %u sites, as many as 'max_probes' allows", max);
}

/* Whether anything of a point is here: globs may find nothing. */
static bool is_here(const struct point *p)
{
	size_t n = p->n_names;

	if (!point_kinds[p->spec.kind].find)
		return true;
	for (size_t i = 0; i < p->n_targets; i++)
		n += p->targets[i].n_sites;
	return n || (point_has(p->spec.kind, POINT_OF_CALLS) &&
			    (point_has_calls(p, MODE_32) || point_has_calls(p, MODE_64)));
}

/* False when it is not here. */
static bool add_point(struct compiler *c, struct clause *clause, struct stream_point *point)
{
	struct point *found = arena_zalloc(c->stream->arena, sizeof(*found));
	size_t n_diags = c->diags->v.n;

	if (point_find(&point->spec, &c->options->find, c->stream->arena, found, c->diags)) {
		limit_sites(c, found, point->spec.place);
		add_point_units(c, clause, point, found);
		return is_here(found);
	}
	forgive_missing(c, n_diags);
	return false;
}

/* tracepoint:syscalls:sys_*_read means entries and returns. */
static bool add_call_points(struct compiler *c, struct clause *clause, struct stream_point *point)
{
	struct stream_point other = *point;
	bool is_here;

	other.spec.kind = POINT_SYSCALL_RETURN;
	is_here = add_point(c, clause, point);
	return add_point(c, clause, &other) || is_here;
}

/* The same. */
/* --probe-filter leaves it out. */
static bool is_filtered(const struct compiler *c, const struct point_spec *spec)
{
	return c->options->point_filter && spec->kind != POINT_BEGIN && spec->kind != POINT_END &&
	       spec->kind != POINT_ERROR &&
	       regexec(c->options->point_filter, spec->text, 0, NULL, 0) != 0;
}

static bool find_point(
	struct compiler *c, struct clause *clause, uint32_t clause_i, const struct point_text *text)
{
	struct stream_point point = {.clause_i = clause_i};
	struct arena *arena = c->stream->arena;

	if (!point_parse(text, arena, &point.spec, c->diags))
		return false;
	if (is_filtered(c, &point.spec)) {
		c->n_filtered++;
		return true;
	}
	if (point.spec.kind == POINT_ERROR) {
		if (c->error_clause && c->error_clause != clause)
			diag_error(c->diags, text->place, "duplicate",
				"there is another error clause already");
		c->error_clause = clause;
		c->error_clause_i = clause_i;
		return true;
	}
	if (point_has(point.spec.kind, POINT_OF_CALLS) && point.spec.provider)
		return add_call_points(c, clause, &point);
	return add_point(c, clause, &point);
}

/* It would wait for ever. A script that is compiled for another machine may find them there. */
static void report_idle_clause(struct compiler *c, const struct clause *clause)
{
	struct place place = clause->points->place;

	if (c->options->wants_all_modes || c->settings.missing == MISSING_IGNORE)
		return;
	if (c->settings.missing == MISSING_WARN) {
		diag_warning(c->diags, place, "no-sites",
			"the clause has no trace point on this machine and never runs");
		return;
	}
	diag_error(c->diags, place, "no-sites", "the clause has no trace point on this machine");
	diag_hint(c->diags, "config = { missing_probes = warn } runs the rest of the script");
}

static void find_points(struct compiler *c)
{
	uint32_t clause_i = 0;
	size_t n_here = 0, n_idle = 0;

	for (struct clause *clause = c->script->clauses; clause;
		clause = clause->next, clause_i++) {
		struct stream_clause sc = {clause->place, clause->predicate != NULL};
		size_t n = 0, n_errors = c->diags->n_errors;

		vec_push(&c->stream->clauses, sc);
		for (const struct point_text *t = clause->points; t; t = t->next)
			n += find_point(c, clause, clause_i, t);
		n_here += n;
		n_idle += !n;
		if (!n && c->diags->n_errors == n_errors)
			report_idle_clause(c, clause);
	}
	if (n_idle && !n_here && !c->diags->n_errors && !c->options->wants_all_modes)
		diag_error(c->diags, (struct place){UINT32_MAX, 0, 0, 0}, "no-sites",
			"none of the script's trace points is on this machine");
}

/* --- checking --------------------------------------------------------------------------------- */

static void prepare(
	struct compiler *c, const struct unit *u, enum mode mode, struct check_clause *out)
{
	const struct stream_point *point = &c->stream->points.v[u->point_i];

	*out = (struct check_clause){.session = &c->check,
		.clause = u->clause,
		.clause_i = point->clause_i,
		.point = point,
		.mode = mode};
	point_types_set(c->point_types, c->check.types[mode], out);
}

/* error { } is compiled into every piece, for the point and mode of that piece. */
static bool check_error_clause(
	struct compiler *c, const struct check_clause *of, struct check_clause *out)
{
	static const struct stream_point error_point = {
		.spec = {.kind = POINT_ERROR, .text = "error"}};

	*out = (struct check_clause){.session = &c->check,
		.clause = c->error_clause,
		.clause_i = c->error_clause_i,
		.point = &error_point,
		.mode = of->mode};
	return check_clause(out);
}

static void learn_unit(struct compiler *c, const struct unit *u)
{
	for (enum mode m = 0; m < N_MODES; m++) {
		struct check_clause cc, error;

		if (!u->modes[m] || u->is_spare[m])
			continue;
		prepare(c, u, m, &cc);
		check_clause(&cc);
		if (c->error_clause)
			check_error_clause(c, &cc, &error);
	}
}

static void learn(struct compiler *c)
{
	c->check.pass = CHECK_LEARN;
	for (int round = 0; round < CHECK_LEARN_ROUNDS; round++) {
		c->check.is_changed = false;
		for (size_t i = 0; i < c->units.n; i++)
			learn_unit(c, &c->units.v[i]);
		if (!c->check.is_changed)
			break;
	}
	check_learned(&c->check);
}

/* --- code ------------------------------------------------------------------------------------- */

static void append(struct stream *s, enum mode mode, const struct bpf_code *code,
	const struct emit_out *out, struct stream_piece *piece)
{
	uint32_t base = (uint32_t)s->code[mode].n;

	for (size_t i = 0; i < code->insns.n; i++)
		vec_push(&s->code[mode], code->insns.v[i]);
	for (size_t i = 0; i < out->n_lines; i++) {
		struct stream_line line = out->lines[i];

		line.insn_i += base;
		vec_push(&s->lines[mode], line);
	}
	piece->predicate_at = base;
	piece->predicate_n = (uint32_t)out->boundary_insn;
	piece->action_at = base + piece->predicate_n;
	piece->action_n = (uint32_t)code->insns.n - piece->predicate_n;
	piece->functions_n = out->functions_n;
	piece->scratch_bytes = out->scratch_bytes;
	piece->is_there = true;
}

static void emit_unit(struct compiler *c, const struct unit *u, struct lower *l, size_t predicate_n)
{
	struct stream_piece *piece = &c->stream->points.v[u->point_i].pieces[l->mode];
	struct bpf_code code = {0};
	struct emit_out out = {.code = &code, .boundary_ir = predicate_n};
	struct err err = {0};

	if (emit_code(&l->ir, &out, &err) < 0) {
		diag_error(c->diags, u->clause->place, "size", "the clause is too large: %s",
			err.text);
	} else {
		append(c->stream, l->mode, &code, &out, piece);
		piece->uses_site = l->uses_site;
		piece->reads_user = l->reads_user;
	}
	free(out.lines);
	bpf_code_release(&code);
}

/* Clauses with loops that become one program with this one. */
static uint32_t n_looping(const struct compiler *c, const struct unit *u)
{
	const struct point_spec *spec = &c->stream->points.v[u->point_i].spec;
	const struct clause *last = NULL;
	uint32_t n = 0;

	if (!stmts_have_loop(u->clause->body))
		return 1;
	for (size_t i = 0; i < c->units.n; i++) {
		const struct unit *v = &c->units.v[i];
		const struct point_spec *other = &c->stream->points.v[v->point_i].spec;

		if (v->clause != last && spec->kind == other->kind &&
			!strcmp(spec->text, other->text) && stmts_have_loop(v->clause->body)) {
			n++;
			last = v->clause;
		}
	}
	return n;
}

static void compile_mode(struct compiler *c, const struct unit *u, enum mode mode)
{
	struct check_clause cc, error;
	struct lower l = {.clause = &cc,
		.stream = c->stream,
		.diags = c->diags,
		.mode = mode,
		.kind = c->stream->points.v[u->point_i].spec.kind};
	size_t errors = c->diags->n_errors, predicate_n;

	prepare(c, u, mode, &cc);
	if (!check_clause(&cc))
		return;
	if (c->error_clause && check_error_clause(c, &cc, &error))
		l.error_clause = &error;
	if (c->diags->n_errors != errors)
		return;
	l.point_types = c->point_types;
	l.n_looping = n_looping(c, u);
	lower_clause(&l, &predicate_n);
	if (c->diags->n_errors == errors)
		emit_unit(c, u, &l, predicate_n);
	ir_release(&l.ir);
}

/* A mode that no file on this machine has: compiled for others when that works. */
static void compile_spare(struct compiler *c, const struct unit *u, enum mode mode)
{
	struct stream_piece *piece;
	struct diags *diags = c->diags, own;

	diags_init(&own, diags->sources);
	c->diags = c->check.diags = &own;
	compile_mode(c, u, mode);
	c->diags = c->check.diags = diags;
	piece = &c->stream->points.v[u->point_i].pieces[mode];
	if (!piece->is_there)
		piece->why_not = arena_strdup(
			c->stream->arena, own.v.n ? own.v.v[0].text : "it cannot be compiled");
	diags_release(&own);
}

static void compile_units(struct compiler *c)
{
	c->check.pass = CHECK_FINAL;
	for (size_t i = 0; i < c->units.n; i++) {
		const struct unit *u = &c->units.v[i];

		for (enum mode m = 0; m < N_MODES; m++) {
			if (!u->modes[m])
				continue;
			if (u->is_spare[m])
				compile_spare(c, u, m);
			else
				compile_mode(c, u, m);
		}
	}
	for (size_t i = 0; i < c->stream->maps.n; i++)
		if (!c->stream->maps.v[i].max_entries)
			c->stream->maps.v[i].max_entries = c->settings.max_entries;
}

/* --- all -------------------------------------------------------------------------------------- */

static void open_compiler(struct compiler *c, const struct sources *sources)
{
	c->stream = stream_new();
	for (size_t i = 0; i < sources->v.n; i++)
		sources_add(&c->stream->sources, sources->v.v[i].name,
			(struct span){(const uint8_t *)sources->v.v[i].text, sources->v.v[i].n});
	c->check = (struct check_session){.script = c->script,
		.stream = c->stream,
		.diags = c->diags,
		.arena = c->stream->arena,
		.string_bytes = c->options->string_bytes ? c->options->string_bytes : STRING_BYTES,
		.is_unsafe = c->options->is_unsafe,
		.clock_map = c->options->clock_map,

		.is_kept = c->options->is_kept};
	for (enum mode m = 0; m < N_MODES; m++)
		c->check.types[m] = types_new(m);
	c->point_types = point_types_new(c->check.types);
}

static void take_settings(struct compiler *c)
{
	if (c->settings.string_bytes)
		c->check.string_bytes = c->settings.string_bytes;
	c->check.stack_form =
		c->settings.stack_form | (c->settings.hides_lines ? STACK_FORM_NO_LINES : 0);
	c->stream->hides_maps = c->settings.hides_maps;
	c->stream->like = c->options->like ? *c->options->like : c->settings.like;
	/* It passed over what is not there, without a word. */
	if (c->stream->like == STREAM_LIKE_0_17 && c->settings.missing == MISSING_ERROR)
		c->settings.missing = MISSING_WARN;
	if (c->stream->like == STREAM_LIKE_0_17) /* it knew no places in the source */
		c->check.stack_form |= STACK_FORM_NO_LINES;
	c->stream->ring_pages = c->settings.ring_pages;
	c->stream->cat_bytes = c->settings.cat_bytes;
}

static void close_compiler(struct compiler *c)
{
	point_types_free(c->point_types);
	for (enum mode m = 0; m < N_MODES; m++)
		types_free(c->check.types[m]);
	vec_release(&c->units);
	script_free(c->script);
}

struct stream *compile_scripts(
	struct sources *sources, const struct compile_options *options, struct diags *diags)
{
	struct compiler c = {.options = options, .diags = diags};

	c.script = script_parse(sources, &options->parameters, diags);
	if (c.script->usage && !diags->n_errors) {
		buf_put_cstr(options->usage, c.script->usage);
		script_free(c.script);
		return NULL;
	}
	if (!diags->n_errors)
		macros_expand(c.script, check_has_builtin, diags);
	open_compiler(&c, sources);
	if (!diags->n_errors)
		settings_read(c.script, options->environment, &c.settings, diags);
	take_settings(&c);
	if (!diags->n_errors) {
		for (enum mode m = 0; m < N_MODES; m++)
			types_declare(c.check.types[m], c.script->decls, diags);
		find_points(&c);
		if (c.n_filtered && !c.units.n && !diags->n_errors)
			diag_error(diags, (struct place){UINT32_MAX, 0, 0, 0}, "no-sites",
				"no trace point of the script matches --probe-filter");
		learn(&c);
		if (!diags->n_errors)
			compile_units(&c);
		/* Only a stream that is kept may meet another build. */
		if (!diags->n_errors && c.options->wants_all_modes)
			point_types_note_images(c.point_types, c.stream, c.check.reads_records);
	}
	close_compiler(&c);
	if (diags->n_errors) {
		stream_free(c.stream);
		return NULL;
	}
	return c.stream;
}
