/* SPDX-License-Identifier: MIT */
/*
 * Traces of any bytes, their steps made into counts: that is refused with a sentence, or makes a
 * trace that can be read, whose call trees have as many instructions as its functions.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "calltree/build.h"
#include "calltree/code_counts.h"
#include "steps/calls/step_counts.h"

static void check_counts(const char *path)
{
	struct build_options o = BUILD_OPTIONS_ALL;
	struct code_counts *counts;
	struct trace_reader *r;
	struct profile *p;

	if (trace_reader_open(&r, path, NULL) < 0)
		abort();
	o.metric = "instructions";
	if (profile_build(&p, r, &o, NULL) == 0)
		profile_free(p);
	if (code_counts_build(&counts, r, NULL) == 0)
		code_counts_free(counts);
	trace_reader_close(r);
}

static void make_counts(struct trace_reader *r, enum step_counts_code code)
{
	int fd = memfd_create("counts", MFD_CLOEXEC);
	struct trace_writer *w;
	struct err err = {0};
	char path[32];
	int rc;

	if (trace_writer_open_fd(&w, dup(fd), "counts", &err) < 0)
		abort();
	rc = step_counts_write(w, r, code, &err);
	if (rc < 0 && !err.text[0])
		abort();
	if (trace_writer_close(w, &err) < 0)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (rc == 0)
		check_counts(path);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct trace_reader *r;

	if (trace_reader_open_bytes(&r, (struct span){data, n}, false, "fuzz", NULL) < 0)
		return 0;
	make_counts(r, STEP_COUNTS_TREES);
	make_counts(r, STEP_COUNTS_ALL_CODE);
	trace_reader_close(r);
	return 0;
}
