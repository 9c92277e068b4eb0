/* SPDX-License-Identifier: MIT */
#include "cmd/counted_files.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/mem.h"

extern const struct command command_count;

static bool is_foreign(void *context, const char *name)
{
	struct counted_files *c = context;

	return !link_names_defines(&c->names, name) ||
	       (c->has_seen_all && link_names_is_left(&c->names, name));
}

static bool is_timed(void *context, const char *name)
{
	struct counted_files *c = context;

	return insert_setup_times(&c->setup, name);
}

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names of functions without inserted code, in an order that depends on nothing else. */
static void hash_foreign(
	struct counted_files *c, const struct link_file *f, struct content_hash *hash)
{
	struct option_texts foreign = {0};

	for (size_t i = 0; i < f->wanted.n; i++) {
		const char *name = intern_get(&c->names.names, f->wanted.v[i]);

		if (is_foreign(c, name))
			vec_push(&foreign, name);
	}
	vec_sort(&foreign, compare_texts);
	content_hash_add_u64(hash, foreign.n);
	for (size_t i = 0; i < foreign.n; i++)
		content_hash_add_text(hash, foreign.v[i]);
	vec_release(&foreign);
}

static void hash_file(
	struct counted_files *c, const struct link_file *f, char hex[2 * CONTENT_HASH_BYTES + 1])
{
	struct content_hash hash;

	content_hash_init(&hash);
	content_hash_add_text(&hash, "weir insert " WEIR_VERSION);
	for (size_t i = 0; i < 3; i++)
		content_hash_add_u64(&hash, c->identity[i]);
	insert_setup_hash(&c->setup, &hash);
	content_hash_add_u64(&hash, c->setup.options.leaves_lto);
	content_hash_add_text(
		&hash, c->setup.options.object_name ? c->setup.options.object_name : "");
	hash_foreign(c, f, &hash);
	link_file_hash(f, &hash);
	content_hash_hex(&hash, hex);
}

void counted_files_say(
	const struct counted_files *c, const char *path, const struct insert_report *report)
{
	if (c->arguments->verbose) {
		fputs("weir: ", stderr);
		insert_print_summary(path, report, stderr);
		insert_print_functions(report, true, stderr);
	} else if (!c->arguments->quiet) {
		insert_print_notes(path, report);
	}
}

static int insert_and_store(
	struct counted_files *c, const struct link_file *f, const char *hex, struct err *err)
{
	struct buf object = {0}, report_bytes = {0};
	struct insert_report report = {0};
	int rc = insert_file(f->map.bytes, f->path, &c->setup.options, &object, &report, err);

	if (rc == 0) {
		insert_report_put(&report, &report_bytes);
		rc = object_cache_store(
			&c->cache, hex, buf_span(&object), buf_span(&report_bytes), err);
		c->has_stored = true;
	}
	insert_report_release(&report);
	buf_release(&object);
	buf_release(&report_bytes);
	return rc;
}

static void forget_copy(struct counted_file *f)
{
	free(f->copy);
	f->copy = NULL;
	insert_report_release(&f->report);
	f->report = (struct insert_report){0};
}

static void insert_one(struct counted_files *c, struct counted_file *f)
{
	const char *name = path_base_name(f->file.path);
	struct buf report_bytes = {0};
	char hex[2 * CONTENT_HASH_BYTES + 1];
	struct err err = {0};

	forget_copy(f);
	hash_file(c, &f->file, hex);
	f->copy = object_cache_find(&c->cache, hex, name, &report_bytes);
	if (!f->copy) {
		if (insert_and_store(c, &f->file, hex, &err) < 0) {
			fprintf(stderr, "weir: '%s': %s (linked as it is)\n", f->file.path,
				err.text);
			f->failure = mem_strdup(err.text);
			buf_release(&report_bytes);
			return;
		}
		buf_reset(&report_bytes);
		f->copy = object_cache_find(&c->cache, hex, name, &report_bytes);
	}
	if (f->copy)
		insert_report_get(&f->report, buf_span(&report_bytes), NULL);
	else
		f->failure = mem_strdup("its copy is not in the cache any more");
	buf_release(&report_bytes);
}

bool counted_file_is_inserted(const struct counted_file *f)
{
	return f->file.kind == LINK_FILE_OBJECT || f->file.kind == LINK_FILE_ARCHIVE;
}

/* Does it call a function of another object that is left alone? */
static bool wants_left(const struct counted_files *c, const struct link_file *f)
{
	for (size_t i = 0; i < f->wanted.n; i++)
		if (c->names.is_left.v[f->wanted.v[i]])
			return true;
	return false;
}

/* Which functions are left alone is known when all objects have been looked at. Those that call them then
 * are inserted once more. */
void counted_files_insert(struct counted_files *c)
{
	for (size_t i = 0; i < c->files.n; i++) {
		struct counted_file *f = &c->files.v[i];

		if (counted_file_is_inserted(f))
			insert_one(c, f);
		for (size_t k = 0; k < f->report.left_names.n; k++)
			link_names_leave(&c->names, f->report.left_names.v[k]);
		for (size_t k = 0; f->failure && k < f->file.defined.n; k++)
			c->names.is_left.v[f->file.defined.v[k]] = true;
	}
	c->has_seen_all = true;
	for (size_t i = 0; i < c->files.n; i++)
		if (c->files.v[i].copy && counted_file_is_inserted(&c->files.v[i]) &&
			wants_left(c, &c->files.v[i].file))
			insert_one(c, &c->files.v[i]);
}

/* ---- files ---- */

size_t counted_files_open(struct counted_files *c, const char *path)
{
	struct counted_file f = {0};

	for (size_t i = 0; i < c->files.n; i++)
		if (!strcmp(c->files.v[i].file.path, path))
			return i;
	if (link_file_open(&f.file, path, &c->names, NULL) < 0)
		return SIZE_MAX; /* the linker will say why */
	vec_push(&c->files, f);
	return c->files.n - 1;
}

char *counted_files_store(struct counted_files *c, struct span bytes, const char *name)
{
	struct insert_report nothing = {0};
	struct buf report_bytes = {0};
	struct content_hash hash;
	char hex[2 * CONTENT_HASH_BYTES + 1], *path;

	content_hash_init(&hash);
	content_hash_add(&hash, bytes);
	content_hash_hex(&hash, hex);
	path = object_cache_find(&c->cache, hex, name, &report_bytes);
	buf_reset(&report_bytes);
	insert_report_put(&nothing, &report_bytes);
	if (!path && !object_cache_store(&c->cache, hex, bytes, buf_span(&report_bytes), NULL)) {
		buf_reset(&report_bytes);
		path = object_cache_find(&c->cache, hex, name, &report_bytes);
	}
	buf_release(&report_bytes);
	return path;
}

int counted_files_init(struct counted_files *c, const struct insert_arguments *a)
{
	int status;

	memset(c, 0, sizeof(*c));
	c->arguments = a;
	status = insert_setup_init(&c->setup, &command_count, a);
	c->setup.options.is_foreign = is_foreign;
	c->setup.options.is_timed = is_timed;
	c->setup.options.foreign_context = c;
	return status;
}

int counted_files_begin(struct counted_files *c, struct err *err)
{
	struct stat st;

	if (stat("/proc/self/exe", &st) == 0) {
		c->identity[0] = (uint64_t)st.st_size;
		c->identity[1] = (uint64_t)st.st_mtim.tv_sec;
		c->identity[2] = (uint64_t)st.st_mtim.tv_nsec;
	}
	return object_cache_open(&c->cache, c->arguments->no_cache, err);
}

void counted_files_end(struct counted_files *c)
{
	if (c->has_stored)
		object_cache_trim(&c->cache, CACHE_BYTES_MAX);
	object_cache_close(&c->cache);
}

void counted_files_release(struct counted_files *c)
{
	for (size_t i = 0; i < c->files.n; i++) {
		link_file_release(&c->files.v[i].file);
		forget_copy(&c->files.v[i]);
		free(c->files.v[i].failure);
	}
	vec_release(&c->files);
	link_names_release(&c->names);
	insert_setup_release(&c->setup);
}
