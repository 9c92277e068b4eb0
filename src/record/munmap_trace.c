/* SPDX-License-Identifier: MIT */
#include "record/munmap_trace.h"

#include <linux/mount.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"

#define FORMAT_FILE	 "/events/syscalls/sys_enter_munmap/format"
#define FORMAT_BYTES_MAX 16384
#define FIELD_AT_MAX	 4096

/* "field:unsigned long addr;	offset:16;	size:8;	signed:0;" */
static bool parse_field(const char *line, const char *name, uint32_t *at)
{
	const char *declaration = strstr(line, "field:");
	const char *end = declaration ? strchr(declaration, ';') : NULL;
	size_t n = strlen(name);
	unsigned offset, size;

	if (!end || end < declaration + n + 1 || strncmp(end - n, name, n) ||
		end[-(long)n - 1] != ' ')
		return false;
	if (sscanf(end, "; offset:%u; size:%u;", &offset, &size) != 2 || size != 8 ||
		offset > FIELD_AT_MAX)
		return false;
	*at = offset;
	return true;
}

int munmap_trace_parse(struct munmap_trace *t, struct span format, struct err *err)
{
	char *copy = mem_strndup((const char *)format.p, format.n);
	struct munmap_trace found = {0};
	bool has_addr = false, has_len = false;
	char *save = NULL;

	for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		unsigned id;

		if (sscanf(line, "ID: %u", &id) == 1)
			found.id = id;
		has_addr |= parse_field(line, "addr", &found.addr_at);
		has_len |= parse_field(line, "len", &found.len_at);
	}
	free(copy);
	if (!found.id || !has_addr || !has_len)
		return err_set(err, ERR_FORMAT,
			"sys_enter_munmap: the format file does not tell id, addr and len");
	*t = found;
	return 0;
}

/* A mount that no folder shows and that goes with its descriptor (Linux 5.2; needs CAP_SYS_ADMIN).
 */
static int read_detached(struct buf *to, struct err *err)
{
	FD_AUTO context = (int)syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC);
	FD_AUTO root = -1;
	char *path;
	int rc;

	if (context >= 0 && syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
		root = (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, 0);
	if (root < 0)
		return err_set(err, ERR_PERMISSION, "tracefs cannot be read; root may");
	path = mem_printf("/proc/self/fd/%d%s", root, FORMAT_FILE);
	rc = file_read(to, path, FORMAT_BYTES_MAX, err);
	free(path);
	return rc;
}

int munmap_trace_init(struct munmap_trace *t, struct err *err)
{
	static const char *const places[] = {
		"/sys/kernel/tracing" FORMAT_FILE, "/sys/kernel/debug/tracing" FORMAT_FILE};
	struct buf b = {0};
	int rc = -1;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && rc < 0; i++)
		rc = file_read(&b, places[i], FORMAT_BYTES_MAX, NULL);
	if (rc < 0)
		rc = read_detached(&b, err);
	if (rc == 0)
		rc = munmap_trace_parse(t, buf_span(&b), err);
	buf_release(&b);
	return rc;
}

void munmap_trace_attr(const struct munmap_trace *t, struct perf_event_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	attr->type = PERF_TYPE_TRACEPOINT;
	attr->config = t->id;
	/* A loss is reported by whichever event meets it: what sample_id_all puts behind side-band
	 * records (TID, TIME, CPU, IDENTIFIER) must be the same in all events of a ring. */
	attr->sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			    PERF_SAMPLE_CPU | PERF_SAMPLE_RAW;
	attr->sample_period = 1;
	attr->disabled = 1;
	attr->inherit = 1;
	attr->sample_id_all = 1;
	attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
	attr->watermark = 1;
	/* A system call counts as user code here, so that users may have those of their own
	 * programs. */
	attr->exclude_kernel = 1;
	attr->exclude_hv = 1;
}
