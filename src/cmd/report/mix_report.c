/* SPDX-License-Identifier: MIT */
/* The instruction mix, and the working set of code. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "cmd/report/branches_view.h"
#include "cmd/report/table.h"
#include "cmd/report/values.h"
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

	if (t->counts[0].executed && !m->report->options->filter)
		insn_mix_add_unknown(&m->mix, t->counts[0].executed);
	for (uint32_t i = 1; i < t->n_insns; i++) {
		const struct branch_count *c = &t->counts[i];
		const struct branch *b = &t->branches.v[c->branch];
		bool is_conditional = c->branch && b->kind == BRANCH_KIND_CONDITIONAL;

		if (!c->executed)
			continue;
		insn_place_get(&m->place, m->report, i);
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

static size_t limited(const struct mix *m, size_t n, size_t usual)
{
	uint64_t limit = m->report->options->limit ? m->report->options->limit : usual;

	return limit && limit < n ? (size_t)limit : n;
}

/* ---- text ---- */

static void print_more(const struct mix *m, size_t n, size_t n_shown)
{
	if (n > n_shown)
		fprintf(m->report->out, "  and %zu more\n", n - n_shown);
}

static void print_group(const struct mix *m, enum mix_group group)
{
	const struct mix_group_info *info = &mix_groups[group];
	struct table t = {0};
	size_t n, first = rows_of(m, group, &n);
	size_t n_shown = info->is_listed ? limited(m, n, LIST_SHOWN) : n;

	if (!n)
		return;
	table_row(&t, TABLE_STYLE_STRONG);
	table_cell(&t, "Count");
	table_cell(&t, group == MIX_GROUP_ITERATIONS ? "" : "Share%");
	table_cellf(&t, "%s: %s", info->name, info->title);
	for (size_t i = first; i < first + n_shown; i++) {
		const struct mix_row *row = &m->mix.rows.v[i];

		table_row(&t, TABLE_STYLE_PLAIN);
		table_number(&t, row->count);
		if (group == MIX_GROUP_ITERATIONS)
			table_cell(&t, "");
		else
			percent_cell(&t, row->count, m->mix.total);
		table_cell(&t, row->name);
	}
	fputc('\n', m->report->out);
	table_print(&t, m->report->options->color, m->report->out);
	table_release(&t);
	print_more(m, n, n_shown);
}

static void print_covers(const struct mix *m)
{
	const struct code_use *u = &m->all;
	struct table t = {0};

	table_row(&t, TABLE_STYLE_STRONG);
	table_cell(&t, "Executed%");
	table_cell(&t, "Instructions");
	table_cell(&t, "Bytes");
	table_cell(&t, "Lines");
	table_cell(&t, "Pages");
	table_cellf(&t, "working set: code in lines of %d and pages of %d bytes", CODE_LINE_BYTES,
		CODE_PAGE_BYTES);
	for (size_t i = 0; i < CODE_N_COVERS; i++) {
		table_row(&t, TABLE_STYLE_PLAIN);
		table_number(&t, m->covers[i].percent);
		table_number(&t, m->covers[i].n_insns);
		table_cell(&t, ".");
		table_number(&t, m->covers[i].n_lines);
		table_number(&t, m->covers[i].n_pages);
		table_cell(&t, "the fewest that will do");
	}
	table_row(&t, TABLE_STYLE_PLAIN);
	table_number(&t, 100);
	table_number(&t, u->n_insns);
	table_number(&t, u->n_bytes);
	table_number(&t, u->n_lines);
	table_number(&t, u->n_pages);
	table_cell(&t, "all that were executed");
	fputc('\n', m->report->out);
	table_print(&t, m->report->options->color, m->report->out);
	table_release(&t);
}

static void print_uses(const struct mix *m, const struct code_use *uses, size_t n, bool by_function)
{
	static const char *const heads[] = {
		"Executed", "Share%", "Instructions", "Bytes", "Lines", "Pages"};
	struct table t = {0};
	size_t n_shown = limited(m, n, LIST_SHOWN);

	table_row(&t, TABLE_STYLE_STRONG);
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		table_cell(&t, heads[i]);
	table_cell(&t, by_function ? "Function" : "Image");
	for (size_t i = 0; i < n_shown; i++) {
		const struct code_use *u = &uses[i];

		table_row(&t, TABLE_STYLE_PLAIN);
		table_number(&t, u->executed);
		percent_cell(&t, u->executed, m->mix.total);
		table_number(&t, u->n_insns);
		table_number(&t, u->n_bytes);
		table_number(&t, u->n_lines);
		table_number(&t, u->n_pages);
		if (by_function) {
			const struct mix_function *f = &m->names.v[u->group];

			table_cellf(&t, *f->image ? "%s [%s]" : "%s", f->name,
				path_base_name(f->image));
		} else {
			const char *image = intern_get(&m->images, u->group);

			table_cell(&t, *image ? image : NOT_KNOWN);
		}
	}
	fputc('\n', m->report->out);
	table_print(&t, m->report->options->color, m->report->out);
	table_release(&t);
	print_more(m, n, n_shown);
}

int mix_text(const struct report *report, struct err *err)
{
	struct mix m;
	int rc = mix_open(&m, report, err);

	if (rc < 0)
		return rc;
	fprintf(report->out, "%" PRIu64 " instructions executed", m.mix.total);
	if (report->options->filter)
		fprintf(report->out, " in functions that match, of %" PRIu64, m.table.total);
	fputc('\n', report->out);
	branches_print_loss(report);
	for (int group = 0; group < MIX_N_GROUPS; group++)
		print_group(&m, (enum mix_group)group);
	print_covers(&m);
	print_uses(&m, m.image_uses, m.n_images, false);
	print_uses(&m, m.function_uses, m.n_functions, true);
	mix_close(&m);
	return 0;
}

/* ---- JSON ---- */

static void json_use(struct json *j, const struct mix *m, const struct code_use *u)
{
	json_u64(j, "executed", u->executed);
	if (m->mix.total)
		json_double(j, "percent", 100.0 * (double)u->executed / (double)m->mix.total);
	else
		json_null(j, "percent");
	json_u64(j, "instructions", u->n_insns);
	json_u64(j, "bytes", u->n_bytes);
	json_u64(j, "lines", u->n_lines);
	json_u64(j, "pages", u->n_pages);
}

static void json_uses(struct json *j, const struct mix *m, bool by_function)
{
	const struct code_use *uses = by_function ? m->function_uses : m->image_uses;
	size_t n = limited(m, by_function ? m->n_functions : m->n_images, 0);

	json_array_begin(j, by_function ? "functions" : "images");
	for (size_t i = 0; i < n; i++) {
		const struct mix_function *f = &m->names.v[by_function ? uses[i].group : 0];

		json_newline(j);
		json_object_begin(j, NULL);
		if (by_function)
			json_string(j, "function", strcmp(f->name, NOT_KNOWN) ? f->name : NULL);
		report_json_text(
			j, "image", by_function ? f->image : intern_get(&m->images, uses[i].group));
		json_use(j, m, &uses[i]);
		json_object_end(j);
	}
	json_array_end(j);
}

static void json_working_set(struct json *j, const struct mix *m)
{
	json_newline(j);
	json_object_begin(j, "working_set");
	json_u64(j, "line_bytes", CODE_LINE_BYTES);
	json_u64(j, "page_bytes", CODE_PAGE_BYTES);
	json_use(j, m, &m->all);
	json_array_begin(j, "covers");
	for (size_t i = 0; i < CODE_N_COVERS; i++) {
		json_object_begin(j, NULL);
		json_u64(j, "percent", m->covers[i].percent);
		json_u64(j, "instructions", m->covers[i].n_insns);
		json_u64(j, "lines", m->covers[i].n_lines);
		json_u64(j, "pages", m->covers[i].n_pages);
		json_object_end(j);
	}
	json_array_end(j);
	json_uses(j, m, false);
	json_uses(j, m, true);
	json_object_end(j);
}

static void json_group(struct json *j, const struct mix *m, enum mix_group group)
{
	size_t n, first = rows_of(m, group, &n);

	if (mix_groups[group].is_listed)
		n = limited(m, n, 0);
	for (size_t i = first; i < first + n; i++) {
		const struct mix_row *row = &m->mix.rows.v[i];

		json_newline(j);
		json_object_begin(j, NULL);
		json_string(j, "group", mix_groups[group].name);
		json_string(j, "name", row->name);
		json_u64(j, "count", row->count);
		if (group == MIX_GROUP_ITERATIONS)
			json_null(j, "percent"); /* they are not steps */
		else
			json_double(
				j, "percent", 100.0 * (double)row->count / (double)m->mix.total);
		json_object_end(j);
	}
}

int mix_json(const struct report *report, struct err *err)
{
	struct mix m;
	struct json j;
	int rc = mix_open(&m, report, err);

	if (rc < 0)
		return rc;
	report_json_begin_steps(&j, report, "mix", m.mix.total);
	json_working_set(&j, &m);
	report_json_rows(&j);
	for (int group = 0; group < MIX_N_GROUPS; group++)
		json_group(&j, &m, (enum mix_group)group);
	report_json_end(&j, report);
	mix_close(&m);
	return 0;
}
