/* SPDX-License-Identifier: MIT */
/* What a server answers to weir export --post. */
#include <stddef.h>
#include <stdint.h>

#include "formats/http_post.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf all = {0}, answer = {0};
	struct err err = {0};

	buf_put(&all, data, size);
	http_answer_take("http://h", &all, &answer, &err);
	buf_release(&all);
	buf_release(&answer);
	return 0;
}
