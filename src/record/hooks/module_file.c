/* SPDX-License-Identifier: MIT */
#include "record/hooks/module_file.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"
#include "process/mapped_file.h"

static void keep_mapping(void *ctx, const struct proc_mapping *m)
{
	if (m->inode && m->path[0] == '/')
		proc_mappings_add(ctx, m);
}

void module_maps_read(struct proc_mappings *maps, pid_t pid)
{
	*maps = (struct proc_mappings){0};
	proc_each_mapping(pid, keep_mapping, maps, NULL);
}

const struct proc_mapping *module_maps_find(
	const struct proc_mappings *maps, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < maps->n; i++)
		if (maps->v[i].start < end && maps->v[i].end > start)
			return &maps->v[i];
	return NULL;
}

static uint64_t key_of(const struct stat *st)
{
	uint64_t key = map_hash_mix(map_hash(st->st_dev), st->st_ino);

	key = map_hash_mix(key, (uint64_t)st->st_size);
	key = map_hash_mix(key, (uint64_t)st->st_mtim.tv_sec);
	return map_hash_mix(key, (uint64_t)st->st_mtim.tv_nsec);
}

int module_file_open(
	struct module_file *f, pid_t pid, const struct proc_mapping *m, struct err *err)
{
	struct mapped_file mapped;
	int rc = mapped_file_open(&mapped, pid, m, (struct span){0}, err);

	*f = (struct module_file){0};
	if (rc < 0)
		return rc;
	rc = mapped_file_read_elf(&mapped, &f->file, &f->elf, err);
	if (rc == 0) {
		f->path = mem_strndup(m->path, path_plain_bytes(m->path));
		f->key = key_of(&mapped.st);
	}
	mapped_file_close(&mapped);
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
