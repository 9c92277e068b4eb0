/* SPDX-License-Identifier: MIT */
/*
 * Count files of any bytes: refused with a sentence, or made into a trace whose reports keep their
 * sums: the nodes of each thread add up to what its blocks add up to, unless the trace says that
 * something does not fit. The program is never looked for.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../unit/models.h"
#include "calltree/arcs.h"
#include "calltree/build.h"
#include "calltree/code_counts.h"
#include "formats/import_counts.h"

static void check_profile(const struct trace_reader *r, const char *metric)
{
	struct build_options o = BUILD_OPTIONS_ALL;
	struct profile *p;
	struct flat flat;
	struct arcs arcs;

	o.metric = metric;
	if (profile_build(&p, r, &o, NULL) < 0)
		return;
	flat_init(&flat, p->tree);
	arcs_init(&arcs, p->tree, &flat);
	if (!arcs_check(&arcs, p->tree, NULL))
		abort();
	if (p->loss.records_unknown)
		abort();
	for (size_t i = 0; i < p->loss.n_reasons; i++)
		if (strstr(p->loss.reasons[i].phrase, "damaged"))
			abort(); /* the importer writes sound records only */
	arcs_release(&arcs);
	flat_release(&flat);
	profile_free(p);
}

static void check_trace(int fd)
{
	static const char *const metrics[] = {NULL, "instructions", "cycles", "calls", "foreign"};
	struct trace_reader *r;
	struct code_counts *code;
	struct err err = {0};
	char path[40];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (trace_reader_open(&r, path, &err) < 0)
		abort();
	for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++)
		check_profile(r, metrics[i]);
	if (code_counts_build(&code, r, &err) < 0)
		abort();
	for (size_t i = 0; i < code->n_functions; i++)
		if (code_counts_find(code, code->functions[i].name, i) != (ptrdiff_t)i)
			abort();
	code_counts_free(code);
	trace_reader_close(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct import_counts_options options = {.exe = "/dev/null"};
	int fd = memfd_create("import_counts_fuzz", MFD_CLOEXEC), copy = dup(fd), rc;
	struct trace_writer *w;
	struct err err = {0};

	if (fd < 0 || copy < 0 || trace_writer_open_fd(&w, copy, "fuzz", &err) < 0)
		abort();
	rc = import_counts((struct span){data, n}, &options, w, &err);
	if (trace_writer_close(w, NULL) < 0 || (rc < 0) != (err.text[0] != 0))
		abort();
	if (rc == 0)
		check_trace(fd);
	close(fd);
	return 0;
}
