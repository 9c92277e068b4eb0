/* SPDX-License-Identifier: MIT */
#include "translate/code_files.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

/* Of files whose debug information is kept open; that of others is opened when it is asked for. */
#define EARLY_BYTES_MAX (512u << 20)

enum file_state { FILE_WAITS, FILE_TAKEN, FILE_OPEN };

struct code_file {
	enum file_state state;
	const struct image *image;
	char *path;
	struct ran_file file;
	struct stat stat; /* when it was opened */
	const char *why;  /* it is not there; NULL: it is */
};

struct code_files {
	VEC(struct code_file *) by_image; /* NULL: nobody has asked */
	VEC(struct code_file *) queue;	  /* in the order in which they were expected */
	size_t next;			  /* of the queue; all from here on are guarded by `lock` */
	uint64_t n_bytes;
	bool is_over, has_thread;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
};

/* Behind this nobody but its owner looks at it. */
static void open_one(struct code_file *file)
{
	const struct image *image = file->image;
	const struct ran_identity ran = {.build_id = {image->build_id, image->build_id_n},
		.bytes = image->file_bytes,
		.mtime_ns = image->file_mtime_ns,
		.has_mtime = image->file_mtime_ns};

	if (stat(file->path, &file->stat) < 0)
		file->stat = (struct stat){0};
	if (ran_file_open(&file->file, file->path, &ran, &file->why))
		ran_file_open_debug(&file->file, image->path);
}

/* Called with the lock held, which is free while the file is opened. */
static void take(struct code_files *f, struct code_file *file)
{
	file->state = FILE_TAKEN;
	pthread_mutex_unlock(&f->lock);
	open_one(file);
	pthread_mutex_lock(&f->lock);
	file->state = FILE_OPEN;
	f->n_bytes += file->file.map.bytes.n + file->file.debug.map.bytes.n;
	pthread_cond_broadcast(&f->changed);
}

static void *open_early(void *ctx)
{
	struct code_files *f = ctx;

	pthread_mutex_lock(&f->lock);
	while (!f->is_over && f->n_bytes < EARLY_BYTES_MAX) {
		if (f->next == f->queue.n)
			pthread_cond_wait(&f->changed, &f->lock);
		else if (f->queue.v[f->next++]->state == FILE_WAITS)
			take(f, f->queue.v[f->next - 1]);
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

/* Signals are the others' to take. */
static void start_thread(struct code_files *f)
{
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	f->has_thread = pthread_create(&f->thread, NULL, open_early, f) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

struct code_files *code_files_new(void)
{
	struct code_files *f = mem_zalloc(sizeof(*f));

	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->changed, NULL);
	return f;
}

void code_files_free(struct code_files *f)
{
	if (!f)
		return;
	pthread_mutex_lock(&f->lock);
	f->is_over = true;
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
	if (f->has_thread)
		pthread_join(f->thread, NULL);
	for (size_t i = 0; i < f->queue.n; i++) {
		ran_file_close(&f->queue.v[i]->file);
		free(f->queue.v[i]->path);
		free(f->queue.v[i]);
	}
	vec_release(&f->queue);
	vec_release(&f->by_image);
	pthread_cond_destroy(&f->changed);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

void code_files_expect(
	struct code_files *f, uint32_t number, const struct image *image, const char *path)
{
	struct code_file *file;

	vec_ensure_zero(&f->by_image, (size_t)number + 1);
	if (f->by_image.v[number] || image->kind != IMAGE_KIND_ELF)
		return;
	file = mem_zalloc(sizeof(*file));
	file->image = image;
	file->path = mem_strdup(path);
	f->by_image.v[number] = file;
	pthread_mutex_lock(&f->lock);
	vec_push(&f->queue, file);
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
	if (!f->has_thread)
		start_thread(f);
}

/* It was written to, or is another one, since it was opened. */
static bool is_changed(const struct code_file *file)
{
	struct stat now;

	return stat(file->path, &now) < 0 || now.st_dev != file->stat.st_dev ||
	       now.st_ino != file->stat.st_ino || now.st_size != file->stat.st_size ||
	       now.st_mtim.tv_sec != file->stat.st_mtim.tv_sec ||
	       now.st_mtim.tv_nsec != file->stat.st_mtim.tv_nsec;
}

struct ran_file *code_files_get(struct code_files *f, uint32_t number, const struct image *image,
	const char *path, const char **why)
{
	struct code_file *file;

	code_files_expect(f, number, image, path);
	file = f->by_image.v[number];
	if (!file) {
		*why = "it is not a file";
		return NULL;
	}
	pthread_mutex_lock(&f->lock);
	if (file->state == FILE_WAITS)
		take(f, file);
	while (file->state != FILE_OPEN)
		pthread_cond_wait(&f->changed, &f->lock);
	pthread_mutex_unlock(&f->lock);
	if (is_changed(file)) {
		ran_file_close(&file->file);
		open_one(file);
	}
	*why = file->why;
	return file->why ? NULL : &file->file;
}

struct opened_debug code_files_debug(const struct code_files *f, uint32_t number)
{
	const struct code_file *file = number < f->by_image.n ? f->by_image.v[number] : NULL;

	return file && file->state == FILE_OPEN && !file->why
		       ? (struct opened_debug){file->file.dwarf, file->file.dwarf_path}
		       : (struct opened_debug){0};
}
