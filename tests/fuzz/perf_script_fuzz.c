/* SPDX-License-Identifier: MIT */
/* Any bytes as the text of perf script: refused with a sentence, or a trace comes of it. */
#include <stdlib.h>

#include "formats/foreign/perf_script_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct span bytes = {data, n};
	struct foreign_options options = {.sysroot = NULL};
	struct foreign_input *in = foreign_input_of_bytes(bytes, "fuzz");
	struct trace_writer *w;
	struct err err = {0};
	volatile bool is_one = perf_script_is(bytes);

	(void)is_one;
	if (trace_writer_open(&w, "/dev/null", &err) < 0)
		abort();
	if (perf_script_read(in, NULL, &options, w, &err) < 0 && !err.text[0])
		abort();
	trace_writer_close(w, &err);
	foreign_input_close(in);
	return 0;
}
