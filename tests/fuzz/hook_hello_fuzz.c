/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as what a hook library sends: the first byte chooses between a hello and results. A
 * prefix of a whole message must never be taken for whole, whatever its length.
 */
#include <stdlib.h>

#include "record/hooks/hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_hello(struct span bytes)
{
	struct hello h;
	struct err err;
	enum hello_state state = hello_parse(&h, bytes, &err);

	if (state == HELLO_BAD && !err.text[0])
		abort();
	if (state != HELLO_WHOLE)
		return;
	if (h.modules.n != h.head.n_modules || h.modules.n > HELLO_MODULES_MAX)
		abort();
	for (size_t i = 0; i < h.modules.n; i++)
		if (strlen(h.modules.v[i].path) > HELLO_PATH_BYTES_MAX ||
			h.modules.v[i].start > h.modules.v[i].end)
			abort();
	if (h.class_bytes.n && (h.class_bytes.p < bytes.p ||
				       h.class_bytes.p + h.class_bytes.n != bytes.p + bytes.n))
		abort();
	hello_release(&h);
	for (size_t k = 1; k <= 64 && k <= bytes.n; k++)
		if (hello_parse(&h, (struct span){bytes.p, bytes.n - k}, &err) == HELLO_WHOLE)
			abort();
}

static void check_results(struct span bytes, uint32_t n_plans)
{
	struct span results = {NULL, 0};
	struct err err;

	if (hello_parse_results(bytes, n_plans, &results, &err) != HELLO_WHOLE)
		return;
	if (results.n != n_plans * sizeof(struct hook_result) || results.p < bytes.p ||
		results.p + results.n > bytes.p + bytes.n)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	if (!n)
		return 0;
	if (data[0] & 1)
		check_results((struct span){data + 1, n - 1}, data[0] >> 1);
	else
		check_hello((struct span){data + 1, n - 1});
	return 0;
}
