/* SPDX-License-Identifier: MIT */
/* Text samples of any bytes: refused with a sentence, or imported the same way twice. */
#include <stdint.h>
#include <stdlib.h>

#include "formats/import_events.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct span text = {data, n};
	struct trace_writer *w;
	struct err err = {0};

	if (import_samples(text, "fuzz", NULL, &err) < 0) {
		if (!err.text[0])
			abort();
		return 0;
	}
	if (trace_writer_open(&w, "/dev/null", &err) < 0)
		abort();
	if (import_samples(text, "fuzz", w, &err) < 0)
		abort(); /* the check said that it is right */
	trace_writer_close(w, &err);
	return 0;
}
