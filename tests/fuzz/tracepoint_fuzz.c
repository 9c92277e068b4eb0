/* SPDX-License-Identifier: MIT */
/* Any bytes as the format file of a tracepoint. */
#include <stdlib.h>

#include "process/tracepoint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const struct tracepoint_spec spec = {"syscalls/sys_enter_munmap", {"addr", "len"}};
	uint8_t raw[64] = {0};
	struct tracepoint t;
	struct err err;
	uint64_t value;

	if (tracepoint_parse(&t, &spec, (struct span){data, n}, &err) < 0)
		return 0;
	if (!t.id)
		abort();
	for (size_t i = 0; i < TRACEPOINT_FIELDS_MAX; i++) {
		bool is_inside = t.fields[i].at + t.fields[i].bytes <= sizeof(raw);

		if (tracepoint_value(&t, i, (struct span){raw, sizeof(raw)}, &value) != is_inside)
			abort();
	}
	return 0;
}
