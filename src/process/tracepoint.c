/* SPDX-License-Identifier: MIT */
#include "process/tracepoint.h"

#include <fcntl.h>
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

#define FORMAT_BYTES_MAX 16384
#define FIELD_AT_MAX	 4096

/* "field:unsigned long addr;	offset:16;	size:8;	signed:0;" */
static void parse_field(const char *line, const char *name, struct tracepoint_field *field)
{
	const char *declaration = strstr(line, "field:");
	const char *end = declaration ? strchr(declaration, ';') : NULL;
	size_t n = strlen(name);
	unsigned offset, size, is_signed = 0;

	if (!end || end < declaration + n + 1 || strncmp(end - n, name, n) ||
		end[-(long)n - 1] != ' ')
		return;
	if (sscanf(end, "; offset:%u; size:%u; signed:%u;", &offset, &size, &is_signed) < 2 ||
		(size != 4 && size != 8) || offset > FIELD_AT_MAX)
		return;
	*field = (struct tracepoint_field){offset, (uint8_t)size, is_signed != 0};
}

int tracepoint_parse(struct tracepoint *t, const struct tracepoint_spec *spec, struct span format,
	struct err *err)
{
	char *copy = mem_strndup((const char *)format.p, format.n);
	struct tracepoint found = {0};
	char *save = NULL;
	size_t i;

	for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		unsigned id;

		if (sscanf(line, "ID: %u", &id) == 1)
			found.id = id;
		for (i = 0; i < TRACEPOINT_FIELDS_MAX && spec->fields[i]; i++)
			parse_field(line, spec->fields[i], &found.fields[i]);
	}
	free(copy);
	if (!found.id)
		return err_set(err, ERR_FORMAT, "%s: the format file does not tell the number",
			spec->name);
	for (i = 0; i < TRACEPOINT_FIELDS_MAX && spec->fields[i]; i++)
		if (!found.fields[i].bytes)
			return err_set(err, ERR_FORMAT,
				"%s: the format file does not tell where '%s' is", spec->name,
				spec->fields[i]);
	*t = found;
	return 0;
}

/* A mount that no folder shows and that goes with its descriptor (Linux 5.2; needs CAP_SYS_ADMIN).
 */
static int open_detached(struct err *err)
{
	FD_AUTO context = (int)syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC);
	int root = -1;

	if (context >= 0 && syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
		root = (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, 0);
	if (root < 0)
		return err_set(err, ERR_PERMISSION, "tracefs cannot be read; root may");
	return root;
}

int tracefs_open(struct err *err)
{
	static const char *const places[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		int root = open(places[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		/* The folder is there also where nothing is mounted. */
		if (root >= 0 && faccessat(root, "events", R_OK, 0) == 0)
			return root;
		fd_cleanup(&root);
	}
	return open_detached(err);
}

int tracefs_read(struct buf *to, int tracefs, const char *name, size_t max, struct err *err)
{
	char *path = mem_printf("/proc/self/fd/%d/%s", tracefs, name);
	int rc = file_read(to, path, max, err);

	free(path);
	return rc;
}

int tracepoint_find(struct tracepoint *t, const struct tracepoint_spec *spec, struct err *err)
{
	FD_AUTO tracefs = tracefs_open(err);
	char *name = mem_printf("events/%s/format", spec->name);
	struct buf b = {0};
	int rc = tracefs < 0 ? tracefs : 0;

	if (rc == 0 && tracefs_read(&b, tracefs, name, FORMAT_BYTES_MAX, NULL) < 0)
		rc = err_set(err, ERR_UNSUPPORTED, "this kernel has no tracepoint %s", spec->name);
	if (rc == 0)
		rc = tracepoint_parse(t, spec, buf_span(&b), err);
	buf_release(&b);
	free(name);
	return rc;
}

void tracepoint_attr(const struct tracepoint *t, struct perf_event_attr *attr)
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
	attr->exclude_hv = 1;
}

bool tracepoint_value(const struct tracepoint *t, size_t field_i, struct span raw, uint64_t *value)
{
	const struct tracepoint_field *f = &t->fields[field_i];
	struct cursor c = cursor_of(raw);

	cursor_skip(&c, f->at);
	if (f->bytes == 8)
		*value = cursor_u64(&c);
	else if (f->is_signed)
		*value = (uint64_t)(int64_t)(int32_t)cursor_u32(&c);
	else
		*value = cursor_u32(&c);
	return f->bytes && !c.failed;
}
