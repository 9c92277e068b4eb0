/* SPDX-License-Identifier: MIT */
/*
 * Uprobe events with names, in the file uprobe_events of tracefs, which is one for the machine:
 *
 *   p:weir_PID_NUMBER/e0 /proc/self/fd/7:0x1130(0x4018)     r: for returns, (): the semaphore
 *   -:weir_PID_NUMBER/e0
 *
 * Lines with the same name make one event of several sites. The file is given by a descriptor: a
 * path may have blanks or '#', and another file by now. Names outlive us when we are killed, so the
 * next start removes those whose process is gone; the kernel keeps one that is in use.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "probe/run/run.h"
#include "process/proc.h"
#include "process/tracepoint.h"

#define NAMES_BYTES_MAX ((size_t)1 << 20)
#define NUMBER_BYTES	32
#define NAME_BYTES	64
#define REMOVE_WAIT_NS	1000000000 /* for an event that is just being closed */
#define REMOVE_PAUSE_US 2000

/* Never opened for writing alone: O_TRUNC or no O_APPEND would remove the names of others. */
static int write_line(int tracefs, const char *line)
{
	FD_AUTO fd = openat(tracefs, "uprobe_events", O_WRONLY | O_APPEND | O_CLOEXEC);
	size_t n = strlen(line);

	if (fd < 0)
		return -errno;
	return write(fd, line, n) == (ssize_t)n ? 0 : -errno;
}

static int remove_name(int tracefs, const char *name)
{
	char *line = mem_printf("-:%s\n", name);
	int rc = write_line(tracefs, line);

	free(line);
	return rc;
}

void uprobe_names_sweep(int tracefs)
{
	struct buf b = {0};
	char *save = NULL, *text;

	if (tracefs_read(&b, tracefs, "uprobe_events", NAMES_BYTES_MAX, NULL) < 0) {
		buf_release(&b);
		return;
	}
	text = mem_strdup(buf_text(&b));
	for (char *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
		char name[NAME_BYTES];
		int pid;

		if (sscanf(l, "%*1[pr]:%63[^ ]", name) == 1 &&
			sscanf(name, "weir_%d_%*[0-9]/e%*u", &pid) == 1 && !proc_exists(pid))
			remove_name(tracefs, name); /* of several sites: gone with the first */
	}
	free(text);
	buf_release(&b);
}

static int add_site(struct probe_session *s, const struct named_event *e, const struct run_site *r)
{
	FD_AUTO file = open(r->target->path, O_RDONLY | O_CLOEXEC);
	char semaphore[NUMBER_BYTES] = "", *line;
	int rc;

	if (file < 0)
		return -errno;
	if (r->site->semaphore)
		snprintf(semaphore, sizeof(semaphore), "(0x%llx)",
			(unsigned long long)r->site->semaphore);
	line = mem_printf("%c:%s/e%u /proc/self/fd/%d:0x%llx%s\n",
		point_has(e->program->kind, POINT_AT_RETURN) ? 'r' : 'p', s->named.group,
		s->named.n_names, file, (unsigned long long)r->site->offset.v, semaphore);
	rc = write_line(s->named.tracefs, line);
	free(line);
	return rc;
}

static int read_id(struct probe_session *s, struct named_event *e)
{
	char *path = mem_printf("events/%s/e%u/id", s->named.group, s->named.n_names);
	struct buf b = {0};
	int rc = tracefs_read(&b, s->named.tracefs, path, NUMBER_BYTES, NULL);

	if (rc == 0)
		e->id = strtoull(buf_text(&b), NULL, 10);
	buf_release(&b);
	free(path);
	return rc < 0 || !e->id ? -ENOENT : 0;
}

int uprobe_names_add(struct probe_session *s, struct named_event *e, struct err *err)
{
	int rc = 0;

	for (uint32_t i = 0; i < e->n_sites && rc == 0; i++)
		rc = add_site(s, e, &s->sites.v[e->first_site + i]);
	if (rc == 0)
		rc = read_id(s, e);
	s->named.n_names++; /* also a half one is to be removed */
	return rc < 0 ? err_sys(err, -rc, "tracefs: uprobe_events") : 0;
}

void uprobe_names_remove(struct named_uprobes *named)
{
	uint64_t until = clock_mono_ns() + REMOVE_WAIT_NS;

	for (uint32_t i = 0; i < named->n_names; i++) {
		char name[NAME_BYTES];

		snprintf(name, sizeof(name), "%s/e%u", named->group, i);
		while (remove_name(named->tracefs, name) == -EBUSY && clock_mono_ns() < until)
			usleep(REMOVE_PAUSE_US);
	}
	named->n_names = 0;
}
