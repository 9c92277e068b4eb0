/* SPDX-License-Identifier: MIT */
/*
 * weir probe --dry-run: where the points of a stream are on this machine and what a hit will cost,
 * told before anything is attached. No privilege is needed.
 */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "cmd/probe.h"
#include "probe/points/point_kind.h"
#include "probe/points/syscalls.h"

/* What a hit takes: Linux 6.18, lowest values seen; bench/probe measures it anew. */
static const struct {
	const char *name, *text;
} costs[] = {
	[SITE_UNKNOWN] = {"unknown", "of unknown cost"},
	[SITE_NOP5] = {"nop5", "at a 5-byte nop (cheapest: some 0.1 us a hit)"},
	[SITE_EMULATED] = {"emulated", "emulated (some 0.5 us a hit)"},
	[SITE_SINGLE_STEPPED] = {"single-stepped",
		"single-stepped (1 us a hit, in virtual machines 10 to 15)"},
};
#define N_COSTS 4

#define SITES_SHOWN 10 /* of a file, without -v */

struct plan {
	const struct probe_setup *setup;
	const struct stream *stream;
	struct arena *arena; /* of points that are found here */
	struct json json;
	FILE *out;
	size_t n_sites, n_slow, n_left_out;
};

/* Whether the code of a point is for this site: that of USDT is for some operands only. */
static bool is_site_of(
	const struct stream_point *point, const struct target *target, const struct site *site)
{
	if (!point->operands)
		return true;
	return target->mode == point->operands_mode && site->operands &&
	       !strcmp(site->operands, point->operands);
}

static int bits_of(enum mode mode)
{
	return mode == MODE_32 ? 32 : 64;
}

/* ---- text ---- */

static void print_site(const struct plan *p, const struct site *site)
{
	fprintf(p->out, "    %s+%u at 0x%" PRIx64 ": %s", site->function ? site->function : "?",
		site->into_function, site->addr.v, costs[site->cost].name);
	if (site->cheaper.v)
		fprintf(p->out, "; cheaper: +%" PRIu64 " (%" PRIu64 " bytes further)",
			site->into_function + (site->cheaper.v - site->offset.v),
			site->cheaper.v - site->offset.v);
	fputc('\n', p->out);
}

static void print_sites(
	const struct plan *p, const struct stream_point *point, const struct target *target)
{
	size_t n_shown = 0, n_more = 0;

	for (size_t i = 0; i < target->n_sites; i++) {
		const struct site *site = &target->sites[i];

		if (!is_site_of(point, target, site) ||
			(!p->setup->a->verbose && site->cost != SITE_SINGLE_STEPPED))
			continue;
		if (!p->setup->a->verbose && n_shown == SITES_SHOWN) {
			n_more++;
			continue;
		}
		print_site(p, site);
		n_shown++;
	}
	if (n_more)
		fprintf(p->out, "    and %zu more single-stepped ones (-v lists all)\n", n_more);
}

static void print_left_out(const struct plan *p, const struct target *target)
{
	for (size_t i = 0; i < target->n_left_out; i++) {
		const struct left_out *l = &target->left_out[i];

		fprintf(p->out, "    left out: %s at file offset 0x%" PRIx64 ": %s\n",
			l->function ? l->function : "?", l->offset.v, l->why);
	}
}

static void print_target(
	struct plan *p, const struct stream_point *point, const struct target *target)
{
	size_t counts[N_COSTS] = {0}, n = 0;
	const char *between = " ";

	for (size_t i = 0; i < target->n_sites; i++) {
		if (!is_site_of(point, target, &target->sites[i]))
			continue;
		counts[target->sites[i].cost]++;
		n++;
	}
	if (!n && point->operands)
		return;
	p->n_sites += n;
	p->n_slow += counts[SITE_SINGLE_STEPPED];
	p->n_left_out += target->n_left_out;
	fprintf(p->out, "  %s: %d-bit, %zu site%s:", target->path, bits_of(target->mode), n,
		n == 1 ? "" : "s");
	for (int cost = 0; cost < N_COSTS; cost++) {
		if (!counts[cost])
			continue;
		fprintf(p->out, "%s%zu %s", between, counts[cost], costs[cost].text);
		between = ", ";
	}
	fputc('\n', p->out);
	print_sites(p, point, target);
	print_left_out(p, target);
}

static void print_names(struct plan *p, const struct stream_point *point, const struct point *found)
{
	size_t n = point->name ? 1 : found->n_names;

	for (size_t i = 0; i < n; i++) {
		if (i == SITES_SHOWN && !p->setup->a->verbose) {
			fprintf(p->out, "  and %zu more (-v lists all)\n", n - i);
			break;
		}
		fprintf(p->out, "  %s\n", point->name ? point->name : found->names[i]);
	}
	p->n_sites += n;
}

static void print_calls(const struct plan *p, const struct point *found)
{
	const struct point_spec *spec = &found->spec;

	if (!point_has(spec->kind, POINT_OF_CALLS))
		return;
	if (found->is_all_calls || spec->is_glob) {
		fprintf(p->out, "  %s calls of both modes\n",
			found->is_all_calls ? "all" : "several");
		return;
	}
	for (int mode = 0; mode < N_MODES; mode++) {
		int number = syscall_number((enum mode)mode, spec->name);

		if (number >= 0)
			fprintf(p->out, "  call %d of %d-bit programs\n", number,
				bits_of((enum mode)mode));
		else
			fprintf(p->out, "  %d-bit programs have no such call\n",
				bits_of((enum mode)mode));
	}
}

static void print_code(const struct plan *p, const struct stream_point *point)
{
	fputs("  code:", p->out);
	for (int mode = 0; mode < N_MODES; mode++) {
		const struct stream_piece *piece = &point->pieces[mode];

		fprintf(p->out, "%s %d-bit ", mode ? "," : "", bits_of((enum mode)mode));
		if (piece->is_there)
			fprintf(p->out, "%u instructions", piece->predicate_n + piece->action_n);
		else
			fputs("none", p->out);
		if (!piece->is_there && piece->why_not)
			fprintf(p->out, " (%s)", piece->why_not);
	}
	fputc('\n', p->out);
}

static void print_point(struct plan *p, const struct stream_point *point, const struct point *found)
{
	fprintf(p->out, "%s", point->spec.text);
	if (point->operands)
		fprintf(p->out, " (%d-bit, %s)", bits_of(point->operands_mode), point->operands);
	fputc('\n', p->out);
	if (!found)
		fputs("  not found on this machine\n", p->out);
	for (size_t i = 0; found && i < found->n_targets; i++)
		print_target(p, point, &found->targets[i]);
	if (found) {
		print_calls(p, found);
		print_names(p, point, found);
	}
	print_code(p, point);
}

/* ---- JSON ---- */

static void json_site(struct json *j, const struct site *site)
{
	json_object_begin(j, NULL);
	json_string(j, "function", site->function);
	json_u64(j, "into_function", site->into_function);
	json_u64(j, "offset", site->offset.v);
	json_u64(j, "address", site->addr.v);
	json_string(j, "cost", costs[site->cost].name);
	json_u64_if(j, "cheaper_offset", site->cheaper.v, site->cheaper.v);
	json_object_end(j);
}

static void json_target(
	struct plan *p, const struct stream_point *point, const struct target *target)
{
	struct json *j = &p->json;

	json_newline(j);
	json_object_begin(j, NULL);
	json_string(j, "file", target->path);
	json_u64(j, "bits", (uint64_t)bits_of(target->mode));
	json_array_begin(j, "sites");
	for (size_t i = 0; i < target->n_sites; i++)
		if (is_site_of(point, target, &target->sites[i]))
			json_site(j, &target->sites[i]);
	json_array_end(j);
	json_array_begin(j, "left_out");
	for (size_t i = 0; i < target->n_left_out; i++) {
		json_object_begin(j, NULL);
		json_string(j, "function", target->left_out[i].function);
		json_u64(j, "offset", target->left_out[i].offset.v);
		json_string(j, "reason", target->left_out[i].why);
		json_object_end(j);
	}
	json_array_end(j);
	json_object_end(j);
}

static void json_code(struct json *j, const struct stream_point *point)
{
	json_object_begin(j, "instructions");
	for (int mode = 0; mode < N_MODES; mode++) {
		const struct stream_piece *piece = &point->pieces[mode];

		json_u64_if(j, mode == MODE_32 ? "32" : "64", piece->is_there,
			piece->predicate_n + piece->action_n);
	}
	json_object_end(j);
}

static void json_point(struct plan *p, const struct stream_point *point, const struct point *found)
{
	struct json *j = &p->json;

	json_newline(j);
	json_object_begin(j, NULL);
	json_string(j, "probe", point->spec.text);
	json_u64(j, "clause", point->clause_i + 1);
	json_string(j, "operands", point->operands);
	json_bool(j, "found", found);
	json_code(j, point);
	json_array_begin(j, "files");
	for (size_t i = 0; found && i < found->n_targets; i++)
		json_target(p, point, &found->targets[i]);
	json_array_end(j);
	json_array_begin(j, "names");
	if (point->name)
		json_string(j, NULL, point->name);
	for (size_t i = 0; found && !point->name && i < found->n_names; i++)
		json_string(j, NULL, found->names[i]);
	json_array_end(j);
	json_object_end(j);
}

/* ---- both ---- */

/* The points of a stream out of a file were found on another machine, perhaps. */
static const struct point *find(struct plan *p, const struct stream_point *point, struct diags *d)
{
	struct point *found;

	if (point->found)
		return point->found;
	found = arena_zalloc(p->arena, sizeof(*found));
	return point_find(&point->spec, &p->setup->find, p->arena, found, d) ? found : NULL;
}

static void print_points(struct plan *p, struct diags *diags)
{
	for (size_t i = 0; i < p->stream->points.n; i++) {
		const struct stream_point *point = &p->stream->points.v[i];
		const struct point *found = find(p, point, diags);

		if (p->setup->is_json)
			json_point(p, point, found);
		else
			print_point(p, point, found);
	}
}

/* What maps take of the kernel's memory. */
static void print_maps(const struct plan *p)
{
	for (size_t i = 0; i < p->stream->maps.n; i++) {
		const struct stream_map_def *def = &p->stream->maps.v[i];
		struct map_memory m = map_memory_of(def, (uint32_t)p->setup->a->max_entries);

		fprintf(p->out,
			"map %s: %u %s, %" PRIu64 " KiB at once, %" PRIu64 " KiB when full\n",
			def->name, m.n_entries, m.n_entries == 1 ? "entry" : "entries",
			(m.at_once_bytes + 1023) / 1024, (m.full_bytes + 1023) / 1024);
	}
}

static void json_maps(struct plan *p)
{
	for (size_t i = 0; i < p->stream->maps.n; i++) {
		const struct stream_map_def *def = &p->stream->maps.v[i];
		struct map_memory m = map_memory_of(def, (uint32_t)p->setup->a->max_entries);

		json_object_begin(&p->json, NULL);
		json_string(&p->json, "name", def->name);
		json_u64(&p->json, "entries", m.n_entries);
		json_u64(&p->json, "bytes_at_once", m.at_once_bytes);
		json_u64(&p->json, "bytes_when_full", m.full_bytes);
		json_object_end(&p->json);
	}
}

static void print_all(struct plan *p, struct diags *diags)
{
	if (!p->setup->is_json) {
		print_points(p, diags);
		print_maps(p);
		fprintf(p->out, "%zu site%s, %zu of them single-stepped, %zu left out\n",
			p->n_sites, p->n_sites == 1 ? "" : "s", p->n_slow, p->n_left_out);
		return;
	}
	json_init(&p->json, p->out);
	json_object_begin(&p->json, NULL);
	json_u64(&p->json, "weir", 1);
	json_string(&p->json, "kind", "probe-plan");
	json_array_begin(&p->json, "rows");
	print_points(p, diags);
	json_array_end(&p->json);
	json_array_begin(&p->json, "maps");
	json_maps(p);
	json_array_end(&p->json);
	json_object_end(&p->json);
}

int probe_plan(const struct probe_setup *setup, const struct stream *s)
{
	struct plan p = {.setup = setup, .stream = s, .arena = arena_new(), .out = setup->out};
	struct diags diags;
	int status;

	diags_init(&diags, &s->sources);
	print_all(&p, &diags);
	probe_print_messages(setup, &diags);
	status = diags.n_errors ? STATUS_FAILED : STATUS_DONE;
	diags_release(&diags);
	arena_free(p.arena);
	return status;
}
