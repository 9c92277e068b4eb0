/* SPDX-License-Identifier: MIT */
/*
 * weir symbols verify: for each module that a trace uses, the symbols that it gets here and now,
 * the rung on which they stand, and every other candidate with the reason why it is not the one.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cmd/open_trace.h"
#include "cmd/symbols/symbols_verbs.h"
#include "symbols/catalog/find_symbols.h"
#include "symbols/image_identity.h"
#include "symbols/resolve/module_map.h"

struct verification {
	const struct symbols_call *call;
	struct trace_reader *reader;
	bool *is_used;		   /* by image */
	size_t n_modules, n_exact; /* of the used ELF modules */
	struct json json;
};

/* Used: a frame is in it, or the address index says that some record was. */
static int find_used(struct verification *v, struct err *err)
{
	struct module_map *modules;
	int rc = module_map_new(&modules, v->reader, err);

	if (rc < 0)
		return rc;
	v->is_used = mem_calloc(trace_reader_n_images(v->reader) + 1, sizeof(*v->is_used));
	for (size_t i = 0; i < module_map_n(modules); i++)
		if (module_map_get(modules, i)->is_used)
			v->is_used[module_map_get(modules, i)->image] = true;
	module_map_free(modules);
	for (uint32_t id = 1; id < trace_reader_n_frames(v->reader); id++)
		v->is_used[trace_reader_frame(v->reader, id)->image] = true;
	v->is_used[0] = false;
	return 0;
}

/* --- text --- */

static const char *word_for(const struct symbols_found *f, size_t i)
{
	const struct match_verdict *v = &f->candidates.v[i].verdict;

	if (i == 0 && f->rung)
		return "chosen";
	if (v->is_vetoed || !v->rung)
		return "refused";
	return v->rung == f->rung ? "equal" : "weaker";
}

/* Code without a file cannot be looked for: what the recording found is all there is. */
static bool is_well(const struct trace_image *image, const struct symbols_found *f,
	const struct trace_match *recorded)
{
	if (f->names_rung >= MATCH_CHECKSUM)
		return !f->n_tied;
	return image->kind != IMAGE_KIND_ELF && recorded && recorded->rung >= MATCH_CHECKSUM;
}

static void print_module(
	const struct verification *v, uint32_t image, const struct symbols_found *f)
{
	const struct trace_image *t = trace_reader_image(v->reader, image);
	const struct trace_match *recorded = trace_reader_match(v->reader, image);

	if (v->call->args->quiet && is_well(t, f, recorded))
		return;
	printf("%-9s %-6s %s\n", match_rung_name(f->names_rung), image_kind_name(t->kind),
		trace_reader_string(v->reader, t->path));
	for (size_t i = 0; i < f->candidates.n; i++)
		printf("    %s %s: %s\n", word_for(f, i), f->candidates.v[i].where,
			f->candidates.v[i].verdict.reason);
	if (!f->rung || f->n_tied || f->names_rung < f->rung)
		printf("    %s\n", f->reason);
	if (recorded && recorded->rung > f->names_rung && recorded->rung < MATCH_N_RUNGS)
		printf("    when recorded: %s: %s\n",
			match_rung_name((enum match_rung)recorded->rung),
			trace_reader_string(v->reader, recorded->reason));
}

/* --- JSON --- */

static void json_candidates(struct json *j, const struct symbols_found *f)
{
	json_array_begin(j, "candidates");
	for (size_t i = 0; i < f->candidates.n; i++) {
		const struct symbols_candidate *c = &f->candidates.v[i];

		json_object_begin(j, NULL);
		json_string(j, "where", c->where);
		json_string(j, "verdict", word_for(f, i));
		json_string(j, "match", match_rung_name(c->verdict.rung));
		json_string(j, "reason", c->verdict.reason);
		json_object_end(j);
	}
	json_array_end(j);
}

/* What the recorder found when it named the frames. */
static void json_recorded(struct json *j, const struct verification *v, uint32_t image)
{
	const struct trace_match *m = trace_reader_match(v->reader, image);

	if (!m || m->rung >= MATCH_N_RUNGS) {
		json_null(j, "recorded");
		return;
	}
	json_object_begin(j, "recorded");
	json_string(j, "match", match_rung_name((enum match_rung)m->rung));
	report_json_text(j, "reason", trace_reader_string(v->reader, m->reason));
	json_object_end(j);
}

static void json_module(struct verification *v, uint32_t image, const struct symbols_found *f)
{
	const struct trace_image *t = trace_reader_image(v->reader, image);
	struct json *j = &v->json;

	json_newline(j);
	json_object_begin(j, NULL);
	json_string(j, "path", trace_reader_string(v->reader, t->path));
	json_string(j, "kind", image_kind_name(t->kind));
	symbols_json_hex(j, "build_id", (struct span){t->build_id, t->build_id_n});
	json_string(j, "match", match_rung_name(f->names_rung));
	json_string(j, "image_match", match_rung_name(f->rung));
	report_json_text(j, "reason", f->reason);
	report_json_text(j, "image", f->catalog_id);
	json_string(j, "file", f->path);
	json_u64_if(j, "symbols", f->image, f->image ? catalog_image_n_symbols(f->image) : 0);
	json_u64(j, "tied", f->n_tied);
	json_candidates(j, f);
	json_recorded(j, v, image);
	json_object_end(j);
}

/* --- */

/* The running kernel is a candidate that is neither in a catalog nor at a path. */
static void judge_running_kernel(struct symbols_found *f, const struct image_identity *wanted)
{
	struct symbols_candidate c = {
		.where = mem_strdup("the running kernel"), .catalog_i = SIZE_MAX};
	struct image_identity running;

	kernel_identity(&running);
	match_judge(wanted, &running, c.where, &c.verdict);
	image_identity_release(&running);
	if (c.verdict.rung > f->rung) {
		f->rung = f->names_rung = c.verdict.rung;
		free(f->reason);
		f->reason = mem_printf("%s: %s", c.where, c.verdict.reason);
		vec_insert(&f->candidates, 0, c);
	} else {
		vec_push(&f->candidates, c);
	}
}

static void verify_module(struct verification *v, uint32_t image)
{
	struct symbols_search search = {.catalog = v->call->catalog,
		.no_files = v->call->args->no_search,
		.n_threads = symbols_n_threads(v->call)};
	static const uint64_t no_addresses[1];
	struct image_identity wanted;
	struct symbols_found found;

	/* Which symbols it would get is asked here, not what they say: no line table is read. */
	search.addrs = no_addresses;
	trace_image_identity(&wanted, v->reader, image);
	symbols_find(&found, &wanted, &search);
	if (wanted.kind == IMAGE_KIND_KERNEL && found.rung != MATCH_BUILD_ID && !search.no_files)
		judge_running_kernel(&found, &wanted);
	if (wanted.kind == IMAGE_KIND_ELF) {
		v->n_modules++;
		v->n_exact += found.names_rung >= MATCH_CHECKSUM && !found.n_tied;
	}
	if (v->call->args->json)
		json_module(v, image, &found);
	else
		print_module(v, image, &found);
	symbols_found_release(&found);
	image_identity_release(&wanted);
}

static void verify_modules(struct verification *v, const char *path)
{
	if (v->call->args->json) {
		symbols_json_begin(&v->json, v->call);
		json_string(&v->json, "trace", path);
		json_string(&v->json, "catalog", v->call->catalog ? v->call->catalog_path : NULL);
		json_newline(&v->json);
		json_array_begin(&v->json, "rows");
	}
	for (uint32_t id = 1; id < trace_reader_n_images(v->reader); id++)
		if (v->is_used[id])
			verify_module(v, id);
	if (v->call->args->json) {
		json_array_end(&v->json);
		json_newline(&v->json);
		json_u64(&v->json, "modules", v->n_modules);
		json_u64(&v->json, "verified", v->n_exact);
		json_object_end(&v->json);
	} else if (!v->call->args->quiet) {
		printf("%zu of %zu modules stand on rung build-id or checksum\n", v->n_exact,
			v->n_modules);
	}
}

int symbols_verify(const struct symbols_call *call, struct err *err)
{
	const char *path = call->n_operands ? call->operands[0] : "trace.weir";
	struct verification v = {.call = call};
	int rc = open_trace_plain(&v.reader, path, err);

	if (rc == 0)
		rc = find_used(&v, err);
	if (rc == 0)
		verify_modules(&v, path);
	free(v.is_used);
	trace_reader_close(v.reader);
	if (rc < 0)
		return rc;
	return v.n_exact == v.n_modules ? STATUS_DONE : STATUS_LOSSES;
}
