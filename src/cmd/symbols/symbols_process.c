/* SPDX-License-Identifier: MIT */
/* Where an address of a running process is: by /proc/PID/maps, now. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "cmd/symbols/symbols_resolve.h"
#include "process/proc.h"

#define VDSO_BYTES_MAX (1u << 20)
#define KERNEL_HALF    (UINT64_C(1) << 63)
#define DELETED	       " (deleted)"

struct place_mapping {
	uint64_t start, end, offset;
	bool is_executable;
	char *path;
	size_t target;	   /* RESOLVE_NO_TARGET until first needed */
	char *refusal;	   /* why it can have no target */
	struct iaddr base; /* of its first byte, where it has a target */
};

struct process_maps {
	pid_t pid;
	VEC(struct place_mapping) mappings; /* by address */
	size_t jit_target, kernel_target;
};

static void keep_mapping(void *ctx, const struct proc_mapping *m)
{
	struct process_maps *maps = ctx;

	vec_push(&maps->mappings, ((struct place_mapping){.start = m->start,
					  .end = m->end,
					  .offset = m->offset,
					  .is_executable = m->prot & PROT_EXEC,
					  .path = mem_strdup(m->path),
					  .target = RESOLVE_NO_TARGET}));
}

static struct place_mapping *find_mapping(struct process_maps *maps, uint64_t addr)
{
	for (size_t i = 0; i < maps->mappings.n; i++) {
		struct place_mapping *m = &maps->mappings.v[i];

		if (addr >= m->start && addr < m->end)
			return m;
	}
	return NULL;
}

static bool is_deleted(const char *path)
{
	size_t n = strlen(path), mark = sizeof(DELETED) - 1;

	return n > mark && !strcmp(path + n - mark, DELETED);
}

/* The path under which the mapped file can be read here. A file that was deleted or replaced is
 * only left where the kernel shows the mapping itself; the caller frees the result. */
static char *readable_path(const struct process_maps *maps, const struct place_mapping *m)
{
	struct stat here, there;
	char *path;

	if (is_deleted(m->path))
		return mem_printf(
			"/proc/%d/map_files/%" PRIx64 "-%" PRIx64, maps->pid, m->start, m->end);
	path = mem_printf("/proc/%d/root%s", maps->pid, m->path);
	if (stat(path, &there) == 0 && (stat(m->path, &here) < 0 || here.st_ino != there.st_ino ||
					       here.st_dev != there.st_dev))
		return path; /* its root is not ours */
	free(path);
	return mem_strdup(m->path);
}

static size_t find_target(const struct resolve *r, const char *path)
{
	for (size_t i = 0; i < r->targets.n; i++)
		if (!strcmp(r->targets.v[i].path, path))
			return i;
	return RESOLVE_NO_TARGET;
}

/* The linker's address of the mapping's first byte, by the file's segments. */
static bool find_base(const struct place_mapping *m, const char *readable, struct iaddr *base)
{
	struct file_map file;
	struct elf_file elf;
	struct err err;
	bool found = false;

	if (file_map_open(&file, readable, &err) == 0) {
		if (elf_file_init(&elf, file.bytes, &err) == 0) {
			found = elf_file_offset_to_iaddr(&elf, (struct foff){m->offset}, base);
			elf_file_release(&elf);
		}
		file_map_release(&file);
	}
	return found;
}

static void ensure_file_target(
	struct resolve *r, const struct process_maps *maps, struct place_mapping *m)
{
	struct err err = {0};
	char *readable;

	if (m->target != RESOLVE_NO_TARGET || m->refusal)
		return;
	readable = readable_path(maps, m);
	if (!find_base(m, readable, &m->base)) {
		m->refusal = mem_printf(
			"'%s': is no ELF image that can be read, or has nothing at offset 0x%" PRIx64,
			m->path, m->offset);
		free(readable);
		return;
	}
	m->target = find_target(r, m->path);
	if (m->target == RESOLVE_NO_TARGET) {
		m->target = resolve_add_file_target(r, readable, readable, &err);
		if (m->target == RESOLVE_NO_TARGET) {
			m->refusal = mem_strdup(err.text);
		} else { /* read there, shown as the process knows it */
			free(r->targets.v[m->target].path);
			r->targets.v[m->target].path = mem_strdup(m->path);
		}
	}
	free(readable);
}

static bool read_memory(pid_t pid, const struct place_mapping *m, struct buf *to)
{
	char path[64];
	FD_AUTO fd = -1;
	uint64_t n = m->end - m->start;
	uint8_t *bytes;
	ssize_t got;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || n > VDSO_BYTES_MAX)
		return false;
	bytes = mem_alloc(n);
	got = pread(fd, bytes, n, (off_t)m->start);
	if (got > 0)
		buf_put(to, bytes, (size_t)got);
	free(bytes);
	return got > 0;
}

static void ensure_vdso_target(
	struct resolve *r, const struct process_maps *maps, struct place_mapping *m)
{
	struct buf memory = {0};

	m->target = find_target(r, m->path);
	if (m->target != RESOLVE_NO_TARGET || m->refusal)
		return;
	if (!read_memory(maps->pid, m, &memory)) {
		m->refusal = mem_printf(
			"'%s': the memory of process %d cannot be read", m->path, maps->pid);
		return;
	}
	m->target = resolve_add_target(r, m->path);
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
		const char *mapped = maps->mappings.v[i].path;
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

static void place_in_file(struct resolve *r, const struct process_maps *maps,
	struct resolve_query *q, struct place_mapping *m)
{
	ensure_file_target(r, maps, m);
	if (m->target == RESOLVE_NO_TARGET)
		resolve_query_refuse(q, "%s", m->refusal);
	else
		resolve_query_place(r, q, m->target, q->addr - m->start + m->base.v);
}

static void place_in_vdso(struct resolve *r, const struct process_maps *maps,
	struct resolve_query *q, struct place_mapping *m)
{
	ensure_vdso_target(r, maps, m);
	if (m->target == RESOLVE_NO_TARGET)
		resolve_query_refuse(q, "%s", m->refusal);
	else /* it is linked to address 0 */
		resolve_query_place(r, q, m->target, q->addr - m->start);
}

static void place_query(struct resolve *r, struct process_maps *maps, struct resolve_query *q)
{
	struct place_mapping *m = find_mapping(maps, q->addr);

	q->has_pid = true;
	q->pid = (uint32_t)maps->pid;
	if (q->addr >= KERNEL_HALF)
		resolve_query_place(r, q, ensure_kernel_target(r, maps), q->addr);
	else if (!m)
		resolve_query_refuse(q, "nothing is mapped there in process %d", maps->pid);
	else if (m->path[0] == '/' && strncmp(m->path, "/memfd:", 7) &&
		 strncmp(m->path, "/dev/zero", 9))
		place_in_file(r, maps, q, m);
	else if (!strcmp(m->path, "[vdso]"))
		place_in_vdso(r, maps, q, m);
	else if (m->is_executable)
		resolve_query_place(r, q, ensure_jit_target(r, maps), q->addr);
	else
		resolve_query_refuse(
			q, "%s is no code", m->path[0] ? m->path : "the anonymous memory there");
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
		free(maps.mappings.v[i].path);
		free(maps.mappings.v[i].refusal);
	}
	vec_release(&maps.mappings);
	return rc;
}
