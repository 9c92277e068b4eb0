/* SPDX-License-Identifier: MIT */
#include "cmd/foreign_formats.h"

#include <string.h>
#include <sys/stat.h>

#include "formats/foreign/callgrind_read.h"
#include "formats/foreign/chrome_read.h"
#include "formats/foreign/firefox_read.h"
#include "formats/foreign/folded_read.h"
#include "formats/foreign/jfr_read.h"
#include "formats/foreign/perf_script_read.h"
#include "formats/foreign/pprof_read.h"
#include "formats/foreign/speedscope_read.h"
#include "formats/foreign/uftrace_read.h"
#include "formats/import_counts.h"
#include "perfdata/perf_import.h"
#include "trace/layout.h"

const struct foreign_format foreign_formats[] = {
	{"perf", "what perf record writes: perf.data, or a pipe of it", perfdata_is, NULL,
		perfdata_read, "output sysroot kallsyms catalog"},
	{"perf-script", "the text of perf script", perf_script_is, NULL, perf_script_read,
		"output"},
	{"pprof", "profiles of Go and of the pprof tools", pprof_is, NULL, pprof_read, NULL},
	{"jfr", "recordings of Java Flight Recorder, also of async-profiler", jfr_is, NULL,
		jfr_read, NULL},
	{"speedscope", "profiles of speedscope", speedscope_is, NULL, speedscope_read, NULL},
	{"firefox", "processed profiles of the Firefox Profiler, as of samply", firefox_is, NULL,
		firefox_read, NULL},
	{"chrome", "trace events in JSON, as Chrome has them", chrome_is, NULL, chrome_read, NULL},
	{"callgrind", "profiles of callgrind and cachegrind", callgrind_is, NULL, callgrind_read,
		NULL},
	{"uftrace", "folders of uftrace record", NULL, uftrace_is_folder, uftrace_read, NULL},
	{"folded", "folded stacks, as flame graphs are made of", folded_is, NULL, folded_read,
		"output metric unit first"},
};
const size_t foreign_n_formats = sizeof(foreign_formats) / sizeof(foreign_formats[0]);

static bool is_ours(struct span first)
{
	return (first.n >= TRACE_MAGIC_BYTES && !memcmp(first.p, TRACE_MAGIC, TRACE_MAGIC_BYTES)) ||
	       import_counts_is(first);
}

static const struct foreign_format *find(struct foreign_input *in)
{
	struct span first = foreign_input_peek(in, FOREIGN_FIRST_BYTES);

	for (size_t i = 0; i < foreign_n_formats && first.n && !is_ours(first); i++)
		if (foreign_formats[i].is && foreign_formats[i].is(first))
			return &foreign_formats[i];
	return NULL;
}

const struct foreign_format *foreign_format_of_bytes(struct span first)
{
	struct foreign_input *in = foreign_input_of_bytes(first, "");
	const struct foreign_format *format = find(in);

	foreign_input_close(in);
	return format;
}

static const struct foreign_format *find_folder(const char *path)
{
	for (size_t i = 0; i < foreign_n_formats; i++)
		if (foreign_formats[i].is_folder && foreign_formats[i].is_folder(path))
			return &foreign_formats[i];
	return NULL;
}

/* A FIFO is left alone: what is read of it is gone. */
const struct foreign_format *foreign_format_of(const char *path)
{
	const struct foreign_format *format;
	struct foreign_input *in;
	struct stat st;

	if (stat(path, &st) < 0)
		return NULL;
	if (S_ISDIR(st.st_mode))
		return find_folder(path);
	if (!S_ISREG(st.st_mode) || foreign_input_open(&in, path, path, NULL) < 0)
		return NULL;
	format = find(in);
	foreign_input_close(in);
	return format;
}

int foreign_format_read(const struct foreign_format *format, const char *path, const char *name,
	const struct foreign_options *options, struct trace_writer *w, struct err *err)
{
	struct foreign_input *in = NULL;
	int rc;

	if (format->is_folder)
		return format->read(NULL, path, options, w, err);
	rc = foreign_input_open(&in, path, name, err);
	if (rc == 0)
		rc = format->read(in, path, options, w, err);
	foreign_input_close(in);
	return rc;
}
