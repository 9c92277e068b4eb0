/* SPDX-License-Identifier: MIT */
/*
 * From the points of a stream to programs. Points of several clauses that have the same text are
 * one program, so that the clauses run in their order. Where a point belongs to files (uprobes,
 * USDT) the mode is that of the file, and each mode has a program of its own; a program that
 * switches its mode while it runs (Wine) is traced as what its file says. Everywhere else one
 * program has both and chooses when it is hit.
 */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/map.h"
#include "probe/run/run.h"
#include "symbols/catalog/match.h"

static bool is_same_image(const struct stream_image *a, const struct stream_image *b)
{
	return a->mode == b->mode && !strcmp(a->path, b->path);
}

static bool is_same_site(const struct stream_point *a, const struct stream_point *b)
{
	if (a->has_site || b->has_site)
		return a->has_site == b->has_site && a->site_addr == b->site_addr &&
		       is_same_image(&a->images[a->site_image], &b->images[b->site_image]);
	if (!a->site || !b->site)
		return a->site == b->site;
	return a->site->addr.v == b->site->addr.v &&
	       !strcmp(a->site_target->path, b->site_target->path);
}

static bool is_same_point(const struct stream_point *a, const struct stream_point *b)
{
	return a->spec.kind == b->spec.kind && name_is_same(a->spec.text, b->spec.text) &&
	       name_is_same(a->name, b->name) && name_is_same(a->operands, b->operands) &&
	       is_same_site(a, b) && (!a->operands || a->operands_mode == b->operands_mode);
}

static uint64_t text_hash(const struct point_spec *spec)
{
	return map_hash_mix(map_hash(spec->kind), map_hash_bytes(spec->text, strlen(spec->text)));
}

const struct stream_piece *run_piece(const struct run_program *p, size_t point_i, enum mode mode)
{
	const struct stream_piece *piece = &p->points.v[point_i]->pieces[mode];

	return p->has[mode] && piece->is_there ? piece : NULL;
}

/* Points of a stream out of a file are found here, each text once (USDT has a point for each form
 * of the operands). */
static int find_point(struct probe_session *s, const struct stream_point *sp,
	const struct point **out, struct err *err)
{
	uint64_t *known;
	struct point *found;
	struct diags diags;
	int rc = 0;

	*out = sp->found;
	if (sp->found || !point_kinds[sp->spec.kind].find)
		return 0;
	known = map_ensure(&s->found, text_hash(&sp->spec), NULL);
	found = (struct point *)(uintptr_t)*known;
	if (found && found->spec.kind == sp->spec.kind &&
		name_is_same(found->spec.text, sp->spec.text)) {
		*out = found;
		return 0;
	}
	found = arena_zalloc(s->arena, sizeof(*found));
	*known = (uintptr_t)found;
	diags_init(&diags, &s->stream->sources);
	if (!point_find(&sp->spec, &s->options.find, s->arena, found, &diags))
		rc = err_set(err, ERR_NOT_FOUND, "%s: %s", sp->spec.text,
			diags.v.n ? diags.v.v[0].text : "is not on this machine");
	for (size_t i = 0; rc == 0 && i < diags.v.n; i++)
		session_note(s, "%s: %s", sp->spec.text, diags.v.v[i].text);
	diags_release(&diags);
	found->spec = sp->spec;
	*out = found;
	return rc;
}

/* What the pieces of a program need, all together. */
static void sum_up(struct run_program *p)
{
	for (size_t i = 0; i < p->points.n; i++) {
		for (enum mode m = 0; m < N_MODES; m++) {
			const struct stream_piece *piece = run_piece(p, i, m);

			if (!piece)
				continue;
			p->uses_site |= piece->uses_site;
			p->reads_user |= piece->reads_user;
			if (piece->scratch_bytes > p->scratch_bytes)
				p->scratch_bytes = piece->scratch_bytes;
		}
	}
}

static bool has_code(const struct run_program *p, enum mode mode)
{
	for (size_t i = 0; i < p->points.n; i++)
		if (p->points.v[i]->pieces[mode].is_there)
			return true;
	return false;
}

static bool may_occur(const struct run_program *p, enum mode mode)
{
	return has_code(p, mode) && (!point_has(p->kind, POINT_OF_CALLS) || !p->found ||
					    point_has_calls(p->found, mode));
}

static bool is_same_code(
	const struct stream *stream, const struct stream_piece *a, const struct stream_piece *b)
{
	uint32_t n = a->predicate_n + a->action_n;
	uint32_t at_a = a->predicate_n ? a->predicate_at : a->action_at;
	uint32_t at_b = b->predicate_n ? b->predicate_at : b->action_at;

	if (!a->is_there || !b->is_there || a->predicate_n != b->predicate_n ||
		a->action_n != b->action_n)
		return false;
	if (at_a > stream->code[MODE_32].n || n > stream->code[MODE_32].n - at_a ||
		at_b > stream->code[MODE_64].n || n > stream->code[MODE_64].n - at_b)
		return false;
	return !memcmp(stream->code[MODE_32].v + at_a, stream->code[MODE_64].v + at_b,
		n * sizeof(struct bpf_insn));
}

/* Where sizes and layouts do not matter both modes have the same code: it is run without asking. */
static bool needs_mode(const struct probe_session *s, const struct run_program *group)
{
	if (point_has(group->kind, POINT_OF_CALLS))
		return true; /* the numbers of the calls are others */
	for (size_t i = 0; i < group->points.n; i++) {
		const struct stream_piece *pieces = group->points.v[i]->pieces;

		if (!is_same_code(s->stream, &pieces[MODE_32], &pieces[MODE_64]))
			return true;
	}
	return false;
}

static struct run_program program_like(const struct run_program *group)
{
	struct run_program p = *group;

	p.points.v = mem_dup(group->points.v, group->points.n * sizeof(*group->points.v));
	p.points.cap = group->points.n;
	return p;
}

/* --- images --------------------------------------------------------------------------------------- */

/* Which image of a point a file is; -1 when none, and then why. */
static int image_of(const struct stream_point *sp, const struct target *t, struct err *err)
{
	struct image_identity here = {0};
	struct match_verdict verdict = {0};
	struct elf_file elf;
	struct file_map map;
	int found = -1, rc = file_map_open(&map, t->path, err);

	if (rc < 0)
		return -1;
	if (elf_file_init(&elf, map.bytes, err) == 0) {
		image_identity_init_elf(&here, &elf, t->path, NULL, true);
		elf_file_release(&elf);
	}
	file_map_release(&map);
	for (uint32_t i = 0; i < sp->n_images && found < 0; i++) {
		const struct stream_image *image = &sp->images[i];
		struct image_identity wanted = {.bits = image->mode == MODE_32 ? 32 : 64,
			.build_id_n = image->build_id_n,
			.content_hash = image->content_hash};

		if (image->mode != t->mode)
			continue;
		memcpy(wanted.build_id, image->build_id, image->build_id_n);
		match_judge(&wanted, &here, t->path, &verdict);
		if (verdict.rung >= MATCH_CHECKSUM && !verdict.is_vetoed)
			found = (int)i;
	}
	image_identity_release(&here);
	if (found < 0)
		err_set(err, ERR_NOT_FOUND, "%s: the script was compiled for another build: %s",
			sp->spec.text,
			verdict.reason[0] ? verdict.reason : "there was no such file then");
	return found;
}

static bool has_image_of(const struct stream_point *sp, enum mode mode)
{
	for (uint32_t i = 0; i < sp->n_images; i++)
		if (sp->images[i].mode == mode)
			return true;
	return false;
}

/* Code that was made for one build of a file is no good for another. */
static int check_images(const struct run_program *group, struct err *err)
{
	for (size_t i = 0; i < group->points.n; i++) {
		const struct stream_point *sp = group->points.v[i];

		if (sp->found || !sp->n_images || !group->found)
			continue;
		for (size_t k = 0; k < group->found->n_targets; k++) {
			const struct target *t = &group->found->targets[k];

			if (t->n_sites && sp->pieces[t->mode].is_there &&
				has_image_of(sp, t->mode) && image_of(sp, t, err) < 0)
				return err->code;
		}
	}
	return 0;
}

/* Nor is code for the structures of one kernel for another, or the records of its tracepoints. */
static int check_kernel(const struct stream *s, struct err *err)
{
	struct image_identity here = {0};
	bool is_same;

	if (!s->kernel_id_n)
		return 0;
	kernel_identity(&here);
	is_same = here.build_id_n == s->kernel_id_n &&
		  !memcmp(here.build_id, s->kernel_id, s->kernel_id_n);
	image_identity_release(&here);
	return is_same ? 0
		       : err_set(err, ERR_NOT_FOUND,
				 "the script was compiled for another kernel, whose structures may have other layouts: compile it here");
}

/* Whether the code of a point is for this site. */
static bool is_for_site(
	const struct stream_point *sp, const struct target *t, const struct site *site)
{
	struct err err = {0};

	if (sp->site)
		return sp->site->addr.v == site->addr.v && !strcmp(sp->site_target->path, t->path);
	if (!sp->has_site || sp->found)
		return true;
	return sp->site_addr == site->addr.v && image_of(sp, t, &err) == (int)sp->site_image;
}

static void note_without_code(
	struct probe_session *s, const struct run_program *p, const struct target *t)
{
	const char *why = p->points.v[0]->pieces[t->mode].why_not;

	session_note(s, "%s: %s is left out: there is no code for %d-bit programs%s%s",
		p->points.v[0]->spec.text, t->path, t->mode == MODE_32 ? 32 : 64, why ? ": " : "",
		why ? why : "");
}

static void add_file_sites(struct probe_session *s, struct run_program *p, const struct target *t)
{
	const struct stream_point *sp = p->points.v[0];

	for (size_t i = 0; i < t->n_sites; i++) {
		struct run_site site = {.point = sp, .target = t, .site = &t->sites[i]};

		if (sp->operands && !name_is_same(sp->operands, t->sites[i].operands))
			continue;
		if (!is_for_site(sp, t, &t->sites[i]))
			continue;
		vec_push(&s->sites, site);
		p->n_sites++;
	}
}

/* Uprobes, USDT: a program for each mode that occurs. */
static void add_file_programs(struct probe_session *s, const struct run_program *group)
{
	const struct stream_point *sp = group->points.v[0];

	for (enum mode m = 0; m < N_MODES; m++) {
		struct run_program p = program_like(group);

		p.has[m] = has_code(&p, m);
		p.first_site = (uint32_t)s->sites.n;
		for (size_t i = 0; p.found && i < p.found->n_targets; i++) {
			const struct target *t = &p.found->targets[i];

			if (t->mode != m || (sp->operands && sp->operands_mode != m))
				continue;
			if (p.has[m])
				add_file_sites(s, &p, t);
			else if (t->n_sites)
				note_without_code(s, &p, t);
		}
		if (!p.n_sites) {
			vec_release(&p.points);
			continue;
		}
		p.has_cookie = true;
		sum_up(&p);
		p.can_sleep = p.reads_user && s->features.can_sleep;
		vec_push(&s->programs, p);
	}
}

static void add_kernel_program(
	struct probe_session *s, const struct run_program *group, const char *name, size_t n_names)
{
	struct run_program p = program_like(group);

	p.name = name;
	p.first_site = (uint32_t)s->sites.n;
	p.constant_site = p.first_site;
	p.n_sites = (uint32_t)n_names;
	vec_push(&s->sites, ((struct run_site){.point = p.points.v[0], .name = name}));
	vec_push(&s->programs, p);
}

/* Everything that is not in files. Where the code is the same for all names of a glob there is one
 * program for all of them. */
static void add_kernel_programs(struct probe_session *s, struct run_program *group)
{
	const struct stream_point *sp = group->points.v[0];
	const struct point *found = group->found;
	bool is_function = point_has(sp->spec.kind, POINT_BY_BTF);
	bool is_ours = point_has(sp->spec.kind, POINT_IS_OURS);

	group->has[MODE_64] = may_occur(group, MODE_64);
	group->has[MODE_32] = !is_ours && may_occur(group, MODE_32);
	group->is_switched = !is_ours && needs_mode(s, group);
	group->has[MODE_32] &= group->is_switched;
	sum_up(group);
	if (!group->has[MODE_32] && !group->has[MODE_64])
		return;
	if (sp->name)
		add_kernel_program(s, group, sp->name, 1);
	else if (found && found->n_names && (group->uses_site || is_function))
		for (size_t i = 0; i < found->n_names; i++)
			add_kernel_program(s, group, found->names[i], 1);
	else
		add_kernel_program(s, group, NULL, found && found->n_names ? found->n_names : 1);
}

static uint64_t point_hash(const struct stream_point *sp)
{
	uint64_t h = text_hash(&sp->spec);

	if (sp->operands)
		h = map_hash_mix(h, map_hash_bytes(sp->operands, strlen(sp->operands)));
	if (sp->name)
		h = map_hash_mix(h, map_hash_bytes(sp->name, strlen(sp->name)));
	if (sp->site || sp->has_site)
		h = map_hash_mix(h, sp->site ? sp->site->addr.v : sp->site_addr);
	return h;
}

int run_points(struct probe_session *s, struct err *err)
{
	VEC(struct run_program) groups = {0};
	struct map by_hash = {0}; /* of the point -> group + 1 */
	int rc = check_kernel(s->stream, err);

	for (size_t i = 0; i < s->stream->points.n && rc == 0; i++) {
		const struct stream_point *sp = &s->stream->points.v[i];
		struct run_program group = {
			.kind = sp->spec.kind, .fd = -1, .timer_fd = -1, .iterator_fd = -1};
		uint64_t *slot;

		if (sp->spec.kind == POINT_ERROR) /* its code is part of the others' */
			continue;
		if (sp->clause_i >= s->stream->clauses.n) {
			rc = err_set(err, ERR_FORMAT, "%s: its clause %u does not exist",
				sp->spec.text, sp->clause_i);
			break;
		}
		slot = map_ensure(&by_hash, point_hash(sp), NULL);
		if (*slot && is_same_point(groups.v[*slot - 1].points.v[0], sp)) {
			vec_push(&groups.v[*slot - 1].points, sp);
			continue;
		}
		rc = find_point(s, sp, &group.found, err);
		vec_push(&group.points, sp);
		vec_push(&groups, group);
		*slot = groups.n;
	}
	for (size_t i = 0; i < groups.n; i++) {
		if (rc == 0 && point_has(groups.v[i].kind, POINT_IN_FILES))
			rc = check_images(&groups.v[i], err);
		if (rc == 0 && point_has(groups.v[i].kind, POINT_IN_FILES))
			add_file_programs(s, &groups.v[i]);
		else if (rc == 0)
			add_kernel_programs(s, &groups.v[i]);
		vec_release(&groups.v[i].points);
	}
	vec_release(&groups);
	map_release(&by_hash);
	return rc;
}
