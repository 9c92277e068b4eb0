/* SPDX-License-Identifier: MIT */
/*
 * Answers of `weir symbols resolve`, and how they are printed.
 *
 * In a trace the order is: symbols that are exactly the module's (rung build-id), what the trace
 * itself has, symbols on a weaker rung. Elsewhere there are only the symbols of the target.
 */
#include <inttypes.h>
#include <string.h>

#include "cmd/symbols/symbols_resolve.h"

/* NULL when it is nowhere. */
static const struct resolve_target *target_of(
	const struct resolve *r, const struct resolve_query *q)
{
	return q->target == RESOLVE_NO_TARGET ? NULL : &r->targets.v[q->target];
}

/* A name that is less sure than the image it is in. */
static void say_weak_source(
	const struct resolve_target *t, size_t symbol, struct resolve_answer *answer)
{
	size_t i = catalog_image_symbol_source(t->image, symbol);
	struct catalog_source s = catalog_image_source(t->image, i);

	snprintf(answer->reason, sizeof(answer->reason), "the name is from the %s '%s': %s",
		symbol_source_name(s.kind), s.path, s.verdict);
}

/* A variable or constant: its name and the place in it. */
static bool answer_datum(
	const struct resolve_target *t, struct iaddr place, struct resolve_answer *answer)
{
	struct catalog_datum d;

	if (!catalog_image_find_datum(t->image, place, &d))
		return false;
	memset(answer, 0, sizeof(*answer));
	answer->levels[0] = (struct catalog_level){.name = d.name, .linkage_name = d.linkage_name};
	answer->n_levels = 1;
	answer->symbol = d.name;
	answer->offset = place.v - d.start;
	answer->has_offset = true;
	answer->is_data = true;
	answer->match = match_rung_name(t->rung);
	answer->is_exact = t->rung == MATCH_BUILD_ID;
	answer->from = t->from;
	snprintf(answer->reason, sizeof(answer->reason), "%s", t->reason ? t->reason : "");
	return true;
}

static bool answer_from_image(const struct resolve_target *t, const struct resolve_query *q,
	struct resolve_answer *answer)
{
	enum match_rung rung = t->rung;
	struct iaddr place = q->place;
	struct catalog_range range;

	/* A module that could not be read when it was mapped: places are those of the file. */
	if (t->image && t->identity.kind == IMAGE_KIND_OTHER &&
		!image_identity_address(catalog_image_identity(t->image), place.v, &place.v))
		return false;
	if (!t->image)
		return false;
	if (!catalog_image_find_range(t->image, place, &range))
		return answer_datum(t, place, answer);
	memset(answer, 0, sizeof(*answer));
	answer->n_levels =
		catalog_image_levels(t->image, &range, answer->levels, SYMBOL_LEVELS_MAX);
	if (answer->n_levels && answer->levels[0].line)
		answer->levels[0].column = catalog_image_column(t->image, place);
	snprintf(answer->reason, sizeof(answer->reason), "%s", t->reason ? t->reason : "");
	if (range.symbol != UINT32_MAX) {
		struct catalog_symbol s = catalog_image_symbol(t->image, range.symbol);

		answer->symbol = s.name;
		answer->offset = place.v - s.start;
		answer->has_offset = true;
		if (s.rung < rung)
			say_weak_source(t, range.symbol, answer);
		rung = s.rung < rung ? s.rung : rung;
	}
	if (answer->n_levels && answer->levels[answer->n_levels - 1].name)
		answer->symbol = answer->levels[answer->n_levels - 1].name;
	answer->match = match_rung_name(rung);
	answer->is_exact = rung == MATCH_BUILD_ID;
	answer->from = t->from;
	return answer->n_levels > 0;
}

static void answer_nothing(const struct resolve_target *t, const struct resolve_query *q,
	struct resolve_answer *answer)
{
	bool has_symbols = t && t->image;
	const char *why = t ? t->reason : q->reason;

	memset(answer, 0, sizeof(*answer));
	answer->match = t ? match_rung_name(t->rung) : NULL;
	if (!why)
		why = t && !has_symbols ? "no symbols" : "";
	snprintf(answer->reason, sizeof(answer->reason),
		has_symbols ? "no symbol covers the address (%s)" : "%s", why);
}

static void answer_query(
	struct resolve *r, const struct resolve_query *q, struct resolve_answer *answer)
{
	const struct resolve_target *t = target_of(r, q);

	if (t && answer_from_image(t, q, answer) && (!t->trace_image || answer->is_exact))
		return;
	if (t && t->trace_image && resolve_answer_from_trace(r, q, answer))
		return;
	if (t && answer_from_image(t, q, answer))
		return;
	answer_nothing(t, q, answer);
}

/* path/image(symbol+0x18); without a symbol path/image(+0x1139). */
static const char *image_text(const struct resolve_target *t, const struct resolve_query *q,
	const struct resolve_answer *answer, struct buf *to)
{
	buf_reset(to);
	if (!t)
		return NULL;
	if (!answer->symbol)
		buf_printf(to, "%s(+0x%" PRIx64 ")", t->path, q->place.v);
	else if (answer->has_offset)
		buf_printf(to, "%s(%s+0x%" PRIx64 ")", t->path, answer->symbol, answer->offset);
	else
		buf_printf(to, "%s(%s)", t->path, answer->symbol);
	return buf_text(to);
}

/* --- text --- */

static void print_line_of(const struct catalog_level *level)
{
	if (level->file && level->line && level->column)
		printf(" %s:%" PRIu32 ":%" PRIu32, level->file, level->line, level->column);
	else if (level->file && level->line)
		printf(" %s:%" PRIu32, level->file, level->line);
	else if (level->file)
		printf(" (in %s)", level->file);
}

static void print_levels(const struct resolve_answer *answer)
{
	for (size_t i = 0; answer->n_levels > 1 && i < answer->n_levels; i++) {
		printf("    %s%s", i ? "inlined into " : "in ",
			answer->levels[i].name ? answer->levels[i].name : "?");
		print_line_of(&answer->levels[i]);
		putchar('\n');
	}
}

static void print_text(struct resolve *r, const struct resolve_query *q,
	const struct resolve_answer *answer, struct buf *scratch)
{
	const struct resolve_target *t = target_of(r, q);
	const char *text = image_text(t, q, answer, scratch);

	if (!q->is_valid) {
		printf("%s ?  [%s]\n", q->text, answer->reason);
		return;
	}
	if (q->has_pid)
		printf("%" PRIu32 ":", q->pid);
	printf("0x%" PRIx64 " %s", q->addr, text ? text : "?");
	if (answer->n_levels)
		print_line_of(&answer->levels[0]);
	if (!answer->n_levels)
		printf("  [%s]", answer->reason);
	else if (!r->call->args->quiet)
		printf("  [%s: %s]", answer->match ? answer->match : "not judged", answer->from);
	putchar('\n');
	print_levels(answer);
}

/* --- JSON --- */

static void json_levels(struct json *j, const struct resolve_answer *answer)
{
	json_array_begin(j, "levels");
	for (size_t i = 0; i < answer->n_levels; i++) {
		const struct catalog_level *level = &answer->levels[i];

		json_object_begin(j, NULL);
		json_string(j, "name", level->name);
		json_string(j, "linkage_name", level->linkage_name);
		json_string(j, "file", level->file);
		json_u64_if(j, "line", level->line, level->line);
		json_u64_if(j, "column", level->column, level->column);
		json_bool(j, "inline", level->is_inline);
		json_object_end(j);
	}
	json_array_end(j);
}

static void json_target(struct json *j, const struct resolve_target *t,
	const struct resolve_query *q, const struct resolve_answer *answer, struct buf *scratch)
{
	json_string(j, "image", t ? t->path : NULL);
	report_json_text(j, "image_id", t ? t->image_id : NULL);
	symbols_json_hex(j, "build_id",
		t ? (struct span){t->identity.build_id, t->identity.build_id_n}
		  : (struct span){NULL, 0});
	symbols_json_address(j, "offset_in_image", t, q->place.v);
	json_string(j, "symbol", answer->symbol);
	json_u64_if(j, "offset", answer->symbol && answer->has_offset, answer->offset);
	json_bool(j, "data", answer->is_data);
	json_string(j, "text", image_text(t, q, answer, scratch));
}

static void print_json(struct json *j, struct resolve *r, const struct resolve_query *q,
	const struct resolve_answer *answer, struct buf *scratch)
{
	const struct resolve_target *t = target_of(r, q);

	json_newline(j);
	json_object_begin(j, NULL);
	if (q->is_valid)
		json_address(j, "address", q->addr);
	else
		json_string(j, "address", q->text);
	json_u64_if(j, "pid", q->has_pid, q->pid);
	json_u64_if(j, "time", q->has_time, q->time);
	json_target(j, t, q, answer, scratch);
	json_string(j, "match", answer->match);
	json_string(j, "from", answer->from);
	report_json_text(j, "reason", answer->reason);
	json_levels(j, answer);
	json_object_end(j);
}

static void json_begin(struct json *j, const struct resolve *r)
{
	symbols_json_begin(j, r->call);
	json_string(j, "catalog", r->catalog ? r->call->catalog_path : NULL);
	json_string(j, "trace", r->call->args->trace);
	json_newline(j);
	json_array_begin(j, "rows");
}

static void print_begin(struct resolve *r)
{
	if (r->call->args->json && !r->has_begun)
		json_begin(&r->json, r);
	r->has_begun = true;
}

void resolve_print(struct resolve *r)
{
	struct resolve_answer answer;
	struct buf scratch = {0};

	print_begin(r);
	for (size_t i = 0; i < r->queries.n; i++) {
		const struct resolve_query *q = &r->queries.v[i];

		answer_query(r, q, &answer);
		r->n_unresolved += !answer.n_levels;
		if (r->call->args->json)
			print_json(&r->json, r, q, &answer, &scratch);
		else
			print_text(r, q, &answer, &scratch);
	}
	fflush(stdout); /* somebody may wait for it before asking more */
	buf_release(&scratch);
}

void resolve_print_end(struct resolve *r)
{
	print_begin(r);
	if (r->call->args->json) {
		json_array_end(&r->json);
		json_object_end(&r->json);
	}
}
