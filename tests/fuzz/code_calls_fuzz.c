/* SPDX-License-Identifier: MIT */
/*
 * Traces of any bytes as answers by function, block and line take them: calls by function keep their
 * ids in range and are no more than the model has; exports are written or refused with a sentence.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "calltree/build.h"
#include "calltree/code_calls.h"
#include "formats/exports.h"

static void check_calls(const struct trace_reader *r)
{
	struct code_counts *counts;
	struct code_calls *calls;
	uint32_t *owners;

	if (code_counts_build(&counts, r, NULL) < 0)
		return;
	if (code_calls_build(&calls, r, counts, NULL) == 0) {
		for (size_t i = 0; i < calls->n_calls; i++)
			if (calls->calls[i].caller >= calls->n_parties ||
				calls->calls[i].callee >= calls->n_parties ||
				!calls->calls[i].callee)
				abort();
		code_calls_free(calls);
	}
	owners = code_counts_owners(counts);
	for (size_t i = 0; i < counts->n_functions; i++)
		if (owners[i] != i && (owners[i] >= counts->n_functions ||
					      counts->functions[owners[i]].is_fragment))
			abort();
	free(owners);
	code_counts_free(counts);
}

static void check_exports(const struct trace_reader *r, const char *metric)
{
	struct build_options o = BUILD_OPTIONS_ALL;
	struct err err = {0};
	struct profile *p;
	char *text = NULL;
	size_t n;
	FILE *out;

	o.metric = metric;
	if (profile_build(&p, r, &o, NULL) < 0)
		return;
	out = open_memstream(&text, &n);
	if (export_callgrind(p, out, &err) < 0 && !err.text[0])
		abort();
	err.text[0] = 0;
	if (export_lcov(p, out, &err) < 0 && !err.text[0])
		abort();
	fclose(out);
	free(text);
	profile_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct trace_reader *r;

	if (trace_reader_open_bytes(&r, (struct span){data, n}, false, "fuzz", NULL) < 0)
		return 0;
	check_calls(r);
	check_exports(r, NULL);
	check_exports(r, "cycles");
	trace_reader_close(r);
	return 0;
}
