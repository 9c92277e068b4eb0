/* SPDX-License-Identifier: MIT */
/* The instruction mix, and the working set of code. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "cmd/report/insn_place.h"
#include "cmd/report/rows.h"
#include "cmd/report/steps_view.h"
#include "steps/tables/code_use.h"
#include "steps/tables/insn_mix.h"

/* Rows of lists that may be long, as text without --limit. */
#define LIST_SHOWN 16
#define NOT_KNOWN  "(not known)"

/* Regions of code without an image: the memory of a process. */
#define REGION_SPACE 0x80000000u

struct mix_function {
	const char *name, *image; /* "" when not known */
};

struct mix {
	const struct report *report;
	struct branch_table table;
	struct insn_mix mix;
	VEC(struct code_spot) spots;
	VEC(uint32_t) functions;	    /* of the spots */
	VEC(struct mix_function) names;	    /* of functions */
	struct intern function_ids, images; /* image and name -> function; paths */
	struct code_use all;
	struct code_cover covers[CODE_N_COVERS];
	struct code_use *image_uses, *function_uses;
	size_t n_images, n_functions;
	struct insn_place place; /* being looked at */
	struct buf key;
};

/* ---- the model ---- */

static uint32_t function_of(struct mix *m)
{
	const struct insn_place *p = &m->place;
	const char *name = p->function ? p->function->name : NOT_KNOWN;
	const char *image = p->names.n ? p->names.v[p->names.n - 1].image : "";
	uint32_t id;

	buf_reset(&m->key);
	buf_printf(&m->key, "%s\n%s", image, name);
	id = intern_bytes(&m->function_ids, m->key.p, m->key.n);
	if (id == m->names.n) {
		const char *kept = intern_get(&m->function_ids, id) + strlen(image) + 1;
		uint32_t path = intern_text(&m->images, image);

		vec_push(&m->names, ((struct mix_function){
					    .name = kept, .image = intern_get(&m->images, path)}));
	}
	return id;
}

static void add_spot(struct mix *m, uint64_t executed)
{
	const struct step_insn *insn = m->place.insn;
	const struct trace_frame *frame = trace_reader_frame(m->report->reader, insn->frame);
	struct code_spot spot = {.executed = executed, .length = insn->length};
	uint32_t function = function_of(m);

	if (!insn->length)
		spot.length = 1; /* something was executed there */
	spot.region = frame->image ? frame->image : REGION_SPACE | insn->space;
	spot.addr = frame->image ? frame->addr : insn->addr;
	vec_push(&m->spots, spot);
	vec_push(&m->functions, function);
}

static void add_insns(struct mix *m)
{
	const struct branch_table *t = &m->table;

	if (t->counts[0].executed && !m->report->options->query.filter)
		insn_mix_add_unknown(&m->mix, t->counts[0].executed);
	for (uint32_t i = 1; i < t->n_insns; i++) {
		const struct branch_count *c = &t->counts[i];
		const struct branch *b = &t->branches.v[c->branch];
		bool is_conditional = c->branch && b->kind == BRANCH_KIND_CONDITIONAL;

		if (!c->executed)
			continue;
		insn_place_get(&m->place, m->report, i, false);
		if (!insn_place_matches(&m->place, m->report))
			continue;
		insn_mix_add(&m->mix, m->place.insn, c->executed, t->again[i],
			is_conditional ? b : NULL);
		add_spot(m, c->executed);
	}
	insn_mix_finish(&m->mix);
}

/* Uses by image or by function; `spots` are in the order of `functions` only before the first
 * sorting, so they are copied. */
static size_t measure(struct mix *m, struct code_use **uses, bool by_function)
{
	struct code_spot *spots = mem_calloc(m->spots.n + 1, sizeof(*spots));
	size_t n;

	for (size_t i = 0; i < m->spots.n; i++) {
		const struct mix_function *f = &m->names.v[m->functions.v[i]];

		spots[i] = m->spots.v[i];
		spots[i].group =
			by_function ? m->functions.v[i] : intern_text(&m->images, f->image);
	}
	n = code_use_of_groups(uses, spots, m->spots.n);
	free(spots);
	return n;
}

static int mix_open(struct mix *m, const struct report *report, struct err *err)
{
	struct code_use *all;
	int rc;

	memset(m, 0, sizeof(*m));
	m->report = report;
	rc = branches_read(&m->table, report, err);
	if (rc < 0)
		return rc;
	add_insns(m);
	m->n_images = measure(m, &m->image_uses, false);
	m->n_functions = measure(m, &m->function_uses, true);
	if (code_use_of_groups(&all, m->spots.v, m->spots.n))
		m->all = *all;
	free(all);
	code_covers_get(m->covers, m->spots.v, m->spots.n);
	return 0;
}

static void mix_close(struct mix *m)
{
	branch_table_release(&m->table);
	insn_mix_release(&m->mix);
	vec_release(&m->spots);
	vec_release(&m->functions);
	vec_release(&m->names);
	intern_release(&m->function_ids);
	intern_release(&m->images);
	free(m->image_uses);
	free(m->function_uses);
	buf_release(&m->key);
}

/* Rows of group that are to be shown: its first, and their number of *n. */
static size_t rows_of(const struct mix *m, enum mix_group group, size_t *n)
{
	size_t first = 0, end;

	while (first < m->mix.rows.n && m->mix.rows.v[first].group < group)
		first++;
	for (end = first; end < m->mix.rows.n && m->mix.rows.v[end].group == group; end++)
		;
	*n = end - first;
	return first;
}

/* Text without --limit shows LIST_SHOWN, JSON all. */
static size_t limited(const struct mix *m, size_t n)
{
	uint64_t limit = m->report->options->query.limit;

	if (!limit && !m->report->options->json)
		limit = LIST_SHOWN;
	return limit && limit < n ? (size_t)limit : n;
}

/* ---- rows ---- */

/* A list is a table in text, below an empty line. */
static void close_list(struct rows *r, size_t n, size_t n_shown)
{
	if (!r->is_json)
		fputc('\n', r->report->out);
	rows_close(r);
	rows_more(r, n, n_shown);
}

static void put_group(struct rows *r, const struct mix *m, enum mix_group group)
{
	const struct mix_group_info *info = &mix_groups[group];
	bool is_steps = group != MIX_GROUP_ITERATIONS;
	size_t n, first = rows_of(m, group, &n);
	size_t n_shown = info->is_listed ? limited(m, n) : n;
	char title[128];
	const struct column columns[] = {
		{"count", "Count", 0}, {"percent", is_steps ? "Share%" : "", 0}, {"name", title, 0}, {0}};

	if (!n)
		return;
	snprintf(title, sizeof(title), "%s: %s", info->name, info->title);
	if (!r->is_json)
		rows_open(r, NULL, columns);
	for (size_t i = first; i < first + n_shown; i++) {
		const struct mix_row *row = &m->mix.rows.v[i];

		row_begin(r, TABLE_STYLE_PLAIN);
		row_string(r, "group", info->name);
		row_string(r, "name", row->name);
		row_number(r, "count", row->count);
		if (is_steps || r->is_json)
			row_percent(r, "percent", is_steps, row->count, m->mix.total);
		row_end(r);
	}
	if (!r->is_json)
		close_list(r, n, n_shown);
}

static void put_use(struct rows *r, const struct mix *m, const struct code_use *u)
{
	row_number(r, "executed", u->executed);
	row_percent(r, "percent", m->mix.total || !r->is_json, u->executed, m->mix.total);
	row_number(r, "instructions", u->n_insns);
	row_number(r, "bytes", u->n_bytes);
	row_number(r, "lines", u->n_lines);
	row_number(r, "pages", u->n_pages);
}

static void put_covers(struct rows *r, const struct mix *m)
{
	char title[128];

	snprintf(title, sizeof(title), "working set: code in lines of %d and pages of %d bytes",
		CODE_LINE_BYTES, CODE_PAGE_BYTES);
	rows_open(r, "covers",
		(const struct column[]){{"percent", "Executed%", 0},
			{"instructions", "Instructions", 0}, {"bytes", "Bytes", 0},
			{"lines", "Lines", 0}, {"pages", "Pages", 0}, {"Title", title, 0}, {0}});
	for (size_t i = 0; i < CODE_N_COVERS; i++) {
		row_begin_inside(r, NULL, TABLE_STYLE_PLAIN);
		row_number(r, "percent", m->covers[i].percent);
		row_number(r, "instructions", m->covers[i].n_insns);
		row_show(r, "bytes", ".");
		row_number(r, "lines", m->covers[i].n_lines);
		row_number(r, "pages", m->covers[i].n_pages);
		row_show(r, "Title", "the fewest that will do");
		row_end(r);
	}
	if (!r->is_json) {
		row_begin(r, TABLE_STYLE_PLAIN);
		put_use(r, m, &m->all);
		row_show(r, "percent", "100");
		row_show(r, "Title", "all that were executed");
		row_end(r);
	}
	close_list(r, 0, 0);
}

static void put_function_use(struct rows *r, const struct mix *m, const struct code_use *u)
{
	const struct mix_function *f = &m->names.v[u->group];

	row_string(r, "function", strcmp(f->name, NOT_KNOWN) ? f->name : NULL);
	row_text(r, "image", f->image);
	row_showf(r, "Of", *f->image ? "%s [%s]" : "%s", f->name, path_base_name(f->image));
}

static void put_image_use(struct rows *r, const struct mix *m, const struct code_use *u)
{
	const char *image = intern_get(&m->images, u->group);

	row_text(r, "image", image);
	row_show(r, "Of", *image ? image : NOT_KNOWN);
}

static void put_uses(struct rows *r, const struct mix *m, bool by_function)
{
	const struct code_use *uses = by_function ? m->function_uses : m->image_uses;
	size_t n = by_function ? m->n_functions : m->n_images, n_shown = limited(m, n);
	const struct column columns[] = {
		{"executed", "Executed", 0},
		{"percent", "Share%", 0},
		{"instructions", "Instructions", 0},
		{"bytes", "Bytes", 0},
		{"lines", "Lines", 0},
		{"pages", "Pages", 0},
		{"Of", by_function ? "Function" : "Image", 0},
		{0},
	};

	rows_open(r, by_function ? "functions" : "images", columns);
	for (size_t i = 0; i < n_shown; i++) {
		row_begin(r, TABLE_STYLE_PLAIN);
		(by_function ? put_function_use : put_image_use)(r, m, &uses[i]);
		put_use(r, m, &uses[i]);
		row_end(r);
	}
	close_list(r, n, n_shown);
}

static void put_groups(struct rows *r, const struct mix *m)
{
	for (int group = 0; group < MIX_N_GROUPS; group++)
		put_group(r, m, (enum mix_group)group);
}

static void put_working_set(struct rows *r, const struct mix *m)
{
	put_covers(r, m);
	put_uses(r, m, false);
	put_uses(r, m, true);
}

static void show_mix(struct rows *r, const struct mix *m)
{
	FILE *out = r->report->out;

	fprintf(out, "%" PRIu64 " instructions executed", m->mix.total);
	if (r->report->options->query.filter)
		fprintf(out, " in functions that match, of %" PRIu64, m->table.total);
	fputc('\n', out);
	branches_print_loss(r->report);
	put_groups(r, m);
	put_working_set(r, m);
}

static void json_mix(struct rows *r, const struct mix *m)
{
	json_newline(&r->json);
	json_object_begin(&r->json, "working_set");
	json_u64(&r->json, "line_bytes", CODE_LINE_BYTES);
	json_u64(&r->json, "page_bytes", CODE_PAGE_BYTES);
	put_use(r, m, &m->all);
	put_working_set(r, m);
	json_object_end(&r->json);
	rows_open(r, "rows", NULL);
	put_groups(r, m);
	rows_close(r);
}

int mix_report(const struct report *report, struct err *err)
{
	struct mix m;
	struct rows r;
	int rc = mix_open(&m, report, err);

	if (rc < 0)
		return rc;
	rows_begin(&r, report, "mix", m.mix.total);
	(r.is_json ? json_mix : show_mix)(&r, &m);
	rows_end(&r);
	mix_close(&m);
	return 0;
}
