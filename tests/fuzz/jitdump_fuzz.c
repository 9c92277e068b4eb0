/* SPDX-License-Identifier: MIT */
/* Any bytes as a jitdump file. */
#include <stdlib.h>
#include <string.h>

#include "symbols/source/jitdump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* A code is found at its own first and last byte at the time of its load, unless it was replaced at
 * that very time. */
static void check_code(const struct jitdump *j, const struct jit_code *c)
{
	uint64_t sum = strlen(c->name);

	if (!c->bytes || c->to_ns < c->from_ns || c->code.n > c->bytes)
		abort();
	if (c->to_ns > c->from_ns &&
		(jitdump_find(j, c->addr, c->from_ns) != c ||
			jitdump_find(j, c->addr + c->bytes - 1, c->to_ns - 1) != c))
		abort();
	for (size_t i = 0; i < c->n_lines; i++)
		sum += strlen(c->lines[i].file);
	for (size_t i = 0; i < c->code.n; i++)
		sum += c->code.p[i];
	if (sum == UINT64_MAX)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct jitdump j;
	struct err err = {0};

	if (jitdump_init(&j, (struct span){data, n}, &err) < 0) {
		if (!err.text[0])
			abort();
		return 0;
	}
	if (j.bytes_read > n)
		abort();
	for (size_t i = 0; i < j.codes.n; i++)
		check_code(&j, &j.codes.v[i]);
	jitdump_find(&j, 0, 0);
	jitdump_find(&j, UINT64_MAX, UINT64_MAX);
	jitdump_release(&j);
	return 0;
}
