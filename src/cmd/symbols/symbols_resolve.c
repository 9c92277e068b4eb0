/* SPDX-License-Identifier: MIT */
/* weir symbols resolve: from addresses to functions, inline chains, files and lines. */
#include "cmd/symbols/symbols_resolve.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/sort.h"
#include "symbols/catalog/image_make.h"

#define LINE_BYTES_MAX 4096 /* of standard input */

/* --- queries --- */

static bool take_hex(const char **p, uint64_t *out)
{
	const char *start = *p;
	char *end;

	if (start[0] == '0' && (start[1] == 'x' || start[1] == 'X'))
		start += 2;
	if (!strchr("0123456789abcdefABCDEF", *start) || !*start)
		return false;
	errno = 0;
	*out = strtoull(start, &end, 16);
	*p = end;
	return !errno;
}

static bool take_pid(const char **p, uint32_t *out)
{
	char *end;
	unsigned long pid;

	if (**p < '0' || **p > '9')
		return false;
	errno = 0;
	pid = strtoul(*p, &end, 10);
	if (errno || pid > INT32_MAX || *end != ':')
		return false;
	*out = (uint32_t)pid;
	*p = end + 1;
	return true;
}

/* ADDR, or in a trace [PID:]ADDR[@TIME]. */
static bool parse_query(struct resolve_query *q, bool is_in_trace)
{
	const char *p = q->text;

	if (is_in_trace && strchr(p, ':')) {
		if (!take_pid(&p, &q->pid))
			return false;
		q->has_pid = true;
	}
	if (!take_hex(&p, &q->addr))
		return false;
	if (is_in_trace && *p == '@') {
		q->has_time = option_parse_time(p + 1, &q->time);
		return q->has_time;
	}
	return !*p;
}

static void add_query(struct resolve *r, const char *text, size_t n)
{
	struct resolve_query q = {.text = mem_strndup(text, n), .target = RESOLVE_NO_TARGET};

	q.is_valid = parse_query(&q, r->call->args->trace != NULL);
	if (!q.is_valid)
		resolve_query_refuse(&q, "'%s' is not an address", q.text);
	vec_push(&r->queries, q);
}

static void add_queries_of_stdin(struct resolve *r)
{
	char line[LINE_BYTES_MAX];

	while (fgets(line, sizeof(line), stdin)) {
		const char *start = line + strspn(line, " \t");
		size_t n = strcspn(start, " \t\r\n");

		if (n)
			add_query(r, start, n);
	}
}

/* 0, or STATUS_USAGE with its sentence said: an operand must be an address, a line of standard
 * input need not. */
static int take_queries(struct resolve *r)
{
	for (size_t i = 0; i < r->call->n_operands; i++) {
		const char *text = r->call->operands[i];

		if (!strcmp(text, "-")) {
			add_queries_of_stdin(r);
			continue;
		}
		add_query(r, text, strlen(text));
		if (!r->queries.v[r->queries.n - 1].is_valid)
			return options_usage_error(r->call->command, "resolve: '%s' is not %s",
				text,
				r->call->args->trace ? "ADDR, PID:ADDR or PID:ADDR@TIME"
						     : "an address");
	}
	return 0;
}

void resolve_query_refuse(struct resolve_query *q, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	free(q->reason);
	q->reason = mem_vprintf(fmt, ap);
	va_end(ap);
}

void resolve_query_place(struct resolve *r, struct resolve_query *q, size_t target, uint64_t place)
{
	q->target = target;
	q->place = (struct iaddr){place};
	vec_push(&r->targets.v[target].addrs, place);
}

/* --- targets --- */

size_t resolve_add_target(struct resolve *r, const char *path)
{
	vec_push(&r->targets, ((struct resolve_target){.path = mem_strdup(path)}));
	return r->targets.n - 1;
}

size_t resolve_add_file_target(
	struct resolve *r, const char *path, const char *readable, struct err *err)
{
	struct resolve_target *t;
	struct file_map file;
	struct elf_file elf;
	struct stat st;
	size_t target;

	if (file_map_open(&file, readable, err) < 0)
		return RESOLVE_NO_TARGET;
	if (elf_file_init(&elf, file.bytes, err) < 0) {
		err_prefix(err, "'%s'", path);
		file_map_release(&file);
		return RESOLVE_NO_TARGET;
	}
	target = resolve_add_target(r, path);
	t = &r->targets.v[target];
	image_identity_init_elf(&t->identity, &elf, path, stat(readable, &st) == 0 ? &st : NULL,
		elf_file_build_id(&elf).n == 0);
	t->has_identity = true;
	elf_file_release(&elf);
	file_map_release(&file);
	return target;
}

/* What could not be used for the file, as a debug file of another build. */
static void say_image_notes(const struct catalog_image *image)
{
	const char *note = catalog_image_notes(image);

	while (*note) {
		int n = (int)strcspn(note, "\n");

		fprintf(stderr, "weir: %.*s\n", n, note);
		note += n + (note[n] == '\n');
	}
}

static void search_target(struct resolve *r, struct resolve_target *t)
{
	struct symbols_search search = {
		.catalog = r->catalog,
		.no_files = r->call->args->no_search,
		.addrs = t->addrs.v,
		.n_addrs = t->addrs.n,
		.n_threads = symbols_n_threads(r->call),
	};

	symbols_find(&t->found, &t->identity, &search);
	t->image = t->found.image;
	t->rung = t->found.rung;
	t->reason = mem_strdup(t->found.reason ? t->found.reason : "");
	memcpy(t->image_id, t->found.catalog_id, sizeof(t->image_id));
	if (t->image && t->found.path)
		say_image_notes(t->image);
	if (t->found.catalog_id[0])
		t->from = mem_printf("catalog image %s", t->found.catalog_id);
	else if (t->found.path)
		t->from = mem_strdup(t->found.path);
}

/* Symbols of the kernel, or of files that are no ELF image (a perf map, a jitdump). */
static int merge_target(struct resolve *r, struct resolve_target *t, struct err *err)
{
	int rc = 0;

	t->merge = merge_new(&(struct merge_options){
		.n_threads = symbols_n_threads(r->call), .no_search = r->call->args->no_search});
	if (t->is_kernel)
		rc = merge_add_kernel(t->merge, err);
	for (size_t i = 0; rc == 0 && i < 2 && t->files[i]; i++)
		rc = merge_add_path(t->merge, t->files[i], err);
	if (rc == 0)
		rc = merge_run(t->merge, err);
	if (rc == 0 && merge_n_images(t->merge) == 0)
		return err_set(err, ERR_NOT_FOUND, "'%s': %s", t->path,
			merge_n_outcomes(t->merge) ? merge_get_outcome(t->merge, 0).reason
						   : "no symbols are there");
	return rc < 0 ? rc : catalog_image_open(&t->own, merge_get_image(t->merge, 0), err);
}

static int make_from_memory(struct resolve *r, struct resolve_target *t, struct err *err)
{
	struct image_recipe recipe = {.n_threads = symbols_n_threads(r->call)};
	struct elf_file elf;
	int rc = elf_file_init(&elf, buf_span(&t->memory), err);

	if (rc < 0)
		return err_prefix(err, "'%s'", t->path);
	recipe.elf = &elf;
	image_identity_init_elf(&t->identity, &elf, t->path, NULL, false);
	t->identity.kind = IMAGE_KIND_VDSO;
	rc = image_make_open(&t->identity, &recipe, &t->bytes, &t->own, err);
	elf_file_release(&elf);
	return rc;
}

static void make_target(struct resolve *r, struct resolve_target *t)
{
	struct err err = {0};
	int rc = t->memory.n ? make_from_memory(r, t, &err) : merge_target(r, t, &err);

	if (rc < 0) {
		t->reason = mem_strdup(err.text);
		return;
	}
	t->image = t->own;
	t->rung = MATCH_BUILD_ID;
	t->from = mem_strdup(t->is_kernel  ? "/proc/kallsyms"
			     : t->memory.n ? "the process's memory"
					   : t->files[0]);
	t->reason = mem_printf("read from %s itself", t->from);
}

static void open_named_target(struct resolve *r, struct resolve_target *t)
{
	struct err err = {0};

	if (catalog_open_image(r->catalog, t->catalog_i, &t->own, &err) < 0) {
		t->reason = mem_strdup(err.text);
		return;
	}
	t->image = t->own;
	t->rung = MATCH_BUILD_ID;
	memcpy(t->image_id, catalog_image_id(t->own), sizeof(t->image_id));
	t->from = mem_printf("catalog image %s", t->image_id);
	t->reason = mem_strdup("the image that was named");
	image_identity_copy(&t->identity, catalog_image_identity(t->own));
}

static void find_symbols_of_targets(struct resolve *r)
{
	for (size_t i = 0; i < r->targets.n; i++) {
		struct resolve_target *t = &r->targets.v[i];

		sort_u64(t->addrs.v, t->addrs.n);
		if (t->is_named)
			open_named_target(r, t);
		else if (t->has_identity)
			search_target(r, t);
		else if (t->files[0] || t->is_kernel || t->memory.n)
			make_target(r, t);
	}
}

static void target_release(struct resolve_target *t)
{
	catalog_image_close(t->own);
	if (t->has_identity)
		symbols_found_release(&t->found);
	merge_free(t->merge);
	image_identity_release(&t->identity);
	vec_release(&t->addrs);
	free(t->path);
	free(t->files[0]);
	free(t->files[1]);
	buf_release(&t->memory);
	buf_release(&t->bytes);
	free(t->from);
	free(t->reason);
}

/* --- one image --- */

static void place_all(struct resolve *r, size_t target)
{
	for (size_t i = 0; i < r->queries.n; i++)
		if (r->queries.v[i].is_valid)
			resolve_query_place(r, &r->queries.v[i], target, r->queries.v[i].addr);
}

/* An id first; then the file that is there now, so that symbols of another version cannot be taken
 * for its own; then the other ways to name an image of the catalog. */
static int place_in_image(struct resolve *r, const char *name, struct err *err)
{
	size_t image = r->catalog ? symbols_catalog_find_id(r->catalog, name) : SIZE_MAX;
	size_t target;

	if (image == SIZE_MAX && access(name, F_OK) == 0) {
		char *real = realpath(name, NULL);

		target = resolve_add_file_target(r, real ? real : name, name, err);
		free(real);
		if (target == RESOLVE_NO_TARGET && err->code != ERR_FORMAT &&
			err->code != ERR_UNSUPPORTED)
			return err->code;
		if (target == RESOLVE_NO_TARGET) { /* a perf map, a jitdump */
			target = resolve_add_target(r, name);
			r->targets.v[target].files[0] = mem_strdup(name);
		}
		place_all(r, target);
		return 0;
	}
	if (image == SIZE_MAX) {
		int rc =
			r->catalog
				? symbols_catalog_choose(r->catalog, name, &image, err)
				: err_set(err, ERR_NOT_FOUND,
					  "'%s': is no file, and there is no merged symbol file to look for it",
					  name);

		if (rc < 0)
			return rc;
	}
	target = resolve_add_target(r, catalog_get(r->catalog, image).path);
	r->targets.v[target].catalog_i = image;
	r->targets.v[target].is_named = true;
	place_all(r, target);
	return 0;
}

static int place(struct resolve *r, struct err *err)
{
	const struct symbols_arguments *args = r->call->args;

	if (args->image)
		return place_in_image(r, args->image, err);
	if (args->trace)
		return resolve_place_in_trace(r, args->trace, err);
	return resolve_place_in_process(r, (pid_t)args->pid, err);
}

static void resolve_release(struct resolve *r)
{
	for (size_t i = 0; i < r->queries.n; i++) {
		free(r->queries.v[i].text);
		free(r->queries.v[i].reason);
	}
	vec_release(&r->queries);
	for (size_t i = 0; i < r->targets.n; i++)
		target_release(&r->targets.v[i]);
	vec_release(&r->targets);
	resolve_trace_release(r);
	catalog_close(r->catalog);
}

int symbols_resolve(const struct symbols_call *call, struct err *err)
{
	const struct symbols_arguments *args = call->args;
	struct resolve r = {.call = call};
	int status;

	if ((args->image != NULL) + (args->trace != NULL) + (args->pid != SYMBOLS_NUMBER_ABSENT) !=
		1)
		return options_usage_error(
			call->command, "resolve needs one of --image, --pid and --trace");
	status = take_queries(&r);
	if (status == 0)
		status = symbols_catalog_open_if_any(call, &r.catalog, err);
	if (status == 0)
		status = place(&r, err);
	if (status == 0) {
		find_symbols_of_targets(&r);
		status = resolve_print(&r) ? STATUS_LOSSES : STATUS_DONE;
	}
	resolve_release(&r);
	return status;
}
