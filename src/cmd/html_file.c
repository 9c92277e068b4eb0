/* SPDX-License-Identifier: MIT */
#include "cmd/html_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/output.h"
#include "cmd/view/html_page.h"

/* `before`: NULL when there is one trace alone. */
static int write_file(const char *path, struct trace_reader *reader, struct trace_reader *before,
	const char *exe, struct err *err)
{
	struct output output;
	FILE *out;
	int fd, failed, rc = output_open(&output, &fd, path, OUTPUT_MODE_OVERWRITE, err);

	if (rc < 0) {
		trace_reader_close(reader);
		trace_reader_close(before);
		return rc;
	}
	out = fdopen(fd, "wb");
	rc = html_page_write(out, reader, before, exe, err);
	failed = ferror(out);
	failed |= fclose(out);
	if (rc >= 0 && failed)
		rc = err_sys(err, errno, "'%s': cannot write", path);
	if (rc < 0)
		output_discard(&output);
	output_release(&output);
	return rc;
}

int html_file_write(const char *path, const char *before_path, const char *trace,
	const struct open_trace_options *options, struct err *err)
{
	struct trace_reader *reader = NULL, *before = NULL;
	int rc = open_trace(&reader, trace, options, err);

	if (rc >= 0 && before_path)
		rc = open_trace(&before, before_path, options, err);
	if (rc >= 0)
		rc = output_check_apart(path, trace, err);
	if (rc >= 0 && before_path)
		rc = output_check_apart(path, before_path, err);
	if (rc < 0) {
		trace_reader_close(reader);
		trace_reader_close(before);
		return rc;
	}
	return strcmp(path, "-")
		       ? write_file(path, reader, before, options->counts.exe, err)
		       : html_page_write(stdout, reader, before, options->counts.exe, err);
}
