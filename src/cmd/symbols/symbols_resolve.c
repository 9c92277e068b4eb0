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

#define LINES_BYTES_MAX 65536 /* of standard input; a longer line is cut */

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

/* Lines of standard input. Those that have come are answered before others are waited for, so that a
 * program can ask and read the answer; a file is taken as a whole. */
struct line_reader {
	char bytes[LINES_BYTES_MAX];
	size_t n;
	bool is_file;
	bool is_over;
};

static void add_line(struct resolve *r, const char *line, size_t n)
{
	while (n && (*line == ' ' || *line == '\t'))
		line++, n--;
	for (size_t i = 0; i < n; i++)
		if (strchr(" \t\r", line[i]))
			n = i;
	if (n)
		add_query(r, line, n);
}

/* All whole lines; at the end, or when a line is too long, also one without an end. */
static void take_lines(struct resolve *r, struct line_reader *in)
{
	size_t at = 0;
	char *end;

	while ((end = memchr(in->bytes + at, '\n', in->n - at))) {
		add_line(r, in->bytes + at, (size_t)(end - in->bytes) - at);
		at = (size_t)(end - in->bytes) + 1;
	}
	if (in->is_over || (!at && in->n == sizeof(in->bytes))) {
		add_line(r, in->bytes + at, in->n - at);
		at = in->n;
	}
	in->n -= at;
	memmove(in->bytes, in->bytes + at, in->n);
}

/* Waits for lines, once; of a file all come. */
static void read_lines(struct resolve *r, struct line_reader *in)
{
	do {
		ssize_t n = read(STDIN_FILENO, in->bytes + in->n, sizeof(in->bytes) - in->n);

		if (n < 0 && errno == EINTR)
			continue;
		in->is_over = n <= 0;
		in->n += n > 0 ? (size_t)n : 0;
		take_lines(r, in);
	} while (!in->is_over && (in->is_file || !r->queries.n));
}

/* 0, or STATUS_USAGE with its sentence said: an operand must be an address, a line of standard
 * input need not. */
static int check_operands(const struct resolve *r)
{
	bool is_in_trace = r->call->args->trace != NULL;

	for (size_t i = 0; i < r->call->n_operands; i++) {
		char *text = r->call->operands[i];
		struct resolve_query q = {.text = text};

		if (strcmp(text, "-") && !parse_query(&q, is_in_trace))
			return options_usage_error(r->call->command, "resolve: '%s' is not %s",
				text,
				is_in_trace ? "ADDR, PID:ADDR or PID:ADDR@TIME" : "an address");
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

/* Of a file only what is asked for is read, until more is asked for. */
static void search_target(struct resolve *r, struct resolve_target *t)
{
	bool is_again = t->found.path != NULL;
	struct symbols_search search = {
		.catalog = r->catalog,
		.no_files = r->call->args->no_search,
		.addrs = is_again ? NULL : t->addrs.v,
		.n_addrs = is_again ? 0 : t->addrs.n,
		.columns = true,
		.n_threads = symbols_n_threads(r->call),
	};

	symbols_found_release(&t->found);
	free(t->reason);
	free(t->from);
	t->from = NULL;
	symbols_find(&t->found, &t->identity, &search);
	t->is_whole = is_again || !t->found.path;
	t->image = t->found.image;
	t->rung = t->found.rung;
	t->reason = mem_strdup(t->found.reason ? t->found.reason : "");
	memcpy(t->image_id, t->found.catalog_id, sizeof(t->image_id));
	if (t->image && t->found.path && !is_again)
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

		if (!t->addrs.n || t->is_whole)
			continue;
		sort_u64(t->addrs.v, t->addrs.n);
		t->is_whole = true;
		if (t->is_named)
			open_named_target(r, t);
		else if (t->has_identity)
			search_target(r, t);
		else if (t->files[0] || t->is_kernel || t->memory.n)
			make_target(r, t);
		t->addrs.n = 0;
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
static int find_image(struct resolve *r, const char *name, struct err *err)
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
		r->image_target = target;
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
	r->image_target = target;
	return 0;
}

/* Where the addresses are looked for; fails when that is nowhere. */
static int open_place(struct resolve *r, struct err *err)
{
	const struct symbols_arguments *args = r->call->args;

	if (args->image)
		return find_image(r, args->image, err);
	return args->trace ? resolve_open_trace(r, args->trace, err) : 0;
}

static int place(struct resolve *r, struct err *err)
{
	const struct symbols_arguments *args = r->call->args;

	if (args->trace)
		return resolve_place_in_trace(r, args->trace, err);
	if (!args->image)
		return resolve_place_in_process(r, (pid_t)args->pid, err);
	place_all(r, r->image_target);
	return 0;
}

static void release_queries(struct resolve *r)
{
	for (size_t i = 0; i < r->queries.n; i++) {
		free(r->queries.v[i].text);
		free(r->queries.v[i].reason);
	}
	r->queries.n = 0;
}

/* Answers what was asked so far. */
static int answer_queries(struct resolve *r, struct err *err)
{
	int rc = place(r, err);

	if (rc < 0)
		return rc;
	find_symbols_of_targets(r);
	resolve_print(r);
	release_queries(r);
	return 0;
}

static int answer_stdin(struct resolve *r, struct err *err)
{
	struct line_reader *in = mem_zalloc(sizeof(*in));
	struct stat st;
	int rc = 0;

	in->is_file = fstat(STDIN_FILENO, &st) == 0 && S_ISREG(st.st_mode);
	while (rc == 0 && !in->is_over) {
		read_lines(r, in);
		if (r->queries.n)
			rc = answer_queries(r, err);
	}
	free(in);
	return rc;
}

static int answer_all(struct resolve *r, struct err *err)
{
	int rc = open_place(r, err);

	for (size_t i = 0; rc == 0 && i < r->call->n_operands; i++) {
		const char *text = r->call->operands[i];
		bool is_stdin = !strcmp(text, "-");

		if (!is_stdin)
			add_query(r, text, strlen(text));
		if (is_stdin && r->queries.n)
			rc = answer_queries(r, err);
		if (rc == 0 && is_stdin)
			rc = answer_stdin(r, err);
	}
	if (rc == 0)
		rc = answer_queries(r, err);
	if (rc == 0)
		resolve_print_end(r);
	return rc;
}

static void resolve_release(struct resolve *r)
{
	release_queries(r);
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
	struct resolve r = {.call = call, .image_target = RESOLVE_NO_TARGET};
	int status;

	if ((args->image != NULL) + (args->trace != NULL) + (args->pid != SYMBOLS_NUMBER_ABSENT) !=
		1)
		return options_usage_error(
			call->command, "resolve needs one of --image, --pid and --trace");
	status = check_operands(&r);
	if (status == 0)
		status = symbols_catalog_open_if_any(call, &r.catalog, err);
	if (status == 0)
		status = answer_all(&r, err);
	if (status == 0)
		status = r.n_unresolved ? STATUS_LOSSES : STATUS_DONE;
	resolve_release(&r);
	return status;
}
