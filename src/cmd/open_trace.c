/* SPDX-License-Identifier: MIT */
#include "cmd/open_trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "insert/cost/cost.h"
#include "steps/calls/step_counts.h"
#include "symbols/resolve/resolver.h"

/* False when the file cannot be read, too: opening it as a trace says why. */
static bool is_count_file(const char *path)
{
	uint8_t first[8];
	ssize_t n;
	FD_AUTO fd = -1;
	struct stat st;

	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, first, sizeof(first));
	return n > 0 && import_counts_is((struct span){first, (size_t)n});
}

static int check_options(const struct import_counts_options *options, struct err *err)
{
	if (options->cpu && !cost_cpu_find(options->cpu))
		return err_set(
			err, ERR_NOT_FOUND, "--cpu: '%s' is not a known processor", options->cpu);
	return 0;
}

/* Imports and closes the writer, whatever happens; what failed is removed. */
static int import_into(struct trace_writer *w, const char *path,
	const struct import_counts_options *options, struct err *err)
{
	struct file_map map = {0};
	int rc = file_map_open(&map, path, err);

	if (rc == 0) {
		rc = import_counts(map.bytes, options, w, err);
		if (rc < 0)
			err_prefix(err, "'%s'", path);
		file_map_release(&map);
	}
	return trace_writer_settle(w, rc, err);
}

/* A trace that is made in memory. */
struct memory_trace {
	int fd;
	char name[32];
};

static int memory_trace_writer(
	struct memory_trace *m, const char *path, struct trace_writer **w, struct err *err)
{
	int copy;

	m->fd = memfd_create("weir-counts", MFD_CLOEXEC);
	copy = m->fd < 0 ? -1 : fcntl(m->fd, F_DUPFD_CLOEXEC, 0);
	if (copy < 0)
		return err_sys(err, errno, "'%s': no memory for its trace", path);
	snprintf(m->name, sizeof(m->name), "/proc/self/fd/%d", m->fd);
	return trace_writer_open_fd(w, copy, path, err);
}

static void memory_trace_release(struct memory_trace *m)
{
	if (m->fd >= 0)
		close(m->fd);
}

/* `options` NULL: names are not looked for. */
static int open_count_file(struct trace_reader **out, const char *path,
	const struct open_trace_options *options, struct err *err)
{
	static const struct import_counts_options no_options;
	struct memory_trace m;
	struct trace_writer *w;
	int rc = memory_trace_writer(&m, path, &w, err);

	if (rc == 0)
		rc = import_into(w, path, options ? &options->counts : &no_options, err);
	if (rc == 0)
		rc = options ? resolver_open_trace(out, m.name, options->catalog, err)
			     : trace_reader_open(out, m.name, err);
	if (rc == 0)
		trace_reader_set_name(*out, path);
	memory_trace_release(&m);
	return rc;
}

/* Counts instead of the steps of *out, which is replaced; all that has a name has it already. */
static int count_steps(
	struct trace_reader **out, const char *path, enum open_steps how, struct err *err)
{
	static const enum step_counts_code codes[] = {
		[OPEN_STEPS_COUNTS] = STEP_COUNTS_ALL_CODE,
		[OPEN_STEPS_COVERAGE] = STEP_COUNTS_COVERAGE,
		[OPEN_STEPS_TREES] = STEP_COUNTS_TREES,
	};
	struct trace_reader *counts;
	struct memory_trace m;
	struct trace_writer *w;
	int rc = memory_trace_writer(&m, path, &w, err);

	if (rc == 0)
		rc = trace_writer_settle(w, step_counts_write(w, *out, codes[how], err), err);
	if (rc == 0)
		rc = trace_reader_open(&counts, m.name, err);
	memory_trace_release(&m);
	trace_reader_close(*out);
	*out = NULL;
	if (rc < 0)
		return rc;
	trace_reader_set_name(counts, path);
	*out = counts;
	return 0;
}

int open_trace(struct trace_reader **out, const char *path,
	const struct open_trace_options *options, struct err *err)
{
	static const struct open_trace_options none;
	struct trace_reader *reader;
	int rc;

	options = options ? options : &none;
	rc = check_options(&options->counts, err);
	if (rc < 0)
		return rc;
	if (is_count_file(path))
		return open_count_file(out, path, options, err);
	rc = resolver_open_trace(&reader, path, options->catalog, err);
	if (rc == 0 && options->steps != OPEN_STEPS_PLAIN &&
		trace_reader_has_kind(reader, RECORD_MAJOR_STEP, RECORD_STEP_RUN))
		rc = count_steps(&reader, path, options->steps, err);
	if (rc == 0)
		*out = reader;
	return rc;
}

int open_trace_plain(struct trace_reader **out, const char *path, struct err *err)
{
	return is_count_file(path) ? open_count_file(out, path, NULL, err)
				   : trace_reader_open(out, path, err);
}

int open_trace_import(const char *path, const char *output,
	const struct import_counts_options *options, struct err *err)
{
	struct trace_writer *w;
	struct stat st;
	int rc = check_options(options, err);

	if (rc == 0 && stat(path, &st) < 0)
		rc = err_sys(err, errno, "'%s': cannot open", path);
	if (rc == 0 && !is_count_file(path))
		rc = err_set(err, ERR_FORMAT, "'%s': is not a count file", path);
	if (rc == 0)
		rc = trace_writer_open(&w, output, err);
	if (rc < 0)
		return rc;
	return import_into(w, path, options, err);
}
