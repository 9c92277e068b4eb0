/* SPDX-License-Identifier: MIT */
/* What a running process has mapped, by /proc/PID/maps, now: where an address of it is, and all of it as
 * input of merge. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "cmd/symbols/symbols_resolve.h"
#include "process/mapped_file.h"
#include "process/proc.h"

#define VDSO_BYTES_MAX (1u << 20)
#define KERNEL_HALF    (UINT64_C(1) << 63)

struct place_mapping {
	struct proc_mapping at; /* its path is owned */
	size_t target;		/* RESOLVE_NO_TARGET until first needed */
	char *refusal;		/* why it can have no target */
	struct iaddr base;	/* of its first byte, where it has a target */
};

struct process_maps {
	pid_t pid;
	VEC(struct place_mapping) mappings; /* by address */
	size_t jit_target, kernel_target;
};

static void keep_mapping(void *ctx, const struct proc_mapping *m)
{
	struct process_maps *maps = ctx;
	struct place_mapping place = {.at = *m, .target = RESOLVE_NO_TARGET};

	place.at.path = mem_strdup(m->path);
	vec_push(&maps->mappings, place);
}

static struct place_mapping *find_mapping(struct process_maps *maps, uint64_t addr)
{
	for (size_t i = 0; i < maps->mappings.n; i++) {
		struct place_mapping *m = &maps->mappings.v[i];

		if (addr >= m->at.start && addr < m->at.end)
			return m;
	}
	return NULL;
}

static size_t find_target(const struct resolve *r, const char *path)
{
	for (size_t i = 0; i < r->targets.n; i++)
		if (!strcmp(r->targets.v[i].path, path))
			return i;
	return RESOLVE_NO_TARGET;
}

/* The linker's address of the mapping's first byte, by the file's segments. */
static bool find_base(const struct mapped_file *f, uint64_t offset, struct iaddr *base)
{
	struct file_map file;
	struct elf_file elf;
	bool found;

	if (mapped_file_read_elf(f, &file, &elf, NULL) < 0)
		return false;
	found = elf_file_offset_to_iaddr(&elf, (struct foff){offset}, base);
	elf_file_release(&elf);
	file_map_release(&file);
	return found;
}

/* A target for the file, read there, shown as the process knows it. */
static void add_file_target(struct resolve *r, const struct mapped_file *f, struct place_mapping *m)
{
	struct err err = {0};

	m->target = resolve_add_file_target(r, f->path, f->path, &err);
	if (m->target == RESOLVE_NO_TARGET) {
		m->refusal = mem_strdup(err.text);
		return;
	}
	free(r->targets.v[m->target].path);
	r->targets.v[m->target].path = mem_strdup(m->at.path);
}

static void ensure_file_target(
	struct resolve *r, const struct process_maps *maps, struct place_mapping *m)
{
	struct mapped_file f;

	if (m->target != RESOLVE_NO_TARGET || m->refusal)
		return;
	if (mapped_file_open(&f, maps->pid, &m->at, (struct span){0}, NULL) == 0 &&
		find_base(&f, m->at.offset, &m->base)) {
		m->target = find_target(r, m->at.path);
		if (m->target == RESOLVE_NO_TARGET)
			add_file_target(r, &f, m);
	} else {
		m->refusal = mem_printf(
			"'%s': is no ELF image that can be read, or has nothing at offset 0x%" PRIx64,
			m->at.path, m->at.offset);
	}
	mapped_file_close(&f);
}

/* The vdso has no file: its bytes are read from the process. */
static bool read_vdso(pid_t pid, const struct proc_mapping *m, struct buf *to)
{
	size_t n = m->end - m->start;
	uint8_t *bytes;
	bool is_read;

	if (n > VDSO_BYTES_MAX)
		return false;
	bytes = mem_alloc(n);
	is_read = proc_read_memory(pid, m->start, bytes, n);
	if (is_read)
		buf_put(to, bytes, n);
	free(bytes);
	return is_read;
}

static void ensure_vdso_target(
	struct resolve *r, const struct process_maps *maps, struct place_mapping *m)
{
	struct buf memory = {0};

	m->target = find_target(r, m->at.path);
	if (m->target != RESOLVE_NO_TARGET || m->refusal)
		return;
	if (!read_vdso(maps->pid, &m->at, &memory)) {
		m->refusal = mem_printf(
			"'%s': the memory of process %d cannot be read", m->at.path, maps->pid);
		return;
	}
	m->target = resolve_add_target(r, m->at.path);
	r->targets.v[m->target].memory = memory;
}

/* The compiler's dump, which it keeps mapped, and its map of names. */
static size_t ensure_jit_target(struct resolve *r, struct process_maps *maps)
{
	char *name, path[64];
	struct resolve_target *t;
	size_t n = 0;

	if (maps->jit_target != RESOLVE_NO_TARGET)
		return maps->jit_target;
	maps->jit_target = resolve_add_target(r, "[jit]");
	t = &r->targets.v[maps->jit_target];
	name = mem_printf("/jit-%d.dump", maps->pid);
	for (size_t i = 0; i < maps->mappings.n && !n; i++) {
		const char *mapped = maps->mappings.v[i].at.path;
		size_t at = strlen(mapped), k = strlen(name);

		if (at >= k && !strcmp(mapped + at - k, name))
			t->files[n++] = mem_strdup(mapped);
	}
	free(name);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", maps->pid);
	if (!n || access(path, R_OK) == 0)
		t->files[n] = mem_strdup(path);
	return maps->jit_target;
}

static size_t ensure_kernel_target(struct resolve *r, struct process_maps *maps)
{
	if (maps->kernel_target == RESOLVE_NO_TARGET) {
		maps->kernel_target = resolve_add_target(r, "[kernel]");
		r->targets.v[maps->kernel_target].is_kernel = true;
	}
	return maps->kernel_target;
}

/* In a file or in the vdso, which is linked to address 0. */
static void place_in_image(struct resolve *r, const struct process_maps *maps,
	struct resolve_query *q, struct place_mapping *m)
{
	if (m->at.path[0] == '/')
		ensure_file_target(r, maps, m);
	else
		ensure_vdso_target(r, maps, m);
	if (m->target == RESOLVE_NO_TARGET)
		resolve_query_refuse(q, "%s", m->refusal);
	else
		resolve_query_place(r, q, m->target, q->addr - m->at.start + m->base.v);
}

static bool is_in_file(const struct process_maps *maps, const struct proc_mapping *m)
{
	if (path_is_in_memory(m->path))
		return mapped_file_is_elf(maps->pid, m, (struct span){0});
	return m->path[0] == '/' && strncmp(m->path, "/dev/zero", 9);
}

static void place_query(struct resolve *r, struct process_maps *maps, struct resolve_query *q)
{
	struct place_mapping *m = find_mapping(maps, q->addr);
	const char *path = m ? m->at.path : "";

	q->has_pid = true;
	q->pid = (uint32_t)maps->pid;
	if (q->addr >= KERNEL_HALF)
		resolve_query_place(r, q, ensure_kernel_target(r, maps), q->addr);
	else if (!m)
		resolve_query_refuse(q, "nothing is mapped there in process %d", maps->pid);
	else if (!strcmp(path, "[vdso]") || is_in_file(maps, &m->at))
		place_in_image(r, maps, q, m);
	else if (m->at.prot & PROT_EXEC)
		resolve_query_place(r, q, ensure_jit_target(r, maps), q->addr);
	else
		resolve_query_refuse(
			q, "%s is no code", path[0] ? path : "the anonymous memory there");
}

int resolve_place_in_process(struct resolve *r, pid_t pid, struct err *err)
{
	struct process_maps maps = {
		.pid = pid, .jit_target = RESOLVE_NO_TARGET, .kernel_target = RESOLVE_NO_TARGET};
	int rc = proc_each_mapping(pid, keep_mapping, &maps, err);

	for (size_t i = 0; rc == 0 && i < r->queries.n; i++)
		if (r->queries.v[i].is_valid)
			place_query(r, &maps, &r->queries.v[i]);
	for (size_t i = 0; i < maps.mappings.n; i++) {
		free((char *)maps.mappings.v[i].at.path);
		free(maps.mappings.v[i].refusal);
	}
	vec_release(&maps.mappings);
	return rc;
}

/* --- as input of merge --- */

struct merge_process {
	struct merge *merge;
	pid_t pid;
};

static void merge_vdso(const struct merge_process *p, const struct proc_mapping *m)
{
	struct buf memory = {0};

	if (read_vdso(p->pid, m, &memory))
		merge_add_opened(p->merge, &(struct merge_input){.path = m->path,
						   .map = {.bytes = buf_span(&memory)}});
}

static void merge_mapping(void *ctx, const struct proc_mapping *m)
{
	const struct merge_process *p = ctx;
	struct merge_input input = {.path = m->path};
	struct mapped_file f;
	struct err err;
	int rc;

	if (!(m->prot & PROT_EXEC))
		return;
	if (!strcmp(m->path, "[vdso]"))
		merge_vdso(p, m);
	if (m->path[0] != '/' || !m->inode)
		return;
	rc = mapped_file_open(&f, p->pid, m, (struct span){0}, &err);
	if (rc == 0)
		rc = file_map_open_fd(&input.map, f.fd, f.path, &err);
	if (rc == 0) {
		input.opened_as = f.path;
		input.st = &f.st;
		merge_add_opened(p->merge, &input);
	} else {
		merge_add_unreadable(p->merge, m->path, err.text);
	}
	mapped_file_close(&f);
}

static void merge_if_there(struct merge *merge, char *path)
{
	struct merge_input input = {.path = path};
	struct stat st;
	struct err err;

	if (stat(path, &st) == 0 && S_ISREG(st.st_mode)) {
		input.st = &st;
		if (file_map_open(&input.map, path, &err) == 0)
			merge_add_opened(merge, &input);
		else
			merge_add_unreadable(merge, path, err.text);
	}
	free(path);
}

int symbols_merge_process(struct merge *merge, pid_t pid, struct err *err)
{
	struct merge_process p = {merge, pid};
	int rc = proc_each_mapping(pid, merge_mapping, &p, NULL);

	if (rc < 0)
		return err_sys(err, rc == ERR_PERMISSION ? EACCES : ENOENT, "process %d", (int)pid);
	merge_if_there(merge, mem_printf("/tmp/perf-%d.map", (int)pid));
	merge_if_there(merge, mem_printf("/tmp/jit-%d.dump", (int)pid));
	return 0;
}
