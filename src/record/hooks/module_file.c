/* SPDX-License-Identifier: MIT */
#include "record/hooks/module_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/map.h"
#include "process/proc.h"

static void keep_mapping(void *ctx, const struct proc_mapping *m)
{
	struct module_maps *maps = ctx;

	if (!m->inode || m->path[0] != '/')
		return;
	vec_push(maps, ((struct module_map){m->start, m->end, m->inode, m->major, m->minor, mem_strdup(m->path)}));
}

void module_maps_read(struct module_maps *m, pid_t pid)
{
	*m = (struct module_maps){0};
	proc_each_mapping(pid, keep_mapping, m, NULL);
}

void module_maps_release(struct module_maps *m)
{
	for (size_t i = 0; i < m->n; i++)
		free(m->v[i].path);
	vec_release(m);
}

static int open_candidate(
	struct module_file *f, const char *path, const struct module_map *m, struct err *err)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return err_sys(err, errno, "'%s': cannot open", path);
	if (proc_check_mapped_file(path, &st, m->major, m->minor, m->inode, err) < 0)
		return err_prefix(err, "'%s'", path);
	if (file_map_open(&f->file, path, err) < 0)
		return err->code;
	if (elf_file_init(&f->elf, f->file.bytes, err) < 0) {
		file_map_release(&f->file);
		return err_prefix(err, "'%s'", path);
	}
	f->key = map_hash_mix(map_hash(st.st_dev), st.st_ino);
	f->key = map_hash_mix(f->key, (uint64_t)st.st_size);
	f->key = map_hash_mix(f->key, (uint64_t)st.st_mtim.tv_sec);
	f->key = map_hash_mix(f->key, (uint64_t)st.st_mtim.tv_nsec);
	return 0;
}

const struct module_map *module_maps_find(
	const struct module_maps *maps, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < maps->n; i++)
		if (maps->v[i].start < end && maps->v[i].end > start)
			return &maps->v[i];
	return NULL;
}

/* The path itself, as the process sees it, and the mapping whatever its name is now. */
int module_file_open(struct module_file *f, const struct module_maps *maps, pid_t pid,
	uint64_t start, uint64_t end, struct err *err)
{
	static const char deleted[] = " (deleted)";
	const struct module_map *m = module_maps_find(maps, start, end);
	struct err other;
	char *path;
	size_t n;
	int rc;

	*f = (struct module_file){0};
	if (!m)
		return err_set(err, ERR_NOT_FOUND, "no file is mapped at 0x%lx", start);
	f->path = mem_strdup(m->path);
	n = strlen(f->path);
	if (n > sizeof(deleted) - 1 && !strcmp(f->path + n - (sizeof(deleted) - 1), deleted))
		f->path[n - (sizeof(deleted) - 1)] = 0;
	rc = open_candidate(f, f->path, m, err);
	if (rc < 0) {
		path = mem_printf("/proc/%d/root%s", pid, f->path);
		rc = open_candidate(f, path, m, &other);
		free(path);
	}
	if (rc < 0) {
		path = mem_printf("/proc/%d/map_files/%lx-%lx", pid, m->start, m->end);
		rc = open_candidate(f, path, m, &other);
		free(path);
	}
	if (rc < 0) {
		free(f->path);
		f->path = NULL;
	}
	return rc;
}

void module_file_close(struct module_file *f)
{
	if (!f->path)
		return;
	elf_file_release(&f->elf);
	file_map_release(&f->file);
	free(f->path);
	*f = (struct module_file){0};
}
