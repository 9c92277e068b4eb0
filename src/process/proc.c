/* SPDX-License-Identifier: MIT */
#include "process/proc.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
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

void proc_name(pid_t pid, pid_t tid, char *to, size_t bytes)
{
	struct buf b = {0};
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", pid, tid);
	to[0] = 0;
	if (file_read(&b, path, 4096, NULL) == 0) {
		snprintf(to, bytes, "%s", buf_text(&b));
		to[strcspn(to, "\n")] = 0;
	}
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

/* Field `number` (from 1) of /proc/PID/stat; the name in field 2 may hold blanks and brackets. */
static uint64_t stat_field(pid_t pid, int number)
{
	struct buf b = {0};
	uint64_t value = 0;
	char path[64];
	char *p = NULL;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (file_read(&b, path, 4096, NULL) == 0)
		p = strrchr(buf_text(&b), ')');
	for (int field = 2; p && field < number; field++)
		p = strchr(p + 1, ' ');
	if (p)
		value = strtoull(p + 1, NULL, 10);
	buf_release(&b);
	return value;
}

pid_t proc_parent(pid_t pid)
{
	return (pid_t)stat_field(pid, 4);
}

uint64_t proc_start_ns(pid_t pid)
{
	uint64_t ticks = stat_field(pid, 22);
	uint64_t since_boot = ticks * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
	/* In this order: the other way round the difference is negative on a machine that never
	 * slept. */
	uint64_t mono = clock_mono_ns();
	uint64_t suspended = clock_read_ns(CLOCK_BOOTTIME) - mono;

	return ticks && since_boot > suspended ? since_boot - suspended : 0;
}

/* Where stat gives files other devices than the kernel says of mappings: an inode has to do. */
static bool has_plain_devices(const char *path)
{
	static const uint32_t without[] = {0x794c7630u /* overlayfs */, 0x9123683eu /* btrfs */,
		0xca451a4eu /* bcachefs */};
	struct statfs fs;

	if (statfs(path, &fs) < 0)
		return false;
	for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++)
		if ((uint32_t)fs.f_type == without[i])
			return false;
	return true;
}

int proc_check_mapped_file(const char *path, const struct stat *st, uint32_t major, uint32_t minor,
	uint64_t inode, struct err *err)
{
	if (st->st_ino != inode)
		return err_set(err, ERR_NOT_FOUND, "the file there now is another one (inode differs)");
	if ((major || minor) && st->st_dev != makedev(major, minor) && has_plain_devices(path))
		return err_set(err, ERR_NOT_FOUND, "the file there now is another one (device differs)");
	return 0;
}
