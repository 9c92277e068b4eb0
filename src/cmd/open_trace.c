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
#include "base/temporary_folder.h"
#include "cmd/foreign_formats.h"
#include "cmd/trace_input.h"
#include "insert/cost/cost.h"
#include "steps/calls/step_counts.h"
#include "symbols/resolve/resolver.h"

#define NAME_BYTES	   32 /* "/proc/self/fd/..." */
#define FILE_IN_MEMORY_MAX (64 << 20)

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

/* What is made of a large file, or of one whose size is not known, is kept in a file, too. */
static bool is_for_memory(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size < FILE_IN_MEMORY_MAX;
}

/* A trace that is made for the moment: the file, and the path by which it can be read. */
static int memory_trace_writer(
	int *fd, char name[NAME_BYTES], const char *path, struct trace_writer **w, struct err *err)
{
	int copy;

	*fd = is_for_memory(path) ? -1 : temporary_file_open();
	if (*fd < 0)
		*fd = memfd_create("weir-trace", MFD_CLOEXEC);
	copy = *fd < 0 ? -1 : fcntl(*fd, F_DUPFD_CLOEXEC, 0);
	if (copy < 0)
		return err_sys(err, errno, "'%s': no memory for its trace", path);
	snprintf(name, NAME_BYTES, "/proc/self/fd/%d", *fd);
	return trace_writer_open_fd(w, copy, path, err);
}

static int foreign_into(struct trace_writer *w, const struct foreign_format *format,
	const char *path, const struct open_trace_options *options, struct err *err)
{
	struct foreign_options foreign = options->foreign;

	foreign.catalog = options->catalog;
	return foreign_format_read(format, path, path, &foreign, w, err);
}

/* A count file (`format` NULL), or a file of another tool. `options` NULL: names are not looked for. */
static int open_made(struct trace_reader **out, const char *path,
	const struct foreign_format *format, const struct open_trace_options *options,
	struct err *err)
{
	static const struct open_trace_options no_options;
	const struct open_trace_options *o = options ? options : &no_options;
	struct trace_writer *w;
	char name[NAME_BYTES];
	FD_AUTO fd = -1;
	int rc = memory_trace_writer(&fd, name, path, &w, err);

	if (rc == 0 && format)
		rc = trace_writer_settle(w, foreign_into(w, format, path, o, err), err);
	else if (rc == 0)
		rc = import_into(w, path, &o->counts, err);
	if (rc == 0)
		rc = options ? resolver_open_trace(out, name, options->catalog, err)
			     : trace_reader_open(out, name, err);
	if (rc == 0)
		trace_reader_set_name(*out, path);
	return rc;
}

/* Counts instead of the steps of *out, which is replaced; all that has a name has it already. */
static int count_steps(
	struct trace_reader **out, const char *path, enum open_steps how, struct err *err)
{
	static const enum step_counts_code codes[] = {
		[OPEN_STEPS_COUNTS] = STEP_COUNTS_ALL_CODE,
		[OPEN_STEPS_TOLD] = STEP_COUNTS_TOLD,
		[OPEN_STEPS_COVERAGE] = STEP_COUNTS_COVERAGE,
		[OPEN_STEPS_TREES] = STEP_COUNTS_TREES,
	};
	struct trace_reader *counts;
	struct trace_writer *w;
	char name[NAME_BYTES];
	FD_AUTO fd = -1;
	int rc = memory_trace_writer(&fd, name, path, &w, err);

	if (rc == 0)
		rc = trace_writer_settle(w, step_counts_write(w, *out, codes[how], err), err);
	if (rc == 0)
		rc = trace_reader_open(&counts, name, err);
	trace_reader_close(*out);
	*out = NULL;
	if (rc < 0)
		return rc;
	trace_reader_set_name(counts, path);
	*out = counts;
	return 0;
}

static int open_file(struct trace_reader **out, const char *path,
	const struct open_trace_options *options, struct err *err)
{
	const struct foreign_format *format = foreign_format_of(path);
	struct trace_reader *reader;
	int rc;

	if (format || is_count_file(path))
		return open_made(out, path, format, options, err);
	rc = resolver_open_trace(&reader, path, options->catalog, err);
	if (rc == 0 && options->steps != OPEN_STEPS_PLAIN && trace_reader_has_steps(reader))
		rc = count_steps(&reader, path, options->steps, err);
	if (rc == 0)
		*out = reader;
	return rc;
}

int open_trace(struct trace_reader **out, const char *path,
	const struct open_trace_options *options, struct err *err)
{
	struct trace_input in;
	int rc = check_options(&options->counts, err);

	if (rc == 0)
		rc = trace_input_open(&in, path, err);
	if (rc < 0)
		return rc;
	rc = open_file(out, in.path, options, err);
	if (rc == 0)
		trace_reader_set_name(*out, path);
	trace_input_close(&in);
	return rc;
}

int open_trace_plain(struct trace_reader **out, const char *path, struct err *err)
{
	const struct foreign_format *format;
	struct trace_input in;
	int rc = trace_input_open(&in, path, err);

	if (rc < 0)
		return rc;
	format = foreign_format_of(in.path);
	rc = format || is_count_file(in.path) ? open_made(out, in.path, format, NULL, err)
					      : trace_reader_open(out, in.path, err);
	if (rc == 0)
		trace_reader_set_name(*out, path);
	trace_input_close(&in);
	return rc;
}

/* Who names the format is believed, but where the file is a trace, or of another format. */
static int check_format(
	const struct foreign_format *format, const char *path, const char *name, struct err *err)
{
	const struct foreign_format *found = foreign_format_of(path);
	struct stat st;

	if (stat(path, &st) < 0)
		return err_sys(err, errno, "'%s': cannot open", name);
	if (found != format && (found || format->is_folder || S_ISDIR(st.st_mode)))
		return err_set(
			err, ERR_FORMAT, "'%s': is no file of format '%s'", name, format->name);
	return 0;
}

int open_trace_import_foreign(const struct foreign_format *format, const char *path,
	const char *output, const struct foreign_options *options, struct err *err)
{
	struct trace_writer *w;
	struct trace_input in;
	int rc = trace_input_open(&in, path, err);

	if (rc < 0)
		return rc;
	rc = check_format(format, in.path, path, err);
	if (rc == 0)
		rc = trace_writer_open(&w, output, err);
	if (rc == 0)
		rc = trace_writer_settle(
			w, foreign_format_read(format, in.path, path, options, w, err), err);
	trace_input_close(&in);
	return rc;
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
