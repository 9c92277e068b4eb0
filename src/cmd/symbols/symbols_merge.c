/* SPDX-License-Identifier: MIT */
/*
 * weir symbols merge and add: inputs into images, and what became of each input.
 *
 * Equal inputs give equal bytes, whatever the number of threads: so the time of making is written
 * only when $SOURCE_DATE_EPOCH gives it.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "cmd/symbols/symbols_verbs.h"
#include "symbols/catalog/merge.h"

/* An input that is not there at all. */
struct missing_input {
	char *path, *reason;
};

#define ADD_TRIES_MAX 100 /* against other writers */

struct merge_work {
	const struct symbols_call *call;
	struct catalog *base; /* NULL: a new file */
	struct merge *merge;
	VEC(struct missing_input) missing;
	VEC(struct catalog_image *) images; /* the new or changed ones, opened */
	size_t n_refused;		    /* inputs that were named themselves */
	size_t n_used;
};

static void work_release(struct merge_work *w)
{
	for (size_t i = 0; i < w->missing.n; i++) {
		free(w->missing.v[i].path);
		free(w->missing.v[i].reason);
	}
	vec_release(&w->missing);
	for (size_t i = 0; i < w->images.n; i++)
		catalog_image_close(w->images.v[i]);
	vec_release(&w->images);
	merge_free(w->merge);
	catalog_close(w->base);
}

/* --- the facts of a new file --- */

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The inputs as they were named, a line each, in an order that does not depend on the command line.
 */
static char *made_from(const struct symbols_call *call)
{
	char **sorted = mem_calloc(call->n_operands + 1, sizeof(*sorted));
	struct buf b = {0};
	char *text;

	for (size_t i = 0; i < call->n_operands; i++)
		sorted[i] = call->operands[i];
	qsort(sorted, call->n_operands, sizeof(*sorted), by_text);
	for (size_t i = 0; i < call->n_operands; i++)
		if (!i || strcmp(sorted[i], sorted[i - 1]))
			buf_printf(&b, "%s%s", b.n ? "\n" : "", sorted[i]);
	if (call->args->pid != SYMBOLS_NUMBER_ABSENT)
		buf_printf(&b, "%sprocess %" PRIu64, b.n ? "\n" : "", call->args->pid);
	if (call->args->kernel)
		buf_printf(&b, "%sthe running kernel", b.n ? "\n" : "");
	text = mem_strdup(buf_text(&b));
	buf_release(&b);
	free(sorted);
	return text;
}

#define FACTS_MAX 3

/* What catalogs do not say of themselves (catalog_fact()); returns how many. Values are owned. */
static size_t facts_of_this_system(
	struct catalog_fact_pair facts[FACTS_MAX], const struct symbols_call *call)
{
	const char *epoch = getenv("SOURCE_DATE_EPOCH");
	char *end, when[64];
	struct tm tm;
	time_t t;

	facts[0] = (struct catalog_fact_pair){"made_from", made_from(call)};
	facts[1] = (struct catalog_fact_pair){
		"cpus", mem_printf("%ld", sysconf(_SC_NPROCESSORS_ONLN))};
	if (!epoch || !*epoch)
		return 2;
	t = (time_t)strtoll(epoch, &end, 10);
	if (*end || !gmtime_r(&t, &tm) || !strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm))
		return 2;
	facts[2] = (struct catalog_fact_pair){"made_at", mem_strdup(when)};
	return 3;
}

/* --- reading the inputs --- */

static void show_progress(void *ctx, const char *what, size_t done, size_t of)
{
	(void)ctx;
	fprintf(stderr, "\r\033[K%zu of %zu: %.60s", done, of, what);
	fflush(stderr);
}

/* Takes the path. */
static void add_missing(struct merge_work *w, char *path, const struct err *why)
{
	vec_push(&w->missing, ((struct missing_input){path, mem_strdup(why->text)}));
}

static void add_inputs(struct merge_work *w)
{
	const struct symbols_arguments *args = w->call->args;
	struct err err = {0};

	for (size_t i = 0; i < w->call->n_operands; i++)
		if (merge_add_path(w->merge, w->call->operands[i], &err) < 0)
			add_missing(w, mem_strdup(w->call->operands[i]), &err);
	if (args->pid != SYMBOLS_NUMBER_ABSENT &&
		symbols_merge_process(w->merge, (pid_t)args->pid, &err) < 0)
		add_missing(w, mem_printf("process %" PRIu64, args->pid), &err);
	if (args->kernel && merge_add_kernel(w->merge, &err) < 0)
		add_missing(w, mem_strdup("the running kernel"), &err);
}

static size_t n_inputs(const struct symbols_call *call)
{
	return call->n_operands + call->args->kernel + (call->args->pid != SYMBOLS_NUMBER_ABSENT);
}

static int run_merge(struct merge_work *w, struct err *err)
{
	bool shows_progress = isatty(STDERR_FILENO) && !w->call->args->quiet;
	int rc;

	mem_expect_much();
	w->merge = merge_new(&(struct merge_options){
		.n_threads = symbols_n_threads(w->call),
		.no_search = w->call->args->no_search,
		.columns = w->call->args->columns,
		.base = w->base,
		.progress = shows_progress ? show_progress : NULL,
	});
	add_inputs(w);
	w->n_refused = w->missing.n;
	if (w->missing.n == n_inputs(w->call))
		return 0; /* each of them says more than their sum */
	rc = merge_run(w->merge, err);
	if (shows_progress)
		fputs("\r\033[K", stderr);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < merge_n_images(w->merge); i++) {
		struct catalog_image *image;

		rc = catalog_image_open(&image, merge_get_image(w->merge, i), err);
		if (rc < 0)
			return rc;
		vec_push(&w->images, image);
	}
	for (size_t i = 0; i < merge_n_outcomes(w->merge); i++) {
		struct merge_outcome o = merge_get_outcome(w->merge, i);

		if (o.verdict == MERGE_USED || o.verdict == MERGE_KNOWN)
			w->n_used++;
		else if (o.was_named)
			w->n_refused++;
	}
	return 0;
}

/* --- what is printed --- */

static bool is_in_base(const struct merge_work *w, const char *id)
{
	return w->base && symbols_catalog_find_id(w->base, id) != SIZE_MAX;
}

static bool is_among_images(const struct merge_work *w, const char *id)
{
	for (size_t i = 0; i < w->images.n; i++)
		if (!strcmp(catalog_image_id(w->images.v[i]), id))
			return true;
	return false;
}

/* True for the first outcome of an image that the base has and that nothing changed. */
static bool is_known_image(const struct merge_work *w, size_t outcome)
{
	struct merge_outcome o = merge_get_outcome(w->merge, outcome);

	if (o.verdict != MERGE_KNOWN || !o.image_id || is_among_images(w, o.image_id) ||
		!is_in_base(w, o.image_id))
		return false;
	for (size_t i = 0; i < outcome; i++) {
		struct merge_outcome before = merge_get_outcome(w->merge, i);

		if (before.verdict == MERGE_KNOWN && before.image_id &&
			!strcmp(before.image_id, o.image_id))
			return false;
	}
	return true;
}

static const struct column image_columns[] = {
	{"state", "State", COLUMN_LEFT},
	SYMBOLS_ENTRY_COLUMNS,
	{"Sources", "Sources", COLUMN_LEFT},
	{"Path", "Path", 0},
	{0},
};

static void put_image(struct rows *r, const char *state, const struct catalog_entry *e,
	struct catalog_image *image)
{
	struct buf kinds = {0};

	row_begin(r, TABLE_STYLE_PLAIN);
	row_string(r, "state", state);
	symbols_put_entry(r, e);
	row_show(r, "Sources", image ? symbols_source_kinds(image, &kinds) : ".");
	if (r->is_json) {
		json_array_begin(&r->json, "sources");
		symbols_put_sources(r, image);
		json_array_end(&r->json);
	}
	row_end(r);
	buf_release(&kinds);
}

/* In text those that nothing changed, too; and no table when there are none, or with --quiet. */
static void put_images(struct rows *r, const struct merge_work *w)
{
	struct catalog_entry e;

	rows_open(r, "rows", image_columns);
	for (size_t i = 0; i < w->images.n; i++) {
		e = catalog_image_entry(w->images.v[i]);
		put_image(r, is_in_base(w, e.id) ? "changed" : "new", &e, w->images.v[i]);
	}
	for (size_t i = 0; !r->is_json && i < merge_n_outcomes(w->merge); i++)
		if (is_known_image(w, i)) {
			e = catalog_get(w->base, symbols_catalog_find_id(w->base,
							 merge_get_outcome(w->merge, i).image_id));
			put_image(r, "known", &e, NULL);
		}
	if (!r->is_json && (r->table.n_rows == 1 || w->call->args->quiet))
		table_release(&r->table);
	rows_close(r);
}

static bool is_refusal(const struct merge_outcome *o)
{
	return o->verdict == MERGE_REFUSED || (o->verdict == MERGE_NOT_A_SOURCE && o->was_named);
}

static void print_refusals(const struct merge_work *w)
{
	for (size_t i = 0; i < w->missing.n; i++)
		printf("refused %s: %s\n", w->missing.v[i].path, w->missing.v[i].reason);
	for (size_t i = 0; i < merge_n_outcomes(w->merge); i++) {
		struct merge_outcome o = merge_get_outcome(w->merge, i);

		if (is_refusal(&o))
			printf("refused %s (%s): %s\n", o.path, source_kind_name(o.kind), o.reason);
	}
}

/* `kind` is NULL where it is not known. */
static void json_input(struct json *j, const struct merge_outcome *o, const char *kind)
{
	static const char *const verdicts[] = {
		[MERGE_USED] = "used",
		[MERGE_KNOWN] = "known",
		[MERGE_REFUSED] = "refused",
		[MERGE_NOT_A_SOURCE] = "not a source",
	};

	json_newline(j);
	json_object_begin(j, NULL);
	json_string(j, "path", o->path);
	json_string(j, "kind", kind);
	json_string(j, "verdict", verdicts[o->verdict]);
	report_json_text(j, "reason", o->reason);
	report_json_text(j, "image", o->image_id);
	json_bool(j, "named", o->was_named);
	json_object_end(j);
}

static void json_inputs(struct json *j, const struct merge_work *w)
{
	json_newline(j);
	json_array_begin(j, "inputs");
	for (size_t i = 0; i < w->missing.n; i++)
		json_input(j,
			&(struct merge_outcome){.path = w->missing.v[i].path,
				.verdict = MERGE_REFUSED,
				.reason = w->missing.v[i].reason,
				.was_named = true},
			NULL);
	for (size_t i = 0; i < merge_n_outcomes(w->merge); i++) {
		struct merge_outcome o = merge_get_outcome(w->merge, i);

		json_input(j, &o, source_kind_name(o.kind));
	}
	json_array_end(j);
}

/* What was refused is said before the failure, so that it can be understood. */
static int finish(const struct merge_work *w, const char *path)
{
	struct rows r;
	struct err err;

	symbols_rows_begin(&r, w->call, path);
	put_images(&r, w);
	if (r.is_json)
		json_inputs(&r.json, w);
	else
		print_refusals(w);
	rows_end(&r);
	if (w->n_used)
		return w->n_refused ? STATUS_LOSSES : STATUS_DONE;
	err_set(&err, ERR_FAILED,
		"'%s': not written: none of the inputs is a symbol source that can be used", path);
	return command_fail(&err);
}

/* A file of its own, or a change of the one that is there. */
static int write_images(
	const struct merge_work *w, const char *path, bool is_new, struct err *err)
{
	struct catalog_fact_pair facts[FACTS_MAX];
	struct span *spans = mem_calloc(w->images.n, sizeof(*spans));
	struct catalog_change change = {.add = spans,
		.n_add = w->images.n,
		.facts = facts,
		.has_base = !is_new,
		.base_generation = w->base ? catalog_stats(w->base).generation : 0};
	int rc;

	for (size_t i = 0; i < w->images.n; i++)
		spans[i] = merge_get_image(w->merge, i);
	if (!w->base) /* it is made here and now */
		change.n_facts = facts_of_this_system(facts, w->call);
	rc = is_new ? catalog_write_new(path, &change, err) : catalog_apply(path, &change, err);
	for (size_t i = 0; i < change.n_facts; i++)
		free((char *)facts[i].value);
	free(spans);
	return rc;
}

int symbols_merge(const struct symbols_call *call, struct err *err)
{
	struct merge_work w = {.call = call};
	int status, rc;

	if (!call->args->output)
		return options_usage_error(
			call->command, "merge needs -o FILE (add has a default)");
	if (!n_inputs(call))
		return options_usage_error(call->command, "merge needs a path, --pid or --kernel");
	rc = run_merge(&w, err);
	if (rc == 0 && w.images.n)
		rc = write_images(&w, call->args->output, true, err);
	status = rc < 0 ? rc : finish(&w, call->args->output);
	work_release(&w);
	return status;
}

static int add_once(struct merge_work *w, const char *path, struct err *err)
{
	int rc = catalog_open(&w->base, path, err);

	if (rc == 0)
		symbols_say_notes(w->base, path);
	if (rc == ERR_NOT_FOUND)
		rc = 0;
	if (rc == 0)
		rc = run_merge(w, err);
	if (rc == 0 && w->images.n)
		rc = write_images(w, path, false, err);
	return rc;
}

int symbols_add(const struct symbols_call *call, struct err *err)
{
	struct merge_work w = {.call = call};
	const char *path;
	int status, rc;

	if (!n_inputs(call))
		return options_usage_error(call->command, "add needs a path, --pid or --kernel");
	rc = symbols_catalog_path(call, &path, err);
	if (rc == 0)
		rc = add_once(&w, path, err);
	/* What joins an image must join the image that is there, so another writer's change is
	 * looked at before ours is made. */
	for (int i = 0; rc == ERR_CHANGED && i < ADD_TRIES_MAX; i++) {
		work_release(&w);
		w = (struct merge_work){.call = call};
		rc = add_once(&w, path, err);
	}
	status = rc < 0 ? rc : finish(&w, path);
	work_release(&w);
	return status;
}
