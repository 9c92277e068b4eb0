/* SPDX-License-Identifier: MIT */
/* Any bytes as a perf.data, a file or a pipe: refused with a sentence, or a trace comes of it. */
#include <stdlib.h>

#include "perfdata/perf_import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	/* No file of this machine is looked into, and no kernel's symbols. */
	struct foreign_options options = {.sysroot = "/nonexistent", .kallsyms = "/nonexistent"};
	struct foreign_input *in = foreign_input_of_bytes((struct span){data, n}, "fuzz");
	struct trace_writer *w;
	struct err err = {0};

	if (trace_writer_open(&w, "/dev/null", &err) < 0)
		abort();
	if (perfdata_read(in, NULL, &options, w, &err) < 0 && !err.text[0])
		abort();
	trace_writer_close(w, &err);
	foreign_input_close(in);
	return 0;
}
