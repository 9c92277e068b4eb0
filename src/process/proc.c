/* SPDX-License-Identifier: MIT */
#include "process/proc.h"

#include <dirent.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"

#define PROC_FILE_MAX  ((size_t)64 << 20)
#define NAMESPACES_MAX 33 /* one in another: the kernel's limit, and the first */

/* --- whose numbers ---------------------------------------------------------------------------- */

/* The line "NSpid:" of a status file: a number for each pid namespace, from that of /proc to its own. */
static size_t read_numbers(const char *path, pid_t numbers[NAMESPACES_MAX])
{
	struct buf b = {0};
	const char *at = NULL;
	size_t n = 0;
	char *end;

	if (file_read(&b, path, PROC_FILE_MAX, NULL) == 0)
		at = strstr(buf_text(&b), "\nNSpid:");
	for (at = at ? at + 7 : NULL; at && n < NAMESPACES_MAX; at = end) {
		long number = strtol(at, &end, 10);

		if (end == at || *at == '\n')
			break;
		numbers[n++] = (pid_t)number;
		if (*end != '\t' && *end != ' ')
			break;
	}
	buf_release(&b);
	return n;
}

/* How many pid namespaces lie between that of /proc and ours, the latter included: 0 when they are the
 * same one. Found once. */
static unsigned foreign_levels(void)
{
	static atomic_int found = -1;
	int levels = atomic_load_explicit(&found, memory_order_relaxed);
	char link[32] = "";

	if (levels >= 0)
		return (unsigned)levels;
	levels = 0;
	if (readlink("/proc/self", link, sizeof(link) - 1) > 0 && atoi(link) != getpid()) {
		pid_t numbers[NAMESPACES_MAX];
		size_t n = read_numbers("/proc/self/status", numbers);

		levels = n ? (int)n - 1 : 0;
	}
	atomic_store_explicit(&found, levels, memory_order_relaxed);
	return (unsigned)levels;
}

/* Our number for what has the status file; 0 when it is not in our namespace. */
static pid_t number_of_status(const char *path)
{
	pid_t numbers[NAMESPACES_MAX];
	unsigned level = foreign_levels();

	return read_numbers(path, numbers) > level ? numbers[level] : 0;
}

pid_t proc_number(pid_t pid)
{
	struct buf b = {0};
	pid_t number = -1;
	const char *line;
	char path[64];
	int fd;

	if (!foreign_levels())
		return pid;
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	if (fd >= 0 && file_read(&b, path, PROC_FILE_MAX, NULL) == 0 &&
		(line = strstr(buf_text(&b), "Pid:")))
		number = (pid_t)strtol(line + 4, NULL, 10);
	buf_release(&b);
	fd_cleanup(&fd);
	return number > 0 ? number : -1;
}

struct thread_search {
	pid_t tid, found;
};

static void try_thread(void *ctx, pid_t number, const char *status)
{
	struct thread_search *s = ctx;

	if (number_of_status(status) == s->tid)
		s->found = number;
}

static size_t each_entry(const char *folder, void (*each)(void *, pid_t, const char *), void *ctx);

static pid_t thread_number(pid_t pid, pid_t tid)
{
	struct thread_search s = {tid, -1};
	char path[64];

	if (!foreign_levels())
		return tid;
	if (tid == pid)
		return proc_number(pid);
	snprintf(path, sizeof(path), "/proc/%d/task", proc_number(pid));
	each_entry(path, try_thread, &s);
	return s.found;
}

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

	snprintf(path, sizeof(path), "/proc/%d/maps", proc_number(pid));
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

static size_t each_entry(const char *folder, void (*each)(void *, pid_t, const char *), void *ctx)
{
	struct dirent *entry;
	size_t n = 0;
	DIR *dir = opendir(folder);

	while (dir && (entry = readdir(dir))) {
		pid_t number = (pid_t)atoi(entry->d_name);
		char status[96];

		if (number <= 0)
			continue;
		snprintf(status, sizeof(status), "%s/%d/status", folder, number);
		each(ctx, number, status);
		n++;
	}
	if (dir)
		closedir(dir);
	return n;
}

struct task_list {
	void (*each)(void *ctx, pid_t tid);
	void *ctx;
	bool of_processes;
};

/* A process of a namespace beside ours may have a number at the same level. */
static void list_task(void *ctx, pid_t number, const char *status)
{
	struct task_list *list = ctx;
	pid_t ours = foreign_levels() ? number_of_status(status) : number;

	if (ours && (ours == number || !list->of_processes || proc_number(ours) == number))
		list->each(list->ctx, ours);
}

size_t proc_each_task(pid_t pid, void (*each)(void *ctx, pid_t tid), void *ctx)
{
	struct task_list list = {each, ctx, !pid};
	char path[64];

	if (pid)
		snprintf(path, sizeof(path), "/proc/%d/task", proc_number(pid));
	else
		snprintf(path, sizeof(path), "/proc");
	return each_entry(path, list_task, &list);
}

bool proc_exists(pid_t pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", proc_number(pid));
	return stat(path, &st) == 0;
}

/* A file of a thread as text; "" when it is gone. */
static const char *read_thread_file(struct buf *b, pid_t pid, pid_t tid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", proc_number(pid),
		thread_number(pid, tid), name);
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

	snprintf(path, sizeof(path), "/proc/%d/cmdline", proc_number(pid));
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
		snprintf(path, sizeof(path), "/proc/%d/exe", proc_number(pid));
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

uint64_t proc_cpu_ns(pid_t pid)
{
	uint64_t tick_ns = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
	struct timespec own;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &own) < 0)
		return 0;
	return (uint64_t)own.tv_sec * 1000000000u + (uint64_t)own.tv_nsec +
	       tick_ns * (proc_stat_number(pid, 16) + proc_stat_number(pid, 17));
}

/* --- namespaces, settings, memory ------------------------------------------------------------- */

unsigned proc_own_number(pid_t pid, pid_t tid, pid_t *own)
{
	pid_t numbers[NAMESPACES_MAX];
	unsigned outside = foreign_levels();
	char path[96];
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", proc_number(pid),
		thread_number(pid, tid));
	n = read_numbers(path, numbers);
	if (n <= outside)
		return 0;
	*own = numbers[n - 1];
	return (unsigned)n - outside;
}

uint64_t proc_namespace_id(pid_t pid, const char *kind)
{
	struct stat ours, theirs;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/%s", proc_number(pid), kind);
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

/* What one system call takes. */
#define PARTS_MAX 512

/* How many of the parts, one or more, are whole; the kernel copies up to the first that is not there. */
static size_t read_some_parts(pid_t pid, struct proc_part *parts, size_t n, ssize_t *copied)
{
	struct iovec local[PARTS_MAX], remote[PARTS_MAX];
	size_t i = 0, whole = 0;
	ssize_t left;

	do {
		local[i] = (struct iovec){parts[i].to, parts[i].bytes};
		remote[i] = (struct iovec){(void *)(uintptr_t)parts[i].addr, parts[i].bytes};
	} while (++i < n);
	*copied = left = process_vm_readv(pid, local, n, remote, n, 0);
	while (whole < n && left >= (ssize_t)parts[whole].bytes)
		left -= (ssize_t)parts[whole++].bytes;
	return whole;
}

bool proc_read_parts(pid_t pid, struct proc_part *parts, size_t n)
{
	for (size_t i = 0; i < n;) {
		size_t some = n - i < PARTS_MAX ? n - i : PARTS_MAX;
		ssize_t copied;
		size_t whole = read_some_parts(pid, parts + i, some, &copied);

		if (copied < 0 && errno != EFAULT)
			return false;
		for (size_t k = 0; k < whole; k++)
			parts[i + k].is_read = true;
		i += whole;
		if (whole < some)
			parts[i++].is_read = false;
	}
	return true;
}
