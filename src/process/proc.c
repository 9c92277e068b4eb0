/* SPDX-License-Identifier: MIT */
#include "process/proc.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"

#define PROC_FILE_MAX ((size_t)64 << 20)

static bool parse_line(char *line, struct proc_mapping *m)
{
	char prot[5] = "";
	int at = 0;

	/* start-end rwxp offset major:minor inode   path */
	if (sscanf(line, "%lx-%lx %4s %lx %x:%x %lu %n", &m->start, &m->end, prot, &m->offset,
		    &m->major, &m->minor, &m->inode, &at) < 7 ||
		m->start >= m->end)
		return false;
	m->prot = (prot[0] == 'r' ? PROT_READ : 0u) | (prot[1] == 'w' ? PROT_WRITE : 0u) |
		  (prot[2] == 'x' ? PROT_EXEC : 0u);
	m->is_shared = prot[3] == 's';
	m->path = line + at;
	return true;
}

void proc_parse_maps(
	struct span text, void (*each)(void *ctx, const struct proc_mapping *mapping), void *ctx)
{
	char *copy = mem_strndup((const char *)text.p, text.n);
	char *save = NULL;

	for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		struct proc_mapping m;

		if (parse_line(line, &m))
			each(ctx, &m);
	}
	free(copy);
}

int proc_each_mapping(pid_t pid, void (*each)(void *ctx, const struct proc_mapping *mapping),
	void *ctx, struct err *err)
{
	struct buf b = {0};
	char path[64];
	int rc;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	rc = file_read(&b, path, PROC_FILE_MAX, err);
	if (rc == 0 && b.n)
		proc_parse_maps(buf_span(&b), each, ctx);
	buf_release(&b);
	return rc;
}

void proc_mappings_add(struct proc_mappings *to, const struct proc_mapping *mapping)
{
	vec_push(to, *mapping);
	to->v[to->n - 1].path = mem_strdup(mapping->path);
}

void proc_mappings_release(struct proc_mappings *mappings)
{
	for (size_t i = 0; i < mappings->n; i++)
		free((char *)mappings->v[i].path);
	vec_release(mappings);
}

struct mapping_search {
	uint64_t addr, end;
};

static void search_mapping(void *ctx, const struct proc_mapping *m)
{
	struct mapping_search *search = ctx;

	if (m->start <= search->addr && search->addr < m->end)
		search->end = m->end;
}

uint64_t proc_mapping_end(pid_t pid, uint64_t addr)
{
	struct mapping_search search = {.addr = addr};

	proc_each_mapping(pid, search_mapping, &search, NULL);
	return search.end;
}

size_t proc_each_task(pid_t pid, void (*each)(void *ctx, pid_t tid), void *ctx)
{
	struct dirent *entry;
	char path[64];
	size_t n = 0;
	DIR *dir;

	if (pid)
		snprintf(path, sizeof(path), "/proc/%d/task", pid);
	else
		snprintf(path, sizeof(path), "/proc");
	dir = opendir(path);
	if (!dir)
		return 0;
	while ((entry = readdir(dir))) {
		pid_t tid = (pid_t)atoi(entry->d_name);

		if (tid <= 0)
			continue;
		each(ctx, tid);
		n++;
	}
	closedir(dir);
	return n;
}

bool proc_exists(pid_t pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", pid);
	return stat(path, &st) == 0;
}

/* A file of a thread as text; "" when it is gone. */
static const char *read_thread_file(struct buf *b, pid_t pid, pid_t tid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, tid, name);
	if (file_read(b, path, PROC_FILE_MAX, NULL) < 0)
		buf_reset(b);
	return buf_text(b);
}

void proc_name(pid_t pid, pid_t tid, char *to, size_t bytes)
{
	struct buf b = {0};

	snprintf(to, bytes, "%s", read_thread_file(&b, pid, tid, "comm"));
	to[strcspn(to, "\n")] = 0;
	buf_release(&b);
}

void proc_command_line(pid_t pid, char *to, size_t bytes)
{
	struct buf b = {0};
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	to[0] = 0;
	if (file_read(&b, path, PROC_FILE_MAX, NULL) == 0) {
		for (size_t i = 0; i + 1 < b.n; i++)
			if (!b.p[i])
				b.p[i] = ' ';
		snprintf(to, bytes, "%s", buf_text(&b));
	}
	buf_release(&b);
}

void proc_exe(pid_t pid, char *to, size_t bytes)
{
	char path[64] = "/proc/self/exe";
	ssize_t n;

	if (pid)
		snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	n = readlink(path, to, bytes - 1);
	to[n > 0 ? n : 0] = 0;
}

/* --- status and stat -------------------------------------------------------------------------- */

void proc_status_field(pid_t pid, pid_t tid, const char *name, char *to, size_t bytes)
{
	struct buf b = {0};
	const char *line = read_thread_file(&b, pid, tid, "status");
	size_t n = strlen(name);

	while (line && (strncmp(line, name, n) || line[n] != ':')) {
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	if (line)
		line += n + 1 + strspn(line + n + 1, "\t ");
	snprintf(to, bytes, "%.*s", line ? (int)strcspn(line, "\n") : 0, line ? line : "");
	buf_release(&b);
}

uint64_t proc_status_number(pid_t pid, pid_t tid, const char *name, int base)
{
	char value[64];

	proc_status_field(pid, tid, name, value, sizeof(value));
	return strtoull(value, NULL, base);
}

void proc_stat_field(pid_t pid, pid_t tid, int number, char *to, size_t bytes)
{
	struct buf b = {0};
	/* The name, in field 2, may hold blanks and brackets. */
	const char *at = strrchr(read_thread_file(&b, pid, tid, "stat"), ')');

	for (int field = 2; at && field < number; field++)
		at = strchr(at + 1, ' ');
	snprintf(to, bytes, "%.*s", at ? (int)strcspn(at + 1, " \n") : 0, at ? at + 1 : "");
	buf_release(&b);
}

uint64_t proc_stat_number(pid_t pid, int number)
{
	char value[64];

	proc_stat_field(pid, pid, number, value, sizeof(value));
	return strtoull(value, NULL, 10);
}

pid_t proc_parent(pid_t pid)
{
	return (pid_t)proc_stat_number(pid, 4);
}

uint64_t proc_start_ns(pid_t pid)
{
	uint64_t ticks = proc_stat_number(pid, 22);
	uint64_t since_boot = ticks * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
	/* In this order: the other way round the difference is negative on a machine that never
	 * slept. */
	uint64_t mono = clock_mono_ns();
	uint64_t suspended = clock_read_ns(CLOCK_BOOTTIME) - mono;

	return ticks && since_boot > suspended ? since_boot - suspended : 0;
}

/* --- namespaces, settings, memory ------------------------------------------------------------- */

unsigned proc_own_number(pid_t pid, pid_t tid, pid_t *own)
{
	char numbers[512], *at = numbers, *end;

	proc_status_field(pid, tid, "NSpid", numbers, sizeof(numbers));
	for (unsigned n = 0;; n++) {
		long number = strtol(at, &end, 10);

		if (end == at)
			return n;
		*own = (pid_t)number;
		at = end;
	}
}

uint64_t proc_namespace_id(pid_t pid, const char *kind)
{
	struct stat ours, theirs;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, kind);
	if (stat(path, &theirs) < 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/ns/%s", kind);
	return stat(path, &ours) == 0 && ours.st_ino == theirs.st_ino ? 0 : theirs.st_ino;
}

int proc_setting(const char *name, int otherwise)
{
	char *path = mem_printf("/proc/sys/%s", name);
	struct buf b = {0};
	int value = file_read(&b, path, PROC_FILE_MAX, NULL) == 0 ? atoi(buf_text(&b)) : otherwise;

	buf_release(&b);
	free(path);
	return value;
}

bool proc_read_memory(pid_t pid, uint64_t addr, void *to, size_t bytes)
{
	struct iovec local = {to, bytes}, remote = {(void *)(uintptr_t)addr, bytes};

	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)bytes;
}
