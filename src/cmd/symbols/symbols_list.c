/* SPDX-License-Identifier: MIT */
/* weir symbols list, remove, compact and stats: the merged symbol file as a whole. */
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "cmd/symbols/symbols_verbs.h"

/* --- list --- */

static bool is_asked_for(const struct symbols_call *call, const struct catalog_entry *e)
{
	for (size_t i = 0; i < call->n_operands; i++) {
		const char *name = call->operands[i];

		if (!strcmp(name, e->base_name) || !fnmatch(name, e->path, 0) ||
			!fnmatch(name, path_base_name(e->path), 0))
			return true;
	}
	return !call->n_operands;
}

static const struct column list_columns[] = {
	SYMBOLS_ENTRY_COLUMNS,
	{"bytes", "Bytes", 0},
	{"Path", "Path", 0},
	{0},
};

static void list(const struct symbols_call *call)
{
	struct rows r;

	symbols_rows_begin(&r, call, call->catalog_path);
	rows_open(&r, "rows", list_columns);
	for (size_t i = 0; i < catalog_n(call->catalog); i++) {
		struct catalog_entry e = catalog_get(call->catalog, i);

		if (!is_asked_for(call, &e))
			continue;
		row_begin(&r, TABLE_STYLE_PLAIN);
		symbols_put_entry(&r, &e);
		row_end(&r);
	}
	rows_end_plain(&r);
}

/* 0 when some image is asked for, or none by name. */
static int check_names(const struct symbols_call *call, struct err *err)
{
	bool is_good = !call->n_operands;

	for (size_t i = 0; !is_good && i < catalog_n(call->catalog); i++) {
		struct catalog_entry e = catalog_get(call->catalog, i);

		is_good = is_asked_for(call, &e);
	}
	return is_good ? 0
		       : err_set(err, ERR_NOT_FOUND, "'%s': has no image named '%s'",
				 call->catalog_path, call->operands[0]);
}

int symbols_list(const struct symbols_call *call, struct err *err)
{
	int rc = check_names(call, err);

	if (rc == 0)
		list(call);
	return rc;
}

/* --- remove --- */

struct removal {
	char id[17];
	char *path;
};

static int choose_removals(
	const struct symbols_call *call, struct removal *removals, size_t *n, struct err *err)
{
	for (size_t i = 0; i < call->n_operands; i++) {
		struct catalog_entry e;
		size_t image, k = 0;
		int rc = symbols_catalog_choose(call->catalog, call->operands[i], &image, err);

		if (rc < 0)
			return rc;
		e = catalog_get(call->catalog, image);
		while (k < *n && strcmp(removals[k].id, e.id))
			k++;
		if (k < *n)
			continue; /* named twice */
		memcpy(removals[*n].id, e.id, sizeof(e.id));
		removals[(*n)++].path = mem_strdup(e.path);
	}
	return 0;
}

static void print_removals(
	const struct symbols_call *call, const struct removal *removals, size_t n)
{
	struct json j;

	if (!call->args->json) {
		for (size_t i = 0; i < n && !call->args->quiet; i++)
			printf("removed %s %s\n", removals[i].id, removals[i].path);
		return;
	}
	symbols_json_begin(&j, call);
	json_string(&j, "catalog", call->catalog_path);
	json_array_begin(&j, "rows");
	for (size_t i = 0; i < n; i++) {
		json_newline(&j);
		json_object_begin(&j, NULL);
		json_string(&j, "id", removals[i].id);
		json_string(&j, "path", removals[i].path);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_object_end(&j);
}

/* All or nothing: one image that cannot be found keeps the others. */
int symbols_remove(const struct symbols_call *call, struct err *err)
{
	struct removal *removals = mem_calloc(call->n_operands, sizeof(*removals));
	const char **ids = mem_calloc(call->n_operands, sizeof(*ids));
	size_t n = 0;
	int rc = choose_removals(call, removals, &n, err);

	for (size_t i = 0; i < n; i++)
		ids[i] = removals[i].id;
	if (rc == 0)
		rc = catalog_apply(call->catalog_path,
			&(struct catalog_change){.remove = ids, .n_remove = n}, err);
	if (rc == 0)
		print_removals(call, removals, n);
	for (size_t i = 0; i < n; i++)
		free(removals[i].path);
	free(removals);
	free(ids);
	return rc;
}

/* --- compact --- */

int symbols_compact(const struct symbols_call *call, struct err *err)
{
	struct catalog_stats before, after;
	struct catalog *c;
	struct json j;
	int rc = symbols_catalog_open(call, &c, err);

	if (rc < 0)
		return rc;
	before = catalog_stats(c);
	catalog_close(c);
	rc = catalog_compact(call->catalog_path, err);
	if (rc == 0)
		rc = catalog_open(&c, call->catalog_path, err);
	if (rc < 0)
		return rc;
	after = catalog_stats(c);
	catalog_close(c);
	if (call->args->json) {
		symbols_json_begin(&j, call);
		json_string(&j, "catalog", call->catalog_path);
		json_u64(&j, "bytes_before", before.file_bytes);
		json_u64(&j, "bytes", after.file_bytes);
		json_u64(&j, "images", after.n_images);
		json_object_end(&j);
	} else if (!call->args->quiet) {
		printf("%s: %" PRIu64 " bytes, was %" PRIu64 " (%" PRIu64 " images)\n",
			call->catalog_path, after.file_bytes, before.file_bytes, after.n_images);
	}
	return STATUS_DONE;
}

/* --- stats --- */

struct kind_count {
	uint64_t n_sources, n_offered, n_accepted;
};

static int count_kinds(const struct catalog *c, struct kind_count *counts, struct err *err)
{
	for (size_t i = 0; i < catalog_n(c); i++) {
		struct catalog_image *image;
		int rc = catalog_open_image(c, i, &image, err);

		if (rc < 0)
			return rc;
		for (size_t k = 0; k < catalog_image_n_sources(image); k++) {
			struct catalog_source s = catalog_image_source(image, k);

			if ((unsigned)s.kind >= SYMBOL_N_SOURCES)
				continue;
			counts[s.kind].n_sources++;
			counts[s.kind].n_offered += s.n_offered;
			counts[s.kind].n_accepted += s.n_accepted;
		}
		catalog_image_close(image);
	}
	return 0;
}

static void stats_text(const struct symbols_call *call)
{
	const struct catalog *c = call->catalog;
	struct catalog_stats s = catalog_stats(c);
	const char *key, *value;

	printf("%s\n", call->catalog_path);
	for (size_t i = 0; (value = catalog_fact(c, i, &key)); i++) {
		printf("  %-11s ", key);
		for (const char *p = value; *p; p++) /* lists have a line for each item */
			*p == '\n' ? (void)printf("\n  %-11s ", "") : (void)putchar(*p);
		putchar('\n');
	}
	printf("  %-11s %" PRIu64 " (live %" PRIu64 ", dead %" PRIu64 ")\n", "bytes", s.file_bytes,
		s.live_bytes, s.dead_bytes);
	printf("  %-11s %" PRIu64 "\n", "generation", s.generation);
	printf("  %-11s %" PRIu64 "\n", "images", s.n_images);
	printf("  %-11s %" PRIu64 "\n", "symbols", s.n_symbols);
	printf("  %-11s %" PRIu64 "\n\n", "lines", s.n_rows);
}

static void stats_json(struct json *j, const struct catalog *c)
{
	struct catalog_stats s = catalog_stats(c);
	const char *key, *value;

	json_object_begin(j, "facts");
	for (size_t i = 0; (value = catalog_fact(c, i, &key)); i++)
		json_string(j, key, value);
	json_object_end(j);
	json_u64(j, "bytes", s.file_bytes);
	json_u64(j, "live_bytes", s.live_bytes);
	json_u64(j, "dead_bytes", s.dead_bytes);
	json_u64(j, "generation", s.generation);
	json_u64(j, "images", s.n_images);
	json_u64(j, "symbols", s.n_symbols);
	json_u64(j, "lines", s.n_rows);
	json_array_begin(j, "rows"); /* on this line */
}

int symbols_stats(const struct symbols_call *call, struct err *err)
{
	static const struct column columns[] = {
		{"number", "Number", 0},
		{"offered", "Offered", 0},
		{"accepted", "Accepted", 0},
		{"source", "Source", 0},
		{0},
	};
	struct kind_count counts[SYMBOL_N_SOURCES] = {0};
	struct rows r;
	int rc = count_kinds(call->catalog, counts, err);

	if (rc < 0)
		return rc;
	symbols_rows_begin(&r, call, call->catalog_path);
	if (r.is_json) {
		stats_json(&r.json, call->catalog);
	} else {
		stats_text(call);
		rows_open(&r, NULL, columns);
	}
	for (size_t kind = 1; kind < SYMBOL_N_SOURCES; kind++) {
		if (!counts[kind].n_sources)
			continue;
		row_begin(&r, TABLE_STYLE_PLAIN);
		row_string(&r, "source", symbol_source_name((enum symbol_source)kind));
		row_number(&r, "number", counts[kind].n_sources);
		row_number(&r, "offered", counts[kind].n_offered);
		row_number(&r, "accepted", counts[kind].n_accepted);
		row_end(&r);
	}
	rows_end_plain(&r);
	return STATUS_DONE;
}
